//! What the ends of an association within the host tell each other: with the request and its answer, and by notes in order
//! with the data. What RFC 6525 has chunks for, stream resets and new streams, are such notes.

use core::net::{IpAddr, Ipv4Addr};

use headwater_ipnet::Address;
use headwater_sctp::{Allowed, AssocConfig};

use crate::addresses;
use crate::choice::mapped;

/// What the ends tell each other once there is an association.
pub mod note {
    /// The sender's outgoing streams begin anew: list of streams, empty for all.
    pub const RESET: u32 = 0;
    /// The receiver is to do that to its own.
    pub const RESET_YOURS: u32 = 1;
    /// All numbers of both directions begin anew; the data says whether this is the answer.
    pub const RESET_ALL: u32 = 2;
    /// So many outgoing and so many incoming streams more, as the sender sees them.
    pub const ADD: u32 = 3;
    /// What the receiver may ask for of these: the bits of an [`Allowed`](super::Allowed).
    pub const ALLOWED: u32 = 4;
}

/// What the ends tell each other before: the part of INIT and INIT ACK that matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// Streams that the sender of this wants, and takes.
    pub out: u16,
    pub inbound: u16,
    pub adaptation: u32,
    /// Whom the caller called.
    pub called: IpAddr,
    pub port: u16,
}

/// Where a greeting says what the peer is allowed.
const ALLOWS: usize = 26;
const LEN: usize = 28;

impl Greeting {
    pub fn of(config: &AssocConfig) -> Greeting {
        Greeting {
            out: config.outbound,
            inbound: config.inbound,
            adaptation: config.adaptation.unwrap_or(0),
            called: Ipv4Addr::UNSPECIFIED.into(),
            port: 0,
        }
    }

    /// As the peer is told it. With `hosts`, the addresses of this end with its port, what the peer is allowed follows as a note;
    /// without, that is everything.
    pub fn told(&self, hosts: Option<&[IpAddr]>, port: u16) -> Vec<u8> {
        let mut bytes = vec![0; LEN];
        bytes[..2].copy_from_slice(&self.out.to_ne_bytes());
        bytes[2..4].copy_from_slice(&self.inbound.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.adaptation.to_ne_bytes());
        bytes[8..24].copy_from_slice(&mapped(self.called).octets());
        bytes[24..26].copy_from_slice(&self.port.to_ne_bytes());
        match hosts {
            None => bytes[ALLOWS] = Allowed::ALL.0 + 1,
            Some(hosts) => {
                let each = hosts.iter().take(addresses::MOST);
                bytes.extend(each.flat_map(|&host| Address::of_ip(host, port).to_vec()));
            }
        }
        bytes
    }

    pub fn read(bytes: &[u8]) -> Option<Greeting> {
        let bytes: &[u8; LEN] = bytes.get(..LEN)?.try_into().ok()?;
        let half = |i: usize| u16::from_ne_bytes([bytes[i], bytes[i + 1]]);
        let called: [u8; 16] = bytes[8..24].try_into().ok()?;
        Some(Greeting {
            out: half(0).max(1),
            inbound: half(2).max(1),
            adaptation: u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            called: IpAddr::from(called).to_canonical(),
            port: half(24),
        })
    }

    /// What the greeting of both makes of streams.
    pub fn agreed(&self, theirs: &Greeting) -> Greeting {
        Greeting {
            out: self.out.min(theirs.inbound),
            inbound: self.inbound.min(theirs.out),
            ..*self
        }
    }
}

/// Who asks, and for what. `None`: nonsense.
pub fn asked(from: &[u8], opts: &[u8]) -> Option<(Address, Greeting)> {
    Some((Address::read(from).ok()?, Greeting::read(opts)?))
}

/// What a greeting allows; `None`: that is told by a note.
pub fn allows(greeting: &[u8]) -> Option<Allowed> {
    greeting.get(ALLOWS)?.checked_sub(1).map(Allowed)
}

/// The addresses of an end, behind its greeting.
pub fn hosts_behind(greeting: &[u8]) -> Vec<IpAddr> {
    let mut rest = greeting.get(LEN..).unwrap_or(&[]);
    let mut hosts = Vec::new();
    while let Ok(host) = Address::read(rest) {
        hosts.push(host.ip().to_canonical());
        rest = &rest[host.bytes().len()..];
    }
    hosts
}

/// The first, and all others.
pub fn with_others(first: IpAddr, all: &[IpAddr]) -> Vec<IpAddr> {
    let first = first.to_canonical();
    let others = all.iter().map(IpAddr::to_canonical);
    let others = others.filter(|&host| host != first);
    core::iter::once(first).chain(others).collect()
}

pub fn list(streams: &[u16]) -> Vec<u8> {
    streams.iter().flat_map(|s| s.to_ne_bytes()).collect()
}
