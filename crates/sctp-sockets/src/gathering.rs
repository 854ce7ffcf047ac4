//! What has happened since somebody looked: peers that have come, events, ends.

use core::hash::Hash;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;

use headwater_host::sync::{AtomicI32, Ordering};
use headwater_host::sys;
use headwater_providers::loopback::request::Request;
use headwater_providers::provider::Arrived;
use headwater_sctp::{Down, Event, PathChange};
use headwater_sctp_stack::{Addresses, ByMemory, ByPackets, Sink, errno, stack};

use super::face::count;
use super::notice::{self, About};
use super::options::EXPOSE_ON;
use super::{Assoc, AssocOptions, AssocT, Body, Core, FIRST, Notice, Options, State, Style, abi};

/// Numbers are unique in a process, as they are in Linux's: an association that is peeled off keeps its own.
static NEXT: AtomicI32 = AtomicI32::new(FIRST);

/// So many rings are looked at each time.
const FEW: usize = 4;
const NOW_AND_THEN: u64 = Duration::from_millis(5).as_nanos() as u64;
/// Messages in a row that are received from many associations before anything else is looked at.
const HURRIES: u32 = 16;

pub fn next_number() -> AssocT {
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if number >= FIRST {
            return number;
        }
        NEXT.store(FIRST, Ordering::Relaxed);
    }
}

impl Core {
    pub fn new(v6: bool, style: Style, options: Options, sink: Arc<Sink>) -> Core {
        // Field by field, which takes the least stack: a signal handler that opens a socket has little.
        Core {
            style,
            v6,
            sink,
            options,
            local: None,
            names: Vec::new(),
            memory_listener: None,
            port: None,
            listening: false,
            backlog: 0,
            assocs: Default::default(),
            peers: Default::default(),
            ids_by_packets: Default::default(),
            ids_by_memory: Vec::new(),
            ready: Default::default(),
            peeled: Vec::new(),
            waiting: Default::default(),
            notices: Default::default(),
            peeked: None,
            current: None,
            seen: 0,
            error: 0,
            read_shut: false,
            was_connected: false,
            closed: false,
            tally: Default::default(),
            changes: 0,
            looked_at: 0,
            hurries: 0,
            sought_at: 0,
            lacking: None,
            full: Vec::new(),
        }
    }

    /// Takes up what has happened.
    pub fn gather(&mut self) {
        self.take_near_requests();
        self.gather_known();
    }

    /// As [`gather`](Core::gather), but for peers that use shared memory and have not been heard of yet: to look for those is a
    /// call of the kernel.
    pub fn gather_known(&mut self) {
        self.seen = self.sink.signal.changes();
        self.hurries = HURRIES;
        self.take_arrivals();
        for of_stack in self.sink.take() {
            if let Some(&id) = self.ids_by_packets.get(&of_stack) {
                self.list(id);
            }
        }
        self.look_at_rings();
        for i in (0..self.ready.len()).rev() {
            self.attend_to(self.ready[i]);
        }
        self.bury();
    }

    /// Most of many rings are silent. What a ring does not show (a peer that was killed) is looked for now and then.
    fn look_at_rings(&mut self) {
        let all = self.ids_by_memory.len() <= FEW || {
            let now = sys::now();
            let due = now - self.looked_at >= NOW_AND_THEN;
            if due {
                self.looked_at = now;
            }
            due
        };
        for i in 0..self.ids_by_memory.len() {
            let id = self.ids_by_memory[i];
            let stirs = || match self.assocs.get(&id).map(|assoc| &assoc.body) {
                Some(Body::ByMemory(by_memory)) => {
                    !by_memory.head().incoming().is_empty() || by_memory.head().has_hung_up()
                }
                _ => false,
            };
            if all || stirs() {
                self.list(id);
            }
        }
    }

    /// May there be something that was not taken up?
    #[inline]
    pub fn has_news(&self) -> bool {
        self.seen != self.sink.signal.changes()
    }

    pub fn list(&mut self, id: AssocT) {
        if let Some(assoc) = self.assocs.get_mut(&id)
            && !assoc.listed
        {
            assoc.listed = true;
            self.ready.push_back(id);
        }
    }

    fn is_full(&self) -> bool {
        self.style == Style::One && self.waiting.len() >= self.backlog
    }

    /// As [`gather`](Core::gather), before something is received: other peers are looked for where there is nothing else, or from
    /// time to time.
    pub fn gather_to_receive(&mut self) {
        self.gather_known();
        if !self.listening || self.memory_listener.is_none() {
            return;
        }
        let idle = self.notices.is_empty() && self.ready.is_empty();
        if idle || sys::now() - self.sought_at >= NOW_AND_THEN {
            self.gather();
        }
    }

