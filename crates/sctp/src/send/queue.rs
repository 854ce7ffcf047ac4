//! The streams' queues of messages that were not, or not wholly, sent.

use std::collections::BTreeMap;

use super::Outgoing;
use super::store::{NONE, Slot, Store};
use crate::sched::{Ended, Scheduler};
use crate::{SchedulerKind, Time};

#[derive(Debug)]
pub(super) struct Queues {
    streams: Vec<Stream>,
    scheduler: Box<dyn Scheduler>,
    kind: SchedulerKind,
    /// What the scheduler knows of the streams, for the next one.
    values: BTreeMap<u16, u16>,
    /// Without interleaving, a message that was begun goes on before any other.
    locked: Option<u16>,
    interleave: bool,
    /// Messages that are not complete: of a stream, and unordered or not, one each.
    pub open: BTreeMap<(u16, bool), Open>,
    /// New messages of streams that are held back.
    held: BTreeMap<u16, Held>,
    /// New messages of all streams wait until all are released.
    holds_all: bool,
    /// How often all streams' numbers began at 0 again.
    generation: u32,
    /// What may be sent: bytes and parts.
    pub bytes: usize,
    pub parts: usize,
    pub held_bytes: usize,
    /// Messages that were begun, and whose last fragment was not sent.
    pub begun: usize,
}

#[derive(Clone, Default, Debug)]
struct Stream {
    list: List,
    /// The next SSN or MID, and the next MID of unordered messages; of this generation.
    generation: u32,
    ordered: u32,
    unordered: u32,
    /// The number of the message that was begun, and its next fragment's.
    current: u32,
    fragment: u32,
    current_unordered: bool,
    /// Chunks that are not cumulatively acknowledged.
    outstanding: u32,
}

/// A message of which more is to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub about: Outgoing,
    pub message: u64,
    pub deadline: Time,
    /// It was abandoned: what comes is thrown away.
    pub discarding: bool,
    /// The last part of it that there is, or `NONE`.
    pub last: Slot,
    /// The last part that has come, if the message is held back; else `NONE`.
    pub held: Slot,
}

/// What waits for the stream to be released, or for the end of the stream's message that goes on: chunks of one message are not
/// mixed with those of another of its stream.
#[derive(Default, Debug)]
struct Held {
    list: List,
    /// By [`Queues::hold`].
    on_request: bool,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: Slot,
    tail: Slot,
}

impl Queues {
    pub fn new(streams: u16, kind: SchedulerKind, interleave: bool) -> Queues {
        Queues {
            streams: vec![Stream::default(); usize::from(streams)],
            scheduler: kind.make(),
            kind,
            values: BTreeMap::new(),
            locked: None,
            interleave,
            open: BTreeMap::new(),
            held: BTreeMap::new(),
            holds_all: false,
            generation: 0,
            bytes: 0,
            parts: 0,
            held_bytes: 0,
            begun: 0,
        }
    }

    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    pub fn set_streams(&mut self, number: u16) {
        self.streams.resize(usize::from(number), Stream::default());
    }

    pub fn set_interleave(&mut self, on: bool) {
        self.interleave = on;
    }

    /// Nothing can be sent before the end of the message that is open there.
    pub fn is_locked_by(&self, stream: u16, unordered: bool) -> bool {
        self.locked == Some(stream)
            && self.streams[usize::from(stream)].current_unordered == unordered
            && self.open.contains_key(&(stream, unordered))
    }

