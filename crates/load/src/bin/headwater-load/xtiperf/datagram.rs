//! Datagrams of every carrier.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::unix::net::UnixDatagram;

use crate::xtiperf::batched;
use crate::xtiperf::buffers::{self, Buffers};
use crate::xtiperf::many;
use crate::xtiperf::options::{Carrier, Options};
use crate::xtiperf::stream::no_buffers;
use crate::xtiperf::xti::{self, Datagrams, Endpoint};

pub enum Receiver {
    Udp(UdpSocket),
    Batched(batched::Receiver<{ batched::MESSAGES }>),
    Many(batched::Receiver<{ many::MESSAGES }>),
    Unix(UnixDatagram),
    Xti(Datagrams),
}

pub enum Sender {
    Udp(UdpSocket, Vec<SocketAddrV4>),
    Batched(batched::Sender),
    Many(many::Sender),
    Unix(UnixDatagram, Vec<String>),
    Xti(Datagrams, Vec<Vec<u8>>),
}

impl Receiver {
    /// With the address to send to. `index` tells receivers of one name apart.
    pub fn bind(options: &Options, index: usize) -> io::Result<(Receiver, String)> {
        let name = match options.carrier.is_inet() {
            true => options.at.clone(),
            false => format!("{}.{index}", options.at),
        };
        Ok(match &options.carrier {
            Carrier::Udp => {
                let socket = UdpSocket::bind(&name)?;
                let at = socket.local_addr()?.to_string();
                (Receiver::Udp(socket), at)
            }
            Carrier::UdpBatched => {
                let (receiver, at) = batched::Receiver::bind(&name, true)?;
                (Receiver::Batched(receiver), at)
            }
            Carrier::UdpMany => {
                let (receiver, at) = batched::Receiver::bind(&name, false)?;
                (Receiver::Many(receiver), at)
            }
            Carrier::Unix => {
                let _ = std::fs::remove_file(&name);
                (Receiver::Unix(UnixDatagram::bind(&name)?), name)
            }
            Carrier::Device(device) => {
                let endpoint = Endpoint::open(device)?;
                let address = xti::encode(&options.carrier, &name)?;
                let bound = endpoint.bind(Some(&address), 0)?;
                let at = xti::decode(&options.carrier, &bound);
                endpoint.become_stream(options)?;
                (Receiver::Xti(Datagrams::of(endpoint)), at)
            }
            Carrier::Tcp | Carrier::Sctp => return Err(connected()),
        })
    }

    /// The next datagram: in `buffer`, or where it has been taken to with others.
    #[inline]
    pub fn receive<'a>(&'a mut self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let count = match self {
            Receiver::Batched(receiver) => return receiver.receive(),
            Receiver::Many(receiver) => return receiver.receive(),
            Receiver::Udp(socket) => socket.recv_from(buffer)?.0,
            Receiver::Unix(socket) => socket.recv_from(buffer)?.0,
            Receiver::Xti(datagrams) => datagrams.receive(buffer)?,
        };
        Ok(&buffer[..count])
    }

    pub fn set_buffers(&self, bytes: u32) -> io::Result<Buffers> {
        match self {
            Receiver::Udp(socket) => buffers::set(socket, bytes),
            Receiver::Unix(socket) => buffers::set(socket, bytes),
            Receiver::Xti(datagrams) => datagrams.set_buffers(bytes),
            Receiver::Batched(_) | Receiver::Many(_) => Err(no_buffers()),
        }
    }
}

impl Sender {
    /// To the addresses in the option, with commas between them.
    pub fn new(options: &Options) -> io::Result<Sender> {
        let targets = options.at.split(',');
        Ok(match &options.carrier {
            Carrier::Udp => Sender::Udp(UdpSocket::bind("127.0.0.1:0")?, addresses(options)?),
            Carrier::UdpBatched => Sender::Batched(batched::Sender::new(addresses(options)?)?),
            Carrier::UdpMany => Sender::Many(many::Sender::new(addresses(options)?)?),
            Carrier::Unix => Sender::Unix(
                UnixDatagram::unbound()?,
                targets.map(str::to_string).collect(),
            ),
            Carrier::Device(device) => {
                let endpoint = Endpoint::open(device)?;
                endpoint.bind(None, 0)?;
                endpoint.become_stream(options)?;
                let targets = targets.map(|at| xti::encode(&options.carrier, at));
                Sender::Xti(Datagrams::of(endpoint), targets.collect::<io::Result<_>>()?)
            }
            Carrier::Tcp | Carrier::Sctp => return Err(connected()),
        })
    }

    #[inline]
    pub fn send(&mut self, target: usize, bytes: &[u8]) -> io::Result<()> {
        match self {
            Sender::Udp(socket, targets) => socket.send_to(bytes, targets[target]).map(drop),
            Sender::Batched(sender) => sender.send(target, bytes),
            Sender::Many(sender) => sender.send(target, bytes),
            Sender::Unix(socket, targets) => socket.send_to(bytes, &targets[target]).map(drop),
            Sender::Xti(datagrams, targets) => datagrams.send(&targets[target], bytes),
        }
    }

    pub fn set_buffers(&self, bytes: u32) -> io::Result<Buffers> {
        match self {
            Sender::Udp(socket, _) => buffers::set(socket, bytes),
            Sender::Unix(socket, _) => buffers::set(socket, bytes),
            Sender::Xti(datagrams, _) => datagrams.set_buffers(bytes),
            Sender::Batched(_) | Sender::Many(_) => Err(no_buffers()),
        }
    }

    /// What the program itself holds back.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Sender::Batched(sender) => sender.flush(),
            Sender::Many(sender) => sender.flush(),
            _ => Ok(()),
        }
    }
}

fn addresses(options: &Options) -> io::Result<Vec<SocketAddrV4>> {
    let targets = options.at.split(',');
    targets
        .map(|at| at.parse().map_err(io::Error::other))
        .collect()
}

fn connected() -> io::Error {
    io::Error::other("TCP knows no datagrams")
}
