//! The messages that can be read at a head, in the order in which they are: high priority, then bands from 255 down,
//! then ordinary ones. They lie in a pipe's ring or in a queue; reading and getmsg are the same for both.

use headwater_channel::ring::{Corrupt, Frame, Ring};
use headwater_host::process;
use headwater_host::sync::AtomicU32;
use headwater_host::sys::Errno;
use libc::iovec;

use super::Head;
use crate::ddi as kind;
use crate::pipe::section;
use crate::tunables;

/// Flags of a frame that is not a plain one.
pub mod flag {
    /// The message has a control part only.
    pub const NO_DATA: u8 = 1;
    /// MSGMARK, MSGDELIM.
    pub const MARK: u8 = 2;
    pub const DELIM: u8 = 4;
    /// The data part is in a memfd that comes by the shadow.
    pub const EXTERNAL: u8 = 8;
}

/// The first message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Front {
    /// M_DATA, M_PROTO, M_PCPROTO or M_PASSFP.
    pub kind: u8,
    pub band: u8,
    /// Lengths of what is left of its parts; `None`: it has no such part.
    pub control: Option<usize>,
    pub data: Option<usize>,
    pub mark: bool,
    pub delim: bool,
}

impl Front {
    pub fn is_high(&self) -> bool {
        self.kind == kind::M_PCPROTO
    }
    /// Bytes of both parts.
    pub fn total(&self) -> usize {
        self.control.unwrap_or(0) + self.data.unwrap_or(0)
    }
}

/// What can't be done in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The message must be moved into a queue first.
    NeedsQueue,
    Fails(Errno),
}

/// Where messages are read from. All calls inside the section or perimeter that protects it.
pub trait Inlet {
    /// The first message; `None`: nothing to read.
    fn front(&mut self) -> Result<Option<Front>, Trouble>;
    /// Shows every message that waits, in some order.
    fn each(&self, f: &mut dyn FnMut(&Front)) -> Result<(), Trouble>;
    /// Copies the front's bytes, control part first, from `skip` on.
    fn copy(&self, skip: usize, buf: &mut [u8]);
    /// Takes so many bytes of each part off the front. A part that is `Some` and wholly taken is gone, and the message
    /// when no part is left. `NeedsQueue` if it can't be taken apart like that; then nothing was taken.
    fn take(&mut self, control: Option<usize>, data: Option<usize>) -> Result<(), Trouble>;
    /// There is no front, but a message may wait where it is left to others as long as this process does not take it: makes it
    /// the front if it is one that `wanted` likes.
    fn fetch(&mut self, wanted: &dyn Fn(&Front) -> bool) -> bool {
        let _ = wanted;
        false
    }
}

/// The ring of a pipe without queues.
pub struct RingInlet<'a> {
    ring: Ring<'a>,
    bands: &'a [AtomicU32; 256],
    frame: Option<Frame>,
    /// A band that was full has room again.
    pub opened: bool,
}

impl<'a> RingInlet<'a> {
    pub fn new(ring: Ring<'a>, bands: &'a [AtomicU32; 256]) -> RingInlet<'a> {
        RingInlet {
            ring,
            bands,
            frame: None,
            opened: false,
        }
    }

    fn first_by_priority(&self) -> Result<Option<Frame>, Trouble> {
        match first_by_rank(&self.ring, |_| true).map_err(corrupt)? {
            // Something for the head itself, such as M_FLUSH from a module at the other end.
            Some(frame) if !is_readable(frame.meta.kind) => Err(Trouble::NeedsQueue),
            first => Ok(first),
        }
    }
}

/// Of the frames that may pass the one that a queue would have in front; but what is for the head itself when its turn comes.
pub fn first_by_rank(
    ring: &Ring<'_>,
    may_pass: impl Fn(&Frame) -> bool,
) -> Result<Option<Frame>, Corrupt> {
    let mut first: Option<(u16, u64)> = None;
    let for_head = ring.find(|f| {
        if !may_pass(f) {
            return false;
        }
        if !is_readable(f.meta.kind) {
            return true;
        }
        let rank = rank(f.meta.kind, f.meta.band);
        if first.is_none_or(|(best, _)| rank > best) {
            first = Some((rank, f.pos));
        }
        false
    })?;
    match (for_head, first) {
        (Some(frame), _) => Ok(Some(frame)),
        (None, Some((_, pos))) => ring.find(|f| f.pos == pos),
        (None, None) => Ok(None),
    }
}

/// Its place in the order of a queue.
pub fn rank(kind: u8, band: u8) -> u16 {
    if kind == kind::M_PCPROTO {
        256
    } else {
        band as u16
    }
}

fn corrupt(_: Corrupt) -> Trouble {
    Trouble::Fails(libc::EPROTO)
}

