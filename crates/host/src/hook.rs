//! Functions that one part gives another while the program runs, to be called later.

use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::ptr::null_mut;

use crate::sync::{AtomicPtr, Ordering};

/// A place for such a function, which begins without one. `F` is a pointer to a function of Rust, or another of which none is null.
pub struct Hook<F> {
    at: AtomicPtr<()>,
    of: PhantomData<F>,
}

impl<F: Copy> Hook<F> {
    pub const fn new() -> Hook<F> {
        const {
            assert!(
                size_of::<F>() == size_of::<usize>()
                    && size_of::<Option<F>>() == size_of::<usize>()
            );
            // SAFETY: as large as that; what is not all written would not compile.
            assert!(unsafe { transmute_copy::<Option<F>, usize>(&None) } == 0);
        }
        Hook {
            at: AtomicPtr::new(null_mut()),
            of: PhantomData,
        }
    }

    #[inline(always)]
    fn address(function: F) -> *mut () {
        // SAFETY: as large as that, which `new` has seen to.
        unsafe { transmute_copy(&function) }
    }

    /// What was done before is there for whoever finds it.
    #[inline(always)]
    pub fn set(&self, function: F) {
        self.at.store(Hook::address(function), Ordering::Release);
    }

    /// The same, unless there is one.
    #[inline(always)]
    pub fn set_first(&self, function: F) {
        let (new, order) = (Hook::address(function), Ordering::AcqRel);
        let _ = self
            .at
            .compare_exchange(null_mut(), new, order, Ordering::Relaxed);
    }

    pub fn clear(&self) {
        self.at.store(null_mut(), Ordering::Release);
    }

    #[inline(always)]
    pub fn get(&self) -> Option<F> {
        let at = self.at.load(Ordering::Acquire);
        // SAFETY: null, which is `None`, as `new` has seen to, or the address of an `F`.
        unsafe { transmute_copy::<*mut (), Option<F>>(&at) }
    }

    pub fn is(&self, function: F) -> bool {
        self.at.load(Ordering::Acquire) == Hook::address(function)
    }

    #[inline(always)]
    pub fn is_set(&self) -> bool {
        !self.at.load(Ordering::Acquire).is_null()
    }
}

impl<F: Copy> Default for Hook<F> {
    fn default() -> Hook<F> {
        Hook::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_function_stays_until_another_is_set() {
        let hook: Hook<fn() -> u64> = Hook::new();
        assert!(hook.get().is_none() && !hook.is_set());
        hook.set_first(|| 1);
        hook.set_first(|| 2);
        assert_eq!(hook.get().map(|f| f()), Some(1));
        fn three() -> u64 {
            3
        }
        hook.set(three);
        assert_eq!(hook.get().map(|f| f()), Some(3));
        assert!(hook.is(three) && !hook.is(|| 4));
        hook.clear();
        assert!(hook.get().is_none());
    }
}
