//! A value of this process alone behind a lock that needs no care around fork.
//!
//! # Contract
//! The value is reached under the lock only; what runs there takes no other lock and does not come back.

use core::cell::UnsafeCell;

use headwater_channel::lock::{Lock, Taken};
use headwater_host::process;

/// In the child of a fork it is as in the parent, unless another thread was inside that moment: then it is as new, and what
/// it held is lost, not freed, since it may be half changed.
pub struct Private<T> {
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread in at a time.
unsafe impl<T: Send> Sync for Private<T> {}

impl<T: Default> Private<T> {
    pub const fn new(value: T) -> Private<T> {
        Private {
            lock: Lock::new(),
            value: UnsafeCell::new(value),
        }
    }

    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let section = process::lock_free_in_child(&self.lock);
        // SAFETY: under the lock.
        let value = unsafe { &mut *self.value.get() };
        if section.taken == Taken::Stolen {
            core::mem::forget(core::mem::take(value));
        }
        f(value)
    }
}
