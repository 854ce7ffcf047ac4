//! Signals that wait until the thread has left its sections: kept pending by the kernel, and blocked.

use core::cell::Cell;

use crate::sys;

thread_local! {
    /// As the kernel's mask has them.
    static POSTPONED: Cell<u64> = const { Cell::new(0) };
}

/// One more waits. Gives all that do, for the mask.
pub(crate) fn add(signal: i32) -> u64 {
    let all = POSTPONED.get() | 1 << (signal - 1);
    POSTPONED.set(all);
    all
}

/// At the end of the outermost section: what was put off comes now.
#[inline]
pub(crate) fn deliver() {
    if POSTPONED.get() != 0 {
        deliver_slow();
    }
}

#[cold]
fn deliver_slow() {
    unblock(POSTPONED.take());
}

pub(crate) fn unblock(set: u64) {
    sys::mask_signals(libc::SIG_UNBLOCK, set);
}
