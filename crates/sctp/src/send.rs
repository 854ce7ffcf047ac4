//! The sending half of an association: messages in, DATA chunks out, SACKs in.
//!
//! ```text
//!   queue         streams with their messages, and whose turn it is     store        the messages themselves
//!   fill          chunks into packets: fragments, windows, Nagle        outstanding  chunks that wait for their SACK
//!   ack           SACKs: what arrived, what is missing                  loss         T3, paths that go
//!   partial       messages given up, FORWARD-TSN                        reconfig     streams held, reset, added
//! ```
//!
//! A message is cut when it is sent: one that fits a packet never is, a longer one fills the room that a packet has left. A chunk keeps
//! its TSN and its size for good; what it carries stays in its message's buffer until all of the message is acknowledged.

mod ack;
mod check;
mod fill;
mod loss;
mod outstanding;
mod partial;
mod queue;
mod reconfig;
mod store;
#[cfg(test)]
mod tests;

use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{AssocConfig, PathId, SchedulerKind, Time, Tsn};
use outstanding::Outstanding;
pub use partial::ForwardPlan;
use queue::{Open, Queues};
use store::{NEVER, NONE, Part, Slot, Store};

/// How long a message is worth sending (RFC 3758, RFC 7496).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reliability {
    #[default]
    Full,
    /// No longer than this after it was handed over.
    Ttl(Duration),
    /// No more retransmissions than these.
    Rtx(u32),
    /// Until its room is needed by a message of a lower number, or one of another kind.
    Prio(u32),
}

/// The kinds of [`Reliability`] but the full one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Policy {
    Ttl,
    Rtx,
    Prio,
}

impl Reliability {
    pub fn policy(self) -> Option<Policy> {
        match self {
            Reliability::Full => None,
            Reliability::Ttl(_) => Some(Policy::Ttl),
            Reliability::Rtx(_) => Some(Policy::Rtx),
            Reliability::Prio(_) => Some(Policy::Prio),
        }
    }
}

/// What comes with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outgoing {
    pub stream: u16,
    pub ppid: u32,
    pub unordered: bool,
    /// The peer is to acknowledge it at once (RFC 7053).
    pub sack_now: bool,
    pub reliability: Reliability,
    /// The user's own; comes back when the message fails.
    pub context: u32,
    /// The peer's address that it is to go to, as long as that is well; `None`: as the association has it.
    pub to: Option<IpAddr>,
    /// The shared key that its packets are signed with; `None`: the active one.
    pub key: Option<u16>,
}

#[derive(Clone, Debug, Default)]
pub struct SendConfig {
    pub nagle: bool,
    /// Messages that wait are joined: see [`AssocConfig::joins`](crate::config::AssocConfig::joins).
    pub joins: bool,
    /// Packets that may leave at once beyond what the last SACK acknowledged; 0: any number.
    pub max_burst: u32,
    /// I-DATA instead of DATA.
    pub interleave: bool,
    /// Messages may be given up after a part of them was sent.
    pub partial_reliability: bool,
    /// The most bytes queued and unacknowledged.
    pub buffer: usize,
    pub scheduler: SchedulerKind,
}

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// Not now: [`Event::Writable`](crate::event::Event::Writable) will say when, and [`Sender::room`] tells.
    NoRoom,
    /// There is no such stream.
    BadStream,
    /// It is shut down ([`Sender::close`]), or over.
    Closed,
    /// Longer than the buffer, or empty: neither can be sent.
    TooBig,
}

/// The peer acknowledges what was never sent: a violation of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackError;

/// What a SACK brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Acked {
    /// The cumulative acknowledgement is further than before.
    pub advanced: bool,
    /// Bytes acknowledged for the first time.
    pub bytes: usize,
    /// A bit for each path on which something arrived.
    pub paths: u64,
    /// Nothing is unsent or unacknowledged.
    pub all: bool,
    /// A round trip to be told to the path's RTO.
    pub rtt: Option<(PathId, Duration)>,
}

