//! A sender, a network that loses and delays, and a receiver just large enough to see that everything arrives.

use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use crate::RtoLimits;
use crate::congestion::Rfc9260;
use crate::path::{Path, PathId, PathState, Paths};
use crate::pmtu::Pmtu;
use crate::rto::Rto;
use crate::sched::SchedulerKind;
use crate::send::{Acked, Outgoing, SackError, SendConfig, Sender};
use crate::serial::Tsn;
use crate::time::Time;
use crate::timer::{Timer, Timers};
use crate::wire::{Chunk, Data, DataHead, Packet, PacketBuilder};

pub const A: PathId = PathId(0);
pub const B: PathId = PathId(1);
pub const MTU: usize = 1452;

pub fn config() -> SendConfig {
    SendConfig {
        nagle: false,
        joins: false,
        max_burst: 4,
        interleave: false,
        partial_reliability: true,
        buffer: 1 << 20,
        scheduler: SchedulerKind::Fcfs,
    }
}

pub fn on_stream(stream: u16) -> Outgoing {
    Outgoing {
        stream,
        ..Outgoing::default()
    }
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn path(last: u8) -> Path {
    Path {
        addr: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)),
        encap: None,
        from: None,
        heard: None,
        state: PathState::Active,
        rto: Rto::new(RtoLimits::default()),
        window: Box::new(Rfc9260::new(MTU)),
        flight: 0,
        mtu: MTU,
        probing: Pmtu::new(MTU, MTU),
        errors: 0,
        last_sent: Time(0),
        heartbeat: None,
        heartbeats: false,
        heartbeat_interval: None,
        most_errors: None,
        potentially_failed: None,
        heartbeat_wanted: false,
        probe: None,
        retransmissions: 0,
    }
}

/// A DATA chunk as it was on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub head: DataHead,
    pub payload: Vec<u8>,
}

impl Seen {
    pub fn as_data(&self) -> Data<'_> {
        Data {
            head: self.head,
            payload: &self.payload,
        }
    }
}

/// A sender with its paths and timers.
pub struct Desk {
    pub sender: Sender,
    pub paths: Paths,
    pub timers: Timers,
    pub now: Time,
}

impl Desk {
    pub fn new(config: SendConfig, initial: u32) -> Desk {
        let mut paths = Paths::default();
        paths.add(path(1));
        paths.add(path(2));
        Desk {
            sender: Sender::new(config, Tsn(initial), 8, 1 << 20),
            paths,
            timers: Timers::default(),
            now: Time(1_000_000),
        }
    }

    pub fn wants(&self) -> bool {
        self.sender.wants(self.now, A, &self.paths)
    }

    /// Takes a message of `len` bytes.
    pub fn send(&mut self, stream: u16, len: usize) {
        let message = on_stream(stream);
        self.sender
            .enqueue(self.now, &message, &vec![7; len], false)
            .unwrap();
    }

    /// The next packet as bytes; empty if there is none.
    pub fn packet_on(&mut self, id: PathId) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.sender.wants(self.now, id, &self.paths) {
            let limit = self.paths[id].mtu;
            let mut packet = PacketBuilder::begin(&mut bytes, 1, 2, 3, limit);
            if self.sender.forward_due() {
                self.sender
                    .write_forward(self.now, id, &self.paths, &mut self.timers, &mut packet);
            }
            self.sender
                .fill(self.now, id, &mut self.paths, &mut self.timers, &mut packet);
            match packet.is_empty() {
                true => packet.cancel(),
                false => drop(packet.finish(None, false)),
            }
        } else if self.sender.forward_due() {
            let mut packet = PacketBuilder::begin(&mut bytes, 1, 2, 3, MTU);
            self.sender
                .write_forward(self.now, id, &self.paths, &mut self.timers, &mut packet);
            packet.finish(None, false);
        }
        self.check();
        bytes
    }

    /// The chunks of the next packet.
    pub fn packet(&mut self) -> Vec<Seen> {
        let bytes = self.packet_on(A);
        match bytes.is_empty() {
            true => Vec::new(),
            false => data_of(&bytes),
        }
    }

    /// All that may leave now: the chunks of each packet.
    pub fn flush(&mut self) -> Vec<Vec<Seen>> {
        core::iter::from_fn(|| Some(self.packet()).filter(|chunks| !chunks.is_empty())).collect()
    }

    pub fn sack(
        &mut self,
        cumulative: u32,
        window: u32,
        gaps: &[(u16, u16)],
    ) -> Result<Acked, SackError> {
        let mut bytes = Vec::new();
        let mut packet = PacketBuilder::begin(&mut bytes, 2, 1, 3, MTU);
        packet.sack(Tsn(cumulative), window, gaps, &[]);
        packet.finish(None, false);
        self.sack_packet(&bytes)
    }

    pub fn sack_packet(&mut self, bytes: &[u8]) -> Result<Acked, SackError> {
        let packet = Packet::parse(bytes).unwrap();
        let Some(Ok(Chunk::Sack(sack))) = packet.chunks().next() else {
            panic!("no SACK");
        };
        let acked = self
            .sender
            .on_sack(self.now, &sack, &mut self.paths, &mut self.timers)?;
        if let Some((id, rtt)) = acked.rtt {
            self.paths[id].rto.sample(rtt);
        }
        self.check();
        Ok(acked)
    }

    /// Lets T3 of the path expire, as its owner does.
    pub fn t3(&mut self, id: PathId) {
        let due = self.timers.get(Timer::T3(id)).expect("T3 is running");
        self.now = self.now.max(due);
        self.timers.stop(Timer::T3(id));
        self.paths[id].rto.back_off();
        self.sender
            .on_t3(self.now, id, &mut self.paths, &mut self.timers);
        self.check();
    }

    pub fn check(&self) {
        self.sender.check(&self.paths);
        let mut pending = self.sender.lost() > 0 || self.sender.forward_due();
        for (id, path) in self.paths.iter() {
            let t3 = self.timers.get(Timer::T3(id)).is_some();
            assert!(t3 || path.flight == 0, "T3 of {id:?} is not running");
            pending |= t3;
        }
        assert!(
            pending || self.sender.all_acknowledged(),
            "nothing will happen any more"
        );
    }
}

