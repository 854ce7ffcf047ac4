//! Sizes of socket buffers, as they are asked for and as they turn out.

use std::io;
use std::mem;
use std::os::fd::AsRawFd;

use libc::{c_int, socklen_t};

use crate::sys::{check, set_option};

/// Bytes that each direction has.
#[derive(Clone, Copy, Default, Debug)]
pub struct Buffers {
    pub send: u64,
    pub receive: u64,
}

/// Asks for so many bytes each way, and tells what the kernel gave, which counts its own structures too.
pub fn set(socket: &impl AsRawFd, bytes: u32) -> io::Result<Buffers> {
    let set = |name: c_int| -> io::Result<u64> {
        let mut value = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let mut len = mem::size_of::<c_int>() as socklen_t;
        let fd = socket.as_raw_fd();
        set_option(fd, libc::SOL_SOCKET, name, &[value])?;
        let given = (&raw mut value).cast();
        // SAFETY: an int with its length, which outlive the call.
        check(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, given, &mut len) })?;
        Ok(value as u64)
    };
    Ok(Buffers {
        send: set(libc::SO_SNDBUF)?,
        receive: set(libc::SO_RCVBUF)?,
    })
}
