//! What carries bytes between the two ends: a socket, or a channel.

use std::io::{self, Read, Write};

use headwater_channel::Channel;

use crate::net::Stream;

pub enum Link {
    Socket(Stream),
    Raw(Channel),
}

impl Link {
    pub fn finish_writing(&self) -> io::Result<()> {
        match self {
            Link::Socket(stream) => stream.finish_writing(),
            Link::Raw(channel) => channel.finish_sending().map_err(io::Error::other),
        }
    }

    /// The congestion control in use, or "none" where there is none.
    pub fn congestion(&self) -> String {
        match self {
            Link::Socket(stream) => stream.congestion(),
            Link::Raw(_) => "none".to_string(),
        }
    }
}

impl Read for Link {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Link::Socket(stream) => stream.read(buf),
            Link::Raw(channel) => channel.read(buf),
        }
    }
}

impl Write for Link {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Link::Socket(stream) => stream.write(buf),
            Link::Raw(channel) => channel.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
