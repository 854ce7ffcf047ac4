//! What is done when a thread is about to sleep in the kernel, so that a process that only waits keeps nothing for peers that
//! are gone.

use crate::hook::Hook;

static WORK: Hook<fn()> = Hook::new();

/// `work` is called with no lock held, often, and does nothing most of the time.
pub fn register(work: fn()) {
    WORK.set(work);
}

#[inline]
pub fn about_to_sleep() {
    if let Some(work) = WORK.get() {
        work();
    }
}
