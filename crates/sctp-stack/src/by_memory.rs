//! An association with another process of this host: a loop-back connection between two rings.
//!
//! ```text
//!   call, accept    a request is an association at once: what is sent before it is accepted waits in the ring
//!   inbox           frames -> messages                       telling    frames that tell something -> events; the end
//!   direct          frames as they are, for an endpoint of XTI         greeting   what the ends tell each other
//!   loopback::link::outbox    messages for which there is no room in the ring
//! ```
//! To have it in the ring, or in the outbox, is for the sender as if the peer had acknowledged it.

mod direct;
pub mod greeting;
mod inbox;
mod telling;
#[cfg(test)]
mod tests;

use core::net::IpAddr;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::names::{self, Caller};
use crate::option::status::{By, Path};
use crate::{Addresses, Order, Status};
use headwater_host::sync::{AtomicBool, Ordering};
use headwater_host::table::Handle;
use headwater_host::{process, sys};
use headwater_ipnet::Address;
use headwater_providers::loopback::buffers;
use headwater_providers::loopback::link::outbox::Outbox;
use headwater_providers::loopback::link::{Label, Link, PIECE};
use headwater_providers::loopback::request::Request;
use headwater_providers::provider::{Outcome, Sending};
use headwater_sctp::association::State;
use headwater_sctp::wire::Cause;
use headwater_sctp::{Allowed, AssocConfig, Down, Event, Outgoing, PathState, Received};
use headwater_streams::head::Head;
use headwater_streams::pipe::{LIMIT, LOW};
use headwater_tpi::Refusal;
use headwater_tpi::error::TFLOW;
use libc::iovec;

pub use self::direct::first;
use self::greeting::{Greeting, allows, asked, hosts_behind, with_others};
use self::inbox::{Inbox, is_soon, is_soon_enough};
use self::telling::Dry;

/// The longest reason of an ABORT.
const MOST_REASON: usize = 512;
/// Streams that a peer asks for, until that is known.
const LIKELY: u16 = 10;
/// So many sends do not look for room after one that looked in vain.
const VAIN: u32 = 4;

pub struct ByMemory {
    /// Until it is dropped.
    link: Option<Link>,
    head: &'static Head,
    outbox: Arc<Outbox>,
    inbox: Inbox,
    local: (Vec<IpAddr>, u16),
    peer: (Vec<IpAddr>, u16),
    out: u16,
    inbound: u16,
    /// What tells our messages from those of other processes that send by the same end: see [`Label::kind`].
    sender: u16,
    /// By ordered and unordered: the message that goes on in the next piece.
    sending: [Option<Label>; 2],
    vain: u32,
    /// How far the peer had read when there was no room.
    refused_at: Option<u64>,
    events: VecDeque<Event>,
    told_up: bool,
    /// It has carried a message.
    used: AtomicBool,
    /// The peer's numbers of streams are known.
    confirmed: bool,
    /// What we allow the peer, what we have told it of that, what it allows us; `None`: not known yet.
    allowed: Option<Allowed>,
    told_allowed: Option<Allowed>,
    allows: Option<Allowed>,
    /// For when that is known.
    orders: Vec<Order>,
    /// The peer was told that it is to begin nothing new.
    hushed: bool,
    /// Nothing more is sent by us, by the peer.
    released: bool,
    peer_released: bool,
    /// With what a receive fails from now on; 0: it finds the end.
    over: Option<i32>,
    dry: Dry,
    peer_adaptation: u32,
}

impl ByMemory {
    /// Has nothing been carried before this call?
    #[inline]
    pub fn is_first_message(&self) -> bool {
        !self.used.load(Ordering::Relaxed) && !self.used.swap(true, Ordering::Relaxed)
    }

    /// `None`: nobody of this host has the port in shared memory. While the listener has no room for another request it is not
    /// [up](ByMemory::is_up). With `hosts` they are told the peer, as by [`Greeting::told`].
    pub fn call(
        to: &Addresses,
        from: &Addresses,
        config: &AssocConfig,
        hosts: Option<&[IpAddr]>,
    ) -> Outcome<Option<ByMemory>> {
        for &host in &to.hosts {
            let greeting = Greeting {
                called: host,
                port: to.port,
                ..Greeting::of(config)
            };
            let facing = from.facing(host);
            let local = Address::of_ip(facing, from.port);
            let caller = Caller {
                from: local.bytes(),
                greeting: &greeting.told(hosts, from.port),
            };
            if let Some(link) = names::call(host, to.port, &caller)? {
                let mut by_memory = ByMemory::new(link, &greeting, config.send_buffer);
                by_memory.local = (with_others(facing, &from.hosts), from.port);
                by_memory.peer = (with_others(host, &to.hosts), to.port);
                return Ok(Some(by_memory));
            }
        }
        Ok(None)
    }

