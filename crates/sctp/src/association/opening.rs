//! The handshake (RFC 9260 5.1), seen from the association: INIT, INIT ACK, COOKIE ECHO, COOKIE ACK.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::VecDeque;

use super::offer::{self, Offer};
use super::{AssocId, Association, Control, State, Stats};
use crate::asconf::Asconf;
use crate::auth::{Auth, Vectors};
use crate::recv::ReceiveConfig;
use crate::reset::Reset;
use crate::send::SendConfig;
use crate::wire::{
    Cause, CauseOwned, Init, InitFault, InitHead, List, PacketBuilder, Param, kind, param,
};
use crate::{
    AssocConfig, Down, Event, Features, Path, PathId, PathState, Paths, Receiver, Sender, Time,
    Timer, Timers, Tsn,
};

/// Until the COOKIE ACK is here.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// What the peer wants back.
    pub cookie: Vec<u8>,
    /// Causes to be reported with the COOKIE ECHO.
    pub report: Vec<CauseOwned>,
    pub retransmissions: u32,
    /// Cookies that the peer found stale.
    pub stale: u32,
    /// INIT or COOKIE ECHO is to be sent.
    pub wanted: bool,
    /// The peer found our cookie stale: how much longer it is asked to live, in milliseconds.
    pub preservative: u32,
    pub vectors: Option<Vectors>,
    /// When the last INIT or COOKIE ECHO left, unless it was one more of the same.
    pub sent: Option<Time>,
}

/// What an association is made of.
#[derive(Debug, Default)]
pub(crate) struct SetUp {
    pub id: AssocId,
    pub local_port: u16,
    pub peer_port: u16,
    pub local_tag: u32,
    pub peer_tag: u32,
    pub local_tsn: Tsn,
    pub peer_tsn: Tsn,
    pub peer_window: u32,
    pub outbound: u16,
    pub inbound: u16,
    pub features: Features,
    pub local: Vec<IpAddr>,
    pub peer: Vec<IpAddr>,
    pub encap: Option<u16>,
    pub config: AssocConfig,
    pub secret: u64,
    pub auth: Option<Box<Auth>>,
    pub adaptation: Option<u32>,
    pub each_arrival: bool,
}

impl Association {
    /// An association that we begin: an INIT will be sent to the first of the addresses.
    pub(crate) fn begin(now: Time, set_up: SetUp, vectors: Option<Vectors>) -> Association {
        let opening = Opening {
            wanted: true,
            vectors,
            ..Opening::default()
        };
        let mut association = Association::made(now, set_up, PathState::Active);
        association.state = State::CookieWait;
        association.opening = Some(Box::new(opening));
        association
    }

    /// An association that a peer began, and whose cookie came back from `from`.
    pub(crate) fn accepted_from(now: Time, set_up: SetUp, from: IpAddr) -> Association {
        let adaptation = set_up.adaptation;
        let mut association = Association::made(now, set_up, PathState::Unconfirmed);
        association.state = State::Established;
        association.control.push_back((None, Control::CookieAck));
        if let Some(id) = association.paths.find(from) {
            association.primary = id;
            association.last_from = id;
            association.paths[id].state = PathState::Active;
        }
        association.come_up(now, true);
        if let Some(code) = adaptation {
            association.tell(Event::Adaptation(code));
        }
        association
    }

    fn made(now: Time, set_up: SetUp, paths: PathState) -> Association {
        let SetUp {
            config, features, ..
        } = set_up;
        let mut association = Association {
            id: set_up.id,
            local_port: set_up.local_port,
            peer_port: set_up.peer_port,
            local_tag: set_up.local_tag,
            peer_tag: set_up.peer_tag,
            local_tsn: set_up.local_tsn,
            state: State::Closed,
            features,
            local: set_up.local,
            has_left: false,
            paths: Paths::default(),
            primary: PathId(0),
            last_from: PathId(0),
            timers: Timers::default(),
            sender: Sender::new(
                SendConfig {
                    interleave: features.interleave,
                    partial_reliability: features.forward,
                    scheduler: config.scheduler,
                    // What may change while it goes on: by `follow`.
                    ..SendConfig::default()
                },
                set_up.local_tsn,
                set_up.outbound,
                set_up.peer_window,
            ),
            receiver: Receiver::new(
                receive_config(&config, features),
                set_up.peer_tsn,
                set_up.inbound,
            ),
            opening: None,
            control: VecDeque::new(),
            sack_now: false,
            auth: set_up.auth,
            peer_key: 0,
            reset: Reset::new(set_up.local_tsn, set_up.peer_tsn),
            asconf: Asconf::new(set_up.local_tsn, set_up.peer_tsn),
            errors: 0,
            events: VecDeque::new(),
            was_full: false,
            room_wanted: 0,
            told_readable: false,
            each_arrival: set_up.each_arrival,
            peer_has_shut_down: false,
            last_packet: None,
            last_traffic: now,
            secret: set_up.secret,
            nonces: 0,
            stats: Stats::default(),
            queued: false,
            indexed: None,
            untaken: 0,
            orphaned: false,
            accepted: false,
            held: false,
            config: Box::new(config),
        };
        association.sender.follow(&association.config);
        association.reset.allowed = association.config.allowed;
        for addr in set_up.peer {
            association.add_path(now, addr, set_up.encap, paths);
        }
        association
    }

