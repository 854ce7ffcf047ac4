//! Programs that are started otherwise than by fork, SIGPIPE, and closes of many numbers.

use super::Maker;
use crate::make::{Makes, SLOTS};

impl Maker {
    pub(super) fn starts(&mut self, p: usize, t: usize) {
        let slot = self.conn(p);
        let (what, n) = (self.below(4), 1 + self.below(100));
        match self.below(6) {
            0 => {
                let way = self.below(4);
                self.say(p, t, "spawn", &[slot, way, what, n]);
            }
            1 => {
                let way = self.below(5);
                self.say(p, t, "vfork", &[slot, way, what, n]);
            }
            2 => {
                let from = self.of(&[-1, 0, 3, 5]);
                self.say(p, t, "closes_all", &[from]);
            }
            3 => {
                let way = self.below(3);
                self.say(p, t, "pipes", &[way]);
            }
            _ => {
                let to = self.below(SLOTS);
                let flags = self.of(&[0, 0, 2, 4, 6, 1]);
                self.say(p, t, "close_range", &[slot, to, flags]);
            }
        }
    }
}
