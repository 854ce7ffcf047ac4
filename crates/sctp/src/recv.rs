//! The receiving half of an association: TSNs, reassembly, order, delivery, SACKs and the window.
//!
//! ```text
//!   chunk -> map (TSN new?) -> reassembly (fragments) -> order (turn in its stream) -> ready -> read
//!             |                        `--- partial delivery: a message's parts, before its end ---^
//!             `-> acks -> SACK
//! ```
//! What is ready is a queue of parts; a whole message is one part. A message that is delivered in parts keeps its place in
//! `reassembly` until its end, and hands on each part as it comes. Unless the user asked for interleaved delivery, what becomes
//! ready meanwhile is held back until that end.

mod acks;
mod deliver;
mod map;
mod order;
mod reassembly;
mod room;
mod skip;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use acks::SackWanted;

use crate::serial::numbers;
use crate::wire::{Data, Forward, PacketBuilder};
use crate::{AssocConfig, Mid, Ssn, Tsn};
use acks::Acks;
use map::TsnMap;
use order::Order;
use reassembly::{Head, Reassembly, Slot};

/// What a chunk or message costs besides its bytes.
pub(crate) const OVERHEAD: usize = 64;
/// About two packets: a window smaller than this is told as none (RFC 9260 6.2, RFC 1122 4.2.3.3).
const SILLY: usize = 2 * 1452;
/// The queue of parts gives its memory back beyond that, once it is empty.
const KEPT_PARTS: usize = 64;
/// Bytes of a SACK without gap blocks and duplicates.
const SACK_HEAD: usize = 16;
/// Gap blocks of a SACK at most, as a packet of ordinary length holds them: each chunk behind many gaps would else be answered by
/// as long a packet as the path takes.
const MOST_GAPS: usize = 356;

#[derive(Clone, Copy, Debug)]
pub struct ReceiveConfig {
    /// Bytes that may wait here, overhead included; the most that the peer is told.
    pub window: usize,
    /// Delivery of a message begins before its end once that much of it is here.
    pub partial_delivery_point: usize,
    /// I-DATA is used (RFC 8260).
    pub interleave: bool,
    /// A SACK for this many packets.
    pub sack_every: u32,
    /// Parts of several messages may be delivered in turn (fragment interleave level 2 of RFC 6458).
    pub interleaved_delivery: bool,
}

