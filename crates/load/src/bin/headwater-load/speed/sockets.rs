//! The kernel's sockets, or what a preloaded library makes of them: plain blocking calls.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use crate::speed::wire::{End, Reading, Writing};

pub struct Writer<'a, S>(&'a S);

pub struct Reader<'a, S> {
    socket: &'a S,
    message: Vec<u8>,
}

impl End for TcpStream {
    type Reader<'a> = Reader<'a, TcpStream>;
    type Writer<'a> = Writer<'a, TcpStream>;

    fn halves(&self, size: usize) -> (Self::Reader<'_>, Self::Writer<'_>) {
        halves(self, size)
    }
}

impl End for UnixStream {
    type Reader<'a> = Reader<'a, UnixStream>;
    type Writer<'a> = Writer<'a, UnixStream>;

    fn halves(&self, size: usize) -> (Self::Reader<'_>, Self::Writer<'_>) {
        halves(self, size)
    }
}

fn halves<S>(socket: &S, size: usize) -> (Reader<'_, S>, Writer<'_, S>) {
    let message = vec![0; size];
    (Reader { socket, message }, Writer(socket))
}

impl<'a, S> Writing for Writer<'a, S>
where
    &'a S: Write,
{
    #[inline]
    fn write(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.write_all(message)
    }
}

impl<'a, S> Reading for Reader<'a, S>
where
    &'a S: Read,
{
    #[inline]
    fn read(&mut self) -> io::Result<&[u8]> {
        self.socket.read_exact(&mut self.message)?;
        Ok(&self.message)
    }
}
