//! INIT and COOKIE ECHO (RFC 9260 5.1, 5.2): no state is kept for a peer before its cookie has come back.

use core::net::IpAddr;
use core::time::Duration;

use super::{Arrived, AssocId, Endpoint};
use crate::association::{Offer, SetUp, State, describe, keys};
use crate::cookie::{Cookie, CookieError};
use crate::wire::{Cause, Chunk, Init, InitHead, Packet, PacketBuilder, Param, ParamBuilder, kind};
use crate::{Association, Time};
use rand_core::RngCore;

/// A cookie's life can be made longer by no more than this.
const MOST_PRESERVED: Duration = Duration::from_secs(60);

/// A packet that does not simply belong to an association: `known` is the one that the peer's address belongs to.
#[derive(Clone, Copy)]
pub(super) struct Other<'a> {
    pub now: Time,
    pub packet: &'a Packet<'a>,
    pub arrived: &'a Arrived<'a>,
    pub known: Option<AssocId>,
}

impl Endpoint {
    pub(super) fn handle_other(&mut self, other: Other<'_>) {
        let (packet, known) = (other.packet, other.known);
        let mut chunks = packet.chunks();
        let Some(Ok(first)) = chunks.next() else {
            return;
        };
        match first {
            Chunk::Init(init) => {
                // It stands alone, and its packet has no tag (8.5.1 A).
                if packet.header.tag == 0 && chunks.next().is_none() && init.tag != 0 {
                    self.on_init(other, &init);
                }
            }
            Chunk::CookieEcho(cookie) => self.on_cookie(other, cookie),
            Chunk::Auth(_) => match chunks.next() {
                Some(Ok(Chunk::CookieEcho(cookie))) => {
                    self.on_cookie(other, cookie);
                }
                Some(Ok(Chunk::Asconf { .. })) => self.on_moved(other),
                _ if known.is_none() => self.on_nobodys(other),
                _ => {}
            },
            _ => match known {
                Some(id) => self.on_stranger(other, first, id),
                None => self.on_nobodys(other),
            },
        }
    }

    /// A packet from an address that is no peer's. With the tag of an association it was on its way when the peer gave that address
    /// up, or comes from one that we don't know yet: an answer would be believed, and end that association.
    fn on_nobodys(&mut self, other: Other<'_>) {
        if self.by_tag(other.packet).is_none() {
            self.answer(other.packet, other.arrived);
        }
    }

    /// The association whose tag a packet from its peer's port has.
    fn by_tag(&self, packet: &Packet<'_>) -> Option<&Association> {
        let found = self.table.get(self.table.find_tag(packet.header.tag)?)?;
        (found.peer_port() == packet.header.source).then_some(found)
    }

    /// A packet from a peer's address with a tag that is not ours: with the T bit it may be the peer's own, reflected (8.5.1).
    fn on_stranger(&mut self, other: Other<'_>, first: Chunk<'_>, id: AssocId) {
        let packet = other.packet;
        let Some(association) = self.table.get_mut(id) else {
            return;
        };
        let reflected = packet.header.tag == association.peer_tag() && packet.header.tag != 0;
        match first {
            // Everything was acknowledged on both sides, and the peer has forgotten us since: its SHUTDOWN COMPLETE was lost.
            Chunk::Abort {
                tcb_missing: true, ..
            } if reflected && association.state() == State::ShutdownAckSent => {
                association.on_shutdown_complete();
            }
            Chunk::Abort {
                tcb_missing: true,
                causes,
            } if reflected && !association.requires_auth(kind::ABORT) => {
                association.on_abort(causes)
            }
            Chunk::ShutdownComplete { tcb_missing: true }
                if reflected && packet.has_one_chunk() =>
            {
                association.on_shutdown_complete()
            }
            // It has a TCB of before that we have not (8.5.1 E).
            Chunk::ShutdownAck if association.is_opening() => {
                self.answer(packet, other.arrived);
                return;
            }
            _ => return,
        }
        self.touch(id);
    }

