//! Who sleeps on a ring, and who rings: see [`waiter`](crate::waiter). Who publishes or consumes fences, which releasing the lock does.

use super::Ring;
use crate::waiter::Sleepers;

impl<'a> Ring<'a> {
    pub fn readers(&self) -> &'a Sleepers {
        &self.state.sleep.readers
    }

    pub fn writers(&self) -> &'a Sleepers {
        &self.state.sleep.writers
    }

    /// Counts and arms a reader that is seen to sleep elsewhere, and fences. Look at the ring once more behind that.
    pub fn reader_sleeps(&self) {
        self.readers().arm();
    }

    /// As [`reader_sleeps`](Ring::reader_sleeps), of a writer that waits for room.
    pub fn writer_sleeps(&self) {
        self.writers().arm();
    }

    /// For who has published and fenced: must the readers' bell be rung?
    #[inline]
    pub fn wakes_reader(&self) -> bool {
        self.readers().call()
    }

    /// For who has consumed and fenced: must the writers' bell be rung? Only at the low-water mark.
    #[inline]
    pub fn wakes_writer(&self) -> bool {
        let writers = self.writers();
        writers.are_armed() && self.below_low_water() && writers.call()
    }

    /// As [`wakes_writer`](Ring::wakes_writer), whatever is in the ring.
    pub fn wakes_any_writer(&self) -> bool {
        self.writers().call()
    }

    /// A reader is awake again, for whatever reason: must its own bell be rung, for another one?
    #[must_use]
    pub fn reader_wakes(&self) -> bool {
        self.readers().leave(|| !self.is_empty())
    }

    /// As [`reader_wakes`](Ring::reader_wakes), of a writer.
    #[must_use]
    pub fn writer_wakes(&self) -> bool {
        self.writers().leave(|| self.below_low_water())
    }

    /// For a reading end that took a ring of its bell: must it ring again for readers still asleep?
    pub fn settle_readers(&self) -> bool {
        self.readers().settle(|| !self.is_empty())
    }

    /// For a writing end that took a ring of its bell: must it ring again for writers still asleep?
    pub fn settle_writers(&self) -> bool {
        self.writers().settle(|| self.below_low_water())
    }
}
