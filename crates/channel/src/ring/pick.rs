//! Frames taken out of turn, and walks along the unread frames.
//!
//! A taker decides with one store: the header becomes a tombstone, or the head moves on. What it counts is announced
//! before and settled behind that store, so that the successor of a taker who died in between can finish.

use super::*;
use crate::sync::relax;

/// In the upper half of the word behind a special frame's header: the control part is taken, even an empty one.
const CONTROL_TAKEN: u64 = 1 << 31;

impl Ring<'_> {
    // ---- producer: under the writer lock ----

    /// As [`push_message`](Ring::push_message), but the frame is a special one: it is counted ([`specials`](Ring::specials))
    /// and keeps its own account of what was taken, so that any number of them can be half taken.
    pub fn push_special(&self, control: &[u8], data: &[u8], meta: Meta) -> Result<bool, Corrupt> {
        let len = control.len().saturating_add(data.len());
        let needed = len.saturating_add(HEADER as usize);
        if self.room(needed)? < needed {
            return Ok(false);
        }
        let (w, s) = (&self.state.writer, &self.state.sleep);
        let tail = w.tail.load(Ordering::Relaxed);
        let start = tail.wrapping_add(2 * HEADER);
        self.data.copy_in(start, control);
        self.data
            .copy_in(start.wrapping_add(control.len() as u64), data);
        self.data
            .word(tail.wrapping_add(HEADER))
            .store(control.len() as u64, Ordering::Relaxed);
        let specials = w.specials.load(Ordering::Relaxed).wrapping_add(1);
        s.specials.store(specials, Ordering::Relaxed);
        let header = header_word(len, meta) | HAS_CONTROL | SPECIAL;
        self.publish(tail, header, len, || {
            w.specials.store(specials, Ordering::Release)
        });
        Ok(true)
    }

    // ---- consumer: under the reader lock ----

    /// Special frames in the ring; one that is just being pushed counts already. Needs no lock; a hint without it.
    #[inline]
    pub fn specials(&self) -> u32 {
        let s = &self.state.sleep;
        let taken = s.specials_taken.load(Ordering::Acquire);
        s.specials.load(Ordering::Relaxed).wrapping_sub(taken)
    }

    /// The first unread frame that `f` chooses, oldest first. Without the lock, frames may change while they are shown.
    #[inline]
    pub fn find(&self, mut f: impl FnMut(&Frame) -> bool) -> Result<Option<Frame>, Corrupt> {
        let first = self.state.reader.head.load(Ordering::Relaxed);
        let mut pos = first;
        // A hostile producer could make a chain of frames without end.
        while pos.wrapping_sub(first) < self.data.capacity() {
            let header = self.data.word(pos).load(Ordering::Acquire);
            if header == 0 {
                return Ok(None);
            }
            if header & TAKEN == 0 {
                let frame = self.frame_at(pos, header)?;
                if f(&frame) {
                    return Ok(Some(frame));
                }
            }
            pos = pos.wrapping_add(self.checked_size(header)?);
        }
        Err(Corrupt)
    }

    /// Takes all that is left of a frame that [`find`](Ring::find) or [`peek`](Ring::peek) showed, wherever it stands.
    pub fn take(&self, frame: &Frame) {
        let r = &self.state.reader;
        if frame.special {
            self.announce_special(frame);
        }
        add(&r.bytes, frame.len as u64);
        if r.head.load(Ordering::Relaxed) == frame.pos {
            r.head.store(frame.next, Ordering::Release);
        } else {
            add(&r.tombstones, 1);
            let header = self.data.word(frame.pos);
            header.store(header.load(Ordering::Relaxed) | TAKEN, Ordering::Release);
        }
        if frame.special {
            self.settle_special();
        } else if frame.taken > 0 {
            r.partial.store(0, Ordering::Relaxed);
        }
        add(&r.messages, 1);
        if r.tombstones.load(Ordering::Relaxed) != 0 {
            self.skip_tombstones();
        }
    }

    /// Takes `n` bytes from the front of what is unread, control part first. When all of the control part is gone by that,
    /// also an empty one, the frame says so ([`Frame::control_taken`]); when nothing is left, the frame goes. Only one plain
    /// frame at a time can be half taken.
    pub fn take_part(&self, frame: &Frame, n: usize) {
        if n >= frame.len {
            return self.take(frame);
        }
        let r = &self.state.reader;
        let taken = (frame.taken + n) as u64;
        add(&r.bytes, n as u64);
        if !frame.special {
            r.partial
                .store(partial_word(frame.pos, taken), Ordering::Relaxed);
            return;
        }
        let control = frame.meta.control as u64;
        let gone = if taken >= control { CONTROL_TAKEN } else { 0 };
        self.data
            .word(frame.pos.wrapping_add(HEADER))
            .store(control | (taken | gone) << 32, Ordering::Release);
    }

    /// Copies without taking, beginning `skip` bytes after the first unread one; for MSG_PEEK.
    pub fn copy_peek(
        &self,
        buf: &mut [u8],
        mut skip: usize,
        end: Option<Pos>,
    ) -> Result<usize, Corrupt> {
        let mut done = 0;
        self.find(|frame| {
            if buf.is_empty() || end.is_some_and(|end| frame.pos >= end) {
                return true;
            }
            if skip < frame.len {
                let n = (frame.len - skip).min(buf.len() - done);
                self.copy_frame(frame, skip, &mut buf[done..done + n]);
                done += n;
            }
            skip = skip.saturating_sub(frame.len);
            done == buf.len()
        })?;
        Ok(done)
    }

    /// After the death of a consumer inside its section: what it took is decided by `head`, `partial`, the tombstones and
    /// the words of special frames, each stored at once; only the counts can be behind or ahead of them.
    pub fn recover_consumer(&self) -> Result<(), Corrupt> {
        let (r, w) = (&self.state.reader, &self.state.writer);
        self.recover_special();
        r.tombstones
            .store(self.walk()?.tombstones, Ordering::Relaxed);
        self.skip_tombstones();
        // A producer at work makes the sum and the count disagree for a moment; one that never rests leaves a wrong count.
        for _ in 0..1000 {
            let given = w.bytes.load(Ordering::Acquire);
            let walked = self.walk()?;
            if walked.end == w.tail.load(Ordering::Acquire)
                && given == w.bytes.load(Ordering::Acquire)
            {
                r.bytes
                    .store(given.wrapping_sub(walked.unread), Ordering::Relaxed);
                break;
            }
            relax();
        }
        Ok(())
    }

    /// Not given the frame itself, whose address would keep it out of registers where it is plain.
    #[cold]
    pub(super) fn consume_special(&self, pos: Pos, n: usize) {
        let header = self.data.word(pos).load(Ordering::Relaxed);
        if let Ok(frame) = self.frame_at(pos, header) {
            self.take_part(&frame, n);
        }
    }

    /// Moves the head on to the first frame that is not a tombstone, and returns it. At nonsense it stops; who looks there
    /// next says so.
    #[cold]
    pub(super) fn skip_tombstones(&self) -> Pos {
        let r = &self.state.reader;
        let first = r.head.load(Ordering::Relaxed);
        let (mut pos, mut left) = (first, r.tombstones.load(Ordering::Relaxed));
        while pos.wrapping_sub(first) < self.data.capacity() {
            let header = self.data.word(pos).load(Ordering::Acquire);
            match self.checked_size(header) {
                Ok(size) if header & TAKEN != 0 => pos = pos.wrapping_add(size),
                _ => break,
            }
            left = left.saturating_sub(1);
        }
        if pos != first {
            r.head.store(pos, Ordering::Release);
            r.tombstones.store(left, Ordering::Relaxed);
        }
        pos
    }

    pub(super) fn announce_special(&self, frame: &Frame) {
        let (r, s) = (&self.state.reader, &self.state.sleep);
        let count = s.specials_taken.load(Ordering::Relaxed).wrapping_add(1);
        r.pending_specials.store(count, Ordering::Relaxed);
        r.taking.store(frame.pos.wrapping_add(1), Ordering::Release);
    }

    fn settle_special(&self) {
        let (r, s) = (&self.state.reader, &self.state.sleep);
        let count = r.pending_specials.load(Ordering::Relaxed);
        s.specials_taken.store(count, Ordering::Release);
        r.taking.store(0, Ordering::Release);
    }

    /// Counts the special frame that was being taken, if it is gone. Counting it again changes nothing.
    fn recover_special(&self) {
        let r = &self.state.reader;
        let taking = r.taking.load(Ordering::Relaxed);
        if taking == 0 {
            return;
        }
        let pos = taking.wrapping_sub(1);
        let passed = r.head.load(Ordering::Relaxed).wrapping_sub(pos) as i64 > 0;
        if passed || self.data.word(pos).load(Ordering::Relaxed) & TAKEN != 0 {
            self.settle_special();
        } else {
            r.taking.store(0, Ordering::Relaxed);
        }
    }

    fn walk(&self) -> Result<Walk, Corrupt> {
        let first = self.state.reader.head.load(Ordering::Relaxed);
        let mut walk = Walk {
            unread: 0,
            tombstones: 0,
            end: first,
        };
        while walk.end.wrapping_sub(first) < self.data.capacity() {
            let header = self.data.word(walk.end).load(Ordering::Acquire);
            if header == 0 {
                break;
            }
            if header & TAKEN != 0 {
                walk.tombstones += 1;
            } else {
                walk.unread += self.frame_at(walk.end, header)?.len as u64;
            }
            walk.end = walk.end.wrapping_add(self.checked_size(header)?);
        }
        Ok(walk)
    }
}

/// What lies between the head and the first header that is not yet written.
struct Walk {
    unread: u64,
    tombstones: u64,
    end: Pos,
}

/// From the word behind a special frame's header: bytes taken, and whether the control part is.
#[inline]
pub(super) fn progress(word: u64) -> (u64, bool) {
    let taken = word >> 32;
    (taken & !CONTROL_TAKEN, taken & CONTROL_TAKEN != 0)
}

fn add(count: &AtomicU64, n: u64) {
    count.store(
        count.load(Ordering::Relaxed).wrapping_add(n),
        Ordering::Relaxed,
    );
}
