//! One direction of a channel: frames in a bounded ring of bytes.
//!
//! A frame is a header word {length, kind, band, flags}, an optional control part and a data part, padded to eight bytes.
//! The header is the publication: the producer first zeroes the *next* header, then writes the parts, then stores this
//! header with release. A consumer therefore needs one cache line for a small message, not an index and the data. `tail`
//! follows the headers for those who need a position (switching, recovery, counting).
//!
//! A *special* frame may be taken out of turn, in parts or whole ([`Ring::find`], [`Ring::take`]). A frame that is taken
//! while older ones remain becomes a tombstone, which the head skips once it gets there.
//!
//! Callers hold the producer's lock for producer calls and the consumer's lock for consumer calls ([`RingState::writer`],
//! [`RingState::reader`]); the two sides never exclude each other.

mod data;
mod flow;
#[cfg(all(test, loom))]
mod model;
mod pick;
mod sleep;
#[cfg(all(test, not(loom)))]
mod tests;

pub use data::Data;

use core::mem::offset_of;

use crate::lock::Lock;
use crate::shm::SharedSafe;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::waiter::Sleepers;

/// A position in the stream of frames, in bytes; offset in the ring is `pos & (capacity - 1)`. Never wraps in practice.
pub type Pos = u64;

/// What the peer wrote makes no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupt;

/// What kind of message a frame holds, for users that keep message boundaries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Meta {
    pub kind: u8,
    pub band: u8,
    pub flags: u8,
    /// Length of the control part in front of the data, in bytes.
    pub control: u32,
}

const COMMITTED: u64 = 1 << 63;
/// Behind the header: {control length: 32, for a special frame how much of it was taken: 32}.
const HAS_CONTROL: u64 = 1 << 62;
/// Always with [`HAS_CONTROL`].
const SPECIAL: u64 = 1 << 61;
/// A tombstone: its consumer is done with it.
const TAKEN: u64 = 1 << 60;
/// Flag bits that users may set in [`Meta::flags`].
pub const USER_FLAGS: u8 = 0x3f;
const HEADER: u64 = 8;
/// What processors move between their caches at once.
const LINE: u64 = 64;

#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct ProducerLine {
    pub lock: Lock,
    tail: AtomicU64,
    cached_head: AtomicU64,
    bytes: AtomicU64,
    messages: AtomicU64,
    /// What `bytes` will be once the frame being committed is counted; lets recovery count it exactly once.
    pending_bytes: AtomicU64,
    /// Special frames ever published; [`SleepLine::specials`] runs ahead of it by the one being pushed.
    specials: AtomicU32,
    /// The high-water mark was reached, and the low one not yet since: see [`Ring::may_send`].
    full: AtomicU32,
}

#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct ConsumerLine {
    pub lock: Lock,
    head: AtomicU64,
    /// Bytes already taken from a plain frame, tagged with its position: see [`partial_word`].
    partial: AtomicU64,
    bytes: AtomicU64,
    messages: AtomicU64,
    /// How many tombstones lie behind the head.
    tombstones: AtomicU64,
    /// The special frame that is just being taken, as its position plus one; 0: none.
    taking: AtomicU64,
    /// What [`SleepLine::specials_taken`] will be once that one is counted.
    pending_specials: AtomicU32,
    reserved: AtomicU32,
}

/// Who sleeps and wants to be rung, and what is rarely changed. Read-mostly, so on a line of its own.
#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct SleepLine {
    /// Who wants to be rung when there is something to read.
    pub readers: Sleepers,
    /// Who wants to be rung when there is room.
    pub writers: Sleepers,
    /// Special frames ever put in, each counted before it is visible.
    pub specials: AtomicU32,
    /// Special frames ever taken out.
    pub specials_taken: AtomicU32,
    /// The low-water mark plus one; 0: half of the ring.
    low_water: AtomicU32,
    reserved: AtomicU32,
}

/// The shared words of one ring.
#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct RingState {
    pub writer: ProducerLine,
    pub reader: ConsumerLine,
    pub sleep: SleepLine,
}

