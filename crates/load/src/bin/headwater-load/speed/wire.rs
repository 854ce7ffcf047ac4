//! One end of what carries messages of one size, as its two directions.

use std::io;

/// One end of a connection, to be split into its directions by the thread that uses it.
pub trait End: Sync {
    type Reader<'a>: Reading
    where
        Self: 'a;
    type Writer<'a>: Writing
    where
        Self: 'a;

    fn halves(&self, size: usize) -> (Self::Reader<'_>, Self::Writer<'_>);
}

pub trait Writing {
    /// Sends a message, and waits where there is no room.
    fn write(&mut self, message: &[u8]) -> io::Result<()>;
}

pub trait Reading {
    /// Waits for the next message. It stays where it is until `done`.
    fn read(&mut self) -> io::Result<&[u8]>;

    /// Gives the message up, where that is to be said.
    fn done(&mut self) {}
}