    /// `after`: the last part of the same message, if that is held back.
    pub fn push(&mut self, store: &mut Store, stream: u16, slot: Slot, after: Slot) {
        store[slot].queued = true;
        if self.held.is_empty() && self.open.is_empty() && !self.holds_all {
            self.push_ready(store, stream, slot);
            return;
        }
        let (begin, unordered, message) = {
            let part = &store[slot];
            (part.begin, part.about.unordered, part.message)
        };
        let goes_on = |other: &Open| !other.discarding;
        let other = self.open.get(&(stream, !unordered));
        if begin && (self.holds_all || other.is_some_and(goes_on)) {
            self.held.entry(stream).or_default();
        }
        match self.held.get_mut(&stream) {
            Some(held) if begin || after != NONE => {
                store[slot].held = true;
                self.held_bytes += store[slot].data.len();
                let after = if begin { held.list.tail } else { after };
                held.list.insert_after(store, after, slot);
                self.note_held(stream, unordered, message, slot);
            }
            _ => self.push_ready(store, stream, slot),
        }
    }

    fn note_held(&mut self, stream: u16, unordered: bool, message: u64, last: Slot) {
        if let Some(open) = self.open.get_mut(&(stream, unordered))
            && open.message == message
        {
            open.held = last;
        }
    }

    /// A message of the stream has its end, or was given up: others that waited for that may go on.
    pub fn go_on(&mut self, store: &mut Store, stream: u16) {
        let waits = |held: &Held| !held.on_request && !self.holds_all;
        if !self.held.is_empty() && self.held.get(&stream).is_some_and(waits) {
            self.release(store, stream);
        }
    }

    /// Something waits for the end of an open message.
    pub fn waits_for_an_end(&self) -> bool {
        let open = self.open.iter().filter(|(_, open)| !open.discarding);
        let mut streams = open.map(|((stream, _), _)| *stream);
        streams.any(|stream| self.locked == Some(stream) || self.held.contains_key(&stream))
    }

    /// An open message that is not held back: the one that those of its stream wait for.
    fn goes_on(&self, stream: u16) -> bool {
        self.open_of(stream)
            .any(|open| !open.discarding && open.held == NONE)
    }

    /// A message was begun, and its end is not known. One that was held back as a whole does not count.
    pub fn is_broken_in(&self, stream: u16) -> bool {
        self.open_of(stream).any(|open| open.held == NONE)
    }

    fn open_of(&self, stream: u16) -> impl Iterator<Item = &Open> {
        let kinds = [false, true].into_iter();
        kinds.filter_map(move |unordered| self.open.get(&(stream, unordered)))
    }

    /// Nothing that is not held back is queued, and no message that is not is half there.
    pub fn is_idle(&self) -> bool {
        self.parts == 0 && self.open.values().all(|open| open.held != NONE)
    }

    #[inline]
    fn push_ready(&mut self, store: &mut Store, stream: u16, slot: Slot) {
        self.bytes += store[slot].unsent();
        self.parts += 1;
        let list = &mut self.streams[usize::from(stream)].list;
        let first = list.head == NONE;
        list.push(store, slot);
        store[slot].ticket = self.scheduler.queued(stream, first);
    }

    /// What is sent next.
    #[inline]
    pub fn turn(&self) -> Option<(u16, Slot)> {
        let stream = self.locked.or_else(|| self.scheduler.next())?;
        let head = self.streams[usize::from(stream)].list.head;
        (head != NONE).then_some((stream, head))
    }

    /// The message behind which the stream's next one goes, where that is known to be so; else `NONE`.
    #[inline]
    pub fn last(&self, stream: u16) -> Slot {
        match self.held.is_empty() && self.open.is_empty() && !self.holds_all {
            true => self.streams[usize::from(stream)].list.tail,
            false => NONE,
        }
    }

    pub fn head(&self, stream: u16) -> Slot {
        self.streams[usize::from(stream)].list.head
    }

