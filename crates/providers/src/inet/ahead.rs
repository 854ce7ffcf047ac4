//! Small receives served from one larger one: what a TCP endpoint has read beyond what its user asked for.

use libc::iovec;

use crate::loopback::buffers::scatter;
use crate::loopback::link::{from_hex, to_hex};

/// Small enough to be handed on to the next image of the process.
const CAPACITY: usize = 16 << 10;
/// Users who ask for less are read ahead for, while they find more than they ask for.
pub const SMALL: usize = 4 << 10;

#[derive(Default)]
pub struct Ahead {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The last receive was filled to the brim: there is probably more.
    plenty: bool,
}

impl Ahead {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    #[inline]
    pub fn pays(&self, asked: usize) -> bool {
        self.plenty && asked < SMALL
    }

    #[inline]
    pub fn note(&mut self, asked: usize, got: usize) {
        self.plenty = got == asked;
    }

    /// Where the next bytes are to be read to; then [`filled`](Ahead::filled). Only while empty.
    pub fn room(&mut self) -> [iovec; 1] {
        self.buffer.resize(CAPACITY, 0);
        [headwater_host::sys::buffer(
            self.buffer.as_mut_ptr(),
            CAPACITY,
        )]
    }

    pub fn filled(&mut self, n: usize) {
        (self.start, self.end) = (0, n);
        self.plenty = n >= SMALL;
    }

    #[inline]
    pub fn take(&mut self, into: &[iovec]) -> usize {
        let n = scatter(into, &self.buffer[self.start..self.end]);
        self.start += n;
        n
    }

    pub fn clear(&mut self) {
        *self = Ahead::default();
    }

    pub fn to_hex(&self) -> String {
        to_hex(&self.buffer[self.start..self.end])
    }

    pub fn from_hex(text: &str) -> Option<Ahead> {
        let mut buffer = from_hex(text)?;
        let end = buffer.len();
        buffer.resize(CAPACITY.max(end), 0);
        Some(Ahead {
            buffer,
            start: 0,
            end,
            plenty: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_ahead_survives_as_text() {
        let ahead = Ahead {
            buffer: b"xhello".to_vec(),
            start: 1,
            end: 6,
            plenty: false,
        };
        let copy = Ahead::from_hex(&ahead.to_hex()).unwrap();
        assert_eq!(&copy.buffer[..copy.end], b"hello");
        assert!(Ahead::from_hex("").unwrap().is_empty());
        assert!(Ahead::from_hex("0x1").is_none());
    }
}
