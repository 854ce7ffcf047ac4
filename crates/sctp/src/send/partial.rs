//! Messages that are given up, and how the peer is told (RFC 3758, RFC 7496, RFC 8260 section 2.3).
//!
//! A chunk of such a message stays in its path's flight until it is acknowledged or lost; it is only not sent again. Where a message
//! ends before its last fragment was sent, a TSN that is never sent stands for the rest, so that a FORWARD-TSN can always tell.

use core::iter;
use core::time::Duration;
use std::collections::BTreeMap;

use super::outstanding::{Chunk, State};
use super::store::{NONE, Slot};
use super::{Reliability, Sender};
use crate::serial::numbers;
use crate::wire::{PacketBuilder, Skipped};
use crate::{PathId, Paths, Time, Timer, Timers, Tsn};

/// What a FORWARD-TSN or I-FORWARD-TSN says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardPlan {
    pub cumulative: Tsn,
    pub skipped: Vec<Skipped>,
}

#[derive(Debug, Default)]
pub(super) struct Forwarding {
    /// Advanced.Peer.Ack.Point: everything before this place is acknowledged or given up.
    pub advanced: u64,
    /// What it was when it was told last; how far that went; when, and on which path.
    told: u64,
    told_to: u64,
    at: Time,
    pub path: Option<PathId>,
    /// It is to be told again.
    again: bool,
    /// By stream, and unordered or not, what was given up last before the point: its number, and its place.
    skipped: BTreeMap<(u16, bool), (u32, u64)>,
}

impl Forwarding {
    pub fn new(first: u64) -> Forwarding {
        Forwarding {
            advanced: first,
            told: first,
            told_to: first,
            ..Forwarding::default()
        }
    }
}

