//! A run of large sends: they go to the kernel uncopied, which puts them together as long as they follow each other closely.
//!
//! The kernel's own gathering (TCP_CORK) is on from the third on: what is less than a segment waits for the next send.
//! (Nagle's would let it go with each acknowledgement: measured, a twentieth to a tenth slower between two CPUs.) It goes at
//! the next small message, a receive, a flush, a wait, or by the flusher once the writer rests; at the latest after the
//! kernel's 200 ms.

use core::time::Duration;

use headwater_host::sys;

use crate::flusher::{self, Went};

/// Large sends in a row that are sent at once.
const ALONE: u64 = 2;
/// Between two of them at most, in nanoseconds.
const PAUSE: u64 = Duration::from_micros(100).as_nanos() as u64;
/// For how long the writer has to rest before the flusher sends what is kept back, and before it ends the run: on a shared
/// CPU it rests whenever its reader is at work.
const REST: u64 = Duration::from_micros(100).as_nanos() as u64;
const LONG_REST: u64 = Duration::from_millis(5).as_nanos() as u64;

#[derive(Default)]
pub struct Run {
    sends: u64,
    /// When the last of them went, as long as the kernel does not gather.
    last: u64,
    /// The kernel gathers; the flusher knows.
    gathered: bool,
    /// How many there were when the flusher came by and found more than before, and when that was.
    seen: (u64, u64),
    /// The flusher has sent all up to this one.
    pushed: u64,
    /// The kernel had no room for the last one: a pause means nothing.
    pub stalled: bool,
}

/// What the flusher has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    Nothing,
    Push,
    End,
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
        (self.seen, self.pushed) = ((self.sends, now), 0);
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

    /// Asked by the flusher.
    pub fn due(&mut self, now: u64) -> Due {
        // There is never anything for which it would have to hurry.
        flusher::note(Went::Busy);
        if self.seen.0 != self.sends {
            self.seen = (self.sends, now);
            return Due::Nothing;
        }
        let rested = now.saturating_sub(self.seen.1);
        if rested >= LONG_REST {
            return Due::End;
        }
        if rested < REST || self.pushed == self.sends {
            return Due::Nothing;
        }
        self.pushed = self.sends;
        Due::Push
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
        let begun = run.seen.1;
        // Two more than it knows of.
        assert_eq!(run.due(begun), Due::Nothing);
        let due = [0, REST, 2 * REST, LONG_REST].map(|rested| run.due(begun + rested));
        assert_eq!(due, [Due::Nothing, Due::Push, Due::Nothing, Due::End]);
        assert!(run.end());
        assert!(!run.end() && !run.next() && !run.is_gathered());
    }
}
