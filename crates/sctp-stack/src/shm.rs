//! An association between two processes of one host: a loop-back connection whose data says for which stream it is. No
//! packets; loss, reordering and paths are nobody's business here.
//!
//! Each end counts what it receives, per stream and in all, as the sender of packets would have numbered it. What RFC 6525
//! has chunks for, stream resets and new streams, are notes in order with the data.

use core::net::IpAddr;

use headwater_host::sync::{Ordering, fence};
use headwater_ipnet::Address;
use headwater_providers::loopback::buffers;
use headwater_providers::loopback::link::{Label, Link, from_hex, to_hex};
use headwater_providers::loopback::request::Request;
use headwater_providers::provider::{Arrived, Event, Outcome, Received, Sending};
use headwater_tpi::Refusal;
use headwater_tpi::error::{TLOOK, TNODATA, TOUTSTATE};
use libc::iovec;

use super::addresses::Addresses;
use super::names::{self, Caller};
use super::option::message::{Incoming, Outgoing};
use super::option::status::{By, Path, State, Status};

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
    /// What the receiver may ask for of these, as bits: see [`allowed`](super::allowed).
    pub const ALLOWED: u32 = 4;
}

/// Bits of [`note::ALLOWED`].
pub mod allowed {
    pub const STREAMS: u8 = 1;
    pub const ASSOCIATION: u8 = 2;
    pub const MORE_STREAMS: u8 = 4;
    pub const ALL: u8 = 7;
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

impl Greeting {
    pub const LEN: usize = 28;

