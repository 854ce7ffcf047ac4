//! What a process that has confined itself is given before it asks the kernel.

use headwater_host::sync::{AtomicI32, AtomicUsize, Exchange, Ordering};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{hidden, next, sys};
use libc::{
    EAGAIN, EFAULT, EINTR, EINVAL, MSG_CMSG_CLOEXEC, MSG_DONTWAIT, MSG_ERRQUEUE, MSG_OOB, MSG_PEEK,
    MSG_TRUNC, MSG_WAITALL, MSG_WAITFORONE, iovec, mmsghdr, msghdr,
};

use crate::buffers::{Buffers, ROOM};
use crate::conn::{self, Conn};
use crate::outcome::{Moved, Own, partial};

/// What is left of the rings of one connection, and the error that came after it (0: none).
pub struct Rest {
    pub(crate) bytes: Vec<u8>,
    at: AtomicUsize,
    pub error: AtomicI32,
    /// The same bytes for splice(2), under a hidden number; -1: that could not be had.
    pub(crate) file: i32,
}

/// splice(2) out of the socket: `own` is the program's own call, of so much of a file from a position on. `None`: there is no rest (any
/// more), it is that call's turn on the socket.
#[cold]
pub fn splice(
    c: &'static Conn,
    n: usize,
    own: impl FnOnce(i32, i64, usize) -> isize,
) -> Option<Moved> {
    let rest = c.rest()?;
    let at = rest.at.load(Ordering::Acquire);
    let left = rest.bytes.len() - at;
    if left == 0 {
        return rest.end(c);
    }
    if table::lookup(rest.file).is_none_or(|h| h.kind() != Kind::Hidden) {
        // The caller copies, as with any descriptor that cannot do it.
        return Some(Err(EINVAL));
    }
    let n = own(rest.file, at as i64, n.min(left));
    if n <= 0 {
        // The file may have been refused its bytes, by a limit.
        return Some(Err(if n == 0 { EINVAL } else { next::errno() }));
    }
    // Not before the call, which may be interrupted by a handler that reads on.
    let on = at + n as usize;
    rest.at.exchange(at, on);
    leave_if_read_out(c, rest);
    Some(Ok(n as usize))
}

/// Receives from the rest, then by the program's own call. `None`: there is none (any more), it is that call's turn.
#[cold]
pub(crate) fn receive(
    c: &'static Conn,
    fd: i32,
    iov: &[iovec],
    flags: i32,
    own: Own<'_>,
) -> Option<Moved> {
    let rest = c.rest()?;
    let mut buffers = Buffers::new(iov);
    if buffers.left == 0 {
        return None;
    }
    rest.give(&mut buffers, flags);
    if buffers.done == 0 {
        return rest.end(c);
    }
    if buffers.left > 0 && goes_on(c, flags) && !rest.fails() {
        let mut room = [crate::buffers::EMPTY; ROOM];
        let n = own(fd, buffers.rest(&mut room));
        rest.keep_error(n);
        buffers.advance(n.max(0) as usize);
    }
    leave_if_read_out(c, rest);
    Some(partial(buffers.done, EINTR))
}

/// Is more than the rest to be had by the call that found its end? A short read of what does not wait must mean that all was taken.
fn goes_on(c: &Conn, flags: i32) -> bool {
    flags & MSG_PEEK == 0 && (flags & (MSG_WAITALL | MSG_DONTWAIT) != 0 || c.is_nonblocking())
}

/// What a message is to hold; `None`: the kernel refuses it.
pub type Vector = unsafe fn(&msghdr) -> Option<&[iovec]>;