const _: () = {
    assert!(size_of::<ProducerLine>() == 128 && size_of::<ConsumerLine>() == 128);
    assert!(size_of::<SleepLine>() == 128 && size_of::<RingState>() == 384);
    assert!(offset_of!(RingState, writer) == 0);
    assert!(offset_of!(RingState, reader) == 128);
    assert!(offset_of!(RingState, sleep) == 256);
};

/// A view of a ring: its words and its bytes.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    pub state: &'a RingState,
    data: Data<'a>,
}

/// Contiguous room for the next frame's parts.
pub struct Reservation {
    pub ptr: *mut u8,
    pub len: usize,
}

/// The unread part of a frame.
pub struct Frame {
    pub ptr: *const u8,
    /// Unread bytes: control (if nothing of it was consumed yet) and data.
    pub len: usize,
    pub meta: Meta,
    /// Bytes of the frame consumed earlier.
    pub taken: usize,
    /// Where its header stands.
    pub pos: Pos,
    /// Pushed by [`Ring::push_special`].
    pub special: bool,
    /// The control part is gone, which says more than its length where it was empty: see [`Ring::take_part`].
    pub control_taken: bool,
    start: Pos,
    next: Pos,
}

impl Frame {
    /// How many of the unread bytes belong to the control part.
    #[inline]
    pub fn control_left(&self) -> usize {
        (self.meta.control as usize).saturating_sub(self.taken)
    }
}