    /// An ASCONF from an address that is not known yet: its association is found by its tag (RFC 5061 4.1.1).
    fn on_moved(&mut self, other: Other<'_>) {
        if other.known.is_some() {
            return;
        }
        let found = self.by_tag(other.packet).filter(|one| one.auth().is_some());
        let Some(id) = found.map(Association::id) else {
            return self.on_nobodys(other);
        };
        self.change(id, |association| {
            association.handle_from_elsewhere(other.now, other.packet, other.arrived)
        });
    }

    fn on_init(&mut self, other: Other<'_>, init: &Init<'_>) {
        let (now, packet) = (other.now, other.packet);
        let (arrived, known) = (other.arrived, other.known);
        if init.fault().is_some() {
            self.refuse(other, init.tag, &Cause::InvalidMandatory);
            return;
        }
        let offer = match Offer::read(init, "a parameter of INIT is malformed") {
            Ok(offer) => offer,
            Err(cause) => {
                self.refuse(other, init.tag, &cause.get());
                return;
            }
        };
        let known = known.or_else(|| self.known_by(&offer, packet.header.source));
        let config = self.config_for(known);
        let (fresh_tag, fresh_tsn) = (self.new_tag(), self.new_tsn(&config));
        let association = known.and_then(|id| self.table.get(id));
        let (local_tag, local_tsn, ties) = match association {
            None => {
                if self.waiting.len() >= self.backlog || !self.is_open_at(arrived.to) {
                    self.answer(packet, arrived);
                    return;
                }
                (fresh_tag, fresh_tsn, (0, 0))
            }
            Some(association) => {
                let (state, tags) = (association.state(), association.tags());
                if state == State::ShutdownAckSent {
                    let id = association.id();
                    self.change(id, Association::say_shutdown_ack);
                    return;
                }
                // Not with new addresses, once the peer's are known.
                let strange = unknown_addresses(association, &offer, arrived.from);
                if state != State::CookieWait && !strange.is_empty() {
                    let cause = Cause::RestartNewAddresses(&strange);
                    self.refuse(other, init.tag, &cause);
                    return;
                }
                match state {
                    // Both began at once (5.2.1): the same values as in our own INIT.
                    State::CookieWait => (tags.0, association.local_tsn(), (0, 0)),
                    State::CookieEchoed => (tags.0, association.local_tsn(), tags),
                    // The peer seems to have begun anew (5.2.2).
                    _ => (fresh_tag, fresh_tsn, tags),
                }
            }
        };
        let vectors = offer.vectors.as_ref().and_then(|_| self.vectors(&config));
        let mut peer = offer.addresses.clone();
        peer.retain(|a| *a != arrived.from);
        peer.truncate(crate::path::PATHS - 1);
        let features = offer.agree(&config);
        let preserved = Duration::from_millis(u64::from(offer.preservative)).min(MOST_PRESERVED);
        let cookie = Cookie {
            made: now,
            lifetime: self.config.cookie_lifetime + preserved,
            local_tag,
            peer_tag: init.tag,
            local_tsn,
            peer_tsn: init.tsn,
            peer_window: init.window,
            outbound: config.outbound.min(init.inbound),
            inbound: config.inbound.min(init.outbound),
            local_tie: ties.0,
            peer_tie: ties.1,
            source: arrived.from,
            encap: arrived.encap,
            peer_port: packet.header.source,
            local_port: self.port,
            addresses: peer,
            features,
            vectors: vectors.clone().zip(offer.vectors.clone()),
            adaptation: offer.adaptation,
        };
        let sealed = cookie.seal(&mut *self.config.keys, now);
        let head = InitHead {
            tag: local_tag,
            window: u32::try_from(config.window_to_offer()).unwrap_or(u32::MAX),
            outbound: config.outbound.min(init.inbound),
            inbound: config.inbound,
            tsn: local_tsn,
        };
        let (local, to) = (&self.addresses, arrived.from);
        let answer = self.packet(packet.header.source, init.tag, |answer| {
            answer.init(kind::INIT_ACK, &head, |params| {
                params.put(&Param::Cookie(&sealed));
                describe(params, &config, local, to, vectors.as_ref());
                // Each by itself (3.3.3.1).
                for whole in &offer.unrecognized {
                    params.put(&Param::Unrecognized(whole));
                }
            });
        });
        self.send_loose(arrived, answer);
    }