pub fn data_of(bytes: &[u8]) -> Vec<Seen> {
    let packet = Packet::parse(bytes).unwrap();
    let chunks = packet.chunks().map(Result::unwrap);
    chunks
        .filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(Seen {
                head: data.head,
                payload: data.payload.to_vec(),
            }),
            _ => None,
        })
        .collect()
}

/// By stream and order, what arrived: numbers and bytes.
pub type Messages = BTreeMap<(u16, bool), Vec<(u32, Vec<u8>)>>;

/// What arrived. TSNs are counted from the first one.
pub struct Receiver {
    initial: u32,
    pub arrived: BTreeMap<u32, Seen>,
    /// Passed over by FORWARD-TSNs, or arrived.
    done: BTreeSet<u32>,
    cumulative: u32,
    /// The most bytes beyond the cumulative acknowledgement that it takes.
    room: usize,
    /// Now and then it throws away what came out of order.
    pub reneges: bool,
}

impl Receiver {
    pub fn new(initial: u32, room: usize) -> Receiver {
        Receiver {
            initial,
            arrived: BTreeMap::new(),
            done: BTreeSet::new(),
            cumulative: 0,
            room,
            reneges: false,
        }
    }

    fn waiting(&self) -> usize {
        let waiting = self.done.range(self.cumulative..);
        waiting
            .filter_map(|tsn| self.arrived.get(tsn))
            .map(|seen| seen.payload.len())
            .sum()
    }