    pub fn to_bytes(self) -> [u8; Greeting::LEN] {
        let mut bytes = [0; Greeting::LEN];
        bytes[..2].copy_from_slice(&self.out.to_ne_bytes());
        bytes[2..4].copy_from_slice(&self.inbound.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.adaptation.to_ne_bytes());
        let called = match self.called {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        bytes[8..24].copy_from_slice(&called.octets());
        bytes[24..26].copy_from_slice(&self.port.to_ne_bytes());
        bytes[ALLOWS] = allowed::ALL + 1;
        bytes
    }

    /// As bits of [`allowed`]; `None`: that is told by a note.
    pub fn allows(bytes: &[u8]) -> Option<u8> {
        bytes.get(ALLOWS)?.checked_sub(1)
    }

    pub fn tell_allowed_later(bytes: &mut [u8]) {
        bytes[ALLOWS] = 0;
    }

    pub fn read(bytes: &[u8]) -> Option<Greeting> {
        let bytes: &[u8; Greeting::LEN] = bytes.get(..Greeting::LEN)?.try_into().ok()?;
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
}

/// What is known of a request before it is accepted.
pub struct Asked {
    pub from: Address,
    pub greeting: Greeting,
}

impl Asked {
    /// `None`: nonsense.
    pub fn of(from: &[u8], opts: &[u8]) -> Option<Asked> {
        Some(Asked {
            from: Address::read(from).ok()?,
            greeting: Greeting::read(opts)?,
        })
    }
}

pub struct Shm {
    link: Link,
    local: Address,
    remote: Address,
    out: u16,
    inbound: u16,
    peer_adaptation: u32,
    /// SSNs of the incoming streams to come, as far as there was any; messages in all.
    ssns: Vec<u16>,
    tsn: u32,
    /// By ordered and unordered: the message that goes on in the next piece, out and in.
    sending: [Option<Label>; 2],
    receiving: [Option<Incoming>; 2],
    last: Incoming,
    released: bool,
    peer_released: bool,
}

impl Shm {
    /// `None`: nobody in shared memory has the port.
    pub fn call(to: &Addresses, from: &Addresses, mut greeting: Greeting) -> Outcome<Option<Shm>> {
        greeting.port = to.port;
        for &host in &to.hosts {
            greeting.called = host;
            let local = Address::of_ip(from.facing(host), from.port);
            let caller = Caller {
                from: local.bytes(),
                greeting: &greeting.to_bytes(),
            };
            if let Some(link) = names::call(host, to.port, &caller)? {
                let remote = Address::of_ip(host, to.port);
                return Ok(Some(Shm::new(link, local, remote, greeting)));
            }
        }
        Ok(None)
    }

    pub fn accept(request: Request, own: Greeting) -> Outcome<Shm> {
        let asked = Asked::of(&request.from, &request.opts).ok_or(Refusal::system(libc::EPROTO))?;
        let Asked {
            from: remote,
            greeting: theirs,
        } = asked;
        let agreed = Greeting {
            out: own.out.min(theirs.inbound),
            inbound: own.inbound.min(theirs.out),
            ..own
        };
        let local = Address::of_ip(theirs.called, theirs.port);
        let link = Link::accept(request, local.bytes(), &agreed.to_bytes(), &[]);
        let mut shm = Shm::new(link.map_err(Refusal::system)?, local, remote, agreed);
        shm.peer_adaptation = theirs.adaptation;
        Ok(shm)
    }

    fn new(link: Link, local: Address, remote: Address, greeting: Greeting) -> Shm {
        Shm {
            link,
            local,
            remote,
            out: greeting.out,
            inbound: greeting.inbound,
            peer_adaptation: 0,
            ssns: Vec::new(),
            tsn: 0,
            sending: [None; 2],
            receiving: [None; 2],
            last: Incoming::default(),
            released: false,
            peer_released: false,
        }
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    pub fn local(&self) -> Address {
        self.local
    }

    pub fn remote(&self) -> Address {
        self.remote
    }

    /// Outgoing streams.
    pub fn streams(&self) -> u16 {
        self.out
    }

    /// The message that was received last.
    pub fn last(&self) -> Incoming {
        self.last
    }

    // ---- events ----

    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        let event = self.link.event();
        if self.link.has_notes() {
            self.attend_to_notes();
        }
        if self.is_answered() {
            return Some(Event::OrdRel);
        }
        match event {
            // The peer's own word may have come since, by which it counts as answered no more.
            None if self.released && !self.peer_released => self.link.event(),
            event => event,
        }
    }

    /// A SHUTDOWN is answered whether the peer's program looks at it or not: it begins no message any more, and has none left.
    pub fn is_answered(&self) -> bool {
        if !self.released || self.peer_released {
            return false;
        }
        // In this order: what it holds is in the ring before it is held no more.
        let holds = self.link.peer_holds();
        fence(Ordering::SeqCst);
        !holds && self.link.head().incoming().is_empty()
    }

    pub fn take(&mut self) -> Option<Arrived> {
        self.event()?;
        let arrived = match self.is_answered() {
            true => {
                self.link.note_peer_released();
                Arrived::Released { data: Vec::new() }
            }
            false => self.link.take()?,
        };
        self.attend_to_notes();
        Some(match arrived {
            Arrived::Confirmed { by, opts, .. } => {
                self.confirmed(&by, &opts);
                Arrived::Confirmed {
                    by: self.remote.to_vec(),
                    opts: Vec::new(),
                    data: Vec::new(),
                }
            }
            Arrived::Released { .. } => {
                // A SHUTDOWN is answered as soon as nothing more is under way: there is no half-closed association.
                self.peer_released = true;
                self.released = self.released || self.link.release().is_ok();
                Arrived::Released { data: Vec::new() }
            }
            other => other,
        })
    }

    fn confirmed(&mut self, by: &[u8], opts: &[u8]) {
        if let Ok(by) = Address::read(by) {
            self.remote = by;
        }
        if let Some(theirs) = Greeting::read(opts) {
            self.out = self.out.min(theirs.inbound);
            self.inbound = self.inbound.min(theirs.out);
            self.peer_adaptation = theirs.adaptation;
        }
    }

    // ---- data ----

    #[inline]
    pub fn send(&mut self, data: &[iovec], how: Sending, message: &Outgoing) -> Outcome<usize> {
        if self.peer_released {
            return Err(Refusal::new(TOUTSTATE));
        }
        if self.link.is_hushed() {
            return Err(Refusal::new(TLOOK));
        }
        let kind = how.expedited as usize;
        let label = self.sending[kind].unwrap_or(Label {
            stream: message.stream,
            ppid: message.ppid,
            kind: 0,
        });
        if label.stream >= self.out {
            return Err(Refusal::system(libc::EINVAL));
        }
        // By packets who has closed has shut down: what is not sent then breaks nothing.
        let sent = self
            .link
            .send_labelled(data, how, label)
            .inspect_err(|_| self.link.mend())?;
        let goes_on = how.more || sent < buffers::len(data);
        self.sending[kind] = goes_on.then_some(label);
        Ok(sent)
    }

    #[inline]
    pub fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        let mut label = Label::NONE;
        let mut received = self.link.receive_labelled(into, &mut label);
        if let Err(Refusal { tli: TNODATA, .. }) = received
            && self.link.has_notes()
        {
            self.attend_to_notes();
            received = self.link.receive_labelled(into, &mut label);
        }
        if let Err(Refusal { tli: TNODATA, .. }) = received
            && self.released
            && self.event() == Some(Event::OrdRel)
        {
            return Err(Refusal::new(TLOOK));
        }
        let received = received?;
        self.count(&received, label);
        Ok(received)
    }

    #[inline]
    fn count(&mut self, received: &Received, label: Label) {
        let kind = received.expedited as usize;
        let message = match self.receiving[kind] {
            Some(known) => known,
            None => self.number(label, received.expedited || label.is_unordered()),
        };
        self.last = message;
        self.receiving[kind] = received.more.then_some(message);
    }

    /// The numbers of a message that begins.
    #[inline]
    fn number(&mut self, label: Label, unordered: bool) -> Incoming {
        let tsn = self.tsn;
        self.tsn = tsn.wrapping_add(1);
        let mut ssn = 0;
        if !unordered {
            let at = usize::from(label.stream);
            if at >= self.ssns.len() {
                self.ssns.resize(at + 1, 0);
            }
            ssn = self.ssns[at];
            self.ssns[at] = ssn.wrapping_add(1);
        }
        Incoming {
            stream: label.stream,
            ssn,
            ppid: label.ppid,
            tsn,
            unordered,
        }
    }

    // ---- streams ----

    /// The outgoing streams begin anew, at the peer's end, with the next message; empty: all.
    pub fn reset_outgoing(&mut self, streams: &[u16]) -> Outcome<()> {
        self.tell(note::RESET, &list(streams))
    }

    /// The peer is asked for the same.
    pub fn reset_incoming(&mut self, streams: &[u16]) -> Outcome<()> {
        self.tell(note::RESET_YOURS, &list(streams))
    }

    pub fn reset_association(&mut self) -> Outcome<()> {
        self.tell(note::RESET_ALL, &[0])
    }

    pub fn add_streams(&mut self, out: u16, inbound: u16) -> Outcome<()> {
        let more = |now: u16, n| now.checked_add(n).ok_or(Refusal::system(libc::EINVAL));
        let (all_out, all_in) = (more(self.out, out)?, more(self.inbound, inbound)?);
        self.tell(note::ADD, &list(&[out, inbound]))?;
        (self.out, self.inbound) = (all_out, all_in);
        Ok(())
    }

    fn tell(&mut self, what: u32, data: &[u8]) -> Outcome<()> {
        if !self.link.is_open() || self.released {
            return Err(Refusal::system(libc::ENOTCONN));
        }
        match self.link.note(what, data) {
            true => Ok(()),
            false => Err(Refusal::system(libc::EAGAIN)),
        }
    }

    #[cold]
    fn attend_to_notes(&mut self) {
        for (what, data) in self.link.notes() {
            let streams: Vec<u16> = data
                .chunks_exact(2)
                .map(|c| u16::from_ne_bytes([c[0], c[1]]))
                .collect();
            match what {
                note::RESET => self.begin_anew(&streams),
                note::RESET_YOURS => drop(self.reset_outgoing(&streams)),
                note::RESET_ALL => {
                    self.begin_anew(&[]);
                    self.tsn = 0;
                    if data.first() == Some(&0) {
                        let _ = self.tell(note::RESET_ALL, &[1]);
                    }
                }
                note::ADD => {
                    if let [theirs, ours] = streams[..] {
                        self.inbound = self.inbound.saturating_add(theirs);
                        self.out = self.out.saturating_add(ours);
                    }
                }
                _ => {}
            }
        }
    }

    fn begin_anew(&mut self, streams: &[u16]) {
        if streams.is_empty() {
            self.ssns.fill(0);
        }
        for &stream in streams {
            if let Some(ssn) = self.ssns.get_mut(usize::from(stream)) {
                *ssn = 0;
            }
        }
    }

    pub fn status(&self) -> Status {
        let state = match (self.link.is_open(), self.released, self.peer_released) {
            (false, ..) => State::CookieWait,
            (true, false, false) => State::Established,
            (true, true, false) => State::ShutdownSent,
            (true, false, true) => State::ShutdownReceived,
            (true, true, true) => State::ShutdownAckSent,
        };
        let (unread, unacked) = self.link.unread();
        let room = headwater_streams::pipe::LIMIT.saturating_sub(unacked);
        Status {
            state,
            by: By::Shm,
            ostreams: self.out.into(),
            istreams: self.inbound.into(),
            peer_window: room as u32,
            unacked: unacked as u32,
            unread: unread as u32,
            adaptation: self.peer_adaptation,
            paths: vec![Path {
                host: self.remote.ip(),
                port: self.remote.port(),
                state: 1,
                primary: true,
                rto: 0,
                srtt: 0,
                cwnd: headwater_streams::pipe::LIMIT as u32,
                flight: unacked as u32,
                mtu: headwater_providers::loopback::link::PIECE as u32,
                errors: 0,
                encap: 0,
            }],
            ..Default::default()
        }
    }

    // ---- the end ----

    pub fn release(&mut self) -> Outcome<()> {
        if !self.released {
            // As by packets: whoever shuts down is sent nothing new.
            self.link.hush_peer();
            self.link.release()?;
            self.released = true;
            // Its answer may be here by that.
            self.link.head().notify();
            self.link.head().ring_own();
        }
        Ok(())
    }

    pub fn disconnect(self) {
        // A SHUTDOWN that was answered leaves nothing to be aborted, as by packets; ours is as soon as the peer has nothing more under
        // way, whatever of that was not taken here.
        let is_emptied = self.released && !self.link.peer_holds();
        match self.link.is_hushed() {
            _ if self.is_answered() => self.link.part(),
            true => self.link.leave(),
            false if is_emptied => self.link.part(),
            false => self.link.disconnect(&[]),
        }
    }

    pub fn part(self) {
        self.link.part();
    }

    pub fn close(self) {
        match self.link.is_hushed() {
            true => self.link.leave(),
            false => self.link.close(true),
        }
    }

    // ---- exec ----

    pub fn save(&self) -> Option<String> {
        let (local, remote) = (to_hex(self.local.bytes()), to_hex(self.remote.bytes()));
        let flags = self.released as u8 | (self.peer_released as u8) << 1;
        let (out, inbound, tsn) = (self.out, self.inbound, self.tsn);
        let link = self.link.save()?;
        Some(format!(
            "{local},{remote},{out},{inbound},{tsn},{flags},{link}"
        ))
    }

    pub fn restore(fd: i32, saved: &str) -> Option<Shm> {
        let fields: Vec<&str> = saved.splitn(7, ',').collect();
        let [local, remote, out, inbound, tsn, flags, link] = fields[..] else {
            return None;
        };
        let address = |text| Address::read(&from_hex(text)?).ok();
        let (local, remote) = (address(local)?, address(remote)?);
        let greeting = Greeting {
            out: out.parse().ok()?,
            inbound: inbound.parse().ok()?,
            adaptation: 0,
            called: remote.ip(),
            port: 0,
        };
        let mut shm = Shm::new(Link::restore(fd, link)?, local, remote, greeting);
        shm.tsn = tsn.parse().ok()?;
        let flags: u8 = flags.parse().ok()?;
        (shm.released, shm.peer_released) = (flags & 1 != 0, flags & 2 != 0);
        Some(shm)
    }
}

pub fn list(streams: &[u16]) -> Vec<u8> {
    streams.iter().flat_map(|s| s.to_ne_bytes()).collect()
}
