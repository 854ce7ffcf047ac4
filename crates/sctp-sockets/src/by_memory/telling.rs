//! What an association within the host tells its socket, and how it ends.

use core::net::IpAddr;

use headwater_host::sync::{Ordering, fence};
use headwater_ipnet::Address;
use headwater_providers::loopback::link::Link;
use headwater_providers::provider::{self, Arrived};
use headwater_sctp::config::AssocConfig;
use headwater_sctp::event::{Down, Event, Outcome, PathChange};
use headwater_sctp::reset::Allowed;
use headwater_sctp::wire::Cause;
use headwater_sctp_stack::addresses;
use headwater_sctp_stack::choice::plain;
use headwater_sctp_stack::option::orders::Order;
use headwater_sctp_stack::shm::{Greeting, allowed, list, note};

use super::ByMemory;

impl ByMemory {
    /// The next event, in their order; after `Down` there is none.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.attend();
        }
        self.events.pop_front()
    }

    /// Takes up what the peer said, as far as its data was received, and what became of ours.
    pub(super) fn attend(&mut self) {
        if self.over.is_some() {
            return;
        }
        self.outbox.pump();
        loop {
            let Some(link) = &mut self.link else { return };
            let seen = link.event();
            self.attend_to_notes();
            self.tell_up();
            // What was sent before is received before.
            let is_news = !matches!(
                seen,
                None | Some(provider::Event::Data | provider::Event::ExData)
            );
            if !is_news || self.inbox.deliverable().is_some() {
                break;
            }
            let Some(arrived) = self.link.as_mut().and_then(Link::take) else {
                break;
            };
            match arrived {
                Arrived::Confirmed { opts, .. } => self.confirmed(&opts),
                Arrived::Released { .. } => self.released_by_peer(),
                Arrived::Disconnected { data, .. } => return self.cut_off(&data),
                _ => {}
            }
        }
        self.settle_end();
    }

    fn tell_up(&mut self) {
        if !self.told_up && self.is_up() {
            self.told_up = true;
            self.up(false);
        }
        self.tell_allowed();
    }

    /// So that it knows what we would deny.
    pub(super) fn tell_allowed(&mut self) {
        if self.told_allowed != self.allowed
            && self.is_up()
            && let (Some(link), Some(bits)) = (&mut self.link, self.allowed)
            && link.note(note::ALLOWED, &[bits])
        {
            self.told_allowed = self.allowed;
        }
    }

    pub(super) fn up(&mut self, by_peer: bool) {
        self.events.push_back(Event::Up { by_peer });
        // Nobody signs what no network carries.
        self.events.push_back(Event::NoAuthentication);
    }

    fn confirmed(&mut self, opts: &[u8]) {
        self.confirmed = true;
        let Some(theirs) = Greeting::read(opts) else {
            return;
        };
        self.peer_allows(Greeting::allows(opts));
        for addr in hosts_behind(opts) {
            if !self.peer.0.contains(&addr) {
                self.peer.0.push(addr);
                let change = PathChange::Confirmed;
                self.events.push_back(Event::Path { addr, change });
            }
        }
        self.out = self.out.min(theirs.inbound);
        self.inbound = self.inbound.min(theirs.out);
        self.adapts(theirs.adaptation);
    }

    pub(super) fn adapts(&mut self, adaptation: u32) {
        self.peer_adaptation = adaptation;
        if adaptation != 0 {
            self.events.push_back(Event::Adaptation(adaptation));
        }
    }

    /// A SHUTDOWN is answered as soon as everything is sent: there is no half-closed association.
    fn released_by_peer(&mut self) {
        self.peer_released = true;
        if !self.released {
            self.events.push_back(Event::PeerShutdown);
        }
        self.release();
    }

    pub(super) fn release(&mut self) {
        if !self.released {
            self.released = true;
            let at_once = self.outbox.pump()
                && self
                    .link
                    .as_mut()
                    .is_some_and(|link| link.release().is_ok());
            if !at_once {
                self.outbox.push_release();
            }
        }
    }

    /// What the peer allows us, once that is known.
    pub(super) fn peer_allows(&mut self, bits: Option<u8>) {
        if bits.is_none() {
            return;
        }
        self.allows = bits;
        for order in core::mem::take(&mut self.orders) {
            let _ = self.obey(&order);
        }
    }

    fn settle_end(&mut self) {
        if self.outbox.is_empty() {
            if self.released && !self.peer_released {
                self.end_alone();
            }
            if self.dry == Dry::Due {
                self.dry = Dry::Told;
                self.events.push_back(Event::Dry);
            }
            if self.peer_released && self.released {
                self.end(Down::Shutdown, 0);
            }
        }
    }

    /// A SHUTDOWN is answered whether the peer's program looks at it or not.
    fn end_alone(&mut self) {
        let Some(link) = &self.link else { return };
        if !self.hushed {
            link.hush_peer();
            self.hushed = true;
        }
        // In this order: what it holds is in the ring before it is held no more.
        let holds = link.peer_holds();
        fence(Ordering::SeqCst);
        if !holds && self.head.incoming().is_empty() && self.inbox.is_empty() {
            self.end(Down::Shutdown, 0);
        }
    }

    /// The peer has gone, or has aborted.
    fn cut_off(&mut self, reason: &[u8]) {
        let causes = match reason {
            [] => Vec::new(),
            reason => vec![Cause::UserAbort(reason).into()],
        };
        let was_left = self.link.as_ref().is_some_and(Link::was_left);
        if was_left && !self.peer_released && causes.is_empty() {
            self.released_by_peer();
        }
        match (self.peer_released, self.told_up) {
            // It has closed: what we had to send is nobody's any more.
            (true, _) => self.end(Down::Shutdown, 0),
            (false, false) => {
                let refused = true;
                self.end(Down::SetupFailed { refused }, libc::ECONNREFUSED);
            }
            (false, true) => {
                let by_peer = true;
                self.end(Down::Aborted { by_peer, causes }, libc::ECONNRESET);
            }
        }
    }

    pub(super) fn end(&mut self, why: Down, errno: i32) {
        self.outbox.clear();
        self.over = Some(errno);
        self.events.push_back(Event::Down(why));
    }

    /// EINVAL: no such stream. EAGAIN: not while messages wait to be sent. ENOTCONN.
    pub fn obey(&mut self, order: &Order) -> Result<(), i32> {
        let (bit, denied) = match order {
            Order::ResetOutgoing(streams) => (
                allowed::STREAMS,
                streams_reset(false, streams, Outcome::Denied),
            ),
            Order::ResetIncoming(streams) => (
                allowed::STREAMS,
                streams_reset(true, streams, Outcome::Denied),
            ),
            Order::ResetAssociation => {
                let outcome = Outcome::Denied;
                (allowed::ASSOCIATION, Event::Reset { outcome })
            }
            Order::AddStreams { out, inbound } => {
                let denied = streams_added(*inbound, *out, Outcome::Denied);
                (allowed::MORE_STREAMS, denied)
            }
            Order::StreamValue { stream, .. } if *stream >= self.out => return Err(libc::EINVAL),
            Order::Primary(host) => return self.make_primary(plain(*host)),
            // Where there are no packets, there are neither paths nor keys.
            _ => return Ok(()),
        };
        self.attend();
        match self.allows {
            None => self.orders.push(order.clone()),
            Some(bits) if bits & bit == 0 => self.events.push_back(denied),
            Some(_) => self.carry_out(order)?,
        }
        Ok(())
    }

    fn carry_out(&mut self, order: &Order) -> Result<(), i32> {
        match order {
            Order::ResetOutgoing(streams) => {
                self.check_streams(streams, self.out)?;
                self.reset_outgoing(streams)
            }
            Order::ResetIncoming(streams) => {
                self.check_streams(streams, self.inbound)?;
                self.tell(note::RESET_YOURS, &list(streams))
            }
            Order::ResetAssociation => {
                self.tell(note::RESET_ALL, &[0])?;
                self.reset_all();
                Ok(())
            }
            Order::AddStreams { out, inbound } => self.add_streams(*out, *inbound),
            _ => Ok(()),
        }
    }

    /// It is the one that is told first.
    fn make_primary(&mut self, addr: IpAddr) -> Result<(), i32> {
        let hosts = &mut self.peer.0;
        let at = hosts.iter().position(|&known| known == addr);
        let at = at.ok_or(libc::EINVAL)?;
        if at > 0 {
            hosts[..=at].rotate_right(1);
            let change = PathChange::MadePrimary;
            self.events.push_back(Event::Path { addr, change });
        }
        Ok(())
    }

    fn check_streams(&self, streams: &[u16], most: u16) -> Result<(), i32> {
        match streams.iter().all(|&stream| stream < most) {
            true => Ok(()),
            false => Err(libc::EINVAL),
        }
    }

    fn reset_outgoing(&mut self, streams: &[u16]) -> Result<(), i32> {
        self.tell(note::RESET, &list(streams))?;
        let done = streams_reset(false, streams, Outcome::Done);
        self.events.push_back(done);
        Ok(())
    }

    fn reset_all(&mut self) {
        let outcome = Outcome::Done;
        self.events.push_back(Event::Reset { outcome });
    }

    fn add_streams(&mut self, out: u16, inbound: u16) -> Result<(), i32> {
        let more = |now: u16, n| now.checked_add(n).ok_or(libc::EINVAL);
        let (all_out, all_in) = (more(self.out, out)?, more(self.inbound, inbound)?);
        self.tell(note::ADD, &list(&[out, inbound]))?;
        (self.out, self.inbound) = (all_out, all_in);
        self.added(inbound, out);
        Ok(())
    }

    fn added(&mut self, incoming: u16, outgoing: u16) {
        let added = streams_added(incoming, outgoing, Outcome::Done);
        self.events.push_back(added);
    }

    /// In its order with the data.
    fn tell(&mut self, what: u32, data: &[u8]) -> Result<(), i32> {
        if self.over.is_some() || self.released || self.peer_released || !self.is_up() {
            return Err(libc::ENOTCONN);
        }
        let link = self.link.as_mut().ok_or(libc::ENOTCONN)?;
        match self.outbox.pump() && link.note(what, data) {
            true => Ok(()),
            false => Err(libc::EAGAIN),
        }
    }

    fn attend_to_notes(&mut self) {
        let notes = match &mut self.link {
            Some(link) if link.has_notes() => link.notes(),
            _ => return,
        };
        for (what, data) in notes {
            let streams: Vec<u16> = data
                .chunks_exact(2)
                .map(|c| u16::from_ne_bytes([c[0], c[1]]))
                .collect();
            match what {
                note::ALLOWED => self.peer_allows(data.first().copied()),
                note::RESET => {
                    self.inbox.begin_anew(&streams);
                    let done = streams_reset(true, &streams, Outcome::Done);
                    self.events.push_back(done);
                }
                note::RESET_YOURS => drop(self.reset_outgoing(&streams)),
                note::RESET_ALL => {
                    self.inbox.begin_all_anew();
                    if data.first() == Some(&0) {
                        let _ = self.tell(note::RESET_ALL, &[1]);
                        self.reset_all();
                    }
                }
                note::ADD => {
                    if let [theirs, ours] = streams[..] {
                        self.inbound = self.inbound.saturating_add(theirs);
                        self.out = self.out.saturating_add(ours);
                        self.added(theirs, ours);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The event after which everything is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dry {
    Unwanted,
    Told,
    Due,
}

fn streams_reset(incoming: bool, streams: &[u16], outcome: Outcome) -> Event {
    Event::StreamsReset {
        incoming,
        streams: streams.to_vec(),
        outcome,
    }
}

fn streams_added(incoming: u16, outgoing: u16, outcome: Outcome) -> Event {
    Event::StreamsAdded {
        incoming,
        outgoing,
        outcome,
    }
}

/// As bits.
pub(super) fn allowed_by(config: &AssocConfig) -> u8 {
    let bit = |on: bool, bit| if on { bit } else { 0 };
    let Allowed {
        streams,
        association,
        more_streams,
    } = config.allowed;
    bit(streams, allowed::STREAMS)
        | bit(association, allowed::ASSOCIATION)
        | bit(more_streams, allowed::MORE_STREAMS)
}

/// The addresses of an end, behind its greeting.
pub(super) fn with_hosts(greeting: &Greeting, hosts: &[IpAddr], port: u16) -> Vec<u8> {
    let mut bytes = greeting.to_bytes().to_vec();
    Greeting::tell_allowed_later(&mut bytes);
    let each = hosts.iter().take(addresses::MOST);
    bytes.extend(each.flat_map(|&host| Address::of_ip(host, port).to_vec()));
    bytes
}

pub(super) fn hosts_behind(greeting: &[u8]) -> Vec<IpAddr> {
    let mut rest = greeting.get(Greeting::LEN..).unwrap_or(&[]);
    let mut hosts = Vec::new();
    while let Ok(host) = Address::read(rest) {
        hosts.push(plain(host.ip()));
        rest = &rest[host.bytes().len()..];
    }
    hosts
}

/// The first, and all others.
pub(super) fn with_others(first: IpAddr, all: &[IpAddr]) -> Vec<IpAddr> {
    let first = plain(first);
    let others = all.iter().copied().map(plain).filter(|&host| host != first);
    core::iter::once(first).chain(others).collect()
}
