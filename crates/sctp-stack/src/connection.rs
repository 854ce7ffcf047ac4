//! An association as a connection with orderly release: what an endpoint of XTI makes of a [`Body`].

use core::time::Duration;

use headwater_host::sys;
use headwater_host::table::NOT_KERNELS;
use headwater_ipnet::Address;
use headwater_providers::loopback::connection;
use headwater_providers::loopback::request::Request;
use headwater_providers::provider::{Arrived, Event, IN, Outcome, Sleep, Waiter};
use headwater_streams::head::Head;
use headwater_tpi::Refusal;
use headwater_tpi::error::{TADDRBUSY, TNOADDR};

use super::by_memory::first;
use super::option::chosen::Chosen;
use super::values::Settings;
use super::{
    Addresses, Association, Body, ByMemory, ByPackets, Down, Event as Told, Order, Outgoing, Port,
    Received, Status, Via, Want, errno, is_any,
};

mod data;

/// Longest sleep without a look at what other threads have done, in nanoseconds.
const SLICE: u64 = Duration::from_millis(20).as_nanos() as u64;
pub const OUT: u32 = (libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND) as u32;
const URGENT: u32 = (libc::POLLIN | libc::POLLPRI | libc::POLLRDBAND) as u32;

pub struct Connection {
    body: Body,
    local: Address,
    remote: Address,
    progress: Progress,
    /// By ordered and unordered: the message that goes on in the next piece, by packets.
    sending: [Option<Outgoing>; 2],
    /// By ordered and unordered: the message that was received last, and does it go on? Which of these was the last.
    received: [(Received, bool); 2],
    last: usize,
}

/// How far an association by packets is, and what the user knows of that; the ring says so of one by memory.
struct Progress {
    descriptor: i32,
    phase: Phase,
    down: Option<Down>,
    /// The user knows of the end: of the peer's shutdown, of the association's.
    told_end: bool,
    over: bool,
    released: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Calling,
    /// It is there, and the user does not know.
    Answered,
    Open,
}

/// A port of its own at these addresses. TADDRBUSY, TNOADDR.
pub fn bind(at: &Addresses, chosen: &Chosen) -> Outcome<Port> {
    let port = Port::bind(&at.hosts, at.port, &chosen.association);
    let port = port.map_err(|e| match e {
        libc::EADDRINUSE => Refusal::new(TADDRBUSY),
        libc::EADDRNOTAVAIL => Refusal::new(TNOADDR),
        errno => Refusal::system(errno),
    })?;
    let _ = port.configure(|config| config.cookie_lifetime = chosen.cookie_life);
    Ok(port)
}

impl Connection {
    /// Begins an association, from the listener's port if there is one.
    pub fn call(
        to: &Addresses,
        from: &Addresses,
        settings: &Settings,
        listener: Option<&Port>,
    ) -> Outcome<Connection> {
        let chosen = &settings.chosen;
        let via = chosen.encap.map_or(Via::Auto, Via::Udp);
        let connect = |port: &Port| {
            port.connect(&to.hosts, to.port, &chosen.association, via)
                .map_err(Refusal::system)
        };
        let association = match listener {
            Some(port) => connect(port)?,
            None => connect(&bind(from, chosen)?)?,
        };
        let port = association.local_port();
        let mut called = Connection::by_packets(association, from, Phase::Calling)?;
        called.remote = Address::of_ip(to.hosts[0], to.port);
        called.local = Address::of_ip(from.facing(to.hosts[0]), port);
        called.obey_all(settings);
        Ok(called)
    }

    /// One that has come to a listener at those addresses.
    pub fn arrived(association: Association, at: &Addresses) -> Outcome<Connection> {
        Connection::by_packets(association, at, Phase::Open)
    }

