//! The sockets that this process looks after: process-local, one entry per open description, never freed.

mod account;
mod closing;
mod entries;
pub mod rest;

use headwater_channel::wait::Learner;
use headwater_host::board::{Offer, Tuple};
use headwater_host::poll::Vain;
use headwater_host::reclaim::Entered;
use headwater_host::sync::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::images;
use crate::record::{self, Record};
use crate::segment::{Mapped, View};
use rest::Rest;

pub use closing::{Closed, Shadow};
pub use entries::{
    ADOPTING, adopt, all, carried, get, handle, is_at, no_room, other_end, take_over,
};

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Phase {
    Free = 0,
    /// A listening socket that is on the board.
    Listener = 1,
    /// A connection (or one in the making) whose data goes by the kernel so far.
    Tracked = 2,
    /// It has a segment; directions switch as the protocol says.
    Carried = 3,
    /// The process has confined itself before the program had read what was in the ring: see confine.rs.
    Rest = 4,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Role {
    Client = 0,
    Server = 1,
}

#[repr(C, align(128))]
pub struct Conn {
    generation: AtomicU32,
    phase: AtomicU32,
    role: AtomicU32,
    record: AtomicU32,
    mapped: AtomicPtr<Mapped>,
    /// The shadow's number; a hidden one once the program closed its own while a call was blocked.
    pub fd: AtomicI32,
    /// Descriptors of this process for it.
    pub refs: AtomicU32,
    /// Calls that wait (see pins.rs).
    pub pins: AtomicU32,
    /// [`Closed`].
    closed: AtomicU32,
    /// Short kernel calls that use the shadow's number right now.
    using: AtomicU32,
    /// Low half of the segment's generation.
    pub segment_generation: AtomicU32,
    /// The offer's board and slot, 16 bits each.
    offer_place: AtomicU32,
    offer_generation: AtomicU32,
    /// Completed operations that moved data, while tracked.
    pub operations: AtomicU32,
    /// Those by the fork that made this process, of a connection that was accepted before, and not carried by then: and one; or 0.
    inherited: AtomicU32,
    /// Operation count at which the takeover is tried next.
    pub next_try: AtomicU32,
    /// Since when the takeover has been looked for in vain; 0: not for long.
    pub in_vain_since: AtomicU64,
    /// Why the last step of the takeover could not be taken yet: a [`Reason`](headwater_host::counters::Reason) + 1.
    held_up: AtomicU32,
    /// How the connection has been counted in this process: [`account::TAKEN`] and its like.
    account_kept: AtomicU32,
    /// When it was made.
    since: AtomicU64,
    /// The peer's `look` as last seen, and that the shadow is to be looked at now.
    pub look_seen: AtomicU32,
    pub look_now: AtomicU32,
    /// When the shadow was last looked at, in coarse milliseconds; and the ring position of the last send.
    pub looked_at: AtomicU64,
    pub head_seen: AtomicU64,
    /// The same when a wait for room began.
    pub head_asleep: AtomicU64,
    /// Of wakes at the own bell.
    pub vain: Vain,
    /// Since when the ring has been full with that position.
    pub full_since: AtomicU64,
    /// The peer's end is gone or done, as far as sending goes.
    pub gone: AtomicU32,
    /// Non-blocking sends that found the ring full: the edge for EPOLLOUT.
    pub full: AtomicU64,
    /// Calls that shut something, and those that told the program of a reset.
    pub shuts: AtomicU32,
    pub resets: AtomicU32,
    /// How often what had arrived before was made an edge again.
    pub told_again: AtomicU32,
    /// How often the kernel was asked what has come, for want of a peer's count.
    counts_asked: AtomicU32,
    /// What an exec that has begun, and closes it, has changed (see life/exec.rs).
    pub closed_by_exec: AtomicU32,
    /// Bytes and messages that this process moved by the rings: out, in.
    moved: [AtomicU64; 4],
    /// What of it its listener's account was credited for, in worth.rs's units.
    credited: AtomicU64,
    pub reading: Learner,
    pub writing: Learner,
    /// Messages out when a reader last waited, and how many waits in a row found that number unchanged.
    sent_at_wait: AtomicU64,
    waits_unanswered: AtomicU32,
    next_free: AtomicU32,
    /// Listener, and what it accepted: its account on the board (see worth.rs), if it has one.
    account: AtomicPtr<AtomicU64>,
    /// Listener: the process that posted it.
    pub posted_by: AtomicU64,
    rest: AtomicPtr<Rest>,
    /// Directions for which a wait of the program was seen (see unseen.rs).
    pub waited: AtomicU32,
    /// When a wait last asked whether the connection still blocks, and how many have asked.
    pub asked_at: AtomicU64,
    pub asked: AtomicU32,
    /// 1: one of them found that it does not.
    pub found_nonblocking: AtomicU32,
    /// See [`is_ours`](Conn::is_ours).
    ours: AtomicU32,
    /// Client: the connection that was offered.
    tuple: [AtomicU64; 6],
    /// The shadow's inode, once it is carried.
    pub inode: AtomicU64,
    /// When a way back to the ring was last looked for (see comeback.rs): out, in.
    pub tried: [AtomicU64; 2],
}

impl Conn {
    #[inline(always)]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            1 => Phase::Listener,
            2 => Phase::Tracked,
            3 => Phase::Carried,
            4 => Phase::Rest,
            _ => Phase::Free,
        }
    }

    /// Is the number one of the library's own (a transport endpoint's), not the program's?
    pub fn is_ours(&self) -> bool {
        self.ours.load(Ordering::Relaxed) != 0
    }

    pub fn make_ours(&self) {
        self.ours.store(1, Ordering::Relaxed);
    }

    /// Is the kernel to be asked once more what has come? A system call at each look, which a peer that never attaches is not worth.
    pub fn asks_for_counts(&self) -> bool {
        const MOST: u32 = 500;
        let asked = self.counts_asked.load(Ordering::Relaxed);
        self.counts_asked
            .store(asked.saturating_add(1), Ordering::Relaxed);
        asked < MOST
    }

    pub fn role(&self) -> Role {
        if self.role.load(Ordering::Relaxed) == Role::Client as u32 {
            Role::Client
        } else {
            Role::Server
        }
    }

    #[inline]
    pub fn record(&self) -> &'static Record {
        record::get(self.record.load(Ordering::Relaxed))
    }

    pub fn record_index(&self) -> u32 {
        self.record.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn fd(&self) -> i32 {
        self.fd.load(Ordering::Relaxed)
    }

    /// The shared side of a carried connection, for as long as this thread has entered. For longer only who has [pinned](crate::pins::pin)
    /// it, and goes on [at rest](Entered::rest).
    #[inline(always)]
    pub fn view(&self, _looks: &Entered) -> Option<View<'static>> {
        // SAFETY: what is found from here on stays until the look ends: segments are retired after they were taken out of the entry.
        unsafe { self.view_held() }
    }

    /// As [`view`](Conn::view), for who holds it.
    ///
    /// # Safety
    /// Until the last use of the view this thread has entered, or the connection can't be [abandoned](Conn::abandon) by anybody else: it is
    /// pinned, or the caller is the one who ends it.
    #[inline(always)]
    pub unsafe fn view_held(&self) -> Option<View<'static>> {
        if self.phase.load(Ordering::Acquire) != Phase::Carried as u32 {
            return None;
        }
        let at = self.mapped.load(Ordering::Acquire);
        // SAFETY: null, or a segment that stays for as long as the caller says (see link.rs).
        let mapped = unsafe { at.as_ref() }?;
        Some(View {
            header: mapped.header(),
            generation: self.segment_generation.load(Ordering::Relaxed) as u16,
            mapped,
            record: self.record(),
            end: self.role.load(Ordering::Relaxed) as usize & 1,
        })
    }

    /// The kernel serves it from now on, once the program has had `rest`.
    pub fn keep_rest(&self, rest: &'static Rest) {
        self.rest
            .store(rest as *const Rest as *mut Rest, Ordering::Release);
        self.phase.store(Phase::Rest as u32, Ordering::Release);
    }

    /// Something to send found no room, or a direction was shut: that there is room again will be an edge.
    pub fn note_full(&self) {
        self.full.fetch_add(1, Ordering::Relaxed);
    }

    /// A call ends so: that there was a reset may be an edge which its error no longer shows.
    pub fn ends_with(&self, errno: i32) {
        if errno == libc::ECONNRESET {
            self.resets.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn rest(&self) -> Option<&'static Rest> {
        if self.phase() != Phase::Rest {
            return None;
        }
        // SAFETY: rests are never freed.
        unsafe { self.rest.load(Ordering::Acquire).as_ref() }
    }

    pub fn offer(&self) -> Option<Offer> {
        let generation = self.offer_generation.load(Ordering::Relaxed);
        let place = self.offer_place.load(Ordering::Relaxed);
        (generation != 0).then_some(Offer {
            slot: place & 0xffff,
            generation,
            board: place >> 16,
        })
    }

    pub fn set_offer(&self, offer: Option<Offer>) {
        if let Some(o) = offer {
            self.offer_place
                .store(o.board << 16 | o.slot, Ordering::Relaxed);
        }
        self.offer_generation
            .store(offer.map_or(0, |o| o.generation), Ordering::Relaxed);
    }

    pub fn set_tuple(&self, tuple: &Tuple) {
        for (word, value) in self.tuple.iter().zip(tuple.words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    pub fn tuple(&self) -> [u64; 6] {
        self.tuple.each_ref().map(|w| w.load(Ordering::Relaxed))
    }

    /// From now on the connection has rings.
    pub fn carry(&self, mapped: &'static Mapped) {
        let generation = mapped.header().generation.load(Ordering::Relaxed);
        self.segment_generation.store(generation, Ordering::Relaxed);
        self.mapped
            .store(mapped as *const Mapped as *mut Mapped, Ordering::Release);
        self.phase.store(Phase::Carried as u32, Ordering::Release);
        self.account_kept.store(account::TAKEN, Ordering::Relaxed);
        headwater_host::signal::guard_copies();
    }

    /// Is this still the connection that `v` is of, and not ended?
    #[inline]
    pub fn serves(&self, v: &View<'_>) -> bool {
        // In this order: `adopt` opens an entry after it has taken the old segment away.
        self.closed.load(Ordering::Acquire) != Closed::Ended as u32
            && self.segment_generation.load(Ordering::Relaxed) as u16 == v.generation
            && core::ptr::eq(self.mapped.load(Ordering::Acquire), v.mapped)
            // No number was left to keep it by.
            && self.fd() >= 0
    }

    pub fn is_nonblocking(&self) -> bool {
        self.record().has(record::NONBLOCK)
    }

    /// The last descriptor of this process is gone: the entry is free for another socket.
    #[unsafe(link_section = ".text.life")]
    pub fn abandon(&self) {
        self.count_traffic();
        let record = self.record.load(Ordering::Relaxed);
        let r = record::get(record);
        self.mapped.store(core::ptr::null_mut(), Ordering::Release);
        self.phase.store(Phase::Free as u32, Ordering::Release);
        let generation = self.generation.load(Ordering::Relaxed);
        // Generation 0 never stands in a handle.
        let next = if generation >= 0xff_ffff {
            1
        } else {
            generation + 1
        };
        self.generation.store(next, Ordering::Release);
        if images::is_out(r) {
            images::leave_record(record);
        } else if r.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            record::free(record);
        }
        entries::give_back(self);
    }
}
