//! The sockets that this process looks after: process-local, one entry per open description, never freed.

use core::mem::MaybeUninit;
use std::sync::OnceLock;

use headwater_channel::lock::Lock;
use headwater_channel::wait::Learner;
use headwater_host::board::{Offer, Tuple};
use headwater_host::counters::{self, Counter, Reason};
use headwater_host::sync::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{memory, process, sys};

use crate::confine::Rest;
use crate::lend;
use crate::record::{self, Record};
use crate::segment::{Mapped, View};
use crate::worth;

const CONNS: usize = 1 << 16;
/// Those that are there from the beginning: most programs have no more.
const NEAR: usize = 64;
/// Waits without a message in the other direction, after which a connection counts as a one-way stream.
const UNANSWERED: u32 = 8;

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

/// Of a carried connection: this process took it over; it counts as accelerated; it counts as one that fell back.
const TAKEN: u32 = 1;
const MOVED: u32 = 2;
const FELL: u32 = 4;

/// What ended with few calls lived short until this age, in nanoseconds.
const SHORT: u64 = 1_000_000_000;

/// How far a connection is with its end in this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Closed {
    Open = 0,
    /// The program closes its last descriptor just now.
    Closing = 1,
    /// It has, while calls were waiting: the last of them ends the connection.
    Left = 2,
    Ended = 3,
    /// Open, and a thread takes a step of its takeover; short, and no handler runs in it.
    Taking = 4,
}

/// The shadow's number, which stays the shadow's while this is held. For short kernel calls only; no signal handler runs
/// meanwhile.
pub struct Shadow<'a> {
    conn: &'a Conn,
    _quiet: process::Quiet,
}

impl Shadow<'_> {
    pub fn fd(&self) -> i32 {
        self.conn.fd()
    }
}

impl Drop for Shadow<'_> {
    fn drop(&mut self) {
        self.conn.using.fetch_sub(1, Ordering::Release);
    }
}

/// How long somebody who moves a number is waited for, or one who uses it: both take microseconds.
const PATIENCE: u64 = 20_000_000;

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
    /// Why the last step of the takeover could not be taken yet: a [`Reason`] + 1.
    held_up: AtomicU32,
    /// How the connection has been counted in this process: [`TAKEN`] and its like.
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
    /// What an exec that has begun, and closes it, has changed (see life.rs).
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

/// Writes only what changes: in a child of fork the first write to a page copies it.
fn clear(word: &AtomicU32) {
    if word.load(Ordering::Relaxed) != 0 {
        word.store(0, Ordering::Relaxed);
    }
}

/// Yields; false once that has gone on for long.
fn patient(begun: &mut u64) -> bool {
    let now = sys::now();
    if *begun == 0 {
        *begun = now;
    }
    std::thread::yield_now();
    now - *begun < PATIENCE
}

/// Held over fork, so that no child sees half an adoption.
#[unsafe(link_section = ".data")]
static ADOPTING: Lock = Lock::new();

pub fn before_fork() {
    process::hold_over_fork(&ADOPTING);
}

pub fn after_fork() {
    process::let_go_after_fork(&ADOPTING);
}

headwater_host::large! {
    static FIRST: MaybeUninit<[Conn; NEAR]> = MaybeUninit::zeroed();
}
static REST: OnceLock<Option<&'static [Conn; CONNS - NEAR]>> = OnceLock::new();
#[unsafe(link_section = ".data")]
static TOP: AtomicU32 = AtomicU32::new(0);
/// {tag: 32, index + 1: 32}
#[unsafe(link_section = ".data")]
static FREE: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
fn first() -> &'static [Conn; NEAR] {
    // SAFETY: all zeroes is a valid entry.
    unsafe { FIRST.assume_init_ref() }
}

#[cold]
fn rest() -> Option<&'static [Conn; CONNS - NEAR]> {
    *REST.get_or_init(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let size = size_of::<[Conn; CONNS - NEAR]>();
        // SAFETY: a fresh mapping, never unmapped; all zeroes is a valid entry.
        unsafe {
            sys::mmap(0, size, rw, flags, -1, 0)
                .ok()
                .map(|at| &*at.cast())
        }
    })
}

