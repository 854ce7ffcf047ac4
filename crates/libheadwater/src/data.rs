//! Calls that move data: what receiving, sending and moving on have in common.

use headwater_host::next;
use headwater_host::table::{self, Handle, Kind};
use headwater_sockets::{conn, pins};
use libc::{c_int, c_void, iovec, msghdr, size_t, socklen_t, ssize_t};

use crate::files::{self, Now};
use crate::result;

/// Defines a call on a descriptor by what it does for ours; with `where h is a socket`, first for those that most of ours are, then
/// with `or a stream` for those, `else` for those that are neither, unless they become one by their use. A foreign one is passed on first,
/// without the registers that the rest needs, which would cost it more than all else.
macro_rules! unless_foreign {
    ($(#[$m:meta])* fn $name:ident($fd:ident: c_int $(, $arg:ident: $ty:ty)*) -> $ret:ty
        where $h:ident is a socket $of_socket:block $(or a stream $of_stream:block)? else $body:block
    ) => {
        /// # Safety
        #[doc = concat!("As ", stringify!($name), "(2) asks of its caller: its buffers and addresses are as long as it says.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($fd: c_int $(, $arg: $ty)*) -> $ret {
            #[inline(never)]
            $(#[$m])*
            unsafe fn sockets($fd: c_int $(, $arg: $ty)*, $h: Handle) -> $ret {
                // SAFETY: the program's arguments, as the call of this name wants them.
                unsafe { $of_socket }
            }

            #[inline(never)]
            unsafe fn others($fd: c_int $(, $arg: $ty)*) -> $ret {
                // SAFETY: the program's arguments, as the call of this name wants them.
                unsafe {
                    $body
                    match table::socket($fd) {
                        Some(h) => sockets($fd $(, $arg)*, h),
                        None => real::$name($fd $(, $arg)*),
                    }
                }
            }

            // SAFETY: the program's arguments, as the call of this name wants them.
            unsafe {
                match table::lookup($fd) {
                    None => real::$name($fd $(, $arg)*),
                    Some(h) if h.kind() == Kind::Socket => sockets($fd $(, $arg)*, h),
                    $(Some($h) if $h.kind() == Kind::Stream => $of_stream,)?
                    Some(_) => others($fd $(, $arg)*),
                }
            }
        }
    };
    ($(#[$m:meta])* fn $name:ident($fd:ident: c_int $(, $arg:ident: $ty:ty)*) -> $ret:ty $body:block) => {
        /// # Safety
        #[doc = concat!("As ", stringify!($name), "(2) asks of its caller: its buffers and addresses are as long as it says.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($fd: c_int $(, $arg: $ty)*) -> $ret {
            #[inline(never)]
            $(#[$m])*
            unsafe extern "C-unwind" fn ours($fd: c_int $(, $arg: $ty)*) -> $ret {
                // SAFETY: the program's arguments, as the call of this name wants them.
                unsafe { $body }
            }

            // SAFETY: the program's arguments, as the call of this name wants them.
            unsafe {
                if table::lookup($fd).is_none() {
                    return real::$name($fd $(, $arg)*);
                }
                ours($fd $(, $arg)*)
            }
        }
    };
}

/// send(2) and its kind are for sockets: what carries a stream is not the program's to use.
macro_rules! no_stream {
    ($fd:expr) => {
        if crate::streams::is_one($fd) {
            next::set_errno(libc::ENOTSOCK);
            return -1;
        }
    };
}

// Below the macros, which they use.
mod between;
mod receive;
mod send;

pub use between::{sendfile, splice};
pub use receive::{preadv2, read, readv, recv, recvfrom, recvmmsg, recvmsg};
pub use send::{pwritev2, send, sendmmsg, sendmsg, sendto, write, writev};

/// Calls with control messages refuse it before anything else; to the others it says nothing.
const MSG_CMSG_COMPAT: c_int = i32::MIN;

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
    table::lookup(fd)
        .is_some_and(|h| matches!(h.kind(), Kind::Socket | Kind::Sctp | Kind::Inherited))
}

fn one(buf: *const c_void, n: size_t) -> [iovec; 1] {
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

fn dontwait(flags: c_int) -> c_int {
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
