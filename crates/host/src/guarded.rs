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

/// Inside, by a section of its lock.
pub struct Entered<'a, T, S = Section<'a>> {
    value: &'a mut T,
    _section: S,
}

impl<T: Default> Default for Guarded<T> {
    fn default() -> Guarded<T> {
        Guarded::new(T::default())
    }
}

impl<T> Guarded<T> {
    pub const fn new(value: T) -> Guarded<T> {
        Guarded {
            lock: Lock::new(),
            value: UnsafeCell::new(value),
        }
    }

    pub fn enter(&self) -> Entered<'_, T> {
        // SAFETY: the section is of this lock.
        unsafe { self.by(process::lock_own(&self.lock)) }
    }

    /// For who enters, or keeps others out, in a way of its own.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// # Safety
    /// The section has [`lock`](Guarded::lock), and keeps it as long as it lives.
    #[inline(always)]
    pub unsafe fn by<S>(&self, _section: S) -> Entered<'_, T, S> {
        // SAFETY: the caller's promise.
        let value = unsafe { &mut *self.value.get() };
        Entered { value, _section }
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
    /// No other thread is there, in the child of a fork; or the caller keeps them out.
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
        // SAFETY: the section is of this lock.
        let mut value = unsafe { self.0.by(section) };
        if lost {
            core::mem::forget(core::mem::take(&mut *value));
        }
        f(&mut value)
    }
}

impl<T, S> Deref for Entered<'_, T, S> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T, S> DerefMut for Entered<'_, T, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}