/// A message for the reader, rather than for the head?
pub fn is_readable(k: u8) -> bool {
    matches!(
        k,
        kind::M_DATA | kind::M_PROTO | kind::M_PCPROTO | kind::M_PASSFP
    )
}

/// What a frame is as a message.
pub fn front_of(f: &Frame) -> Front {
    if !f.special {
        return Front {
            data: Some(f.len),
            ..Front::default()
        };
    }
    let flags = f.meta.flags;
    let proto = matches!(f.meta.kind, kind::M_PROTO | kind::M_PCPROTO);
    let control = f.control_left();
    Front {
        kind: f.meta.kind,
        band: f.meta.band,
        control: proto.then_some(control),
        data: (flags & flag::NO_DATA == 0).then_some(f.len - control),
        mark: flags & flag::MARK != 0,
        delim: flags & flag::DELIM != 0,
    }
}

impl Inlet for RingInlet<'_> {
    fn front(&mut self) -> Result<Option<Front>, Trouble> {
        let frame = if self.ring.specials() == 0 {
            self.ring.peek().map_err(corrupt)?
        } else {
            self.first_by_priority()?
        };
        let front = frame.as_ref().map(front_of);
        if let Some(f) = &frame
            && f.special
            && f.meta.flags & flag::EXTERNAL != 0
        {
            return Err(Trouble::NeedsQueue);
        }
        self.frame = frame;
        Ok(front)
    }

    fn each(&self, f: &mut dyn FnMut(&Front)) -> Result<(), Trouble> {
        let odd = |f: &Frame| !is_readable(f.meta.kind) || f.meta.flags & flag::EXTERNAL != 0;
        if self.ring.specials() > 0 && self.ring.find(odd).map_err(corrupt)?.is_some() {
            return Err(Trouble::NeedsQueue);
        }
        let walked = self.ring.find(|frame| {
            f(&front_of(frame));
            false
        });
        walked.map(drop).map_err(corrupt)
    }

    fn copy(&self, skip: usize, buf: &mut [u8]) {
        if let Some(f) = &self.frame {
            let n = buf.len().min(f.len.saturating_sub(skip));
            self.ring.copy_frame(f, skip, &mut buf[..n]);
        }
    }

    fn take(&mut self, control: Option<usize>, data: Option<usize>) -> Result<(), Trouble> {
        let Some(f) = self.frame.take() else {
            return Ok(());
        };
        if control.is_none() && data.is_none() {
            return Ok(());
        }
        let front = front_of(&f);
        let whole = (front.control.is_none() || control == front.control)
            && (front.data.is_none() || data == front.data);
        if whole {
            if f.special && f.meta.band > 0 {
                self.opened |= leave_band(&self.bands[f.meta.band as usize], front.total());
            }
            self.ring.take(&f);
            return Ok(());
        }
        if f.special {
            self.frame = Some(f);
            return Err(Trouble::NeedsQueue);
        }
        self.ring.take_part(&f, data.unwrap_or(0));
        Ok(())
    }
}

/// In the word that counts a band's bytes: it was full, and is until it falls to the low-water mark.
const BAND_FULL: u32 = 1 << 31;

/// A message of no bytes counts too.
fn weight(len: usize) -> u32 {
    len.max(1) as u32
}

/// A message goes into a band. Before it is published: a reader may take it, and count it out, at once.
pub fn enter_band(word: &AtomicU32, len: usize) {
    word.fetch_add(weight(len), Relaxed);
}

/// A message was taken out of a band. True if the band was full and has room again: who waits for that is to be woken, however
/// full the ring is of other bands.
#[must_use]
pub fn leave_band(word: &AtomicU32, len: usize) -> bool {
    let low = tunables::get().lowat as u32;
    let left = |old: u32| {
        let left = (old & !BAND_FULL).saturating_sub(weight(len));
        let full = if left > low { old & BAND_FULL } else { 0 };
        left | full
    };
    let old = word.fetch_update(Relaxed, Relaxed, |old| Some(left(old)));
    old.is_ok_and(|old| old & BAND_FULL != 0 && left(old) & BAND_FULL == 0)
}

/// A band was emptied. True as of [`leave_band`].
#[must_use]
pub fn empty_band(word: &AtomicU32) -> bool {
    word.swap(0, Relaxed) & BAND_FULL != 0
}

/// Is a band full? It is from the high-water mark on, until it has fallen to the low one.
pub fn is_full(word: &AtomicU32) -> bool {
    let high = tunables::get().hiwat;
    // Said of the count that was seen: on one that has fallen meanwhile it would stay, with nothing left to take it back.
    let marked = word.fetch_update(Relaxed, Relaxed, |now| {
        (now & BAND_FULL == 0 && now as usize >= high).then_some(now | BAND_FULL)
    });
    marked.map_or_else(|now| now & BAND_FULL != 0, |_| true)
}

