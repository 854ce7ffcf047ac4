//! Messages on UNIX sockets that descriptors go with (SCM_RIGHTS, unix(7)): sent and received here and nowhere else.
//!
//! # Contract
//! The kernel writes no more than the control buffer holds. Every descriptor that it has made of a message is in the [`Received`] or closed
//! by then; those in there are this process's, and closed unless they are taken out. What does not find room is closed by the kernel, which
//! says so.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use syscalls::{Sysno, syscall};

use crate::sys::{self, Result, again};

/// Descriptors in one message at most.
pub const MOST: usize = 8;

const RIGHTS: usize = MOST * size_of::<RawFd>();
const CREDENTIALS: usize = size_of::<libc::ucred>();

/// Room for control messages, aligned as cmsg(3) wants it.
#[repr(C, align(8))]
struct Control([u8; 128]);

const _: () = assert!(space(CREDENTIALS) + space(RIGHTS) <= size_of::<Control>());

/// CMSG_SPACE of cmsg(3).
const fn space(len: usize) -> usize {
    self::len(len).next_multiple_of(align_of::<usize>())
}

/// CMSG_LEN of cmsg(3).
const fn len(len: usize) -> usize {
    size_of::<libc::cmsghdr>().next_multiple_of(align_of::<usize>()) + len
}

/// A descriptor that came with a message; closed when dropped, by the kernel's number for close(2).
#[derive(Debug)]
pub struct Passed(RawFd);

impl Passed {
    /// One that has come otherwise.
    pub fn of(number: RawFd) -> Passed {
        Passed(number)
    }

    pub fn number(&self) -> RawFd {
        self.0
    }

    /// It is the caller's to close.
    pub fn into_number(self) -> RawFd {
        let number = self.0;
        core::mem::forget(self);
        number
    }
}

impl From<Passed> for OwnedFd {
    fn from(passed: Passed) -> OwnedFd {
        // SAFETY: open, and nobody else's.
        unsafe { OwnedFd::from_raw_fd(passed.into_number()) }
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        let _ = sys::close(self.0);
    }
}

/// Who has sent a datagram, as recvmsg(2) names him.
pub struct Sender {
    pub address: libc::sockaddr_un,
    pub len: u32,
}

/// What is wanted besides the bytes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// So many descriptors, [`MOST`] at most; what comes beyond them is closed.
    pub descriptors: usize,
    /// The sender's credentials: on sockets with SO_PASSCRED.
    pub credentials: bool,
}

/// A message as it came.
pub struct Received {
    /// Bytes of it.
    pub len: usize,
    pub descriptors: [Option<Passed>; MOST],
    pub sender: Option<libc::ucred>,
    /// There was more in it than room: descriptors beyond those that were wanted, or for which this process had no numbers.
    pub lost: bool,
    /// Its bytes did not all find room.
    pub cut: bool,
}

/// Sends the parts as one message, with descriptors, [`MOST`] at most, and credentials. They stay the caller's. Never SIGPIPE; EINTR is not
/// told. Errors: those of sendmsg(2).
pub fn send(
    socket: RawFd,
    parts: &[IoSlice<'_>],
    descriptors: &[RawFd],
    credentials: Option<libc::ucred>,
    flags: i32,
) -> Result<usize> {
    let descriptors = &descriptors[..descriptors.len().min(MOST)];
    let mut control = Control([0; 128]);
    let mut used = 0;
    let mut add = |kind: i32, value: *const u8, size: usize| {
        // SAFETY: both kinds together fit (asserted above), at places that are aligned; `value` is readable for `size` bytes.
        unsafe {
            let c = control.0.as_mut_ptr().add(used).cast::<libc::cmsghdr>();
            (*c).cmsg_level = libc::SOL_SOCKET;
            (*c).cmsg_type = kind;
            (*c).cmsg_len = len(size) as _;
            core::ptr::copy_nonoverlapping(value, libc::CMSG_DATA(c), size);
        }
        used += space(size);
    };
    if let Some(me) = &credentials {
        let me: *const libc::ucred = me;
        add(libc::SCM_CREDENTIALS, me.cast(), CREDENTIALS);
    }
    if !descriptors.is_empty() {
        let size = size_of_val(descriptors);
        add(libc::SCM_RIGHTS, descriptors.as_ptr().cast(), size);
    }
    let mut message: libc::msghdr = crate::sys::zeroed();
    // An IoSlice is an iovec (its documentation); the kernel only reads it.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    if used != 0 {
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = used as _;
    }
    let flags = flags | libc::MSG_NOSIGNAL;
    // SAFETY: the message's parts and control messages are valid for the call.
    let sent = || unsafe { syscall!(Sysno::sendmsg, socket, &raw const message, flags) };
    again(|| sent().map_err(|e| e.into_raw()))
}

