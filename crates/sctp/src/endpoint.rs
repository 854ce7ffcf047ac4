//! One SCTP port of one process: finds the association of each packet, and answers what belongs to none.
//!
//! An endpoint does no I/O. Its user gives it packets ([`handle`](Endpoint::handle)) and the time ([`on_timeout`](Endpoint::on_timeout)), and takes
//! packets ([`transmit`](Endpoint::transmit)), events ([`event`](Endpoint::event)) and the next deadline ([`timeout`](Endpoint::timeout)) until there are
//! no more.

mod answers;
mod opening;
mod table;
#[cfg(test)]
mod tests;

use core::net::IpAddr;
use std::collections::{BTreeSet, VecDeque};

use rand_chacha::ChaCha12Rng;
use rand_core::{RngCore, SeedableRng};

pub use crate::association::AssocId;
pub use crate::packet::{Arrived, Transmit};
pub use answers::out_of_the_blue;
use opening::Other;
use table::Table;

use crate::asconf::Change;
use crate::association::{LastPacket, MOST_EVENTS, SendError, SetUp, State};
use crate::auth::{Hmac, Vectors};
use crate::path::is_host;
use crate::wire::{Chunk, Packet, kind};
use crate::{AssocConfig, Association, Config, Event, Features, Outgoing, Received, Time, Tsn};

/// Whom to connect to.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// The INIT goes to the first.
    pub addresses: &'a [IpAddr],
    pub port: u16,
    /// The peer's UDP port, where packets are encapsulated.
    pub encap: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// No address to connect to.
    NoAddress,
    /// There is an association with this peer already.
    Connected,
    /// As many associations as are allowed.
    TooMany,
}

/// What the network says of a packet of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreachable {
    /// Nobody there understands SCTP, or listens to the UDP port.
    Port,
    /// Nobody listened to the UDP port for a moment, which has passed: worth another try at once.
    Passing,
    /// Packets have to be no longer than this, SCTP header included.
    TooBig(usize),
}

#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    port: u16,
    addresses: Vec<IpAddr>,
    random: ChaCha12Rng,
    backlog: usize,
    each_arrival: bool,
    /// Established by peers, not yet taken by the user.
    waiting: VecDeque<AssocId>,
    table: Table,
    /// Those that may have something to send.
    busy: VecDeque<AssocId>,
    deadlines: BTreeSet<(Time, AssocId)>,
    events: VecDeque<(AssocId, Event)>,
    /// Associations with peers of which a former one, the second, is not quite over.
    held: Vec<(AssocId, AssocId)>,
    /// Packets that belong to no association, or to none any more.
    loose: VecDeque<LastPacket>,
}

/// Answers to packets without an association that may wait to be sent: more are not made.
const MOST_LOOSE: usize = 1024;

