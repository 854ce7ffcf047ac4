//! System calls that only channels make. Errors are errno values; each call's manual page has the same name.

use syscalls::{Sysno, syscall};

use crate::sys::Result;

pub fn shutdown(fd: i32, how: i32) -> Result<()> {
    // SAFETY: integers only.
    unsafe { syscall!(Sysno::shutdown, fd, how) }
        .map(drop)
        .map_err(|e| e.into_raw())
}

/// Two connected UNIX stream sockets, close-on-exec.
pub fn socketpair() -> Result<[i32; 2]> {
    let mut pair = [-1; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel writes two integers.
    unsafe { syscall!(Sysno::socketpair, libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) }
        .map(|_| pair)
        .map_err(|e| e.into_raw())
}
