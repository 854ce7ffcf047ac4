//! An association by packets: of the stack, whoever the peer is.

use core::time::Duration;
use std::sync::Arc;

use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_providers::loopback::buffers::{self, Source};
use headwater_providers::provider::{Arrived, Event, Outcome, Received, Sending, Sleep};
use headwater_sctp::asconf::Change;
use headwater_sctp::association::{self, Association as Engine, ChangeRefused};
use headwater_sctp::config::AssocConfig;
use headwater_sctp::path::PathState;
use headwater_sctp::reset::Ask;
use headwater_tpi::Refusal;
use headwater_tpi::error::{TADDRBUSY, TBADDATA, TFLOW, TLOOK, TNOADDR, TNODATA, TOUTSTATE};
use libc::iovec;

use super::addresses::Addresses;
use super::choice::is_any;
use super::option::chosen::Chosen;
use super::option::message::{self, Incoming, Policy};
use super::option::orders::Order;
use super::option::status::{By, Path, State, Status};
use super::values::Settings;
use super::{
    Association, Down, Event as Told, Outgoing, Port, Received as Message, Reliability, Via, Want,
    errno,
};

/// Most data given to the engine at once; what is always given at once.
const PIECE: usize = 64 << 10;
const SHORT: usize = 4 << 10;
/// Associations that wait in the stack, beside those that the user may be told of.
const BACKLOG: usize = 16;
/// Longest sleep without a look at what other threads have done, in nanoseconds.
const SLICE: u64 = 20_000_000;
pub const IN: u32 = (libc::POLLIN | libc::POLLRDNORM) as u32;
pub const OUT: u32 = (libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND) as u32;
const URGENT: u32 = (libc::POLLIN | libc::POLLPRI | libc::POLLRDBAND) as u32;

/// A port that peers can call.
pub struct Listener {
    port: Port,
    at: Addresses,
    descriptor: i32,
    /// This process is a child of the one that has the port.
    foreign: bool,
}

impl Listener {
    /// TADDRBUSY, TNOADDR; TSYSERR where there is no network for us.
    pub fn open(at: &Addresses, qlen: u32, chosen: &Chosen) -> Outcome<Listener> {
        let mut port = bind(at, chosen)?;
        port.listen(qlen as usize + BACKLOG)
            .map_err(Refusal::system)?;
        let descriptor = port.descriptor().map_err(Refusal::system)?;
        Ok(Listener {
            port,
            at: at.clone(),
            descriptor,
            foreign: false,
        })
    }

    pub fn descriptor(&self) -> i32 {
        self.descriptor
    }

