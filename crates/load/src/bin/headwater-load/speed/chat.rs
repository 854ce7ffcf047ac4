//! `chat`: rooms of members, each of which says something, waits until it has heard itself, and says the next thing. A server
//! passes everything on to all of the room. What counts is what is delivered.

mod members;
mod server;
mod waiter;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process;

use crate::net::Stream;
use crate::speed::child;
use crate::speed::options::{Carrier, Options};
use crate::speed::report::{Report, Told};
use crate::sys;

const ROOM_BITS: u32 = 16;
const MEMBER_BITS: u32 = 16;
const NUMBER_BITS: u32 = 30;
const BUFFER: usize = 64 << 10;

/// Who says what: a message's word without its flags. Number 0 is a member's arrival, and the server's answer to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Speech {
    room: usize,
    member: usize,
    number: u64,
}

impl Speech {
    fn word(self) -> u64 {
        let place = (self.room as u64) << MEMBER_BITS | self.member as u64;
        place << NUMBER_BITS | self.number
    }

    fn of(word: u64) -> Speech {
        let bits = |from: u32, count: u32| word >> from & ((1 << count) - 1);
        Speech {
            room: bits(NUMBER_BITS + MEMBER_BITS, ROOM_BITS) as usize,
            member: bits(NUMBER_BITS, MEMBER_BITS) as usize,
            number: bits(0, NUMBER_BITS),
        }
    }
}

/// Where the server listens, and how it is reached.
enum Place {
    Tcp(TcpListener),
    Unix(UnixListener, SocketAddr),
}

impl Place {
    fn new(carrier: Carrier) -> io::Result<Place> {
        if carrier == Carrier::Tcp {
            return Ok(Place::Tcp(TcpListener::bind("127.0.0.1:0")?));
        }
        let name = format!("headwater-load-speed-{}", process::id());
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(Place::Unix(UnixListener::bind_addr(&address)?, address))
    }

    fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Place::Tcp(listener) => prompt(listener.accept()?.0)?,
            Place::Unix(listener, _) => Stream::Unix(listener.accept()?.0),
        })
    }

    fn connect(&self) -> io::Result<Stream> {
        Ok(match self {
            Place::Tcp(listener) => prompt(TcpStream::connect(listener.local_addr()?)?)?,
            Place::Unix(_, address) => Stream::Unix(UnixStream::connect_addr(address)?),
        })
    }
}

fn prompt(stream: TcpStream) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    Ok(Stream::Tcp(stream))
}

pub fn run(options: &Options) -> io::Result<Report> {
    let limit = 1 << ROOM_BITS.min(MEMBER_BITS);
    if options.rooms >= limit || options.members >= limit {
        return Err(io::Error::other("too many rooms or members"));
    }
    // A connection that is carried otherwise may take some descriptors more.
    sys::allow_connections(8 * options.rooms * options.members)?;
    let place = Place::new(options.carrier)?;
    let server = child::fork(|| {
        sys::pin(&options.server_cpus)?;
        server::serve(&place, options)
    })?;
    sys::pin(&options.client_cpus)?;
    let processes = options.clients.min(options.rooms);
    let members = |process: usize| {
        members::chat(&place, options, (process..options.rooms).step_by(processes))
    };
    let others = (1..processes).map(|process| child::fork(|| members(process)?.line()));
    let others = others.collect::<io::Result<Vec<_>>>()?;
    let server = server.watch("the server");
    let others: Vec<_> = others
        .into_iter()
        .map(|other| other.watch("a client"))
        .collect();

    let mut told = vec![members(0)?];
    for other in others {
        told.push(Told::parse(&other.finish()?)?);
    }
    let served = Told::parse(&server.finish()?)?;
    summary(&told, &served, options)
}

fn summary(told: &[Told], served: &Told, options: &Options) -> io::Result<Report> {
    let sum = |of: fn(&Told) -> u64| told.iter().map(of).sum::<u64>();
    let (messages, all_messages) = (sum(|told| told.messages), sum(|told| told.all_messages));
    if all_messages != served.all_messages {
        let sent = served.all_messages;
        return Err(io::Error::other(format!(
            "{all_messages} of {sent} messages arrived"
        )));
    }
    let spent = told
        .iter()
        .fold(served.spent, |sum, told| sum.plus(told.spent));
    let seconds = told.iter().map(|told| told.seconds).sum::<f64>() / told.len().max(1) as f64;
    Ok(Report {
        messages,
        all_messages,
        seconds,
        bytes: messages * options.size as u64,
        // Each process has seen that of all of them.
        loopback_bytes: told.first().map_or(0, |told| told.loopback_bytes),
        spent: spent.scaled(messages, all_messages),
        latencies: told
            .first()
            .map(|told| told.latencies.clone())
            .unwrap_or_default(),
    })
}

/// Takes whole messages off the front of what was received, and gives each to `take`.
fn each_message(
    unread: &mut Vec<u8>,
    size: usize,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let whole = unread.len() / size * size;
    unread[..whole].chunks_exact(size).try_for_each(&mut take)?;
    unread.drain(..whole);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_who_says_what() {
        let speech = Speech {
            room: 65_535,
            member: 19,
            number: 1_000_000_000,
        };
        assert_eq!(Speech::of(speech.word()), speech);
        assert_eq!(
            speech.word() & (crate::speed::message::START | crate::speed::message::LAST),
            0
        );
    }

    #[test]
    fn messages_are_taken_whole_and_the_rest_stays() {
        let mut unread = (0..50).collect::<Vec<u8>>();
        let mut firsts = Vec::new();
        each_message(&mut unread, 20, |message| {
            firsts.push(message[0]);
            Ok(())
        })
        .unwrap();
        assert_eq!((firsts, unread[0], unread.len()), (vec![0, 20], 40, 10));
    }
}
