//! When a SACK is owed, and what it has to report besides TSNs.

use crate::Tsn;

/// Most duplicates reported by one SACK.
const MOST_DUPLICATES: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackWanted {
    No,
    /// Within the delay.
    Delayed,
    Now,
}

#[derive(Debug, Default)]
pub struct Acks {
    /// A SACK for this many packets.
    pub every: u32,
    /// Packets with data since the last SACK.
    packets: u32,
    /// The packet that is being handled has data.
    in_packet: bool,
    at_once: bool,
    duplicates: Vec<Tsn>,
    /// The window as the peer sees it: the last one told, less what came since.
    pub believed: u32,
}

impl Acks {
    pub fn new(every: u32, window: u32) -> Acks {
        Acks {
            every: every.max(1),
            believed: window,
            ..Acks::default()
        }
    }

    #[inline]
    pub fn data(&mut self, immediate: bool) {
        self.in_packet = true;
        self.at_once |= immediate;
    }

    #[inline]
    pub fn taken(&mut self, bytes: usize) {
        self.believed = self.believed.saturating_sub(bytes as u32);
    }

    pub fn duplicate(&mut self, tsn: Tsn) {
        self.at_once = true;
        if self.duplicates.len() < MOST_DUPLICATES {
            self.duplicates.push(tsn);
        }
    }

    pub fn hurry(&mut self) {
        self.at_once = true;
    }

    #[inline]
    pub fn end_of_packet(&mut self, gaps: bool) {
        if self.in_packet {
            self.in_packet = false;
            self.packets += 1;
            self.at_once |= gaps || self.packets >= self.every;
        }
    }

    #[inline]
    pub fn wanted(&self) -> SackWanted {
        if self.at_once {
            SackWanted::Now
        } else if self.packets > 0 || self.in_packet {
            SackWanted::Delayed
        } else {
            SackWanted::No
        }
    }

    pub fn duplicates(&self) -> &[Tsn] {
        &self.duplicates
    }

    /// A SACK was written.
    pub fn told(&mut self, window: u32) {
        self.packets = 0;
        self.at_once = false;
        self.believed = window;
        if !self.duplicates.is_empty() {
            self.duplicates = Vec::new();
        }
    }
}
