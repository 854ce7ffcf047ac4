//! A listening endpoint: requests by shared memory and associations that came by packets, told in one row.

use std::collections::VecDeque;

use headwater_host::sys;
use headwater_providers::loopback::listening::Listening;
use headwater_providers::loopback::request::Request;
use headwater_providers::loopback::{Owned, Space};
use headwater_providers::provider::{Arrived, Event, Outcome};
use headwater_tpi::Refusal;
use headwater_tpi::error::{TADDRBUSY, TBADSEQ};

use super::by_memory::greeting::asked;
use super::connection::{self, Connection};
use super::option::chosen::Chosen;
use super::{Addresses, Port, choice};

/// Associations that wait in the stack, beside those that the user may be told of.
const BACKLOG: usize = 16;
/// Numbers of those that came by packets begin here; the others' are lower.
const BY_PACKETS: i32 = 1 << 30;

/// A peer that waits for an answer. Dropped, it is refused.
pub enum Asking {
    ByMemory(Request),
    ByPackets(Box<Connection>),
}

impl Asking {
    pub fn refuse(self) {
        match self {
            Asking::ByMemory(request) => drop(request),
            Asking::ByPackets(connection) => connection.disconnect(),
        }
    }
}

/// One that the user answers, with the listener's settings.
pub struct Accepted {
    pub asking: Asking,
    pub chosen: Chosen,
}

pub struct Waiting {
    by_memory: Listening,
    by_packets: Option<Port>,
    at: Addresses,
    qlen: usize,
    /// By packets: told to the user, who has not answered; of those, gone since.
    outstanding: Vec<(i32, Box<Connection>)>,
    lost: VecDeque<Arrived>,
    arrived: VecDeque<Box<Connection>>,
    /// Why another that has come by packets could not be taken: EMFILE, ENFILE, ENOMEM.
    lacking: Option<sys::Errno>,
    next: i32,
}

impl Waiting {
    pub fn new(at: &Addresses, qlen: u32, names: &[Owned], chosen: &Chosen) -> Outcome<Waiting> {
        let by_memory = Listening::new(Space::Sctp, qlen, names).map_err(Refusal::system)?;
        Waiting::with(by_memory, at, qlen, chosen)
    }

    /// After exec: `set` watches the names. What came by packets was the other image's.
    pub fn restore(set: Owned, at: &Addresses, qlen: u32, chosen: &Chosen) -> Outcome<Waiting> {
        let by_memory = Listening::with_set(set, Space::Sctp, qlen);
        Waiting::with(by_memory, at, qlen, chosen)
    }

    fn with(by_memory: Listening, at: &Addresses, qlen: u32, chosen: &Chosen) -> Outcome<Waiting> {
        let rules = choice::rules();
        let mut by_packets = None;
        if rules.any(choice::Link::allows_packets) {
            by_packets = match listen(at, qlen, chosen) {
                Ok(port) => Some(port),
                Err(busy @ Refusal { tli: TADDRBUSY, .. }) => return Err(busy),
                // Without a network this host is all there is.
                Err(_) if rules.any(choice::Link::allows_shm) => None,
                Err(refusal) => return Err(refusal),
            };
        }
        if let Some(port) = &by_packets {
            let watched = port.descriptor().and_then(|fd| by_memory.watch_too(fd));
            watched.map_err(Refusal::system)?;
        }
        Ok(Waiting {
            by_memory,
            by_packets,
            at: at.clone(),
            qlen: qlen as usize,
            outstanding: Vec::new(),
            lost: VecDeque::new(),
            arrived: VecDeque::new(),
            lacking: None,
            next: BY_PACKETS,
        })
    }

    pub fn descriptor(&self) -> i32 {
        self.by_memory.descriptor()
    }

    pub fn qlen(&self) -> usize {
        self.qlen
    }

    pub fn by_packets(&self) -> Option<&Port> {
        self.by_packets.as_ref()
    }

    /// Something is known that the descriptor may not tell of.
    pub fn has_news(&self) -> bool {
        self.by_memory.has_news()
            || !self.lost.is_empty()
            || !self.arrived.is_empty() && self.may_tell()
    }

    fn may_tell(&self) -> bool {
        self.outstanding.len() + self.by_memory.outstanding() < self.qlen
    }

