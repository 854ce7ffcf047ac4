//! How a queued head ends: on the last close modules and driver go, and then the queues.
//!
//! # Contract
//! As for [`super::local::Local`]: queues are only reached inside the perimeter.

use core::ptr::null_mut;
use core::time::Duration;

use headwater_host::sync::Ordering::{AcqRel, Acquire, Relaxed};
use headwater_host::{signal, sys};

use super::linking::{self, LetGo};
use super::local::{enter, finish, inside, wait_for_change};
use super::{Head, opening, signals};
use crate::ddi::*;
use crate::exec::attach::free_pair;
use crate::pipe::words::state;

/// A closing stream looks this often whether its queues have drained.
const DRAIN_LOOK: u64 = Duration::from_millis(5).as_nanos() as u64;

/// The last descriptor of this process is closed: modules and driver are, and what is linked below is let go.
pub fn end(head: &'static Head, let_go: LetGo) {
    if head.perimeter.load(Acquire).is_null() {
        return;
    }
    linking::unlink_all(head, let_go);
    signals::forget(head);
    let mut shared = false;
    inside(head, |local| {
        let driver = local.driver.get();
        shared = driver.is_some_and(|d| d.shared_perimeter().is_some());
        // SAFETY: inside the perimeter; the pairs are linked below the head, the topmost first.
        unsafe {
            while local.modules.borrow_mut().pop().is_some() {
                local.detach();
            }
            if local.driver.take().is_some() {
                local.detach();
            }
        }
    });
    finish(head);
    if let Some(_guard) = enter(head) {
        // SAFETY: inside the perimeter; nothing is linked to the pairs any more but each other.
        unsafe {
            if let Some(local) = (*head.local.get()).take() {
                let pairs = || [Some(local.rq), local.bottom].into_iter().flatten();
                for rq in pairs() {
                    rq.qprocsoff();
                    rq.flushq(Flush::All);
                    rq.other().flushq(Flush::All);
                }
                for rq in pairs() {
                    free_pair(rq);
                }
            }
        }
        head.blocked.store(0, Relaxed);
        // Still inside: nobody else begins anew with the old one.
        let own = head.perimeter.swap(null_mut(), AcqRel);
        // SAFETY: perimeters are never freed.
        if let Some(own) = unsafe { own.as_ref() }
            && !shared
        {
            own.retire();
        }
    }
    if head.has_pipe() && !head.is_shared() {
        head.words().clear(state::QUEUED);
    }
}

/// Before that: lets written data go down, for as long as I_SETCLTIME says, and `is_last` does. Not with O_NONBLOCK, nor after a signal.
pub fn drain(head: &'static Head, is_last: impl Fn() -> bool) {
    if head.perimeter.load(Acquire).is_null() {
        return;
    }
    let inherited = head.inherited.load(Relaxed) != 0;
    let failed = head.words().has(state::WRITE_ERROR);
    if inherited || failed || opening::is_nonblocking(head) || head.has_hung_up() {
        return;
    }
    let deadline = sys::now() + head.words().close_time.load(Relaxed) as u64 * 1_000_000;
    signal::begin_wait();
    loop {
        let seen = head.version();
        let holds = inside(head, |local| {
            let mut q = local.down();
            while q.samestr()
                && let Some(next) = q.next()
            {
                q = next;
                if q.first().is_some() && core::ptr::eq(q.perimeter(), head.perimeter.load(Relaxed))
                {
                    return true;
                }
            }
            false
        });
        let failed = head.words().has(state::WRITE_ERROR);
        if holds != Some(true) || failed || head.has_hung_up() || !is_last() {
            return;
        }
        let now = sys::now();
        if now >= deadline {
            return;
        }
        let until = deadline.min(now + DRAIN_LOOK);
        if let Err(libc::EINTR) = wait_for_change(head, seen, Some(until), &mut []) {
            return;
        }
    }
}
