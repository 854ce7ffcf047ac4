//! How much more may come.

use super::reassembly::Slot;
use super::{OVERHEAD, Receiver, SILLY};
use crate::wire::Data;

impl Receiver {
    #[inline]
    pub(super) fn used(&self) -> usize {
        let parts = self.ready.len() + self.held_back.len();
        self.bytes + OVERHEAD * (parts + self.pieces.len() + self.order.len())
    }

    #[inline]
    pub(super) fn room(&self) -> usize {
        self.config.window.saturating_sub(self.used())
    }

    pub(super) fn silly(&self) -> usize {
        SILLY.min(self.config.window / 4)
    }

    /// The peer counts bytes only: as long as it keeps to the window that it was told, overhead may take as much again.
    #[inline]
    fn fits(&self, len: usize) -> bool {
        self.bytes + len <= self.config.window
            && self.used() + len + OVERHEAD <= 2 * self.config.window
    }

    /// Is there room for this chunk? A chunk that fills a gap pushes out the highest that came too early (RFC 9260 6.2). The
    /// next in order is taken even so when the user has nothing to read: what is full of unfinished messages would stay full.
    #[inline]
    pub(super) fn make_room(&mut self, tsn: u64, len: usize) -> bool {
        while !self.fits(len) {
            if !self.drop_highest_above(tsn) {
                let next = tsn == self.map.cumulative() + 1;
                return next && self.ready.is_empty() && self.used() < 4 * self.config.window;
            }
        }
        true
    }

    /// The user has nothing to read but what comes after this chunk, of the message that is being delivered: it is taken however much
    /// is held back for that message's end.
    pub(super) fn waits_for(&mut self, tsn: u64, data: &Data) -> bool {
        if self.delivering == 0 || !self.ready.is_empty() || data.begin {
            return false;
        }
        let slot = Slot::of_data(tsn, data);
        let message = self.pieces.open_mut(slot);
        message.is_some_and(|message| message.delivering)
    }

    fn drop_highest_above(&mut self, tsn: u64) -> bool {
        let (piece, waiting) = (self.pieces.highest(tsn), self.order.highest(tsn));
        let dropped = match (piece, waiting) {
            (Some(piece), waiting) if Some(piece) > waiting => self.pieces.drop_at(piece, tsn),
            (_, Some(waiting)) => self.order.drop_at(waiting),
            _ => None,
        };
        let Some(dropped) = dropped else {
            return false;
        };
        self.bytes -= dropped.bytes;
        self.map.take_back(dropped.tsns.first, dropped.tsns.last);
        true
    }
}
