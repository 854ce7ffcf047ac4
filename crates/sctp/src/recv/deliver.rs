//! From chunks to what is ready: reassembly, order, and delivery of messages before their end.

use std::collections::VecDeque;

use super::reassembly::{Added, Fragment, Head, Message, Slot};
use super::{KEPT_PARTS, Part, Receiver};
use crate::wire::Data;
use crate::{Mid, Ssn};

/// Parts of a message up to this long are joined, until there is so much in one.
const SMALL_PART: usize = 256;
const MOST_JOINED: usize = 1 << 16;

impl Receiver {
    pub(super) fn place(&mut self, tsn: u64, data: &Data) -> Result<(), &'static str> {
        let head = Head {
            stream: data.stream,
            unordered: data.unordered,
            number: self.number(data.ssn, data.mid),
            ppid: data.ppid,
            tsn: data.tsn,
        };
        if !head.unordered && self.order.is_past(head.stream, head.number) {
            // What was given up may still be on its way.
            return self
                .skipped_to
                .map(drop)
                .ok_or("a stream sequence number twice");
        }
        self.bytes += data.payload.len();
        if data.begin && data.end && self.pieces.is_empty() {
            return self.finish(Message::new(head, tsn, data.payload));
        }
        self.place_fragment(tsn, head, data)?;
        self.deliver_partially();
        Ok(())
    }

    /// Of a message in its stream.
    #[inline]
    pub(super) fn number(&self, ssn: Ssn, mid: Mid) -> u32 {
        match self.config.interleave {
            true => mid.0,
            false => ssn.0.into(),
        }
    }

    fn place_fragment(&mut self, tsn: u64, head: Head, data: &Data) -> Result<(), &'static str> {
        let slot = Slot::of_data(tsn, data);
        match self.pieces.add(&Fragment {
            slot,
            head,
            tsn,
            begin: data.begin,
            end: data.end,
            payload: data.payload,
        })? {
            Added::Whole(message) => self.finish(message),
            Added::Grown(slot) => {
                self.grown(slot);
                Ok(())
            }
            Added::Kept => self.kept(tsn),
        }
    }

    fn grown(&mut self, slot: Slot) {
        let message = self.pieces.open_mut(slot).expect("it has just grown");
        if message.delivering {
            let data = core::mem::take(&mut message.data);
            let part = Part::new(message.head, data, false);
            self.hand_on(part);
        } else {
            self.large_waits |= message.data.len() >= self.config.partial_delivery_point;
        }
    }

    /// The next part of a message that is being delivered. A small one joins the one before it, so that no message has very many.
    fn hand_on(&mut self, part: Part) {
        self.fresh = true;
        let small = part.data.len() <= SMALL_PART;
        if small
            && let Some(last) = self.ready.back_mut()
            && !last.end
            && last.data.len() <= MOST_JOINED
            && last.head.tsn == part.head.tsn
            && last.head.stream == part.head.stream
        {
            last.data.extend_from_slice(&part.data);
            last.end = part.end;
            return;
        }
        self.ready.push_back(part);
    }

    fn kept(&mut self, tsn: u64) -> Result<(), &'static str> {
        if self.config.interleave {
            return Ok(());
        }
        if self.discard_tail() || tsn > self.map.cumulative() {
            return Ok(());
        }
        Err("a fragment whose message never began")
    }

    /// A message has come whole, or its last part has.
    fn finish(&mut self, message: Message) -> Result<(), &'static str> {
        let head = message.head;
        if message.delivering {
            self.delivering -= 1;
            self.hand_on(Part::new(head, message.data, true));
            self.release_held_back();
            if !head.unordered && self.order.next(head.stream) == head.number {
                self.pass(head.stream, head.number);
            }
        } else if head.unordered {
            self.emit(message);
        } else if let Some(message) = self.order.arrive(message)? {
            self.emit(message);
            self.emit_followers(head.stream);
        }
        Ok(())
    }

    #[inline]
    fn emit(&mut self, message: Message) {
        let held_back = self.delivering > 0 && !self.config.interleaved_delivery;
        let queue = if held_back {
            &mut self.held_back
        } else {
            &mut self.ready
        };
        self.fresh |= !held_back;
        queue.push_back(Part::new(message.head, message.data, true));
    }

    #[inline]
    fn emit_followers(&mut self, stream: u16) {
        while let Some(message) = self.order.take_next(stream) {
            self.emit(message);
        }
    }

    /// The stream goes on after this number; what waited up to there is delivered.
    pub(super) fn pass(&mut self, stream: u16, number: u32) {
        for message in self.order.skip(stream, number) {
            self.emit(message);
        }
        self.emit_followers(stream);
    }

    pub(super) fn release_held_back(&mut self) {
        if self.delivering == 0 || self.config.interleaved_delivery {
            self.fresh |= !self.held_back.is_empty();
            self.ready.append(&mut self.held_back);
            self.held_back = VecDeque::new();
        }
    }

    /// Begins delivery of messages that are large, or of one when the window is used up and there is nothing else to read.
    pub(super) fn deliver_partially(&mut self) {
        while !self.pieces.open.is_empty()
            && (self.delivering == 0 || self.config.interleaved_delivery)
        {
            let starved = self.ready.is_empty() && self.room() < self.silly();
            if !starved && !self.large_waits {
                return;
            }
            let least = if starved {
                0
            } else {
                self.config.partial_delivery_point
            };
            let order = &self.order;
            let oldest = self.pieces.oldest(|message| {
                let head = &message.head;
                let turn = head.unordered || order.next(head.stream) == head.number;
                turn && message.data.len() >= least
            });
            let Some(slot) = oldest else {
                self.large_waits &= starved;
                return;
            };
            self.delivering += 1;
            self.pieces.begin_delivery(slot);
            self.grown(slot);
        }
    }

    pub(super) fn drained(&mut self) {
        if self.ready.capacity() > KEPT_PARTS {
            self.ready = VecDeque::new();
        }
        self.deliver_partially();
    }
}

impl Part {
    #[inline]
    pub(super) fn new(head: Head, data: Vec<u8>, end: bool) -> Part {
        Part {
            head,
            data,
            taken: 0,
            end,
            aborted: false,
        }
    }
}
