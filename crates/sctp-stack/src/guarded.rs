//! A value behind a lock of the house: who is inside has the program's signal handlers put off, so that a handler may make
//! calls of ours too. Whoever comes again and again lets those go first who wait.

use headwater_host::guarded;
use headwater_host::process::{self, Brief};
use headwater_host::sync::{AtomicU32, Ordering};
use headwater_host::sys;

pub use headwater_host::guarded::Entered;

/// Yields to those who wait, at most.
const POLITE: u32 = 8;

#[derive(Default)]
pub struct Guarded<T> {
    inner: guarded::Guarded<T>,
    /// Threads that wait to enter: the lock itself knows no order.
    waiting: AtomicU32,
}

impl<T> Guarded<T> {
    pub const fn new(value: T) -> Guarded<T> {
        Guarded {
            inner: guarded::Guarded::new(value),
            waiting: AtomicU32::new(0),
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
        let section = process::lock(self.inner.lock());
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: of this lock.
        unsafe { self.inner.by(section) }
    }

    /// Nothing if somebody is inside.
    #[inline]
    pub fn try_enter(&self) -> Option<Entered<'_, T>> {
        let section = process::try_lock(self.inner.lock())?;
        // SAFETY: of this lock.
        Some(unsafe { self.inner.by(section) })
    }

    /// Nothing if somebody is inside, or waits. What is done inside must be of no interest to anybody who would have to be
    /// told of it: leaving is not a fence.
    #[inline]
    pub fn try_enter_briefly(&self) -> Option<Entered<'_, T, Brief<'_>>> {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let section = process::try_lock_briefly(self.inner.lock())?;
        // SAFETY: of this lock.
        Some(unsafe { self.inner.by(section) })
    }

    /// Keeps everybody out until [`Guarded::reopen`]: around a fork.
    pub fn shut(&self) {
        core::mem::forget(process::lock(self.inner.lock()));
    }

    /// What is inside, while it is shut.
    ///
    /// # Safety
    /// The caller has shut it.
    pub unsafe fn inside(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { self.inner.alone() }
    }

    /// Puts something else inside, whoever seems to be there: in the child of a fork. What was there is not dropped.
    ///
    /// # Safety
    /// No other thread uses it.
    pub unsafe fn begin_anew(&self, value: T) {
        // SAFETY: the caller's promise: nobody else is inside.
        let mut inside = unsafe { self.inner.by(()) };
        core::mem::forget(core::mem::replace(&mut *inside, value));
        self.waiting.store(0, Ordering::Relaxed);
        self.inner.lock().unlock();
    }

    pub fn reopen(&self) {
        process::let_go_after_fork(self.inner.lock());
    }
}
