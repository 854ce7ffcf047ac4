//! The process's one stack: made when it is first needed, not shared with the child of a fork, and brought to an end with the
//! process.

use std::sync::Arc;

use headwater_channel::lock::Lock;
use headwater_host::sync::{AtomicBool, AtomicPtr, Ordering};
use headwater_host::{process, sys};

use super::Stack;
use crate::sctp::signal::Signal;

/// How long the end of a process waits for what is still to be sent, in nanoseconds: longer than peers delay a SACK.
const LAST: u64 = 600_000_000;

static STACK: AtomicPtr<Stack> = AtomicPtr::new(core::ptr::null_mut());
static MAKING: Lock = Lock::new();

/// The process's own, made when it is first needed. Errors: those of socket(2), EMFILE ...
pub fn current() -> sys::Result<&'static Stack> {
    if let Some(stack) = existing() {
        return Ok(stack);
    }
    let _section = process::lock(&MAKING);
    if let Some(stack) = existing() {
        return Ok(stack);
    }
    let stack = Box::leak(Box::new(Stack::new()?));
    STACK.store(stack, Ordering::Release);
    watch_fork_and_exit();
    Ok(stack)
}

/// The process's own, if it has one. A child of a fork has none.
pub fn existing() -> Option<&'static Stack> {
    copied().filter(|stack| stack.is_ours())
}

/// Perhaps that of the process that we are a copy of.
fn copied() -> Option<&'static Stack> {
    // SAFETY: stacks are never freed.
    unsafe { STACK.load(Ordering::Acquire).as_ref() }
}

/// Sends what is held back and due: asked by the flusher.
pub fn flush_due(now: u64) {
    if let Some(stack) = existing() {
        for served in stack.take_holders() {
            if served.flush_if_due(now) {
                stack.list_holder(served);
            }
        }
    }
}

/// Sends everything that is held back: before a fork, exec or exit.
pub fn flush_all() {
    if let Some(stack) = existing() {
        stack
            .take_holders()
            .iter()
            .for_each(|served| served.flush());
    }
}

fn watch_fork_and_exit() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::Relaxed) {
        // SAFETY: plain functions of a library that is never unloaded.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
            libc::atexit(at_exit);
        }
    }
}

unsafe extern "C" fn before_fork() {
    core::mem::forget(process::lock(&MAKING));
    flush_all();
    if let Some(stack) = copied() {
        stack.table.shut();
        stack.registry.shut();
    }
}

unsafe extern "C" fn in_parent() {
    if let Some(stack) = copied() {
        stack.registry.reopen();
        stack.table.reopen();
    }
    MAKING.unlock();
    process::end_section();
}

/// Nobody else may use the child's copies; a stack of its own is made when it asks for one.
unsafe extern "C" fn in_child() {
    if let Some(stack) = copied() {
        stack.registry.reopen();
        stack.table.reopen();
        STACK.store(core::ptr::null_mut(), Ordering::Release);
        stack.forked();
    }
    MAKING.unlock();
    process::end_section();
}

extern "C" fn at_exit() {
    let _ = std::panic::catch_unwind(exiting);
}

/// The process ends, by exit(3) or without it.
pub fn exiting() {
    if let Some(stack) = existing() {
        stack.finish();
    }
}

impl Stack {
    /// The process ends: all associations are shut down, as far as that is done soon.
    fn finish(&self) {
        let until = sys::now() + LAST;
        for served in self.all() {
            served.shut_down_all();
        }
        let signal = Arc::new(Signal::default());
        let is_over = || self.all().iter().all(|served| served.is_idle());
        while self.wait(&signal, until, is_over) == Err(libc::EINTR) {}
        for served in self.all() {
            served.abort_all();
        }
    }

    fn forked(&self) {
        for link in &self.links {
            link.forked();
        }
        self.registry.forked();
        for place in self.table.enter().ports.values() {
            place.reservation.forked();
        }
        self.leading.forked();
        self.background.forked();
        for _ in 0..self.holds.load(Ordering::Relaxed) {
            crate::flusher::drop_hold();
        }
    }
}
