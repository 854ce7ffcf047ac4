//! When a small message is held back, and when what is held goes. One that nothing precedes goes at once, and so does one that
//! answers; those that follow close behind wait for each other.

use core::time::Duration;

use headwater_host::sys;

use crate::flusher::{self, Went};

/// Nanoseconds without a transfer, after which a message counts as alone.
const PAUSE: u64 = Duration::from_micros(100).as_nanos() as u64;
/// The flusher sends what is as old as this if its writer seems to be done, or has hardly begun; and in any case after
/// [`LONG`].
pub const SHORT: u64 = Duration::from_micros(20).as_nanos() as u64;
pub const LONG: u64 = Duration::from_micros(400).as_nanos() as u64;
pub const FEW: usize = 4;

#[derive(Default)]
pub struct Pace {
    /// When the first message was held.
    pub(super) since: u64,
    /// What the flusher saw when it last came by.
    seen: (u64, usize),
    /// The last transfer to the kernel.
    pub last: u64,
    /// Something was received since: the next message is an answer, or the next question.
    answering: bool,
}

impl Pace {
    /// The peer has said something.
    #[inline]
    pub fn note_received(&mut self) {
        self.answering = true;
    }

    /// Nothing is held: may a small message be? If so it counts from now on.
    #[inline]
    pub fn may_begin(&mut self) -> bool {
        if core::mem::take(&mut self.answering) {
            return false;
        }
        let now = sys::now();
        if now.wrapping_sub(self.last) > PAUSE {
            self.last = now;
            return false;
        }
        self.since = now;
        flusher::is_there()
    }

    /// Asked by the flusher, where so much is held of so many messages: is it time? If not, their writer is given more.
    pub fn is_due(&mut self, now: u64, held: usize, messages: usize) -> bool {
        let age = now.saturating_sub(self.since);
        let state = (self.since, held);
        let rests = core::mem::replace(&mut self.seen, state) == state;
        let due = age >= LONG || age >= SHORT && (rests || messages <= FEW);
        if !due {
            flusher::note(Went::Busy);
        }
        due
    }
}