/// Where the first ones stand: from the end, beside the first words of the descriptor table, which are touched as soon.
#[inline(always)]
fn near(index: usize) -> Option<usize> {
    (NEAR - 1).checked_sub(index)
}

#[inline(always)]
fn at(index: usize) -> Option<&'static Conn> {
    match near(index) {
        Some(seat) => Some(&first()[seat]),
        None => rest()?.get(index - NEAR),
    }
}

/// The entry behind a handle; `None` when it has gone to another socket.
#[inline(always)]
pub fn get(h: Handle) -> Option<&'static Conn> {
    let c = at(h.index())?;
    (c.generation.load(Ordering::Acquire) == h.generation()).then_some(c)
}

/// Does the number `fd` stand for `c`?
pub fn is_at(fd: i32, c: &Conn) -> bool {
    table::socket(fd)
        .and_then(get)
        .is_some_and(|x| core::ptr::eq(x, c))
}

/// Begins to look after `fd`. `None`: no room, the socket stays foreign.
pub fn adopt(fd: i32, phase: Phase, role: Role) -> Option<&'static Conn> {
    if memory::is_scarce() {
        return None;
    }
    lend::prepare();
    let _section = process::lock_own(&ADOPTING);
    let record = record::allocate()?;
    let Some((index, c)) = fresh(fd, role, record) else {
        record::free(record);
        return None;
    };
    c.phase.store(phase as u32, Ordering::Release);
    let h = Handle::new(Kind::Socket, c.generation.load(Ordering::Relaxed), index);
    if !table::set(fd, h) {
        c.abandon();
        return None;
    }
    Some(c)
}

/// Why [`adopt`] had none.
pub fn no_room() -> Reason {
    if memory::is_scarce() {
        Reason::NoMemory
    } else {
        Reason::TableFull
    }
}

/// An entry for a connection that another image has carried; its numbers are the caller's to enter.
pub fn take_over(
    fd: i32,
    role: Role,
    record: u32,
    mapped: &'static Mapped,
    generation: u32,
) -> Option<&'static Conn> {
    lend::prepare();
    let _section = process::lock_own(&ADOPTING);
    let (_, c) = fresh(fd, role, record)?;
    c.segment_generation.store(generation, Ordering::Relaxed);
    c.mapped
        .store(mapped as *const Mapped as *mut Mapped, Ordering::Release);
    c.phase.store(Phase::Carried as u32, Ordering::Release);
    Some(c)
}

/// What stands in the table for an entry.
pub fn handle(c: &Conn) -> Handle {
    Handle::new(Kind::Socket, c.generation.load(Ordering::Relaxed), place(c))
}

fn place(c: &Conn) -> u32 {
    let within = |all: &[Conn]| {
        let range = all.as_ptr_range();
        range.contains(&(c as *const Conn)).then(|| {
            let bytes = c as *const Conn as usize - range.start as usize;
            bytes / size_of::<Conn>()
        })
    };
    let of_rest = || Some(NEAR + within(rest()?)?);
    within(first())
        .and_then(near)
        .or_else(of_rest)
        .unwrap_or(CONNS) as u32
}

