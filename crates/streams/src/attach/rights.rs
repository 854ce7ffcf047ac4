//! Descriptors in control messages (SCM_RIGHTS, unix(7)), with a body of eight words and the sender's credentials.
//!
//! # Contract
//! Descriptors in a [`Received`] are this process's, and closed unless they are taken out.

use std::io::{IoSlice, IoSliceMut};

use headwater_channel::pass::{self, Passed, Wanted};
use headwater_host::{hidden, sys, table};
use libc::c_int;

use crate::pipe;

pub type Body = [u64; 8];

/// These words, and zeros.
pub fn body<const N: usize>(words: [u64; N]) -> Body {
    core::array::from_fn(|i| words.get(i).copied().unwrap_or(0))
}

/// Descriptors in one message at most.
pub const MOST: usize = 4;

/// A message as it came.
pub struct Received {
    pub body: Body,
    /// Only on sockets with SO_PASSCRED.
    pub sender: Option<libc::ucred>,
    fds: [c_int; MOST],
    /// Descriptors were lost on the way, since this process has too many.
    pub cut: bool,
}

impl Received {
    pub fn has(&self, count: usize) -> bool {
        self.fds[..count].iter().all(|&fd| fd >= 0)
    }

    /// Takes a descriptor out, close-on-exec; -1 if there is none.
    pub fn take(&mut self, at: usize) -> c_int {
        let fd = core::mem::replace(&mut self.fds[at], -1);
        if fd >= 0 {
            table::clear(fd);
        }
        fd
    }

    /// Takes the first descriptor out for the program, which does not know it yet: the lowest number. EMFILE.
    pub fn take_visible(&mut self, cloexec: bool) -> sys::Result<Passed> {
        let fd = pipe::duplicate(self.fds[0], cloexec)?;
        hidden::close(core::mem::replace(&mut self.fds[0], -1));
        Ok(Passed::of(fd))
    }

    /// Moves the descriptors out of the program's way. EMFILE: not all of them are left.
    pub fn hide(&mut self) -> sys::Result<()> {
        for fd in &mut self.fds {
            if *fd >= 0 && !table::lookup(*fd).is_some_and(|h| h.kind() == table::Kind::Hidden) {
                *fd = hidden::hide_or_keep(core::mem::replace(fd, -1))?;
            }
        }
        Ok(())
    }

    /// The same with descriptors of its own. EMFILE.
    pub fn copy(&self) -> sys::Result<Received> {
        let mut copy = Received {
            fds: [-1; MOST],
            ..*self
        };
        for (fd, copied) in self.fds.into_iter().zip(&mut copy.fds) {
            if fd >= 0 {
                *copied = sys::dup_above(fd, 0).and_then(hidden::hide_or_keep)?;
            }
        }
        Ok(copy)
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        for fd in self.fds {
            hidden::close(fd);
        }
    }
}

/// Sends without waiting, as the process that we effectively are.
pub fn send(socket: c_int, body: &Body, fds: &[c_int], credentials: bool) -> sys::Result<()> {
    send_with(socket, body, &[], fds, credentials)
}

/// As [`send`], with further bytes behind the body.
pub fn send_with(
    socket: c_int,
    body: &Body,
    more: &[u8],
    fds: &[c_int],
    credentials: bool,
) -> sys::Result<()> {
    let me = || libc::ucred {
        pid: sys::getpid(),
        uid: sys::getuid(),
        gid: sys::getgid(),
    };
    // SAFETY: words, as the bytes that they are.
    let body = unsafe { core::slice::from_raw_parts(body.as_ptr().cast(), size_of::<Body>()) };
    pass::send(
        socket,
        &[IoSlice::new(body), IoSlice::new(more)],
        &fds[..fds.len().min(MOST)],
        credentials.then(me),
        libc::MSG_DONTWAIT,
    )
    .map(drop)
}

/// The next message, without waiting: EAGAIN. `None` at the end, or for something that is not ours.
pub fn receive(socket: c_int) -> sys::Result<Option<Received>> {
    let got = receive_with(socket, &mut [])?;
    Ok(got.and_then(|(got, more)| (more == 0).then_some(got)))
}

/// As [`receive`], with the bytes that [`send_with`] put behind the body, and how many they are. What is too long is cut.
pub fn receive_with(socket: c_int, more: &mut [u8]) -> sys::Result<Option<(Received, usize)>> {
    let (got, len) = receive_by(socket, more, 0)?;
    Ok(behind(len).map(|more| (got, more)))
}

/// The next message that may be ours, without waiting: EAGAIN. It stays in front; shorter ones before it are dropped. `None` at the end. Of
/// a socket with SO_PASSCRED.
pub fn peek(socket: c_int) -> sys::Result<Option<Received>> {
    loop {
        let (got, len) = receive_by(socket, &mut [], libc::MSG_PEEK)?;
        if behind(len).is_some() {
            return Ok(Some(got));
        }
        // One of no bytes has a sender all the same.
        if len == 0 && got.sender.is_none() {
            return Ok(None);
        }
        discard(socket)?;
    }
}

/// As [`receive_with`]; the message stays in front.
pub fn peek_with(socket: c_int, more: &mut [u8]) -> sys::Result<Option<(Received, usize)>> {
    let (got, len) = receive_by(socket, more, libc::MSG_PEEK)?;
    Ok(behind(len).map(|more| (got, more)))
}

/// Drops the message in front.
pub fn discard(socket: c_int) -> sys::Result<()> {
    // SAFETY: no name, no data and no control message are asked for.
    unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        sys::recvmsg(socket, &mut msg, libc::MSG_DONTWAIT).map(drop)
    }
}

/// Bytes behind the body in a message of so many; `None`: there is no whole body.
fn behind(len: usize) -> Option<usize> {
    len.checked_sub(size_of::<Body>())
}

/// A message, and its bytes.
fn receive_by(socket: c_int, more: &mut [u8], flags: c_int) -> sys::Result<(Received, usize)> {
    let mut body = [0; size_of::<Body>()];
    let wanted = Wanted {
        descriptors: MOST,
        credentials: true,
    };
    let parts = &mut [IoSliceMut::new(&mut body), IoSliceMut::new(more)];
    let mut came = pass::receive(socket, parts, wanted, libc::MSG_DONTWAIT | flags)?;
    let mut got = Received {
        // SAFETY: words of any value, from as many bytes.
        body: unsafe { body.as_ptr().cast::<Body>().read_unaligned() },
        sender: came.sender,
        fds: core::array::from_fn(|i| came.take(i).map_or(-1, Passed::into_number)),
        cut: false,
    };
    // More than there may be is the sender's fault.
    got.cut = came.lost && !got.has(MOST);
    Ok((got, came.len))
}