impl Endpoint {
    /// `addresses`: those that peers are told; none: whichever the packets use.
    pub fn new(config: Config, port: u16, addresses: Vec<IpAddr>, seed: [u8; 32]) -> Endpoint {
        Endpoint {
            config,
            port,
            addresses,
            random: ChaCha12Rng::from_seed(seed),
            backlog: 0,
            each_arrival: false,
            waiting: VecDeque::new(),
            table: Table::default(),
            busy: VecDeque::new(),
            deadlines: BTreeSet::new(),
            events: VecDeque::new(),
            held: Vec::new(),
            loose: VecDeque::new(),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// One more address of ours, for later associations, and for those whose peers can be told (RFC 5061). It was not among them:
    /// true.
    pub fn add_address(&mut self, addr: IpAddr) -> bool {
        let fresh = !self.addresses.contains(&addr);
        if fresh {
            self.addresses.push(addr);
            self.change_addresses(Change::Add(addr));
        }
        fresh
    }

    /// One less; it was among them: true. The last one stays.
    pub fn remove_address(&mut self, addr: IpAddr) -> bool {
        let known = self.addresses.len() > 1 && self.addresses.contains(&addr);
        if known {
            self.addresses.retain(|one| *one != addr);
            self.change_addresses(Change::Delete(addr));
        }
        known
    }

    /// May peers begin associations at this address of ours? Who does not know at which a packet has come, is at none in particular.
    fn is_open_at(&self, to: IpAddr) -> bool {
        let family = match to {
            IpAddr::V4(_) => self.config.ipv4,
            IpAddr::V6(_) => self.config.ipv6,
        };
        let here = to.is_unspecified() || self.addresses.contains(&to);
        family && (self.addresses.is_empty() || here)
    }

    /// For later associations only.
    pub fn set_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.addresses = addresses;
    }

    fn change_addresses(&mut self, change: Change) {
        let able = self.table.iter().filter(|a| a.features().addresses);
        let able: Vec<AssocId> = able.map(Association::id).collect();
        for id in able {
            self.change(id, |association| {
                // One that is closing has no use for it.
                let _ = association.change_addresses(change);
            });
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What later associations are told.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }

    /// Later associations tell [`Event::Readable`] whenever something has come, not only after there was nothing.
    pub fn tell_each_arrival(&mut self, on: bool) {
        self.each_arrival = on;
    }

    /// How many associations of peers may wait for [`accept`](Endpoint::accept); 0: none are let in.
    pub fn listen(&mut self, backlog: usize) {
        self.backlog = backlog;
    }

    /// Begins an association; [`Event::Up`] or [`Event::Down`] tells what came of it. Where one with the same peer, that was released,
    /// is still to deliver something or to be shut down, that comes first.
    pub fn connect(
        &mut self,
        now: Time,
        peer: &Peer<'_>,
        config: &AssocConfig,
    ) -> Result<AssocId, ConnectError> {
        if peer.addresses.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        if self.table.len() >= self.config.most_associations {
            return Err(ConnectError::TooMany);
        }
        let before = self.former(peer)?;
        let vectors = self.vectors(config);
        let set_up = SetUp {
            id: self.table.next_id(),
            local_port: self.port,
            peer_port: peer.port,
            local_tag: self.new_tag(),
            local_tsn: self.new_tsn(config),
            outbound: config.outbound,
            inbound: config.inbound,
            // The INIT will say so (RFC 9653 5.3).
            features: Features {
                zero_checksum_in: config.zero_checksum.is_some(),
                ..Features::default()
            },
            local: self.addresses.clone(),
            peer: peer.addresses.to_vec(),
            encap: peer.encap,
            config: config.clone(),
            secret: self.random.next_u64(),
            each_arrival: self.each_arrival,
            ..SetUp::default()
        };
        let mut association = Association::begin(now, set_up, vectors);
        let id = association.id();
        if let Some(before) = before {
            association.hold(now);
            self.held.push((id, before));
        }
        self.table.insert(association);
        self.touch(id);
        Ok(id)
    }

    /// The association with this peer that is still to end, if there is one.
    fn former(&self, peer: &Peer<'_>) -> Result<Option<AssocId>, ConnectError> {
        let known = |a: &IpAddr| self.table.find(*a, peer.port);
        let mut found = peer.addresses.iter().filter_map(known);
        let Some(first) = found.next() else {
            return Ok(None);
        };
        let orphaned = self.table.get(first).is_some_and(|a| a.orphaned);
        let is_waited_for = self.held.iter().any(|(_, before)| *before == first);
        if orphaned && !is_waited_for && found.all(|id| id == first) {
            return Ok(Some(first));
        }
        Err(ConnectError::Connected)
    }

    /// An association is gone: who waits for that begins.
    fn let_begin(&mut self, gone: AssocId) {
        self.held.retain(|(id, _)| *id != gone);
        if let Some(at) = self.held.iter().position(|(_, before)| *before == gone) {
            let (id, _) = self.held.swap_remove(at);
            self.change(id, |association| association.held = false);
        }
    }

    /// An association that a peer has begun, in the order in which they came.
    pub fn accept(&mut self) -> Option<AssocId> {
        while let Some(id) = self.waiting.pop_front() {
            if let Some(association) = self.table.get_mut(id) {
                association.accepted = true;
                return Some(id);
            }
        }
        None
    }

    /// The one that [`accept`](Endpoint::accept) gives next.
    pub fn first_waiting(&self) -> Option<AssocId> {
        self.waiting.front().copied()
    }

    /// How many wait to be accepted.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A packet for this port. Wrong ones are dropped, and those of no association answered as the RFC says.
    pub fn handle(&mut self, now: Time, arrived: &Arrived<'_>) {
        let Ok(packet) = Packet::parse(arrived.packet) else {
            return;
        };
        if packet.header.destination != self.port || !is_host(arrived.from) {
            return;
        }
        let known = self.table.find(arrived.from, packet.header.source);
        if !self.checksum_is_good(&packet, known) {
            return;
        }
        // The association is found by address, and believed by tag.
        if let Some(id) = known
            && let Some(association) = self.table.get_mut(id)
            && packet.header.tag == association.local_tag()
            && association.is_open()
            && !opens(&packet)
            && !(association.is_opening() && ends_another(&packet))
        {
            if let Some(path) = association.paths().find(arrived.from) {
                association.handle(now, &packet, arrived, path);
                self.touch(id);
            }
            return;
        }
        self.handle_other(Other {
            now,
            packet: &packet,
            arrived,
            known,
        });
    }

    /// Wrong checksums are dropped; none at all is right for those who agreed on that.
    fn checksum_is_good(&self, packet: &Packet<'_>, known: Option<AssocId>) -> bool {
        use crate::wire::Checksum;
        match packet.checksum() {
            Checksum::Right => true,
            Checksum::Wrong => false,
            Checksum::Zero => known.and_then(|id| self.table.get(id)).is_some_and(|a| {
                a.features().zero_checksum_in && a.local_tag() == packet.header.tag
            }),
        }
    }

    /// Appends the next packet to `out`, or up to `most` of one size for one destination. Until `None`.
    pub fn transmit(&mut self, now: Time, out: &mut Vec<u8>, most: usize) -> Option<Transmit> {
        if let Some((transmit, packet)) = self.loose.pop_front() {
            out.extend_from_slice(&packet);
            return Some(transmit);
        }
        while let Some(id) = self.busy.pop_front() {
            let Some(association) = self.table.get_mut(id) else {
                continue;
            };
            let sent = association.transmit(now, out, most);
            association.check();
            association.queued = sent.is_some();
            if sent.is_some() {
                // To the end of the queue: the others have their turn.
                self.busy.push_back(id);
            }
            self.index(id);
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    /// When [`on_timeout`](Endpoint::on_timeout) is to be called at the latest.
    pub fn timeout(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    pub fn on_timeout(&mut self, now: Time) {
        while let Some(&(at, id)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            self.change(id, |association| {
                association.indexed = None;
                association.on_timeout(now);
            });
        }
    }

    pub fn event(&mut self) -> Option<(AssocId, Event)> {
        let (id, event) = self.events.pop_front()?;
        if let Some(association) = self.table.get_mut(id) {
            association.untaken -= 1;
            if association.untaken + 1 == MOST_EVENTS {
                self.touch(id);
            }
        }
        Some((id, event))
    }

    /// Takes a message, or the next part of one (`more`: it goes on in the next call for its stream): whole or not at all.
    pub fn send(
        &mut self,
        now: Time,
        id: AssocId,
        message: &Outgoing,
        data: &[u8],
        more: bool,
    ) -> Result<(), SendError> {
        let association = self.table.get_mut(id).ok_or(SendError::Closed)?;
        let sent = association.send(now, message, data, more);
        self.queue(id);
        self.index(id);
        sent
    }

    /// Receives from the message in front, or from the rest of it; `None`: there is nothing.
    pub fn receive(&mut self, id: AssocId, into: &mut [u8]) -> Option<Received> {
        let association = self.table.get_mut(id)?;
        let received = association.receive(into);
        if association.sack_now {
            self.queue(id);
        }
        received
    }

    pub fn readable(&self, id: AssocId) -> bool {
        self.table.get(id).is_some_and(Association::readable)
    }

    /// [`Event::Writable`] is to tell when there is room for so many bytes, or for a quarter of the buffer if that is more.
    pub fn want_room(&mut self, id: AssocId, bytes: usize) {
        if let Some(association) = self.table.get_mut(id) {
            association.want_room(bytes);
        }
    }

    /// Ends the association when everything was delivered.
    pub fn shutdown(&mut self, now: Time, id: AssocId) {
        self.change(id, |association| association.shutdown(now));
    }

    /// Ends it at once; the peer is told the reason.
    pub fn abort(&mut self, _now: Time, id: AssocId, reason: &[u8]) {
        self.change(id, |association| association.abort(reason));
    }

    /// Nobody will ask for it any more. If it was not shut down it is aborted; else it goes when the shutdown is over.
    pub fn release(&mut self, _now: Time, id: AssocId) {
        self.change(id, |association| {
            association.orphaned = true;
            let goes_on = association.is_opening() || association.state() == State::Established;
            if goes_on && !association.sender().is_closed() {
                association.abort(b"");
            }
        });
        self.waiting.retain(|waiting| *waiting != id);
    }

    pub fn association(&self, id: AssocId) -> Option<&Association> {
        self.table.get(id)
    }

    /// Does something with an association, and looks what follows from it.
    pub fn change<T>(
        &mut self,
        id: AssocId,
        what: impl FnOnce(&mut Association) -> T,
    ) -> Option<T> {
        let done = what(self.table.get_mut(id)?);
        self.touch(id);
        Some(done)
    }

    pub fn associations(&self) -> impl Iterator<Item = &Association> {
        self.table.iter()
    }

    /// The network could not deliver a packet to `to`; `quoted` is the beginning of that packet. Only somebody who has seen it knows
    /// its tag.
    pub fn unreachable(&mut self, now: Time, to: IpAddr, kind: Unreachable, quoted: &[u8]) {
        let Some((header, _)) = quoted.split_first_chunk::<8>() else {
            return;
        };
        let port = u16::from_be_bytes([header[2], header[3]]);
        let tag = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let Some(id) = self.table.find(to, port) else {
            return;
        };
        self.change(id, |association| {
            let ours = association.peer_tag() == tag && tag != 0;
            // An INIT has no tag yet, but says which one it proposes; what quotes less of it may be forged (section 10, ICMP6).
            let proposed = quoted.get(12).filter(|kind| **kind == kind::INIT);
            let proposed = proposed.and_then(|_| quoted.get(16..20));
            let init = tag == 0
                && proposed.is_some_and(|tag| *tag == association.local_tag().to_be_bytes());
            match kind {
                Unreachable::TooBig(mtu) if ours => association.too_big(to, mtu),
                Unreachable::Port if ours || init => association.unreachable(now, to),
                Unreachable::Passing if init => association.init_missed(),
                _ => {}
            }
        });
    }

    /// What follows from a change: packets, deadlines, events, the end.
    fn touch(&mut self, id: AssocId) {
        let Some(association) = self.table.get_mut(id) else {
            return;
        };
        association.check();
        while association.untaken < MOST_EVENTS
            && let Some(event) = association.take_event()
        {
            association.untaken += 1;
            if matches!(event, Event::Up { by_peer: true }) {
                self.waiting.push_back(id);
            }
            self.events.push_back((id, event));
        }
        if let Some(last) = association.last_packet.take() {
            self.loose.push_back(last);
        }
        let over = !association.is_open();
        let gone = over && association.orphaned;
        let held = association.held;
        if over {
            self.table.unlist(id);
        } else if !held {
            self.table.list(id);
        }
        if gone {
            if let Some(at) = self.table.get_mut(id).and_then(|a| a.indexed.take()) {
                self.deadlines.remove(&(at, id));
            }
            self.table.remove(id);
            self.events.retain(|(of, _)| *of != id);
            if !self.held.is_empty() {
                self.let_begin(id);
            }
            return;
        }
        self.queue(id);
        self.index(id);
    }

    fn queue(&mut self, id: AssocId) {
        if let Some(association) = self.table.get_mut(id)
            && !association.queued
            && !(association.held && association.is_open())
        {
            association.queued = true;
            self.busy.push_back(id);
        }
    }

    /// Keeps the earliest deadline of the association known. A later one than is known is found out when that has passed.
    fn index(&mut self, id: AssocId) {
        let Some(association) = self.table.get_mut(id) else {
            return;
        };
        let next = association.timers.next();
        let known = association.indexed;
        let earlier = match (next, known) {
            (Some(next), Some(known)) => next < known,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if earlier {
            association.indexed = next;
            if let Some(known) = known {
                self.deadlines.remove(&(known, id));
            }
            self.deadlines.extend(next.map(|at| (at, id)));
        }
    }

    fn new_tag(&mut self) -> u32 {
        loop {
            let tag = self.random.next_u32();
            if tag != 0 && self.table.find_tag(tag).is_none() {
                return tag;
            }
        }
    }

    fn new_tsn(&mut self, config: &AssocConfig) -> Tsn {
        Tsn(config.initial_tsn.unwrap_or_else(|| self.random.next_u32()))
    }

    /// What a new association needs for AUTH, if it offers that.
    fn vectors(&mut self, config: &AssocConfig) -> Option<Vectors> {
        crate::association::uses_auth(config).then(|| {
            let mut random = [0; 32];
            self.random.fill_bytes(&mut random);
            Vectors::ours(
                random,
                &crate::association::chunks_to_authenticate(config),
                &[Hmac::Sha256, Hmac::Sha1],
            )
        })
    }
}

/// Begins with INIT or COOKIE ECHO, maybe authenticated.
fn opens(packet: &Packet<'_>) -> bool {
    let mut chunks = packet.chunks();
    let first = chunks.next();
    let first = if matches!(first, Some(Ok(Chunk::Auth(_)))) {
        chunks.next()
    } else {
        first
    };
    matches!(first, Some(Ok(Chunk::Init(_) | Chunk::CookieEcho(_))))
}

/// Has a SHUTDOWN ACK, which an association that has only begun did not ask for (8.5.1 E).
fn ends_another(packet: &Packet<'_>) -> bool {
    matches!(packet.chunks().next(), Some(Ok(Chunk::ShutdownAck)))
}
