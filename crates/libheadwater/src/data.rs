//! Calls that move data: what receiving, sending and moving on have in common.

use headwater_host::next;
use headwater_host::table::{self, Handle};
use headwater_sockets::{conn, pins};
use libc::{
    c_int, c_uint, c_ulong, c_void, iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t,
    ssize_t, timespec,
};

use crate::calls::Calls;
use crate::descriptor::{Connections, File, of_kind};
use crate::files::{self, Now};
use crate::result;

mod between;
mod receive;
mod send;

pub use between::{sendfile, splice};

/// What these calls do on sockets that are none of ours, and on what is no socket.
pub mod foreign {
    pub use super::receive::{recvmmsg, recvmsg};
    pub use super::send::{sendmmsg, sendmsg};
}

/// A verb that takes the call's own arguments.
macro_rules! as_called {
    ($($module:ident::$name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {$(
        #[inline(always)]
        unsafe fn $name(self, h: Handle, fd: c_int $(, $arg: $ty)*) -> $ret {
            // SAFETY: the caller's arguments.
            unsafe { $module::of_connection::$name(h, fd $(, $arg)*) }
        }
    )*};
}

impl Calls for Connections {
    unsafe fn ioctl(self, _h: Handle, fd: c_int, request: c_ulong, arg: usize) -> c_int {
        // SAFETY: the caller's argument.
        unsafe { crate::descriptor::ioctl(fd, request, arg) }
    }

    as_called! {
        receive::read(buf: *mut c_void, n: size_t) -> ssize_t;
        receive::readv(iov: *const iovec, n: c_int) -> ssize_t;
        receive::preadv2(iov: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t;
        receive::recv(buf: *mut c_void, n: size_t, flags: c_int) -> ssize_t;
        receive::recvfrom(buf: *mut c_void, n: size_t, flags: c_int, from: *mut sockaddr, len: *mut socklen_t) -> ssize_t;
        receive::recvmsg(msg: *mut msghdr, flags: c_int) -> ssize_t;
        receive::recvmmsg(msgs: *mut mmsghdr, n: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
        send::write(buf: *const c_void, n: size_t) -> ssize_t;
        send::writev(iov: *const iovec, n: c_int) -> ssize_t;
        send::pwritev2(iov: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t;
        send::send(buf: *const c_void, n: size_t, flags: c_int) -> ssize_t;
        send::sendto(buf: *const c_void, n: size_t, flags: c_int, to: *const sockaddr, len: socklen_t) -> ssize_t;
        send::sendmsg(msg: *const msghdr, flags: c_int) -> ssize_t;
        send::sendmmsg(msgs: *mut mmsghdr, n: c_uint, flags: c_int) -> c_int;
    }
}

/// Calls with control messages refuse it before anything else; to the others it says nothing.
pub const MSG_CMSG_COMPAT: c_int = i32::MIN;

/// Was a call refused as on what is no socket? Its number may stand for something else by now.
#[inline]
fn is_refused(r: Result<usize, i32>) -> bool {
    matches!(r, Err(libc::ENOTSOCK | libc::EBADF))
}

/// What a call on the socket `h` comes to that was `told` this; where it was told nothing it is `own`. It begins `again` where its
/// number stands for something else by now.
#[inline]
fn ended(
    told: Option<Result<usize, i32>>,
    fd: c_int,
    h: Handle,
    again: impl FnOnce() -> ssize_t,
    own: impl FnOnce() -> ssize_t,
) -> ssize_t {
    match told {
        Some(r) if is_refused(r) => anew(fd, h, again, own).unwrap_or_else(|| result(r)),
        Some(r) => result(r),
        None => own(),
    }
}

/// What a call of several steps was told.
fn told(r: ssize_t) -> Option<Result<usize, i32>> {
    Some(if r < 0 {
        Err(next::errno())
    } else {
        Ok(r as usize)
    })
}

/// A call on the socket `h` that was refused, for what has its number by now: `own` of the kernel's. `None`: `h` has it still.
#[cold]
fn anew(
    fd: c_int,
    h: Handle,
    again: impl FnOnce() -> ssize_t,
    own: impl FnOnce() -> ssize_t,
) -> Option<ssize_t> {
    match files::now(fd, h) {
        Now::Same => None,
        Now::Ours => Some(again()),
        Now::Kernels => Some(own()),
    }
}

fn refuse(errno: c_int) -> ssize_t {
    next::set_errno(errno);
    -1
}

/// The length of an address that is no length.
fn is_negative<T>(name: *const T, len: socklen_t) -> bool {
    !name.is_null() && (len as i32) < 0
}

/// What a call for many messages has moved.
unsafe fn bytes_of(msgs: *const libc::mmsghdr, n: ssize_t) -> usize {
    // SAFETY: so many have been moved, by the caller's word.
    unsafe {
        (0..n as usize)
            .map(|i| (*msgs.add(i)).msg_len as usize)
            .sum()
    }
}

fn is_socket(fd: c_int) -> bool {
    table::lookup(fd).is_some_and(|h| of_kind!(h, is_socket()))
}

pub fn one(buf: *const c_void, n: size_t) -> [iovec; 1] {
    [iovec {
        iov_base: buf as *mut c_void,
        iov_len: n,
    }]
}

/// A list that the kernel would not refuse before it looked at the descriptor.
unsafe fn many<'a>(iov: *const iovec, n: usize) -> Option<&'a [iovec]> {
    // SAFETY: as many of the program's, by the caller's word.
    unsafe {
        (n > 0 && n <= 1024 && !iov.is_null())
            .then(|| core::slice::from_raw_parts(iov, n))
            .filter(|v| v.iter().all(|v| v.iov_len <= isize::MAX as usize))
    }
}

/// [`many`] that hold something: of nothing the kernel asks no socket, and says 0.
unsafe fn something<'a>(iov: *const iovec, n: usize) -> Option<&'a [iovec]> {
    // SAFETY: as many of the program's, by the caller's word.
    unsafe { many(iov, n) }.filter(|v| v.iter().any(|v| v.iov_len > 0))
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

/// A call of several steps: whoever closes the number ends none that has begun, and what it means from then on is none of this call's.
fn keeping<R>(h: Handle, call: impl FnOnce(Option<&'static conn::Conn>) -> R) -> R {
    let here = 0u8;
    let held = conn::get(h).and_then(|c| {
        let pin = pins::pin(c, &c.view(&pins::entered())?, (&raw const here).addr())?;
        Some((c, pin))
    });
    let told = call(held.map(|held| held.0));
    if let Some((c, pin)) = held {
        let errno = next::errno();
        pins::unpin(c, pin);
        next::set_errno(errno);
    }
    told
}

/// What a message asks to be sent.
///
/// # Safety
/// `msg` is a message of the program's.
pub unsafe fn length(msg: &msghdr) -> usize {
    // SAFETY: the program's message.
    unsafe { many(msg.msg_iov, msg.msg_iovlen) }.map_or(0, headwater_sockets::buffers::length)
}
