//! The program's memory, as iovec's name it.
//!
//! # Contract
//! The iovec's that providers are given are readable (for sending) or writable (for receiving) for their lengths, as
//! t_sndv(3) and t_rcvv(3) want it.

use headwater_channel::ring::{Frame, Reservation, Ring};
use libc::iovec;

pub use headwater_streams::head::write::Source;

pub fn len(iov: &[iovec]) -> usize {
    iov.iter().map(|v| v.iov_len).sum()
}

/// The bytes of one buffer to be sent.
#[inline(always)]
pub fn bytes(v: &iovec) -> &[u8] {
    if v.iov_len == 0 {
        return &[];
    }
    // SAFETY: see the contract.
    unsafe { core::slice::from_raw_parts(v.iov_base as *const u8, v.iov_len) }
}

/// Room for received bytes.
pub struct Sink<'a> {
    iov: &'a [iovec],
    skip: usize,
    left: usize,
}

impl<'a> Sink<'a> {
    #[inline(always)]
    pub fn new(iov: &'a [iovec]) -> Sink<'a> {
        Sink {
            iov,
            skip: 0,
            left: len(iov),
        }
    }

    #[inline(always)]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Copies `n` unread bytes of a frame in, from `skip` on. The caller asks for no more than there are and fit.
    #[inline(always)]
    pub fn fill(&mut self, ring: &Ring<'_>, frame: &Frame, skip: usize, n: usize) {
        if let [v] = self.iov {
            self.fill_part(ring, frame, skip, v, n);
            self.skip += n;
        } else {
            self.scatter(ring, frame, skip, n);
        }
        self.left -= n;
    }

    #[inline(always)]
    fn fill_part(&self, ring: &Ring<'_>, frame: &Frame, from: usize, v: &iovec, n: usize) {
        if n > 0 {
            // SAFETY: see the contract; skip + n is within the buffer.
            let to = unsafe {
                core::slice::from_raw_parts_mut((v.iov_base as *mut u8).add(self.skip), n)
            };
            ring.copy_frame(frame, from, to);
        }
    }

    fn scatter(&mut self, ring: &Ring<'_>, frame: &Frame, mut from: usize, mut n: usize) {
        while n > 0
            && let Some(v) = self.iov.first()
        {
            let some = (v.iov_len - self.skip).min(n);
            self.fill_part(ring, frame, from, v, some);
            n -= some;
            from += some;
            self.skip += some;
            if self.skip == v.iov_len {
                self.iov = &self.iov[1..];
                self.skip = 0;
            }
        }
    }
}

/// What of it is behind the first `done` bytes.
pub fn rest(data: &[iovec], mut done: usize) -> Vec<iovec> {
    let mut rest = Vec::with_capacity(data.len());
    for v in data {
        let skip = v.iov_len.min(done);
        done -= skip;
        if skip < v.iov_len {
            rest.push(headwater_host::sys::buffer(
                v.iov_base.cast::<u8>().wrapping_add(skip),
                v.iov_len - skip,
            ));
        }
    }
    rest
}

/// The first bytes of the vectors, `most` at most.
pub fn front(data: &[iovec], mut most: usize) -> Vec<iovec> {
    let mut front = Vec::new();
    for v in data {
        let iov_len = v.iov_len.min(most);
        most -= iov_len;
        if iov_len > 0 {
            front.push(iovec { iov_len, ..*v });
        }
    }
    front
}

/// Copies as much in as there is room for; how much that was.
#[inline]
pub fn scatter(into: &[iovec], mut bytes: &[u8]) -> usize {
    let mut done = 0;
    for v in into.iter().filter(|v| v.iov_len > 0) {
        let (some, rest) = bytes.split_at(v.iov_len.min(bytes.len()));
        // SAFETY: see the contract.
        let to = unsafe { core::slice::from_raw_parts_mut(v.iov_base as *mut u8, v.iov_len) };
        to[..some.len()].copy_from_slice(some);
        done += some.len();
        bytes = rest;
    }
    done
}

/// Room in a ring as bytes.
#[inline(always)]
pub fn room(at: &mut Reservation) -> &mut [u8] {
    // SAFETY: a reservation is writable for its length while the ring's writer lock is held, by the caller alone.
    unsafe { core::slice::from_raw_parts_mut(at.ptr, at.len) }
}
