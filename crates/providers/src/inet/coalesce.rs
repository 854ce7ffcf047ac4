//! Small sends gathered into one: what a TCP endpoint holds back, and for how long.
//!
//! A message that nothing precedes goes at once, and so does one that answers; those that follow close behind wait for
//! each other until the buffer is full, somebody flushes, or the flusher comes round.

use core::time::Duration;

use headwater_host::sys;
use libc::iovec;

use crate::flusher::{self, Went};

/// What is gathered at most: one segment of the loop-back device.
pub const CAPACITY: usize = 64 << 10;
/// From here on data is sent as it is: copying costs more than the calls that it saves (see run.rs).
pub const LARGE: usize = 16 << 10;
/// Nanoseconds without a transfer, after which a message counts as alone.
const PAUSE: u64 = Duration::from_micros(100).as_nanos() as u64;
/// The flusher sends what is as old as this if its writer seems to be done, or has hardly begun; and in any case after
/// [`LONG`].
const SHORT: u64 = Duration::from_micros(20).as_nanos() as u64;
const LONG: u64 = Duration::from_micros(400).as_nanos() as u64;
const FEW: u32 = 4;

#[derive(Default)]
pub struct Held {
    buffer: Vec<u8>,
    /// When the first byte was held.
    since: u64,
    /// Messages in the buffer.
    messages: u32,
    /// What the flusher saw when it last came by.
    seen: (u64, usize),
    /// The last transfer to the kernel.
    last: u64,
    /// Something was received since: the next message is an answer, or the next question.
    answering: bool,
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

    /// The peer has said something.
    #[inline]
    pub fn note_received(&mut self) {
        self.answering = true;
    }

    /// Nothing is pending: may a small message be held back? If so it counts from now on.
    #[inline]
    pub fn may_begin(&mut self) -> bool {
        if self.answering {
            self.answering = false;
            return false;
        }
        let now = sys::now();
        if now.wrapping_sub(self.last) > PAUSE {
            self.last = now;
            return false;
        }
        self.since = now;
        flusher::is_there()
    }

    /// Appends as much as there is room for, from `skip` bytes on. After [`may_begin`](Held::may_begin), or behind
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
        self.last = sys::now();
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
        let age = now.saturating_sub(self.since);
        let state = (self.since, self.pending());
        let rests = core::mem::replace(&mut self.seen, state) == state;
        let due = age >= LONG || age >= SHORT && (rests || self.messages <= FEW);
        if !due {
            flusher::note(Went::Busy);
        }
        due
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(data: &[u8]) -> [iovec; 1] {
        [sys::buffer(data.as_ptr(), data.len())]
    }

    #[test]
    fn the_first_message_after_a_pause_is_not_held() {
        let mut held = Held::default();
        assert!(!held.may_begin());
        assert!(held.may_begin());
        held.note_received();
        assert!(!held.may_begin());
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
        held.since = 1000;
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
