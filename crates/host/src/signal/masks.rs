//! The mask of a wait, as ppoll(2) and its like take one.

use super::waits::begin_wait_for_any;
use crate::sync::{Ordering, compiler_fence};
use crate::{next, postponed, process, sys};

/// Runs `wait`, a call that sleeps with `mask` any number of times. The kernel has the mask in force from the call's beginning to its end:
/// what it keeps away comes behind the last sleep, not between two.
#[inline]
pub fn under<T>(mask: Option<&libc::sigset_t>, wait: impl FnOnce() -> T) -> T {
    let kept = match mask.map_or(0, sys::signals) {
        0 => 0,
        _ if process::is_confined() => 0,
        kept => block(kept),
    };
    let done = wait();
    if kept != 0 {
        // A handler runs now, and may change it.
        next::keep_errno(|| postponed::unblock(kept));
    }
    done
}

/// Blocks these; those of them that were not blocked before.
#[cold]
fn block(signals: u64) -> u64 {
    let before = sys::mask_signals(libc::SIG_BLOCK, signals);
    compiler_fence(Ordering::SeqCst);
    // Those that came before have interrupted nothing.
    begin_wait_for_any();
    signals & !before
}
