//! The calls on descriptors that exist as a function of the C library's and as a system call, each a line of one table: what is
//! exported and by which names, the C library's own, what each kind of descriptor does, and what syscall(2) does.

#![expect(
    non_upper_case_globals,
    reason = "the numbers' names are the C library's"
)]

use headwater_host::table::{self, Handle, Kind};
use libc::*;

use crate::aliases::aliases;
use crate::descriptor::{Connections, Streams, of_kind};
use crate::round::Arguments;

/// To a descriptor that is none of ours, or of a kind that leaves a call to the kernel.
mod foreign {
    pub use crate::data::foreign::{recvmmsg, recvmsg, sendmmsg, sendmsg};
    pub use crate::real::{
        bind, getpeername, getsockname, ioctl, preadv2, pwritev2, read, readv, recv, recvfrom,
        send, sendto, write, writev,
    };
    pub use crate::sockets::{accept, accept4, connect, getsockopt, listen, setsockopt, shutdown};
}

/// A line is `which fn name, other names(fd: c_int, arguments) -> result = SYS_number[their places] when;`. `which` says what becomes of
/// a connection that the former image looked after: `used` has this one adopt it. By number, a call is for what the table of descriptors
/// has, with `tracked` for all once it has any, with `always` for all.
macro_rules! calls {
    ($($which:ident fn $name:ident $(, $other:ident)*(fd: c_int $(, $arg:ident: $ty:ty)*) -> $ret:ty
        $(= $number:ident[$($place:literal),*] $($when:ident)?)?;)*
    ) => {
        /// The C library's. A signal handler may want any of them (signal-safety(7), and more of the kind).
        pub mod in_libc {
            use super::*;

            headwater_host::next_fns! {
                $(fn $name(fd: c_int $(, $arg: $ty)*) -> $ret;)*
            }
        }

        aliases! { $($($other = calls::$name,)*)* }

        /// What a kind of descriptor does in each call. What it does not say is done as to a foreign one.
        #[allow(unused_unsafe, reason = "of calls that take nothing but numbers")]
        #[allow(clippy::too_many_arguments, reason = "a call's own, and what it is made on")]
        pub trait Calls: Copy {
            $(
                /// # Safety
                #[doc = concat!("As ", stringify!($name), "(2) asks of its caller: its buffers and addresses are as long as it says.")]
                #[inline(always)]
                unsafe fn $name(self, _h: Handle, fd: c_int $(, $arg: $ty)*) -> $ret {
                    // SAFETY: the caller's arguments.
                    unsafe { foreign::$name(fd $(, $arg)*) }
                }
            )*
        }

        $(
            // Foreign descriptors come first, without the registers that the rest needs, which would cost them more than all else; then
            // connections, which most of ours are.
            /// # Safety
            #[doc = concat!("As ", stringify!($name), "(2) asks of its caller: its buffers and addresses are as long as it says.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(fd: c_int $(, $arg: $ty)*) -> $ret {
                #[inline(never)]
                #[allow(unused_unsafe, reason = "of calls that take nothing but numbers")]
                unsafe fn others(fd: c_int $(, $arg: $ty)*) -> $ret {
                    // SAFETY: the program's arguments, as the call of this name wants them.
                    unsafe {
                        match known!($which fd) {
                            None => foreign::$name(fd $(, $arg)*),
                            Some(h) => of_kind!(h, $name(fd $(, $arg)*)),
                        }
                    }
                }

                // SAFETY: the program's arguments, as the call of this name wants them.
                unsafe {
                    match table::lookup(fd) {
                        None => foreign::$name(fd $(, $arg)*),
                        Some(h) if h.kind() == Kind::Socket => Connections.$name(h, fd $(, $arg)*),
                        Some(h) if h.kind() == Kind::Stream => Streams.$name(h, fd $(, $arg)*),
                        Some(_) => others(fd $(, $arg)*),
                    }
                }
            }
        )*

        /// A call of the table by its number.
        ///
        /// # Safety
        /// As the call of that number asks of its caller.
        pub unsafe fn by_number(number: c_long, a: &Arguments) -> Option<c_long> {
            // SAFETY: the program's arguments, as the call of that number takes them.
            unsafe {
                match number {
                    $($(
                        $number if serves!(a $($when)?) => {
                            Some($name(a.of(0) $(, a.of($place))*) as c_long)
                        }
                    )?)*
                    _ => None,
                }
            }
        }
    };
}

macro_rules! known {
    (used $fd:ident) => {
        table::used($fd)
    };
    (asked $fd:ident) => {
        table::lookup($fd)
    };
}

macro_rules! serves {
    ($a:ident) => {
        $a.is_known(0)
    };
    ($a:ident tracked) => {
        table::any_tracked()
    };
    ($a:ident always) => {
        true
    };
}

calls! {
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
