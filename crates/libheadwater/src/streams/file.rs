//! Streams, and transport endpoints, in the calls on descriptors.

use headwater_endpoints::endpoint::{self, Endpoint};
use headwater_endpoints::stream::{TI_CAPABILITY, TI_GETINFO};
use headwater_host::sys;
use headwater_host::table::Handle;
use headwater_streams::head::life;
use libc::{
    c_int, c_uint, c_ulong, c_void, iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t,
    timespec,
};

use crate::calls::{Calls, as_called};
use crate::descriptor::{Asked, Endpoints, File, Streams, then};
use crate::streams::{self, at};
use crate::vectors::as_vectors;
use crate::{real, refuse};

/// send(2) and its kind are for sockets: what carries a stream is not the program's to use.
macro_rules! no_sockets {
    () => {
        no_sockets! {
            recv(*mut c_void, size_t, c_int) -> ssize_t;
            send(*const c_void, size_t, c_int) -> ssize_t;
            recvfrom(*mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
            sendto(*const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t;
            recvmsg(*mut msghdr, c_int) -> ssize_t;
            sendmsg(*const msghdr, c_int) -> ssize_t;
            recvmmsg(*mut mmsghdr, c_uint, c_int, *mut timespec) -> c_int;
            sendmmsg(*mut mmsghdr, c_uint, c_int) -> c_int;
        }
    };
    ($($name:ident($($ty:ty),*) -> $ret:ty;)*) => {$(
        unsafe fn $name(self, _: Handle, _: c_int $(, _: $ty)*) -> $ret {
            refuse(libc::ENOTSOCK)
        }
    )*};
}

impl Calls for Streams {
    as_called! { streams:
        #[inline(always)]
        read(buf: *mut c_void, n: size_t) -> ssize_t = read(buf, n);
        #[inline(always)]
        write(buf: *const c_void, n: size_t) -> ssize_t = write(buf, n);
        readv(iov: *const iovec, n: c_int) -> ssize_t = readv(iov, n);
        writev(iov: *const iovec, n: c_int) -> ssize_t = writev(iov, n);
    }

    as_vectors!(
        |h, fd, iov, n, flags| streams::readv(h, iov, n),
        streams::writev(h, iov, n)
    );

    no_sockets!();

    unsafe fn ioctl(self, h: Handle, fd: c_int, request: c_ulong, arg: usize) -> c_int {
        // SAFETY: the caller's argument.
        unsafe { streams::ioctl(fd, h, request, arg) }
    }
}

impl File for Streams {
    fn goes(self, h: Handle, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
        let after = streams::closing(fd, h);
        then(call(), after, life::After::finish)
    }

    /// Never a cancellation point.
    fn close(self, h: Handle, fd: c_int) -> c_int {
        self.goes(h, fd, || {
            let _ = sys::close(fd);
            0
        })
    }

    fn copied(self, h: Handle, new: c_int) {
        life::duplicated(h, new);
        crate::stdio::follow(new);
    }

    fn fcntl(self, h: Handle, _fd: c_int, asked: Asked, call: impl FnOnce() -> c_int) -> c_int {
        let set = || streams::set_flags(h, asked.arg as c_int);
        // What the opening has for itself the kernel would change for all.
        if asked.cmd == libc::F_SETFL && streams::owns_flags(h) {
            return set();
        }
        match (asked.cmd, call()) {
            (libc::F_GETFL, r) if r >= 0 => streams::flags(h, r),
            (libc::F_SETFL, r) if r >= 0 => set(),
            (_, r) => r,
        }
    }

    fn is_beyond_libc(self, _h: Handle) -> bool {
        true
    }
}

/// Reading and writing by messages: the endpoint becomes a stream, which it is called as from then on.
macro_rules! as_streams {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {$(
        unsafe fn $name(self, _h: Handle, fd: c_int $(, $arg: $ty)*) -> $ret {
            // SAFETY: the caller's arguments.
            unsafe {
                match at(fd) {
                    Some(h) => Streams.$name(h, fd $(, $arg)*),
                    None => real::$name(fd $(, $arg)*),
                }
            }
        }
    )*};
}

impl Calls for Endpoints {
    as_streams! {
        read(buf: *mut c_void, n: size_t) -> ssize_t;
        write(buf: *const c_void, n: size_t) -> ssize_t;
        readv(iov: *const iovec, n: c_int) -> ssize_t;
        writev(iov: *const iovec, n: c_int) -> ssize_t;
    }

    as_vectors!(
        |h, fd, iov, n, flags| Endpoints.readv(h, fd, iov, n),
        Endpoints.writev(h, fd, iov, n)
    );

    no_sockets!();

    unsafe fn ioctl(self, h: Handle, fd: c_int, request: c_ulong, arg: usize) -> c_int {
        // SAFETY: the caller's argument, a number where the request is FIONBIO.
        unsafe {
            if let Some(e) = endpoint::get(h)
                && request == libc::FIONBIO
                && arg != 0
            {
                e.set_nonblocking(*(arg as *const c_int) != 0);
                return 0;
            }
            let stream = is_streamio(request).then(|| at(fd)).flatten();
            match stream {
                Some(h) => streams::ioctl(fd, h, request, arg),
                None => real::ioctl(fd, request, arg),
            }
        }
    }
}

impl File for Endpoints {
    /// Once the program's number is gone, closing the provider's ends the connection.
    fn goes(self, h: Handle, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
        let e = endpoint::get(h).inspect(|e| e.forget(fd));
        then(call(), e, Endpoint::let_go)
    }

    fn copied(self, h: Handle, new: c_int) {
        if let Some(e) = endpoint::get(h) {
            e.duplicated(new);
        }
    }

    /// The provider's own descriptor, of which this is a copy, does not wait.
    fn fcntl(self, h: Handle, _fd: c_int, asked: Asked, call: impl FnOnce() -> c_int) -> c_int {
        match (endpoint::get(h), asked.cmd) {
            (Some(e), libc::F_SETFL) => {
                e.set_nonblocking(asked.arg as c_int & libc::O_NONBLOCK != 0);
                0
            }
            (Some(e), libc::F_GETFL) if e.is_nonblocking() => libc::O_RDWR | libc::O_NONBLOCK,
            (Some(_), libc::F_GETFL) => libc::O_RDWR,
            _ => call(),
        }
    }
}

/// A request of streamio(7I), or of the timod(7M) that an endpoint seems to have on it?
fn is_streamio(request: c_ulong) -> bool {
    let timods = TI_GETINFO as c_ulong..=TI_CAPABILITY as c_ulong;
    request >> 8 == b'S' as c_ulong || timods.contains(&request)
}
