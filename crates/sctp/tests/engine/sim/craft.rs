//! Packets by hand, written without the engine's own code, and a puppet that speaks them.

use std::net::IpAddr;
use std::time::Duration;

use headwater_sctp::Time;
use headwater_sctp::endpoint::{Arrived, Endpoint};

pub const DATA: u8 = 0;
pub const INIT: u8 = 1;
pub const INIT_ACK: u8 = 2;
pub const SACK: u8 = 3;
pub const HEARTBEAT: u8 = 4;
pub const HEARTBEAT_ACK: u8 = 5;
pub const ABORT: u8 = 6;
pub const SHUTDOWN: u8 = 7;
pub const SHUTDOWN_ACK: u8 = 8;
pub const ERROR: u8 = 9;
pub const COOKIE_ECHO: u8 = 10;
pub const COOKIE_ACK: u8 = 11;
pub const SHUTDOWN_COMPLETE: u8 = 14;
pub const AUTH: u8 = 15;
pub const I_DATA: u8 = 64;
pub const ASCONF_ACK: u8 = 128;
pub const RE_CONFIG: u8 = 130;
pub const PAD: u8 = 132;
pub const FORWARD_TSN: u8 = 192;
pub const ASCONF: u8 = 193;
pub const I_FORWARD_TSN: u8 = 194;

pub const COOKIE_PARAM: u16 = 7;

/// CRC32c, bit by bit: another way than the engine's.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

/// Puts the right checksum into a packet.
pub fn seal(packet: &mut [u8]) {
    if packet.len() >= 12 {
        packet[8..12].fill(0);
        let crc = crc32c(packet);
        packet[8..12].copy_from_slice(&crc.to_le_bytes());
    }
}

pub fn packet(source: u16, destination: u16, tag: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(source.to_be_bytes());
    bytes.extend(destination.to_be_bytes());
    bytes.extend(tag.to_be_bytes());
    bytes.extend([0; 4]);
    chunks.iter().for_each(|chunk| bytes.extend(chunk));
    seal(&mut bytes);
    bytes
}

