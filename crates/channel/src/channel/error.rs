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

impl From<Stop> for SendError {
    fn from(stop: Stop) -> SendError {
        match stop {
            Stop::WouldBlock => SendError::Full,
            Stop::Interrupted => SendError::Interrupted,
            Stop::Busy => SendError::Busy,
            Stop::Corrupt => SendError::Corrupt,
        }
    }
}

impl From<Stop> for ReceiveError {
    fn from(stop: Stop) -> ReceiveError {
        match stop {
            Stop::WouldBlock => ReceiveError::Empty,
            Stop::Interrupted => ReceiveError::Interrupted,
            Stop::Busy => ReceiveError::Busy,
            Stop::Corrupt => ReceiveError::Corrupt,
        }
    }
}

impl From<Corrupt> for Stop {
    fn from(_: Corrupt) -> Stop {
        Stop::Corrupt
    }
}

impl From<Corrupt> for SendError {
    fn from(_: Corrupt) -> SendError {
        SendError::Corrupt
    }
}

impl From<Corrupt> for ReceiveError {
    fn from(_: Corrupt) -> ReceiveError {
        ReceiveError::Corrupt
    }
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> OpenError {
        match errno {
            libc::EPROTO => OpenError::NotAChannel,
            errno => OpenError::System(errno),
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full => f.write_str("the channel is full"),
            SendError::TooLong { max } => write!(f, "the message is longer than {max} bytes"),
            SendError::Closed => f.write_str("the channel is closed"),
            SendError::Interrupted => f.write_str("interrupted by a signal"),
            SendError::Busy => f.write_str("this thread holds a reservation"),
            SendError::Corrupt => f.write_str("the channel's memory is damaged"),
        }
    }
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiveError::Empty => f.write_str("the channel is empty"),
            ReceiveError::TooLong { control, data } => {
                write!(
                    f,
                    "the message has {control} bytes of control and {data} of data"
                )
            }
            ReceiveError::Closed => f.write_str("the channel is closed"),
            ReceiveError::Interrupted => f.write_str("interrupted by a signal"),
            ReceiveError::Busy => f.write_str("this thread holds a frame"),
            ReceiveError::Corrupt => f.write_str("the channel's memory is damaged"),
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

impl std::error::Error for SendError {}
impl std::error::Error for ReceiveError {}
impl std::error::Error for OpenError {}

impl From<SendError> for io::Error {
    fn from(e: SendError) -> io::Error {
        let kind = match e {
            SendError::Full => io::ErrorKind::WouldBlock,
            SendError::TooLong { .. } => io::ErrorKind::InvalidInput,
            SendError::Closed => io::ErrorKind::BrokenPipe,
            SendError::Interrupted => io::ErrorKind::Interrupted,
            SendError::Busy => io::ErrorKind::Deadlock,
            SendError::Corrupt => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, e)
    }
}

impl From<ReceiveError> for io::Error {
    fn from(e: ReceiveError) -> io::Error {
        let kind = match e {
            ReceiveError::Empty => io::ErrorKind::WouldBlock,
            ReceiveError::Closed => io::ErrorKind::UnexpectedEof,
            ReceiveError::Interrupted => io::ErrorKind::Interrupted,
            ReceiveError::Busy => io::ErrorKind::Deadlock,
            ReceiveError::TooLong { .. } | ReceiveError::Corrupt => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, e)
    }
}

impl From<OpenError> for io::Error {
    fn from(e: OpenError) -> io::Error {
        match e {
            OpenError::RingSize => io::Error::new(io::ErrorKind::InvalidInput, e),
            OpenError::NotAChannel => io::Error::new(io::ErrorKind::InvalidData, e),
            OpenError::System(errno) => io::Error::from_raw_os_error(errno),
        }
    }
}
