//! What can go wrong, one enum per verb; each variant says what the caller does next.

use std::{fmt, io};

use crate::ring::Corrupt;
use crate::sys::Errno;

/// Why nothing was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// No room now, or none until the deadline. Try again later, or use a call that waits.
    Full,
    /// The message is longer than [`max_message`](crate::Channel::max_message). Cut it up, write it as bytes, or make
    /// the channel with larger rings.
    TooLong { max: usize },
    /// Nobody will receive it, or this end has finished sending. Drop the end.
    Closed,
    /// A signal handler ran while the call waited; nothing was sent. Call again.
    Interrupted,
    /// This thread holds a [`Reservation`](crate::Reservation) of this end. Commit or drop it first.
    Busy,
    /// The peer has damaged the shared memory. Drop the end.
    Corrupt,
}

/// Why nothing was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveError {
    /// Nothing is there now, or nothing came until the deadline. Try again later, or use a call that waits.
    Empty,
    /// The next message does not fit; it stays. Call again with buffers for so many bytes of control and data part
    /// ([`recv_message`](crate::Channel::recv_message) if there is a control part).
    TooLong { control: usize, data: usize },
    /// Everything was received, and nothing more will come. Drop the end, or only send on it.
    Closed,
    /// A signal handler ran while the call waited; nothing was received. Call again.
    Interrupted,
    /// This thread holds a [`FrameRef`](crate::FrameRef) of this end. Consume or drop it first.
    Busy,
    /// The peer has damaged the shared memory. Drop the end.
    Corrupt,
}

/// Why there is no channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// Not a power of two from 4 KiB to 64 MiB. Ask for another size.
    RingSize,
    /// The descriptors are not those of a channel of this version. Refuse them.
    NotAChannel,
    /// The kernel refused, with this errno: most often EMFILE, ENFILE or ENOMEM. Do without, or free something.
    System(Errno),
}

/// What ends a wait or keeps us out of a section; each verb has its own word for it.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    WouldBlock,
    Interrupted,
    Busy,
    Corrupt,
}

impl From<Corrupt> for Stop {
    fn from(_: Corrupt) -> Stop {
        Stop::Corrupt
    }
}

/// Of a verb's error: the word for a call that would have to wait, and of each variant the kind as an [`io::Error`] and the text.
macro_rules! verb {
    ($error:ident: $would_block:ident;
     $($variant:ident $({ $($field:ident),* })? => $kind:ident, $text:literal;)*) => {
        impl From<Stop> for $error {
            fn from(stop: Stop) -> $error {
                match stop {
                    Stop::WouldBlock => $error::$would_block,
                    Stop::Interrupted => $error::Interrupted,
                    Stop::Busy => $error::Busy,
                    Stop::Corrupt => $error::Corrupt,
                }
            }
        }

        impl From<Corrupt> for $error {
            fn from(_: Corrupt) -> $error {
                $error::Corrupt
            }
        }

        impl fmt::Display for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($error::$variant $({ $($field),* })? => write!(f, $text),)*
                }
            }
        }

        impl std::error::Error for $error {}

        impl From<$error> for io::Error {
            fn from(e: $error) -> io::Error {
                let kind = match e {
                    $($error::$variant { .. } => io::ErrorKind::$kind,)*
                };
                io::Error::new(kind, e)
            }
        }
    };
}

verb! {
    SendError: Full;
    Full => WouldBlock, "the channel is full";
    TooLong { max } => InvalidInput, "the message is longer than {max} bytes";
    Closed => BrokenPipe, "the channel is closed";
    Interrupted => Interrupted, "interrupted by a signal";
    Busy => Deadlock, "this thread holds a reservation";
    Corrupt => InvalidData, "the channel's memory is damaged";
}

verb! {
    ReceiveError: Empty;
    Empty => WouldBlock, "the channel is empty";
    TooLong { control, data } => InvalidData, "the message has {control} bytes of control and {data} of data";
    Closed => UnexpectedEof, "the channel is closed";
    Interrupted => Interrupted, "interrupted by a signal";
    Busy => Deadlock, "this thread holds a frame";
    Corrupt => InvalidData, "the channel's memory is damaged";
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> OpenError {
        match errno {
            libc::EPROTO => OpenError::NotAChannel,
            errno => OpenError::System(errno),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            OpenError::RingSize => {
                f.write_str("a ring is a power of two from 4 KiB to 64 MiB large")
            }
            OpenError::NotAChannel => f.write_str("not a channel of this version"),
            OpenError::System(errno) => write!(f, "{}", io::Error::from_raw_os_error(errno)),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<OpenError> for io::Error {
    fn from(e: OpenError) -> io::Error {
        match e {
            OpenError::RingSize => io::Error::new(io::ErrorKind::InvalidInput, e),
            OpenError::NotAChannel => io::Error::new(io::ErrorKind::InvalidData, e),
            OpenError::System(errno) => io::Error::from_raw_os_error(errno),
        }
    }
}