    /// Takes `size` bytes of the stream's first part; the fragment's number in its message.
    #[inline]
    pub fn take(&mut self, store: &mut Store, number: u16, size: usize) -> u32 {
        let stream = &mut self.streams[usize::from(number)];
        let slot = stream.list.head;
        let part = &mut store[slot];
        let begins = part.sent == 0 && part.begin;
        if part.sent == 0 {
            if begins {
                stream.begin(part.about.unordered, self.interleave, self.generation);
            }
            part.number = stream.current;
        }
        let fragment = stream.fragment;
        stream.fragment = stream.fragment.wrapping_add(1);
        stream.outstanding += 1;
        part.sent += size as u32;
        self.bytes -= size;
        let ticket = part.ticket;
        let done = part.unsent() == 0;
        let message_done = done && part.end;
        self.begun += usize::from(begins);
        self.begun -= usize::from(message_done);
        if done {
            part.queued = false;
            stream.list.unlink(store, slot);
            self.parts -= 1;
        }
        let queue_done = stream.list.head == NONE;
        if !self.interleave {
            self.locked = (!message_done).then_some(number);
        }
        self.scheduler.sent(
            number,
            ticket,
            size,
            Ended {
                part: done,
                turn: self.interleave || message_done,
                queue: queue_done,
            },
        );
        fragment
    }

    pub fn packet_done(&mut self) {
        self.scheduler.packet_done();
    }

    /// Takes back a part of which nothing more will be sent.
    pub fn unlink(&mut self, store: &mut Store, slot: Slot) {
        let number = store[slot].about.stream;
        let unsent = store[slot].unsent();
        store[slot].queued = false;
        if store[slot].held {
            if let Some(held) = self.held.get_mut(&number) {
                held.list.unlink(store, slot);
            }
            self.held_bytes -= unsent;
            return;
        }
        let list = &mut self.streams[usize::from(number)].list;
        list.unlink(store, slot);
        let last = list.head == NONE;
        self.bytes -= unsent;
        self.parts -= 1;
        self.scheduler.removed(number, store[slot].ticket, last);
    }

    /// The message that was begun on this stream will not go on; its number.
    pub fn break_off(&mut self, number: u16) -> u32 {
        if self.locked == Some(number) {
            self.locked = None;
        }
        let stream = &mut self.streams[usize::from(number)];
        stream.outstanding += 1;
        self.begun -= 1;
        stream.current
    }

    #[inline]
    pub fn acked(&mut self, stream: u16) {
        if let Some(stream) = self.streams.get_mut(usize::from(stream)) {
            stream.outstanding -= 1;
        }
    }

    pub fn outstanding(&self, stream: u16) -> u32 {
        self.streams[usize::from(stream)].outstanding
    }

    pub fn set_value(&mut self, stream: u16, value: u16) {
        self.values.insert(stream, value);
        self.scheduler.set_value(stream, value);
    }

    pub fn set_scheduler(&mut self, store: &mut Store, kind: SchedulerKind) {
        self.kind = kind;
        self.scheduler = kind.make();
        for (stream, value) in &self.values {
            self.scheduler.set_value(*stream, *value);
        }
        let mut queued = Vec::new();
        for (number, stream) in self.streams.iter().enumerate() {
            let head = stream.list.head;
            let parts = stream.list.iter(store);
            let parts = parts.map(|slot| (store[slot].order, number as u16, slot, slot == head));
            queued.extend(parts);
        }
        queued.sort_unstable();
        for (_, stream, slot, first) in queued {
            store[slot].ticket = self.scheduler.queued(stream, first);
        }
    }

    pub fn kind(&self) -> SchedulerKind {
        self.kind
    }

    /// New messages of the stream wait until it is released.
    pub fn hold(&mut self, stream: u16) {
        self.held.entry(stream).or_default().on_request = true;
    }

    /// Those of all streams, with no work for any of them: a peer may ask for it again and again.
    pub fn hold_all(&mut self) {
        self.holds_all = true;
    }

    pub fn release_all(&mut self, store: &mut Store) {
        self.holds_all = false;
        let held: Vec<u16> = self.held.keys().copied().collect();
        for stream in held {
            self.release(store, stream);
        }
    }

