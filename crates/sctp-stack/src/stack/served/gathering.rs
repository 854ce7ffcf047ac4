//! When messages leave that others may follow: gathered, they share packets and system calls.

use core::time::Duration;

/// How long messages may wait, in nanoseconds: when no more follow, and in any case.
const SHORT: u64 = Duration::from_micros(20).as_nanos() as u64;
const LONG: u64 = Duration::from_micros(400).as_nanos() as u64;

/// Messages that wait for others, so that they leave in one call.
#[derive(Default)]
pub struct Gathering {
    pub bytes: usize,
    pub since: u64,
    seen: (u64, usize),
    /// When messages last left.
    pub last: u64,
    /// The user has received since: it may answer, and the peer wait for that.
    pub answering: bool,
    /// The flusher knows.
    pub held: bool,
}

impl Gathering {
    /// May it wait no longer?
    pub fn is_due(&mut self, now: u64) -> bool {
        let age = now.saturating_sub(self.since);
        let state = (self.since, self.bytes);
        let rests = core::mem::replace(&mut self.seen, state) == state;
        age >= LONG || age >= SHORT && rests
    }
}