    pub fn take(&mut self, bytes: &[u8]) {
        let packet = Packet::parse(bytes).unwrap();
        for chunk in packet.chunks().map(Result::unwrap) {
            match chunk {
                Chunk::Data(data) => {
                    let tsn = data.tsn.0.wrapping_sub(self.initial);
                    assert!(tsn < 1 << 31, "a TSN from before the first");
                    let fits = self.waiting() + data.payload.len() <= self.room;
                    if tsn < self.cumulative || tsn > self.cumulative && !fits {
                        continue;
                    }
                    let seen = Seen {
                        head: data.head,
                        payload: data.payload.to_vec(),
                    };
                    if let Some(before) = self.arrived.insert(tsn, seen.clone()) {
                        assert_eq!(before, seen, "a TSN with two meanings");
                    }
                    self.done.insert(tsn);
                }
                Chunk::Forward(forward) => {
                    let upto = forward
                        .cumulative
                        .0
                        .wrapping_sub(self.initial)
                        .wrapping_add(1);
                    if upto < 1 << 31 && upto > self.cumulative {
                        self.cumulative = upto;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        while self.done.contains(&self.cumulative) {
            self.cumulative += 1;
        }
        self.done = self.done.split_off(&self.cumulative);
    }

    pub fn sack(&mut self) -> Vec<u8> {
        if self.reneges
            && let Some(last) = self.done.pop_last()
        {
            self.arrived.remove(&last);
        }
        let mut gaps: Vec<(u16, u16)> = Vec::new();
        for tsn in &self.done {
            let at = (tsn - self.cumulative + 1) as u16;
            match gaps.last_mut() {
                Some((_, last)) if *last + 1 == at => *last = at,
                _ => gaps.push((at, at)),
            }
        }
        let mut bytes = Vec::new();
        let mut packet = PacketBuilder::begin(&mut bytes, 2, 1, 3, 65_000);
        let cumulative = self.initial.wrapping_add(self.cumulative).wrapping_sub(1);
        let window = self.room.saturating_sub(self.waiting()) as u32;
        packet.sack(Tsn(cumulative), window, &gaps, &[]);
        packet.finish(None, false);
        bytes
    }

    /// Whole messages by (stream, unordered): number and bytes.
    pub fn messages(&self) -> Messages {
        let mut chunks: Vec<(u32, &Seen)> = self.arrived.iter().map(|(t, s)| (*t, s)).collect();
        let interleaved = chunks
            .first()
            .is_some_and(|(_, seen)| seen.head.interleaved);
        if interleaved {
            let key = |s: &Seen| (s.head.stream, s.head.unordered, s.head.mid.0, s.head.fsn);
            chunks.sort_by_key(|(_, seen)| key(seen));
        }
        let mut messages = Messages::new();
        let mut parts: Vec<(u32, &Seen)> = Vec::new();
        for (tsn, seen) in chunks {
            let follows = parts
                .last()
                .is_some_and(|(before, last)| match interleaved {
                    true => last.head.mid == seen.head.mid && last.head.fsn + 1 == seen.head.fsn,
                    false => before + 1 == tsn,
                });
            if seen.head.begin || !follows {
                parts.clear();
            }
            if !seen.head.begin && parts.is_empty() {
                continue;
            }
            parts.push((tsn, seen));
            if seen.head.end {
                let first = parts[0].1.head;
                assert!(parts.iter().all(|(_, p)| p.head.stream == first.stream));
                let whole = parts
                    .iter()
                    .flat_map(|(_, p)| p.payload.iter().copied())
                    .collect();
                let number = if interleaved {
                    first.mid.0
                } else {
                    u32::from(first.ssn.0)
                };
                messages
                    .entry((first.stream, first.unordered))
                    .or_default()
                    .push((number, whole));
                parts.clear();
            }
        }
        messages
    }
}

/// Sender and receiver with a network between them.
pub struct World {
    pub desk: Desk,
    pub receiver: Receiver,
    /// Of 1000 packets, so many are lost; one way takes so long, and somewhat more.
    pub loss: u64,
    pub delay: Duration,
    pub jitter: Duration,
    /// Nothing gets through on path A.
    pub cut: bool,
    random: u64,
    number: u64,
    there: BTreeMap<(Time, u64), Vec<u8>>,
    back: BTreeMap<(Time, u64), Vec<u8>>,
    pub packets: usize,
    pub timeouts: usize,
}

impl World {
    pub fn new(config: SendConfig, initial: u32, room: usize, seed: u64) -> World {
        let mut desk = Desk::new(config, initial);
        desk.sender.window = room;
        World {
            desk,
            receiver: Receiver::new(initial, room),
            loss: 0,
            delay: ms(5),
            jitter: ms(0),
            cut: false,
            random: seed | 1,
            number: 0,
            there: BTreeMap::new(),
            back: BTreeMap::new(),
            packets: 0,
            timeouts: 0,
        }
    }

    pub fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below.max(1)
    }

    fn arrival(&mut self) -> Option<(Time, u64)> {
        self.number += 1;
        let jitter = self.random(self.jitter.as_nanos() as u64 + 1);
        let at = self.desk.now + self.delay + Duration::from_nanos(jitter);
        (self.random(1000) >= self.loss).then_some((at, self.number))
    }

    /// Sends what may be sent now.
    pub fn pump(&mut self) {
        loop {
            let id = match self.desk.sender.lost_on() {
                Some(A) => B,
                _ => A,
            };
            let packet = self.desk.packet_on(id);
            if packet.is_empty() {
                break;
            }
            self.packets += 1;
            if let Some(at) = self.arrival().filter(|_| !(self.cut && id == A)) {
                self.there.insert(at, packet);
            }
        }
    }

    /// Goes on to the next thing that happens; whether something did.
    pub fn step(&mut self) -> bool {
        self.pump();
        let there = self.there.first_key_value().map(|((at, _), _)| *at);
        let back = self.back.first_key_value().map(|((at, _), _)| *at);
        let timer = self.desk.timers.next();
        let expiry = self.desk.sender.next_expiry();
        let Some(next) = [there, back, timer, expiry].into_iter().flatten().min() else {
            return false;
        };
        self.desk.now = self.desk.now.max(next);
        if there == Some(next) {
            let (_, packet) = self.there.pop_first().unwrap();
            self.receiver.take(&packet);
            self.receiver.reneges = self.receiver.reneges && self.random(2) == 0;
            let sack = self.receiver.sack();
            if let Some(at) = self.arrival() {
                self.back.insert(at, sack);
            }
        } else if back == Some(next) {
            let (_, sack) = self.back.pop_first().unwrap();
            self.desk.sack_packet(&sack).unwrap();
        } else if expiry == Some(next) {
            self.desk.sender.expire(self.desk.now);
            self.desk.check();
        } else {
            let Some(Timer::T3(id)) = self.desk.timers.expired(next) else {
                panic!("a timer that is not the sender's");
            };
            self.timeouts += 1;
            self.desk.timers.set(Timer::T3(id), next);
            self.desk.t3(id);
        }
        true
    }

    /// Until all is acknowledged.
    pub fn finish(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 2_000_000, "it never ends");
        }
        assert!(self.desk.sender.is_idle(), "something was left");
    }
}
