//! Which types may live in memory that another process writes.

use crate::sync::{AtomicU32, AtomicU64};

pub use headwater_channel_derive::SharedSafe;

/// A type that may be placed in shared memory.
///
/// # Safety
/// Every bit pattern is a valid value, the layout is fixed (`repr(C)` or a primitive), there are no pointers or
/// references inside, and all mutation goes through atomics. `#[derive(SharedSafe)]` checks each field:
///
/// ```
/// use headwater_channel::shm::SharedSafe;
/// use headwater_channel::sync::AtomicU64;
///
/// #[derive(SharedSafe)]
/// #[repr(C)]
/// struct Counter {
///     hits: AtomicU64,
///     history: [AtomicU64; 7],
/// }
/// ```
///
/// An address means nothing to another process:
///
/// ```compile_fail,E0277
/// use headwater_channel::shm::SharedSafe;
///
/// #[derive(SharedSafe)]
/// #[repr(C)]
/// struct Linked {
///     next: *mut u8,
/// }
/// ```
///
/// Not every byte is a `bool`:
///
/// ```compile_fail,E0277
/// # use headwater_channel::shm::SharedSafe;
/// #[derive(SharedSafe)]
/// #[repr(C)]
/// struct Switch {
///     on: bool,
/// }
/// ```
///
/// Without `repr(C)` two builds need not agree on the layout, and not every number is a variant of an enum:
///
/// ```compile_fail
/// # use headwater_channel::shm::SharedSafe;
/// #[derive(SharedSafe)]
/// struct Loose {
///     a: u8,
///     b: u32,
/// }
/// ```
///
/// ```compile_fail
/// # use headwater_channel::shm::SharedSafe;
/// #[derive(SharedSafe)]
/// #[repr(C)]
/// enum State {
///     Open,
///     Closed,
/// }
/// ```
pub unsafe trait SharedSafe {}

// SAFETY: a plain integer, any bit pattern is valid.
unsafe impl SharedSafe for u8 {}
// SAFETY: a plain integer, any bit pattern is valid.
unsafe impl SharedSafe for u16 {}
// SAFETY: a plain integer, any bit pattern is valid.
unsafe impl SharedSafe for u32 {}
// SAFETY: a plain integer, any bit pattern is valid.
unsafe impl SharedSafe for u64 {}
// SAFETY: it has the layout of its integer and allows mutation by others.
unsafe impl SharedSafe for AtomicU32 {}
// SAFETY: it has the layout of its integer and allows mutation by others.
unsafe impl SharedSafe for AtomicU64 {}
// SAFETY: an array adds nothing to its elements.
unsafe impl<T: SharedSafe, const N: usize> SharedSafe for [T; N] {}