    fn by_packets(association: Association, own: &Addresses, phase: Phase) -> Outcome<Connection> {
        let descriptor = association.descriptor().map_err(Refusal::system)?;
        let (hosts, port) = association.peer().unwrap_or_default();
        let remote = hosts
            .first()
            .map_or(Address::any(own.v6), |&host| Address::of_ip(host, port));
        let told = association.look(|a| a.paths().get(a.primary()).and_then(|path| path.from));
        let local = told.ok().flatten().flatten().filter(|&host| !is_any(host));
        let local = local.unwrap_or_else(|| own.facing(remote.ip()));
        let local = Address::of_ip(local, association.local_port());
        let by_packets = ByPackets::new(association, phase == Phase::Open);
        let body = Body::ByPackets(Box::new(by_packets));
        let mut made = Connection::new(body, local, remote);
        made.progress.descriptor = descriptor;
        made.progress.phase = phase;
        Ok(made)
    }

    fn new(body: Body, local: Address, remote: Address) -> Connection {
        Connection {
            body,
            local,
            remote,
            progress: Progress {
                descriptor: -1,
                phase: Phase::Open,
                down: None,
                told_end: false,
                over: false,
                released: false,
            },
            sending: [None; 2],
            received: Default::default(),
            last: 0,
        }
    }

    /// `None`: nobody in shared memory has the port.
    pub fn call_by_memory(
        to: &Addresses,
        from: &Addresses,
        settings: &Settings,
    ) -> Outcome<Option<Connection>> {
        let called = ByMemory::call(to, from, &settings.chosen.association, None)?;
        Ok(called.map(Connection::by_memory))
    }

    pub fn accept(request: Request, settings: &Settings) -> Outcome<Connection> {
        let accepted = ByMemory::accept(request, &settings.chosen.association, None);
        accepted.map(Connection::by_memory).map_err(Refusal::system)
    }

    fn by_memory(by_memory: ByMemory) -> Connection {
        let (local, remote) = (first(&by_memory.local()), first(&by_memory.peer()));
        Connection::new(Body::ByMemory(Box::new(by_memory)), local, remote)
    }

    /// The settings of the endpoint that it was accepted on hold for it.
    pub fn adopted(&mut self, settings: &Settings) {
        let chosen = &settings.chosen.association;
        self.tune(settings);
        for (number, secret) in chosen.shared_keys.clone() {
            let _ = self.obey(&Order::SetKey { number, secret });
        }
        let _ = self.obey(&Order::ActivateKey(chosen.active_key));
        self.obey_all(settings);
    }

    fn obey_all(&mut self, settings: &Settings) {
        for order in &settings.kept {
            let _ = self.obey(order);
        }
    }

    pub fn local(&self) -> Address {
        self.local
    }

    pub fn remote(&self) -> Address {
        self.remote
    }

    /// The message that was received last.
    pub fn last(&self) -> Received {
        self.received[self.last].0
    }

    /// Outgoing streams.
    pub fn streams(&self) -> u16 {
        self.body.streams().0
    }

    // ---- events ----

