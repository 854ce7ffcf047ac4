//! What can go wrong with a [`Stream`](super::Stream); each variant says what the caller does next.

use std::{fmt, io};

use headwater_host::sys::Errno;

/// Why a call on a stream did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The path leads to no stream: to nothing, or to something that is the kernel's to open. Register the device first, or
    /// correct the name.
    NotAStream,
    /// No module, or no request, of that name is known here, or there is nothing to pop. Register the module first, or
    /// correct the name.
    Unknown,
    /// Nothing there, or no room, and the stream does not block. Wait with [`poll`](super::poll), then call again.
    WouldBlock,
    /// The deadline passed; nothing was sent or received. Call again, or give up.
    TimedOut,
    /// A signal handler ran while the call waited; nothing was sent or received. Call again.
    Interrupted,
    /// The other end is gone, and everything it sent was received. Drop the stream.
    HungUp,
    /// A part is longer than the tunables `strctlsz` and `strmsgsz` or a module's packet size let pass. Send less.
    TooLong,
    /// The first message is not for this call: it has a control part, or is a passed descriptor. Take it with
    /// [`get_message`](super::Stream::get_message) or I_RECVFD.
    OtherMessage,
    /// The stream is linked below a multiplexer, or open for the other direction only. Use the stream above it.
    NotHere,
    /// A module or driver says so (M_ERROR, M_IOCNAK), or the kernel: most often EMFILE, ENOMEM or EPROTO. What to do
    /// depends on the errno.
    Failed(Errno),
}

impl Error {
    /// The errno that a call in C would have set.
    pub fn errno(self) -> Errno {
        match self {
            Error::NotAStream => libc::ENOENT,
            Error::Unknown => libc::EINVAL,
            Error::WouldBlock => libc::EAGAIN,
            Error::TimedOut => libc::ETIME,
            Error::Interrupted => libc::EINTR,
            Error::HungUp => libc::EPIPE,
            Error::TooLong => libc::ERANGE,
            Error::OtherMessage => libc::EBADMSG,
            Error::NotHere => libc::EBADF,
            Error::Failed(errno) => errno,
        }
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Error {
        match errno {
            libc::EAGAIN => Error::WouldBlock,
            libc::ETIME => Error::TimedOut,
            libc::EINTR => Error::Interrupted,
            libc::EPIPE | libc::ENXIO => Error::HungUp,
            libc::ERANGE => Error::TooLong,
            libc::EBADMSG => Error::OtherMessage,
            libc::EBADF => Error::NotHere,
            errno => Error::Failed(errno),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Error::NotAStream => "no such stream",
            Error::Unknown => "no such module or request",
            Error::WouldBlock => "the call would block",
            Error::TimedOut => "the deadline passed",
            Error::Interrupted => "interrupted by a signal",
            Error::HungUp => "the stream has hung up",
            Error::TooLong => "the message is too long",
            Error::OtherMessage => "the first message is for another call",
            Error::NotHere => "the stream does not take this call",
            Error::Failed(errno) => {
                return write!(f, "{}", io::Error::from_raw_os_error(errno));
            }
        };
        f.write_str(text)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(e: Error) -> io::Error {
        let kind = match e {
            Error::NotAStream => io::ErrorKind::NotFound,
            Error::Unknown | Error::TooLong => io::ErrorKind::InvalidInput,
            Error::WouldBlock => io::ErrorKind::WouldBlock,
            Error::TimedOut => io::ErrorKind::TimedOut,
            Error::Interrupted => io::ErrorKind::Interrupted,
            Error::HungUp => io::ErrorKind::BrokenPipe,
            Error::OtherMessage => io::ErrorKind::InvalidData,
            Error::NotHere => io::ErrorKind::Unsupported,
            Error::Failed(errno) => return io::Error::from_raw_os_error(errno),
        };
        io::Error::new(kind, e)
    }
}
