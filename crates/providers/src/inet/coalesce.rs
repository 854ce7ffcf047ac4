//! Small sends gathered into one: what a TCP endpoint holds back until the buffer is full, somebody flushes, or the flusher comes round.

use headwater_host::sys;
use libc::iovec;

use super::pace::Pace;
use crate::flusher;

/// What is gathered at most: one segment of the loop-back device.
pub const CAPACITY: usize = 64 << 10;
/// From here on data is sent as it is: copying costs more than the calls that it saves (see run.rs).
pub const LARGE: usize = 16 << 10;

#[derive(Default)]
pub struct Held {
    buffer: Vec<u8>,
    /// Messages in the buffer.
    messages: usize,
    pub pace: Pace,
}

impl Held {
    #[inline]
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }

    #[inline]
    pub fn room(&self) -> usize {
        CAPACITY - self.buffer.len()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Appends as much as there is room for, from `skip` bytes on. After [`may_begin`](Pace::may_begin), or behind
    /// what is pending.
    #[inline]
    pub fn append(&mut self, data: &[iovec], mut skip: usize) -> usize {
        let before = self.buffer.len();
        if before == 0 {
            self.begin();
        }
        for v in data {
            let from = skip.min(v.iov_len);
            skip -= from;
            let n = (v.iov_len - from).min(CAPACITY - self.buffer.len());
            if n > 0 {
                // SAFETY: the user's buffer; there is room for n bytes more.
                unsafe {
                    let at = self.buffer.len();
                    let to = self.buffer.as_mut_ptr().add(at);
                    core::ptr::copy_nonoverlapping((v.iov_base as *const u8).add(from), to, n);
                    self.buffer.set_len(at + n);
                }
            }
        }
        self.messages += 1;
        let taken = self.buffer.len() - before;
        if before == 0 && taken == 0 {
            flusher::drop_hold();
        }
        taken
    }

    #[cold]
    fn begin(&mut self) {
        self.messages = 0;
        self.buffer.reserve_exact(CAPACITY);
        flusher::hold();
    }

    /// The kernel has taken `n` bytes, all of them or the first.
    pub fn consume(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        self.pace.last = sys::now();
        if n == self.buffer.len() {
            self.empty();
        } else {
            self.buffer.drain(..n);
        }
    }

    /// Nothing of it is to be sent any more.
    pub fn clear(&mut self) {
        if self.pending() > 0 {
            self.empty();
        }
    }

    fn empty(&mut self) {
        self.buffer.clear();
        flusher::drop_hold();
    }

    /// The connection is over: the buffer is not needed for now.
    pub fn reset(&mut self) {
        self.clear();
        *self = Held::default();
    }

    /// Asked by the flusher: is it time? If not, its writer is given more.
    pub fn is_due(&mut self, now: u64) -> bool {
        self.pace.is_due(now, self.pending(), self.messages)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::pace::{FEW, LONG, SHORT};
    use super::*;

    fn io(data: &[u8]) -> [iovec; 1] {
        [sys::buffer(data.as_ptr(), data.len())]
    }

    #[test]
    fn the_first_message_after_a_pause_is_not_held() {
        let mut held = Held::default();
        assert!(!held.pace.may_begin());
        assert!(held.pace.may_begin());
        held.pace.note_received();
        assert!(!held.pace.may_begin());
    }

    #[test]
    fn bytes_come_out_in_order_however_they_are_taken() {
        let mut held = Held::default();
        assert_eq!(held.append(&io(b"hello "), 0), 6);
        assert_eq!(held.append(&io(b"my world"), 3), 5);
        held.consume(2);
        assert_eq!(held.bytes(), b"llo world");
        held.append(&io(b"!"), 0);
        assert_eq!(held.bytes(), b"llo world!");
        held.consume(10);
        assert_eq!(held.pending(), 0);
        assert_eq!(held.room(), CAPACITY);
    }

    #[test]
    fn a_full_buffer_takes_a_part() {
        let mut held = Held::default();
        let block = vec![7; CAPACITY - 10];
        assert_eq!(held.append(&io(&block), 0), block.len());
        assert_eq!(held.append(&io(&[1; 64]), 0), 10);
        assert_eq!(held.append(&io(&[1; 64]), 0), 0);
    }

    #[test]
    fn the_flusher_lets_a_busy_writer_go_on_but_not_for_long() {
        let mut held = Held::default();
        held.pace.since = 1000;
        for _ in 0..FEW + 1 {
            held.append(&io(b"x"), 0);
        }
        assert!(!held.is_due(1000 + SHORT));
        held.append(&io(b"x"), 0);
        assert!(!held.is_due(1000 + 2 * SHORT));
        assert!(held.is_due(1000 + 3 * SHORT));
        held.append(&io(b"x"), 0);
        assert!(held.is_due(1000 + LONG));
    }
}
