//! Two ends of a pipe of any kind. They are used by libc's own names, as the standard library does, so that a preloaded library
//! serves them.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

use crate::sys::check;

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Kind {
    Streams,
    Pipe,
    Unix,
}

pub struct Ends {
    pub reading: File,
    pub writing: File,
}

impl Ends {
    pub fn new(kind: Kind) -> io::Result<Ends> {
        let mut fds: [RawFd; 2] = [-1; 2];
        // SAFETY: each call fills two descriptors, which outlive it.
        check(unsafe {
            match kind {
                Kind::Streams => streams_pipe()?(fds.as_mut_ptr()),
                Kind::Pipe => libc::pipe(fds.as_mut_ptr()),
                Kind::Unix => {
                    libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, fds.as_mut_ptr())
                }
            }
        })?;
        // SAFETY: the call has just given us both.
        let [reading, writing] = fds.map(|fd| unsafe { File::from_raw_fd(fd) });
        Ok(Ends { reading, writing })
    }
}

type StreamsPipe = unsafe extern "C" fn(*mut libc::c_int) -> libc::c_int;

fn streams_pipe() -> io::Result<StreamsPipe> {
    // SAFETY: the name ends in NUL; a symbol of this name has this type, by <stropts.h>.
    let found: Option<StreamsPipe> = unsafe {
        let symbol = libc::dlsym(libc::RTLD_DEFAULT, c"streams_pipe".as_ptr());
        mem::transmute(symbol)
    };
    found.ok_or_else(|| io::Error::other("no library here has streams_pipe"))
}

pub fn push(end: &File, module: &CStr) -> io::Result<()> {
    const I_PUSH: libc::Ioctl = (b'S' as libc::Ioctl) << 8 | 2;
    // SAFETY: the name ends in NUL and outlives the call.
    check(unsafe { libc::ioctl(end.as_raw_fd(), I_PUSH, module.as_ptr()) })
}

pub fn set_nonblocking(end: &File) -> io::Result<()> {
    let fd = end.as_raw_fd();
    // SAFETY: no pointers are passed.
    check(unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
    })
}

/// Whether there is room for writing before `milliseconds` are over.
pub fn wait_for_room(end: &File, milliseconds: i32) -> io::Result<bool> {
    let mut entry = libc::pollfd {
        fd: end.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one entry, which outlives the call.
    let ready = unsafe { libc::poll(&mut entry, 1, milliseconds) };
    check(ready)?;
    Ok(ready > 0)
}