    /// Begins to watch the paths, once the association is there.
    fn begin_to_use_paths(&mut self, now: Time) {
        if let Some(auth) = &self.auth
            && [kind::DATA, kind::I_DATA, kind::SACK]
                .iter()
                .any(|kind| auth.peer_requires(*kind))
        {
            self.sender.set_overhead(auth.overhead());
        }
        let mut burst = false;
        for id in self.paths.ids() {
            let Some(path) = self.paths.get_mut(id) else {
                continue;
            };
            if path.state == PathState::Unconfirmed {
                // HB.Max.Burst: one at once; a peer may name many hosts that are not its own.
                path.heartbeat_wanted = !core::mem::replace(&mut burst, true);
            } else {
                self.schedule_probe(id);
            }
            self.schedule_heartbeat(now, id);
        }
    }

    /// Its peer still has to do with a former association of ours: the INIT has to wait, for as long as a peer is given to answer.
    pub(crate) fn hold(&mut self, now: Time) {
        self.held = true;
        self.set_opening_timer(now, Timer::Init);
    }

    fn set_opening_timer(&mut self, now: Time, timer: Timer) {
        let wait = self.paths[self.primary].rto.current();
        let wait = wait.min(self.config.init_timeout.unwrap_or(wait));
        self.timers.set(timer, now + wait);
    }

    pub(super) fn is_established(&self) -> bool {
        self.is_open() && !self.is_opening()
    }