/// An unused entry, as a new connection's; its phase is still the caller's to set.
fn fresh(fd: i32, role: Role, record: u32) -> Option<(u32, &'static Conn)> {
    let (index, c) = take()?;
    for word in [
        &c.operations,
        &c.inherited,
        &c.look_seen,
        &c.look_now,
        &c.gone,
        &c.closed,
        &c.ours,
        &c.waited,
        &c.asked,
        &c.found_nonblocking,
        &c.held_up,
        &c.account_kept,
    ] {
        word.store(0, Ordering::Relaxed);
    }
    for word in [
        &c.looked_at,
        &c.head_seen,
        &c.head_asleep,
        &c.full_since,
        &c.full,
        &c.posted_by,
        &c.sent_at_wait,
        &c.credited,
    ] {
        word.store(0, Ordering::Relaxed);
    }
    for word in &c.moved {
        word.store(0, Ordering::Relaxed);
    }
    c.account.store(core::ptr::null_mut(), Ordering::Relaxed);
    c.next_try.store(0, Ordering::Relaxed);
    c.shuts.store(0, Ordering::Relaxed);
    c.resets.store(0, Ordering::Relaxed);
    c.offer_generation.store(0, Ordering::Relaxed);
    c.closed.store(Closed::Open as u32, Ordering::Release);
    c.fd.store(fd, Ordering::Relaxed);
    c.refs.store(1, Ordering::Relaxed);
    c.record.store(record, Ordering::Relaxed);
    c.role.store(role as u32, Ordering::Relaxed);
    c.since.store(sys::now(), Ordering::Relaxed);
    Some((index, c))
}

fn take() -> Option<(u32, &'static Conn)> {
    loop {
        let free = FREE.load(Ordering::Acquire);
        let Some(index) = (free as u32).checked_sub(1) else {
            break;
        };
        let c = at(index as usize)?;
        let next = c.next_free.load(Ordering::Relaxed);
        let new = ((free >> 32).wrapping_add(1)) << 32 | next as u64;
        if FREE
            .compare_exchange(free, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            return Some((index, c));
        }
    }
    let top = TOP.fetch_add(1, Ordering::Relaxed);
    let Some(c) = at(top as usize) else {
        TOP.fetch_sub(1, Ordering::Relaxed);
        return None;
    };
    c.generation.store(1, Ordering::Relaxed);
    Some((top, c))
}

