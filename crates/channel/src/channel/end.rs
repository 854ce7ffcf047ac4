//! The words of a segment that belong to an end, and what this process has seen of its peer.

use core::mem::offset_of;

use crate::identity;
use crate::lock::Owner;
use crate::ring::RingState;
use crate::shm::SharedSafe;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Exchange, Ordering, fence};
use crate::{bell, sys};

use super::Channel;

/// The layout's version and its size, so that another layout is never mapped by mistake.
pub const ABI: u32 = 2 << 16 | size_of::<Header>() as u32;

/// What lies behind the segment's preamble. Ring 0 carries what side 0 sends.
#[derive(SharedSafe)]
#[repr(C)]
pub struct Header {
    pub rings: [RingState; 2],
    pub ends: [EndLine; 2],
    pub cpus: [CpuLine; 2],
}

/// Written rarely by the end it belongs to; looked at by both with each call.
#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct EndLine {
    /// The process that used the end first.
    user: AtomicU64,
    /// Several processes use the end: then a kill can swallow a wake-up, and sleeps are cut into slices.
    shared: AtomicU32,
    /// Nothing more will be sent.
    finished: AtomicU32,
    /// How often a holder has closed the end; a hint to look at the shadow.
    departures: AtomicU32,
}

/// Where an end last ran, plus one; 0 when unknown. Written only when it changes, on a line of its own.
#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct CpuLine {
    cpu: AtomicU32,
}

const _: () = {
    assert!(size_of::<Header>() == 1280);
    assert!(offset_of!(Header, rings) == 0);
    assert!(offset_of!(Header, ends) == 768);
    assert!(offset_of!(Header, cpus) == 1024);
};

/// What this process has seen of the peer; once true, for good.
#[derive(Default)]
pub struct Seen {
    /// Nobody holds the other end.
    gone: AtomicBool,
    /// The other end sends nothing more.
    finished: AtomicBool,
    departures: AtomicU32,
    looks_skipped: AtomicU32,
}

/// A call that does not wait and finds nothing looks at the shadow once in so many times: a killed peer leaves no hint.
const LOOK_EVERY: u32 = 64;

impl EndLine {
    /// A holder has closed the end.
    pub fn leave(&self) {
        self.departures.fetch_add(1, Ordering::Release);
    }

    pub fn finish(&self) {
        self.finished.store(1, Ordering::Release);
    }

    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire) != 0
    }

    /// The user hands the end on.
    pub fn disown(&self, me: Owner) {
        let _ = self
            .user
            .compare_exchange(me.bits(), 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Channel {
    /// Begins a call: tells the peer where we run, and everybody when the end is shared.
    #[inline]
    pub(super) fn enter(&self) -> Owner {
        let me = identity::me();
        let (header, i) = (self.header(), self.side.index());
        if header.ends[i].user.load(Ordering::Relaxed) != me.bits() {
            self.announce(me);
        }
        let cpu = sys::cpu().wrapping_add(1);
        header.cpus[i].cpu.change_to(cpu);
        me
    }

    /// Where the peer last ran; `u32::MAX` when unknown.
    #[inline]
    pub(super) fn peer_cpu(&self) -> u32 {
        let line = &self.header().cpus[self.side.peer().index()];
        line.cpu.load(Ordering::Relaxed).wrapping_sub(1)
    }

    pub(super) fn peer_end(&self) -> &EndLine {
        &self.header().ends[self.side.peer().index()]
    }

    pub(super) fn own_end(&self) -> &EndLine {
        &self.header().ends[self.side.index()]
    }

    /// Does either end belong to several processes?
    pub(super) fn is_shared(&self) -> bool {
        let ends = &self.header().ends;
        ends.iter().any(|e| e.shared.load(Ordering::Relaxed) != 0)
    }

    /// Can nothing more come? Ask before looking at the ring: what the peer sent before it left is there then.
    #[inline]
    pub(super) fn peer_finished(&self) -> bool {
        self.seen.gone.load(Ordering::Acquire)
            || self.seen.finished.load(Ordering::Acquire)
            || self.peer_end().is_finished()
    }

    /// Is nobody there to receive, as far as is known?
    #[inline]
    pub(super) fn peer_gone(&self) -> bool {
        let departures = self.peer_end().departures.load(Ordering::Acquire);
        if departures != self.seen.departures.load(Ordering::Relaxed) {
            self.seen.departures.store(departures, Ordering::Relaxed);
            self.look();
        }
        self.seen.gone.load(Ordering::Acquire)
    }

    /// For a call that found nothing and will not wait: looks at the shadow when there is a reason to, or now and then.
    /// True when it shows that nothing more will come.
    pub(super) fn look_sometimes(&self) -> bool {
        let skipped = self.seen.looks_skipped.fetch_add(1, Ordering::Relaxed);
        if !self.peer_gone() && skipped % LOOK_EVERY == LOOK_EVERY - 1 {
            self.look();
        }
        self.peer_finished()
    }

    /// Asks the kernel whether the other end is still held.
    fn look(&self) {
        let mut fds = [self.poll_shadow(true)];
        if sys::ppoll(&mut fds, Some(0)).is_ok() {
            self.note_shadow(fds[0].revents);
        }
    }

    pub(super) fn poll_shadow(&self, end_of_data: bool) -> libc::pollfd {
        libc::pollfd {
            fd: self.shadow(),
            // POLLHUP is always reported.
            events: if end_of_data { libc::POLLRDHUP } else { 0 },
            revents: 0,
        }
    }

    pub(super) fn note_shadow(&self, revents: i16) {
        if revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
            self.seen.gone.store(true, Ordering::Release);
        }
        if revents & libc::POLLRDHUP != 0 {
            self.seen.finished.store(true, Ordering::Release);
        }
        // What the peer published before the kernel told us is looked at after this.
        fence(Ordering::SeqCst);
    }

    #[cold]
    fn announce(&self, me: Owner) {
        let end = self.own_end();
        let first = end
            .user
            .compare_exchange(0, me.bits(), Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() || end.shared.swap(1, Ordering::SeqCst) != 0 {
            return;
        }
        // Sleepers learn that they must sleep in slices from now on.
        bell::ring(self.own_bell());
        bell::ring(self.peer_bell());
    }
}