    /// EMFILE, ENFILE, ENOMEM: there is no descriptor for the next.
    pub fn accept(&mut self) -> sys::Result<Option<Net>> {
        if self.foreign {
            return Ok(None);
        }
        match self.port.accept_with_descriptor() {
            Ok(association) => Ok(Net::new(association, &self.at, Phase::Open).ok()),
            Err(libc::EAGAIN | libc::EBADF) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The program is about to wait for the descriptor.
    pub fn hand_over(&self) {
        self.port.hand_over();
    }

    pub fn configure(&self, chosen: &Chosen) {
        let (association, life) = (chosen.association.clone(), chosen.cookie_life);
        let _ = self.port.configure(|config| {
            config.association = association;
            config.cookie_lifetime = life;
        });
    }

    pub fn forked(&mut self) {
        self.foreign = true;
    }
}

fn bind(at: &Addresses, chosen: &Chosen) -> Outcome<Port> {
    let port = Port::bind(&at.hosts, at.port, &chosen.association);
    let port = port.map_err(|e| match e {
        libc::EADDRINUSE => Refusal::new(TADDRBUSY),
        libc::EADDRNOTAVAIL => Refusal::new(TNOADDR),
        errno => Refusal::system(errno),
    })?;
    let life = chosen.cookie_life;
    let _ = port.configure(|config| config.cookie_lifetime = life);
    Ok(port)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Calling,
    /// It is there, and the user does not know.
    Answered,
    Open,
}

pub struct Net {
    association: Arc<Association>,
    descriptor: i32,
    local: Address,
    remote: Address,
    phase: Phase,
    down: Option<Down>,
    /// The user knows of the end: of the peer's shutdown, of the association's.
    told_end: bool,
    over: bool,
    released: bool,
    /// By ordered and unordered: the message that goes on in the next piece.
    sending: [Option<Outgoing>; 2],
    last: Incoming,
    abandoned: u32,
    adaptation: u32,
}

impl Net {
    /// Begins an association, from the listener's port if there is one.
    pub fn call(
        to: &Addresses,
        from: &Addresses,
        settings: &Settings,
        listener: Option<&Listener>,
    ) -> Outcome<Net> {
        let chosen = &settings.chosen;
        let via = chosen.encap.map_or(Via::Auto, Via::Udp);
        let connect = |port: &Port| {
            port.connect(&to.hosts, to.port, &chosen.association, via)
                .map_err(Refusal::system)
        };
        let association = match listener {
            Some(listener) => connect(&listener.port)?,
            None => connect(&bind(from, chosen)?)?,
        };
        let mut net = Net::new(association, from, Phase::Calling)?;
        net.remote = Address::of_ip(to.hosts[0], to.port);
        net.local = Address::of_ip(from.facing(to.hosts[0]), net.association.local_port());
        net.obey_all(settings);
        Ok(net)
    }

    fn new(association: Association, own: &Addresses, phase: Phase) -> Outcome<Net> {
        let descriptor = association.descriptor().map_err(Refusal::system)?;
        let (hosts, port) = association.peer().unwrap_or_default();
        let remote = hosts
            .first()
            .map_or(Address::any(own.v6), |&host| Address::of_ip(host, port));
        let told = association.look(|a| a.paths().get(a.primary()).and_then(|path| path.from));
        let local = told.ok().flatten().flatten().filter(|&host| !is_any(host));
        let local = local.unwrap_or_else(|| own.facing(remote.ip()));
        Ok(Net {
            local: Address::of_ip(local, association.local_port()),
            association: Arc::new(association),
            descriptor,
            remote,
            phase,
            down: None,
            told_end: false,
            over: false,
            released: false,
            sending: [None; 2],
            last: Incoming::default(),
            abandoned: 0,
            adaptation: 0,
        })
    }

    /// The settings of the endpoint that it was accepted on hold for it.
    pub fn adopted(&mut self, settings: &Settings) {
        self.tune(&settings.chosen);
        let chosen = &settings.chosen.association;
        let _ = self.association.change(|a, _| {
            for (number, secret) in &chosen.shared_keys {
                a.set_key(*number, secret);
            }
            let _ = a.activate_key(chosen.active_key);
        });
        self.obey_all(settings);
    }

    fn obey_all(&mut self, settings: &Settings) {
        for order in &settings.kept {
            let _ = self.obey(order);
        }
    }

    pub fn descriptor(&self) -> i32 {
        self.descriptor
    }

    pub fn local(&self) -> Address {
        self.local
    }

    pub fn remote(&self) -> Address {
        self.remote
    }

    pub fn last(&self) -> Incoming {
        self.last
    }

    /// Outgoing streams.
    pub fn streams(&self) -> u16 {
        self.look(|a| a.sender().streams()).unwrap_or(0)
    }

    fn look<T>(&self, at: impl FnOnce(&Engine) -> T) -> Option<T> {
        self.association.look(at).ok().flatten()
    }

    // ---- events ----

    /// What the stack has to tell.
    fn listen(&mut self) {
        while let Ok(Some(told)) = self.association.event() {
            match told {
                Told::Up { .. } if self.phase == Phase::Calling => self.phase = Phase::Answered,
                Told::Down(why) => self.down = Some(why),
                Told::SendFailed(_) => self.abandoned += 1,
                Told::Adaptation(code) => self.adaptation = code,
                _ => {}
            }
        }
    }

    pub fn event(&mut self) -> Option<Event> {
        self.association.pump_if_alone();
        self.listen();
        if self.over {
            return None;
        }
        match self.phase {
            Phase::Calling => return self.down.is_some().then_some(Event::Disconnect),
            Phase::Answered => return Some(Event::Connect),
            Phase::Open => {}
        }
        let (front, ended) = self
            .look(|a| {
                (
                    a.receiver().peek().map(|m| m.unordered),
                    a.peer_has_shut_down(),
                )
            })
            .unwrap_or_default();
        match (front, &self.down) {
            (Some(true), _) => Some(Event::ExData),
            (Some(false), _) => Some(Event::Data),
            (None, Some(why)) if !is_peaceful(why) => Some(Event::Disconnect),
            // One that is closed without a reason will have been told one in a moment.
            (None, why) if (ended || why.is_some()) && !self.told_end => Some(Event::OrdRel),
            _ => None,
        }
    }

    /// Takes the event in front, unless it is data.
    pub fn take(&mut self) -> Option<Arrived> {
        Some(match self.event()? {
            Event::Connect => {
                self.phase = Phase::Open;
                Arrived::Confirmed {
                    by: self.remote.to_vec(),
                    opts: Vec::new(),
                    data: Vec::new(),
                }
            }
            Event::OrdRel => {
                self.told_end = true;
                Arrived::Released { data: Vec::new() }
            }
            Event::Disconnect => {
                self.over = true;
                Arrived::Disconnected {
                    reason: self.reason(),
                    seq: -1,
                    data: Vec::new(),
                }
            }
            _ => return None,
        })
    }

    fn reason(&self) -> i32 {
        match &self.down {
            // Nobody has the port.
            Some(Down::Aborted { by_peer: true, .. }) if self.phase == Phase::Calling => {
                libc::ECONNREFUSED
            }
            why => why.as_ref().map_or(libc::ECONNRESET, errno),
        }
    }

    /// There is nothing to be accepted any more: it was taken back. One that has ended in peace is there as before, with all that
    /// its peer has sent and knows to be acknowledged.
    pub fn is_withdrawn(&mut self) -> bool {
        self.listen();
        self.down.as_ref().is_some_and(|why| !is_peaceful(why))
    }

    // ---- data ----

    pub fn send(
        &mut self,
        data: &[iovec],
        how: Sending,
        message: &message::Outgoing,
    ) -> Outcome<usize> {
        if self.told_end || self.released {
            return Err(Refusal::new(TOUTSTATE));
        }
        let kind = how.expedited as usize;
        let message = self.sending[kind].unwrap_or_else(|| outgoing(message, how.expedited));
        if self.sending[1 - kind].is_some_and(|other| other.stream == message.stream) {
            // The engine joins pieces by their stream.
            return Err(Refusal::system(libc::EBUSY));
        }
        let total = buffers::len(data);
        if total == 0 {
            return if how.more {
                Ok(0)
            } else {
                Err(Refusal::new(TBADDATA))
            };
        }
        let sent = self.send_pieces(data, total, &message, how.more);
        let sent = sent.map_err(|errno| match errno {
            libc::EPIPE | libc::ECONNRESET | libc::ECONNABORTED | libc::ETIMEDOUT => {
                Refusal::new(TLOOK)
            }
            errno => Refusal::system(errno),
        })?;
        if sent == 0 {
            return Err(Refusal::new(TFLOW));
        }
        let goes_on = how.more || sent < total;
        self.sending[kind] = goes_on.then_some(message);
        if how.push {
            self.association.flush();
        }
        Ok(sent)
    }

    /// Messages that are not long go whole or not at all; of others as much as there is room for, and what is cut off comes as
    /// the rest of the message.
    fn send_pieces(
        &self,
        data: &[iovec],
        total: usize,
        message: &Outgoing,
        more: bool,
    ) -> sys::Result<usize> {
        if total <= SHORT {
            // SAFETY: what a user sends is readable, see `buffers`.
            return match unsafe { self.association.send_parts(message, data, more) } {
                Ok(()) => Ok(total),
                Err(libc::EAGAIN) => Ok(0),
                Err(errno) => Err(errno),
            };
        }
        // No more than what there is room for when the stack says that there is room.
        let most = self.look(|a| a.config().send_buffer / 4).unwrap_or(PIECE);
        let mut piece = vec![0; most.clamp(SHORT, PIECE)];
        let mut source = Source::new(data);
        let mut done = 0;
        while done < total {
            let n = (total - done).min(piece.len());
            source.take(&mut piece[..n]);
            let goes_on = more || done + n < total;
            match self.association.send(message, &piece[..n], goes_on) {
                Ok(()) => done += n,
                Err(libc::EAGAIN) => break,
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    pub fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        if self.phase != Phase::Open || self.over {
            return Err(Refusal::new(TLOOK));
        }
        if buffers::len(into) == 0 {
            return self.receive_nothing();
        }
        let received = match self.take_message(into)? {
            Some(received) => received,
            None => match self.event() {
                None => return Err(Refusal::new(TNODATA)),
                // It came this moment.
                Some(Event::Data | Event::ExData) => {
                    self.take_message(into)?.ok_or(Refusal::new(TNODATA))?
                }
                Some(_) => return Err(Refusal::new(TLOOK)),
            },
        };
        self.last = Incoming {
            stream: received.stream,
            ssn: received.ssn.0,
            ppid: received.ppid,
            tsn: received.tsn.0,
            unordered: received.unordered,
        };
        Ok(Received {
            len: received.len,
            more: !received.end && !received.aborted,
            expedited: received.unordered,
        })
    }

    /// Without room: is there a message?
    fn receive_nothing(&mut self) -> Outcome<Received> {
        match self.event() {
            Some(event @ (Event::Data | Event::ExData)) => Ok(Received {
                len: 0,
                more: true,
                expedited: event == Event::ExData,
            }),
            None => Err(Refusal::new(TNODATA)),
            Some(_) => Err(Refusal::new(TLOOK)),
        }
    }

    /// `None`: there is none, whatever the reason. EBADF in a child of fork.
    fn take_message(&self, into: &[iovec]) -> Outcome<Option<Message>> {
        // SAFETY: what a user receives into is writable, see `buffers`.
        match unsafe { self.association.receive_parts(into) } {
            Ok(received) => Ok(received),
            Err(libc::EBADF) => Err(Refusal::system(libc::EBADF)),
            Err(_) => Ok(None),
        }
    }

    // ---- readiness ----

    /// The poll(2) events that hold.
    pub fn ready(&mut self, want: u32) -> u32 {
        let mut events = self.now(want);
        if events == 0 {
            self.association.pump();
            events = self.now(want);
        }
        events
    }

    fn now(&mut self, want: u32) -> u32 {
        let readable = match self.event() {
            Some(Event::ExData) => URGENT,
            Some(_) => IN,
            None => 0,
        };
        (readable | self.room(want)) & want
    }

    fn room(&self, want: u32) -> u32 {
        let asks = want & OUT != 0 && self.phase == Phase::Open && self.down.is_none();
        if asks && self.association.is_ready(Want::WRITABLE) {
            OUT
        } else {
            0
        }
    }

    /// What the descriptor's readiness says.
    pub fn means(&self, events: u32) -> u32 {
        if events & IN == 0 {
            return 0;
        }
        let want = Want {
            readable: true,
            writable: false,
            event: true,
        };
        let readable = if self.association.is_ready(want) || self.phase == Phase::Answered {
            IN
        } else {
            0
        };
        readable | self.room(OUT)
    }

    /// The program is about to wait for the descriptor, for `want`.
    pub fn is_waited_for(&self, want: u32) {
        self.association.want_room(want & OUT != 0);
        self.association.hand_over();
    }

    /// Who waits in a call of ours takes packets meanwhile, instead of being woken by who does.
    pub fn sleep(&self, want: u32) -> Sleep {
        let association = self.association.clone();
        let wanted = Want {
            readable: want & !OUT != 0,
            writable: want & OUT != 0,
            event: true,
        };
        Box::new(move |deadline| {
            let slice = deadline.map_or(SLICE, |d| d.saturating_sub(sys::now()).min(SLICE));
            association.wait(wanted, Some(Duration::from_nanos(slice)))?;
            match deadline {
                Some(deadline) if sys::now() >= deadline => Err(libc::ETIME),
                _ => Ok(()),
            }
        })
    }

    // ---- options ----

    pub fn tune(&mut self, chosen: &Chosen) {
        let wanted = chosen.association.clone();
        let _ = self.association.change(|a, now| {
            a.set_scheduler(wanted.scheduler);
            a.set_config(now, |config| adjust(config, &wanted));
        });
    }

    /// Errors: errno.
    pub fn obey(&mut self, order: &Order) -> Result<(), i32> {
        let done = self.association.change(|a, _| obey(a, order));
        done?.unwrap_or(Err(libc::ENOTCONN))
    }

    pub fn status(&self) -> Status {
        let mut status = self.look(read_status).unwrap_or_default();
        status.abandoned = self.abandoned;
        status.adaptation = self.adaptation;
        status
    }

    // ---- the end ----

    pub fn release(&mut self) -> Outcome<()> {
        if !self.released && !self.told_end {
            self.association.shutdown().map_err(Refusal::system)?;
        }
        self.released = true;
        Ok(())
    }

    /// ABORT.
    pub fn disconnect(self) {
        self.association.give_up(b"");
    }

    /// Dropping it shuts it down, as far as it is not.
    pub fn part(self) {}

    /// As close(2) of a socket: what was sent is still delivered, unless something unread is lost.
    pub fn close(self) {
        let unread = self.look(|a| a.readable()).unwrap_or(false);
        if unread || self.phase != Phase::Open {
            self.disconnect();
        }
    }

    /// In a child of fork: the association is the parent's.
    pub fn forked(&mut self) {}
}

fn is_peaceful(why: &Down) -> bool {
    matches!(why, Down::Shutdown | Down::Autoclose)
}

fn outgoing(message: &message::Outgoing, unordered: bool) -> Outgoing {
    let limit = message.limit;
    Outgoing {
        stream: message.stream,
        ppid: message.ppid,
        unordered,
        reliability: match message.policy {
            Policy::Never => Reliability::Full,
            Policy::Lifetime => Reliability::Ttl(Duration::from_millis(limit.into())),
            Policy::Retransmissions => Reliability::Rtx(limit),
            Policy::Priority => Reliability::Prio(limit),
        },
        ..Default::default()
    }
}

/// What may change while an association goes on.
pub fn adjust(config: &mut AssocConfig, wanted: &AssocConfig) {
    config.rto = wanted.rto;
    config.init_retransmissions = wanted.init_retransmissions;
    config.association_retransmissions = wanted.association_retransmissions;
    config.path_retransmissions = wanted.path_retransmissions;
    config.potentially_failed = wanted.potentially_failed;
    config.heartbeats = wanted.heartbeats;
    config.heartbeat_interval = wanted.heartbeat_interval;
    config.sack_delay = wanted.sack_delay;
    config.sack_every = wanted.sack_every;
    config.nagle = wanted.nagle;
    config.max_burst = wanted.max_burst;
    config.autoclose = wanted.autoclose;
}

pub fn obey(a: &mut Engine, order: &Order) -> Result<(), i32> {
    let known = |done: bool| done.then_some(()).ok_or(libc::EINVAL);
    match order {
        Order::Primary(host) => known(a.set_primary(*host)),
        Order::StreamValue { stream, value } => known(a.set_stream_value(*stream, *value)),
        Order::ResetOutgoing(streams) => begun(a.change_streams(Ask::Outgoing(streams.clone()))),
        Order::ResetIncoming(streams) => begun(a.change_streams(Ask::Incoming(streams.clone()))),
        Order::ResetAssociation => begun(a.change_streams(Ask::Association)),
        Order::AddStreams { out, inbound } => {
            if *out > 0 {
                begun(a.change_streams(Ask::AddOutgoing(*out)))?;
            }
            if *inbound > 0 {
                begun(a.change_streams(Ask::AddIncoming(*inbound)))?;
            }
            Ok(())
        }
        Order::AddAddress(host) => begun(a.change_addresses(Change::Add(*host))),
        Order::RemoveAddress(host) => begun(a.change_addresses(Change::Delete(*host))),
        Order::PeerPrimary(host) => begun(a.change_addresses(Change::SetPrimary(*host))),
        Order::SetKey { number, secret } => {
            a.set_key(*number, secret);
            Ok(())
        }
        Order::ActivateKey(number) => a.activate_key(*number).map_err(|_| libc::EINVAL),
        Order::RemoveKey(number) => a.remove_key(*number).map_err(|_| libc::EINVAL),
    }
}

/// A request to the peer has begun, or why not.
fn begun(asked: Result<(), ChangeRefused>) -> Result<(), i32> {
    asked.map_err(|refused| match refused {
        ChangeRefused::NotOpen => libc::ENOTCONN,
        ChangeRefused::Unsupported => libc::EOPNOTSUPP,
        ChangeRefused::Streams(_) | ChangeRefused::Addresses(_) => libc::EINVAL,
    })
}

pub fn read_status(a: &Engine) -> Status {
    let (sender, receiver) = (a.sender(), a.receiver());
    let primary = a.primary();
    let by_udp = a.paths().get(primary).is_some_and(|p| p.encap.is_some());
    let mut retransmissions = 0;
    let mut paths = Vec::new();
    for (id, path) in a.paths().iter() {
        retransmissions += path.retransmissions;
        paths.push(Path {
            host: path.addr,
            port: a.peer_port(),
            state: match path.state {
                PathState::Inactive => 0,
                PathState::Active => 1,
                PathState::PotentiallyFailed => 2,
                PathState::Unconfirmed => 3,
            },
            primary: id == primary,
            rto: path.rto.current().as_millis() as u32,
            srtt: path.rto.smoothed().map_or(0, |d| d.as_micros() as u32),
            cwnd: path.window.window() as u32,
            flight: path.flight as u32,
            mtu: path.mtu as u32,
            errors: path.errors,
            encap: path.encap.map_or(0, u32::from),
        });
    }
    let outstanding = sender.outstanding();
    Status {
        state: match a.state() {
            association::State::Closed => State::Closed,
            association::State::CookieWait => State::CookieWait,
            association::State::CookieEchoed => State::CookieEchoed,
            association::State::Established => State::Established,
            association::State::ShutdownPending => State::ShutdownPending,
            association::State::ShutdownSent => State::ShutdownSent,
            association::State::ShutdownReceived => State::ShutdownReceived,
            association::State::ShutdownAckSent => State::ShutdownAckSent,
        },
        by: if by_udp { By::Udp } else { By::Raw },
        ostreams: sender.streams().into(),
        istreams: receiver.streams().into(),
        peer_window: sender.peer_window() as u32,
        unsent: sender.buffered().saturating_sub(outstanding) as u32,
        unacked: outstanding as u32,
        unread: receiver.buffered() as u32,
        retransmissions: retransmissions as u32,
        paths,
        ..Default::default()
    }
}
