//! Two ends of a pipe of any kind, and the calls on them. These are libc's own names, so that a preloaded library serves them.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::RawFd;

use crate::sys::check;

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Kind {
    Streams,
    Pipe,
    Unix,
}

pub struct Ends {
    pub reading: RawFd,
    pub writing: RawFd,
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
        Ok(Ends {
            reading: fds[0],
            writing: fds[1],
        })
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

pub fn push(fd: RawFd, module: &CStr) -> io::Result<()> {
    const I_PUSH: libc::Ioctl = (b'S' as libc::Ioctl) << 8 | 2;
    // SAFETY: the name ends in NUL and outlives the call.
    check(unsafe { libc::ioctl(fd, I_PUSH, module.as_ptr()) })
}

pub fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
    })
}

#[inline]
pub fn write(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe the slice.
    count(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) })
}

#[inline]
pub fn read(fd: RawFd, bytes: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe the slice.
    count(unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) })
}

/// Whether there is room for writing before `milliseconds` are over.
pub fn wait_for_room(fd: RawFd, milliseconds: i32) -> io::Result<bool> {
    let mut entry = libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one entry, which outlives the call.
    let ready = unsafe { libc::poll(&mut entry, 1, milliseconds) };
    check(ready)?;
    Ok(ready > 0)
}

pub fn close(fd: RawFd) {
    // SAFETY: the descriptor is ours, and nobody uses it afterwards.
    unsafe { libc::close(fd) };
}

#[inline]
fn count(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
