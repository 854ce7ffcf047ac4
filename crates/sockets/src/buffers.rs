//! Scattered buffers of a call, and how far it has got in them.

use core::ops::Range;

use libc::{iovec, msghdr};

/// Memory that the program gave us; as in the kernel's own calls, wrong pointers are the program's fault.
pub struct Buffers<'a> {
    whole: &'a [iovec],
    iov: &'a [iovec],
    /// Bytes of the first buffer that are done.
    skip: usize,
    pub left: usize,
    pub done: usize,
    /// How far the ring had been read before the last piece was taken from it.
    pub mark: Option<u64>,
}

/// How long all buffers are together.
pub fn length(iov: &[iovec]) -> usize {
    iov.iter()
        .fold(0, |all: usize, v| all.saturating_add(v.iov_len))
}

/// The header of a message that is these buffers alone.
#[inline(always)]
pub fn message(iov: &[iovec]) -> msghdr {
    let mut header: msghdr = headwater_host::sys::zeroed();
    header.msg_iov = iov.as_ptr().cast_mut();
    header.msg_iovlen = iov.len() as _;
    header
}

/// What the kernel moves by one call at most: the rest of a longer list is not looked at (read(2)).
const MOST: usize = 0x7fff_f000;

impl<'a> Buffers<'a> {
    pub fn new(iov: &'a [iovec]) -> Buffers<'a> {
        let left = length(iov).min(MOST);
        Buffers {
            whole: iov,
            iov,
            skip: 0,
            left,
            done: 0,
            mark: None,
        }
    }

    /// Begins anew.
    pub fn rewind(&mut self) {
        *self = Buffers::new(self.whole);
    }

    /// The next contiguous piece, of at most `max` bytes; empty when all is done.
    #[inline]
    pub fn piece(&mut self, max: usize) -> &'a mut [u8] {
        while let Some(first) = self.iov.first() {
            if self.skip < first.iov_len {
                let n = (first.iov_len - self.skip).min(max).min(self.left);
                if n == 0 {
                    break;
                }
                let at = (first.iov_base as *mut u8).wrapping_add(self.skip);
                // SAFETY: inside a buffer of the program.
                return unsafe { core::slice::from_raw_parts_mut(at, n) };
            }
            self.iov = &self.iov[1..];
            self.skip = 0;
        }
        &mut []
    }

    #[inline]
    pub fn advance(&mut self, n: usize) {
        self.skip += n;
        self.left -= n;
        self.done += n;
        while let Some(first) = self.iov.first() {
            if self.skip < first.iov_len {
                break;
            }
            self.skip -= first.iov_len;
            self.iov = &self.iov[1..];
        }
    }

    /// All buffers, done or not.
    pub fn whole(&self) -> &'a [iovec] {
        self.whole
    }

    /// What is left, as a vector for the kernel: the program's own, or in `room` as much of it as fits there.
    pub fn rest<'b>(&self, room: &'b mut [iovec; ROOM]) -> &'b [iovec]
    where
        'a: 'b,
    {
        self.part(room, usize::MAX)
    }

    /// The same of the next `limit` bytes.
    pub fn part<'b>(&self, room: &'b mut [iovec; ROOM], limit: usize) -> &'b [iovec]
    where
        'a: 'b,
    {
        if self.skip == 0 && limit >= self.left {
            return self.iov;
        }
        let n = self.iov.len().min(ROOM);
        room[..n].copy_from_slice(&self.iov[..n]);
        if let Some(first) = room[..n].first_mut() {
            first.iov_base = (first.iov_base as *mut u8).wrapping_add(self.skip) as *mut _;
            first.iov_len -= self.skip;
        }
        let mut left = limit;
        for one in &mut room[..n] {
            one.iov_len = one.iov_len.min(left);
            left -= one.iov_len;
        }
        &room[..n]
    }

    /// Is that less than asked for, since there are more buffers than room for them?
    #[inline]
    pub fn is_cut(&self, limit: usize) -> bool {
        self.iov.len() > ROOM && (self.skip != 0 || limit < self.left)
    }

    /// The bytes `first` of all buffers, and `then` behind them, for one call of the kernel's; as many as that takes.
    #[cold]
    pub fn parts(&self, first: Range<usize>, then: Range<usize>) -> Vec<iovec> {
        let mut parts = Vec::new();
        let most = self.whole.len().saturating_add(1).min(MOST_PARTS);
        if parts.try_reserve_exact(most).is_err() {
            return parts;
        }
        let mut begin = 0usize;
        for one in self.whole {
            let end = begin.saturating_add(one.iov_len);
            for range in [&first, &then] {
                let (from, to) = (range.start.max(begin), range.end.min(end));
                // Within what is reserved: to make room is a place where it could panic.
                if from < to && parts.len() < parts.capacity() {
                    let at = (one.iov_base as *mut u8).wrapping_add(from - begin);
                    parts.push(headwater_host::sys::buffer(at, to - from));
                }
            }
            begin = end;
        }
        parts
    }
}

/// Buffers that a call of the kernel's takes (readv(2)).
const MOST_PARTS: usize = libc::UIO_MAXIOV as usize;

/// Buffers that one kernel call takes when the first of them is partly done.
pub const ROOM: usize = 16;

pub const EMPTY: iovec = headwater_host::sys::buffer(core::ptr::null::<u8>(), 0);
