//! The process's one stack: made when it is first needed, not shared with the child of a fork, and brought to an end with the
//! process.

use core::cell::Cell;
use core::time::Duration;
use std::sync::Arc;

use headwater_channel::lock::Lock;
use headwater_host::lifecycle::{self, Part};
use headwater_host::sync::{AtomicBool, AtomicPtr, Ordering};
use headwater_host::worker::{self, Client};
use headwater_host::{process, sys};
use headwater_sctp::Endpoint;

use super::{Served, Stack};
use crate::{Signal, left};

/// How long the end of a process waits for what is still to be sent, in nanoseconds: for some retransmissions; and for peers to
/// confirm the end.
const LAST: u64 = Duration::from_secs(5).as_nanos() as u64;
const FAREWELL: u64 = Duration::from_millis(1500).as_nanos() as u64;

static STACK: AtomicPtr<Stack> = AtomicPtr::new(core::ptr::null_mut());
static MAKING: Lock = Lock::new();

thread_local! {
    /// The child of this thread's next fork goes on with the stack.
    static GOES_ON: Cell<bool> = const { Cell::new(false) };
}

/// The process's own, made when it is first needed. Errors: those of socket(2), EMFILE ...
pub fn current() -> sys::Result<&'static Stack> {
    if let Some(stack) = existing() {
        return Ok(stack);
    }
    look_after_forks();
    let _section = process::lock(&MAKING);
    if let Some(stack) = existing() {
        return Ok(stack);
    }
    let stack = Box::leak(Box::new(Stack::new()?));
    STACK.store(stack, Ordering::Release);
    if !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: a plain function of a library that is never unloaded.
        unsafe { libc::atexit(at_exit) };
    }
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
    // Else that was done, and the list is shut, when others ask before the same fork.
    if !GOES_ON.get() {
        flush_holders();
    }
}

fn flush_holders() {
    if let Some(stack) = existing() {
        stack
            .take_holders()
            .iter()
            .for_each(|served| served.flush());
    }
}

static WATCHED: AtomicBool = AtomicBool::new(false);

/// Somebody calls [`exiting`].
pub fn is_watched() {
    WATCHED.store(true, Ordering::Relaxed);
}

/// Control of this thread goes to a frame at `target` for good, by siglongjmp(3): what calls below it hold is given back.
pub fn unwound_to(target: usize) {
    left::unwound_to(target, |signal| {
        signal.abandon_led();
        if let Some(stack) = existing() {
            stack.leader_left();
        }
    });
}

/// Has forks hold the stack.
pub fn look_after_forks() {
    lifecycle::add(Part::SctpStack, before_fork, after_fork);
}

fn before_fork() -> bool {
    core::mem::forget(process::lock(&MAKING));
    flush_holders();
    if let Some(stack) = copied() {
        stack.shut();
    }
    true
}

/// Of this thread's next fork the child goes on with the stack, instead of beginning without one. The parent has given it up when
/// fork returns; if it fails, it is to be taken back.
pub fn go_on_in_child(on: bool) {
    GOES_ON.set(on);
}

fn after_fork(in_child: bool) {
    let goes_on = GOES_ON.get();
    if let Some(stack) = copied() {
        if !in_child && goes_on && stack.is_ours() {
            // Not a packet more is taken here.
            stack.give_up();
        }
        stack.reopen();
        // One that goes on is still the parent's, until the child takes it over. Else nobody may use the child's copies; a stack of
        // its own is made when it asks for one.
        if in_child && !goes_on {
            STACK.store(core::ptr::null_mut(), Ordering::Release);
            stack.forked();
        }
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
    /// Around a fork nobody is inside, as far as the child will use what is there.
    fn shut(&self) {
        let whole = GOES_ON.get();
        if whole {
            self.pumping.shut();
        }
        self.table.shut();
        self.registry.shut();
        if whole {
            // The table is shut, and stays as it is.
            self.each_served(|served| served.shut());
            self.timers.shut();
            self.holding.shut();
            self.buffers.shut();
        }
    }

    fn reopen(&self) {
        if GOES_ON.get() {
            self.buffers.reopen();
            self.holding.reopen();
            self.timers.reopen();
            self.each_served(|served| served.reopen());
            self.pumping.reopen();
        }
        self.registry.reopen();
        self.table.reopen();
    }

    /// Of a table that is shut.
    fn each_served(&self, mut what: impl FnMut(&Served)) {
        // SAFETY: the caller has shut the table, so that nobody is inside.
        let table = unsafe { self.table.inside() };
        table.values().for_each(|place| what(&place.served));
    }

    /// The stack is this process's from now on, whose fork it was part of, or which had given it up.
    pub fn take_over(&'static self) {
        let before = self.owner.swap(process::owner().bits(), Ordering::SeqCst);
        if before == 0 {
            worker::call(Client::Sctp);
        } else {
            self.leading.begin_anew();
            self.background.begin_anew();
        }
    }

    /// Another process goes on with the stack: this one does not touch it any more.
    pub fn give_up(&self) {
        self.owner.store(0, Ordering::SeqCst);
        worker::call(Client::Sctp);
    }

    /// The process ends: all associations are shut down, as far as that is done soon.
    fn finish(&self) {
        let now = sys::now();
        for served in self.all() {
            served.end_all(Endpoint::shutdown);
        }
        let is_over = || self.all().iter().all(|served| served.is_idle());
        self.await_end(now + FAREWELL, is_over);
        let is_delivered = || self.all().iter().all(|served| served.has_delivered());
        self.await_end(now + LAST, is_delivered);
        for served in self.all() {
            served.end_all(|engine, now, id| engine.abort(now, id, b""));
        }
    }

    fn await_end(&self, until: u64, is_over: impl Fn() -> bool) {
        let signal = Arc::new(Signal::default());
        while self.wait(&signal, until, &[], &is_over) == Err(libc::EINTR) {}
    }

    fn forked(&self) {
        for link in &self.links {
            link.forked();
        }
        self.registry.forked();
        for place in self.table.enter().values() {
            place.reservation.forked();
        }
        self.leading.forked();
        self.background.forked();
        for _ in 0..self.holds.load(Ordering::Relaxed) {
            headwater_providers::flusher::drop_hold();
        }
    }
}