    fn take_near_requests(&mut self) {
        self.lacking = None;
        if self.memory_listener.is_some() {
            self.sought_at = sys::now();
        }
        // Of those who wait for accept(2) the first is enough: the kernel counts the others.
        while self.listening && (self.style == Style::Many || self.waiting.is_empty()) {
            let Some(by_memory) = &mut self.memory_listener else {
                return;
            };
            let request = match by_memory.take(&self.names) {
                Some(Arrived::Request { seq, .. }) => by_memory.take_out(seq, &self.names),
                Some(_) => continue,
                None => {
                    self.lacking = by_memory.lacks();
                    return;
                }
            };
            if let Ok(request) = request {
                self.accept_near(request);
            }
        }
    }

    /// What it takes was there before the request was told of. Apart from its caller, since it needs more stack than all else there.
    #[inline(never)]
    fn accept_near(&mut self, request: Request) {
        let bound = self.local.as_ref().map_or(&[][..], |local| &local.hosts);
        // Whoever does not keep to the rules is refused.
        if let Ok(by_memory) = ByMemory::accept(request, &self.options.config, Some(bound)) {
            self.take_up(Body::ByMemory(Box::new(by_memory)));
        }
    }

    fn take_arrivals(&mut self) {
        while self.sink.arrivals() && !self.is_full() {
            let Some(port) = &self.port else { return };
            let Ok(association) = port.accept() else {
                return;
            };
            let mut by_packets = ByPackets::new(association, true);
            by_packets.attach(&self.sink);
            self.take_up(Body::ByPackets(Box::new(by_packets)));
            self.settle_backlog();
        }
    }

    /// An association of a peer's.
    fn take_up(&mut self, body: Body) {
        let id = self.add(body, State::Up);
        if self.style == Style::One {
            self.waiting.push_back(id);
        }
    }

    pub fn add(&mut self, body: Body, state: State) -> AssocT {
        let id = next_number();
        let mut assoc = Box::new(Assoc {
            id,
            body,
            options: AssocOptions::of(&self.options),
            state,
            down: None,
            released: false,
            peer_released: false,
            late: Default::default(),
            listed: false,
            told_full: false,
            awaited: false,
            names: Vec::new(),
            peer: (core::net::Ipv4Addr::UNSPECIFIED.into(), 0),
        });
        if matches!(assoc.body, Body::ByMemory(_)) {
            assoc.body.tune(&self.options.config);
        }
        for order in &self.options.kept {
            let _ = assoc.body.obey(order);
        }
        self.put(assoc);
        id
    }

    /// It belongs to this socket from now on.
    pub fn put(&mut self, mut assoc: Box<Assoc>) {
        let id = assoc.id;
        assoc.listed = false;
        if assoc.options.events.has(abi::SCTP_SENDER_DRY_EVENT) {
            assoc.body.want_dry(true);
        }
        match &assoc.body {
            Body::ByMemory(_) => self.ids_by_memory.push(id),
            Body::ByPackets(by_packets) => {
                let port = by_packets.association().local_port();
                self.ids_by_packets.insert((port, by_packets.id()), id);
            }
        }
        let (hosts, port) = assoc.body.peer();
        if let Some(&host) = hosts.first() {
            assoc.peer = (host, port);
        }
        for host in hosts {
            know(&mut self.peers, &mut assoc, host, port);
        }
        self.assocs.insert(id, assoc);
        self.changes += 1;
        self.list(id);
    }

    /// It does not any more.
    pub fn remove(&mut self, id: AssocT) -> Option<Box<Assoc>> {
        let assoc = self.assocs.remove(&id)?;
        match &assoc.body {
            Body::ByMemory(_) => self.ids_by_memory.retain(|&by_memory| by_memory != id),
            Body::ByPackets(by_packets) => {
                let port = by_packets.association().local_port();
                forget(&mut self.ids_by_packets, id, &(port, by_packets.id()));
            }
        }
        for name in &assoc.names {
            forget(&mut self.peers, id, name);
        }
        self.ready.retain(|&ready| ready != id);
        self.waiting.retain(|&waiting| waiting != id);
        if self.current == Some(id) {
            self.current = None;
        }
        self.changes += 1;
        Some(assoc)
    }

    /// The one association of a one-to-one socket.
    #[inline]
    pub fn only(&mut self) -> Option<&mut Assoc> {
        let first = self.assocs.values_mut().next();
        first.filter(|_| !self.listening).map(|assoc| &mut **assoc)
    }

    pub fn by_peer(&self, host: IpAddr, port: u16) -> Option<AssocT> {
        self.peers.get(&(host.to_canonical(), port)).copied()
    }

