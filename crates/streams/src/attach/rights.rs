//! Descriptors in control messages (SCM_RIGHTS, unix(7)), with a body of eight words and the sender's credentials.
//!
//! # Contract
//! The kernel writes no more than the control buffer holds; descriptors in a [`Received`] are this process's, and closed
//! unless they are taken out.

use headwater_host::{hidden, sys, table};
use libc::c_int;

pub type Body = [u64; 8];
/// Descriptors in one message at most.
pub const MOST: usize = 4;

const RIGHTS: usize = MOST * size_of::<c_int>();
const CREDENTIALS: usize = size_of::<libc::ucred>();

#[repr(C, align(8))]
struct Control([u8; 128]);

// SAFETY: plain arithmetic.
const _: () = assert!(
    unsafe {
        libc::CMSG_SPACE(RIGHTS as u32) as usize + libc::CMSG_SPACE(CREDENTIALS as u32) as usize
    } <= 128
);

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

    /// Takes a descriptor out for the program: the lowest number, open across exec. EMFILE.
    pub fn take_visible(&mut self, at: usize, cloexec: bool) -> sys::Result<c_int> {
        let command = if cloexec {
            libc::F_DUPFD_CLOEXEC
        } else {
            libc::F_DUPFD
        };
        let fd = sys::fcntl(self.fds[at], command, 0)?;
        hidden::close(core::mem::replace(&mut self.fds[at], -1));
        Ok(fd)
    }

    /// Moves the descriptors out of the program's way.
    pub fn hide(&mut self) {
        for fd in &mut self.fds {
            if *fd >= 0 && !table::lookup(*fd).is_some_and(|h| h.kind() == table::Kind::Hidden) {
                *fd = hidden::hide(*fd).unwrap_or(-1);
            }
        }
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
    let mut iov = [
        libc::iovec {
            iov_base: body.as_ptr() as *mut _,
            iov_len: size_of::<Body>(),
        },
        libc::iovec {
            iov_base: more.as_ptr() as *mut _,
            iov_len: more.len(),
        },
    ];
    let fds = &fds[..fds.len().min(MOST)];
    let mut control = Control([0; 128]);
    // SAFETY: msg's pointers are valid for the call, and the control messages fit (asserted above).
    unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = iov.as_mut_ptr();
        msg.msg_iovlen = iov.len() as _;
        msg.msg_control = control.0.as_mut_ptr() as *mut _;
        msg.msg_controllen = control.0.len() as _;
        let mut used = 0;
        let mut add = |kind: c_int, from: *const u8, len: usize| {
            let c = control.0.as_mut_ptr().add(used) as *mut libc::cmsghdr;
            (*c).cmsg_level = libc::SOL_SOCKET;
            (*c).cmsg_type = kind;
            (*c).cmsg_len = libc::CMSG_LEN(len as u32) as _;
            core::ptr::copy_nonoverlapping(from, libc::CMSG_DATA(c), len);
            used += libc::CMSG_SPACE(len as u32) as usize;
        };
        if credentials {
            let me = libc::ucred {
                pid: sys::getpid(),
                uid: sys::getuid(),
                gid: sys::getgid(),
            };
            add(
                libc::SCM_CREDENTIALS,
                &me as *const _ as *const u8,
                CREDENTIALS,
            );
        }
        if !fds.is_empty() {
            add(
                libc::SCM_RIGHTS,
                fds.as_ptr() as *const u8,
                size_of_val(fds),
            );
        }
        msg.msg_controllen = used as _;
        sys::sendmsg(socket, &msg, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT).map(drop)
    }
}

/// The next message, without waiting: EAGAIN. `None` at the end, or for something that is not ours.
pub fn receive(socket: c_int) -> sys::Result<Option<Received>> {
    let got = receive_with(socket, &mut [])?;
    Ok(got.and_then(|(got, more)| (more == 0).then_some(got)))
}

/// As [`receive`], with the bytes that [`send_with`] put behind the body, and how many they are. What is too long is cut.
pub fn receive_with(socket: c_int, more: &mut [u8]) -> sys::Result<Option<(Received, usize)>> {
    receive_by(socket, more, 0)
}

/// As [`receive_with`]; the message stays in front.
pub fn peek_with(socket: c_int, more: &mut [u8]) -> sys::Result<Option<(Received, usize)>> {
    receive_by(socket, more, libc::MSG_PEEK)
}

/// Drops the message in front.
pub fn discard(socket: c_int) -> sys::Result<()> {
    // SAFETY: no name, no data and no control message are asked for.
    unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        sys::recvmsg(socket, &mut msg, libc::MSG_DONTWAIT).map(drop)
    }
}

fn receive_by(
    socket: c_int,
    more: &mut [u8],
    flags: c_int,
) -> sys::Result<Option<(Received, usize)>> {
    let mut got = Received {
        body: [0; 8],
        sender: None,
        fds: [-1; MOST],
        cut: false,
    };
    let mut iov = [
        libc::iovec {
            iov_base: got.body.as_mut_ptr() as *mut _,
            iov_len: size_of::<Body>(),
        },
        libc::iovec {
            iov_base: more.as_mut_ptr() as *mut _,
            iov_len: more.len(),
        },
    ];
    let mut control = Control([0; 128]);
    // SAFETY: msg's pointers are valid for the call; the kernel wrote the control messages that are read.
    let n = unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = iov.as_mut_ptr();
        msg.msg_iovlen = iov.len() as _;
        msg.msg_control = control.0.as_mut_ptr() as *mut _;
        msg.msg_controllen = control.0.len() as _;
        let n = sys::recvmsg(
            socket,
            &mut msg,
            libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC | flags,
        )?;
        got.cut = msg.msg_flags & libc::MSG_CTRUNC != 0;
        let mut c = libc::CMSG_FIRSTHDR(&msg);
        while !c.is_null() {
            let len = ((*c).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            let data = libc::CMSG_DATA(c);
            match (*c).cmsg_type {
                libc::SCM_RIGHTS => got.keep(data as *const c_int, len / size_of::<c_int>()),
                libc::SCM_CREDENTIALS if len == CREDENTIALS => {
                    got.sender = Some(core::ptr::read_unaligned(data as *const libc::ucred));
                }
                _ => {}
            }
            c = libc::CMSG_NXTHDR(&msg, c);
        }
        n
    };
    let more = n.checked_sub(size_of::<Body>());
    Ok(more.map(|more| (got, more)))
}

impl Received {
    /// # Safety
    /// `count` descriptors are at `from`.
    unsafe fn keep(&mut self, from: *const c_int, count: usize) {
        for i in 0..count {
            // SAFETY: one of those that are there, as the caller says.
            let fd = unsafe { core::ptr::read_unaligned(from.add(i)) };
            match self.fds.get_mut(i) {
                Some(slot) => *slot = fd,
                None => hidden::close(fd),
            }
        }
    }
}