/// What became of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placed {
    New,
    Duplicate,
    /// Dropped; the peer will send it again.
    NoRoom,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataError {
    /// The association is to be aborted with this cause.
    NoUserData(Tsn),
    /// An ERROR is to be sent; the chunk itself counts as come.
    BadStream(u16),
    /// The association is to be aborted.
    Violation(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation(pub &'static str);

/// A message, or the part of it that was read. `tsn` is its first fragment's, the same in all parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    pub len: usize,
    /// Of the message.
    pub end: bool,
    /// The peer has given up the rest of a message whose beginning was delivered.
    pub aborted: bool,
    pub stream: u16,
    pub ssn: Ssn,
    pub ppid: u32,
    pub tsn: Tsn,
    pub mid: Mid,
    pub unordered: bool,
}

#[derive(Debug)]
struct Part {
    head: Head,
    data: Vec<u8>,
    taken: usize,
    end: bool,
    aborted: bool,
}

#[derive(Debug)]
pub struct Receiver {
    config: ReceiveConfig,
    streams: u16,
    map: TsnMap,
    acks: Acks,
    pieces: Reassembly,
    order: Order,
    ready: VecDeque<Part>,
    /// Something came to be ready since that was last asked.
    fresh: bool,
    held_back: VecDeque<Part>,
    /// Messages whose delivery has begun before their end.
    delivering: usize,
    /// A message beyond the partial delivery point may be waiting for its turn.
    large_waits: bool,
    /// Bytes of user data in all of the above.
    bytes: usize,
    /// The last TSN of what the peer gave up.
    skipped_to: Option<u64>,
}

impl Receiver {
    /// `initial` is the TSN expected first.
    pub fn new(config: ReceiveConfig, initial: Tsn, streams: u16) -> Receiver {
        Receiver {
            streams,
            map: TsnMap::new(initial),
            acks: Acks::new(config.sack_every, clamp(config.window)),
            pieces: Reassembly::new(config.interleave),
            order: Order::new(config.interleave),
            ready: VecDeque::new(),
            fresh: false,
            held_back: VecDeque::new(),
            delivering: 0,
            large_waits: false,
            bytes: 0,
            skipped_to: None,
            config,
        }
    }

    pub fn on_data(&mut self, data: &Data) -> Result<Placed, DataError> {
        self.acks.data(data.immediate);
        if data.interleaved != self.config.interleave {
            return Err(DataError::Violation("DATA and I-DATA in one association"));
        }
        if data.payload.is_empty() {
            return Err(DataError::NoUserData(data.tsn));
        }
        let tsn = self.map.unwrap(data.tsn);
        if self.map.contains(tsn) {
            self.acks.duplicate(data.tsn);
            return Ok(Placed::Duplicate);
        }
        if !self.map.can_hold(tsn)
            || !(self.make_room(tsn, data.payload.len()) || self.waits_for(tsn, data))
        {
            self.acks.hurry();
            return Ok(Placed::NoRoom);
        }
        self.map.insert(tsn);
        if data.stream >= self.streams {
            return Err(DataError::BadStream(data.stream));
        }
        self.acks.taken(data.payload.len());
        self.place(tsn, data).map_err(DataError::Violation)?;
        Ok(Placed::New)
    }

    pub fn on_forward(&mut self, forward: &Forward) -> Result<(), Violation> {
        if forward.interleaved != self.config.interleave {
            return Err(Violation(
                "a FORWARD-TSN of the kind that was not agreed on",
            ));
        }
        self.skip(forward.cumulative, forward.streams());
        Ok(())
    }

    /// A packet has been handled as a whole.
    #[inline]
    pub fn end_of_packet(&mut self) {
        self.acks.end_of_packet(self.map.has_gaps());
    }

    /// To be asked when something could be sent, so that a batch of packets gets one SACK.
    #[inline]
    pub fn sack_wanted(&self) -> SackWanted {
        self.acks.wanted()
    }

    /// Takes over what may change while the association goes on.
    pub fn follow(&mut self, config: &AssocConfig) {
        self.acks.every = config.sack_every.max(1);
        self.config.partial_delivery_point = config.partial_delivery_point.max(1);
        self.large_waits = true;
        self.config.interleaved_delivery = config.interleaved_delivery;
        self.release_held_back();
    }

    /// Writes a SACK with as many gap blocks and duplicates as there is room for, within reason; not even one without fits: `false`.
    pub fn write_sack(&mut self, packet: &mut PacketBuilder) -> bool {
        let Some(room) = packet.room().checked_sub(SACK_HEAD) else {
            return false;
        };
        let window = self.window();
        let gaps: Vec<(u16, u16)> = self.map.gaps().take(MOST_GAPS.min(room / 4)).collect();
        let duplicates = self.acks.duplicates();
        let duplicates = &duplicates[..duplicates.len().min(room / 4 - gaps.len())];
        packet.sack(self.cumulative(), window, &gaps, duplicates);
        self.acks.told(window);
        true
    }

    #[inline]
    pub fn readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Has something come to be ready since this was last asked?
    pub fn take_fresh(&mut self) -> bool {
        core::mem::take(&mut self.fresh)
    }

    /// What [`Receiver::read`] would begin with.
    pub fn peek(&self) -> Option<Received> {
        self.ready.front().map(|part| self.received(part))
    }

    /// As [`peek`](Receiver::peek), with all that is there of the message; `end`: nothing of it is missing.
    pub fn front(&self) -> Option<Received> {
        let mut front = self.peek()?;
        let same = |part: &&Part| part.head.tsn == front.tsn && part.head.stream == front.stream;
        let parts = self.ready.iter().take_while(same);
        let (mut len, mut last) = (0, None);
        for part in parts {
            len += part.data.len() - part.taken;
            last = Some((part.end, part.aborted));
            if part.end {
                break;
            }
        }
        front.len = len;
        (front.end, front.aborted) = last?;
        Some(front)
    }

    /// Reads from the message in front, or from the rest of it; never beyond its end.
    pub fn read(&mut self, into: &mut [u8]) -> Option<Received> {
        let mut received = self.peek()?;
        let mut len = 0;
        while let Some(front) = self.ready.front_mut() {
            if front.head.tsn != received.tsn || front.head.stream != received.stream {
                break;
            }
            let count = (front.data.len() - front.taken).min(into.len() - len);
            into[len..len + count].copy_from_slice(&front.data[front.taken..front.taken + count]);
            front.taken += count;
            len += count;
            received.end = front.end && front.taken == front.data.len();
            received.aborted = front.aborted && received.end;
            if front.taken < front.data.len() {
                break;
            }
            self.ready.pop_front();
            if received.end {
                break;
            }
        }
        self.bytes -= len;
        received.len = len;
        if self.ready.is_empty() {
            self.drained();
        }
        Some(received)
    }

    /// What the peer may send: what waits here, read or not yet whole, is taken off with its overhead.
    pub fn window(&self) -> u32 {
        match self.room() {
            room if room < self.silly() => 0,
            room => clamp(room),
        }
    }

    pub fn cumulative(&self) -> Tsn {
        Tsn(self.map.cumulative() as u32)
    }

    /// Has everything up to this TSN come?
    pub fn has_all_to(&self, tsn: Tsn) -> bool {
        self.map.unwrap(tsn) <= self.map.cumulative()
    }

    pub fn has_gaps(&self) -> bool {
        self.map.has_gaps()
    }

    pub fn streams(&self) -> u16 {
        self.streams
    }

    /// Bytes of user data that wait here.
    pub fn buffered(&self) -> usize {
        self.bytes
    }

    /// Does the peer believe in so much less room than there is that it should be told? To be asked after reading.
    #[inline]
    pub fn window_update_due(&self) -> bool {
        let (believed, whole) = (self.acks.believed as usize, self.config.window);
        if believed >= whole / 2 {
            return false;
        }
        let gained = (self.window() as usize).saturating_sub(believed);
        gained >= whole / 4 || (believed < self.silly() && gained >= SILLY.min(whole / 2))
    }

    /// These incoming streams begin with number 0 again (RFC 6525); an empty list: all.
    pub fn reset_streams(&mut self, streams: &[u16]) {
        let list = (!streams.is_empty()).then_some(streams);
        self.bytes -= self.order.reset(list);
        if !self.config.interleave {
            // The peer had everything acknowledged: what is behind a gap is of other streams.
            let upto = Slot::of_tsn(self.map.cumulative() + 1);
            self.discard(Slot::of_tsn(0)..=upto, |head| {
                !head.unordered && list.is_none_or(|list| list.contains(&head.stream))
            });
            return;
        }
        match list {
            None => self.discard(Slot::ORDERED, |_| true),
            Some(list) => list.iter().for_each(|stream| {
                self.discard(Slot::of_messages(*stream, false, 0..=u32::MAX), |_| true);
            }),
        }
    }

    /// So many more incoming streams; `false`: there would be too many.
    pub fn add_streams(&mut self, count: u16) -> bool {
        let sum = self.streams.checked_add(count);
        self.streams = sum.unwrap_or(self.streams);
        sum.is_some()
    }

    /// What the peer's next TSN is after it asked for all TSNs to begin anew (RFC 6525 5.2.4): half the space from here.
    pub fn next_tsn_for_reset(&self) -> Tsn {
        self.cumulative().next().plus(1 << 31)
    }

    /// TSNs begin anew with `next`, and all streams with 0; what was not yet whole is lost.
    pub fn restart(&mut self, next: Tsn) {
        self.reset_streams(&[]);
        self.discard(Slot::ALL, |_| true);
        self.map = TsnMap::new(next);
        self.skipped_to = None;
        self.acks.told(self.window());
    }

    /// The whole messages of the association's former life, before the peer began anew, are still to be read: they were
    /// acknowledged.
    pub fn inherit(&mut self, former: Receiver) {
        for part in former.ready.into_iter().filter(|part| part.end) {
            self.bytes += part.data.len() - part.taken;
            self.ready.push_back(part);
        }
    }

    /// What must hold between any two calls.
    pub fn check(&self) {
        if cfg!(debug_assertions) {
            self.map.check();
            self.pieces.check();
            self.order.check();
            let parts = self.ready.iter().chain(&self.held_back);
            let parts: usize = parts.map(|part| part.data.len() - part.taken).sum();
            assert_eq!(self.bytes, parts + self.pieces.bytes() + self.order.bytes());
            assert_eq!(self.delivering, self.pieces.delivering());
            assert!(
                self.held_back.is_empty() || self.delivering > 0,
                "held back for nothing"
            );
            let end_or_data = |part: &Part| part.end || part.taken < part.data.len();
            assert!(
                self.ready.iter().all(end_or_data),
                "a part without anything"
            );
        }
    }

    fn received(&self, part: &Part) -> Received {
        let head = &part.head;
        let (ssn, mid) = numbers(head.number, self.config.interleave);
        Received {
            len: part.data.len() - part.taken,
            end: part.end,
            aborted: part.aborted,
            stream: head.stream,
            ssn,
            ppid: head.ppid,
            tsn: head.tsn,
            mid,
            unordered: head.unordered,
        }
    }
}

fn clamp(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
