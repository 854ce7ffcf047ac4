//! Datagrams that are held back: consecutive ones of one size to one place leave in one call (UDP_SEGMENT).

use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_ipnet::control::{Control, put_control};
use headwater_ipnet::outgoing::send;
use libc::iovec;

use super::back_pressure::BackPressure;
use super::length;
use super::pace::Pace;
use crate::flusher;

/// What one call carries at most: the kernel takes 64 segments, 64 KiB less headers.
const SEGMENTS: usize = 64;
const CAPACITY: usize = 64_000;
/// Datagrams of this size cost more to copy than to send.
const LARGE: usize = 8 << 10;

/// Datagrams held back: all of `size` bytes to one place, but for a shorter last one.
pub struct Outgoing {
    to: Address,
    size: usize,
    count: usize,
    buffer: Vec<u8>,
    /// The last one was shorter: nothing may follow.
    closed: bool,
    pub pace: Pace,
    /// Sizes from here on don't fit the route in segments, or gain nothing.
    limit: usize,
    back_pressure: BackPressure,
}

impl Outgoing {
    pub fn new() -> Outgoing {
        Outgoing {
            to: Address::any(false),
            size: 0,
            count: 0,
            buffer: Vec::new(),
            closed: false,
            pace: Pace::default(),
            limit: LARGE,
            back_pressure: BackPressure::default(),
        }
    }

    #[inline]
    pub fn pending(&self) -> usize {
        self.count
    }

    pub fn destination(&self) -> Address {
        self.to
    }

    /// Adds a datagram to those pending, if it suits them.
    #[inline]
    pub fn join(&mut self, to: &Address, data: &[iovec], len: usize) -> bool {
        let suits = self.count > 0
            && !self.closed
            && len <= self.size
            && len > 0
            && self.count < SEGMENTS
            && self.buffer.len() + len <= CAPACITY
            && self.to == *to;
        if suits {
            self.push(data, len);
        }
        suits
    }

    /// Nothing is pending: may this one be [held](Outgoing::hold)?
    #[inline]
    pub fn begins(&mut self, to: &Address, len: usize) -> bool {
        if len == 0 || len >= self.limit {
            return false;
        }
        // One like the last has come: more may follow.
        if len != self.size || self.to != *to {
            (self.to, self.size) = (*to, len);
            return false;
        }
        self.pace.may_begin()
    }

    /// Begins to hold with this one.
    pub fn hold(&mut self, to: &Address, data: &[iovec], len: usize) {
        self.to = *to;
        self.size = len;
        self.closed = false;
        self.buffer.reserve_exact(CAPACITY.max(len));
        flusher::hold();
        self.push(data, len);
    }

    #[inline]
    fn push(&mut self, data: &[iovec], len: usize) {
        for v in data {
            // SAFETY: the user's buffer; the caller has seen to the room.
            unsafe {
                let at = self.buffer.len();
                let to = self.buffer.as_mut_ptr().add(at);
                core::ptr::copy_nonoverlapping(v.iov_base as *const u8, to, v.iov_len);
                self.buffer.set_len(at + v.iov_len);
            }
        }
        self.count += 1;
        self.closed = len < self.size;
    }

    /// Can't take another of its kind?
    #[inline]
    pub fn is_full(&self) -> bool {
        self.closed || self.count >= SEGMENTS || self.buffer.len() + self.size > CAPACITY
    }

    /// Sends all. An error other than EAGAIN has cost the datagrams that are no longer pending.
    pub fn flush(&mut self, fd: i32) -> sys::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        self.pace.last = sys::now();
        let all = [sys::buffer(self.buffer.as_ptr(), self.buffer.len())];
        if self.count == 1 {
            let sent = send(fd, &self.to, &all, &[]);
            if !matches!(sent, Err(libc::EAGAIN)) {
                self.clear();
            }
            return sent;
        }
        self.back_pressure
            .before(&self.to, self.count, self.size, self.pace.last);
        match send_segments(fd, &self.to, &all, self.size as u16) {
            Err(errno @ (libc::EINVAL | libc::EMSGSIZE | libc::EIO)) => {
                // The route has a smaller MTU; or there are no checksums, and so no segments.
                self.limit = if errno == libc::EIO {
                    0
                } else {
                    self.limit.min(self.size)
                };
                self.one_by_one(fd)
            }
            Err(libc::EAGAIN) => Err(libc::EAGAIN),
            result => {
                self.clear();
                result
            }
        }
    }

    fn one_by_one(&mut self, fd: i32) -> sys::Result<()> {
        while self.count > 0 {
            let len = self.size.min(self.buffer.len());
            let one = [sys::buffer(self.buffer.as_ptr(), len)];
            let sent = send(fd, &self.to, &one, &[]);
            if matches!(sent, Err(libc::EAGAIN)) {
                return sent;
            }
            self.buffer.drain(..len);
            self.count -= 1;
            if self.count == 0 {
                flusher::drop_hold();
            }
            sent?;
        }
        Ok(())
    }

    pub fn clear(&mut self) {
        if self.count > 0 {
            self.count = 0;
            self.buffer.clear();
            flusher::drop_hold();
        }
    }

    /// In the child of a fork: what is held is the parent's.
    pub fn forked(&mut self) {
        self.clear();
        // The answers on the socket too.
        self.back_pressure = BackPressure::default();
    }

    /// Asked by the flusher.
    pub fn is_due(&mut self, now: u64) -> bool {
        self.pace.is_due(now, self.count, self.count)
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.clear();
    }
}

fn send_segments(fd: i32, to: &Address, data: &[iovec], size: u16) -> sys::Result<()> {
    debug_assert!(length(data) > size as usize);
    let mut control = Control([0; 128]);
    let n = put_control(
        &mut control,
        0,
        libc::SOL_UDP,
        libc::UDP_SEGMENT,
        &size.to_ne_bytes(),
    );
    send(fd, to, data, &control.0[..n])
}
