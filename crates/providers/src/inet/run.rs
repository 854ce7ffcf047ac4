//! A run of large sends: they go to the kernel uncopied, which puts them together as long as they follow each other closely.
//!
//! The kernel's own gathering (TCP_CORK) is on from the third on: what is less than a segment waits for the next send.
//! (Nagle's would let it go with each acknowledgement: measured, a twentieth to a tenth slower between two CPUs.) It goes at
//! the next small message, a flush, a wait, a receive that finds nothing read ahead, or by the flusher once the writer rests;
//! at the latest after the kernel's 200 ms.

use core::time::Duration;

use headwater_host::sys;

use crate::flusher::{self, Went};

/// Large sends in a row that are sent at once.
const ALONE: u64 = 2;
/// Between two of them at most, in nanoseconds.
const PAUSE: u64 = Duration::from_micros(100).as_nanos() as u64;

#[derive(Default)]
pub struct Run {
    sends: u64,
    /// When the last of them went, as long as the kernel does not gather.
    last: u64,
    /// The kernel gathers; the flusher knows.
    gathered: bool,
    /// How many there were when the flusher came by and found more than before, and when that was.
    seen: (u64, u64),
    /// The kernel had no room for the last one: a pause means nothing.
    pub stalled: bool,
}

impl Run {
    #[inline]
    pub fn is_gathered(&self) -> bool {
        self.gathered
    }

    /// Another large send. True if the kernel's gathering has to be switched on before it.
    #[inline]
    pub fn next(&mut self) -> bool {
        let stalled = core::mem::take(&mut self.stalled);
        self.sends += 1;
        !self.gathered && self.begins(stalled)
    }

    fn begins(&mut self, stalled: bool) -> bool {
        let now = sys::now();
        if now.wrapping_sub(self.last) > PAUSE && !stalled {
            self.sends = 1;
        }
        self.last = now;
        if self.sends <= ALONE {
            return false;
        }
        self.gathered = true;
        self.seen = (self.sends, now);
        flusher::hold_lazily();
        true
    }

    /// Something else comes. True if the kernel is to be told.
    #[inline]
    pub fn end(&mut self) -> bool {
        if !self.stalled {
            self.sends = 0;
        }
        let was = core::mem::take(&mut self.gathered);
        if was {
            flusher::drop_lazy_hold();
        }
        was
    }

    /// Asked by the flusher: has the writer paused since it found more than before?
    pub fn rests(&mut self, now: u64) -> bool {
        // There is never anything for which it would have to hurry.
        flusher::note(Went::Busy);
        if self.seen.0 != self.sends {
            self.seen = (self.sends, now);
        }
        let rests = now.saturating_sub(self.seen.1) > PAUSE;
        self.stalled &= !rests;
        rests
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_gathers_from_the_third_on_until_something_else_comes() {
        let mut run = Run::default();
        let began: Vec<bool> = (0..5).map(|_| run.next()).collect();
        assert_eq!(began, [false, false, true, false, false]);
        assert!(run.is_gathered());
        let later = run.seen.1 + 2 * PAUSE;
        // Two more than it knew of.
        let rests = [later, later + PAUSE, later + 2 * PAUSE].map(|now| run.rests(now));
        assert_eq!(rests, [false, false, true]);
        assert!(run.end());
        assert!(!run.end() && !run.next() && !run.is_gathered());
    }
}
