//! The one shared object. Each module exports C symbols and forwards them in a line or two; what they do is elsewhere.
//!
//! ```text
//!   load     loading
//!   stdio    FILEs and dprintf on streams; reopen: freopen on them; wide: wide characters
//!   start    what begins with the first socket or stream, end of the process
//!   prototypes   read, send, bind, ioctl ...: the table of calls on one descriptor; calls: who serves them
//!   descriptor   what a kind of descriptor is to them; files: close, fcntl; dup; fetched: pidfd_getfd
//!   data     receiving and sending on connections; sendfile, splice; foreign: messages on other sockets; vectors: lists of buffers
//!   sockets  socket; listen, accept, connect, shutdown, options of connections
//!   sctp     all of that, for SCTP sockets of our own
//!   wait     poll, select, epoll
//!   given    what the program gives, as types; netbuf: struct netbuf
//!   names    which paths open(2) has to look up
//!   presence access, stat and their kin, for names that open(2) knows
//!   streams  getmsg, putmsg and what else <stropts.h> has
//!   ddi      <sys/ddi.h>; modules: modules and drivers in C, loaded by name
//!   xti      the t_ calls of <xti.h>; tli: what <tiuser.h> adds
//!   netconfig, netdir   <netconfig.h>, <netdir.h>
//!   confine  prctl, for seccomp
//!   jump     longjmp; lookup: dlsym
//!   process  fork, exec, spawn, signals
//!   round    syscall; aliases: second names, aio
//!   uring    io_uring
//!   variadic dprintf, execl, by way of variadic.c
//! ```
//!
//! Exported functions are `extern "C-unwind"`: a cancelled thread unwinds through them, so they own nothing across a wait.

/// Calls of _FORTIFY_SOURCE, each as another one if it concerns us and the room is enough; else the C library's, which ends the program
/// where it is not.
macro_rules! checked {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $call:expr, if $ours:expr;)*) => {$(
        /// # Safety
        #[doc = concat!("As `", stringify!($call), "` asks of its caller, with room for `size` bytes.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: the program's arguments, and its room, of which no more than `size` is used.
            unsafe { if $ours { $call } else { real::$name($($arg),*) } }
        }
    )*};
}

mod actions;
mod aliases;
mod calls;
mod confine;
mod data;
mod ddi;
mod descriptor;
mod dup;
mod environment;
mod fetched;
mod file;
mod files;
mod foreign;
mod fread;
mod given;
mod jump;
mod load;
#[cfg(target_arch = "x86_64")]
mod lookup;
mod made;
mod makers;
mod modules;
mod names;
mod netbuf;
mod netconfig;
mod netdir;
mod passed;
mod presence;
mod process;
mod prototypes;
mod real;
mod reopen;
mod round;
mod sanitizer;
mod sctp;
mod sockets;
mod start;
mod stdio;
mod streams;
mod tli;
mod uring;
mod variadic;
mod vectors;
mod wait;
mod wide;
mod xti;

use headwater_host::memory::Memory;
use headwater_host::next;

/// Nothing of ours is in the program's malloc.
#[global_allocator]
static MEMORY: Memory = Memory;

/// The C convention: -1 and errno.
#[inline]
fn result(r: Result<usize, i32>) -> isize {
    match r {
        Ok(n) => n as isize,
        Err(e) => refuse(e),
    }
}

/// -1, and this errno.
#[inline]
fn refuse<T: From<i8>>(errno: i32) -> T {
    next::set_errno(errno);
    T::from(-1)
}
