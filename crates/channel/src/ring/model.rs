//! What loom's models need beside the ring itself: construction, and calls with something left out.

use super::*;

impl Default for RingState {
    fn default() -> RingState {
        let word = || AtomicU64::new(0);
        let flag = || AtomicU32::new(0);
        RingState {
            writer: ProducerLine {
                lock: Lock::new(),
                tail: word(),
                cached_head: word(),
                bytes: word(),
                messages: word(),
                pending_bytes: word(),
                specials: flag(),
                full: flag(),
            },
            reader: ConsumerLine {
                lock: Lock::new(),
                head: word(),
                partial: word(),
                bytes: word(),
                messages: word(),
                tombstones: word(),
                taking: word(),
                pending_specials: flag(),
                reserved: flag(),
            },
            sleep: SleepLine {
                readers: Sleepers::default(),
                writers: Sleepers::default(),
                specials: flag(),
                specials_taken: flag(),
                low_water: flag(),
                reserved: flag(),
            },
        }
    }
}

impl Ring<'_> {
    /// Both positions of an empty ring; before anybody else uses it.
    pub fn begin_at(&self, pos: Pos) {
        self.state.writer.tail.store(pos, Ordering::Relaxed);
        self.state.writer.cached_head.store(pos, Ordering::Relaxed);
        self.state.reader.head.store(pos, Ordering::Relaxed);
    }

    /// [`tail`](Ring::tail) without the frame that may be ahead of it.
    pub fn tail_moved(&self) -> Pos {
        self.state.writer.tail.load(Ordering::Acquire)
    }

    /// Pushes eight bytes as a careless producer would: nothing orders the header behind the payload.
    pub fn push_unordered(&self, value: u64) {
        let tail = self.state.writer.tail.load(Ordering::Relaxed);
        self.data.word(tail + 16).store(0, Ordering::Relaxed);
        self.data.word(tail + 8).store(value, Ordering::Relaxed);
        let header = &self.data.word(tail);
        header.store(COMMITTED | 8, Ordering::Relaxed);
        self.state.writer.tail.store(tail + 16, Ordering::Relaxed);
    }

    /// As a consumer leaves it that died before it counted what it took.
    pub fn spoil_count(&self) {
        self.state.reader.bytes.store(1000, Ordering::Relaxed);
    }
}
