//! The work of threads of the library's own that could not be started: whoever is about to wait in a call does it instead.
//!
//! Such a thread says [`instead_of`] when it can't be started, and [`no_more`] once it was. A wait takes a [`turn`] before it arms
//! anything, and sleeps no longer than that says.

use core::mem::transmute;
use core::ptr::null_mut;
use core::time::Duration;
use std::panic::catch_unwind;

use crate::log::{self, Level};
use crate::sync::{AtomicI32, AtomicPtr, Ordering};
use crate::{process, sys};

/// Longest sleep where somebody else may have left work meanwhile, in nanoseconds.
const SLICE: u64 = Duration::from_millis(10).as_nanos() as u64;

/// What a thread does in a turn. Called with no lock held; it does not wait. Gives for how long, in nanoseconds, there is nothing to do.
pub type Work = fn() -> u64;

/// One for each such thread.
static WORKS: [AtomicPtr<()>; 4] = [const { AtomicPtr::new(null_mut()) }; 4];
/// The process in which somebody is at it; 0: nobody is.
static AT_IT: AtomicI32 = AtomicI32::new(0);

/// From now on calls that wait do this work. True: not before.
pub fn instead_of(work: Work) -> bool {
    let work = work as *mut ();
    let keeps = |at: &AtomicPtr<()>| {
        at.compare_exchange(null_mut(), work, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    };
    !WORKS.iter().any(|at| at.load(Ordering::Acquire) == work) && WORKS.iter().any(keeps)
}

/// Its thread is there.
pub fn no_more(work: Work) {
    for at in &WORKS {
        let _ = at.compare_exchange(
            work as *mut (),
            null_mut(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
    }
}

/// Does what is due, before a sleep of so many nanoseconds. Gives how many that may be.
#[inline]
pub fn turn(left: Option<u64>) -> Option<u64> {
    match WORKS.iter().all(|at| at.load(Ordering::Acquire).is_null()) {
        true => left,
        false => {
            let most = turn_of_all();
            Some(left.map_or(most, |left| left.min(most)))
        }
    }
}

/// As [`turn`], with a time in the place of a duration; `u64::MAX`: none.
#[inline]
pub fn turn_until(until: u64) -> u64 {
    match turn(None) {
        None => until,
        Some(most) => until.min(sys::now().saturating_add(most)),
    }
}

#[cold]
fn turn_of_all() -> u64 {
    let pid = process::pid();
    let before = AT_IT.load(Ordering::Acquire);
    // No handler leaves it by siglongjmp(3).
    let quiet = process::Quiet::new();
    if before == pid
        || AT_IT
            .compare_exchange(before, pid, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
    {
        return SLICE;
    }
    let mut most = SLICE;
    for at in &WORKS {
        let work = at.load(Ordering::Acquire);
        if work.is_null() {
            continue;
        }
        // SAFETY: `instead_of` stored it.
        let work = unsafe { transmute::<*mut (), Work>(work) };
        match catch_unwind(work) {
            Ok(next) => most = most.min(next),
            Err(_) => {
                no_more(work);
                log::write(
                    Level::Error,
                    format_args!(
                        "internal error in the work of a thread that could not be started"
                    ),
                );
            }
        }
    }
    AT_IT.store(0, Ordering::Release);
    drop(quiet);
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU32;

    static TURNS: AtomicU32 = AtomicU32::new(0);

    fn work() -> u64 {
        TURNS.fetch_add(1, Ordering::Relaxed);
        // Not within itself.
        assert_eq!(turn(None), Some(SLICE));
        1000
    }

    #[test]
    fn work_is_done_until_its_thread_is_there() {
        assert_eq!(turn(None), None);
        assert!(instead_of(work) && !instead_of(work));
        let turns = || TURNS.load(Ordering::Relaxed);
        assert_eq!((turn(None), turns()), (Some(1000), 1));
        assert_eq!((turn(Some(10)), turns()), (Some(10), 2));
        no_more(work);
        assert_eq!((turn(Some(10)), turns()), (Some(10), 2));
    }
}
