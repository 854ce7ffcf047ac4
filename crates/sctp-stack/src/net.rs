//! An association by packets: of the stack, whoever the peer is.

use core::time::Duration;
use std::sync::Arc;

use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_providers::provider::{Arrived, Event, Outcome, Sleep};
use headwater_sctp::association::Association as Engine;
use headwater_tpi::Refusal;

use super::addresses::Addresses;
use super::choice::is_any;
use super::option::chosen::Chosen;
use super::option::message::Incoming;
use super::option::orders::Order;
use super::option::status::Status;
use super::values::Settings;
use super::{Association, Down, Event as Told, Outgoing, Port, Via, Want, errno};

mod data;
mod engine;
mod listener;
pub use engine::{adjust, obey, read_status};
pub use listener::Listener;
use listener::bind;

/// Longest sleep without a look at what other threads have done, in nanoseconds.
const SLICE: u64 = Duration::from_millis(20).as_nanos() as u64;
pub const IN: u32 = (libc::POLLIN | libc::POLLRDNORM) as u32;
pub const OUT: u32 = (libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND) as u32;
const URGENT: u32 = (libc::POLLIN | libc::POLLPRI | libc::POLLRDBAND) as u32;

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
