//! What the peer has given up (RFC 3758, RFC 8260).

use core::ops::RangeInclusive;

use super::reassembly::{Head, Slot};
use super::{Part, Receiver};
use crate::Tsn;
use crate::wire::Skipped;

impl Receiver {
    pub(super) fn skip(&mut self, cumulative: Tsn, streams: impl Iterator<Item = Skipped>) {
        self.acks.hurry();
        let cumulative = self.map.unwrap(cumulative);
        if cumulative <= self.map.cumulative() {
            return;
        }
        self.map.advance(cumulative);
        self.skipped_to = Some(cumulative);
        if !self.config.interleave {
            self.discard(Slot::of_tsn(0)..=Slot::of_tsn(cumulative), |_| true);
            self.discard_tail();
        }
        let known = self.streams;
        for skipped in streams.filter(|skipped| skipped.stream < known) {
            self.skip_in_stream(&skipped);
        }
        self.deliver_partially();
    }

    fn skip_in_stream(&mut self, skipped: &Skipped) {
        let stream = skipped.stream;
        if self.config.interleave {
            // All that are not after this one; numbers wrap.
            let last = skipped.mid.0;
            let first = skipped.mid.minus((1 << 31) - 1).0;
            let halves = match first <= last {
                true => [Some(first..=last), None],
                false => [Some(0..=last), Some(first..=u32::MAX)],
            };
            for numbers in halves.into_iter().flatten() {
                self.discard(
                    Slot::of_messages(stream, skipped.unordered, numbers),
                    |_| true,
                );
            }
        }
        if !skipped.unordered {
            self.pass(stream, self.number(skipped.ssn, skipped.mid));
        }
    }

    /// Drops the fragments right behind what was given up: the rest of a message that the peer gave up too. Were there any?
    pub(super) fn discard_tail(&mut self) -> bool {
        let before = self.skipped_to;
        while let Some(last) = self.skipped_to {
            let Some(loose) = self.pieces.take_loose(Slot::of_tsn(last + 1)) else {
                break;
            };
            self.bytes -= loose.data.len();
            self.skipped_to = Some(last + 1);
        }
        self.skipped_to != before
    }

    pub(super) fn discard(&mut self, places: RangeInclusive<Slot>, wanted: impl Fn(&Head) -> bool) {
        if self.pieces.is_empty() {
            return;
        }
        let (begun, bytes) = self.pieces.discard(places, wanted);
        self.bytes -= bytes;
        for message in begun {
            self.bytes -= message.data.len();
            if message.delivering {
                self.delivering -= 1;
                self.fresh = true;
                self.ready.push_back(Part {
                    aborted: true,
                    ..Part::new(message.head, Vec::new(), true)
                });
            }
        }
        self.release_held_back();
    }
}
