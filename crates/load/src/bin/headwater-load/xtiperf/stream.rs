//! Connections of every carrier.

use std::io::{self, Read, Write};

use crate::net::{self, Setup};
use crate::xtiperf::board::Board;
use crate::xtiperf::buffers::{self, Buffers};
use crate::xtiperf::options::{Carrier, Options};
use crate::xtiperf::sctp;
use crate::xtiperf::xti::{self, Endpoint};

pub enum Stream {
    Socket(net::Stream),
    Sctp(sctp::Socket),
    Xti(Endpoint),
}

pub enum Listener {
    Socket(net::Listener),
    Sctp(sctp::Socket),
    Xti(Endpoint),
}

impl Listener {
    /// With the address to go to.
    pub fn bind(options: &Options) -> io::Result<(Listener, String)> {
        Ok(match &options.carrier {
            Carrier::Tcp | Carrier::Unix => {
                let listener = net::Listener::bind(&address(options), setup(options))?;
                let at = listener.address(&options.at)?;
                (Listener::Socket(listener), at)
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
            Listener::Socket(listener) => Stream::Socket(listener.accept(setup(options))?),
            Listener::Sctp(listener) => Stream::Sctp(listener.accept()?),
            Listener::Xti(listener) => Stream::Xti(listener.accept()?),
        };
        stream.prepare(options)?;
        Ok(stream)
    }

    /// Before anybody connects: TCP settles then how large its window can become.
    fn set_buffers(&self, bytes: u32) -> io::Result<Buffers> {
        match self {
            Listener::Socket(listener) => buffers::set(listener, bytes),
            Listener::Sctp(_) => Err(no_buffers()),
            Listener::Xti(listener) => listener.set_buffers(bytes),
        }
    }
}

impl Stream {
    pub fn connect(options: &Options) -> io::Result<Stream> {
        let stream = match &options.carrier {
            Carrier::Tcp | Carrier::Unix => {
                Stream::Socket(net::Stream::connect(&address(options), setup(options))?)
            }
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
            Stream::Socket(stream) => buffers::set(stream, bytes),
            Stream::Sctp(_) => Err(no_buffers()),
            Stream::Xti(endpoint) => endpoint.set_buffers(bytes),
        };
        given.map(Some)
    }

    fn prepare(&self, options: &Options) -> io::Result<()> {
        if options.nodelay {
            match self {
                Stream::Socket(_) => {}
                Stream::Sctp(socket) => socket.set_nodelay()?,
                Stream::Xti(endpoint) => endpoint.set_nodelay()?,
            }
        }
        match self {
            Stream::Xti(endpoint) => endpoint.become_stream(options),
            _ => Ok(()),
        }
    }

    #[inline]
    pub fn send_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = match self {
                Stream::Socket(stream) => stream.write(bytes)?,
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
            Stream::Socket(stream) => stream.read(buffer),
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
            Stream::Socket(stream) => stream.finish_writing(),
            Stream::Sctp(socket) => socket.finish(),
            Stream::Xti(endpoint) => endpoint.release(),
        }
    }
}

/// Of a socket, as [`net`] has it.
fn address(options: &Options) -> String {
    match options.carrier {
        Carrier::Unix => format!("unix:{}", options.at),
        _ => options.at.clone(),
    }
}

fn setup(options: &Options) -> Setup {
    Setup {
        nodelay: options.nodelay,
        ..Setup::default()
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

pub fn no_buffers() -> io::Error {
    io::Error::other("--buffers is not for this carrier")
}

fn not_connected() -> io::Error {
    io::Error::other("datagrams know no connection")
}
