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

/// What receiving and sending have alike. `$by` serves a connection; `own` is the program's call, for as long as the kernel serves it, and
/// `again` begins it anew, where a handler or another thread has given its number to something else.
macro_rules! one_way {
    ($moves:ident, $kept:ident by $by:path: $vector:ident, $positioned:ident, $flagged:ident of $buf:ty) => {
        #[inline]
        unsafe fn $moves(
            h: Handle,
            fd: c_int,
            iov: &[iovec],
            flags: c_int,
            own: Own<'_>,
            again: impl FnOnce() -> ssize_t,
        ) -> ssize_t {
            // SAFETY: the program's buffers.
            let told = conn::get(h).and_then(|c| unsafe { $by(c, fd, iov, flags, own) });
            ended(told, fd, h, again, || own(fd, iov))
        }

        /// The same, as a step of a call on `fd` that keeps its connection.
        ///
        /// # Safety
        /// `iov` are the program's buffers.
        pub(super) unsafe fn $kept(
            c: &'static conn::Conn,
            fd: c_int,
            iov: &[iovec],
            flags: c_int,
            own: Own<'_>,
        ) -> ssize_t {
            // SAFETY: the program's buffers.
            match unsafe { $by(c, fd, iov, flags, own) } {
                Some(r) => result(r),
                None => own(c.fd(), iov),
            }
        }

        #[inline(never)]
        pub unsafe fn $vector(h: Handle, fd: c_int, iov: *const iovec, n: c_int) -> ssize_t {
            // SAFETY: the program's buffers.
            unsafe {
                let Some(v) = something(iov, n as usize) else {
                    return real::$vector(fd, iov, n);
                };
                let own: Own<'_> = &|fd, v| real::$vector(fd, v.as_ptr(), v.len() as c_int);
                $moves(h, fd, v, 0, own, || calls::$vector(fd, iov, n))
            }
        }

        #[inline(never)]
        pub unsafe fn $positioned(
            h: Handle,
            fd: c_int,
            iov: *const iovec,
            n: c_int,
            at: off_t,
            flags: c_int,
        ) -> ssize_t {
            // SAFETY: the program's buffers.
            unsafe {
                let Some(v) = something(iov, n as usize).filter(|_| is_readv(at, flags)) else {
                    return real::$positioned(fd, iov, n, at, flags);
                };
                let own: Own<'_> =
                    &|fd, v| real::$positioned(fd, v.as_ptr(), v.len() as c_int, -1, flags);
                let again = || calls::$positioned(fd, iov, n, at, flags);
                $moves(h, fd, v, dontwait(flags), own, again)
            }
        }

        #[inline(never)]
        pub unsafe fn $flagged(
            h: Handle,
            fd: c_int,
            buf: $buf,
            n: size_t,
            flags: c_int,
        ) -> ssize_t {
            // SAFETY: the program's bytes, or its room for them.
            unsafe {
                let flags = flags & !MSG_CMSG_COMPAT;
                let own: Own<'_> = &|fd, v| real::$flagged(fd, v[0].iov_base, v[0].iov_len, flags);
                let again = || calls::$flagged(fd, buf, n, flags);
                $moves(h, fd, &one(buf, n), flags, own, again)
            }
        }
    };
}

mod between;
mod receive;
mod send;

pub use between::{sendfile, splice};

/// A verb that takes the call's own arguments.
macro_rules! as_called {
    ($($module:ident::$name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {$(
        #[inline(always)]
        unsafe fn $name(self, h: Handle, fd: c_int $(, $arg: $ty)*) -> $ret {
            // SAFETY: the caller's arguments.
            unsafe { $module::$name(h, fd $(, $arg)*) }
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

fn is_socket(fd: c_int) -> bool {
    table::lookup(fd).is_some_and(|h| of_kind!(h, is_socket()))
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
        next::keep_errno(|| pins::unpin(c, pin));
    }
    told
}
