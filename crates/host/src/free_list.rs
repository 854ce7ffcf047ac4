//! Entries of a table that are free, without a lock and without memory of its own: each leads to the next.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// {changes: 32, index + 1 of the first: 32}. It may live in shared memory.
#[repr(transparent)]
pub struct FreeList(AtomicU64);

impl FreeList {
    #[expect(clippy::new_without_default, reason = "it belongs to a table")]
    pub const fn new() -> FreeList {
        FreeList(AtomicU64::new(0))
    }

    /// Takes an entry; `link` gives the word of an entry that leads to the next. `None`: there is none.
    pub fn take<'a>(&self, link: impl Fn(u32) -> Option<&'a AtomicU32>) -> Option<u32> {
        loop {
            let free = self.0.load(Ordering::Acquire);
            let index = (free as u32).checked_sub(1)?;
            let next = link(index)?.load(Ordering::Relaxed);
            if self.change(free, next) {
                return Some(index);
            }
        }
    }

    /// Gives an entry back, whose word `link` is.
    #[inline]
    pub fn give(&self, index: u32, link: &AtomicU32) {
        loop {
            let free = self.0.load(Ordering::Acquire);
            link.store(free as u32, Ordering::Relaxed);
            if self.change(free, index + 1) {
                return;
            }
        }
    }

    #[inline(always)]
    fn change(&self, seen: u64, first: u32) -> bool {
        let new = (seen >> 32).wrapping_add(1) << 32 | u64::from(first);
        self.0
            .compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}
