//! Who sleeps on a ring, and who rings.
//!
//! A sleeper arms its flag, fences, looks again and only then sleeps; who publishes or consumes fences (releasing the lock
//! does), looks at the other side's flag, clears it and rings. Whatever the order, one of the two sees the other.
//!
//! The ringer clears the flag for all sleepers of that kind, and one bell serves the readers and the writers of an end.
//! So whoever takes a ring *settles*: it arms again for those still asleep and rings its own bell if what they wait for
//! is there. Counts of sleepers are never too low; the death of a sleeper leaves one too high, which costs extra rings.

use super::Ring;
use crate::sync::{AtomicU32, Ordering, fence};

impl Ring<'_> {
    /// Counts and arms a reader that is about to sleep. Look at the ring once more, then sleep.
    pub fn reader_sleeps(&self) {
        arm(
            &self.state.sleep.readers_asleep,
            &self.state.sleep.reader_armed,
        );
    }

    /// The reader is awake again, for whatever reason.
    pub fn reader_wakes(&self) {
        self.state
            .sleep
            .readers_asleep
            .fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts and arms a writer that is about to sleep. Look for room once more, then sleep.
    pub fn writer_sleeps(&self) {
        arm(
            &self.state.sleep.writers_asleep,
            &self.state.sleep.writer_armed,
        );
    }

    /// The writer is awake again, for whatever reason.
    pub fn writer_wakes(&self) {
        self.state
            .sleep
            .writers_asleep
            .fetch_sub(1, Ordering::Relaxed);
    }

    /// For who has published and fenced: must the readers' bell be rung?
    #[inline]
    pub fn wakes_reader(&self) -> bool {
        disarm(&self.state.sleep.reader_armed)
    }

    /// For who has consumed and fenced: must the writers' bell be rung? Only at the low-water mark.
    #[inline]
    pub fn wakes_writer(&self) -> bool {
        let armed = &self.state.sleep.writer_armed;
        armed.load(Ordering::Relaxed) != 0 && self.below_low_water() && disarm(armed)
    }

    /// As [`wakes_writer`](Ring::wakes_writer), whatever is in the ring.
    pub fn wakes_any_writer(&self) -> bool {
        disarm(&self.state.sleep.writer_armed)
    }

    /// For a reading end that took a ring of its bell: must it ring again for readers still asleep?
    pub fn settle_readers(&self) -> bool {
        let s = &self.state.sleep;
        still_asleep(&s.readers_asleep, &s.reader_armed)
            && !self.is_empty()
            && disarm(&s.reader_armed)
    }

    /// For a writing end that took a ring of its bell: must it ring again for writers still asleep?
    pub fn settle_writers(&self) -> bool {
        let s = &self.state.sleep;
        still_asleep(&s.writers_asleep, &s.writer_armed)
            && self.below_low_water()
            && disarm(&s.writer_armed)
    }
}

fn arm(asleep: &AtomicU32, armed: &AtomicU32) {
    asleep.fetch_add(1, Ordering::Relaxed);
    raise(armed);
}

/// Sets a flag, and fences. The exchange takes its place behind all that were raised before; whoever clears it has seen
/// them counted. A plain store could slip in front of a flag that has been cleared already, its sleeper not yet counted.
fn raise(armed: &AtomicU32) {
    armed.swap(1, Ordering::Release);
    fence(Ordering::SeqCst);
}

/// Clears a flag; true for the one who cleared it.
#[inline]
fn disarm(armed: &AtomicU32) -> bool {
    armed.load(Ordering::Relaxed) != 0 && armed.swap(0, Ordering::Acquire) != 0
}

/// Arms again for those still asleep, if any. The fences order this with a sleeper that is just counting itself: it is
/// seen here, or it sees what the ring was about.
fn still_asleep(asleep: &AtomicU32, armed: &AtomicU32) -> bool {
    fence(Ordering::SeqCst);
    if asleep.load(Ordering::Relaxed) == 0 {
        return false;
    }
    raise(armed);
    true
}
