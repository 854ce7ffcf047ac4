//! The waits of a thread, and what the handlers that interrupt them mean for them.

use std::cell::Cell;

use crate::process;
use crate::sync::{Ordering, compiler_fence};

thread_local! {
    /// A handler ran that ends a wait in progress with EINTR.
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
    /// One ran that ends none: the kernel would begin the call anew.
    static BEGINS_ANEW: Cell<bool> = const { Cell::new(false) };
    /// One with SA_RESTART ends it too.
    static RESTARTED_ENDS: Cell<bool> = const { Cell::new(false) };
    /// What waits is a part of a call, and one before it was done.
    static GOES_ON: Cell<bool> = const { Cell::new(false) };
    /// How this thread is kept from a sleep that it is about to begin.
    static NAP: Cell<Option<Nap>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct Nap {
    wake: Wake,
    at: usize,
    /// An address in the stack frame of who sleeps.
    frame: usize,
}

/// Has a sleep end at once, whether it has begun or is about to. Async-signal-safe.
pub type Wake = fn(usize);

/// Clears the marks before the first wait of a call.
#[inline]
pub fn begin_wait() {
    RESTARTED_ENDS.with(|e| e.set(false));
    BEGINS_ANEW.with(|b| b.set(false));
    INTERRUPTED.with(|i| i.set(false));
}

/// As [`begin_wait`], for a call that any handler ends: poll(2) and its like, signal(7).
#[inline]
pub fn begin_wait_for_any() {
    RESTARTED_ENDS.with(|e| e.set(true));
    INTERRUPTED.with(|i| i.set(false));
}

/// The wait that was begun is such a call's after all.
pub fn let_any_end() {
    RESTARTED_ENDS.with(|e| e.set(true));
    BEGINS_ANEW.with(|b| b.set(false));
}

/// Runs `part` of a call that has done a part before if `on`: SA_RESTART begins nothing anew then.
pub fn going_on<T>(on: bool, part: impl FnOnce() -> T) -> T {
    GOES_ON.with(|g| g.set(on));
    let done = part();
    GOES_ON.with(|g| g.set(false));
    done
}

/// Has the call done a part that is not known where it waits?
pub fn goes_on() -> bool {
    GOES_ON.with(Cell::get)
}

/// Right before this thread sleeps in the kernel. False: it was interrupted, and is not to. A handler that interrupts from here on
/// has `wake(at)` called, since the kernel may not have begun yet; one with SA_RESTART as well, for who looks at [`begins_anew`] after
/// this. Until [`end_nap`], `at` stays valid.
// Inlined: the frame is the caller's.
#[inline(always)]
pub fn begin_nap(wake: Wake, at: usize) -> bool {
    let here = 0u8;
    let frame = (&raw const here).addr();
    NAP.with(|n| n.set(Some(Nap { wake, at, frame })));
    compiler_fence(Ordering::SeqCst);
    if interrupted() {
        end_nap();
        return false;
    }
    true
}

#[inline]
pub fn end_nap() {
    NAP.with(|n| n.set(None));
    compiler_fence(Ordering::SeqCst);
}

/// Wakes who sleeps at a bell, if there is one.
pub fn ring(bell: usize) {
    let bell = bell as i32;
    if bell >= 0 {
        headwater_channel::bell::ring(bell);
    }
}

/// Did a handler run since `begin_wait` that ends the call?
#[inline]
pub fn interrupted() -> bool {
    INTERRUPTED.with(|i| i.get())
}

/// Did a handler with SA_RESTART run since `begin_wait`, or the last time that this was asked? The kernel has begun the call anew then:
/// with what its number stands for by now, and whether it may wait there.
#[inline]
pub fn begins_anew() -> bool {
    BEGINS_ANEW.with(|b| b.replace(false))
}

/// A longjmp(3) has left the wait.
#[inline]
pub(super) fn left() {
    GOES_ON.with(|g| g.set(false));
    end_nap();
}

/// The wait that a handler interrupts, put aside for as long as the handler runs: a wait inside the handler has others.
pub(super) struct Aside {
    nap: Option<Nap>,
    restarted_ends: bool,
    goes_on: bool,
    interrupted: bool,
    anew: bool,
}

impl Aside {
    /// Before the handler, which has SA_RESTART if it `restarts`. `stack` is where the thread stands.
    pub fn put(restarts: bool, stack: usize) -> Aside {
        // Does whoever sleeps stand on the stack still? A cancelled thread, or a C++ exception, leaves without a word.
        let nap = NAP.with(Cell::take).filter(|nap| stack < nap.frame);
        let restarted_ends = RESTARTED_ENDS.with(Cell::get);
        let goes_on = GOES_ON.with(|g| g.replace(false));
        let interrupts = !restarts || restarted_ends;
        let aside = Aside {
            nap,
            restarted_ends,
            goes_on,
            interrupted: interrupted() || interrupts,
            anew: BEGINS_ANEW.with(Cell::get) || !interrupts,
        };
        aside.mark();
        aside
    }

    /// After the handler.
    pub fn go_on(self) {
        RESTARTED_ENDS.with(|e| e.set(self.restarted_ends));
        GOES_ON.with(|g| g.set(self.goes_on));
        NAP.with(|n| n.set(self.nap));
        // A wait inside the handler clears them.
        self.mark();
        if let Some(nap) = self.nap
            && !process::is_confined()
        {
            crate::next::keep_errno(|| (nap.wake)(nap.at));
        }
    }

    fn mark(&self) {
        INTERRUPTED.with(|i| i.set(self.interrupted));
        BEGINS_ANEW.with(|b| b.set(self.anew));
    }
}