    pub fn release(&mut self, store: &mut Store, stream: u16) {
        let mut goes_on = self.goes_on(stream);
        let mut message = None;
        let Some(held) = self.held.get_mut(&stream) else {
            return;
        };
        held.on_request = false;
        while let Some(held) = self.held.get_mut(&stream)
            && held.list.head != NONE
        {
            let slot = held.list.head;
            let (of, unordered) = (store[slot].message, store[slot].about.unordered);
            if goes_on && message != Some(of) {
                return;
            }
            held.list.unlink(store, slot);
            message = Some(of);
            let open = self.open.get(&(stream, unordered));
            goes_on |= open.is_some_and(|open| open.message == of);
            self.note_held(stream, unordered, of, NONE);
            let part = &mut store[slot];
            part.held = false;
            self.held_bytes -= part.data.len();
            self.push_ready(store, stream, slot);
        }
        self.held.remove(&stream);
    }

    /// Numbers begin at 0 again.
    pub fn renumber(&mut self, stream: u16) {
        if let Some(stream) = self.streams.get_mut(usize::from(stream)) {
            stream.ordered = 0;
            stream.unordered = 0;
        }
    }

    /// Those of all streams.
    pub fn renumber_all(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Everything queued for this stream, held back or not.
    pub fn queued(&self, store: &Store, stream: u16) -> Vec<Slot> {
        let ready = self.streams[usize::from(stream)].list.iter(store);
        let held = self.held.get(&stream).into_iter();
        let held = held.flat_map(|held| held.list.iter(store));
        ready.chain(held).collect()
    }

    pub fn ready(&self, store: &Store, stream: u16) -> Vec<Slot> {
        self.streams[usize::from(stream)].list.iter(store).collect()
    }
}

impl Stream {
    #[inline]
    fn begin(&mut self, unordered: bool, interleave: bool, generation: u32) {
        if self.generation != generation {
            (self.generation, self.ordered, self.unordered) = (generation, 0, 0);
        }
        self.fragment = 0;
        self.current_unordered = unordered;
        self.current = match (unordered, interleave) {
            (false, _) => {
                self.ordered = self.ordered.wrapping_add(1);
                self.ordered.wrapping_sub(1)
            }
            (true, true) => {
                self.unordered = self.unordered.wrapping_add(1);
                self.unordered.wrapping_sub(1)
            }
            // DATA: the receiver does not look at it.
            (true, false) => 0,
        };
    }
}

impl Default for List {
    fn default() -> List {
        List {
            head: NONE,
            tail: NONE,
        }
    }
}

impl List {
    #[inline]
    fn push(&mut self, store: &mut Store, slot: Slot) {
        store[slot].previous = self.tail;
        store[slot].next = NONE;
        match self.tail {
            NONE => self.head = slot,
            tail => store[tail].next = slot,
        }
        self.tail = slot;
    }

    /// `NONE`: into the empty list.
    fn insert_after(&mut self, store: &mut Store, after: Slot, slot: Slot) {
        if after == self.tail {
            return self.push(store, slot);
        }
        let next = store[after].next;
        (store[slot].previous, store[slot].next) = (after, next);
        (store[after].next, store[next].previous) = (slot, slot);
    }

    #[inline]
    fn unlink(&mut self, store: &mut Store, slot: Slot) {
        let (previous, next) = (store[slot].previous, store[slot].next);
        match previous {
            NONE => self.head = next,
            previous => store[previous].next = next,
        }
        match next {
            NONE => self.tail = previous,
            next => store[next].previous = previous,
        }
        store[slot].previous = NONE;
        store[slot].next = NONE;
    }

    fn iter<'s>(&self, store: &'s Store) -> impl Iterator<Item = Slot> + use<'s> {
        let mut at = self.head;
        core::iter::from_fn(move || {
            let slot = at;
            if slot == NONE {
                return None;
            }
            at = store[slot].next;
            Some(slot)
        })
    }
}
