//! Connections of every carrier.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};

use crate::xtiperf::board::Board;
use crate::xtiperf::buffers::{self, Buffers};
use crate::xtiperf::options::{Carrier, Options};
use crate::xtiperf::sctp;
use crate::xtiperf::xti::{self, Endpoint};

pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Sctp(sctp::Socket),
    Xti(Endpoint),
}

pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
    Sctp(sctp::Socket),
    Xti(Endpoint),
}

impl Listener {
    /// With the address to go to.
    pub fn bind(options: &Options) -> io::Result<(Listener, String)> {
        Ok(match &options.carrier {
            Carrier::Tcp => {
                let listener = TcpListener::bind(&options.at)?;
                let at = listener.local_addr()?.to_string();
                (Listener::Tcp(listener), at)
            }
            Carrier::Unix => {
                let listener = UnixListener::bind(&options.at)?;
                (Listener::Unix(listener), options.at.clone())
            }
            Carrier::Sctp => {
                let (socket, at) = sctp::Socket::listen(&options.at)?;
                (Listener::Sctp(socket), at)
            }
            Carrier::Device(device) => {
                let endpoint = Endpoint::open(device)?;
                let address = xti::encode(&options.carrier, &options.at)?;
                let bound = endpoint.bind(Some(&address), 8)?;
                let at = xti::decode(&options.carrier, &bound);
                (Listener::Xti(endpoint), at)
            }
            Carrier::Udp | Carrier::UdpBatched | Carrier::UdpMany => return Err(not_connected()),
        })
    }

    pub fn accept(&self, options: &Options) -> io::Result<Stream> {
        let stream = match self {
            Listener::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
            Listener::Unix(listener) => Stream::Unix(listener.accept()?.0),
            Listener::Sctp(listener) => Stream::Sctp(listener.accept()?),
            Listener::Xti(listener) => Stream::Xti(listener.accept()?),
        };
        stream.prepare(options)?;
        Ok(stream)
    }

    /// Before anybody connects: TCP settles then how large its window can become.
    fn set_buffers(&self, bytes: u32) -> io::Result<Buffers> {
        match self {
            Listener::Tcp(listener) => buffers::set(listener, bytes),
            Listener::Unix(listener) => buffers::set(listener, bytes),
            Listener::Sctp(_) => Err(no_buffers()),
            Listener::Xti(listener) => listener.set_buffers(bytes),
        }
    }
}

impl Stream {
    pub fn connect(options: &Options) -> io::Result<Stream> {
        let stream = match &options.carrier {
            Carrier::Tcp => Stream::Tcp(TcpStream::connect(&options.at)?),
            Carrier::Unix => Stream::Unix(UnixStream::connect(&options.at)?),
            Carrier::Sctp => Stream::Sctp(sctp::Socket::connect(&options.at)?),
            Carrier::Device(device) => {
                let mut endpoint = Endpoint::open(device)?;
                endpoint.set_more(options.more);
                endpoint.bind(None, 0)?;
                endpoint.connect(&xti::encode(&options.carrier, &options.at)?)?;
                Stream::Xti(endpoint)
            }
            Carrier::Udp | Carrier::UdpBatched | Carrier::UdpMany => return Err(not_connected()),
        };
        stream.prepare(options)?;
        Ok(stream)
    }

    /// Asks for socket buffers where that is wanted.
    pub fn buffers(&self, options: &Options) -> io::Result<Option<Buffers>> {
        let Some(bytes) = options.buffers else {
            return Ok(None);
        };
        let given = match self {
            Stream::Tcp(stream) => buffers::set(stream, bytes),
            Stream::Unix(stream) => buffers::set(stream, bytes),
            Stream::Sctp(_) => Err(no_buffers()),
            Stream::Xti(endpoint) => endpoint.set_buffers(bytes),
        };
        given.map(Some)
    }

    fn prepare(&self, options: &Options) -> io::Result<()> {
        match self {
            _ if !options.nodelay => Ok(()),
            Stream::Tcp(stream) => stream.set_nodelay(true),
            Stream::Unix(_) => Ok(()),
            Stream::Sctp(socket) => socket.set_nodelay(),
            Stream::Xti(endpoint) => endpoint.set_nodelay(),
        }
    }

    #[inline]
    pub fn send_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = match self {
                Stream::Tcp(stream) => stream.write(bytes)?,
                Stream::Unix(stream) => stream.write(bytes)?,
                Stream::Sctp(socket) => socket.send(bytes)?,
                Stream::Xti(endpoint) => endpoint.send(bytes)?,
            };
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// No bytes are the end, whatever caused it.
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Sctp(socket) => socket.receive(buffer),
            Stream::Xti(endpoint) => endpoint.receive(buffer),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
            result => result,
        }
    }

    /// Nothing more will be sent.
    pub fn finish(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            Stream::Sctp(socket) => socket.finish(),
            Stream::Xti(endpoint) => endpoint.release(),
        }
    }
}

/// Accepts one connection and serves it to its end.
pub fn serve(options: &Options, with: fn(&Board, Stream) -> io::Result<()>) -> io::Result<String> {
    let board = Board::create(&options.board)?;
    let (listener, at) = Listener::bind(options)?;
    if let Some(bytes) = options.buffers {
        listener.set_buffers(bytes)?;
    }
    crate::xtiperf::ready(&at);
    let stream = listener.accept(options)?;
    if let Some(given) = stream.buffers(options)? {
        board.receiver(0).set_buffers(given);
    }
    with(board, stream)?;
    board.receiver(0).set_done();
    Ok("done".to_string())
}

fn no_buffers() -> io::Error {
    io::Error::other("--buffers is not for this carrier")
}

fn not_connected() -> io::Error {
    io::Error::other("datagrams know no connection")
}
