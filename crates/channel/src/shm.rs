//! Which types may live in memory that another process writes.

use crate::sync::{AtomicU32, AtomicU64};

pub use headwater_channel_derive::SharedSafe;

/// A type that may be placed in shared memory.
///
/// # Safety
/// Every bit pattern is a valid value, the layout is fixed (`repr(C)` or a primitive), there are no pointers or
/// references inside, and all mutation goes through atomics. `#[derive(SharedSafe)]` checks each field.
pub unsafe trait SharedSafe {}

// SAFETY: plain integers, any bit pattern is valid.
unsafe impl SharedSafe for u8 {}
// SAFETY: as above.
unsafe impl SharedSafe for u16 {}
// SAFETY: as above.
unsafe impl SharedSafe for u32 {}
// SAFETY: as above.
unsafe impl SharedSafe for u64 {}
// SAFETY: atomics have the layout of their integer and allow mutation by others.
unsafe impl SharedSafe for AtomicU32 {}
// SAFETY: as above.
unsafe impl SharedSafe for AtomicU64 {}
// SAFETY: an array adds nothing to its elements.
unsafe impl<T: SharedSafe, const N: usize> SharedSafe for [T; N] {}
