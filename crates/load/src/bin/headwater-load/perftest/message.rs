//! What is sent: the message's number, then bytes that are the same in all messages.

use std::io;

use headwater_load::wrong_bytes;

pub struct Message {
    bytes: Vec<u8>,
    number: u32,
}

impl Message {
    pub fn new(size: usize) -> Message {
        let mut bytes: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
        bytes[..4].fill(0);
        Message { bytes, number: 0 }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Becomes the next one.
    #[inline]
    pub fn advance(&mut self) {
        self.number = self.number.wrapping_add(1);
        self.bytes[..4].copy_from_slice(&self.number.to_le_bytes());
    }

    /// Fails unless `received` is this one: by its number, or by every byte.
    #[inline]
    pub fn compare(&self, received: &[u8], all: bool) -> io::Result<()> {
        let right = match all {
            true => received == self.bytes,
            false => received[..4] == self.bytes[..4],
        };
        match right {
            true => Ok(()),
            false => Err(wrong_bytes(format_args!("message {}", self.number))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_message_is_noticed_by_its_number_and_a_wrong_byte_where_all_are_compared() {
        let (mut expected, mut sent) = (Message::new(64), Message::new(64));
        assert!(expected.compare(sent.bytes(), true).is_ok());
        sent.advance();
        assert!(expected.compare(sent.bytes(), false).is_err());
        expected.advance();
        let mut received = sent.bytes().to_vec();
        received[63] ^= 1;
        assert!(expected.compare(&received, false).is_ok());
        assert!(expected.compare(&received, true).is_err());
    }
}
