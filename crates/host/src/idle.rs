//! What is done when a thread is about to sleep in the kernel, so that a process that only waits keeps nothing for peers that
//! are gone.

use core::mem::transmute;
use core::ptr::null_mut;

use crate::sync::{AtomicPtr, Ordering};

static WORK: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// `work` is called with no lock held, often, and does nothing most of the time.
pub fn register(work: fn()) {
    WORK.store(work as *mut (), Ordering::Release);
}

#[inline]
pub fn about_to_sleep() {
    let work = WORK.load(Ordering::Acquire);
    if !work.is_null() {
        // SAFETY: `register` stored it.
        unsafe { transmute::<*mut (), fn()>(work)() };
    }
}
