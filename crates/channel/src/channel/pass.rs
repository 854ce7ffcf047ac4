//! Passing an end to another process over a UNIX socket: one message of four bytes that carries the four descriptors.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use super::calls;
use super::fds::own;
use super::{Fds, OpenError, Side};

/// First bytes of the message; the side and a zero follow.
const MARK: [u8; 2] = *b"HW";
const COUNT: usize = 4;
/// More than is wanted, so that surplus descriptors are seen and closed.
const MOST: usize = 2 * COUNT;

/// Room for a control message of `MOST` descriptors, aligned as cmsg(3) wants it.
#[repr(C, align(8))]
struct Control([u8; 64]);

const _: () = assert!(size_of::<Control>() >= size_of::<libc::cmsghdr>() + MOST * 4);

impl Fds {
    /// Sends the descriptors over a UNIX socket; waits, unless the socket is non-blocking. The end lives on while the message
    /// is under way. Errors: those of sendmsg(2).
    pub fn send_over(self, socket: impl AsFd) -> Result<(), OpenError> {
        let mut bytes = [MARK[0], MARK[1], self.side as u8, 0];
        let fds = [&self.memfd, &self.bell, &self.peer_bell, &self.shadow].map(|fd| fd.as_raw_fd());
        let mut control = Control([0; 64]);
        let mut part = part(&mut bytes);
        // SAFETY: the header names `part` and `control`, which outlive the call; CMSG_SPACE of four descriptors fits.
        unsafe {
            let mut msg = header(&mut part, &mut control);
            msg.msg_controllen = libc::CMSG_SPACE(size_of_val(&fds) as u32) as usize;
            let cmsg = libc::CMSG_FIRSTHDR(&msg);
            (*cmsg).cmsg_level = libc::SOL_SOCKET;
            (*cmsg).cmsg_type = libc::SCM_RIGHTS;
            (*cmsg).cmsg_len = libc::CMSG_LEN(size_of_val(&fds) as u32) as usize;
            libc::CMSG_DATA(cmsg)
                .cast::<[RawFd; COUNT]>()
                .write_unaligned(fds);
            again(|| calls::sendmsg(socket.as_fd().as_raw_fd(), &msg, libc::MSG_NOSIGNAL))?;
        }
        Ok(())
    }

    /// Receives descriptors that [`send_over`](Fds::send_over) sent. [`OpenError::NotAChannel`] when something else comes, or
    /// the socket is closed. Errors: those of recvmsg(2).
    pub fn receive_from(socket: impl AsFd) -> Result<Fds, OpenError> {
        let mut bytes = [0; 4];
        let mut control = Control([0; 64]);
        let mut part = part(&mut bytes);
        // SAFETY: the header names `part` and `control`, which outlive the call.
        let (n, fds, whole) = unsafe {
            let mut msg = header(&mut part, &mut control);
            let flags = libc::MSG_CMSG_CLOEXEC;
            let n = again(|| calls::recvmsg(socket.as_fd().as_raw_fd(), &mut msg, flags))?;
            (n, received(&msg), msg.msg_flags & libc::MSG_CTRUNC == 0)
        };
        let side = match bytes[2] {
            0 => Side::First,
            1 => Side::Second,
            _ => return Err(OpenError::NotAChannel),
        };
        let fds: [OwnedFd; COUNT] = fds.try_into().map_err(|_| OpenError::NotAChannel)?;
        if n != bytes.len() || bytes[..2] != MARK || !whole {
            return Err(OpenError::NotAChannel);
        }
        let [memfd, bell, peer_bell, shadow] = fds;
        Ok(Fds {
            side,
            memfd,
            bell,
            peer_bell,
            shadow,
        })
    }
}

fn part(bytes: &mut [u8; 4]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    }
}

fn header(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all zeroes is a valid msghdr.
    let mut msg: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    msg.msg_iov = part;
    msg.msg_iovlen = 1;
    msg.msg_control = control.0.as_mut_ptr().cast();
    msg.msg_controllen = control.0.len();
    msg
}

/// All descriptors of a message, owned: those not wanted are closed when dropped.
///
/// # Safety
/// `msg` was filled by recvmsg(2).
unsafe fn received(msg: &libc::msghdr) -> Vec<OwnedFd> {
    let mut fds = Vec::new();
    // SAFETY: the kernel has written whole headers, each followed by what its length says; the descriptors are new ones of ours.
    unsafe {
        let mut cmsg = libc::CMSG_FIRSTHDR(msg);
        while !cmsg.is_null() {
            if ((*cmsg).cmsg_level, (*cmsg).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = (*cmsg).cmsg_len - libc::CMSG_LEN(0) as usize;
                let first = libc::CMSG_DATA(cmsg).cast::<RawFd>();
                for i in 0..bytes / size_of::<RawFd>() {
                    fds.push(own(first.add(i).read_unaligned()));
                }
            }
            cmsg = libc::CMSG_NXTHDR(msg, cmsg);
        }
    }
    fds
}

/// Repeats a call that a signal interrupted before it did anything.
fn again(mut call: impl FnMut() -> crate::sys::Result<usize>) -> crate::sys::Result<usize> {
    loop {
        match call() {
            Err(libc::EINTR) => {}
            other => return other,
        }
    }
}