    /// The event in front, data too.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        match &mut self.body {
            Body::ByMemory(by_memory) => by_memory.front(),
            Body::ByPackets(by_packets) => self.progress.event(by_packets),
        }
    }

    /// Takes the event in front, unless it is data.
    pub fn take(&mut self) -> Option<Arrived> {
        let arrived = match &mut self.body {
            Body::ByMemory(by_memory) => by_memory.take(),
            Body::ByPackets(by_packets) => self.progress.take(by_packets),
        };
        Some(match arrived? {
            Arrived::Confirmed { .. } => Arrived::confirmed(self.remote.to_vec()),
            Arrived::Released { .. } => Arrived::Released { data: Vec::new() },
            other => other,
        })
    }

    /// There is nothing to be accepted any more: it was taken back. One that has ended in peace is there as before, with all that
    /// its peer has sent and knows to be acknowledged.
    pub fn is_withdrawn(&mut self) -> bool {
        if let Body::ByPackets(by_packets) = &mut self.body {
            self.progress.listen(by_packets);
        }
        let down = self.progress.down.as_ref();
        down.is_some_and(|why| *why != Down::Shutdown)
    }

    // ---- readiness ----

    pub fn descriptor(&self) -> i32 {
        match &self.body {
            Body::ByMemory(by_memory) => by_memory.shadow().unwrap_or(-1),
            Body::ByPackets(_) => self.progress.descriptor,
        }
    }

    pub fn head(&self) -> Option<&'static Head> {
        match &self.body {
            Body::ByMemory(by_memory) => Some(by_memory.head()),
            Body::ByPackets(_) => None,
        }
    }

    pub fn waiter(&self) -> Waiter {
        match self.head() {
            Some(head) => Waiter::Head(head),
            None => Waiter::Poll(self.progress.descriptor),
        }
    }

    /// The poll(2) events that hold; of a ring those that it does not show.
    pub fn ready(&mut self, want: u32) -> u32 {
        match &mut self.body {
            // Looked at with care: an attempt may have to be made again.
            Body::ByMemory(by_memory) => {
                let known = by_memory.is_answered()
                    || !by_memory.link().is_some_and(|link| link.is_open())
                        && by_memory.front().is_some();
                if known { want & IN } else { 0 }
            }
            Body::ByPackets(by_packets) => {
                let mut events = self.progress.now(by_packets, want);
                if events == 0 {
                    by_packets.association().pump();
                    events = self.progress.now(by_packets, want);
                }
                events
            }
        }
    }

    /// The program is about to wait in the kernel, for `want`: for what of the descriptor?
    pub fn kernel_wants(&self, want: u32) -> u32 {
        match &self.body {
            Body::ByMemory(by_memory) => match by_memory.link() {
                Some(link) if link.is_quiet() => NOT_KERNELS,
                _ => want,
            },
            // The descriptor becomes readable for whatever happens.
            Body::ByPackets(by_packets) => {
                let association = by_packets.association();
                association.want_room(want & OUT != 0);
                association.hand_over();
                want & !OUT | IN
            }
        }
    }

    /// What the descriptor's readiness says.
    pub fn kernel_means(&self, events: u32) -> u32 {
        match &self.body {
            Body::ByMemory(by_memory) => by_memory
                .link()
                .map_or(events, |link| connection::means(link, events)),
            Body::ByPackets(_) if events & IN == 0 => 0,
            Body::ByPackets(by_packets) => {
                let want = Want {
                    event: true,
                    ..Want::READABLE
                };
                let told = self.progress.phase == Phase::Answered
                    || by_packets.association().is_ready(want);
                (if told { IN } else { 0 }) | self.progress.room(by_packets, OUT)
            }
        }
    }

    /// Who waits in a call of ours takes packets meanwhile, instead of being woken by who does.
    pub fn sleep(&self, want: u32) -> Option<Sleep> {
        let Body::ByPackets(by_packets) = &self.body else {
            return None;
        };
        let association = by_packets.association().clone();
        let wanted = Want {
            readable: want & !OUT != 0,
            writable: want & OUT != 0,
            event: true,
        };
        Some(Box::new(move |deadline| {
            let slice = deadline.map_or(SLICE, |d| d.saturating_sub(sys::now()).min(SLICE));
            association.wait(wanted, Some(Duration::from_nanos(slice)))?;
            match deadline {
                Some(deadline) if sys::now() >= deadline => Err(libc::ETIME),
                _ => Ok(()),
            }
        }))
    }

    // ---- options ----

    /// Parameters were changed.
    pub fn tune(&mut self, settings: &Settings) {
        // In shared memory nothing of what XTI has goes by them.
        if let Body::ByPackets(by_packets) = &mut self.body {
            by_packets.tune(&settings.chosen.association);
        }
    }

    /// Errors: errno.
    pub fn obey(&mut self, order: &Order) -> Result<(), i32> {
        match &mut self.body {
            Body::ByMemory(by_memory) => by_memory.obey_direct(order),
            Body::ByPackets(by_packets) => by_packets.obey(order),
        }
    }

    pub fn status(&self) -> Status {
        match &self.body {
            Body::ByMemory(by_memory) => by_memory.status_direct(),
            Body::ByPackets(by_packets) => by_packets.status(),
        }
    }

    // ---- the end ----

    pub fn release(&mut self) -> Outcome<()> {
        match &mut self.body {
            Body::ByMemory(by_memory) => by_memory.release_direct(),
            Body::ByPackets(by_packets) => {
                let progress = &mut self.progress;
                if !progress.released && !progress.told_end {
                    let association = by_packets.association();
                    association.shutdown().map_err(Refusal::system)?;
                }
                progress.released = true;
                Ok(())
            }
        }
    }

    /// ABORT.
    pub fn disconnect(self) {
        match self.body {
            Body::ByMemory(by_memory) => by_memory.disconnect(),
            Body::ByPackets(by_packets) => by_packets.association().give_up(b""),
        }
    }

    /// It is over for both; dropping it shuts it down, as far as it is not.
    pub fn part(self) {
        if let Body::ByMemory(by_memory) = self.body {
            by_memory.part();
        }
    }

    /// As close(2) of a socket: what was sent is still delivered, unless something unread is lost.
    pub fn close(self) {
        match self.body {
            Body::ByMemory(by_memory) => by_memory.close(),
            Body::ByPackets(mut by_packets) => {
                if by_packets.readable() || self.progress.phase != Phase::Open {
                    by_packets.association().give_up(b"");
                }
            }
        }
    }

    // ---- exec ----

    /// `None`: it does not go on in the new image.
    pub fn save(&self) -> Option<String> {
        match &self.body {
            Body::ByMemory(by_memory) => by_memory.save(),
            Body::ByPackets(_) => None,
        }
    }

    pub fn restore(fd: i32, saved: &str) -> Option<Connection> {
        ByMemory::restore(fd, saved).map(Connection::by_memory)
    }
}

