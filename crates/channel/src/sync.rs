//! Atomics and fences, swapped to loom's under `--cfg loom`. Nothing else in the workspace may name
//! `core::sync::atomic` for memory that is shared with a peer.

#[cfg(not(loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicIsize, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    compiler_fence, fence,
};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Of a word that several change.
pub trait Exchange<T> {
    /// Changes it, unless it is another by now than was `seen`. Who sees the change sees what was written before.
    fn exchange(&self, seen: T, to: T) -> bool;

    /// Writes only what changes: others keep their cache line, and a child of fork the page that it shares.
    fn change_to(&self, to: T);
}

macro_rules! words {
    ($($atomic:ident $value:ident,)*) => {$(
        impl Exchange<$value> for $atomic {
            #[inline(always)]
            fn exchange(&self, seen: $value, to: $value) -> bool {
                self.compare_exchange(seen, to, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            }

            #[inline(always)]
            fn change_to(&self, to: $value) {
                if self.load(Ordering::Relaxed) != to {
                    self.store(to, Ordering::Relaxed);
                }
            }
        }
    )*};
}

words! { AtomicU32 u32, AtomicU64 u64, }
#[cfg(not(loom))]
words! { AtomicI32 i32, AtomicUsize usize, }

/// One turn of a busy-wait loop.
#[inline(always)]
pub fn relax() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