impl<'a> Ring<'a> {
    pub fn new(state: &'a RingState, data: Data<'a>) -> Ring<'a> {
        Ring { state, data }
    }

    pub fn capacity(&self) -> usize {
        self.data.capacity() as usize
    }

    /// Forgets everything, the low-water mark too; only while nobody else uses the ring.
    pub fn reset(&self) {
        let (w, r) = (&self.state.writer, &self.state.reader);
        for word in [
            &w.tail,
            &w.cached_head,
            &w.bytes,
            &w.messages,
            &w.pending_bytes,
            &r.head,
            &r.partial,
            &r.bytes,
            &r.messages,
            &r.tombstones,
            &r.taking,
        ] {
            word.store(0, Ordering::Relaxed);
        }
        let s = &self.state.sleep;
        for word in [
            &w.specials,
            &w.full,
            &r.pending_specials,
            &s.specials,
            &s.specials_taken,
            &s.low_water,
            &s.readers.armed,
            &s.readers.asleep,
            &s.writers.armed,
            &s.writers.asleep,
        ] {
            word.store(0, Ordering::Relaxed);
        }
        self.data.word(0).store(0, Ordering::Release);
    }

    // ---- producer: under the writer lock ----

    /// Payload bytes that a frame without control part could take now.
    #[inline]
    pub fn room(&self, wanted: usize) -> Result<usize, Corrupt> {
        let w = &self.state.writer;
        let tail = w.tail.load(Ordering::Relaxed);
        let free = |head: Pos| {
            let used = tail.wrapping_sub(head);
            if used > self.data.capacity() {
                return Err(Corrupt);
            }
            // This frame's header and the zeroed header behind it; down to a multiple of the frame alignment.
            Ok((self.data.capacity() - used).saturating_sub(2 * HEADER) & !(HEADER - 1))
        };
        let cached = free(w.cached_head.load(Ordering::Relaxed)).unwrap_or(0);
        if cached >= wanted as u64 {
            return Ok(cached as usize);
        }
        let head = self.state.reader.head.load(Ordering::Acquire);
        w.cached_head.store(head, Ordering::Relaxed);
        free(head).map(|n| n as usize)
    }

    /// Does a frame of `wanted` bytes fit? Needs no lock; a hint without it. True also when the positions make no sense:
    /// the call that follows says so.
    #[inline]
    pub fn has_room(&self, wanted: usize) -> bool {
        let head = self.state.reader.head.load(Ordering::Relaxed);
        let tail = self.state.writer.tail.load(Ordering::Relaxed);
        let used = tail.wrapping_sub(head);
        match self.data.capacity().checked_sub(used) {
            Some(free) => (free.saturating_sub(2 * HEADER) & !(HEADER - 1)) >= wanted as u64,
            None => true,
        }
    }

    /// Room for a frame of up to `wanted` bytes, control part included; `None` when the ring is full.
    pub fn reserve(
        &self,
        wanted: usize,
        with_control: bool,
    ) -> Result<Option<Reservation>, Corrupt> {
        let extra = if with_control { HEADER as usize } else { 0 };
        // An empty frame needs its header's place too.
        let needed = wanted.saturating_add(extra).max(1);
        let room = self.room(needed)?.saturating_sub(extra);
        if room == 0 {
            return Ok(None);
        }
        let tail = self.state.writer.tail.load(Ordering::Relaxed);
        Ok(Some(Reservation {
            ptr: self.data.at(tail.wrapping_add(HEADER + extra as u64)),
            len: room.min(wanted),
        }))
    }

    /// Publishes a frame of `len` bytes (control part included) that was written into a reservation of at least that.
    #[inline]
    pub fn commit(&self, len: usize, meta: Meta) {
        let tail = self.state.writer.tail.load(Ordering::Relaxed);
        let mut header = header_word(len, meta);
        if meta.control > 0 {
            header |= HAS_CONTROL;
            self.data
                .word(tail.wrapping_add(HEADER))
                .store(meta.control as u64, Ordering::Relaxed);
        }
        self.publish(tail, header, len, || {});
    }

    /// Publishes what was written behind the header's place; `count` runs once the frame is visible, before the tail moves.
    #[inline(always)]
    fn publish(&self, tail: Pos, header: u64, len: usize, count: impl FnOnce()) {
        let w = &self.state.writer;
        let next = tail.wrapping_add(frame_size(header));
        let bytes = w.bytes.load(Ordering::Relaxed).wrapping_add(len as u64);
        // In this order, so that the successor of a producer who died in between can finish: see recover_producer.
        w.pending_bytes.store(bytes, Ordering::Relaxed);
        self.data.word(next).store(0, Ordering::Relaxed);
        self.data.word(tail).store(header, Ordering::Release);
        w.bytes.store(bytes, Ordering::Release);
        count();
        w.tail.store(next, Ordering::Release);
        w.messages.store(
            w.messages.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    /// Copies up to `buf.len()` bytes in as one frame without control part; returns how many fitted (0: full).
    #[inline]
    pub fn push(&self, buf: &[u8], meta: Meta) -> Result<usize, Corrupt> {
        debug_assert!(meta.control == 0, "a control part needs a reservation");
        let n = self.room(buf.len())?.min(buf.len());
        if n == 0 {
            return Ok(0);
        }
        let tail = self.state.writer.tail.load(Ordering::Relaxed);
        self.data.copy_in(tail.wrapping_add(HEADER), &buf[..n]);
        self.commit(n, meta);
        Ok(n)
    }

    /// [`push`](Ring::push) of a long buffer to a consumer on a distant CPU: see [`Data::copy_in_streaming`].
    pub fn push_streaming(&self, buf: &[u8], meta: Meta) -> Result<usize, Corrupt> {
        let n = self.room(buf.len())?.min(buf.len());
        if n == 0 {
            return Ok(0);
        }
        let tail = self.state.writer.tail.load(Ordering::Relaxed);
        self.data
            .copy_in_streaming(tail.wrapping_add(HEADER), &buf[..n]);
        self.commit(n, meta);
        Ok(n)
    }

    /// Copies a control and a data part in as one frame, or nothing: false when there is no room for both together.
    #[inline]
    pub fn push_message(&self, control: &[u8], data: &[u8], meta: Meta) -> Result<bool, Corrupt> {
        let len = control.len() + data.len();
        let start = if control.is_empty() {
            HEADER
        } else {
            2 * HEADER
        };
        // An empty frame needs its header's place too.
        let needed = (len + start as usize - HEADER as usize).max(1);
        if self.room(needed)? < needed {
            return Ok(false);
        }
        let tail = self.state.writer.tail.load(Ordering::Relaxed);
        let start = tail.wrapping_add(start);
        self.data.copy_in(start, control);
        self.data
            .copy_in(start.wrapping_add(control.len() as u64), data);
        let control = control.len() as u32;
        self.commit(len, Meta { control, ..meta });
        Ok(true)
    }

    /// Publishes a plain frame without bytes; false when the ring is full.
    pub fn push_empty(&self, meta: Meta) -> Result<bool, Corrupt> {
        self.push_message(&[], &[], meta)
    }

    /// Published position: behind all that [`is_empty`](Ring::is_empty) and the takers see, the frame whose producer has not moved
    /// `tail` yet included. Whoever compares two of them is told once of each frame.
    #[inline]
    pub fn tail(&self) -> Pos {
        let tail = &self.state.writer.tail;
        let mut seen = tail.load(Ordering::Acquire);
        // No producer gets so far while we look; a hostile one may pretend to.
        for _ in 0..64 {
            let header = self.data.word(seen).load(Ordering::Acquire);
            let now = tail.load(Ordering::Acquire);
            if now == seen {
                let ahead = self.checked_size(header).unwrap_or(0);
                return seen.wrapping_add(ahead);
            }
            seen = now;
        }
        seen
    }

    /// After the death of a producer inside its section: a frame whose header was stored is published, whatever `tail`
    /// says; anything else never was.
    pub fn recover_producer(&self) -> Result<(), Corrupt> {
        let w = &self.state.writer;
        let tail = w.tail.load(Ordering::Relaxed);
        let header = self.data.word(tail).load(Ordering::Acquire);
        let specials = &self.state.sleep.specials;
        if header == 0 {
            specials.store(w.specials.load(Ordering::Relaxed), Ordering::Release);
            return Ok(());
        }
        // A commit zeroes the header behind its frame, so at most this one is ahead of `tail`.
        let next = tail.wrapping_add(self.checked_size(header)?);
        w.bytes
            .store(w.pending_bytes.load(Ordering::Relaxed), Ordering::Release);
        if header & SPECIAL != 0 {
            w.specials
                .store(specials.load(Ordering::Relaxed), Ordering::Release);
        }
        w.tail.store(next, Ordering::Release);
        Ok(())
    }

    // ---- consumer: under the reader lock ----

    /// Nothing to read at the moment. Needs no lock; a hint without it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let head = &self.state.reader.head;
        let seen = head.load(Ordering::Relaxed);
        // Where another consumer moved on meanwhile, the zero may be payload of a newer frame.
        let empty = self.data.word(seen).load(Ordering::Acquire) == 0
            && head.load(Ordering::Relaxed) == seen;
        if empty {
            // Who looks again soon then has two lines of the next frame on their way at once.
            self.data.prefetch(seen.wrapping_add(LINE));
        }
        empty
    }

    #[inline]
    pub fn head(&self) -> Pos {
        self.state.reader.head.load(Ordering::Acquire)
    }

    /// The unread part of the oldest frame. `None`: empty.
    #[inline(always)]
    pub fn peek(&self) -> Result<Option<Frame>, Corrupt> {
        let mut head = self.state.reader.head.load(Ordering::Relaxed);
        let mut header = self.data.word(head).load(Ordering::Acquire);
        if header == 0 {
            return Ok(None);
        }
        if header & TAKEN != 0 {
            // What a consumer that died left, or nonsense.
            head = self.skip_tombstones();
            header = self.data.word(head).load(Ordering::Acquire);
            if header == 0 {
                return Ok(None);
            }
            if header & TAKEN != 0 {
                return Err(Corrupt);
            }
        }
        self.frame_at(head, header).map(Some)
    }

    /// Copies out of a frame, from `skip` bytes after its first unread one on, without taking. The caller asks for no more
    /// than the frame has.
    #[inline(always)]
    pub fn copy_frame(&self, frame: &Frame, skip: usize, buf: &mut [u8]) {
        let most = buf.len().min(self.capacity());
        self.data
            .copy_out(frame.start.wrapping_add(skip as u64), &mut buf[..most]);
    }

    /// The first eight bytes of a frame of which nothing was taken; what is beyond its end is anything.
    #[inline(always)]
    pub fn first_eight(&self, frame: &Frame) -> [u8; 8] {
        let word = self.data.word(frame.start).load(Ordering::Relaxed);
        word.to_ne_bytes()
    }

    /// Takes `n` bytes of the frame that [`peek`](Ring::peek) showed; the frame goes when all of it is taken.
    #[inline(always)]
    pub fn consume(&self, frame: &Frame, n: usize) {
        if frame.special {
            return self.consume_special(frame.pos, n);
        }
        let r = &self.state.reader;
        let n = n.min(frame.len);
        r.bytes.store(
            r.bytes.load(Ordering::Relaxed).wrapping_add(n as u64),
            Ordering::Relaxed,
        );
        if n < frame.len {
            let taken = (frame.taken + n) as u64;
            r.partial
                .store(partial_word(frame.pos, taken), Ordering::Relaxed);
            return;
        }
        r.messages.store(
            r.messages.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
        r.head.store(frame.next, Ordering::Release);
        if frame.taken > 0 {
            r.partial.store(0, Ordering::Relaxed);
        }
        if r.tombstones.load(Ordering::Relaxed) != 0 {
            self.skip_tombstones();
        }
    }

    /// Copies bytes out across frames until `buf` is full or the ring is empty (byte-stream users).
    #[inline]
    pub fn pop(&self, buf: &mut [u8]) -> Result<usize, Corrupt> {
        self.pop_until(buf, None)
    }

    /// As [`pop`](Ring::pop), but takes no frame that begins at or beyond `end`.
    #[inline]
    pub fn pop_until(&self, buf: &mut [u8], end: Option<Pos>) -> Result<usize, Corrupt> {
        self.take_until(buf.len(), end, |frame, done, n| {
            self.copy_frame(frame, 0, &mut buf[done..done + n]);
        })
    }

    /// As [`pop_until`](Ring::pop_until) with a buffer of `len` bytes, but copies nothing.
    pub fn skip_until(&self, len: usize, end: Option<Pos>) -> Result<usize, Corrupt> {
        self.take_until(len, end, |_, _, _| {})
    }

    /// Takes all that is there away, uncounted: it comes by another way.
    pub fn give_up_unread(&self) -> Result<(), Corrupt> {
        let r = &self.state.reader;
        let counts = [&r.bytes, &r.messages].map(|count| (count, count.load(Ordering::Relaxed)));
        self.skip_until(usize::MAX, None)?;
        for (count, before) in counts {
            count.store(before, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Takes up to `len` bytes across frames; `use_part` sees each frame, how much came before and how much of it is taken.
    #[inline(always)]
    fn take_until(
        &self,
        len: usize,
        end: Option<Pos>,
        mut use_part: impl FnMut(&Frame, usize, usize),
    ) -> Result<usize, Corrupt> {
        let mut done = 0;
        let mut empty = 0;
        while done < len {
            if end.is_some_and(|end| self.state.reader.head.load(Ordering::Relaxed) >= end) {
                break;
            }
            let Some(frame) = self.peek()? else { break };
            let n = frame.len.min(len - done);
            use_part(&frame, done, n);
            self.consume(&frame, n);
            done += n;
            if n == 0 {
                // More empty frames than the ring can hold: a hostile producer could keep us here.
                empty += HEADER;
                if empty > self.data.capacity() {
                    return Err(Corrupt);
                }
            }
        }
        Ok(done)
    }

    /// Bytes published and not yet taken. Needs no lock; a hint without it, but never 0 when a frame with bytes waits.
    pub fn unread(&self) -> usize {
        let taken = self.state.reader.bytes.load(Ordering::Acquire);
        let given = self.state.writer.bytes.load(Ordering::Acquire);
        let unread = given.wrapping_sub(taken);
        if 0 < unread as i64 {
            return unread.min(self.data.capacity()) as usize;
        }
        // The count follows the header: the frame at the head may not be counted yet.
        let first = self.find(|_| true).ok().flatten();
        first.map_or(0, |frame| frame.len)
    }

    /// Bytes and messages ever put in.
    pub fn produced(&self) -> (u64, u64) {
        let w = &self.state.writer;
        (
            w.bytes.load(Ordering::Relaxed),
            w.messages.load(Ordering::Relaxed),
        )
    }

    /// Bytes and messages ever taken out.
    pub fn consumed(&self) -> (u64, u64) {
        let r = &self.state.reader;
        (
            r.bytes.load(Ordering::Relaxed),
            r.messages.load(Ordering::Relaxed),
        )
    }

    // In line with its callers, so that a frame lives in registers.
    #[inline(always)]
    fn frame_at(&self, pos: Pos, header: u64) -> Result<Frame, Corrupt> {
        let next = pos.wrapping_add(self.checked_size(header)?);
        let len = header as u32 as u64;
        let mut meta = Meta {
            kind: (header >> 32) as u8,
            band: (header >> 40) as u8,
            flags: (header >> 48) as u8 & USER_FLAGS,
            control: 0,
        };
        let mut start = pos.wrapping_add(HEADER);
        let mut taken = taken_at(pos, self.state.reader.partial.load(Ordering::Relaxed));
        let (mut special, mut control_taken) = (false, false);
        if header & HAS_CONTROL != 0 {
            let word = self.data.word(start).load(Ordering::Relaxed);
            meta.control = (word as u32 as u64).min(len) as u32;
            start = start.wrapping_add(HEADER);
            special = header & SPECIAL != 0;
            if special {
                (taken, control_taken) = pick::progress(word);
            } else if meta.control == 0 {
                return Err(Corrupt);
            } else {
                control_taken = taken >= meta.control as u64;
            }
        }
        let taken = taken.min(len);
        let start = start.wrapping_add(taken);
        Ok(Frame {
            ptr: self.data.at(start),
            len: (len - taken) as usize,
            meta,
            taken: taken as usize,
            pos,
            special,
            control_taken,
            start,
            next,
        })
    }

    #[inline]
    fn checked_size(&self, header: u64) -> Result<u64, Corrupt> {
        let size = frame_size(header);
        if header & COMMITTED == 0 || size + HEADER > self.data.capacity() {
            return Err(Corrupt);
        }
        Ok(size)
    }
}

#[inline]
fn header_word(len: usize, meta: Meta) -> u64 {
    COMMITTED
        | len as u64
        | (meta.kind as u64) << 32
        | (meta.band as u64) << 40
        | ((meta.flags & USER_FLAGS) as u64) << 48
}

#[inline]
fn frame_size(header: u64) -> u64 {
    let control = if header & HAS_CONTROL != 0 { HEADER } else { 0 };
    HEADER + control + round(header as u32 as u64)
}

#[inline]
fn round(len: u64) -> u64 {
    (len + (HEADER - 1)) & !(HEADER - 1)
}

/// Bits of a partial word that count bytes: enough for any frame of the largest ring.
pub(crate) const TAKEN_BITS: u32 = 26;

/// `taken` bytes of the frame at `head`, in one word, so that a consumer that dies between its stores leaves no count that
/// would be held against the wrong frame.
#[inline]
fn partial_word(head: Pos, taken: u64) -> u64 {
    (head / HEADER) << TAKEN_BITS | taken
}

/// The count of a partial word, if it is about the frame at `head`.
#[inline]
fn taken_at(head: Pos, word: u64) -> u64 {
    let taken = word ^ partial_word(head, 0);
    if taken < 1 << TAKEN_BITS { taken } else { 0 }
}