/// A message, or a part of one, that was given up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    pub message: Outgoing,
    pub data: Vec<u8>,
    /// Some of it was sent: it may have arrived.
    pub sent: bool,
}

/// Chunks of data that left.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    pub ordered: u64,
    pub unordered: u64,
    /// Beside these.
    pub again: u64,
}

/// Messages that were given up.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct GivenUp {
    /// Before anything of them was sent, and after.
    pub unsent: u64,
    pub sent: u64,
}

/// Until a packet has left.
const LIKELY_CHUNK: usize = 1200;

/// TSNs beyond the cumulative acknowledgement: gap blocks have 16 bits.
const MOST_OUTSTANDING: usize = 1 << 15;
/// A peer that has taken back more chunks than these, beyond as many as it has acknowledged for good, is not believed.
const MOST_TAKEN_BACK: u64 = 2 * MOST_OUTSTANDING as u64;

#[derive(Debug)]
pub struct Sender {
    config: SendConfig,
    store: Store,
    queues: Queues,
    out: Outstanding,
    /// The peer's window as its last SACK told it: what is in flight counts against it.
    window: usize,
    /// The widest that it ever was.
    widest: usize,
    /// Bytes handed over and not cumulatively acknowledged.
    buffered: usize,
    orders: u64,
    closed: bool,
    /// TSNs have begun anew.
    renamed: bool,
    /// Fast Recovery ends when everything before this place is acknowledged.
    recovery: Option<u64>,
    /// A packet of fast retransmissions is due, whatever the congestion window.
    fast: bool,
    /// The chunk that was sent into a window too small for it.
    probe: Option<u64>,
    /// Bytes of each packet that are not DATA chunks' (AUTH).
    overhead: usize,
    /// Bytes of a message in one chunk at most.
    most_fragment: usize,
    /// What a chunk took that had the last packet for itself.
    full_chunk: usize,
    /// Some message wants another path or key than usual: then that is looked at.
    has_preferences: bool,
    given_up: BTreeMap<(u16, Policy), GivenUp>,
    counts: Counts,
    /// Whole packets that had no room for a message that should have fitted.
    ill_fitting: u32,
    deadlines: BTreeSet<(Time, Slot)>,
    /// Messages of limited worth: (priority, order, slot).
    priorities: BTreeSet<(u32, u64, Slot)>,
    failed: VecDeque<Failed>,
    failed_bytes: usize,
    forward: partial::Forwarding,
    gaps: Vec<(u64, u64)>,
    taken_back: u64,
    missing: Vec<u64>,
}

impl Sender {
    pub fn new(config: SendConfig, initial: Tsn, streams: u16, peer_window: u32) -> Sender {
        let out = Outstanding::new(initial);
        Sender {
            queues: Queues::new(streams, config.scheduler, config.interleave),
            forward: partial::Forwarding::new(out.first()),
            config,
            store: Store::new(),
            out,
            window: peer_window as usize,
            widest: peer_window as usize,
            buffered: 0,
            orders: 0,
            closed: false,
            renamed: false,
            recovery: None,
            fast: false,
            probe: None,
            overhead: 0,
            most_fragment: usize::MAX,
            full_chunk: LIKELY_CHUNK,
            has_preferences: false,
            given_up: BTreeMap::new(),
            counts: Counts::default(),
            ill_fitting: 0,
            deadlines: BTreeSet::new(),
            priorities: BTreeSet::new(),
            failed: VecDeque::new(),
            failed_bytes: 0,
            gaps: Vec::new(),
            taken_back: 0,
            missing: Vec::new(),
        }
    }