    pub fn event(&mut self, names: &[Owned]) -> Option<Event> {
        self.gather();
        if !self.lost.is_empty() {
            return Some(Event::Disconnect);
        }
        match self.by_memory.event(names) {
            Some(Event::Listen) if !self.may_tell() => None,
            None if !self.arrived.is_empty() && self.may_tell() => Some(Event::Listen),
            event => event,
        }
    }

    fn gather(&mut self) {
        self.lacking = None;
        while let Some(port) = &self.by_packets {
            match port.accept_with_descriptor() {
                Ok(association) => {
                    let arrived = Connection::arrived(association, &self.at).ok();
                    self.arrived.extend(arrived.map(Box::new));
                }
                // In a child of fork packets are the parent's business.
                Err(libc::EAGAIN | libc::EBADF) => break,
                Err(errno) => {
                    self.lacking = Some(errno);
                    break;
                }
            }
        }
        self.arrived
            .retain_mut(|connection| !connection.is_withdrawn());
        let is_withdrawn = |told: &mut (i32, Box<Connection>)| told.1.is_withdrawn();
        let gone = self.outstanding.extract_if(.., is_withdrawn).next();
        if let Some((seq, _)) = gone {
            self.lose(seq);
        }
    }

    pub fn lacks(&self) -> Option<sys::Errno> {
        self.by_memory.lacks().or(self.lacking)
    }

    pub fn take(&mut self, names: &[Owned]) -> Option<Arrived> {
        loop {
            match self.event(names)? {
                Event::Disconnect if !self.lost.is_empty() => return self.lost.pop_front(),
                Event::Listen if self.by_memory.event(names).is_none() => return self.tell(),
                _ => {}
            }
            match self.by_memory.take(names)? {
                Arrived::Request {
                    seq, from, opts, ..
                } => match asked(&from, &opts) {
                    Some((from, _)) => return Some(Arrived::request(seq, from.to_vec())),
                    // Nobody who keeps to the rules.
                    None => drop(self.by_memory.take_out(seq, names)),
                },
                other => return Some(other),
            }
        }
    }

    fn tell(&mut self) -> Option<Arrived> {
        let connection = self.arrived.pop_front()?;
        let seq = self.next;
        self.next = self.next.checked_add(1).unwrap_or(BY_PACKETS);
        let from = connection.remote().to_vec();
        self.outstanding.push((seq, connection));
        Some(Arrived::request(seq, from))
    }

    /// TBADSEQ.
    pub fn take_out(&mut self, seq: i32, names: &[Owned]) -> Outcome<Asking> {
        if seq < BY_PACKETS {
            return self.by_memory.take_out(seq, names).map(Asking::ByMemory);
        }
        let at = self.outstanding.iter().position(|(known, _)| *known == seq);
        let at = at.ok_or(Refusal::new(TBADSEQ))?;
        Ok(Asking::ByPackets(self.outstanding.remove(at).1))
    }

    pub fn put_back(&mut self, seq: i32, asking: Asking, names: &[Owned]) {
        match asking {
            Asking::ByMemory(request) => self.by_memory.put_back(seq, request, names),
            Asking::ByPackets(connection) => {
                let at = self.outstanding.partition_point(|(other, _)| *other < seq);
                self.outstanding.insert(at, (seq, connection));
            }
        }
    }

    /// A request was used up without becoming an association, or is gone.
    pub fn lose(&mut self, seq: i32) {
        if seq < BY_PACKETS {
            return self.by_memory.lose(seq);
        }
        self.lost.push_back(Arrived::ended(libc::ECONNRESET, seq));
    }

    pub fn forking(&mut self) {
        self.by_memory.forking();
    }

    pub fn forked(&mut self) {
        self.by_memory.forked();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let left = self.outstanding.drain(..).map(|(_, connection)| connection);
        left.chain(self.arrived.drain(..))
            .for_each(|connection| connection.disconnect());
    }
}

/// TADDRBUSY, TNOADDR; TSYSERR where there is no network for us.
fn listen(at: &Addresses, qlen: u32, chosen: &Chosen) -> Outcome<Port> {
    let mut port = connection::bind(at, chosen)?;
    port.listen(qlen as usize + BACKLOG)
        .and_then(|()| port.descriptor())
        .map_err(Refusal::system)?;
    Ok(port)
}
