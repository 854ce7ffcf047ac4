//! How data comes to a TCP endpoint, urgent data beside it, and what ends it.

use libc::iovec;

use super::super::{length, poll};
use super::{BEHIND_END, Phase, Tcp};
use crate::provider::{Event, Outcome, Provider, Received, nothing};

/// Receives of what was read ahead between two looks for an urgent byte.
const URGENT_EVERY: u32 = 16;

impl Tcp {
    /// See [`Provider::receive`].
    #[inline]
    pub fn get(&mut self, into: &[iovec]) -> Outcome<Received> {
        if !self.ahead.is_empty() {
            self.unlooked += 1;
            if self.unlooked >= URGENT_EVERY && self.has_urgent() {
                return self.receive_urgent(into);
            }
            let len = self.ahead.take(into);
            if !self.taken.is_empty() {
                self.pass_taken();
            }
            return Ok(plain(len));
        }
        let asked = length(into);
        if self.ended || self.phase != Phase::Connected || asked == 0 {
            return match self.peek() {
                Some(Event::Data) if asked == 0 => Ok(Received::default()),
                Some(Event::ExData) if asked == 0 => Ok(Received {
                    expedited: true,
                    ..Received::default()
                }),
                other => Err(nothing(other.is_some())),
            };
        }
        // A receive that begins at an urgent byte would throw it away.
        let by_kernel = self.socket.may_have_urgent();
        if by_kernel && self.has_urgent() {
            return self.receive_urgent(into);
        }
        let got = if self.is_below_mark() {
            Err(libc::EAGAIN)
        } else if by_kernel && !self.marks.visible && self.ahead.pays(asked) {
            self.read_ahead(into)
        } else {
            self.read(into).inspect(|&n| self.ahead.note(asked, n))
        };
        match got {
            Ok(0) => {
                self.note_end();
                self.flush();
                Err(nothing(self.ending().is_some()))
            }
            Ok(len) => {
                self.held.pace.note_received();
                self.end_run();
                if !self.taken.is_empty() {
                    self.pass_taken();
                }
                Ok(plain(len))
            }
            Err(libc::EAGAIN) => {
                self.flush();
                Err(nothing(self.error.is_some()))
            }
            Err(errno) => Err(self.fail(errno)),
        }
    }

    /// What comes next by the connection, data included.
    pub fn next_event(&mut self) -> Option<Event> {
        if self.has_urgent() {
            // The next receive gives what was told.
            self.unlooked = URGENT_EVERY;
            return Some(Event::ExData);
        }
        if !self.ahead.is_empty() {
            return Some(Event::Data);
        }
        if !self.ended && !self.is_below_mark() {
            let mut byte = [0u8];
            let into = [headwater_host::sys::buffer(byte.as_mut_ptr(), 1)];
            match self.socket.receive(&into, libc::MSG_PEEK) {
                Ok(0) => self.note_end(),
                Ok(_) => return Some(Event::Data),
                Err(libc::EAGAIN) => {}
                Err(errno) => {
                    self.fail(errno);
                }
            }
        }
        self.ending()
    }

    /// There is nothing more to receive, which is so behind an error too.
    pub(super) fn note_end(&mut self) {
        self.ended |= matches!(self.error, None | Some(BEHIND_END));
    }

    /// No more data: how it ended. The peer's release came before what a send has met.
    fn ending(&mut self) -> Option<Event> {
        if self.ended && !self.told_end {
            return Some(Event::OrdRel);
        }
        if self.error.is_none()
            && self.told_end
            && poll(self.socket.fd(), 0) & libc::POLLERR != 0
            && let Some(errno) = self.socket.take_error()
        {
            self.fail(errno);
        }
        self.error.map(|_| Event::Disconnect)
    }

    fn read_ahead(&mut self, into: &[iovec]) -> Result<usize, i32> {
        let room = self.ahead.room();
        let n = self.read(&room)?;
        self.ahead.filled(n);
        Ok(self.ahead.take(into))
    }
}

/// So many bytes of the stream.
fn plain(len: usize) -> Received {
    Received {
        len,
        ..Received::default()
    }
}
