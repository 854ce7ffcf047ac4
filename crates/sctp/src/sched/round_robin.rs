//! Round robin, by messages or by packets.

use std::collections::VecDeque;

use super::{Ended, Scheduler};

#[derive(Debug)]
pub(super) struct RoundRobin {
    /// Streams with data; the first has its turn.
    ring: VecDeque<u16>,
    by_packet: bool,
    /// The stream of the packet that is being filled, and whether its turn is over.
    packet: Option<(u16, bool)>,
}

impl RoundRobin {
    pub(super) fn new(by_packet: bool) -> RoundRobin {
        RoundRobin {
            ring: VecDeque::new(),
            by_packet,
            packet: None,
        }
    }

    /// The stream's turn is over.
    fn pass(&mut self, stream: u16, leaves: bool) {
        if let Some(at) = self.ring.iter().position(|s| *s == stream) {
            self.ring.remove(at);
            if !leaves {
                self.ring.push_back(stream);
            }
        }
    }
}

impl Scheduler for RoundRobin {
    fn queued(&mut self, stream: u16, first: bool) {
        if first {
            self.ring.push_back(stream);
        }
    }

    fn next(&self) -> Option<u16> {
        match self.packet {
            Some((stream, _)) => self.ring.contains(&stream).then_some(stream),
            None => self.ring.front().copied(),
        }
    }

    fn sent(&mut self, stream: u16, _bytes: usize, ended: Ended) {
        if self.by_packet {
            self.packet = Some((stream, ended.turn));
            if ended.queue {
                self.pass(stream, true);
            }
        } else if ended.turn || ended.queue {
            self.pass(stream, ended.queue);
        }
    }

    fn removed(&mut self, stream: u16, last: bool) {
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
