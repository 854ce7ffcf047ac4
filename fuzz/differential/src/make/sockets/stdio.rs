//! The C library's streams over connections.

use super::{Kind, Maker};
use crate::make::Makes;

impl Maker {
    pub(super) fn stdio(&mut self, p: usize, t: usize) {
        let is_stream = |k: &Kind| *k == Kind::Stream;
        let streams = self.slots[p].map_or(0, |s| s.iter().filter(|k| is_stream(k)).count());
        if streams == 0 || self.one_in(8) {
            let slot = self.slot(p, Kind::Connection);
            let mode = self.of(&[0, 0, 1, 1, 2, 3, 4]);
            return self.say(p, t, "fdopen", &[slot, mode]);
        }
        let slot = self.slot(p, Kind::Stream);
        let n = self.length();
        let size = self.of(&[1, 1, 1, 3]);
        // Of more than a few bytes the parts that are read, or written, are told by the buffer's size.
        match self.below(18) {
            0..=3 => self.say(p, t, "fwrite", &[slot, n, size]),
            4..=6 => self.say(p, t, "fread", &[slot, n, size]),
            7..=9 => self.say(p, t, "fflush", &[slot]),
            10 => self.say(p, t, "getc", &[slot]),
            11 => self.say(p, t, "ungetc", &[slot, 65]),
            12 => {
                let name = self.of(&["fputs", "fprintf", "dprintf"]);
                self.say(p, t, name, &[slot]);
            }
            13 => {
                let (way, size) = (self.below(3), self.of(&[0, 0, 16, 1000, 4096]));
                self.say(p, t, "buffered", &[slot, way, size]);
            }
            14 => {
                let to = self.of(&[0, 0, 1, -1]);
                self.say(p, t, "fseek", &[slot, to]);
            }
            15 => self.say(p, t, "clearerr", &[slot]),
            16 => {
                self.say(p, t, "fclose", &[slot]);
            }
            _ => {
                let to = self.free_slot(p);
                self.say(p, t, "dup", &[to, slot]);
            }
        }
    }
}
