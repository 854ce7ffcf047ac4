//! What must hold between any two calls.

use super::Sender;
use super::outstanding::State;
use super::store::NONE;
use crate::Paths;
use crate::path::PATHS;

/// Checks after each step of a debug build look at no more chunks than these.
const MOST_CHECKED: usize = 512;

impl Sender {
    /// Panics where something is wrong. That T3 runs wherever data is in flight, the caller sees.
    pub fn check(&self, paths: &Paths) {
        let mut flights = [0; PATHS];
        let mut bytes = 0;
        let mut lost = 0;
        for (place, chunk) in self.out.iter() {
            let len = usize::from(chunk.len);
            let part = &self.store[chunk.slot];
            match chunk.state {
                State::InFlight => flights[usize::from(chunk.path.0)] += len,
                State::Lost => {
                    lost += 1;
                    assert!(
                        self.out.lost.contains(&place),
                        "a lost chunk that nobody will find"
                    );
                    assert!(!chunk.abandoned, "what is given up is not sent again");
                }
                State::Acked => {
                    let mut blocks = self.out.sacked.iter();
                    let acked = blocks.any(|(from, to)| (*from..*to).contains(&place));
                    assert!(acked, "acknowledged by no gap block");
                }
                State::Skipped => assert!(chunk.abandoned, "skipped, but not given up"),
            }
            assert!(part.chunks > 0, "a chunk whose message is forgotten");
            assert_eq!(chunk.abandoned, part.abandoned, "given up in part");
            let back = u64::from(chunk.back);
            let before = place.checked_sub(back).filter(|at| *at >= self.out.first());
            let same = before.is_none_or(|at| self.out.get(at).slot == chunk.slot);
            assert!(
                place <= part.last || chunk.len == 0,
                "a chunk that its message does not know"
            );
            assert!(same, "the chunk before is another part's");
            if !chunk.abandoned {
                bytes += len;
                assert!(chunk.at as usize + len <= part.data.len());
            }
        }
        for (id, path) in paths.iter() {
            assert_eq!(path.flight, flights[usize::from(id.0)], "flight of {id:?}");
        }
        assert_eq!(self.out.flight, flights.iter().sum::<usize>(), "flight");
        assert_eq!(self.out.lost.len(), lost, "lost chunks");
        assert_eq!(self.buffered, bytes + self.unsent(), "bytes buffered");
        assert!(
            self.forward.advanced >= self.out.first(),
            "Advanced.Peer.Ack.Point is behind"
        );
        self.out.check();
        self.check_queues();
    }

    fn check_queues(&self) {
        let (mut bytes, mut held, mut parts) = (0, 0, 0);
        for stream in 0..self.streams() {
            for slot in self.queues.queued(&self.store, stream) {
                let part = &self.store[slot];
                assert!(part.queued && !part.abandoned && part.unsent() > 0);
                assert_eq!(part.about.stream, stream);
                if part.later != NONE {
                    let later = &self.store[part.later];
                    assert_eq!((later.earlier, later.message), (slot, part.message));
                }
                match part.held {
                    true => held += part.unsent(),
                    false => {
                        bytes += part.unsent();
                        parts += 1;
                    }
                }
            }
        }
        for open in self.queues.open.values().filter(|open| open.last != NONE) {
            let last = &self.store[open.last];
            assert!(last.message == open.message && last.later == NONE && !last.end);
        }
        assert_eq!(
            (self.queues.bytes, self.queues.parts),
            (bytes, parts),
            "unsent"
        );
        assert_eq!(self.queues.held_bytes, held, "held back");
        if self.out.is_empty() && bytes + held == 0 {
            assert_eq!(self.store.used(), 0, "messages that nobody knows");
            assert_eq!(self.buffered, 0);
        }
    }

    /// The same after each step of a debug build, where it does not take too long.
    #[inline]
    pub(super) fn debug_check(&self, paths: &Paths) {
        if cfg!(debug_assertions)
            && self.out.len() <= MOST_CHECKED
            && self.queues.parts <= MOST_CHECKED
            && self.queues.streams() <= MOST_CHECKED
        {
            self.check(paths);
        }
    }
}
