//! A value behind a lock of the host's sections, which signal handlers do not interrupt and fork can carry over.
//!
//! # Contract
//! The value is reached through [`Entered`] only, which holds the lock. Nothing that runs meanwhile enters a perimeter.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use headwater_channel::lock::Lock;
use headwater_host::process::{self, Section};

pub struct Guarded<T> {
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread in at a time.
unsafe impl<T: Send> Sync for Guarded<T> {}

pub struct Entered<'a, T> {
    value: &'a mut T,
    _section: Section<'a>,
}

impl<T> Guarded<T> {
    pub const fn new(value: T) -> Guarded<T> {
        Guarded {
            lock: Lock::new(),
            value: UnsafeCell::new(value),
        }
    }

    pub fn enter(&self) -> Entered<'_, T> {
        let section = process::lock(&self.lock);
        Entered {
            // SAFETY: the section is ours.
            value: unsafe { &mut *self.value.get() },
            _section: section,
        }
    }

    /// Keeps everybody out while the process is copied, until [`let_in`](Guarded::let_in).
    pub fn keep_out(&self) {
        core::mem::forget(self.enter());
    }

    /// Once after each [`keep_out`](Guarded::keep_out), in both processes.
    pub fn let_in(&self) {
        self.lock.unlock();
        process::end_section();
    }
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for Entered<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}
