//! Messages from fragments. Both kinds of chunk go through the same two tables: messages whose beginning has come, each found by
//! the place of the fragment that it waits for, and fragments whose predecessor is missing.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use crate::Tsn;
use crate::wire::Data;

/// What is the same in all fragments of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    pub stream: u16,
    pub unordered: bool,
    /// SSN or MID.
    pub number: u32,
    /// Of the first fragment.
    pub ppid: u32,
    pub tsn: Tsn,
}

/// A fragment's place: in its message (I-DATA: FSN), or among all fragments (DATA: TSN, all else 0). Those of ordered messages lie
/// side by side, and so do those of a stream among them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Slot {
    pub unordered: bool,
    pub stream: u16,
    pub number: u32,
    pub index: u64,
}

impl Slot {
    pub const ALL: RangeInclusive<Slot> =
        Slot::of_tsn(0)..=Slot::new(true, u16::MAX, u32::MAX, u64::MAX);

    /// All places of ordered messages.
    pub const ORDERED: RangeInclusive<Slot> =
        Slot::of_tsn(0)..=Slot::new(false, u16::MAX, u32::MAX, u64::MAX);

    const fn new(unordered: bool, stream: u16, number: u32, index: u64) -> Slot {
        Slot {
            unordered,
            stream,
            number,
            index,
        }
    }

    /// Of a fragment of DATA.
    pub const fn of_tsn(tsn: u64) -> Slot {
        Slot::new(false, 0, 0, tsn)
    }

    /// Of this chunk.
    pub fn of_data(tsn: u64, data: &Data) -> Slot {
        if !data.interleaved {
            return Slot::of_tsn(tsn);
        }
        let index = if data.begin { 0 } else { data.fsn.into() };
        Slot::new(data.unordered, data.stream, data.mid.0, index)
    }

    /// All places of these messages of a stream.
    pub fn of_messages(
        stream: u16,
        unordered: bool,
        numbers: RangeInclusive<u32>,
    ) -> RangeInclusive<Slot> {
        let of = |number, index| Slot::new(unordered, stream, number, index);
        of(*numbers.start(), 0)..=of(*numbers.end(), u64::MAX)
    }

    fn after(self) -> Slot {
        Slot {
            index: self.index + 1,
            ..self
        }
    }

    fn first_of_message(self) -> Slot {
        Slot { index: 0, ..self }
    }

    fn last_of_message(self) -> Slot {
        Slot {
            index: u64::MAX,
            ..self
        }
    }

    fn same_message(self, other: Slot) -> bool {
        self.first_of_message() == other.first_of_message()
    }
}

/// The TSNs of a message's fragments.
#[derive(Clone, Copy, Debug)]
pub struct Tsns {
    pub first: u64,
    pub last: u64,
    pub count: u64,
}

impl Tsns {
    fn one(tsn: u64) -> Tsns {
        Tsns {
            first: tsn,
            last: tsn,
            count: 1,
        }
    }

    fn add(&mut self, tsn: u64) {
        self.first = self.first.min(tsn);
        self.last = self.last.max(tsn);
        self.count += 1;
    }

    /// Without a gap, so that they can be taken back.
    pub fn are_contiguous(&self) -> bool {
        self.last - self.first + 1 == self.count
    }
}

/// A message from its first fragment on, as far as it has come without a gap.
#[derive(Debug)]
pub struct Message {
    pub head: Head,
    pub tsns: Tsns,
    pub data: Vec<u8>,
    /// Its beginning has been handed to the user; `data` holds what came after.
    pub delivering: bool,
}

impl Message {
    #[inline]
    pub fn new(head: Head, tsn: u64, payload: &[u8]) -> Message {
        Message {
            head,
            tsns: Tsns::one(tsn),
            data: payload.to_vec(),
            delivering: false,
        }
    }
}

#[derive(Debug)]
pub struct Loose {
    head: Head,
    tsn: u64,
    end: bool,
    pub data: Box<[u8]>,
}

/// A fragment that came just now.
pub struct Fragment<'a> {
    pub slot: Slot,
    pub head: Head,
    pub tsn: u64,
    pub begin: bool,
    pub end: bool,
    pub payload: &'a [u8],
}

pub enum Added {
    /// It waits for its predecessor.
    Kept,
    /// A message has grown, and waits for this place.
    Grown(Slot),
    Whole(Message),
}

/// Bytes given up.
pub struct Dropped {
    pub bytes: usize,
    pub tsns: Tsns,
}

#[derive(Debug, Default)]
pub struct Reassembly {
    interleaved: bool,
    /// Messages whose beginning has come.
    pub open: BTreeMap<Slot, Message>,
    loose: BTreeMap<Slot, Loose>,
    /// Messages of `open` that are not being delivered, by their first TSN. The place that such a message waits for is the first one
    /// of `open` from the one noted here on, so that nothing has to be changed as it grows.
    ages: BTreeMap<u64, Slot>,
    /// Fragments of `loose` by TSN. Those of DATA have it in their place.
    tsns: BTreeMap<u64, Slot>,
}

