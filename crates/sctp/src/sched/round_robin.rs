//! Round robin, by messages or by packets.

use std::collections::{BTreeMap, HashMap};

use super::{Ended, Scheduler};

#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    /// Streams with data, by their turn, and the other way round.
    ring: BTreeMap<u64, u16>,
    places: HashMap<u16, u64>,
    turns: u64,
    by_packet: bool,
    /// The stream of the packet that is being filled, and whether its turn is over.
    packet: Option<(u16, bool)>,
}

impl RoundRobin {
    pub(super) fn new(by_packet: bool) -> RoundRobin {
        RoundRobin {
            by_packet,
            ..RoundRobin::default()
        }
    }

    fn push(&mut self, stream: u16) {
        self.turns += 1;
        self.ring.insert(self.turns, stream);
        self.places.insert(stream, self.turns);
    }

    /// The stream's turn is over.
    fn pass(&mut self, stream: u16, leaves: bool) {
        if let Some(turn) = self.places.remove(&stream) {
            self.ring.remove(&turn);
            if !leaves {
                self.push(stream);
            }
        }
    }
}

impl Scheduler for RoundRobin {
    fn queued(&mut self, stream: u16, first: bool) -> u64 {
        if first {
            self.push(stream);
        }
        0
    }

    fn next(&self) -> Option<u16> {
        match self.packet {
            Some((stream, _)) => self.places.contains_key(&stream).then_some(stream),
            None => self.ring.first_key_value().map(|(_, stream)| *stream),
        }
    }

    fn sent(&mut self, stream: u16, _ticket: u64, _bytes: usize, ended: Ended) {
        if self.by_packet {
            self.packet = Some((stream, ended.turn));
            if ended.queue {
                self.pass(stream, true);
            }
        } else if ended.turn || ended.queue {
            self.pass(stream, ended.queue);
        }
    }

    fn removed(&mut self, stream: u16, _ticket: u64, last: bool) {
        if last {
            self.pass(stream, true);
        }
    }

    fn packet_done(&mut self) {
        if let Some((stream, true)) = self.packet.take() {
            self.pass(stream, false);
        }
    }
}
