//! The rings of a head for transport providers, which know frames of their own.
//!
//! Everything here is called with signal handlers put off: a sleeping peer is rung after the ring's lock was left.

use headwater_channel::ring::{Corrupt, Ring};
use headwater_host::sync::Ordering;
use headwater_host::sys::{self, Errno};

use super::{Head, copying};
use crate::pipe::section::{self, Section};
use crate::pipe::words::{HeadWords, state};
use crate::pipe::{LIMIT, LOW};

impl HeadWords {
    #[inline(always)]
    fn marks(&self) -> (usize, usize) {
        match self.limit.load(Ordering::Relaxed) {
            0 => (LIMIT, LOW),
            limit => (limit as usize, self.low.load(Ordering::Relaxed) as usize),
        }
    }
}

impl Head {
    /// `f` puts frames into the outgoing ring, under its writer lock. EPROTO: what the peer wrote there makes no sense.
    #[inline(always)]
    pub fn put_frames<T>(
        &self,
        f: impl FnOnce(&Ring<'_>) -> Result<T, Corrupt>,
    ) -> Result<T, Errno> {
        let ring = self.outgoing();
        let section = self.begin_writing(&ring)?;
        let done = f(&ring);
        drop(section);
        self.ring_peer_for_data(&ring);
        done.map_err(|_| self.spoiled())
    }

    /// `f` takes frames from the incoming ring, under its reader lock. EPROTO as above.
    #[inline(always)]
    pub fn take_frames<T>(
        &self,
        f: impl FnOnce(&Ring<'_>) -> Result<T, Corrupt>,
    ) -> Result<T, Errno> {
        let ring = self.incoming();
        let section = self.taking(&ring)?;
        let done = f(&ring);
        self.taken(&ring, section, done)
    }

    /// Begins, at the incoming ring, what [`taken`](Head::taken) ends: for who has no closure, since the compiler puts none into each
    /// of several callers.
    #[inline(always)]
    pub fn taking<'a>(&self, ring: &Ring<'a>) -> Result<Section<'a>, Errno> {
        section::reading(ring).ok_or_else(|| self.spoiled())
    }

    #[inline(always)]
    pub fn taken<T>(
        &self,
        ring: &Ring<'_>,
        section: Section<'_>,
        done: Result<T, Corrupt>,
    ) -> Result<T, Errno> {
        drop(section);
        self.ring_peer_for_room(ring);
        done.map_err(|_| self.spoiled())
    }

    /// High and low water mark of what a transport endpoint sends.
    #[inline(always)]
    pub fn transport_marks(&self) -> (usize, usize) {
        self.words().marks()
    }

    /// Is there anything that the user of a transport endpoint is to see? Not data below its low-water mark, unless that is all the
    /// peer may send, or something else is behind it.
    #[inline(always)]
    pub fn has_visible(&self) -> bool {
        let ring = self.incoming();
        if ring.is_empty() {
            return false;
        }
        match self.words().receive_low.load(Ordering::Relaxed) {
            0 | 1 => true,
            low => ring.specials() > 0 || ring.unread() >= low as usize || self.is_all(),
        }
    }

    /// Can't the peer send any more now?
    #[cold]
    fn is_all(&self) -> bool {
        let marks = self.peer_words().map_or((LIMIT, LOW), HeadWords::marks);
        // What is refused is as large as it likes: less than the marks may lie there then.
        let ring = self.incoming();
        self.has_hung_up() || ring.was_refused() || ring.is_full_hint(marks.0, marks.1)
    }

    /// The other end sees a hangup, though its socket stays: after the last frame, before its reader is rung.
    pub fn hang_up_peer(&self) {
        if let Some(words) = self.peer_words() {
            words.set(state::HANGUP);
        }
    }

    /// Rings a peer that waits for room, and would not be rung for data.
    pub fn ring_peer_that_sends(&self) {
        if self.incoming().writers().any() {
            self.ring_peer();
        }
    }

    /// How a message of this length is copied into the ring: `None`, the usual way.
    #[inline(always)]
    pub fn plan_copy(&self, len: usize) -> Option<copying::Plan> {
        (len >= copying::LONG && self.peer_cpu() != sys::cpu()).then(|| self.copying.plan())
    }

    /// Data was sent: what comes next may be its answer.
    #[inline(always)]
    pub fn note_sent(&self) {
        if self.unanswered.load(Ordering::Relaxed) != 0 {
            self.unanswered.store(0, Ordering::Relaxed);
        }
    }
}
