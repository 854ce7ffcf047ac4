//! The order of messages within each stream.

use std::collections::BTreeMap;

use super::reassembly::{Dropped, Message};
use crate::serial::{Mid, Ssn};

#[derive(Debug)]
pub struct Order {
    /// Numbers are MIDs, not SSNs.
    wide: bool,
    /// The number that each stream delivers next; streams beyond the end begin with 0.
    next: Vec<u32>,
    /// Whole messages that came before their turn, by stream and number.
    waiting: BTreeMap<(u16, u32), Message>,
}

pub enum Turn {
    /// It is to be delivered now.
    Now(Message),
    Later,
}

impl Order {
    pub fn new(wide: bool) -> Order {
        Order {
            wide,
            next: Vec::new(),
            waiting: BTreeMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn bytes(&self) -> usize {
        self.waiting
            .values()
            .map(|message| message.data.len())
            .sum()
    }

    #[inline]
    pub fn next(&self, stream: u16) -> u32 {
        self.next.get(usize::from(stream)).copied().unwrap_or(0)
    }

    /// Has this number's turn been?
    #[inline]
    pub fn is_past(&self, stream: u16, number: u32) -> bool {
        let next = self.next(stream);
        next != number && self.before(number, next)
    }

    /// A whole message has come.
    #[inline]
    pub fn arrive(&mut self, message: Message) -> Result<Turn, &'static str> {
        let (stream, number) = (message.head.stream, message.head.number);
        if number == self.next(stream) {
            self.advance_past(stream, number);
            return Ok(Turn::Now(message));
        }
        if self.is_past(stream, number) || self.waiting.insert((stream, number), message).is_some()
        {
            return Err("a stream sequence number twice");
        }
        Ok(Turn::Later)
    }

    /// The next message of this stream, if it has come already.
    #[inline]
    pub fn take_next(&mut self, stream: u16) -> Option<Message> {
        if self.waiting.is_empty() {
            return None;
        }
        let number = self.next(stream);
        let message = self.waiting.remove(&(stream, number))?;
        self.advance_past(stream, number);
        if self.waiting.is_empty() {
            self.waiting = BTreeMap::new();
        }
        Some(message)
    }

    /// Numbers up to this one are skipped; hands back what waited among them, in order.
    pub fn skip(&mut self, stream: u16, number: u32) -> Vec<Message> {
        let mut released = Vec::new();
        if self.is_past(stream, number) {
            return released;
        }
        let next = self.next(stream);
        let among = self
            .waiting
            .range((stream, 0)..=(stream, u32::MAX))
            .map(|(key, _)| key.1);
        let mut among: Vec<u32> = among.filter(|one| !self.before(number, *one)).collect();
        among.sort_unstable_by_key(|one| self.distance(next, *one));
        released.extend(
            among
                .iter()
                .filter_map(|one| self.waiting.remove(&(stream, *one))),
        );
        self.advance_past(stream, number);
        released
    }

    /// These streams begin with 0 again; `None`: all. Hands back the bytes of what still waited there.
    pub fn reset(&mut self, streams: Option<&[u16]>) -> usize {
        let is_among = |stream: u16| streams.is_none_or(|list| list.contains(&stream));
        for (stream, next) in self.next.iter_mut().enumerate() {
            if is_among(stream as u16) {
                *next = 0;
            }
        }
        let mut bytes = 0;
        self.waiting.retain(|key, message| {
            let goes = is_among(key.0);
            bytes += if goes { message.data.len() } else { 0 };
            !goes
        });
        bytes
    }

    pub fn highest(&self, above: u64) -> Option<u64> {
        let droppable = self
            .waiting
            .values()
            .filter(|message| message.can_be_dropped(above));
        droppable.map(|message| message.tsns.last).max()
    }

    /// Drops the message that has this TSN as its last.
    pub fn drop_at(&mut self, tsn: u64) -> Option<Dropped> {
        let key = *self
            .waiting
            .iter()
            .find(|(_, message)| message.tsns.last == tsn)?
            .0;
        let message = self.waiting.remove(&key)?;
        Some(Dropped {
            bytes: message.data.len(),
            tsns: message.tsns,
        })
    }

    pub fn check(&self) {
        for (stream, number) in self.waiting.keys() {
            assert!(
                *number != self.next(*stream),
                "the next message of a stream waits"
            );
            assert!(
                !self.is_past(*stream, *number),
                "a message waits whose turn has been"
            );
        }
    }

    #[inline]
    fn advance_past(&mut self, stream: u16, number: u32) {
        let stream = usize::from(stream);
        if stream >= self.next.len() {
            self.next.resize(stream + 1, 0);
        }
        let next = number.wrapping_add(1);
        self.next[stream] = if self.wide { next } else { next & 0xffff };
    }

    #[inline]
    fn before(&self, number: u32, other: u32) -> bool {
        if self.wide {
            Mid(number).before(Mid(other))
        } else {
            Ssn(number as u16).before(Ssn(other as u16))
        }
    }

    fn distance(&self, from: u32, to: u32) -> u32 {
        if self.wide {
            to.wrapping_sub(from)
        } else {
            to.wrapping_sub(from) & 0xffff
        }
    }
}
