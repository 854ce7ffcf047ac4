//! What a message holds: a body that all messages of a connection share, and the message's own word at both edges of every block.
//!
//! The body costs no copy to make anew, so that what is measured is the carrying; the words tell messages apart, and pieces of
//! one from pieces of another.

use std::io;

use headwater_load::wrong_bytes;

use crate::pattern::random;

/// Distance of the words, each at the beginning of a block; the last one ends the message.
const BLOCK: usize = 4096;
const WORD: usize = 8;
/// Of every so many messages one is compared as a whole, and so are the first.
const WHOLE: u64 = 64;
const FLAGS: u64 = START | LAST;
/// With this message measuring begins.
pub const START: u64 = 1 << 63;
/// After this one there is none.
pub const LAST: u64 = 1 << 62;

pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Messages of connections with other numbers have other bodies.
    pub fn new(size: usize, connection: usize) -> Message {
        let bytes = random((connection as u64) << 20).take(size).collect();
        Message { bytes }
    }

    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The message of this word, which is a number with flags.
    #[inline]
    pub fn stamped(&mut self, word: u64) -> &[u8] {
        for at in places(self.bytes.len()) {
            self.bytes[at..at + WORD].copy_from_slice(&word.to_le_bytes());
        }
        &self.bytes
    }

    /// The word of what was received, if it has the expected number and otherwise what it should.
    #[inline]
    pub fn check(&self, received: &[u8], number: u64) -> io::Result<u64> {
        self.compare(received, number, is_whole(number))
    }

    /// The same with all of its bytes.
    pub fn check_whole(&self, received: &[u8], number: u64) -> io::Result<u64> {
        self.compare(received, number, true)
    }

    #[inline]
    fn compare(&self, received: &[u8], number: u64, whole: bool) -> io::Result<u64> {
        let word = word_of(received);
        let right = received.len() == self.bytes.len()
            && word & !FLAGS == number
            && places(received.len()).all(|at| word_at(received, at) == word)
            && (!whole || self.same_body(received));
        match right {
            true => Ok(word),
            false => Err(wrong_bytes(format_args!("message {number}"))),
        }
    }

    /// Whether everything but the words is alike.
    fn same_body(&self, received: &[u8]) -> bool {
        let ends = places(received.len()).skip(1);
        let mut places = places(received.len()).zip(ends);
        places.all(|(at, end)| {
            let body = (at + WORD).min(end)..end;
            received[body.clone()] == self.bytes[body]
        })
    }
}

/// Where the words are. In a message that ends soon after the beginning of a block the last two overlap, or are one.
#[inline]
fn places(size: usize) -> impl Iterator<Item = usize> + Clone {
    let last = size - WORD;
    (0..last)
        .step_by(BLOCK)
        .filter(move |at| at + WORD <= last)
        .chain([last])
}

/// What a message begins with.
#[inline]
pub fn word_of(message: &[u8]) -> u64 {
    word_at(message, 0)
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes
        .get(at..at + WORD)
        .and_then(|word| word.try_into().ok());
    word.map_or(u64::MAX, u64::from_le_bytes)
}

fn is_whole(number: u64) -> bool {
    number < WHOLE || number.is_multiple_of(WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_its_number_and_its_connection() {
        for size in [16, 20, 70, 1000, 4096, 4100, 4104, 4110, 9000] {
            let mut message = Message::new(size, 3);
            let received = message.stamped(7 | START).to_vec();
            assert_eq!(message.check(&received, 7).unwrap(), 7 | START, "{size}");
            assert!(message.check(&received, 8).is_err(), "{size}");
            assert!(message.check(&received[1..], 7).is_err(), "{size}");
            let other = Message::new(size, 4);
            assert_eq!(other.check(&received, 7).is_err(), size > 16, "{size}");
        }
    }

    #[test]
    fn one_wrong_byte_is_noticed_in_a_whole_message_and_a_wrong_word_in_any() {
        let mut message = Message::new(10_000, 0);
        for place in [0, 8, 4095, 4096, 4104, 9991, 9999] {
            let mut received = message.stamped(640).to_vec();
            received[place] ^= 1;
            assert!(message.check(&received, 640).is_err(), "byte {place}");
        }
        for place in [3, 4096, 8192, 9999] {
            let mut received = message.stamped(641).to_vec();
            received[place] ^= 1;
            assert!(message.check(&received, 641).is_err(), "byte {place}");
        }
    }
}