/// recvmmsg(2): as `receive`, for messages. `once`: no time is left after the first. `own` is the program's own call for the messages
/// that it is given, with these flags.
///
/// # Safety
/// The messages and their buffers are valid.
#[cold]
pub unsafe fn receive_many(
    c: &'static Conn,
    msgs: &mut [mmsghdr],
    flags: i32,
    once: bool,
    vector: Vector,
    own: impl Fn(&mut [mmsghdr], i32) -> i32,
) -> Option<Moved> {
    let rest = c.rest()?;
    if flags & (MSG_OOB | MSG_ERRQUEUE) != 0 {
        return None;
    }
    let most = if once { 1 } else { msgs.len() };
    let (mut done, mut each) = (0, flags);
    while done < most && rest.unread() > 0 {
        let hdr = msgs[done].msg_hdr;
        // SAFETY: a header of the program's, valid like all that it points to.
        let Some(iov) = (unsafe { vector(&hdr) }) else {
            break;
        };
        let mut buffers = Buffers::new(iov);
        rest.give(&mut buffers, flags);
        let (taken, is_short) = (buffers.done, buffers.left > 0);
        if taken == 0 && is_short {
            break;
        }
        let is_last = done + 1 == most;
        if is_short && goes_on(c, each) && (is_last || flags & MSG_WAITALL != 0) && !rest.fails() {
            let mut room = [crate::buffers::EMPTY; ROOM];
            let left = buffers.rest(&mut room);
            let m = &mut msgs[done].msg_hdr;
            (m.msg_iov, m.msg_iovlen) = (left.as_ptr() as *mut iovec, left.len() as _);
            let n = own(&mut msgs[done..], each);
            rest.keep_error(n as isize);
            let m = &mut msgs[done];
            (m.msg_hdr.msg_iov, m.msg_hdr.msg_iovlen) = (hdr.msg_iov, hdr.msg_iovlen);
            if n <= 0 {
                set_plain(m, flags);
                m.msg_len = 0;
            }
            m.msg_len += taken as u32;
            leave_if_read_out(c, rest);
            return Some(Ok(done + n.max(1) as usize));
        }
        set_plain(&mut msgs[done], flags);
        msgs[done].msg_len = taken as u32;
        done += 1;
        if flags & MSG_WAITFORONE != 0 {
            each |= MSG_DONTWAIT;
        }
    }
    if done == 0 {
        // With bytes left, the first message is one that the kernel refuses.
        return (rest.unread() == 0).then(|| rest.end(c))?;
    }
    if done < most && !rest.fails() {
        let n = own(&mut msgs[done..], each);
        rest.keep_error(n as isize);
        done += n.max(0) as usize;
    }
    leave_if_read_out(c, rest);
    Some(Ok(done))
}

/// It came by the rest alone.
fn set_plain(m: &mut mmsghdr, flags: i32) {
    m.msg_hdr.msg_namelen = 0;
    m.msg_hdr.msg_controllen = 0;
    m.msg_hdr.msg_flags = flags & MSG_CMSG_CLOEXEC;
}

/// Nothing is left: the connection is foreign from here on.
fn leave_if_read_out(c: &Conn, rest: &Rest) {
    if rest.unread() > 0 || rest.fails() {
        return;
    }
    for (fd, h) in table::entries() {
        if h.kind() == Kind::Socket && conn::get(h).is_some_and(|x| core::ptr::eq(x, c)) {
            table::clear_if(fd, h);
        }
    }
}

/// Bytes of the rest that were not given yet.
pub fn unread(h: Handle) -> usize {
    let rest = conn::get(h).and_then(|c| c.rest());
    rest.map_or(0, Rest::unread)
}

/// Is there something to be read before the kernel is asked?
pub fn has_rest(h: Handle) -> bool {
    let rest = conn::get(h).and_then(|c| c.rest());
    rest.is_some_and(|r| r.unread() > 0 || r.fails())
}

impl Rest {
    pub(crate) fn new() -> Rest {
        Rest {
            bytes: Vec::new(),
            at: AtomicUsize::new(0),
            error: AtomicI32::new(0),
            file: -1,
        }
    }

    pub(crate) fn unread(&self) -> usize {
        self.bytes.len() - self.at.load(Ordering::Acquire)
    }

    /// It was read out: its error comes, if there is one.
    fn end(&self, c: &Conn) -> Option<Moved> {
        let e = self.error.swap(0, Ordering::AcqRel);
        leave_if_read_out(c, self);
        (e != 0).then_some(Err(e))
    }

    /// Does an error come after it?
    pub(crate) fn fails(&self) -> bool {
        self.error.load(Ordering::Acquire) != 0
    }

    /// The program's own call, which has ended so, went on behind the rest: the next call tells its error.
    fn keep_error(&self, told: isize) {
        let e = next::errno();
        if told < 0 && !matches!(e, EAGAIN | EINTR | EFAULT) {
            self.error.store(e, Ordering::Release);
        }
    }

    /// Makes the file, once all bytes are there.
    pub(crate) fn write_file(&mut self) {
        let Ok(fd) = headwater_channel::sys::memfd_create(c"headwater", libc::MFD_CLOEXEC) else {
            return;
        };
        sys::write_all(fd, &self.bytes);
        self.file = hidden::hide(fd).unwrap_or(-1);
    }

    /// Without a lock: each thread takes a stretch of its own.
    fn give(&self, buffers: &mut Buffers<'_>, flags: i32) {
        let (all, wanted) = (self.bytes.len(), buffers.left);
        let from = if flags & MSG_PEEK != 0 {
            self.at.load(Ordering::Acquire)
        } else {
            let ahead = |at: usize| Some(at + wanted.min(all - at));
            match self
                .at
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, ahead)
            {
                Ok(at) | Err(at) => at,
            }
        };
        let mut bytes = &self.bytes[from..all.min(from + wanted)];
        if flags & (MSG_PEEK | MSG_TRUNC) == MSG_TRUNC {
            return buffers.advance(bytes.len());
        }
        while !bytes.is_empty() {
            let piece = buffers.piece(bytes.len());
            let n = piece.len();
            piece.copy_from_slice(&bytes[..n]);
            buffers.advance(n);
            bytes = &bytes[n..];
        }
    }
}
