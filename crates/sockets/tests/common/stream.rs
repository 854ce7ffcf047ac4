//! Reproducible random choices, and streams whose bytes follow from their position.

/// splitmix64: a seed gives the same choices everywhere.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(mix(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// From 0 to `n - 1`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// From `low` to `high`, small ones as likely as large ones.
    pub fn scale(&mut self, low: usize, high: usize) -> usize {
        let span = (high / low).max(1).ilog2() as usize + 1;
        let top = low << self.below(span);
        (top + self.below(top)).min(high)
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The bytes of one direction.
#[derive(Clone, Copy)]
pub struct Stream {
    pub seed: u64,
}

impl Stream {
    pub fn fill(&self, pos: u64, buf: &mut [u8]) {
        let mut word = [0; 8];
        let mut known = u64::MAX;
        for (p, b) in (pos..).zip(buf) {
            if known != p / 8 {
                known = p / 8;
                word = mix(self.seed ^ known.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
            }
            *b = word[(p % 8) as usize];
        }
    }

    /// Where `buf` first differs from what belongs at `pos`.
    pub fn difference(&self, pos: u64, buf: &[u8]) -> Option<u64> {
        let mut want = vec![0; buf.len()];
        self.fill(pos, &mut want);
        let at = buf.iter().zip(&want).position(|(a, b)| a != b)?;
        Some(pos + at as u64)
    }
}

/// A running hash of a stream, whatever the pieces (FNV-1a).
#[derive(Clone, Copy)]
pub struct Hash(pub u64);

impl Hash {
    pub fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    pub fn add(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ b as u64).wrapping_mul(0x100_0000_01b3);
        }
    }
}