    /// `hosts`: as for [`call`](ByMemory::call), if the listener has not all. EPROTO: nonsense was asked for.
    pub fn accept(
        request: Request,
        config: &AssocConfig,
        hosts: Option<&[IpAddr]>,
    ) -> sys::Result<ByMemory> {
        let (from, theirs) = asked(&request.from, &request.opts).ok_or(libc::EPROTO)?;
        let agreed = Greeting::of(config).agreed(&theirs);
        let peers = with_others(from.ip(), &hosts_behind(&request.opts));
        let local = Address::of_ip(theirs.called, theirs.port);
        let peer_allows = allows(&request.opts);
        let opts = agreed.told(hosts, theirs.port);
        let link = Link::accept(request, local.bytes(), &opts, &[])?;
        let mut by_memory = ByMemory::new(link, &agreed, config.send_buffer);
        let bound = hosts.unwrap_or_default();
        by_memory.local = (with_others(theirs.called, bound), theirs.port);
        by_memory.peer = (peers, from.port());
        by_memory.told_up = true;
        by_memory.confirmed = true;
        by_memory.peer_allows(peer_allows);
        by_memory.up(true);
        by_memory.adapts(theirs.adaptation);
        Ok(by_memory)
    }

    fn new(link: Link, greeting: &Greeting, send_buffer: usize) -> ByMemory {
        let head = link.head();
        ByMemory {
            link: Some(link),
            head,
            outbox: Outbox::new(head, send_buffer),
            inbox: Inbox::new(),
            local: Default::default(),
            peer: Default::default(),
            out: greeting.out,
            inbound: greeting.inbound,
            sender: 0,
            sending: [None; 2],
            vain: 0,
            refused_at: None,
            events: VecDeque::new(),
            told_up: false,
            used: AtomicBool::new(false),
            confirmed: false,
            allowed: None,
            told_allowed: None,
            allows: None,
            orders: Vec::new(),
            hushed: false,
            released: false,
            peer_released: false,
            over: None,
            dry: Dry::Unwanted,
            peer_adaptation: 0,
        }
    }

    /// False while the listener has no room for another request.
    pub fn is_up(&self) -> bool {
        self.shadow().is_some()
    }

