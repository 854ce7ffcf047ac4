//! What an association within the host tells its socket, and how it ends.

use core::net::IpAddr;

use super::ByMemory;
use super::greeting::{Greeting, allows, hosts_behind, list, note};
use crate::Order;
use headwater_providers::loopback::link::Link;
use headwater_providers::provider::{self, Arrived};
use headwater_sctp::wire::Cause;
use headwater_sctp::{Allowed, Down, Event, Outcome, PathChange};

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
            && let (Some(link), Some(Allowed(bits))) = (&mut self.link, self.allowed)
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

    pub(super) fn confirmed(&mut self, opts: &[u8]) {
        self.confirmed = true;
        let Some(theirs) = Greeting::read(opts) else {
            return;
        };
        self.peer_allows(allows(opts));
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
    pub(super) fn peer_allows(&mut self, what: Option<Allowed>) {
        if what.is_none() {
            return;
        }
        self.allows = what;
        for order in core::mem::take(&mut self.orders) {
            let _ = self.take_order(&order);
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
        if self.is_answered() && self.inbox.is_empty() {
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
        self.attend();
        self.take_order(order)
    }

    /// As [`obey`](ByMemory::obey), by what is known.
    pub(super) fn take_order(&mut self, order: &Order) -> Result<(), i32> {
        let what = match order {
            Order::ResetOutgoing(_) | Order::ResetIncoming(_) => Allowed::STREAMS,
            Order::ResetAssociation => Allowed::ASSOCIATION,
            Order::AddStreams { .. } => Allowed::MORE_STREAMS,
            Order::StreamValue { stream, .. } if *stream >= self.out => return Err(libc::EINVAL),
            Order::Primary(host) => return self.make_primary(host.to_canonical()),
            // Where there are no packets, there are neither paths nor keys.
            _ => return Ok(()),
        };
        match self.allows {
            None => self.orders.push(order.clone()),
            Some(allows) if !allows.has(what) => self.became(order, Outcome::Denied),
            Some(_) => self.carry_out(order)?,
        }
        Ok(())
    }

    fn carry_out(&mut self, order: &Order) -> Result<(), i32> {
        let all = |streams: &[u16], most| streams.iter().all(|&stream| stream < most);
        match order {
            Order::ResetOutgoing(streams) if all(streams, self.out) => {
                self.tell(note::RESET, &list(streams))?;
            }
            // It is done once the peer has done it.
            Order::ResetIncoming(streams) if all(streams, self.inbound) => {
                return self.tell(note::RESET_YOURS, &list(streams));
            }
            Order::ResetAssociation => self.tell(note::RESET_ALL, &[0])?,
            Order::AddStreams { out, inbound } => {
                let more = self.out.checked_add(*out);
                let more = more.zip(self.inbound.checked_add(*inbound));
                let more = more.ok_or(libc::EINVAL)?;
                self.tell(note::ADD, &list(&[*out, *inbound]))?;
                (self.out, self.inbound) = more;
            }
            _ => return Err(libc::EINVAL),
        }
        self.became(order, Outcome::Done);
        Ok(())
    }

    fn became(&mut self, order: &Order, outcome: Outcome) {
        let reset = |incoming, streams: &[u16]| Event::StreamsReset {
            incoming,
            streams: streams.to_vec(),
            outcome,
        };
        self.events.push_back(match order {
            Order::ResetOutgoing(streams) => reset(false, streams),
            Order::ResetIncoming(streams) => reset(true, streams),
            Order::AddStreams { out, inbound } => Event::StreamsAdded {
                incoming: *inbound,
                outgoing: *out,
                outcome,
            },
            _ => Event::Reset { outcome },
        });
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

    pub(super) fn attend_to_notes(&mut self) {
        let notes = match &mut self.link {
            Some(link) if link.has_notes() => link.notes(),
            _ => return,
        };
        for (what, data) in notes {
            let streams = data.as_chunks().0.iter();
            let streams: Vec<u16> = streams.map(|n| u16::from_ne_bytes(*n)).collect();
            match what {
                note::ALLOWED => self.peer_allows(data.first().copied().map(Allowed)),
                note::RESET => {
                    self.inbox.begin_anew(&streams);
                    self.became(&Order::ResetIncoming(streams), Outcome::Done);
                }
                note::RESET_YOURS => {
                    let told = self.tell(note::RESET, &data);
                    if told.is_ok() {
                        self.became(&Order::ResetOutgoing(streams), Outcome::Done);
                    }
                }
                note::RESET_ALL => {
                    self.inbox.begin_all_anew();
                    if data.first() == Some(&0) {
                        let _ = self.tell(note::RESET_ALL, &[1]);
                        self.became(&Order::ResetAssociation, Outcome::Done);
                    }
                }
                note::ADD => {
                    if let [inbound, out] = streams[..] {
                        self.inbound = self.inbound.saturating_add(inbound);
                        self.out = self.out.saturating_add(out);
                        self.became(&Order::AddStreams { out, inbound }, Outcome::Done);
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
