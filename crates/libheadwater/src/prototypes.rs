//! The calls on descriptors that exist as a function of the C library's and as a system call, each a line of one table.

use libc::*;

/// Gives the table to a macro. A line is
/// `which fn name, other names(fd: c_int, arguments) -> result = SYS_number[their places] when;`. `which` says what
/// becomes of a connection that the former image looked after: `used` has this one adopt it. By number, a call is for
/// what the table of descriptors has, with `tracked` for all once it has any, with `always` for all.
macro_rules! prototypes {
    ($to:ident) => {
        $to! {
            used fn read, __read(fd: c_int, buf: *mut c_void, n: size_t) -> ssize_t = SYS_read[1, 2];
            used fn write, __write(fd: c_int, buf: *const c_void, n: size_t) -> ssize_t = SYS_write[1, 2];
            used fn readv(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t = SYS_readv[1, 2];
            used fn writev(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t = SYS_writev[1, 2];
            // By number the position is in two halves, of which a 64-bit machine uses the first.
            used fn preadv2, preadv64v2(fd: c_int, iov: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t = SYS_preadv2[1, 2, 3, 5];
            used fn pwritev2, pwritev64v2(fd: c_int, iov: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t = SYS_pwritev2[1, 2, 3, 5];
            used fn recv, __recv(fd: c_int, buf: *mut c_void, n: size_t, flags: c_int) -> ssize_t;
            used fn send, __send(fd: c_int, buf: *const c_void, n: size_t, flags: c_int) -> ssize_t;
            used fn recvfrom(fd: c_int, buf: *mut c_void, n: size_t, flags: c_int, from: *mut sockaddr, len: *mut socklen_t) -> ssize_t
                = SYS_recvfrom[1, 2, 3, 4, 5];
            used fn sendto(fd: c_int, buf: *const c_void, n: size_t, flags: c_int, to: *const sockaddr, len: socklen_t) -> ssize_t
                = SYS_sendto[1, 2, 3, 4, 5];
            // Descriptors may be in a message on any socket.
            used fn recvmsg(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t = SYS_recvmsg[1, 2] tracked;
            used fn sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t = SYS_sendmsg[1, 2] tracked;
            used fn recvmmsg(fd: c_int, msgs: *mut mmsghdr, n: c_uint, flags: c_int, timeout: *mut timespec) -> c_int
                = SYS_recvmmsg[1, 2, 3, 4] tracked;
            used fn sendmmsg, __sendmmsg(fd: c_int, msgs: *mut mmsghdr, n: c_uint, flags: c_int) -> c_int = SYS_sendmmsg[1, 2, 3] tracked;
            asked fn bind(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int = SYS_bind[1, 2];
            asked fn listen(fd: c_int, backlog: c_int) -> c_int = SYS_listen[1] always;
            asked fn accept(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int = SYS_accept[1, 2] always;
            asked fn accept4(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int = SYS_accept4[1, 2, 3] always;
            asked fn connect, __connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int = SYS_connect[1, 2] always;
            used fn shutdown(fd: c_int, how: c_int) -> c_int = SYS_shutdown[1];
            asked fn getsockname(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int = SYS_getsockname[1, 2];
            asked fn getpeername(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int = SYS_getpeername[1, 2];
            asked fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int
                = SYS_getsockopt[1, 2, 3, 4];
            asked fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int
                = SYS_setsockopt[1, 2, 3, 4];
            asked fn ioctl(fd: c_int, request: c_ulong, arg: usize) -> c_int = SYS_ioctl[1, 2];
        }
    };
}
pub(crate) use prototypes;

/// The C library's. A signal handler may want any of them (signal-safety(7), and more of the kind).
macro_rules! in_libc {
    ($($which:ident fn $name:ident $(, $other:ident)*(fd: c_int $(, $arg:ident: $ty:ty)*) -> $ret:ty
        $(= $number:ident[$($place:literal),*] $($when:ident)?)?;)*
    ) => {
        headwater_host::next_fns! {
            $(fn $name(fd: c_int $(, $arg: $ty)*) -> $ret;)*
        }
    };
}

prototypes!(in_libc);
