//! Messages from fragments. Both kinds of chunk go through the same two tables: messages whose beginning has come, each found by
//! the place of the fragment that it waits for, and fragments whose predecessor is missing.

use std::collections::BTreeMap;

use crate::serial::Tsn;

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

/// A fragment's place: in its message (I-DATA: FSN), or among all fragments (DATA: TSN, all else 0).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Slot {
    pub stream: u16,
    pub unordered: bool,
    pub number: u32,
    pub index: u64,
}

impl Slot {
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

    /// They are all above `tsn` and without a gap, so that they can be taken back.
    fn can_be_dropped(&self, above: u64) -> bool {
        self.first > above && self.last - self.first + 1 == self.count
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
    pub fn can_be_dropped(&self, above: u64) -> bool {
        !self.delivering && self.tsns.can_be_dropped(above)
    }
}

#[derive(Debug)]
struct Loose {
    head: Head,
    tsn: u64,
    end: bool,
    data: Box<[u8]>,
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

#[derive(Debug)]
pub struct Reassembly {
    interleaved: bool,
    open: BTreeMap<Slot, Message>,
    loose: BTreeMap<Slot, Loose>,
}

impl Reassembly {
    pub fn new(interleaved: bool) -> Reassembly {
        Reassembly {
            interleaved,
            open: BTreeMap::new(),
            loose: BTreeMap::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.loose.is_empty()
    }

    /// Messages and single fragments.
    pub fn len(&self) -> usize {
        self.open.len() + self.loose.len()
    }

    /// Are there messages whose beginning has come?
    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub fn add(&mut self, fragment: &Fragment) -> Result<Added, &'static str> {
        let slot = fragment.slot;
        let mut message = if fragment.begin {
            self.begin(fragment)?
        } else if let Some(mut message) = self.open.remove(&slot) {
            grow(&mut message, &fragment.head, fragment.tsn, fragment.payload)?;
            message
        } else {
            return self.keep(fragment);
        };
        let mut slot = slot;
        let mut end = fragment.end;
        while !end {
            slot = slot.after();
            let Some(loose) = self.loose.remove(&slot) else {
                self.open.insert(slot, message);
                return Ok(Added::Grown(slot));
            };
            grow(&mut message, &loose.head, loose.tsn, &loose.data)?;
            end = loose.end;
        }
        if self.follows(slot) {
            return Err("a fragment after the last of its message");
        }
        self.release_memory();
        Ok(Added::Whole(message))
    }

    /// A message that has begun to come, and waits for this place.
    pub fn open_mut(&mut self, slot: Slot) -> Option<&mut Message> {
        self.open.get_mut(&slot)
    }

    /// The oldest message that `wanted` likes.
    pub fn oldest(&self, wanted: impl Fn(&Message) -> bool) -> Option<Slot> {
        let liked = self.open.iter().filter(|(_, message)| wanted(message));
        liked
            .min_by_key(|(_, message)| message.tsns.first)
            .map(|(slot, _)| *slot)
    }

    /// Gives up fragments of which `wanted` says so by place; hands back the messages that had begun, and the bytes of others.
    pub fn discard(
        &mut self,
        mut wanted: impl FnMut(&Slot, &Head) -> bool,
    ) -> (Vec<Message>, usize) {
        let slots = self
            .open
            .iter()
            .filter(|(slot, message)| wanted(slot, &message.head));
        let slots: Vec<Slot> = slots.map(|(slot, _)| *slot).collect();
        let begun = slots
            .iter()
            .filter_map(|slot| self.open.remove(slot))
            .collect();
        let mut bytes = 0;
        self.loose.retain(|slot, loose| {
            let goes = wanted(slot, &loose.head);
            bytes += if goes { loose.data.len() } else { 0 };
            !goes
        });
        self.release_memory();
        (begun, bytes)
    }

    /// The highest TSN above `above` that could be dropped.
    pub fn highest(&self, above: u64) -> Option<u64> {
        let open = self
            .open
            .values()
            .filter(|message| message.can_be_dropped(above));
        let open = open.map(|message| message.tsns.last);
        open.chain(
            self.loose
                .values()
                .map(|loose| loose.tsn)
                .filter(|tsn| *tsn > above),
        )
        .max()
    }

    /// Drops what has this TSN as its last.
    pub fn drop_at(&mut self, tsn: u64, above: u64) -> Option<Dropped> {
        let loose = self
            .loose
            .iter()
            .find(|(_, loose)| loose.tsn == tsn)
            .map(|(slot, _)| *slot);
        if let Some(loose) = loose.and_then(|slot| self.loose.remove(&slot)) {
            return Some(Dropped {
                bytes: loose.data.len(),
                tsns: Tsns::one(tsn),
            });
        }
        let slot =
            self.oldest(|message| message.tsns.last == tsn && message.can_be_dropped(above))?;
        let message = self.open.remove(&slot)?;
        Some(Dropped {
            bytes: message.data.len(),
            tsns: message.tsns,
        })
    }

    /// Drops the fragment at this place, which waits for its predecessor; hands back its bytes.
    pub fn drop_loose(&mut self, slot: Slot) -> Option<usize> {
        self.loose.remove(&slot).map(|loose| loose.data.len())
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
        let (head, tsns) = (fragment.head, Tsns::one(fragment.tsn));
        Ok(Message {
            head,
            tsns,
            data: fragment.payload.to_vec(),
            delivering: false,
        })
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
        let Fragment {
            head,
            tsn,
            end,
            payload,
            ..
        } = *fragment;
        match self.loose.insert(
            slot,
            Loose {
                head,
                tsn,
                end,
                data: payload.into(),
            },
        ) {
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
        }
        if self.loose.is_empty() {
            self.loose = BTreeMap::new();
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