    /// Writes the INIT or the COOKIE ECHO into a packet of its own.
    pub(super) fn opening_packet(
        &mut self,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Option<(PathId, usize)> {
        let mut opening = self.opening.take()?;
        let packet = opening
            .wanted
            .then(|| self.write_opening(now, &mut opening, out));
        self.opening = Some(opening);
        packet
    }

    fn write_opening(
        &mut self,
        now: Time,
        opening: &mut Opening,
        out: &mut Vec<u8>,
    ) -> (PathId, usize) {
        opening.wanted = false;
        opening.sent = (opening.retransmissions == 0).then_some(now);
        let id = self.primary;
        let path = &self.paths[id];
        // A cookie may be longer than the packets that we would choose; then the network has to cut them up.
        let limit = path.mtu.max(opening.cookie.len() + 512);
        let (timer, tag) = match self.state {
            State::CookieWait => (Timer::Init, 0),
            _ => (Timer::Cookie, self.peer_tag),
        };
        let mut packet = PacketBuilder::begin(out, self.local_port, self.peer_port, tag, limit);
        if self.state == State::CookieWait {
            let head = InitHead {
                tag: self.local_tag,
                window: self.receiver.window(),
                outbound: self.config.outbound,
                inbound: self.config.inbound,
                tsn: self.local_tsn,
            };
            let (config, local, to) = (&self.config, &self.local, path.addr);
            packet.init(kind::INIT, &head, |params| {
                if opening.preservative > 0 {
                    params.put(&Param::CookiePreservative(opening.preservative));
                }
                offer::describe(params, config, local, to, opening.vectors.as_ref());
            });
        } else {
            self.authenticate(kind::COOKIE_ECHO, &mut packet);
            packet.cookie_echo(&opening.cookie);
            if !opening.report.is_empty() {
                put_error(&mut packet, &opening.report);
            }
        }
        // No zero checksum before the peer has taken our COOKIE ECHO (RFC 9653 5.2).
        let len = packet.finish(self.signing_key(), true);
        self.set_opening_timer(now, timer);
        (id, len)
    }

    /// T1-init or T1-cookie has expired.
    pub(super) fn repeat_opening(&mut self, now: Time) {
        if !self.open_again(false) {
            return;
        }
        self.paths[self.primary].rto.back_off();
        self.next_address();
        if self.held {
            self.set_opening_timer(now, Timer::Init);
        }
    }

    /// Our INIT came to where nobody was for a moment. It goes again at once, though not for ever.
    pub(crate) fn init_missed(&mut self) {
        let gone = self.opening.as_ref().is_some_and(|one| !one.wanted);
        if self.state == State::CookieWait && gone {
            self.open_again(true);
        }
    }

    /// INIT or COOKIE ECHO is to leave once more. False: it has left often enough, and it is over.
    fn open_again(&mut self, refused: bool) -> bool {
        let Some(opening) = &mut self.opening else {
            return false;
        };
        opening.retransmissions += 1;
        opening.wanted = true;
        let again = opening.retransmissions <= self.config.init_retransmissions;
        if !again {
            self.end(Down::SetupFailed { refused });
        }
        again
    }

    /// Another of the peer's addresses is tried, though none that only its INIT ACK has named (5.4).
    fn next_address(&mut self) {
        let known = |path: &Path| path.state != PathState::Unconfirmed;
        let ids = self.paths.iter().filter(|(_, path)| known(path));
        let ids: Vec<PathId> = ids.map(|(id, _)| id).collect();
        if let Some(at) = ids.iter().position(|id| *id == self.primary) {
            let next = ids[(at + 1) % ids.len()];
            if next != self.primary {
                self.paths[next].rto = self.paths[self.primary].rto.clone();
            }
            self.primary = next;
            self.last_from = next;
        }
    }

    /// An INIT ACK with our tag: the peer can be spoken to.
    pub(super) fn on_init_ack(&mut self, now: Time, from: PathId, init: &Init<'_>) {
        if self.state != State::CookieWait {
            return;
        }
        let fault = init.fault();
        if fault == Some(InitFault::Tag) {
            // 3.3.3: the TCB is destroyed, an ABORT may be sent.
            self.end(Down::SetupFailed { refused: false });
            return;
        }
        self.peer_tag = init.tag;
        if fault.is_some() {
            self.refuse_opening(&Cause::InvalidMandatory);
            return;
        }
        let offer = match Offer::read(init, "a parameter of INIT ACK is malformed") {
            Ok(offer) => offer,
            Err(cause) => {
                self.refuse_opening(&cause.get());
                return;
            }
        };
        let Some(cookie) = offer.cookie else {
            let missing = param::kind::COOKIE.to_be_bytes();
            let list = List::parse(&missing).unwrap_or_default();
            self.refuse_opening(&Cause::MissingParams(list));
            return;
        };
        let features = offer.agree(&self.config);
        let mut opening = self.opening.take().unwrap_or_default();
        if let Some(sent) = opening.sent {
            self.paths[from].rto.sample(now.since(sent));
        }
        opening.cookie = cookie.to_vec();
        let report = offer.unrecognized.iter();
        opening.report = report
            .map(|whole| Cause::UnrecognizedParams(whole).into())
            .collect();
        opening.retransmissions = 0;
        opening.wanted = true;
        self.auth = match (&opening.vectors, &offer.vectors) {
            (Some(ours), Some(theirs)) if features.auth => super::keys(&self.config, ours, theirs),
            _ => None,
        };
        self.features = features;
        self.features.auth = self.auth.is_some();
        self.features.addresses &= self.auth.is_some();
        self.opening = Some(opening);
        self.primary = from;
        self.last_from = from;
        let encap = self.paths[from].encap;
        for addr in &offer.addresses {
            self.add_path(now, *addr, encap, PathState::Unconfirmed);
        }
        let outbound = self.config.outbound.min(init.inbound);
        let inbound = self.config.inbound.min(init.outbound);
        self.meet(init.tsn, init.window, outbound, inbound);
        self.timers.stop(Timer::Init);
        self.state = State::CookieEchoed;
        if let Some(code) = offer.adaptation {
            self.tell(Event::Adaptation(code));
        }
    }

    /// What the peer said of itself, and both agreed on, is known.
    fn meet(&mut self, tsn: Tsn, window: u32, outbound: u16, inbound: u16) {
        let features = self.features;
        self.sender
            .open(window, outbound, features.interleave, features.forward);
        let config = receive_config(&self.config, features);
        self.receiver = Receiver::new(config, tsn, inbound);
        self.reset = Reset::new(self.local_tsn, tsn);
        self.reset.allowed = self.config.allowed;
        self.asconf = Asconf::new(self.local_tsn, tsn);
    }

    /// The peer's INIT ACK can't be used.
    fn refuse_opening(&mut self, cause: &Cause<'_>) {
        self.state = State::CookieEchoed;
        self.abort_with(cause);
    }

    pub(super) fn on_cookie_ack(&mut self, now: Time) {
        if self.state != State::CookieEchoed {
            return;
        }
        self.timers.stop(Timer::Cookie);
        if let Some(sent) = self.opening.take().and_then(|opening| opening.sent) {
            self.paths[self.primary].rto.sample(now.since(sent));
        }
        self.become_established(now);
    }

    /// The handshake is over.
    pub(super) fn become_established(&mut self, now: Time) {
        self.opening = None;
        self.state = State::Established;
        self.errors = 0;
        self.come_up(now, false);
        self.go_on_closing(now);
    }

    fn come_up(&mut self, now: Time, by_peer: bool) {
        self.begin_to_use_paths(now);
        self.set_autoclose(now);
        self.tell(Event::Up { by_peer });
        if self.auth.is_none() {
            self.tell(Event::NoAuthentication);
        }
    }

    /// The peer found our cookie stale by so many microseconds: once more from the start, asking for a longer life. What is queued
    /// stays queued: nothing was sent yet.
    pub(super) fn on_stale_cookie(&mut self, by: u32) {
        if self.state != State::CookieEchoed {
            return;
        }
        let limit = self.config.init_retransmissions;
        let Some(opening) = &mut self.opening else {
            return;
        };
        // Counted by themselves: each INIT ACK begins the others anew.
        opening.stale += 1;
        if opening.stale > limit {
            self.end(Down::SetupFailed { refused: false });
            return;
        }
        let late = Duration::from_micros(u64::from(by)) + Duration::from_millis(100);
        opening.preservative = late.as_millis().min(60_000) as u32;
        opening.cookie.clear();
        opening.report.clear();
        opening.wanted = true;
        self.timers.stop(Timer::Cookie);
        self.state = State::CookieWait;
    }

    /// The peer's own INIT crossed ours, and its cookie has come back first (5.2.4 B and D): its values count.
    pub(crate) fn collide(&mut self, now: Time, set_up: SetUp, from: IpAddr) {
        if self.is_opening() {
            self.peer_tag = set_up.peer_tag;
            self.features = set_up.features;
            self.auth = set_up.auth;
            let (window, out, inbound) = (set_up.peer_window, set_up.outbound, set_up.inbound);
            self.meet(set_up.peer_tsn, window, out, inbound);
            self.timers.stop(Timer::Init);
            self.timers.stop(Timer::Cookie);
            for addr in set_up.peer {
                self.add_path(now, addr, set_up.encap, PathState::Unconfirmed);
            }
            if let Some(id) = self.paths.find(from) {
                self.confirm(now, id);
                self.primary = id;
                self.last_from = id;
            }
            self.become_established(now);
        }
        self.say_once(Control::CookieAck);
    }

    /// The peer has lost its state and begun anew (5.2.4 A): so does the association, under its old name.
    pub(crate) fn restart(&mut self, now: Time, set_up: SetUp, from: IpAddr) {
        // The user, who may be gone, has shut down the association, whichever life it is in.
        let closed = self.sender.is_closed() && !self.peer_has_shut_down || self.orphaned;
        self.fail_all();
        let mut new = Association::accepted_from(now, set_up, from);
        let unread = Receiver::new(receive_config(&self.config, self.features), Tsn(0), 0);
        new.receiver
            .inherit(core::mem::replace(&mut self.receiver, unread));
        new.told_readable = self.told_readable && new.receiver.readable();
        // Not a new association, but the old one's new life.
        new.events = core::mem::take(&mut self.events);
        new.tell(Event::Restarted);
        new.stats = self.stats;
        new.queued = self.queued;
        new.indexed = self.indexed;
        new.untaken = self.untaken;
        new.orphaned = self.orphaned;
        new.accepted = self.accepted;
        new.was_full = self.was_full;
        new.room_wanted = self.room_wanted;
        new.nonces = self.nonces;
        *self = new;
        if closed {
            self.shutdown(now);
        }
    }
}

pub(super) fn put_error(packet: &mut PacketBuilder<'_>, report: &[CauseOwned]) {
    packet.error(|causes| {
        for cause in report {
            causes.put(&cause.get());
        }
    });
}

pub(super) fn receive_config(config: &AssocConfig, features: Features) -> ReceiveConfig {
    ReceiveConfig {
        window: config.window_to_offer(),
        partial_delivery_point: config.partial_delivery_point,
        interleave: features.interleave,
        sack_every: config.sack_every,
        interleaved_delivery: config.interleaved_delivery,
    }
}