    pub fn head(&self) -> &'static Head {
        self.head
    }

    pub fn shadow(&self) -> Option<i32> {
        self.link.as_ref().and_then(Link::shadow)
    }

    pub fn handle(&self) -> Handle {
        self.head.handle()
    }

    /// After a fork both processes hold the end. What is not sent yet is the parent's to send.
    pub fn forked(&mut self, in_child: bool) {
        if in_child {
            self.sender = (process::pid() as u16).wrapping_mul(2).max(2) & 0x7ffe;
            self.outbox = Outbox::new(self.head, self.outbox.most());
            self.sending = [None; 2];
        }
    }

    // ---- data ----

    #[inline]
    pub fn readable(&mut self) -> bool {
        if self.head.incoming().specials() > 0 {
            self.attend();
        }
        self.inbox.readable(self.head)
    }

    pub fn peek(&mut self) -> Option<Received> {
        match self.readable() {
            true => self.inbox.peek(self.head),
            false => None,
        }
    }

    pub fn cumtsn(&self) -> u32 {
        self.inbox.cumtsn()
    }

    #[inline]
    pub fn receive(&mut self, into: &[iovec]) -> sys::Result<Option<Received>> {
        if let Some(received) = self.inbox.receive(self.head, into) {
            return Ok(Some(received));
        }
        self.receive_behind_news(into)
    }

    /// Bytes of as many messages as are in front and fit, whatever their bounds; `None`: by [`receive`](ByMemory::receive).
    #[inline]
    pub fn receive_joined(&mut self, into: &[iovec]) -> Option<usize> {
        self.inbox.receive_joined(self.head, into)
    }

    /// A message that lies whole in front of the ring, and fits.
    #[inline]
    pub fn receive_whole(&mut self, into: &[iovec]) -> Option<usize> {
        self.inbox.receive_whole(self.head, into)
    }

    #[cold]
    fn receive_behind_news(&mut self, into: &[iovec]) -> sys::Result<Option<Received>> {
        self.attend();
        if let Some(received) = self.inbox.receive(self.head, into) {
            return Ok(Some(received));
        }
        match self.over {
            Some(0) => Ok(None),
            Some(errno) => Err(errno),
            None if self.peer_released => Ok(None),
            None => Err(libc::EAGAIN),
        }
    }

    /// An ordered message by itself, into a ring that has room for it; false: by the longer way.
    #[inline]
    pub fn send_whole(&mut self, stream: u16, ppid: u32, data: &[iovec], len: usize) -> bool {
        let hindered = self.head.incoming().specials() > 0
            || self.check_sending().is_err()
            || self.sending[0].is_some()
            || stream >= self.out
            || len.wrapping_sub(1) >= PIECE
            || self.dry != Dry::Unwanted
            || !self.outbox.is_empty();
        let Some(link) = self.link.as_mut().filter(|_| !hindered) else {
            return false;
        };
        let label = Label {
            ppid,
            stream,
            kind: self.sender,
        };
        link.goes_on(false);
        matches!(link.send_labelled(data, Sending::default(), label), Ok(n) if n == len)
    }

    /// A message that fits one frame waits for the ring while the peer reads and nothing is in the outbox, but not with `anyway`;
    /// other messages, or what is left of them, go there.
    #[inline]
    pub fn send(
        &mut self,
        message: &Outgoing,
        data: &[iovec],
        more: bool,
        anyway: bool,
    ) -> sys::Result<()> {
        if self.head.incoming().specials() > 0 {
            self.attend();
        }
        self.check_sending()?;
        let unordered = message.unordered as usize;
        let goes_on = self.sending[unordered].is_some();
        let label = self.sending[unordered].unwrap_or(Label {
            ppid: message.ppid,
            stream: message.stream,
            kind: self.sender | (message.unordered as u16 * Label::UNORDERED),
        });
        if label.stream >= self.out {
            return Err(libc::EINVAL);
        }
        let len = buffers::len(data);
        if len > self.outbox.most() {
            return Err(libc::EMSGSIZE);
        }
        if self.outbox.pump() {
            if let Some(link) = &mut self.link {
                link.goes_on(goes_on);
            }
            let sent = self.put(data, len, more, label)?;
            if sent < len && len <= PIECE && !anyway && self.peer_reads() {
                return Err(libc::EAGAIN);
            }
            if sent < len || len == 0 {
                let begins = sent == 0 && !goes_on;
                self.outbox
                    .push(label, more, &buffers::rest(data, sent), begins)?;
            }
        } else if self.outbox.fits(len) {
            self.outbox.push(label, more, data, !goes_on)?;
        } else {
            return Err(libc::EAGAIN);
        }
        self.sending[unordered] = more.then_some(label);
        if self.dry == Dry::Told {
            self.dry = Dry::Due;
        }
        Ok(())
    }

    #[inline]
    fn check_sending(&self) -> sys::Result<()> {
        match self.over {
            Some(0) => Err(libc::EPIPE),
            Some(errno) => Err(errno),
            None if self.released || self.peer_released => Err(libc::EPIPE),
            None if !self.is_up() => Err(libc::EAGAIN),
            None => Ok(()),
        }
    }

    /// Into the ring, as far as there is room, or is while the peer takes what is there.
    #[inline]
    fn put(&mut self, data: &[iovec], len: usize, more: bool, label: Label) -> sys::Result<usize> {
        let how = Sending {
            more,
            ..Sending::default()
        };
        let mut done = 0;
        let mut broken = false;
        while done < len {
            let link = self.link.as_mut().ok_or(libc::EPIPE)?;
            let sent = match done {
                0 => link.send_labelled(data, how, label),
                _ => link.send_labelled(&buffers::rest(data, done), how, label),
            };
            match sent {
                Ok(n) => done += n,
                Err(Refusal { tli: TFLOW, .. }) => {}
                Err(_) => {
                    // It may be that there is another listener.
                    self.attend();
                    self.check_sending()?;
                    if broken {
                        // The peer has gone; how, is behind what it has sent.
                        return Err(libc::EPIPE);
                    }
                    broken = true;
                    continue;
                }
            }
            if done < len && !self.has_room_soon(len > PIECE) {
                break;
            }
        }
        Ok(done)
    }

    /// After a message was refused: has the peer taken anything since the last time?
    #[cold]
    fn peer_reads(&mut self) -> bool {
        let head = self.head;
        let at = head.outgoing().head();
        if self.refused_at != Some(at) {
            self.refused_at = Some(at);
            return true;
        }
        is_soon_enough(head, || head.outgoing().head() != at)
    }

    fn has_room_soon(&mut self, insists: bool) -> bool {
        if self.vain > 0 {
            self.vain -= 1;
            return false;
        }
        let head = self.head;
        let has_room = || !head.outgoing().is_full_hint(LIMIT, LOW);
        let soon = match insists {
            true => is_soon_enough(head, has_room),
            false => is_soon(head, has_room),
        };
        self.vain = if soon { 0 } else { VAIN };
        soon
    }

    pub fn has_room(&mut self) -> bool {
        if !self.outbox.pump() {
            return self.outbox.has_room();
        }
        self.is_up() && !self.head.outgoing().is_full_hint(LIMIT, LOW)
    }

    pub fn unread(&self) -> usize {
        self.inbox.unread() + self.head.incoming().unread()
    }

    pub fn unsent(&self) -> usize {
        self.outbox.held() + self.head.outgoing().unread()
    }

    pub fn flush(&mut self) {
        self.outbox.pump();
    }

    // ---- what is known of it ----

    pub fn local(&self) -> (Vec<IpAddr>, u16) {
        self.local.clone()
    }

    pub fn peer(&self) -> (Vec<IpAddr>, u16) {
        self.peer.clone()
    }

    pub fn streams(&self) -> (u16, u16) {
        match self.confirmed {
            true => (self.out, self.inbound),
            // What peers have by default, most likely.
            false => (self.out, self.inbound.min(LIKELY)),
        }
    }

    pub fn status(&self) -> Status {
        let state = match (self.is_up(), self.released, self.peer_released) {
            _ if self.over.is_some() => State::Closed,
            (false, ..) => State::CookieWait,
            (true, false, false) => State::Established,
            (true, true, false) if !self.outbox.is_empty() => State::ShutdownPending,
            (true, true, false) => State::ShutdownSent,
            (true, false, true) => State::ShutdownReceived,
            (true, true, true) => State::ShutdownAckSent,
        };
        let unacked = self.head.outgoing().unread();
        let path = |(i, &host): (usize, &IpAddr)| Path {
            host,
            port: self.peer.1,
            state: PathState::Active,
            primary: i == 0,
            rto: 1000,
            srtt: 1,
            cwnd: LIMIT as u32,
            flight: unacked as u32,
            mtu: PIECE as u32,
            errors: 0,
            encap: 0,
        };
        Status {
            state,
            by: By::Shm,
            ostreams: self.out.into(),
            istreams: self.streams().1.into(),
            peer_window: LIMIT.saturating_sub(unacked) as u32,
            unsent: self.outbox.held() as u32,
            unacked: unacked as u32,
            unread: self.unread() as u32,
            adaptation: self.peer_adaptation,
            paths: self.peer.0.iter().enumerate().map(path).collect(),
            ..Default::default()
        }
    }

    pub fn tune(&mut self, config: &AssocConfig) {
        self.inbox.partial_point = config.partial_delivery_point.max(1);
        self.outbox.set_most(config.send_buffer);
        self.allowed = Some(config.allowed);
        self.tell_allowed();
    }

    pub fn want_dry(&mut self, on: bool) {
        self.dry = match on {
            true if self.unsent() > 0 => Dry::Due,
            true => Dry::Told,
            false => Dry::Unwanted,
        };
    }

    // ---- the end ----

    /// Nothing more is sent; it is over when the peer has nothing more to send either.
    pub fn shutdown(&mut self) {
        match self.over.is_none() && !self.is_up() {
            true => self.abort(&[]),
            false => self.release(),
        }
    }

    /// It is over at once; the peer is told the reason.
    pub fn abort(&mut self, reason: &[u8]) {
        if self.over.is_some() {
            return;
        }
        let reason = &reason[..reason.len().min(MOST_REASON)];
        self.outbox.clear();
        if let Some(link) = &mut self.link {
            link.abort(reason);
        }
        let (by_peer, causes) = (false, vec![Cause::UserAbort(reason).into()]);
        self.end(Down::Aborted { by_peer, causes }, libc::ECONNABORTED);
    }
}

/// What was sent is still delivered.
impl Drop for ByMemory {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        match link.shadow() {
            Some(_) => link.leave_behind(Arc::clone(&self.outbox)),
            None => link.disconnect(&[]),
        }
    }
}
