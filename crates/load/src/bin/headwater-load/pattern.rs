//! The bytes that are sent: a random block of prime length over and over, so that lost, doubled and reordered pieces of
//! any usual size do not line up again.

pub struct Pattern {
    bytes: Vec<u8>,
}

const PERIOD: usize = 4093;

/// Bytes that nothing relates to each other, the same ones each time; others by another `number`.
pub fn random(number: u64) -> impl Iterator<Item = u8> {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64 ^ number;
    std::iter::repeat_with(move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u8
    })
}

impl Pattern {
    /// A pattern from which pieces of up to `longest` bytes can be taken.
    pub fn new(longest: usize) -> Pattern {
        let block: Vec<u8> = random(0).take(PERIOD).collect();
        let len = PERIOD + longest.max(PERIOD);
        Pattern {
            bytes: block.into_iter().cycle().take(len).collect(),
        }
    }

    /// What a stream holds from position `at` on.
    #[inline]
    pub fn piece(&self, at: Place, len: usize) -> &[u8] {
        &self.bytes[at.0..at.0 + len]
    }

    #[inline]
    pub fn matches(&self, at: Place, mut received: &[u8]) -> bool {
        // Block by block, so that the comparison reads a table that stays in the first cache.
        while received.len() > PERIOD {
            let (block, rest) = received.split_at(PERIOD);
            if block != self.piece(at, PERIOD) {
                return false;
            }
            received = rest;
        }
        received == self.piece(at, received.len())
    }
}

/// A position in the stream, as far as the pattern cares.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Place(usize);

impl Place {
    #[inline]
    pub fn advance(&mut self, len: usize) {
        self.0 += len;
        if self.0 >= PERIOD {
            self.0 %= PERIOD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_piece_matches_where_it_was_taken_and_nowhere_else() {
        let pattern = Pattern::new(10_000);
        let mut at = Place::default();
        at.advance(5_000);
        assert!(pattern.matches(at, pattern.piece(at, 10_000)));
        let mut later = at;
        later.advance(4_096);
        assert!(!pattern.matches(later, pattern.piece(at, 10_000)));
    }

    #[test]
    fn one_wrong_byte_is_noticed_in_any_block() {
        let pattern = Pattern::new(10_000);
        for place in [0, 4_092, 4_093, 9_999] {
            let mut bytes = pattern.piece(Place::default(), 10_000).to_vec();
            bytes[place] ^= 1;
            assert!(!pattern.matches(Place::default(), &bytes), "byte {place}");
        }
    }
}
