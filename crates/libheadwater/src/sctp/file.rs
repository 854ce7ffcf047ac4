//! SCTP sockets of our own in the calls on descriptors.

use core::ptr::{null, null_mut};

use headwater_host::table::Handle;
use headwater_sctp_sockets::face::{self, Closing};
use libc::{
    c_int, c_uint, c_ulong, c_void, iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t,
    timespec,
};

use crate::calls::{Calls, as_called};
use crate::descriptor::{Asked, File, Sctp, then};
use crate::real;
use crate::sctp;
use crate::vectors::{MSG_CMSG_COMPAT, as_vectors, dontwait, one};

/// Of calls with a message header the kernel refuses that flag.
macro_rules! unless_compatible {
    ($($flags:ident of $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {$(
        unsafe fn $name(self, h: Handle, fd: c_int $(, $arg: $ty)*) -> $ret {
            // SAFETY: the caller's arguments.
            unsafe {
                match $flags & MSG_CMSG_COMPAT {
                    0 => sctp::$name(h $(, $arg)*),
                    _ => real::$name(fd $(, $arg)*),
                }
            }
        }
    )*};
}

impl Calls for Sctp {
    as_called! { sctp:
        read(buf: *mut c_void, n: size_t) -> ssize_t = readv(one(buf, n).as_ptr(), 1);
        write(buf: *const c_void, n: size_t) -> ssize_t = sendv(one(buf, n).as_ptr(), 1, 0);
        readv(iov: *const iovec, n: c_int) -> ssize_t = readv(iov, n as usize);
        writev(iov: *const iovec, n: c_int) -> ssize_t = sendv(iov, n as usize, 0);
        recv(buf: *mut c_void, n: size_t, flags: c_int) -> ssize_t
            = recvfrom(&one(buf, n), flags & !MSG_CMSG_COMPAT, null_mut(), null_mut());
        send(buf: *const c_void, n: size_t, flags: c_int) -> ssize_t
            = sendto(&one(buf, n), flags & !MSG_CMSG_COMPAT, null(), 0);
        recvfrom(buf: *mut c_void, n: size_t, flags: c_int, from: *mut sockaddr, len: *mut socklen_t) -> ssize_t
            = recvfrom(&one(buf, n), flags & !MSG_CMSG_COMPAT, from, len);
        sendto(buf: *const c_void, n: size_t, flags: c_int, to: *const sockaddr, len: socklen_t) -> ssize_t
            = sendto(&one(buf, n), flags & !MSG_CMSG_COMPAT, to, len);
        bind(addr: *const sockaddr, len: socklen_t) -> c_int = bind(addr, len);
        accept(addr: *mut sockaddr, len: *mut socklen_t) -> c_int = accept(addr, len, 0);
        accept4(addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int = accept(addr, len, flags);
        connect(addr: *const sockaddr, len: socklen_t) -> c_int = connect(addr, len);
        getsockname(addr: *mut sockaddr, len: *mut socklen_t) -> c_int = names(false, addr, len);
        getpeername(addr: *mut sockaddr, len: *mut socklen_t) -> c_int = names(true, addr, len);
        getsockopt(level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int
            = getsockopt(level, name, value, len);
        setsockopt(level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int
            = setsockopt(level, name, value, len);
    }

    unsafe fn listen(self, h: Handle, _fd: c_int, backlog: c_int) -> c_int {
        sctp::listen(h, backlog)
    }

    unsafe fn shutdown(self, h: Handle, _fd: c_int, how: c_int) -> c_int {
        sctp::shutdown(h, how)
    }

    as_vectors!(
        |h, fd, iov, n, flags| sctp::readv(h, iov, n as usize),
        sctp::sendv(h, iov, n as usize, dontwait(flags))
    );

    unless_compatible! {
        flags of recvmsg(msg: *mut msghdr, flags: c_int) -> ssize_t;
        flags of sendmsg(msg: *const msghdr, flags: c_int) -> ssize_t;
        flags of recvmmsg(msgs: *mut mmsghdr, n: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
        flags of sendmmsg(msgs: *mut mmsghdr, n: c_uint, flags: c_int) -> c_int;
    }

    unsafe fn ioctl(self, h: Handle, fd: c_int, request: c_ulong, arg: usize) -> c_int {
        // SAFETY: the caller's argument, where the kernel has found a number if the request is FIONBIO.
        unsafe {
            if let Some(r) = sctp::ioctl(h, request, arg) {
                return r;
            }
            let r = real::ioctl(fd, request, arg);
            if r >= 0 && arg != 0 && request == libc::FIONBIO {
                sctp::set_nonblocking(h, *(arg as *const c_int) != 0);
            }
            r
        }
    }
}

impl File for Sctp {
    fn goes(self, h: Handle, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
        let closing = face::closing(fd, h);
        then(call(), Some(closing), Closing::finish)
    }

    fn close(self, h: Handle, fd: c_int) -> c_int {
        let r = self.goes(h, fd, || real::close(fd));
        if (0..=2).contains(&fd) {
            crate::stdio::follow(fd);
        }
        r
    }

    fn copied(self, h: Handle, new: c_int) {
        face::duplicated(h, new);
        crate::stdio::follow(new);
    }

    fn fcntl(self, h: Handle, _fd: c_int, asked: Asked, call: impl FnOnce() -> c_int) -> c_int {
        let r = call();
        if r >= 0
            && let Some(flags) = asked.flags()
        {
            sctp::set_nonblocking(h, flags & libc::O_NONBLOCK != 0);
        }
        r
    }

    fn is_socket(self, _h: Handle) -> bool {
        true
    }

    fn is_beyond_libc(self, _h: Handle) -> bool {
        true
    }
}