    /// An INIT from an unknown address may name one of a peer that we know. Not before we know that peer's tag: the answer would
    /// tell ours, by which that handshake could be forged.
    fn known_by(&self, offer: &Offer<'_>, port: u16) -> Option<AssocId> {
        let mut named = offer.addresses.iter();
        let id = named.find_map(|addr| self.table.find(*addr, port))?;
        let state = self.table.get(id)?.state();
        (state != State::CookieWait).then_some(id)
    }

    /// Settings of the association, or those of new ones.
    fn config_for(&self, known: Option<AssocId>) -> crate::config::AssocConfig {
        known
            .and_then(|id| self.table.get(id))
            .map_or_else(|| self.config.association.clone(), |a| a.config().clone())
    }

    fn refuse(&mut self, other: Other<'_>, tag: u32, cause: &Cause<'_>) {
        let answer = self.packet(other.packet.header.source, tag, |answer| {
            answer.abort(false, |causes| _ = causes.put(cause));
        });
        self.send_loose(other.arrived, answer);
    }

    /// A packet with this tag, for this port.
    fn packet(&self, port: u16, tag: u32, fill: impl FnOnce(&mut PacketBuilder<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut packet = PacketBuilder::begin(&mut bytes, self.port, port, tag, 1200);
        fill(&mut packet);
        packet.finish(None, true);
        bytes
    }

    fn on_cookie(&mut self, other: Other<'_>, bytes: &[u8]) {
        let (now, packet) = (other.now, other.packet);
        let (arrived, known) = (other.arrived, other.known);
        let (cookie, stale) = match Cookie::open(bytes, &mut *self.config.keys, now) {
            Ok(cookie) => (cookie, None),
            Err(CookieError::Stale { by, cookie }) => (*cookie, Some(by)),
            Err(CookieError::Forged | CookieError::Malformed) => return,
        };
        if cookie.local_port != self.port
            || cookie.peer_port != packet.header.source
            || cookie.local_tag != packet.header.tag
            || (cookie.source != arrived.from && !cookie.addresses.contains(&arrived.from))
        {
            return;
        }
        let same = known
            .and_then(|id| self.table.get(id))
            .is_some_and(|association| association.tags() == (cookie.local_tag, cookie.peer_tag));
        if let Some(by) = stale
            && !same
        {
            self.say_stale(&cookie, by, arrived);
            return;
        }
        if !self.cookie_is_authenticated(packet, &cookie) {
            return;
        }
        match known {
            None => self.on_first_cookie(other, cookie),
            Some(id) => self.on_cookie_again(other, cookie, id),
        }
    }

    /// Where COOKIE ECHO has to be authenticated it is, by the keys that the cookie itself leads to.
    fn cookie_is_authenticated(&self, packet: &Packet<'_>, cookie: &Cookie) -> bool {
        let Some((ours, theirs)) = &cookie.vectors else {
            return true;
        };
        if !ours.asks_for(kind::COOKIE_ECHO) {
            return true;
        }
        match (
            keys(&self.config.association, ours, theirs),
            packet.chunks().next(),
        ) {
            (Some(auth), Some(Ok(Chunk::Auth(chunk)))) => auth.verify(packet, &chunk).is_ok(),
            _ => false,
        }
    }

    fn on_first_cookie(&mut self, other: Other<'_>, cookie: Cookie) {
        let (now, arrived) = (other.now, other.arrived);
        if self.waiting.len() >= self.backlog
            || self.table.len() >= self.config.most_associations
            || self.table.find_tag(cookie.local_tag).is_some()
        {
            self.refuse(other, cookie.peer_tag, &Cause::OutOfResource);
            return;
        }
        let id = self.table.next_id();
        let set_up = self.set_up(id, self.config.association.clone(), cookie);
        let mut association = Association::accepted_from(now, set_up, arrived.from);
        association.set_source(arrived.from, arrived.to);
        let id = self.table.insert(association);
        self.touch(id);
        self.handle_rest(other, id);
    }

    /// A cookie for a peer that we have an association with (5.2.4).
    fn on_cookie_again(&mut self, other: Other<'_>, cookie: Cookie, id: AssocId) {
        let (now, arrived) = (other.now, other.arrived);
        let Some(association) = self.table.get(id) else {
            return;
        };
        let ours = association.local_tag() == cookie.local_tag;
        let theirs = association.peer_tag() == cookie.peer_tag;
        let ties = (cookie.local_tie, cookie.peer_tie);
        let tied = ties == association.tags() && cookie.local_tie != 0;
        match (ours, theirs) {
            // A: the peer has begun anew.
            (false, false) if tied => {
                if association.state() == State::ShutdownAckSent {
                    self.change(id, Association::refuse_restart);
                    return;
                }
                let set_up = self.set_up(id, association.config().clone(), cookie);
                self.change(id, |association| {
                    association.restart(now, set_up, arrived.from);
                    association.set_source(arrived.from, arrived.to);
                });
            }
            // B: both began at once. D: the cookie once more, or the first after both began.
            (true, _) => {
                if !theirs && !association.is_opening() {
                    return;
                }
                let set_up = self.set_up(id, association.config().clone(), cookie);
                self.change(id, |association| {
                    association.collide(now, set_up, arrived.from)
                });
            }
            // C: a cookie that came late, and whatever else.
            _ => return,
        }
        self.handle_rest(other, id);
    }

    fn set_up(&mut self, id: AssocId, config: crate::config::AssocConfig, cookie: Cookie) -> SetUp {
        let auth = cookie
            .vectors
            .as_ref()
            .and_then(|(ours, theirs)| keys(&config, ours, theirs));
        let mut peer = vec![cookie.source];
        peer.extend(cookie.addresses);
        SetUp {
            id,
            local_port: self.port,
            peer_port: cookie.peer_port,
            local_tag: cookie.local_tag,
            peer_tag: cookie.peer_tag,
            local_tsn: cookie.local_tsn,
            peer_tsn: cookie.peer_tsn,
            peer_window: cookie.peer_window,
            outbound: cookie.outbound,
            inbound: cookie.inbound,
            features: cookie.features,
            local: self.addresses.clone(),
            peer,
            encap: cookie.encap,
            config,
            secret: self.random.next_u64(),
            auth,
            adaptation: cookie.adaptation,
            each_arrival: self.each_arrival,
        }
    }

    /// What came in the same packet as the COOKIE ECHO.
    fn handle_rest(&mut self, other: Other<'_>, id: AssocId) {
        let (now, packet, arrived) = (other.now, other.packet, other.arrived);
        if let Some(association) = self.table.get_mut(id)
            && association.is_open()
            && association.local_tag() == packet.header.tag
            && let Some(path) = association.paths().find(arrived.from)
        {
            association.handle(now, packet, arrived, path);
            self.touch(id);
        }
    }

    fn say_stale(&mut self, cookie: &Cookie, by: Duration, arrived: &Arrived<'_>) {
        let by = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
        let answer = self.packet(cookie.peer_port, cookie.peer_tag, |answer| {
            answer.error(|causes| _ = causes.put(&Cause::StaleCookie(by)));
        });
        self.send_loose(arrived, answer);
    }
}

/// The addresses of an INIT that are none of the peer's, as parameters.
fn unknown_addresses(association: &Association, offer: &Offer<'_>, from: IpAddr) -> Vec<u8> {
    let mut strange = Vec::new();
    for addr in offer.addresses.iter().chain([&from]) {
        if association.paths().find(*addr).is_none() {
            ParamBuilder::new(&mut strange).put(&Param::from(*addr));
        }
    }
    strange
}

impl Association {
    pub(super) fn set_source(&mut self, peer: IpAddr, ours: IpAddr) {
        if let Some(id) = self.paths().find(peer) {
            self.path_mut(id).from = Some(ours);
        }
    }
}