    /// Takes the events of one.
    pub fn attend_to(&mut self, id: AssocT) {
        let Some(assoc) = self.assocs.get_mut(&id) else {
            return;
        };
        while let Some(event) = assoc.body.event() {
            note(assoc, &event, self.v6, &mut self.notices, &self.options);
            match &event {
                Event::Up { .. } => {
                    count::associated(&assoc.body);
                    assoc.state = State::Up;
                    let (hosts, port) = assoc.body.peer();
                    for host in hosts {
                        know(&mut self.peers, assoc, host, port);
                    }
                }
                Event::PeerShutdown => {
                    assoc.peer_released = true;
                    // Others who wait in a call see the end too.
                    stack::kick(&self.sink);
                    assoc.body.wake();
                }
                Event::Path { addr, change } => {
                    let (_, port) = assoc.body.peer();
                    match change {
                        PathChange::Added | PathChange::Confirmed => {
                            know(&mut self.peers, assoc, *addr, port);
                        }
                        PathChange::MadePrimary => assoc.peer = (*addr, port),
                        PathChange::Removed => {
                            forget(&mut self.peers, id, &(addr.to_canonical(), port))
                        }
                        _ => {}
                    }
                }
                Event::Down(why) => {
                    if self.style == Style::One {
                        self.error = match (assoc.state, why) {
                            (State::Calling, why) => setup_error(why),
                            (_, Down::Shutdown) => self.error,
                            (_, why) => errno(why),
                        };
                    }
                    assoc.state = State::Over;
                    assoc.down = Some(why.clone());
                    self.changes += 1;
                    stack::kick(&self.sink);
                    assoc.body.wake();
                }
                _ => {}
            }
        }
        if !assoc.late.is_empty() && !assoc.body.readable() {
            self.notices.append(&mut assoc.late);
        }
    }

    /// Those of which nothing can come any more go, unless they are all that a one-to-one socket is.
    fn bury(&mut self) {
        let mut gone = Vec::new();
        for &id in &self.ready {
            let Some(assoc) = self.assocs.get_mut(&id) else {
                continue;
            };
            let peeked = self.peeked.as_ref().is_some_and(|p| p.assoc == id);
            let dead = assoc.state == State::Over && assoc.late.is_empty();
            if dead
                && !(assoc.awaited || peeked)
                && (self.style == Style::Many || self.listening && !self.waiting.contains(&id))
                && !assoc.body.readable()
            {
                gone.push(id);
            }
        }
        for id in gone {
            self.remove(id);
        }
        // Who has nothing more is listed again when there is news.
        let assocs = &mut self.assocs;
        self.ready.retain(|id| {
            let Some(assoc) = assocs.get_mut(id) else {
                return false;
            };
            assoc.listed = !assoc.late.is_empty() || assoc.body.readable();
            assoc.listed
        });
    }

    /// Where it is: its port, and addresses of which none means any.
    pub fn place(&self) -> Addresses {
        let any = || Addresses::any(self.v6, 0);
        self.local.clone().unwrap_or_else(any)
    }
}

/// Keeps the notification of an event, if the user wants it. What tells of an end comes behind the data before it.
fn note(
    assoc: &mut Assoc,
    event: &Event,
    v6: bool,
    notices: &mut std::collections::VecDeque<Notice>,
    options: &Options,
) {
    let (out, inbound) = assoc.body.streams();
    let about = About {
        out,
        inbound,
        peer: Some(assoc.peer),
        v6,
        v4mapped: options.v4mapped,
        up: assoc.state == State::Up,
        potentially_failed: options.exposure == EXPOSE_ON,
    };
    let ends = matches!(event, Event::PeerShutdown | Event::Down(_));
    for (kind, bytes) in notice::encode(event, assoc.id, &about) {
        if !assoc.options.events.has(kind) {
            continue;
        }
        let notice = assoc.notice(bytes);
        if ends && assoc.body.readable() || !assoc.late.is_empty() {
            assoc.late.push_back(notice);
        } else {
            notices.push_back(notice);
        }
    }
}

/// What is for this address of the peer's is for this association.
fn know(peers: &mut HashMap<(IpAddr, u16), AssocT>, assoc: &mut Assoc, host: IpAddr, port: u16) {
    let name = (host.to_canonical(), port);
    if peers.insert(name, assoc.id) != Some(assoc.id) {
        assoc.names.push(name);
    }
}

/// Unless it means another by now.
fn forget<K: Hash + Eq>(known: &mut HashMap<K, AssocT>, id: AssocT, key: &K) {
    if known.get(key) == Some(&id) {
        known.remove(key);
    }
}

/// Why there is no association, as the error of connect(2).
pub fn setup_error(why: &Down) -> i32 {
    match why {
        Down::Aborted { .. } | Down::SetupFailed { refused: true } => libc::ECONNREFUSED,
        why => errno(why),
    }
}
