//! The program's memory, as iovec's name it.
//!
//! # Contract
//! The iovec's that providers are given are readable (for sending) or writable (for receiving) for their lengths, as
//! t_sndv(3) and t_rcvv(3) want it.

use headwater_channel::ring::Reservation;
use libc::iovec;

pub use headwater_streams::head::inlet::Sink;
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
