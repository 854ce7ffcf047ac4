//! Where a receive puts the bytes.

use headwater_channel::ring::{Corrupt, Ring};
use headwater_host::sys;
use libc::{MSG_PEEK, MSG_TRUNC};

use crate::buffers::{Buffers, EMPTY, ROOM, length, message};

/// Where a receive puts the bytes: the program's buffers, or a pipe.
pub trait Sink {
    /// Bytes that it still wants.
    fn left(&self) -> usize;
    /// Takes bytes out of the ring, up to `end`.
    fn take_ring(
        &mut self,
        ring: &Ring<'_>,
        flags: i32,
        end: Option<u64>,
    ) -> Result<usize, Corrupt>;
    /// Takes at most `limit` bytes out of the shadow `fd`; does not wait.
    fn take_kernel(&mut self, fd: i32, flags: i32, limit: usize) -> Result<usize, i32>;
    /// Looks at what the shadow `fd` has behind its next `known` bytes, behind which `between` bytes of the ring were seen.
    fn peek_behind(
        &mut self,
        _fd: i32,
        _flags: i32,
        _known: usize,
        _between: usize,
    ) -> Result<usize, i32> {
        Ok(0)
    }
    /// Has it no room, though it wants more?
    fn is_full(&self) -> bool {
        false
    }
}

impl Sink for Buffers<'_> {
    #[inline(always)]
    fn left(&self) -> usize {
        self.left
    }

    #[inline]
    fn take_ring(
        &mut self,
        ring: &Ring<'_>,
        flags: i32,
        end: Option<u64>,
    ) -> Result<usize, Corrupt> {
        let before = self.done;
        match flags & (MSG_PEEK | MSG_TRUNC) {
            MSG_TRUNC => return discard(ring, self, end),
            flags if flags & MSG_TRUNC != 0 => return count(ring, self, end),
            _ => {}
        }
        while self.left > 0 {
            let skip = self.done - before;
            self.mark = Some(ring.consumed().0);
            let piece = self.piece(usize::MAX);
            let n = if flags & MSG_PEEK != 0 {
                ring.copy_peek(piece, skip, end)?
            } else {
                ring.pop_until(piece, end)?
            };
            if n == 0 {
                break;
            }
            self.advance(n);
        }
        Ok(self.done - before)
    }

    fn take_kernel(&mut self, fd: i32, flags: i32, limit: usize) -> Result<usize, i32> {
        let mut total = 0;
        loop {
            let mut room = [EMPTY; ROOM];
            let mut all = Vec::new();
            if flags & MSG_PEEK != 0 && self.is_cut(limit) {
                // It can't go on where it has got to.
                let end = self.done + limit.min(self.left);
                all = self.parts(self.done..end, end..end);
            }
            let rest = match all.is_empty() {
                true => self.part(&mut room, limit - total),
                false => &all[..],
            };
            let asked = length(rest);
            // SAFETY: buffers of the program, as far as they are not done.
            let n = match unsafe { sys::recvmsg(fd, &mut message(rest), flags) } {
                Err(_) if total > 0 => return Ok(total),
                result => result?,
            };
            self.advance(n.min(self.left));
            total += n;
            // Less than what was asked for is all there is.
            if n < asked || self.left == 0 || total >= limit || flags & MSG_PEEK != 0 {
                return Ok(total);
            }
        }
    }

    #[cold]
    fn peek_behind(
        &mut self,
        fd: i32,
        flags: i32,
        known: usize,
        between: usize,
    ) -> Result<usize, i32> {
        // The kernel gives what it has from the beginning: what is known of it comes to where it stands already.
        let end = self.done.saturating_sub(between);
        let parts = self.parts(
            end.saturating_sub(known)..end,
            self.done..self.done + self.left,
        );
        // SAFETY: buffers of the program.
        let n = unsafe { sys::recvmsg(fd, &mut message(&parts), flags)? };
        let more = n.saturating_sub(known).min(self.left);
        self.advance(more);
        Ok(more)
    }
}

/// MSG_TRUNC on a stream: takes bytes without touching the buffer.
fn discard(ring: &Ring<'_>, buffers: &mut Buffers<'_>, end: Option<u64>) -> Result<usize, Corrupt> {
    let n = ring.skip_until(buffers.left, end)?;
    buffers.advance(n);
    Ok(n)
}

/// MSG_PEEK with MSG_TRUNC: says how much there is, and touches nothing.
#[inline(never)]
fn count(ring: &Ring<'_>, buffers: &mut Buffers<'_>, end: Option<u64>) -> Result<usize, Corrupt> {
    let before = buffers.done;
    while buffers.left > 0 {
        let mut piece = [0u8; 512];
        let room = buffers.left.min(piece.len());
        match ring.copy_peek(&mut piece[..room], buffers.done - before, end)? {
            0 => break,
            n => buffers.advance(n),
        }
    }
    Ok(buffers.done - before)
}