/// The program's buffers, filled one after the other.
pub struct Sink<'a> {
    iov: &'a [iovec],
    skip: usize,
    left: usize,
}

impl<'a> Sink<'a> {
    #[inline(always)]
    pub fn new(iov: &'a [iovec]) -> Sink<'a> {
        let left = iov.iter().map(|v| v.iov_len).sum();
        Sink { iov, skip: 0, left }
    }

    /// Of which `done` bytes are filled.
    pub fn behind(iov: &'a [iovec], done: usize) -> Sink<'a> {
        let mut sink = Sink::new(iov);
        sink.left -= done;
        sink.skip = done;
        while let Some(v) = sink.iov.first()
            && sink.skip >= v.iov_len
        {
            sink.skip -= v.iov_len;
            sink.iov = &sink.iov[1..];
        }
        sink
    }

    #[inline(always)]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Copies `n` unread bytes of a frame in, from `skip` on. The caller asks for no more than there are and fit.
    #[inline(always)]
    pub fn fill(&mut self, ring: &Ring<'_>, frame: &Frame, skip: usize, n: usize) {
        // Not as a closure, which is no part of its caller any more where several make the same.
        if let [v] = self.iov {
            if let Some(to) = part(*v, self.skip, n) {
                ring.copy_frame(frame, skip, to);
            }
            self.skip += n;
            self.left -= n;
        } else {
            self.fill_by(skip, n, |skip, to| ring.copy_frame(frame, skip, to));
        }
    }

    /// The same of whatever `copy` copies from.
    #[inline(always)]
    pub fn fill_by(&mut self, skip: usize, n: usize, mut copy: impl FnMut(usize, &mut [u8])) {
        if let [v] = self.iov {
            if let Some(to) = part(*v, self.skip, n) {
                copy(skip, to);
            }
            self.skip += n;
        } else {
            self.fill_parts(skip, n, copy);
        }
        self.left -= n;
    }

    #[inline(never)]
    fn fill_parts(
        &mut self,
        mut skip: usize,
        mut n: usize,
        mut copy: impl FnMut(usize, &mut [u8]),
    ) {
        while n > 0
            && let Some(v) = self.iov.first()
        {
            let some = (v.iov_len - self.skip).min(n);
            if let Some(to) = part(*v, self.skip, some) {
                copy(skip, to);
            }
            n -= some;
            skip += some;
            self.skip += some;
            if self.skip == v.iov_len {
                self.iov = &self.iov[1..];
                self.skip = 0;
            }
        }
    }
}

/// `n` bytes of the buffer, which has room for them behind its first `at`.
#[inline(always)]
fn part<'a>(v: iovec, at: usize, n: usize) -> Option<&'a mut [u8]> {
    // SAFETY: the program's buffer, as readv(2) or t_rcvv(3) wants it; a sink's methods, which alone come here, count what room it
    // has. An empty piece may have any address.
    (n > 0).then(|| unsafe { core::slice::from_raw_parts_mut((v.iov_base as *mut u8).add(at), n) })
}

use headwater_host::sync::Ordering::Relaxed;

/// Takes every message that can be flushed out of a ring. True if a band that was full has room again.
pub fn flush_ring(head: &Head, out: bool, band: Option<u8>) -> bool {
    let _quiet = process::Quiet::new();
    let ring = if out {
        head.outgoing()
    } else {
        head.incoming()
    };
    let Some(section) = section::reading(&ring) else {
        return false;
    };
    let counts = head.band_bytes(out);
    let mut opened = false;
    while let Ok(Some(frame)) = ring.find(|f| {
        // Band 0 has the high-priority messages too, as flushband(9F) says.
        f.meta.kind != kind::M_PASSFP && band.is_none_or(|b| f.meta.band == b)
    }) {
        if frame.meta.band > 0 {
            opened |= empty_band(&counts[frame.meta.band as usize]);
        }
        ring.take(&frame);
    }
    drop(section);
    if out && (ring.wakes_writer() || opened && ring.wakes_any_writer()) {
        // Whoever holds our end and waits for room.
        head.ring_own();
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_that_is_empty_is_never_full() {
        let word = AtomicU32::new(0);
        let over = AtomicU32::new(0);
        let len = tunables::get().hiwat;
        let mut stuck = 0;
        std::thread::scope(|s| {
            s.spawn(|| {
                while over.load(Relaxed) == 0 {
                    is_full(&word);
                }
            });
            for _ in 0..2_000_000 {
                enter_band(&word, len);
                let _ = leave_band(&word, len);
                stuck += (word.load(Relaxed) != 0) as u32;
            }
            over.store(1, Relaxed);
        });
        assert_eq!(stuck, 0);
    }
}
