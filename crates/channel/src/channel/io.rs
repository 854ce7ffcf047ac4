//! A channel as a stream of bytes.
//!
//! `write` cuts the bytes into frames of its own choice, `read` runs over frame boundaries. A `read` in the middle of messages
//! takes their data parts as bytes; a control part is never taken for data: it ends the `read`, and one at the front is
//! an error of kind `InvalidData`.

use std::io;

use super::section::Work;
use super::waiting::{HandOff, Want};
use super::{Channel, Patience, ReceiveError, SendError};
use crate::ring::{Corrupt, Frame, Meta, Ring};

impl Channel {
    /// At least one byte, unless `buf` is empty.
    fn read_bytes(&self, buf: &mut [u8]) -> Result<usize, ReceiveError> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            let (section, first) = self.next_frame(Patience::Forever)?;
            let control = first.control_left();
            if control > 0 {
                let data = first.len - control;
                return Err(ReceiveError::TooLong { control, data });
            }
            // 0: nothing but empty messages, which are no bytes.
            let n = take_bytes(section.ring(), first, buf)?;
            if n > 0 {
                return Ok(n);
            }
        }
    }

    /// One frame's worth of `buf`.
    fn write_bytes(&self, buf: &[u8]) -> Result<usize, SendError> {
        // A reader can begin with a frame once it is complete, so large writes go in several. Not in whatever crumbs of room
        // there are, though: a frame costs the same whether small or large.
        let len = buf.len().min(self.segment.ring_size() / 4);
        let mut hand_off = HandOff::new(self);
        loop {
            let section = self.section(Work::Sending, Patience::Forever)?;
            self.check_open()?;
            let frame = &buf[..len];
            if len == 0 || section.ring().push_message(&[], frame, Meta::default())? {
                return Ok(len);
            }
            drop(section);
            self.wait(Want::Room(len), Patience::Forever, &mut hand_off)?;
        }
    }
}

/// Moves bytes from `frame` and those behind it, up to the next control part.
fn take_bytes(ring: Ring<'_>, mut frame: Frame, buf: &mut [u8]) -> Result<usize, Corrupt> {
    let mut done = 0;
    // A hostile peer could feed empty frames for ever.
    for _ in 0..ring.capacity() {
        let n = frame.len.min(buf.len() - done);
        ring.copy_frame(&frame, 0, &mut buf[done..done + n]);
        ring.consume(&frame, n);
        done += n;
        if done == buf.len() {
            break;
        }
        match ring.peek()? {
            Some(next) if next.control_left() == 0 => frame = next,
            _ => break,
        }
    }
    Ok(done)
}

/// Waits for at least one byte; 0 is the end: the peer has closed, or finished sending.
impl io::Read for &Channel {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.read_bytes(buf) {
            Err(ReceiveError::Closed) => Ok(0),
            other => Ok(other?),
        }
    }
}

/// Writes at most a quarter of the ring at once, and waits for room for it; `BrokenPipe` when the peer has closed. There is nothing to flush.
impl io::Write for &Channel {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        Ok(self.write_bytes(buf)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// As for `&Channel`.
impl io::Read for Channel {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }
}

/// As for `&Channel`.
impl io::Write for Channel {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self).write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