impl Progress {
    /// What the stack has to tell.
    fn listen(&mut self, by_packets: &mut ByPackets) {
        while let Some(told) = by_packets.event() {
            match told {
                Told::Up { .. } if self.phase == Phase::Calling => self.phase = Phase::Answered,
                Told::Down(why) => self.down = Some(why),
                _ => {}
            }
        }
    }

    fn event(&mut self, by_packets: &mut ByPackets) -> Option<Event> {
        by_packets.association().pump_if_alone();
        self.listen(by_packets);
        if self.over {
            return None;
        }
        match self.phase {
            Phase::Calling => return self.down.is_some().then_some(Event::Disconnect),
            Phase::Answered => return Some(Event::Connect),
            Phase::Open => {}
        }
        let seen = by_packets.look(|a| {
            let front = a.receiver().peek().map(|m| m.unordered);
            (front, a.peer_has_shut_down())
        });
        let (front, ended) = seen.unwrap_or_default();
        match (front, &self.down) {
            (Some(true), _) => Some(Event::ExData),
            (Some(false), _) => Some(Event::Data),
            (None, Some(why)) if *why != Down::Shutdown => Some(Event::Disconnect),
            // One that is closed without a reason will have been told one in a moment.
            (None, why) if (ended || why.is_some()) && !self.told_end => Some(Event::OrdRel),
            _ => None,
        }
    }

    fn take(&mut self, by_packets: &mut ByPackets) -> Option<Arrived> {
        Some(match self.event(by_packets)? {
            Event::Connect => {
                self.phase = Phase::Open;
                Arrived::confirmed(Vec::new())
            }
            Event::OrdRel => {
                self.told_end = true;
                by_packets.association().note_end();
                Arrived::Released { data: Vec::new() }
            }
            Event::Disconnect => {
                self.over = true;
                Arrived::ended(self.down.as_ref().map_or(libc::ECONNRESET, errno), -1)
            }
            _ => return None,
        })
    }

    fn now(&mut self, by_packets: &mut ByPackets, want: u32) -> u32 {
        let readable = match self.event(by_packets) {
            Some(Event::ExData) => URGENT,
            Some(_) => IN,
            None => 0,
        };
        (readable | self.room(by_packets, want)) & want
    }

    fn room(&self, by_packets: &ByPackets, want: u32) -> u32 {
        let asks = want & OUT != 0 && self.phase == Phase::Open && self.down.is_none();
        if asks && by_packets.association().is_ready(Want::WRITABLE) {
            OUT
        } else {
            0
        }
    }
}
