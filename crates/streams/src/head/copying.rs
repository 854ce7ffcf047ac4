//! How a writer copies long messages: through the caches, or around them.
//!
//! What a reader on another CPU has read lies in that CPU's cache. Writing there again takes each line from it, which is quick
//! where the two are near and slow where they are far apart; stores around the caches cost the same everywhere. Which is
//! better changes with the places the scheduler gives us, so both are timed now and then.

use core::time::Duration;

use headwater_host::sync::{AtomicU32, Ordering::Relaxed};
use headwater_host::sys;

/// Shorter messages always go through the caches.
pub const LONG: usize = 2048;
/// Of so many long messages two are timed each way.
const ROUND: u32 = 64;
/// A copy that took this long, in nanoseconds, was interrupted.
const DISTURBED: u64 = Duration::from_micros(50).as_nanos() as u64;

/// What one head has learnt, in nanoseconds per KiB. Only hints.
#[derive(Default)]
pub struct Copying {
    turn: AtomicU32,
    cached: AtomicU32,
    streaming: AtomicU32,
}

/// How to make one copy.
pub struct Plan {
    pub streaming: bool,
    /// When it began, if it is timed.
    begun: Option<u64>,
}

impl Copying {
    pub fn plan(&self) -> Plan {
        let turn = self.turn.load(Relaxed).wrapping_add(1);
        self.turn.store(turn, Relaxed);
        let phase = turn % ROUND;
        let streaming = match phase {
            0 | 1 => false,
            2 | 3 => true,
            _ => self.streaming.load(Relaxed) < self.cached.load(Relaxed),
        };
        // The first of two finds the other way's traces.
        let timed = phase == 1 || phase == 3;
        Plan {
            streaming,
            begun: timed.then(sys::now),
        }
    }

    /// The message of `len` bytes is published.
    #[inline]
    pub fn done(&self, plan: Plan, len: usize) {
        if let Some(begun) = plan.begun {
            self.learn(sys::now() - begun, plan.streaming, len);
        }
    }

    #[cold]
    fn learn(&self, took: u64, streaming: bool, len: usize) {
        if took > DISTURBED {
            return;
        }
        let word = if streaming {
            &self.streaming
        } else {
            &self.cached
        };
        let sample = (took * 1024 / len as u64) as u32;
        let old = word.load(Relaxed);
        let new = if old == 0 {
            sample
        } else {
            (old * 3 + sample) / 4
        };
        word.store(new.max(1), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The choice of the next messages that are not timed.
    fn chosen(c: &Copying) -> bool {
        loop {
            let plan = c.plan();
            if c.turn.load(Relaxed) % ROUND > 3 {
                return plan.streaming;
            }
        }
    }

    #[test]
    fn the_cheaper_way_is_taken() {
        let c = Copying::default();
        for _ in 0..20 {
            c.learn(2000, false, 4096);
            c.learn(400, true, 4096);
        }
        assert!(chosen(&c));
        for _ in 0..20 {
            c.learn(100, false, 4096);
        }
        assert!(!chosen(&c));
    }

    #[test]
    fn an_interrupted_copy_teaches_nothing() {
        let c = Copying::default();
        c.learn(500, false, 4096);
        c.learn(400, true, 4096);
        for _ in 0..20 {
            c.learn(5_000_000, true, 4096);
        }
        assert!(chosen(&c));
    }
}
