//! How full a ring is, and who may go on.
//!
//! Two marks with hysteresis: a ring found at its high-water mark takes nothing until the fill is down at the low one, so
//! that a writer and a reader trade many messages for each wake-up. `full` is the producer's word alone.

use super::{HEADER, Ring};
use crate::sync::Ordering;

/// What a frame costs beside its bytes: two words in front, padding, and the zeroed header behind it.
const FRAME_COST: usize = 4 * HEADER as usize;

impl Ring<'_> {
    /// Bytes between head and tail, headers and tombstones included: what hysteresis is measured on.
    #[inline]
    pub fn fill(&self) -> u64 {
        let head = self.state.reader.head.load(Ordering::Acquire);
        let tail = self.state.writer.tail.load(Ordering::Acquire);
        let fill = tail.wrapping_sub(head);
        // `tail` follows the header, so a reader can be ahead of it: that ring is empty, not full.
        if (fill as i64) < 0 {
            return 0;
        }
        fill.min(self.data.capacity())
    }

    /// A writer that found the ring full may go on: the fill is at or below the low-water mark.
    #[inline]
    pub fn below_low_water(&self) -> bool {
        self.fill() <= self.low_water()
    }

    /// The fill at which a sleeping writer is rung: half of the ring until somebody sets it.
    #[inline]
    pub fn low_water(&self) -> u64 {
        match self.state.sleep.low_water.load(Ordering::Relaxed) {
            0 => self.data.capacity() / 2,
            set => set as u64 - 1,
        }
    }

    /// Sets the low-water mark: the one that is given to [`may_send`](Ring::may_send), so that a writer is rung in time.
    pub fn set_low_water(&self, bytes: usize) {
        let set = bytes.min(self.capacity()) as u32 + 1;
        self.state.sleep.low_water.store(set, Ordering::Relaxed);
    }

    /// May a frame of `needed` bytes be pushed? Under the writer lock. No once the fill would exceed `limit`; then not until
    /// the fill is down at `low`. An empty ring takes any frame.
    #[inline]
    pub fn may_send(&self, needed: usize, limit: usize, low: usize) -> bool {
        let w = &self.state.writer;
        let tail = w.tail.load(Ordering::Relaxed);
        // No less than the fill, since the cached head is no younger than the head.
        let used = tail.wrapping_sub(w.cached_head.load(Ordering::Relaxed));
        if w.full.load(Ordering::Relaxed) == 0 && used <= self.most(needed, limit) {
            return true;
        }
        self.look_at_marks(needed, limit, low)
    }

    /// Does a writer have to wait? A hint, without the lock.
    #[inline]
    pub fn is_full_hint(&self, limit: usize, low: usize) -> bool {
        let full = self.state.writer.full.load(Ordering::Relaxed) != 0;
        let fill = self.fill();
        if full {
            fill > low as u64
        } else {
            fill > 0 && fill >= limit as u64
        }
    }

    /// Was the writer refused when it tried last? A hint, without the lock.
    pub fn was_refused(&self) -> bool {
        self.state.writer.full.load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn look_at_marks(&self, needed: usize, limit: usize, low: usize) -> bool {
        let w = &self.state.writer;
        let head = self.state.reader.head.load(Ordering::Acquire);
        w.cached_head.store(head, Ordering::Relaxed);
        let fill = self.fill();
        let still_full = w.full.load(Ordering::Relaxed) != 0 && fill > low as u64;
        let full = fill > 0 && (still_full || fill > self.most(needed, limit));
        w.full.store(full as u32, Ordering::Relaxed);
        !full
    }

    /// The fill beside which a frame of `needed` bytes is within the limit, and has its place.
    #[inline]
    fn most(&self, needed: usize, limit: usize) -> u64 {
        let limit = limit.min(self.capacity() - FRAME_COST);
        limit.saturating_sub(needed) as u64
    }
}