/// Open messages that are looked at when one is to be delivered early or to be dropped: there may be very many.
const LOOKED_AT: usize = 32;

impl Reassembly {
    pub fn new(interleaved: bool) -> Reassembly {
        Reassembly {
            interleaved,
            ..Reassembly::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.loose.is_empty()
    }

    /// Messages and single fragments.
    pub fn len(&self) -> usize {
        self.open.len() + self.loose.len()
    }

    pub fn add(&mut self, fragment: &Fragment) -> Result<Added, &'static str> {
        let slot = fragment.slot;
        let mut first = None;
        let mut message = if fragment.begin {
            self.begin(fragment)?
        } else if let Some(mut message) = self.open.remove(&slot) {
            first = Some(message.tsns.first).filter(|_| !message.delivering);
            grow(&mut message, &fragment.head, fragment.tsn, fragment.payload)?;
            message
        } else {
            return self.keep(fragment);
        };
        let mut slot = slot;
        let mut end = fragment.end;
        while !end {
            slot = slot.after();
            let Some(loose) = self.take_loose(slot) else {
                self.note_age(first, slot, &message);
                self.open.insert(slot, message);
                return Ok(Added::Grown(slot));
            };
            grow(&mut message, &loose.head, loose.tsn, &loose.data)?;
            end = loose.end;
        }
        if self.follows(slot) {
            return Err("a fragment after the last of its message");
        }
        if let Some(first) = first {
            self.ages.remove(&first);
        }
        self.release_memory();
        Ok(Added::Whole(message))
    }

    /// A message that has begun to come, and waits for this place.
    pub fn open_mut(&mut self, slot: Slot) -> Option<&mut Message> {
        self.open.get_mut(&slot)
    }

    /// Its beginning is handed to the user, and it can't be dropped any more.
    pub fn begin_delivery(&mut self, slot: Slot) {
        if let Some(message) = self.open.get_mut(&slot) {
            message.delivering = true;
            self.ages.remove(&message.tsns.first);
        }
    }

    /// The oldest message that `wanted` likes, and that is not being delivered.
    pub fn oldest(&self, wanted: impl Fn(&Message) -> bool) -> Option<Slot> {
        let oldest = self.ages.iter().take(LOOKED_AT);
        let mut oldest = oldest.filter_map(|(first, slot)| self.of_age(*first, *slot));
        oldest
            .find(|(_, message)| wanted(message))
            .map(|(slot, _)| *slot)
    }

    /// Gives up what is at these places and `wanted`; hands back the messages that had begun, and the bytes of others.
    pub fn discard(
        &mut self,
        places: RangeInclusive<Slot>,
        wanted: impl Fn(&Head) -> bool,
    ) -> (Vec<Message>, usize) {
        let open = self.open.range(places.clone());
        let open = open.filter(|(_, message)| wanted(&message.head));
        let open: Vec<Slot> = open.map(|(slot, _)| *slot).collect();
        let begun = open.into_iter().filter_map(|slot| self.take_open(slot));
        let begun = begun.collect();
        let loose = self.loose.range(places);
        let loose = loose.filter(|(_, loose)| wanted(&loose.head));
        let loose: Vec<Slot> = loose.map(|(slot, _)| *slot).collect();
        let loose = loose.into_iter().filter_map(|slot| self.take_loose(slot));
        let bytes = loose.map(|loose| loose.data.len()).sum();
        self.release_memory();
        (begun, bytes)
    }

    /// The highest TSN above `above` that could be dropped.
    pub fn highest(&self, above: u64) -> Option<u64> {
        let open = self.highest_open(above).map(|(_, last)| last);
        let loose = match self.interleaved {
            true => self.tsns.last_key_value().map(|(tsn, _)| *tsn),
            false => self.loose.last_key_value().map(|(slot, _)| slot.index),
        };
        open.max(loose.filter(|tsn| *tsn > above))
    }

    /// Drops what has this TSN as its last, as [`highest`](Reassembly::highest) gave it.
    pub fn drop_at(&mut self, tsn: u64, above: u64) -> Option<Dropped> {
        let loose = match self.interleaved {
            true => self.tsns.get(&tsn).copied(),
            false => Some(Slot::of_tsn(tsn)),
        };
        if let Some(loose) = loose.and_then(|slot| self.take_loose(slot)) {
            return Some(Dropped {
                bytes: loose.data.len(),
                tsns: Tsns::one(tsn),
            });
        }
        let (slot, _) = self.highest_open(above).filter(|(_, last)| *last == tsn)?;
        let message = self.take_open(slot)?;
        Some(Dropped {
            bytes: message.data.len(),
            tsns: message.tsns,
        })
    }

    fn highest_open(&self, above: u64) -> Option<(Slot, u64)> {
        let highest = self.ages.range(above + 1..).rev().take(LOOKED_AT);
        let mut highest = highest.filter_map(|(first, slot)| self.of_age(*first, *slot));
        highest
            .find(|(_, message)| message.tsns.are_contiguous())
            .map(|(slot, message)| (*slot, message.tsns.last))
    }

