//! Messages that are queued or outstanding, each in a numbered slot.

use core::ops::{Index, IndexMut};

use super::Outgoing;
use crate::Time;

pub(super) type Slot = u32;

/// No slot.
pub(super) const NONE: Slot = Slot::MAX;

/// No deadline.
pub(super) const NEVER: Time = Time(u64::MAX);

/// A message, or a part of one that was handed over in parts.
#[derive(Debug)]
pub(super) struct Part {
    pub data: Vec<u8>,
    pub about: Outgoing,
    pub deadline: Time,
    /// Its place in the order of coming, and that of its message's first part.
    pub order: u64,
    pub message: u64,
    /// Neighbours in the stream's queue, while `queued`.
    pub previous: Slot,
    pub next: Slot,
    /// The parts of its message before and after it, of those that there are.
    pub earlier: Slot,
    pub later: Slot,
    /// Bytes that were sent.
    pub sent: u32,
    /// The scheduler's own.
    pub ticket: u64,
    /// Chunks of it that are outstanding, and the place of the last one that was sent.
    pub chunks: u32,
    pub last: u64,
    /// SSN or MID, once something was sent.
    pub number: u32,
    /// The message begins and ends with it.
    pub begin: bool,
    pub end: bool,
    pub queued: bool,
    /// Queued for a stream that is held back.
    pub held: bool,
    pub abandoned: bool,
}

impl Part {
    pub fn unsent(&self) -> usize {
        self.data.len().saturating_sub(self.sent as usize)
    }
}

#[derive(Debug)]
pub(super) struct Store {
    parts: Vec<Part>,
    /// Free slots, chained by `next`.
    free: Slot,
    used: usize,
    /// Buffers to be used again, so that small messages cost no allocation; how much they hold.
    pool: Vec<Vec<u8>>,
    pooled: usize,
}

/// The longest buffer that is kept, and the most that is kept in all.
const KEPT: usize = 2048;
const POOL: usize = 128 << 10;

impl Store {
    pub fn new() -> Store {
        Store {
            parts: Vec::new(),
            free: NONE,
            used: 0,
            pool: Vec::new(),
            pooled: 0,
        }
    }

    pub fn buffer(&mut self, data: &[u8]) -> Vec<u8> {
        let mut buffer = match data.len() <= KEPT {
            true => self.pool.pop().unwrap_or_default(),
            false => Vec::new(),
        };
        self.pooled -= buffer.capacity();
        buffer.extend_from_slice(data);
        buffer
    }

    #[inline]
    pub fn add(&mut self, part: Part) -> Slot {
        self.used += 1;
        if self.free == NONE {
            self.parts.push(part);
            return (self.parts.len() - 1) as Slot;
        }
        let slot = self.free;
        let place = &mut self.parts[slot as usize];
        self.free = place.next;
        *place = part;
        slot
    }

    #[inline]
    pub fn remove(&mut self, slot: Slot) {
        let part = &mut self.parts[slot as usize];
        let mut buffer = core::mem::take(&mut part.data);
        part.next = self.free;
        self.free = slot;
        self.used -= 1;
        let size = buffer.capacity();
        if size > 0 && size <= KEPT && self.pooled + size <= POOL {
            buffer.clear();
            self.pooled += size;
            self.pool.push(buffer);
        }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    /// Gives back the memory that nothing uses.
    pub fn trim(&mut self) {
        self.pool = Vec::new();
        self.pooled = 0;
        if self.used == 0 {
            self.parts = Vec::new();
            self.free = NONE;
        }
    }
}

impl Index<Slot> for Store {
    type Output = Part;

    #[inline]
    fn index(&self, slot: Slot) -> &Part {
        &self.parts[slot as usize]
    }
}

impl IndexMut<Slot> for Store {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Part {
        &mut self.parts[slot as usize]
    }
}
