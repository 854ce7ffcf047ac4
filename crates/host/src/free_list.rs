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
        let first = |free: u64| (free as u32).checked_sub(1);
        let free = self.change(|free| Some(link(first(free)?)?.load(Ordering::Relaxed)));
        first(free?)
    }

    /// Gives an entry back, whose word `link` is.
    #[inline]
    pub fn give(&self, index: u32, link: &AtomicU32) {
        self.change(|free| {
            link.store(free as u32, Ordering::Relaxed);
            Some(index + 1)
        });
    }

    /// Has another entry be the first. Gives the word before that.
    #[inline(always)]
    fn change(&self, first: impl Fn(u64) -> Option<u32>) -> Option<u64> {
        let new = |seen: u64| Some((seen >> 32).wrapping_add(1) << 32 | u64::from(first(seen)?));
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, new)
            .ok()
    }
}