    /// The message that begins with this TSN, and waited for this place or waits for a later one.
    fn of_age(&self, first: u64, slot: Slot) -> Option<(&Slot, &Message)> {
        let found = self.open.range(slot..).next();
        found.filter(|(_, message)| message.tsns.first == first)
    }

    /// The message waits for this place; `first` is what its first TSN was before, if it is known.
    fn note_age(&mut self, first: Option<u64>, slot: Slot, message: &Message) {
        if message.delivering || first == Some(message.tsns.first) {
            return;
        }
        if let Some(first) = first {
            self.ages.remove(&first);
        }
        self.ages.insert(message.tsns.first, slot);
    }

    fn take_open(&mut self, slot: Slot) -> Option<Message> {
        let message = self.open.remove(&slot)?;
        if !message.delivering {
            self.ages.remove(&message.tsns.first);
        }
        Some(message)
    }

    /// Takes the fragment at this place, which waits for its predecessor.
    pub fn take_loose(&mut self, slot: Slot) -> Option<Loose> {
        let loose = self.loose.remove(&slot)?;
        if self.interleaved {
            self.tsns.remove(&loose.tsn);
        }
        Some(loose)
    }

    pub fn bytes(&self) -> usize {
        let open: usize = self.open.values().map(|message| message.data.len()).sum();
        open + self
            .loose
            .values()
            .map(|loose| loose.data.len())
            .sum::<usize>()
    }

    pub fn delivering(&self) -> usize {
        self.open
            .values()
            .filter(|message| message.delivering)
            .count()
    }

    pub fn check(&self) {
        let aged = self.open.values().filter(|message| !message.delivering);
        assert_eq!(self.ages.len(), aged.count(), "messages by age");
        let found = |(first, slot): (&u64, &Slot)| self.of_age(*first, *slot).is_some();
        assert!(self.ages.iter().all(found), "a message that age hides");
        let tsns = self.loose.len() * usize::from(self.interleaved);
        assert_eq!(self.tsns.len(), tsns, "fragments by TSN");
        for slot in self.open.keys() {
            assert!(
                !self.loose.contains_key(slot),
                "a message waits for a fragment that is there"
            );
        }
    }

    fn begin(&mut self, fragment: &Fragment) -> Result<Message, &'static str> {
        let slot = fragment.slot;
        let twice = if self.interleaved {
            let (first, last) = (slot.first_of_message(), slot.last_of_message());
            self.open.range(first..=last).next().is_some()
        } else {
            self.open.contains_key(&slot)
        };
        if twice {
            return Err("a second beginning inside a message");
        }
        Ok(Message::new(fragment.head, fragment.tsn, fragment.payload))
    }

    fn keep(&mut self, fragment: &Fragment) -> Result<Added, &'static str> {
        let slot = fragment.slot;
        if self.interleaved {
            let waits = self
                .open
                .range(slot.first_of_message()..=slot.last_of_message())
                .next();
            if slot.index == 0 || waits.is_some_and(|(waits, _)| waits.index > slot.index) {
                return Err("a fragment number twice");
            }
        }
        let before = self.loose.range(slot.first_of_message()..slot).next_back();
        let before = before.filter(|(at, _)| self.interleaved || at.after() == slot);
        if before.is_some_and(|(_, loose)| loose.end) || (fragment.end && self.follows(slot)) {
            return Err("a fragment after the last of its message");
        }
        if self.interleaved {
            self.tsns.insert(fragment.tsn, slot);
        }
        let loose = Loose {
            head: fragment.head,
            tsn: fragment.tsn,
            end: fragment.end,
            data: fragment.payload.into(),
        };
        match self.loose.insert(slot, loose) {
            Some(_) => Err("a fragment number twice"),
            None => Ok(Added::Kept),
        }
    }

    /// Is there a fragment after this place that can't begin a message?
    fn follows(&self, slot: Slot) -> bool {
        if self.loose.is_empty() {
            return false;
        }
        match self.loose.range(slot.after()..).next() {
            Some((next, _)) if self.interleaved => next.same_message(slot),
            Some((next, _)) => *next == slot.after(),
            None => false,
        }
    }

    /// An empty map still keeps a node: much, in ten thousand idle associations.
    fn release_memory(&mut self) {
        if self.open.is_empty() {
            self.open = BTreeMap::new();
            self.ages = BTreeMap::new();
        }
        if self.loose.is_empty() {
            self.loose = BTreeMap::new();
            self.tsns = BTreeMap::new();
        }
    }
}

fn grow(message: &mut Message, head: &Head, tsn: u64, payload: &[u8]) -> Result<(), &'static str> {
    let expected = &message.head;
    let same_number = expected.number == head.number || head.unordered;
    if expected.stream != head.stream || expected.unordered != head.unordered || !same_number {
        return Err("fragments of two messages without an end between them");
    }
    message.tsns.add(tsn);
    message.data.extend_from_slice(payload);
    Ok(())
}