/// The next message, whose bytes go into the parts, one after the other. EINTR is not told. Errors: those of recvmsg(2).
pub fn receive(
    socket: RawFd,
    parts: &mut [IoSliceMut<'_>],
    wanted: Wanted,
    flags: i32,
) -> Result<Received> {
    receive_by(socket, parts, wanted, None, flags)
}

/// As [`receive`]; tells who has sent it.
pub fn receive_from(
    socket: RawFd,
    parts: &mut [IoSliceMut<'_>],
    wanted: Wanted,
    flags: i32,
) -> Result<(Received, Sender)> {
    let address = crate::sys::zeroed();
    let mut from = Sender { address, len: 0 };
    let received = receive_by(socket, parts, wanted, Some(&mut from), flags)?;
    Ok((received, from))
}

fn receive_by(
    socket: RawFd,
    parts: &mut [IoSliceMut<'_>],
    wanted: Wanted,
    mut from: Option<&mut Sender>,
    flags: i32,
) -> Result<Received> {
    let mut control = Control([0; 128]);
    // Just what is wanted: for what is beyond it the kernel makes no numbers.
    let mut room = 0;
    if wanted.credentials {
        room += space(CREDENTIALS);
    }
    if wanted.descriptors != 0 {
        room += len(wanted.descriptors.min(MOST) * size_of::<RawFd>());
    }
    let mut message: libc::msghdr = crate::sys::zeroed();
    let received = again(|| {
        if let Some(from) = &mut from {
            message.msg_name = (&raw mut from.address).cast();
            message.msg_namelen = size_of::<libc::sockaddr_un>() as u32;
        }
        // An IoSliceMut is an iovec (its documentation).
        message.msg_iov = parts.as_mut_ptr().cast();
        message.msg_iovlen = parts.len() as _;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = room as _;
        let flags = flags | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: what the message names is writable, and borrowed here for the call.
        let received = unsafe { syscall!(Sysno::recvmsg, socket, &raw mut message, flags) };
        received.map_err(|e| e.into_raw())
    })?;
    if let Some(from) = from {
        from.len = message.msg_namelen;
    }
    let mut received = Received {
        len: received,
        descriptors: [const { None }; MOST],
        sender: None,
        lost: message.msg_flags & libc::MSG_CTRUNC != 0,
        cut: message.msg_flags & libc::MSG_TRUNC != 0,
    };
    // SAFETY: the kernel has written whole headers, each followed by what its length says; the descriptors are new ones of ours.
    unsafe {
        each_of_socket(&message, |kind, data, size| match kind {
            libc::SCM_RIGHTS => {
                let passed = numbers(data, size).map(|at| Passed(at.read_unaligned()));
                received.keep(passed, wanted.descriptors);
            }
            libc::SCM_CREDENTIALS if size == CREDENTIALS => {
                received.sender = Some(data.cast::<libc::ucred>().read_unaligned());
            }
            _ => {}
        });
    }
    Ok(received)
}

/// Where the descriptors stand that a message is sent with, or has brought.
///
/// # Safety
/// `message` is a valid message header.
pub unsafe fn each_place(message: *const libc::msghdr, mut f: impl FnMut(*mut RawFd)) {
    // SAFETY: a message header, by the caller's word.
    unsafe {
        each_of_socket(message, |kind, data, size| {
            if kind == libc::SCM_RIGHTS {
                numbers(data, size).for_each(&mut f);
            }
        });
    }
}

/// Type, data and their size of each of a message's control messages of level SOL_SOCKET.
///
/// # Safety
/// As for [`each_place`].
unsafe fn each_of_socket(message: *const libc::msghdr, mut f: impl FnMut(i32, *mut u8, usize)) {
    // SAFETY: a message header, by the caller's word. The macros stay within its control messages.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(message);
        while !c.is_null() {
            if (*c).cmsg_level == libc::SOL_SOCKET {
                let size = ((*c).cmsg_len as usize).saturating_sub(len(0));
                f((*c).cmsg_type, libc::CMSG_DATA(c), size);
            }
            c = libc::CMSG_NXTHDR(message, c);
        }
    }
}

/// As many as there are in so many bytes.
fn numbers(data: *mut u8, size: usize) -> impl Iterator<Item = *mut RawFd> {
    (0..size / size_of::<RawFd>()).map(move |i| data.cast::<RawFd>().wrapping_add(i))
}

impl Received {
    /// As many as are `wanted`; the others are closed.
    fn keep(&mut self, passed: impl Iterator<Item = Passed>, wanted: usize) {
        let mut room = self.descriptors.iter_mut().take(wanted);
        for passed in passed {
            match room.find(|place| place.is_none()) {
                Some(place) => *place = Some(passed),
                None => self.lost = true,
            }
        }
    }

    pub fn take(&mut self, at: usize) -> Option<Passed> {
        self.descriptors.get_mut(at)?.take()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;

    const ON: i32 = 1;

    fn descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
    }

    fn wanted(descriptors: usize, credentials: bool) -> Wanted {
        Wanted {
            descriptors,
            credentials,
        }
    }

    #[test]
    fn what_is_wanted_comes_and_what_comes_beyond_it_is_closed() {
        let (a, b) = UnixDatagram::pair().unwrap();
        let number = a.as_raw_fd();
        let (on, level) = (&ON as *const i32, libc::SOL_SOCKET);
        // SAFETY: a readable integer.
        let set =
            unsafe { libc::setsockopt(b.as_raw_fd(), level, libc::SO_PASSCRED, on.cast(), 4) };
        assert_eq!(set, 0);
        // Other tests of the process may have some open for a moment.
        let before = descriptors();
        for i in 0..100 {
            let (sent, asked) = (i % (MOST + 1), i % 5);
            let parts = [IoSlice::new(b"two "), IoSlice::new(b"parts")];
            assert_eq!(send(number, &parts, &vec![number; sent], None, 0), Ok(9));
            let (mut first, mut second) = ([0; 4], [0; 8]);
            let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
            let wanted = wanted(asked, i % 2 == 0);
            let got = receive(b.as_raw_fd(), &mut parts, wanted, 0).unwrap();
            assert_eq!((got.len, got.cut), (9, false));
            assert_eq!((&first, &second[..5]), (b"two ", &b"parts"[..]));
            let came = got.descriptors.iter().flatten().count();
            if i % 2 == 0 {
                assert_eq!(came, sent.min(asked));
                assert_eq!(got.lost, sent > asked);
                // SAFETY: no arguments.
                assert_eq!(got.sender.unwrap().uid, unsafe { libc::geteuid() });
            } else {
                // The kernel's credentials took some of the room.
                assert!(came <= asked);
            }
        }
        assert!(descriptors() < before + 50);
    }

    #[test]
    fn a_descriptor_that_is_taken_out_is_the_takers() {
        let (a, b) = UnixDatagram::pair().unwrap();
        let number = a.as_raw_fd();
        send(number, &[IoSlice::new(b"x")], &[number], None, 0).unwrap();
        let mut byte = [0];
        let mut parts = [IoSliceMut::new(&mut byte)];
        let mut got = receive(b.as_raw_fd(), &mut parts, wanted(1, false), 0).unwrap();
        let copy = UnixDatagram::from(OwnedFd::from(got.take(0).unwrap()));
        assert!(got.take(0).is_none());
        drop((got, a));
        copy.send(b"y").unwrap();
        assert_eq!(b.recv(&mut byte).unwrap(), 1);
    }
}
