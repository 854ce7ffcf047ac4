//! The order of messages within each stream.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use super::reassembly::{Dropped, Message};
use crate::{Mid, Ssn};

#[derive(Debug, Default)]
pub struct Order {
    /// Numbers are MIDs, not SSNs.
    wide: bool,
    /// The number that each stream delivers next; streams beyond the end begin with 0.
    next: Vec<u32>,
    /// Whole messages that came before their turn, by stream and number.
    waiting: BTreeMap<(u16, u32), Message>,
    /// Of these, those whose TSNs can be taken back, by the last one.
    droppable: BTreeMap<u64, (u16, u32)>,
    bytes: usize,
}

impl Order {
    pub fn new(wide: bool) -> Order {
        Order {
            wide,
            ..Order::default()
        }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
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

    /// A whole message has come, and is handed back if it is to be delivered now.
    #[inline]
    pub fn arrive(&mut self, message: Message) -> Result<Option<Message>, &'static str> {
        let (stream, number) = (message.head.stream, message.head.number);
        if number == self.next(stream) {
            self.advance_past(stream, number);
            return Ok(Some(message));
        }
        let key = (stream, number);
        if self.is_past(stream, number) || self.waiting.contains_key(&key) {
            return Err("a stream sequence number twice");
        }
        self.bytes += message.data.len();
        if message.tsns.are_contiguous() {
            self.droppable.insert(message.tsns.last, key);
        }
        self.waiting.insert(key, message);
        Ok(None)
    }

    /// The next message of this stream, if it has come already.
    #[inline]
    pub fn take_next(&mut self, stream: u16) -> Option<Message> {
        if self.waiting.is_empty() {
            return None;
        }
        let number = self.next(stream);
        let message = self.take((stream, number))?;
        self.advance_past(stream, number);
        Some(message)
    }

    fn take(&mut self, key: (u16, u32)) -> Option<Message> {
        let message = self.waiting.remove(&key)?;
        self.bytes -= message.data.len();
        if message.tsns.are_contiguous() {
            self.droppable.remove(&message.tsns.last);
        }
        // An empty map still keeps a node.
        if self.waiting.is_empty() {
            self.waiting = BTreeMap::new();
            self.droppable = BTreeMap::new();
        }
        Some(message)
    }

    /// What waits of these numbers of a stream.
    fn take_range(&mut self, stream: u16, numbers: RangeInclusive<u32>) -> Vec<Message> {
        let keys = (stream, *numbers.start())..=(stream, *numbers.end());
        let keys: Vec<_> = self.waiting.range(keys).map(|(key, _)| *key).collect();
        keys.into_iter().filter_map(|key| self.take(key)).collect()
    }

    /// Numbers up to this one are skipped; hands back what waited among them, in order.
    pub fn skip(&mut self, stream: u16, number: u32) -> Vec<Message> {
        if self.is_past(stream, number) {
            return Vec::new();
        }
        let next = self.next(stream);
        // Numbers wrap: from the next one on, and then from 0.
        let released = if next <= number {
            self.take_range(stream, next..=number)
        } else {
            let mut released = self.take_range(stream, next..=u32::MAX);
            released.extend(self.take_range(stream, 0..=number));
            released
        };
        self.advance_past(stream, number);
        released
    }

    /// These streams begin with 0 again; `None`: all. Hands back the bytes of what still waited there.
    pub fn reset(&mut self, streams: Option<&[u16]>) -> usize {
        let before = self.bytes;
        let Some(streams) = streams else {
            *self = Order::new(self.wide);
            return before;
        };
        for stream in streams {
            if let Some(next) = self.next.get_mut(usize::from(*stream)) {
                *next = 0;
            }
            self.take_range(*stream, 0..=u32::MAX);
        }
        before - self.bytes
    }

    /// The highest TSN above `above` that could be dropped. TSNs of one message lie side by side here, so that none but the highest
    /// message can begin above it, and it has not come.
    pub fn highest(&self, above: u64) -> Option<u64> {
        let (last, _) = self.droppable.last_key_value()?;
        (*last > above).then_some(*last)
    }

    /// Drops the message that has this TSN as its last.
    pub fn drop_at(&mut self, tsn: u64) -> Option<Dropped> {
        let key = *self.droppable.get(&tsn)?;
        let message = self.take(key)?;
        Some(Dropped {
            bytes: message.data.len(),
            tsns: message.tsns,
        })
    }

    pub fn check(&self) {
        let sizes = self.waiting.values().map(|message| message.data.len());
        assert_eq!(self.bytes, sizes.sum::<usize>());
        let droppable = self.waiting.values().filter(|m| m.tsns.are_contiguous());
        assert_eq!(self.droppable.len(), droppable.count());
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
}