    /// What the handshake brought, for a sender that was made before it. Messages for streams that there are not now fail.
    pub fn open(&mut self, peer_window: u32, streams: u16, interleave: bool, partial: bool) {
        debug_assert!(self.out.is_empty(), "nothing can have been sent");
        self.window = peer_window as usize;
        self.widest = self.window;
        self.config.interleave = interleave;
        self.config.partial_reliability = partial;
        self.queues.set_interleave(interleave);
        for stream in streams..self.streams() {
            self.fail_queued(stream);
            self.queues.release(&mut self.store, stream);
            for unordered in [false, true] {
                self.queues.open.remove(&(stream, unordered));
            }
        }
        self.queues.set_streams(streams);
    }

    /// Takes a message, or with `more` the next part of one, which goes on with the stream's next of its kind, ordered or not; whole
    /// or not at all. Parts may leave before the message's end is known, and then others of the stream wait for that. Of a message's parts the first tells what it is.
    pub fn enqueue(
        &mut self,
        now: Time,
        about: &Outgoing,
        data: &[u8],
        more: bool,
    ) -> Result<(), SendError> {
        if self.closed {
            return Err(SendError::Closed);
        }
        if usize::from(about.stream) >= self.queues.streams() {
            return Err(SendError::BadStream);
        }
        if data.is_empty() || data.len() > self.config.buffer {
            return Err(SendError::TooBig);
        }
        if self.buffered + data.len() > self.config.buffer {
            self.make_room(about, data.len())?;
        }
        let data = match self.config.joins && !more {
            true => self.join(about, data),
            false => data,
        };
        if data.is_empty() {
            return Ok(());
        }
        let key = (about.stream, about.unordered);
        let open = match (self.queues.open.is_empty(), more) {
            (true, _) => None,
            (false, true) => self.queues.open.get(&key).copied(),
            (false, false) => self.queues.open.remove(&key),
        };
        let order = self.orders;
        self.orders += 1;
        self.has_preferences |= about.to.is_some() || about.key.is_some();
        let begin = open.is_none();
        let open = open.unwrap_or_else(|| Open {
            about: *about,
            message: order,
            deadline: match about.reliability {
                Reliability::Ttl(lifetime) => now + lifetime,
                _ => NEVER,
            },
            discarding: false,
            last: NONE,
            held: NONE,
        });
        if open.discarding {
            self.report_failed(Failed {
                message: open.about,
                data: data.to_vec(),
                sent: false,
            });
            return Ok(());
        }
        let part = Part {
            data: self.store.buffer(data),
            about: open.about,
            deadline: open.deadline,
            order,
            message: open.message,
            previous: NONE,
            next: NONE,
            earlier: open.last,
            later: NONE,
            sent: 0,
            ticket: 0,
            chunks: 0,
            last: 0,
            number: 0,
            begin,
            end: !more,
            queued: false,
            held: false,
            abandoned: false,
        };
        let slot = self.store.add(part);
        if open.last != NONE {
            self.store[open.last].later = slot;
        }
        if more {
            self.queues.open.insert(key, Open { last: slot, ..open });
        }
        self.buffered += data.len();
        if open.deadline != NEVER {
            self.deadlines.insert((open.deadline, slot));
        }
        if let Reliability::Prio(priority) = open.about.reliability {
            self.priorities.insert((priority, order, slot));
        }
        self.queues
            .push(&mut self.store, about.stream, slot, open.held);
        if !begin && !more {
            self.queues.go_on(&mut self.store, about.stream);
        }
        Ok(())
    }

