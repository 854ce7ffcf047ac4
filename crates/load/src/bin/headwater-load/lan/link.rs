//! What carries bytes between the two ends: TCP and UNIX sockets behind one address syntax, or a channel.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};

use headwater_channel::Channel;

use crate::lan::options::Options;
use crate::sys;

pub enum Link {
    Tcp(TcpStream),
    Unix(UnixStream),
    Raw(Channel),
}

pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub fn bind(options: &Options) -> io::Result<Listener> {
        let listener = match options.address.strip_prefix("unix:") {
            Some(path) => Listener::Unix(UnixListener::bind(path)?),
            None => Listener::Tcp(TcpListener::bind(&options.address)?),
        };
        // Connections inherit them.
        set_buffers(listener.as_raw_fd(), options)?;
        Ok(listener)
    }

    pub fn accept(&self, options: &Options) -> io::Result<Link> {
        let link = match self {
            Listener::Tcp(listener) => Link::Tcp(listener.accept()?.0),
            Listener::Unix(listener) => Link::Unix(listener.accept()?.0),
        };
        link.prepare(options)?;
        Ok(link)
    }

    /// The address in the form that clients are given.
    pub fn address(&self, asked: &str) -> io::Result<String> {
        match self {
            Listener::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
            Listener::Unix(_) => Ok(asked.to_string()),
        }
    }
}

impl Link {
    pub fn connect(options: &Options) -> io::Result<Link> {
        let link = match options.address.strip_prefix("unix:") {
            Some(path) => Link::Unix(UnixStream::connect(path)?),
            None => Link::Tcp(TcpStream::connect(&options.address)?),
        };
        link.prepare(options)?;
        Ok(link)
    }

    fn prepare(&self, options: &Options) -> io::Result<()> {
        match self {
            Link::Tcp(stream) => {
                set_buffers(stream.as_raw_fd(), options)?;
                if options.cubic {
                    // Not everyone may choose it; the result names what was in use.
                    let _ = headwater_load::network::choose_cubic(stream.as_raw_fd());
                }
                if options.nodelay {
                    stream.set_nodelay(true)?;
                }
                Ok(())
            }
            Link::Unix(stream) => set_buffers(stream.as_raw_fd(), options),
            Link::Raw(_) => Ok(()),
        }
    }

    pub fn finish_writing(&self) -> io::Result<()> {
        match self {
            Link::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Link::Unix(stream) => stream.shutdown(Shutdown::Write),
            Link::Raw(channel) => channel.finish_sending().map_err(io::Error::other),
        }
    }

    /// The congestion control in use, or "none" where there is none.
    pub fn congestion(&self) -> String {
        match self {
            Link::Tcp(stream) => sys::congestion(stream.as_raw_fd()),
            Link::Unix(_) | Link::Raw(_) => "none".to_string(),
        }
    }
}

fn set_buffers(fd: RawFd, options: &Options) -> io::Result<()> {
    let Some(bytes) = options.buffers else {
        return Ok(());
    };
    let bytes = bytes.min(i32::MAX as usize) as i32;
    for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        // SAFETY: pointer and length describe the number.
        sys::check(unsafe {
            libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                option,
                (&raw const bytes).cast(),
                size_of_val(&bytes) as libc::socklen_t,
            )
        })?;
    }
    Ok(())
}

impl Read for Link {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Link::Tcp(stream) => stream.read(buf),
            Link::Unix(stream) => stream.read(buf),
            Link::Raw(channel) => channel.read(buf),
        }
    }
}

impl Write for Link {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Link::Tcp(stream) => stream.write(buf),
            Link::Unix(stream) => stream.write(buf),
            Link::Raw(channel) => channel.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Listener::Tcp(listener) => listener.as_raw_fd(),
            Listener::Unix(listener) => listener.as_raw_fd(),
        }
    }
}
