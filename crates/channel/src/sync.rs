//! Atomics and fences, swapped to loom's under `--cfg loom`. Nothing else in the workspace may name
//! `core::sync::atomic` for memory that is shared with a peer.

#[cfg(not(loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicIsize, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    compiler_fence, fence,
};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// One turn of a busy-wait loop.
#[inline(always)]
pub fn relax() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
