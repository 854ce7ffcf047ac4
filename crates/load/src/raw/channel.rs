//! The channel alone, without sockets: what an accelerated connection is built on, and is compared with.

use std::io;

use headwater_channel::{Channel, DEFAULT_RING, ReceiveError};

use super::Wire;
use crate::wrong_bytes;

pub struct End(Channel);

/// Both ends of a channel, made before the fork that shares them out.
pub fn pair(size: usize) -> io::Result<(End, End)> {
    let ring = DEFAULT_RING.max(4 * size.next_power_of_two());
    let (a, b) = Channel::pair(ring).map_err(io::Error::other)?;
    Ok((End(a), End(b)))
}

impl Wire for End {
    #[inline]
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.send(message).map_err(io::Error::other)
    }

    #[inline]
    fn receive(&mut self, message: &mut [u8]) -> io::Result<bool> {
        match self.0.recv(message) {
            Ok(len) if len == message.len() => Ok(true),
            Ok(_) => Err(wrong_bytes("the length of a message")),
            Err(ReceiveError::Closed) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}
