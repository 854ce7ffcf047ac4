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

macro_rules! errors {
    ($($variant:ident = $errno:ident, $kind:ident, $text:literal;)*) => {
        /// Each but [`Error::Failed`], with its errno.
        const TABLE: &[(Error, Errno)] = &[$((Error::$variant, libc::$errno)),*];

        impl Error {
            /// Errno, kind and text, or the errno that it failed with.
            fn row(self) -> Result<(Errno, io::ErrorKind, &'static str), Errno> {
                match self {
                    $(Error::$variant => Ok((libc::$errno, io::ErrorKind::$kind, $text)),)*
                    Error::Failed(errno) => Err(errno),
                }
            }
        }
    };
}

errors! {
    NotAStream = ENOENT, NotFound, "no such stream";
    Unknown = EINVAL, InvalidInput, "no such module or request";
    WouldBlock = EAGAIN, WouldBlock, "the call would block";
    TimedOut = ETIME, TimedOut, "the deadline passed";
    Interrupted = EINTR, Interrupted, "interrupted by a signal";
    HungUp = EPIPE, BrokenPipe, "the stream has hung up";
    TooLong = ERANGE, InvalidInput, "the message is too long";
    OtherMessage = EBADMSG, InvalidData, "the first message is for another call";
    NotHere = EBADF, Unsupported, "the stream does not take this call";
}

impl Error {
    /// The errno that a call in C would have set.
    pub fn errno(self) -> Errno {
        self.row().map_or_else(|errno| errno, |row| row.0)
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Error {
        match errno {
            // Said of names and requests by who knows that it is about those.
            libc::ENOENT | libc::EINVAL => Error::Failed(errno),
            libc::ENXIO => Error::HungUp,
            _ => {
                let row = TABLE.iter().find(|row| row.1 == errno);
                row.map_or(Error::Failed(errno), |row| row.0)
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row() {
            Ok((.., text)) => f.write_str(text),
            Err(errno) => write!(f, "{}", io::Error::from_raw_os_error(errno)),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(e: Error) -> io::Error {
        match e.row() {
            Ok((_, kind, _)) => io::Error::new(kind, e),
            Err(errno) => io::Error::from_raw_os_error(errno),
        }
    }
}