pub fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, flags];
    bytes.extend((4 + value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A parameter or an error cause.
pub fn param(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend((4 + value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[derive(Clone)]
pub struct Opening {
    pub tag: u32,
    pub window: u32,
    pub outbound: u16,
    pub inbound: u16,
    pub tsn: u32,
    pub params: Vec<Vec<u8>>,
}

impl Default for Opening {
    fn default() -> Opening {
        Opening {
            tag: 0x1234_5678,
            window: 100_000,
            outbound: 10,
            inbound: 10,
            tsn: 1000,
            params: Vec::new(),
        }
    }
}

impl Opening {
    pub fn chunk(&self, kind: u8) -> Vec<u8> {
        let mut value = self.tag.to_be_bytes().to_vec();
        value.extend(self.window.to_be_bytes());
        value.extend(self.outbound.to_be_bytes());
        value.extend(self.inbound.to_be_bytes());
        value.extend(self.tsn.to_be_bytes());
        value.extend(self.params.concat());
        chunk(kind, 0, &value)
    }
}

/// DATA with all the flags: begin and end 3, unordered 4.
pub fn data(tsn: u32, stream: u16, ssn: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut value = tsn.to_be_bytes().to_vec();
    value.extend(stream.to_be_bytes());
    value.extend(ssn.to_be_bytes());
    value.extend([0; 4]);
    value.extend(payload);
    chunk(DATA, flags, &value)
}

pub fn sack(cumulative: u32, window: u32, gaps: &[(u16, u16)]) -> Vec<u8> {
    let mut value = cumulative.to_be_bytes().to_vec();
    value.extend(window.to_be_bytes());
    value.extend((gaps.len() as u16).to_be_bytes());
    value.extend([0; 2]);
    for (start, end) in gaps {
        value.extend(start.to_be_bytes());
        value.extend(end.to_be_bytes());
    }
    chunk(SACK, 0, &value)
}

pub fn forward(cumulative: u32) -> Vec<u8> {
    chunk(FORWARD_TSN, 0, &cumulative.to_be_bytes())
}

/// The chunks of a well-formed packet: kind, flags and value.
pub fn chunks(packet: &[u8]) -> Vec<(u8, u8, Vec<u8>)> {
    let mut rest = &packet[12..];
    let mut found = Vec::new();
    while rest.len() >= 4 {
        let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        assert!(
            len >= 4 && len <= rest.len(),
            "a chunk that we sent has a wrong length"
        );
        found.push((rest[0], rest[1], rest[4..len].to_vec()));
        rest = &rest[len.next_multiple_of(4).min(rest.len())..];
    }
    assert!(rest.is_empty(), "bytes after the last chunk");
    found
}

/// Parameters or error causes: kind and value. Padding of the last one may be missing.
pub fn params(mut rest: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut found = Vec::new();
    while rest.len() >= 4 {
        let kind = u16::from_be_bytes([rest[0], rest[1]]);
        let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        found.push((kind, rest[4..len].to_vec()));
        rest = &rest[len.next_multiple_of(4).min(rest.len())..];
    }
    found
}

pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn tag(packet: &[u8]) -> u32 {
    word(packet, 4)
}

/// Of an INIT ACK's value: the cookie.
pub fn cookie(init_ack: &[u8]) -> Vec<u8> {
    let mut rest = &init_ack[16..];
    while rest.len() >= 4 {
        let kind = u16::from_be_bytes([rest[0], rest[1]]);
        let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        if kind == COOKIE_PARAM {
            return rest[4..len].to_vec();
        }
        rest = &rest[len.next_multiple_of(4).min(rest.len())..];
    }
    panic!("an INIT ACK without a cookie");
}

/// A peer that does exactly what a test says.
pub struct Puppet {
    pub endpoint: Endpoint,
    pub now: Time,
    pub here: IpAddr,
    pub there: IpAddr,
    /// Ours and theirs.
    pub port: u16,
    pub their_port: u16,
    /// The tag that the endpoint wants to see.
    pub their_tag: u32,
    pub their_tsn: u32,
    pub opening: Opening,
}

impl Puppet {
    /// `endpoint` lives at address `there`.
    pub fn new(endpoint: Endpoint, there: IpAddr, here: IpAddr, opening: Opening) -> Puppet {
        let their_port = endpoint.port();
        Puppet {
            endpoint,
            now: Time(1_000_000_000),
            here,
            there,
            port: 7000,
            their_port,
            their_tag: 0,
            their_tsn: 0,
            opening,
        }
    }

    pub fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        while self.endpoint.timeout().is_some_and(|at| at <= self.now) {
            self.endpoint.on_timeout(self.now);
        }
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        let arrived = Arrived {
            from: self.here,
            to: self.there,
            encap: None,
            packet: bytes,
        };
        self.endpoint.handle(self.now, &arrived);
    }

    /// Sends chunks with the right tag.
    pub fn say(&mut self, chunks: &[Vec<u8>]) {
        let bytes = packet(self.port, self.their_port, self.their_tag, chunks);
        self.raw(&bytes);
    }

    /// Whole packets that the endpoint sends now.
    pub fn packets(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        loop {
            let mut out = Vec::new();
            let Some(transmit) = self.endpoint.transmit(self.now, &mut out, 16) else {
                return packets;
            };
            packets.extend(out.chunks(transmit.segment).map(<[u8]>::to_vec));
            assert!(packets.len() < 10_000, "it never stops");
        }
    }

    /// The chunks of all packets that the endpoint sends now; their checksums and tags are right.
    pub fn hear(&mut self) -> Vec<(u8, u8, Vec<u8>)> {
        let packets = self.packets();
        for packet in &packets {
            let mut again = packet.clone();
            seal(&mut again);
            assert_eq!(&again, packet, "a wrong checksum");
        }
        packets.iter().flat_map(|packet| chunks(packet)).collect()
    }

    /// Becomes the peer of an association, as the one who begins it.
    pub fn open(&mut self) {
        let init = self.opening.chunk(INIT);
        self.say(&[init]);
        let heard = self.hear();
        let (_, _, value) = heard
            .iter()
            .find(|(kind, ..)| *kind == INIT_ACK)
            .expect("an INIT ACK");
        self.their_tag = word(value, 0);
        self.their_tsn = word(value, 12);
        let cookie = cookie(value);
        self.say(&[chunk(COOKIE_ECHO, 0, &cookie)]);
        let heard = self.hear();
        assert!(
            heard.iter().any(|(kind, ..)| *kind == COOKIE_ACK),
            "a COOKIE ACK, not {heard:?}"
        );
    }

    /// The endpoint has begun: answers its INIT, and takes its cookie. What came with that.
    pub fn answer(&mut self) -> Vec<(u8, u8, Vec<u8>)> {
        let heard = self.answer_init();
        self.say(&[chunk(COOKIE_ACK, 0, &[])]);
        heard
    }

    /// The same as far as the COOKIE ECHO, which gets no answer.
    pub fn answer_init(&mut self) -> Vec<(u8, u8, Vec<u8>)> {
        self.opening
            .params
            .push(param(COOKIE_PARAM, b"the puppet's own"));
        let heard = self.say_init_ack();
        assert!(
            heard.iter().any(|(kind, ..)| *kind == COOKIE_ECHO),
            "a COOKIE ECHO, not {heard:?}"
        );
        heard
    }

    /// Answers an INIT with what the opening says, and gives what is said to that.
    pub fn say_init_ack(&mut self) -> Vec<(u8, u8, Vec<u8>)> {
        let packets = self.packets();
        let init = packets
            .iter()
            .find(|packet| packet[12] == INIT)
            .expect("an INIT");
        self.their_tag = word(init, 16);
        self.their_tsn = word(init, 28);
        let init_ack = self.opening.chunk(INIT_ACK);
        self.say(&[init_ack]);
        self.hear()
    }
}
