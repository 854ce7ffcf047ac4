//! A value behind a lock of the house: who is inside has the program's signal handlers put off, so that a handler may make
//! calls of ours too.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use headwater_channel::lock::Lock;
use headwater_host::process::{self, Brief, Section};
use headwater_host::sync::{AtomicU32, Ordering};
use headwater_host::sys;

/// Yields to those who wait, at most.
const POLITE: u32 = 8;

pub struct Guarded<T> {
    lock: Lock,
    /// Threads that wait to enter. Whoever comes again and again lets them go first: the lock itself knows no order.
    waiting: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached under the lock.
unsafe impl<T: Send> Sync for Guarded<T> {}
// SAFETY: it owns what it guards.
unsafe impl<T: Send> Send for Guarded<T> {}

impl<T: Default> Default for Guarded<T> {
    fn default() -> Guarded<T> {
        Guarded::new(T::default())
    }
}

/// Inside.
pub struct Entered<'a, T, S = Section<'a>> {
    value: &'a mut T,
    _section: S,
}

impl<T> Guarded<T> {
    pub const fn new(value: T) -> Guarded<T> {
        Guarded {
            lock: Lock::new(),
            waiting: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub fn enter(&self) -> Entered<'_, T> {
        if self.waiting.load(Ordering::Relaxed) == 0
            && let Some(entered) = self.try_enter()
        {
            return entered;
        }
        self.enter_after_others()
    }

    #[cold]
    fn enter_after_others(&self) -> Entered<'_, T> {
        for _ in 0..POLITE {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                break;
            }
            sys::sched_yield();
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let section = process::lock(&self.lock);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: of this lock.
        unsafe { self.by(section) }
    }

    /// # Safety
    /// The section has the lock, and keeps it as long as it lives.
    #[inline(always)]
    unsafe fn by<S>(&self, _section: S) -> Entered<'_, T, S> {
        // SAFETY: the caller's promise.
        let value = unsafe { &mut *self.value.get() };
        Entered { value, _section }
    }

    /// Nothing if somebody is inside.
    #[inline]
    pub fn try_enter(&self) -> Option<Entered<'_, T>> {
        let section = process::try_lock(&self.lock)?;
        // SAFETY: of this lock.
        Some(unsafe { self.by(section) })
    }

    /// Nothing if somebody is inside, or waits. What is done inside must be of no interest to anybody who would have to be
    /// told of it: leaving is not a fence.
    #[inline]
    pub fn try_enter_briefly(&self) -> Option<Entered<'_, T, Brief<'_>>> {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let section = process::try_lock_briefly(&self.lock)?;
        // SAFETY: of this lock.
        Some(unsafe { self.by(section) })
    }

    /// Keeps everybody out until [`Guarded::reopen`]: around a fork.
    pub fn shut(&self) {
        core::mem::forget(process::lock(&self.lock));
    }

    /// What is inside, while it is shut.
    ///
    /// # Safety
    /// The caller has shut it.
    pub unsafe fn inside(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.value.get() }
    }

    /// Puts something else inside, whoever seems to be there: in the child of a fork. What was there is not dropped.
    ///
    /// # Safety
    /// No other thread uses it.
    pub unsafe fn begin_anew(&self, value: T) {
        // SAFETY: the caller's promise.
        unsafe { self.value.get().write(value) };
        self.waiting.store(0, Ordering::Relaxed);
        self.lock.unlock();
    }

    pub fn reopen(&self) {
        self.lock.unlock();
        process::end_section();
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