impl Sender {
    /// When the first message of limited lifetime expires.
    pub fn next_expiry(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Gives up the messages whose lifetime is over.
    pub fn expire(&mut self, now: Time) {
        while let Some((at, slot)) = self.deadlines.first().copied()
            && at <= now
        {
            self.deadlines.remove(&(at, slot));
            if self.may_abandon(slot) {
                self.abandon(slot);
            }
        }
    }

    /// Should a FORWARD-TSN be sent?
    pub fn forward_due(&self) -> bool {
        let forward = &self.forward;
        forward.advanced > self.out.first() && (forward.advanced != forward.told || forward.again)
    }

    /// What it would say, naming at most so many streams.
    pub fn forward_plan(&self, most: usize) -> Option<ForwardPlan> {
        let first = self.out.first();
        if self.forward.advanced <= first || most == 0 {
            return None;
        }
        let waits = |skipped: &(_, &(u32, u64))| skipped.1.1 >= first;
        let streams = self.forward.skipped.iter().filter(waits);
        let mut streams: BTreeMap<_, u32> = streams.map(|(key, last)| (*key, last.0)).collect();
        let mut end = self.forward.advanced;
        if streams.len() > most {
            (streams, end) = self.first_skipped(most);
        }
        let skipped = |((stream, unordered), number)| {
            let (ssn, mid) = numbers(number, self.config.interleave);
            Skipped {
                stream,
                unordered,
                ssn,
                mid,
            }
        };
        Some(ForwardPlan {
            cumulative: Tsn(end as u32).previous(),
            skipped: streams.into_iter().map(skipped).collect(),
        })
    }

    /// What was given up of so many streams, and the place where another one begins.
    fn first_skipped(&self, most: usize) -> (BTreeMap<(u16, bool), u32>, u64) {
        let mut streams = BTreeMap::new();
        let mut end = self.out.first();
        while end < self.forward.advanced {
            let (key, number) = self.skipped_at(end);
            if let Some(key) = key {
                if streams.len() == most && !streams.contains_key(&key) {
                    break;
                }
                streams.insert(key, number);
            }
            end += 1;
        }
        (streams, end)
    }

    /// What a FORWARD-TSN that passes over this place has to name. Numbers of a stream come in order, so the last one is the greatest.
    fn skipped_at(&self, place: u64) -> (Option<(u16, bool)>, u32) {
        let part = &self.store[self.out.get(place).slot];
        let named = self.config.interleave || !part.about.unordered;
        let key = named.then_some((part.about.stream, part.about.unordered));
        (key, part.number)
    }

    /// Puts the FORWARD-TSN into the packet if there is room; T3 sees to it that it arrives.
    pub fn write_forward(
        &mut self,
        now: Time,
        id: PathId,
        paths: &Paths,
        timers: &mut Timers,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let first = self.out.first();
        self.forward.skipped.retain(|_, last| last.1 >= first);
        let each = if self.config.interleave { 8 } else { 4 };
        let most = packet.room().saturating_sub(8) / each;
        let Some(plan) = self.forward_plan(most) else {
            return false;
        };
        packet.forward(plan.cumulative, self.config.interleave, &plan.skipped);
        self.forward.told = self.forward.advanced;
        self.forward.told_to = self.out.place(plan.cumulative) + 1;
        self.forward.at = now;
        self.forward.path = Some(id);
        self.forward.again = false;
        if let Some(path) = paths.get(id) {
            timers.set_if_stopped(Timer::T3(id), now + path.rto.current());
        }
        true
    }

    /// A FORWARD-TSN was sent on this path and is not answered.
    pub(super) fn forward_pending_on(&self, id: PathId) -> bool {
        self.forward.path == Some(id) && self.forward.advanced > self.out.first()
    }

    /// T3 has expired.
    pub(super) fn forward_timed_out(&mut self, id: PathId) {
        if self.forward.path == Some(id) {
            self.forward.path = None;
            self.forward.again = true;
        }
    }

    /// Moves Advanced.Peer.Ack.Point (rules C1 and C2).
    pub(super) fn advance(&mut self) {
        let mut at = self.forward.advanced.max(self.out.first());
        while at < self.out.next() {
            let chunk = self.out.get(at);
            if !chunk.abandoned || chunk.state == State::Acked {
                break;
            }
            if let (Some(key), number) = self.skipped_at(at) {
                self.forward.skipped.insert(key, (number, at));
            }
            at += 1;
        }
        self.forward.advanced = at;
        if at == self.out.first() && !self.forward.skipped.is_empty() {
            self.forward.skipped = BTreeMap::new();
        }
    }

    /// A SACK has come that does not answer all of the FORWARD-TSN: it is repeated, but not more than once in a round trip.
    pub(super) fn forward_after_sack(&mut self, now: Time, paths: &Paths) {
        let first = self.out.first();
        if self.forward.advanced <= first {
            self.forward.path = None;
            self.forward.again = false;
            return;
        }
        let path = self.forward.path.and_then(|id| paths.get(id));
        let pause = path.map_or(Duration::ZERO, |p| {
            p.rto.smoothed().unwrap_or(p.rto.current())
        });
        if self.forward.told_to <= first || now.since(self.forward.at) >= pause {
            self.forward.again = true;
        }
    }

    /// Has the message of this chunk, which is lost, had its chances?
    pub(super) fn gives_up(&self, chunk: &Chunk, now: Time) -> bool {
        let part = &self.store[chunk.slot];
        self.config.partial_reliability
            && match part.about.reliability {
                Reliability::Rtx(most) => u32::from(chunk.sends) > most,
                Reliability::Ttl(_) => part.deadline <= now,
                Reliability::Full | Reliability::Prio(_) => false,
            }
    }

    pub(super) fn may_abandon(&self, slot: Slot) -> bool {
        self.config.partial_reliability || !self.begun(slot)
    }

    /// Was something of the part's message sent?
    fn begun(&self, slot: Slot) -> bool {
        let part = &self.store[slot];
        if part.sent > 0 || !part.queued {
            return true;
        }
        if part.begin || part.held {
            return false;
        }
        let head = &self.store[self.queues.head(part.about.stream)];
        head.message == part.message && (!head.begin || head.sent > 0)
    }

    /// Gives up the message that the part belongs to.
    pub(super) fn abandon(&mut self, slot: Slot) {
        if self.store[slot].abandoned {
            return;
        }
        let begun = self.begun(slot);
        let part = &self.store[slot];
        if let Some(policy) = part.about.reliability.policy() {
            let key = (part.about.stream, policy);
            let counts = self.given_up.entry(key).or_default();
            counts.unsent += u64::from(!begun);
            counts.sent += u64::from(begun);
        }
        let (stream, message, unordered) = (part.about.stream, part.message, part.about.unordered);
        let there = |slot: Slot| (slot != NONE).then_some(slot);
        let first = iter::successors(Some(slot), |at| there(self.store[*at].earlier)).last();
        let parts: Vec<Slot> = iter::successors(first, |at| there(self.store[*at].later)).collect();
        let queued = parts.iter().copied().filter(|s| self.store[*s].queued);
        let unsent: Vec<Slot> = queued.collect();
        let mut goes_on = !unsent.is_empty();
        if let Some(open) = self.queues.open.get_mut(&(stream, unordered))
            && open.message == message
        {
            open.discarding = true;
            open.held = NONE;
            goes_on = true;
        }
        if begun && goes_on {
            let number = self.queues.break_off(stream);
            let part = &mut self.store[slot];
            part.chunks += 1;
            part.number = number;
        }
        for part in parts {
            self.abandon_chunks(part);
        }
        for slot in unsent {
            self.buffered -= self.store[slot].unsent();
            self.queues.unlink(&mut self.store, slot);
            self.report(slot);
            if self.store[slot].chunks == 0 {
                self.forget(slot);
            }
        }
        if begun && goes_on {
            self.report(slot);
            self.out.push(Chunk::missing_end(slot));
        }
        self.queues.go_on(&mut self.store, stream);
        self.advance();
    }

    /// From the part's last chunk back to the first one that is outstanding.
    fn abandon_chunks(&mut self, slot: Slot) {
        let mut place = self.store[slot].last;
        let mut any = false;
        while place >= self.out.first() {
            let chunk = *self.out.get(place);
            any = true;
            self.buffered -= usize::from(chunk.len);
            self.out.get_mut(place).abandoned = true;
            if chunk.state == State::Lost {
                self.out.lost.remove(&place);
                self.out.get_mut(place).state = State::Skipped;
            }
            if chunk.back == 0 {
                break;
            }
            place -= u64::from(chunk.back);
        }
        // A part that is queued too is taken from there first, while it still has its data.
        if any && !self.store[slot].queued {
            self.report(slot);
        }
    }
}

impl Chunk {
    /// Stands for the fragments that a message would have had.
    fn missing_end(slot: Slot) -> Chunk {
        Chunk {
            slot,
            state: State::Skipped,
            end: true,
            abandoned: true,
            ..Chunk::default()
        }
    }
}
