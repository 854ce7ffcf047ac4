//! The work of a [thread](crate::worker) of the library's that could not be started: whoever is about to wait in a call does it instead. A wait
//! takes a [`turn`] before it arms anything, and sleeps no longer than that says.

use core::time::Duration;

use crate::sync::{AtomicI32, Exchange, Ordering};
use crate::{process, sys, worker};

/// Longest sleep where somebody else may have left work meanwhile, in nanoseconds.
const SLICE: u64 = Duration::from_millis(10).as_nanos() as u64;

/// The process in which somebody is at it; 0: nobody is.
static AT_IT: AtomicI32 = AtomicI32::new(0);

/// Does what is due, before a sleep of so many nanoseconds. Gives how many that may be.
#[inline]
pub fn turn(left: Option<u64>) -> Option<u64> {
    match worker::any_is_missing() {
        false => left,
        true => {
            let most = turn_of_all();
            Some(left.map_or(most, |left| left.min(most)))
        }
    }
}

/// For a call that looks and does not wait: who looks over and over waits too.
#[inline]
pub fn glance() {
    turn(Some(0));
}

/// As [`turn`], with a time in the place of a duration; `u64::MAX`: none.
#[inline]
pub fn turn_until(until: u64) -> u64 {
    turn(None).map_or(until, |most| until.min(sys::now().saturating_add(most)))
}

#[cold]
fn turn_of_all() -> u64 {
    let pid = process::pid();
    let before = AT_IT.load(Ordering::Acquire);
    // No handler leaves it by siglongjmp(3).
    let quiet = process::Quiet::new();
    if before == pid || !AT_IT.exchange(before, pid) {
        return SLICE;
    }
    let most = worker::stand_in(SLICE);
    AT_IT.store(0, Ordering::Release);
    drop(quiet);
    most
}