    /// Appends as much of a message to the one before it as makes that a full chunk; the rest.
    fn join<'d>(&mut self, about: &Outgoing, data: &'d [u8]) -> &'d [u8] {
        let slot = self.queues.last(about.stream);
        if slot == NONE {
            return data;
        }
        let most = self.full_chunk.min(self.most_fragment);
        let part = &mut self.store[slot];
        let whole = part.begin && part.end && part.sent == 0;
        if !whole || part.about != *about || part.about.reliability != Reliability::Full {
            return data;
        }
        let n = most.saturating_sub(part.data.len()).min(data.len());
        let (joined, rest) = data.split_at(n);
        part.data.extend_from_slice(joined);
        self.queues.bytes += n;
        self.buffered += n;
        rest
    }

    /// The full buffer takes `len` more bytes all the same, or gives up messages of less worth for them.
    fn make_room(&mut self, about: &Outgoing, len: usize) -> Result<(), SendError> {
        let missing = self.buffered + len - self.config.buffer;
        if self.queues.is_locked_by(about.stream, about.unordered) {
            // Nothing else can be sent before this message's end, so the others must not keep it out.
            let own = self.queues.ready(&self.store, about.stream);
            let own: usize = own.iter().map(|slot| self.store[*slot].unsent()).sum();
            if own + self.out.flight + len <= self.config.buffer {
                return Ok(());
            }
        }
        let least = match about.reliability {
            Reliability::Prio(priority) => priority.saturating_add(1),
            _ => 0,
        };
        let mut victims = Vec::new();
        let mut freed = 0;
        for (_, _, slot) in self.priorities.range((least, 0, 0)..).rev() {
            if freed >= missing {
                break;
            }
            if self.may_abandon(*slot) {
                freed += self.store[*slot].data.len();
                victims.push(*slot);
            }
        }
        if freed < missing {
            return Err(SendError::NoRoom);
        }
        for slot in victims {
            self.abandon(slot);
        }
        match self.buffered + len > self.config.buffer {
            true => Err(SendError::NoRoom),
            false => Ok(()),
        }
    }

    /// Nothing more is taken; what was taken is sent without waiting for company.
    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Takes over what may change while the association goes on, but for the scheduler.
    pub fn follow(&mut self, config: &AssocConfig) {
        self.config.nagle = config.nagle;
        self.config.joins = config.joins;
        self.config.max_burst = config.max_burst;
        self.config.buffer = config.send_buffer;
        self.most_fragment = config.longest_fragment();
    }

    pub fn set_scheduler(&mut self, kind: SchedulerKind) {
        self.queues.set_scheduler(&mut self.store, kind);
    }

    /// The stream's priority or weight; whether there is such a stream.
    pub fn set_stream_value(&mut self, stream: u16, value: u16) -> bool {
        let known = usize::from(stream) < self.queues.streams();
        if known {
            self.queues.set_value(stream, value);
        }
        known
    }

    /// Each packet with DATA has so many bytes of other chunks before it (AUTH): messages that don't fit beside them are cut.
    pub fn set_overhead(&mut self, bytes: usize) {
        self.overhead = bytes;
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Messages given up, of one stream or all, by one policy or all.
    pub fn abandoned(&self, stream: Option<u16>, policy: Option<Policy>) -> GivenUp {
        let counts = self.given_up.iter().filter(|((of, by), _)| {
            stream.is_none_or(|stream| stream == *of) && policy.is_none_or(|policy| policy == *by)
        });
        counts.fold(GivenUp::default(), |sum, (_, one)| GivenUp {
            unsent: sum.unsent + one.unsent,
            sent: sum.sent + one.sent,
        })
    }

    /// Bytes queued or unacknowledged.
    pub fn buffered(&self) -> usize {
        self.buffered
    }

    pub fn room(&self) -> usize {
        self.config.buffer.saturating_sub(self.buffered)
    }

    /// Bytes that were never sent.
    pub fn unsent(&self) -> usize {
        self.queues.bytes + self.queues.held_bytes
    }

    /// Nothing is unsent, nothing unacknowledged.
    pub fn is_idle(&self) -> bool {
        self.out.is_empty() && self.unsent() == 0
    }

    /// What is left can never be sent: it waits for the end of a message that will not come any more.
    pub fn is_stuck(&self) -> bool {
        self.closed
            && self.out.is_empty()
            && self.unsent() > 0
            && self.queues.turn().is_none()
            && self.queues.waits_for_an_end()
    }

    /// Bytes in flight.
    pub fn outstanding(&self) -> usize {
        self.out.flight
    }

    /// What the peer's last SACK leaves for new data.
    pub fn peer_window(&self) -> usize {
        self.window.saturating_sub(self.out.flight)
    }

    pub fn next_tsn(&self) -> Tsn {
        Tsn(self.out.next() as u32)
    }

    pub fn streams(&self) -> u16 {
        self.queues.streams() as u16
    }

    /// A message that was given up.
    pub fn failed(&mut self) -> Option<Failed> {
        let failed = self.failed.pop_front()?;
        self.failed_bytes -= failed.data.len();
        Some(failed)
    }

    /// Of messages that failed and that nobody asks for, the oldest are forgotten.
    fn report_failed(&mut self, failed: Failed) {
        self.failed_bytes += failed.data.len();
        self.failed.push_back(failed);
        while self.failed_bytes > 2 * self.config.buffer {
            self.failed();
        }
    }

    /// Gives up everything: the association is over. The paths' flights are the caller's to clear.
    pub fn fail_all(&mut self) {
        let outstanding: Vec<Slot> = self.out.iter().map(|(_, chunk)| chunk.slot).collect();
        for slot in outstanding {
            self.let_go(slot);
        }
        self.out.clear();
        let streams = self.streams();
        (0..streams).for_each(|stream| self.fail_queued(stream));
        self.queues = Queues::new(streams, self.queues.kind(), self.config.interleave);
        self.buffered = 0;
        self.recovery = None;
        self.fast = false;
        self.probe = None;
        self.forward = partial::Forwarding::new(self.out.first());
    }

    fn fail_queued(&mut self, stream: u16) {
        for slot in self.queues.queued(&self.store, stream) {
            self.queues.unlink(&mut self.store, slot);
            self.fail(slot);
        }
    }

    /// Gives back the memory that is kept for the next messages; for an association that is idle.
    pub fn trim(&mut self) {
        self.store.trim();
        if self.out.is_empty() {
            self.out.trim();
        }
    }

    /// Forgets a chunk of a message that is given up as a whole.
    fn let_go(&mut self, slot: Slot) {
        self.store[slot].chunks -= 1;
        if self.store[slot].chunks == 0 && !self.store[slot].queued {
            self.fail(slot);
        }
    }

    /// Reports a part and forgets it. It is not queued any more, and no chunk of it is outstanding.
    fn fail(&mut self, slot: Slot) {
        self.buffered -= self.store[slot].unsent();
        self.report(slot);
        self.forget(slot);
    }

    /// Tells the user that a part failed, once.
    fn report(&mut self, slot: Slot) {
        let part = &mut self.store[slot];
        if !part.abandoned {
            part.abandoned = true;
            let data = core::mem::take(&mut part.data);
            let failed = Failed {
                message: part.about,
                data,
                sent: part.sent > 0,
            };
            self.report_failed(failed);
            self.unlist(slot);
        }
    }

    /// The slot is free.
    #[inline]
    fn forget(&mut self, slot: Slot) {
        self.unlist(slot);
        let part = &self.store[slot];
        let (earlier, later, is_end) = (part.earlier, part.later, part.end);
        let key = (part.about.stream, part.about.unordered);
        if earlier != NONE {
            self.store[earlier].later = later;
        }
        if later != NONE {
            self.store[later].earlier = earlier;
        } else if !is_end {
            let open = self.queues.open.get_mut(&key);
            if let Some(open) = open.filter(|open| open.last == slot) {
                open.last = earlier;
            }
        }
        self.store.remove(slot);
    }

    /// It has no deadline and no priority any more.
    #[inline]
    fn unlist(&mut self, slot: Slot) {
        let part = &self.store[slot];
        if part.deadline != NEVER {
            self.deadlines.remove(&(part.deadline, slot));
        }
        if let Reliability::Prio(priority) = part.about.reliability {
            self.priorities.remove(&(priority, part.order, slot));
        }
    }
}
