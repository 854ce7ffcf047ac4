//! Buffers of a call, as the program lists them, and flags of calls that take such lists.

use libc::{c_int, c_void, iovec, msghdr, off_t, size_t, socklen_t, ssize_t};

/// Calls with control messages refuse it before anything else; to the others it says nothing.
pub const MSG_CMSG_COMPAT: c_int = i32::MIN;

pub fn one(buf: *const c_void, n: size_t) -> [iovec; 1] {
    [headwater_host::sys::buffer(buf, n)]
}

/// A list that the kernel would not refuse before it looked at the descriptor.
///
/// # Safety
/// As many as it says at `iov`, of the program's, or null.
pub unsafe fn many<'a>(iov: *const iovec, n: usize) -> Option<&'a [iovec]> {
    // SAFETY: as many of the program's, by the caller's word.
    unsafe {
        (n > 0 && n <= 1024 && !iov.is_null())
            .then(|| core::slice::from_raw_parts(iov, n))
            .filter(|v| v.iter().all(|v| v.iov_len <= isize::MAX as usize))
    }
}

/// [`many`] that hold something: of nothing the kernel asks no socket, and says 0.
///
/// # Safety
/// As many as it says at `iov`, of the program's, or null.
pub unsafe fn something<'a>(iov: *const iovec, n: usize) -> Option<&'a [iovec]> {
    // SAFETY: as many of the program's, by the caller's word.
    unsafe { many(iov, n) }.filter(|v| v.iter().any(|v| v.iov_len > 0))
}

/// The length of an address that is no length.
pub fn is_negative<T>(name: *const T, len: socklen_t) -> bool {
    !name.is_null() && (len as i32) < 0
}

/// What a call for many messages has moved.
///
/// # Safety
/// So many have been moved.
pub unsafe fn bytes_of(msgs: *const libc::mmsghdr, n: ssize_t) -> usize {
    // SAFETY: so many have been moved, by the caller's word.
    unsafe {
        (0..n as usize)
            .map(|i| (*msgs.add(i)).msg_len as usize)
            .sum()
    }
}

/// What a message asks to be sent.
///
/// # Safety
/// `msg` is a message of the program's.
pub unsafe fn length(msg: &msghdr) -> usize {
    // SAFETY: the program's message.
    unsafe { many(msg.msg_iov, msg.msg_iovlen) }.map_or(0, headwater_sockets::buffers::length)
}

const RWF_HIPRI: c_int = 1;
const RWF_NOWAIT: c_int = 8;

/// Is it readv(2) or writev(2) with flags, which mean nothing to a socket or stream but for RWF_NOWAIT? At a position the kernel
/// refuses it.
pub fn is_readv(at: off_t, flags: c_int) -> bool {
    at == -1 && flags & !(RWF_NOWAIT | RWF_HIPRI) == 0
}

pub fn dontwait(flags: c_int) -> c_int {
    if flags & RWF_NOWAIT != 0 {
        libc::MSG_DONTWAIT
    } else {
        0
    }
}

/// preadv2(2) and pwritev2(2), of a kind that is read and written so: at a position the kernel refuses it.
macro_rules! as_vectors {
    (|$h:ident, $fd:ident, $iov:ident, $n:ident, $flags:ident| $read:expr, $write:expr) => {
        as_vectors!(preadv2 = $read, |$h, $fd, $iov, $n, $flags|);
        as_vectors!(pwritev2 = $write, |$h, $fd, $iov, $n, $flags|);
    };
    ($name:ident = $does:expr, |$h:ident, $fd:ident, $iov:ident, $n:ident, $flags:ident|) => {
        unsafe fn $name(
            self,
            $h: headwater_host::table::Handle,
            $fd: libc::c_int,
            $iov: *const libc::iovec,
            $n: libc::c_int,
            at: libc::off_t,
            $flags: libc::c_int,
        ) -> libc::ssize_t {
            // SAFETY: the caller's buffers.
            unsafe {
                match $crate::vectors::is_readv(at, $flags) {
                    true => $does,
                    false => $crate::real::$name($fd, $iov, $n, at, $flags),
                }
            }
        }
    };
}
pub(crate) use as_vectors;