/// All entries in use.
pub fn all() -> impl Iterator<Item = &'static Conn> {
    let top = (TOP.load(Ordering::Acquire) as usize).min(CONNS);
    // Not made for this, if there is none.
    let rest = REST.get().copied().flatten();
    let beyond = rest.map_or(&[][..], |all| &all[..top.saturating_sub(NEAR)]);
    first()[NEAR - top.min(NEAR)..]
        .iter()
        .chain(beyond)
        .filter(|c| c.phase() != Phase::Free)
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

    /// The shared side of a carried connection.
    #[inline(always)]
    pub fn view(&self) -> Option<View<'static>> {
        if self.phase.load(Ordering::Acquire) != Phase::Carried as u32 {
            return None;
        }
        let at = self.mapped.load(Ordering::Acquire);
        // SAFETY: mapped segments outlive their connections by far (see link.rs), and the slot is only replaced with the entry.
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

    pub fn set_account(&self, account: Option<&'static AtomicU64>) {
        let at = account.map_or(core::ptr::null_mut(), |a| {
            a as *const AtomicU64 as *mut AtomicU64
        });
        self.account.store(at, Ordering::Relaxed);
    }

    pub fn account(&self) -> Option<&'static AtomicU64> {
        // SAFETY: null, or a word of a board, which stays for as long as the process lives.
        unsafe { self.account.load(Ordering::Relaxed).as_ref() }
    }

    /// A carried connection ends here, before its traffic is counted: what it was worth is known.
    #[unsafe(link_section = ".text.life")]
    pub fn settle_account(&self) {
        let Some(account) = self.account() else {
            return;
        };
        self.set_account(None);
        // Generations of a segment count its connections.
        let fresh = self.segment_generation.load(Ordering::Relaxed) == 1;
        worth::ended(account, self.uncredited(), fresh);
    }

    /// The same for one that was not taken over.
    pub fn settle_unused(&self) {
        let Some(account) = self.account() else {
            return;
        };
        self.set_account(None);
        if sys::now().saturating_sub(self.since.load(Ordering::Relaxed)) >= SHORT {
            return;
        }
        let forked = self.was_used_by_a_child();
        if worth::is_spent(account, forked) {
            let of_it = |c: &&Conn| c.account().is_some_and(|a| core::ptr::eq(a, account));
            let carried = all().filter(|c| c.phase() == Phase::Carried);
            let units: u64 = carried.filter(of_it).map(Conn::uncredited).sum();
            if units > 0 {
                worth::earned(account, units);
            }
        }
        worth::unused(account, forked);
    }

    fn was_used_by_a_child(&self) -> bool {
        let before = self.inherited.load(Ordering::Relaxed);
        before != 0 && before != self.operations.load(Ordering::Relaxed).wrapping_add(1)
    }

    /// What it moved by the rings and was not credited for, which it is from now on.
    fn uncredited(&self) -> u64 {
        let [bytes_out, out, bytes_in, incoming] =
            [0, 1, 2, 3].map(|i| self.moved[i].load(Ordering::Relaxed));
        let units = worth::units(out + incoming, bytes_out + bytes_in);
        units.saturating_sub(self.credited.fetch_max(units, Ordering::Relaxed))
    }

    /// From now on the connection has rings.
    pub fn carry(&self, mapped: &'static Mapped) {
        let generation = mapped.header().generation.load(Ordering::Relaxed);
        self.segment_generation.store(generation, Ordering::Relaxed);
        self.mapped
            .store(mapped as *const Mapped as *mut Mapped, Ordering::Release);
        self.phase.store(Phase::Carried as u32, Ordering::Release);
        self.account_kept.store(TAKEN, Ordering::Relaxed);
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

    /// May a call on it still begin to wait?
    pub fn is_open(&self, v: &View<'_>) -> bool {
        let closed = self.closed.load(Ordering::SeqCst);
        let open = closed == Closed::Open as u32 || closed == Closed::Taking as u32;
        open && self.serves(v)
    }

    /// Takes a step of the takeover that is due, unless another thread does or the program closes the connection.
    pub fn take_step(&self, step: impl FnOnce()) {
        process::without_handlers(|| {
            if self.close_step(Closed::Open, Closed::Taking) {
                step();
                self.close_step(Closed::Taking, Closed::Open);
            }
        });
    }

    /// The same, after the step of another thread. False: it is closed.
    pub fn take_step_surely(&self, step: impl FnOnce()) -> bool {
        process::without_handlers(|| {
            let taking = self.move_on(Closed::Taking);
            if taking {
                step();
                self.close_step(Closed::Taking, Closed::Open);
            }
            taking
        })
    }

    /// The program closes its last number: no step of the takeover is under way, and none begins. False: somebody else did.
    #[unsafe(link_section = ".text.life")]
    pub fn begin_close(&self) -> bool {
        self.move_on(Closed::Closing)
    }

    #[unsafe(link_section = ".text.life")]
    fn move_on(&self, to: Closed) -> bool {
        let mut turns = sys::Turns::default();
        while !self.close_step(Closed::Open, to) {
            if self.closed.load(Ordering::SeqCst) != Closed::Taking as u32 {
                return false;
            }
            turns.give_way();
        }
        true
    }

    /// Has the program closed it while calls were waiting?
    pub fn is_left(&self) -> bool {
        self.closed.load(Ordering::SeqCst) == Closed::Left as u32
    }

    /// Moves on from `from`; one of several callers succeeds.
    pub fn close_step(&self, from: Closed, to: Closed) -> bool {
        self.closed
            .compare_exchange(from as u32, to as u32, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// The shadow's number for a short kernel call; `None` when the connection has ended here.
    #[inline]
    pub fn shadow(&self) -> Option<Shadow<'_>> {
        let mut begun = 0;
        loop {
            let _quiet = process::Quiet::new();
            self.using.fetch_add(1, Ordering::SeqCst);
            let shadow = Shadow { conn: self, _quiet };
            match self.closed.load(Ordering::SeqCst) {
                x if x == Closed::Closing as u32 => {}
                x if x == Closed::Ended as u32 => return None,
                _ => return Some(shadow),
            }
            drop(shadow);
            if !patient(&mut begun) {
                return None;
            }
        }
    }

    /// After the number was changed: until nobody uses the old one.
    pub fn await_users(&self) {
        let mut begun = 0;
        while self.using.load(Ordering::SeqCst) > 0 && patient(&mut begun) {}
    }

    /// After fork, in the child: the calls of other threads are the parent's.
    pub fn forget_calls(&self) {
        clear(&self.pins);
        clear(&self.using);
        if self.closed.load(Ordering::Relaxed) == Closed::Taking as u32 {
            self.close_step(Closed::Taking, Closed::Open);
        }
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
        if lend::is_out(r) {
            lend::leave_record(record);
        } else if r.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            record::free(record);
        }
        let index = place(self);
        loop {
            let free = FREE.load(Ordering::Acquire);
            self.next_free.store(free as u32, Ordering::Relaxed);
            let new = ((free >> 32).wrapping_add(1)) << 32 | (index as u64 + 1);
            if FREE
                .compare_exchange(free, new, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }

    /// Counts a ring transfer of this process: bytes and messages out (0) or in (2). Under that direction's lock.
    #[inline]
    pub fn tally(&self, at: usize, bytes: usize) {
        for (word, n) in self.moved[at..at + 2].iter().zip([bytes as u64, 1]) {
            word.store(word.load(Ordering::Relaxed) + n, Ordering::Relaxed);
        }
    }

    /// A reader is about to wait: is this end in the middle of a stream that it does not answer?
    #[inline]
    pub fn only_receives(&self) -> bool {
        let sent = self.moved[1].load(Ordering::Relaxed);
        let waits = if self.sent_at_wait.load(Ordering::Relaxed) == sent {
            self.waits_unanswered.load(Ordering::Relaxed) + 1
        } else {
            self.sent_at_wait.store(sent, Ordering::Relaxed);
            0
        };
        let waits = waits.min(UNANSWERED);
        self.waits_unanswered.store(waits, Ordering::Relaxed);
        waits == UNANSWERED
    }

    /// The takeover can't go on just now.
    pub fn hold_up(&self, reason: Reason) {
        self.held_up.store(reason as u32 + 1, Ordering::Relaxed);
    }

    /// Why a connection that ends now was not taken over.
    pub fn reason_left(&self) -> Reason {
        match self.held_up.load(Ordering::Relaxed) {
            0 => self.early_end(),
            reason => Reason::of(reason - 1),
        }
    }

    /// It has ended before there was reason to take it over.
    fn early_end(&self) -> Reason {
        if sys::now().saturating_sub(self.since.load(Ordering::Relaxed)) < SHORT {
            Reason::ShortLived
        } else {
            Reason::FewCalls
        }
    }

    /// A carried connection goes back to the kernel.
    pub fn falls_back(&self, reason: Reason) {
        self.account_kept.fetch_or(FELL, Ordering::Relaxed);
        counters::fallback(reason);
    }

    /// The connection ends here, and its traffic was counted: it may have been carried for nothing.
    pub fn count_unused(&self, shared: bool) {
        if !shared && self.account_kept.load(Ordering::Relaxed) == TAKEN {
            self.falls_back(self.early_end());
        }
    }

    /// Adds the rings' traffic to the process's counters. What has none is not accelerated yet.
    pub fn count_traffic(&self) {
        let into = [
            Counter::ShmBytesTx,
            Counter::ShmMsgsTx,
            Counter::ShmBytesRx,
            Counter::ShmMsgsRx,
        ];
        let mut bytes = 0;
        for (at, (word, counter)) in self.moved.iter().zip(into).enumerate() {
            let n = word.swap(0, Ordering::Relaxed);
            if at % 2 == 0 {
                bytes |= n;
            }
            counters::add(counter, n);
        }
        if bytes > 0 && self.account_kept.fetch_or(MOVED, Ordering::Relaxed) & MOVED == 0 {
            counters::add(Counter::Accelerated, 1);
        }
    }

    /// After fork, in the child: what was moved before is the parent's.
    pub fn restart_counts(&self) {
        clear(&self.account_kept);
        if self.phase() == Phase::Tracked && self.role() == Role::Server {
            let before = self.operations.load(Ordering::Relaxed).wrapping_add(1);
            self.inherited.store(before, Ordering::Relaxed);
        }
        for word in self.moved.iter().chain([&self.credited]) {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }
}
