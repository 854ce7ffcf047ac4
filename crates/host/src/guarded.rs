//! A value of this process behind a lock of its sections, which signal handlers do not interrupt and fork can carry over.
//!
//! # Contract
//! The value is reached through [`Entered`], which holds the lock. Nothing that runs meanwhile enters it again, or a perimeter.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use headwater_channel::lock::{Lock, Taken};

use crate::process::{self, Section};

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
        self.by(process::lock_own(&self.lock))
    }

    /// `section` is that of our lock.
    fn by<'a>(&'a self, section: Section<'a>) -> Entered<'a, T> {
        Entered {
            // SAFETY: the section is ours.
            value: unsafe { &mut *self.value.get() },
            _section: section,
        }
    }

    /// Keeps everybody out while the process is copied, until [`let_in`](Guarded::let_in).
    pub fn keep_out(&self) {
        process::hold_over_fork(&self.lock);
    }

    /// Once after each [`keep_out`](Guarded::keep_out), in both processes.
    pub fn let_in(&self) {
        process::let_go_after_fork(&self.lock);
    }

    /// The value, without the lock.
    ///
    /// # Safety
    /// No other thread is there: in the child of a fork.
    pub unsafe fn alone(&self) -> &T {
        // SAFETY: nobody changes it, as the caller says.
        unsafe { &*self.value.get() }
    }
}

/// A value that needs no care around fork. In the child it is as in the parent, unless another thread was inside that moment: then it
/// is as new, and what it held is lost, not freed, since it may be half changed.
pub struct Private<T>(Guarded<T>);

impl<T: Default> Private<T> {
    pub const fn new(value: T) -> Private<T> {
        Private(Guarded::new(value))
    }

    /// What runs inside takes no other lock.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let section = process::lock_free_in_child(&self.0.lock);
        let lost = section.taken == Taken::Stolen;
        let mut value = self.0.by(section);
        if lost {
            core::mem::forget(core::mem::take(&mut *value));
        }
        f(&mut value)
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
