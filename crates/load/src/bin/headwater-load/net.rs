//! TCP and UNIX sockets behind one address syntax.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::net::sockopt::tcp_congestion;

use crate::sys;

/// How sockets are set up.
#[derive(Clone, Copy, Default)]
pub struct Setup {
    pub nodelay: bool,
    pub cubic: bool,
    /// Bytes of their buffers, where these are not to be as they come.
    pub buffers: Option<usize>,
}

/// Of either kind.
macro_rules! either {
    ($self:ident, $socket:ident => $does:expr) => {
        match $self {
            Self::Tcp($socket) => $does,
            Self::Unix($socket) => $does,
        }
    };
}

pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub fn bind(address: &str, setup: Setup) -> io::Result<Listener> {
        let listener = match address.strip_prefix("unix:") {
            Some(path) => Listener::Unix(UnixListener::bind(path)?),
            None => Listener::Tcp(TcpListener::bind(address)?),
        };
        // Connections inherit them.
        set_buffers(listener.as_raw_fd(), setup)?;
        Ok(listener)
    }

    pub fn accept(&self, setup: Setup) -> io::Result<Stream> {
        let stream = match self {
            Listener::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
            Listener::Unix(listener) => Stream::Unix(listener.accept()?.0),
        };
        stream.prepare(setup)?;
        Ok(stream)
    }

    /// The address in the form that clients are given.
    pub fn address(&self, asked: &str) -> io::Result<String> {
        match self {
            Listener::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
            Listener::Unix(_) => Ok(asked.to_string()),
        }
    }

    pub fn set_nonblocking(&self) -> io::Result<()> {
        either!(self, listener => listener.set_nonblocking(true))
    }
}

impl Stream {
    pub fn connect(address: &str, setup: Setup) -> io::Result<Stream> {
        let stream = match address.strip_prefix("unix:") {
            Some(path) => Stream::Unix(UnixStream::connect(path)?),
            None => Stream::Tcp(TcpStream::connect(address)?),
        };
        stream.prepare(setup)?;
        Ok(stream)
    }

    fn prepare(&self, setup: Setup) -> io::Result<()> {
        set_buffers(self.as_raw_fd(), setup)?;
        let Stream::Tcp(stream) = self else {
            return Ok(());
        };
        if setup.cubic {
            // Not everyone may choose it; the result names what was in use.
            let _ = headwater_load::network::choose_cubic(stream.as_raw_fd());
        }
        if setup.nodelay {
            stream.set_nodelay(true)?;
        }
        Ok(())
    }

    pub fn set_nonblocking(&self) -> io::Result<()> {
        either!(self, stream => stream.set_nonblocking(true))
    }

    pub fn finish_writing(&self) -> io::Result<()> {
        either!(self, stream => stream.shutdown(Shutdown::Write))
    }

    /// The congestion control in use, or "none" for a UNIX socket.
    pub fn congestion(&self) -> String {
        match self {
            Stream::Tcp(stream) => tcp_congestion(stream).unwrap_or_else(|_| "unknown".to_string()),
            Stream::Unix(_) => "none".to_string(),
        }
    }
}

/// What could not be written yet to a socket that does not block.
#[derive(Default)]
pub struct Unsent(Vec<u8>);

impl Unsent {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes what was left, where there is room again. Gives whether room is waited for, where that has changed.
    pub fn go_on(&mut self, stream: &mut Stream) -> io::Result<Option<bool>> {
        let left = std::mem::take(&mut self.0);
        self.write(stream, &left, true)
    }

    /// Writes what can be written behind what is left, and keeps the rest; gives the same.
    pub fn send(&mut self, stream: &mut Stream, bytes: &[u8]) -> io::Result<Option<bool>> {
        let waited = !self.is_empty();
        self.write(stream, bytes, waited)
    }

    fn write(
        &mut self,
        stream: &mut Stream,
        mut bytes: &[u8],
        waited: bool,
    ) -> io::Result<Option<bool>> {
        while !bytes.is_empty() && self.is_empty() {
            match stream.write(bytes) {
                Ok(len) => bytes = &bytes[len..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.0.extend_from_slice(bytes);
        let waits = !self.is_empty();
        Ok((waits != waited).then_some(waits))
    }
}

fn set_buffers(fd: RawFd, setup: Setup) -> io::Result<()> {
    let Some(bytes) = setup.buffers else {
        return Ok(());
    };
    let bytes = bytes.min(i32::MAX as usize) as i32;
    for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        sys::set_option(fd, libc::SOL_SOCKET, option, &[bytes])?;
    }
    Ok(())
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => stream.read(buf))
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        either!(self, stream => stream.write(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        either!(self, stream => stream.as_raw_fd())
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        either!(self, listener => listener.as_raw_fd())
    }
}
