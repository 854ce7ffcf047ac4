//! What the background thread does for queued heads that no call serves, and what becomes of them in a fork.
//!
//! # Contract
//! As for [`super::local::Local`]: queues are only reached inside the perimeter.

use core::ptr::null_mut;
use core::time::Duration;

use headwater_host::sync::AtomicPtr;
use headwater_host::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use headwater_host::{hidden, reclaim, sys};

use super::arming::Want;
use super::local::{IDLE, after_call, enter, serve};
use super::{Head, all, get, linking, signals};
use crate::background;
use crate::ddi::*;
use crate::exec::fork;

/// Who asked for SIGPOLL at a pipe is looked after this often, where what happens is not seen by a call of this process.
const SIGNAL_LOOK: u64 = Duration::from_millis(4).as_nanos() as u64;
/// How often a queued pipe is asked whether its other end is gone.
const HANGUP_LOOK: u64 = Duration::from_millis(100).as_nanos() as u64;
/// How often one is served that can't be watched.
const UNWATCHED_LOOK: u64 = Duration::from_millis(4).as_nanos() as u64;

static HELD: AtomicPtr<(fork::Held, linking::Held)> = AtomicPtr::new(null_mut());

/// The background thread's turn: serves what no call serves. Returns when it wants the next one.
pub fn tick(now: u64) -> u64 {
    let looks = reclaim::enter();
    let mut next = crate::exec::timer::run_due(now);
    for head in all(&looks) {
        if !head.has_pipe() {
            continue;
        }
        let wants_signals = head.signals.load(Relaxed) != 0;
        if wants_signals {
            signals::scan(head);
            next = next.min(now + SIGNAL_LOOK);
        }
        if !head.is_queued() || head.inherited.load(Relaxed) != 0 {
            continue;
        }
        if wants_signals {
            serve(head);
        }
        if head.ended.load(Relaxed) == 0 {
            // The end of another process is announced by nothing that a module would see.
            if head.has_hung_up_now() {
                serve(head);
            }
            next = next.min(now + HANGUP_LOOK);
        }
        let local_only = head.local_peer().is_some() && !head.is_shared();
        if local_only || head.watched.load(Acquire) != 0 {
            continue;
        }
        if head.used_at.swap(0, Relaxed) != 0 || head.has_sleepers() {
            next = next.min(now + IDLE);
            continue;
        }
        if !watch(head) {
            while serve(head) {}
            next = next.min(now + UNWATCHED_LOOK);
        }
    }
    next
}

/// A watched head is closed.
pub fn unwatch(head: &Head) {
    if head.watched.swap(0, AcqRel) != 0 {
        background::unwatch(head.known_bell());
        head.disarm(Want::EITHER);
    }
}

/// Takes every perimeter: the child's copies are made at a message boundary.
pub fn before_fork() -> bool {
    all(&reclaim::enter()).for_each(Head::look_for_names);
    let held = Box::new((fork::hold_all(), linking::hold()));
    HELD.store(Box::into_raw(held), Release);
    true
}

pub fn after_fork(in_child: bool) {
    let held = HELD.swap(null_mut(), AcqRel);
    if !held.is_null() {
        // SAFETY: from before_fork. The child's copies of the locks name the parent, and are released all the same.
        drop(unsafe { Box::from_raw(held) });
    }
    if !in_child {
        return;
    }
    signals::after_fork();
    for head in all(&reclaim::enter()) {
        head.watched.store(0, Relaxed);
        head.asleep.clear();
        if !head.has_pipe() {
            // The parent's.
            hidden::close(head.own_bell.swap(-1, AcqRel));
        }
        if head.is_queued() && head.has_pipe() {
            discard_queued(head);
            head.inherited.store(1, Relaxed);
            background::alarm(sys::now() + IDLE);
        }
    }
}

/// Hands a head to the background thread until it is closed: it arms the bell like any sleeper. False: the kernel has no room for
/// another watch.
fn watch(head: &'static Head) -> bool {
    head.watched.store(1, Release);
    let handle = head.handle();
    let bell = head.bell();
    head.arm(Want::EITHER);
    if head.handle() != handle {
        // Closed meanwhile, it keeps its pipe for nobody.
        unwatch(head);
        return true;
    }
    let served = background::watch(bell, move || {
        let looks = reclaim::enter();
        let Some(head) = get(handle, &looks) else {
            return background::Keep::No;
        };
        if !head.is_queued() {
            // Watched again once it has queues again.
            if head.watched.swap(0, AcqRel) != 0 {
                head.disarm(Want::EITHER);
            }
            return background::Keep::No;
        }
        head.disarm(Want::EITHER);
        if headwater_channel::bell::take(bell) {
            head.settle();
        }
        while serve(head) {}
        after_call(head);
        head.arm(Want::EITHER);
        if head.has_news() {
            headwater_channel::bell::ring(bell);
        }
        background::Keep::Yes
    });
    if served.is_err() {
        head.disarm(Want::EITHER);
        head.watched.store(0, Release);
        return false;
    }
    if head.has_news() {
        headwater_channel::bell::ring(bell);
    }
    true
}

/// In a child of fork: messages on their way belong to the parent, or they would come twice.
fn discard_queued(head: &Head) {
    let Some(_guard) = enter(head) else { return };
    // SAFETY: inside the perimeter.
    unsafe {
        let Some(local) = head.local() else { return };
        for write in local.down().from_here() {
            write.read().flushq(Flush::All);
            write.flushq(Flush::All);
        }
    }
    head.blocked.store(0, Relaxed);
}
