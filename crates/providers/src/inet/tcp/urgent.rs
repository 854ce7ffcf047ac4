//! Urgent bytes. The kernel has one at a time, gives it beside the data, and keeps its place there: it would count as unread when
//! the endpoint closes, and as data once another one comes.

use headwater_tpi::Refusal;
use headwater_tpi::error::TNODATA;
use libc::iovec;

use super::Tcp;
use crate::provider::{Outcome, Received};

/// Places of urgent bytes that were taken: how many bytes are still to be read before each.
#[derive(Default)]
pub struct Taken(Vec<usize>);

impl Taken {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// How many there are in a row, from the first on.
    fn in_a_row(&self) -> usize {
        let follows = |pair: &&[usize]| pair[1] == pair[0] + 1;
        1 + self.0.windows(2).take_while(follows).count()
    }

    fn add(&mut self, before: usize) {
        if self.0.last() != Some(&before) {
            self.0.push(before);
        }
    }

    /// The first is not there to be read.
    fn pass(&mut self) {
        self.0.remove(0);
    }

    /// So many bytes were read, of which some may have been these.
    fn read(&mut self, n: usize) {
        self.0.retain_mut(|before| match before.checked_sub(n) {
            Some(left) => {
                *before = left;
                true
            }
            None => false,
        });
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn to_text(&self) -> String {
        let places: Vec<String> = self.0.iter().map(usize::to_string).collect();
        places.join(",")
    }

    pub fn from_text(text: &str) -> Option<Taken> {
        let places = text.split(',').filter(|place| !place.is_empty());
        places
            .map(|place| place.parse().ok())
            .collect::<Option<_>>()
            .map(Taken)
    }
}

impl Tcp {
    pub(super) fn has_urgent(&mut self) -> bool {
        self.unlooked = 0;
        let mut byte = [0u8];
        self.socket
            .receive(&[one(&mut byte)], libc::MSG_OOB | libc::MSG_PEEK)
            == Ok(1)
    }

    pub(super) fn receive_urgent(&mut self, into: &[iovec]) -> Outcome<Received> {
        let first = into.iter().find(|v| v.iov_len > 0);
        let first = first.ok_or(Refusal::new(TNODATA))?;
        let before = self.socket.before_mark();
        if self.socket.receive(&[cut(first, 1)], libc::MSG_OOB) != Ok(1) {
            return Err(Refusal::new(TNODATA));
        }
        let now = self.socket.before_mark();
        // Another one may have come before it was taken, or since.
        let place = match now != before && self.has_urgent() {
            true => before,
            false => now,
        };
        self.taken.add(place);
        self.pass_taken();
        Ok(Received {
            len: 1,
            more: false,
            expedited: true,
        })
    }

    /// Receives, but no urgent byte that the user has had.
    #[inline]
    pub(super) fn read(&mut self, into: &[iovec]) -> Result<usize, i32> {
        match self.taken.first() {
            None => self.socket.receive(into, 0),
            Some(before) => self.read_before(before, into),
        }
    }

    #[cold]
    fn read_before(&mut self, before: usize, into: &[iovec]) -> Result<usize, i32> {
        if before == 0 {
            // The kernel leaves it out, or has done so.
            self.taken.pass();
            return self.read(into);
        }
        let first = into.iter().find(|v| v.iov_len > 0).ok_or(libc::EAGAIN)?;
        let ring = self.socket.unread_by_ring();
        let read = if ring > 0 {
            let room = first.iov_len.min(before).min(ring);
            self.socket.receive(&[cut(first, room)], 0)
        } else if first.iov_len < before {
            self.socket.receive(&[*first], 0)
        } else {
            // It ends before the byte, or has it as data where another one has come: by one call, since that may happen any time. What
            // follows it is as little wanted.
            let mut row = vec![0; self.taken.in_a_row()];
            let all = headwater_host::sys::buffer(row.as_mut_ptr(), row.len());
            self.socket.receive(&[cut(first, before), all], 0)
        };
        match read {
            Ok(n @ 1..) => {
                self.taken.read(n);
                Ok(n.min(before))
            }
            // Somebody else reads here.
            other => {
                self.taken.clear();
                other
            }
        }
    }

    /// Reads past an urgent byte that was taken, once nothing is left before it.
    #[cold]
    pub(super) fn pass_taken(&mut self) {
        if self.taken.first() != Some(0) || !self.ahead.is_empty() {
            return;
        }
        self.taken.pass();
        // When another one has come meanwhile, the kernel has gone past it.
        if !self.socket.is_at_mark() || self.has_urgent() {
            return;
        }
        let room = self.ahead.room();
        match self.socket.receive(&room, 0) {
            Ok(0) => self.note_end(),
            Ok(n) => self.ahead.filled(n),
            Err(libc::EAGAIN) => {}
            Err(errno) => {
                self.fail(errno);
            }
        }
    }
}

fn one(byte: &mut [u8; 1]) -> iovec {
    headwater_host::sys::buffer(byte.as_mut_ptr(), 1)
}

fn cut(part: &iovec, len: usize) -> iovec {
    headwater_host::sys::buffer(part.iov_base, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_move_as_bytes_are_read_and_go_with_their_byte() {
        let mut taken = Taken::default();
        taken.add(4);
        taken.add(9);
        taken.read(4);
        assert_eq!(taken.to_text(), "0,5");
        taken.read(1);
        assert_eq!(taken.first(), Some(4));
        taken.read(7);
        assert!(taken.is_empty());
    }

    #[test]
    fn they_survive_as_text() {
        let taken = Taken(vec![0, 70_000]);
        assert_eq!(Taken::from_text(&taken.to_text()).unwrap().0, taken.0);
        assert!(Taken::from_text("").unwrap().is_empty());
        assert!(Taken::from_text("1,x").is_none());
    }
}
