//! The entries themselves: where they stand, and how they are given out.

use core::mem::MaybeUninit;
use std::sync::OnceLock;

use headwater_channel::lock::Lock;
use headwater_host::counters::Reason;
use headwater_host::free_list::FreeList;
use headwater_host::reclaim::Entered;
use headwater_host::sync::{AtomicU32, Ordering};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{memory, process, sys};

use crate::conn::{Closed, Conn, Phase, Role};
use crate::segment::{Mapped, View};
use crate::{images, record};

const CONNS: usize = 1 << 16;
/// Those that are there from the beginning: most programs have no more.
const NEAR: usize = 64;

/// Held over fork, so that no child sees half an adoption.
#[unsafe(link_section = ".data")]
pub static ADOPTING: Lock = Lock::new();

headwater_host::large! {
    static FIRST: MaybeUninit<[Conn; NEAR]> = MaybeUninit::zeroed();
}
static REST: OnceLock<Option<&'static [Conn; CONNS - NEAR]>> = OnceLock::new();
#[unsafe(link_section = ".data")]
static TOP: AtomicU32 = AtomicU32::new(0);
#[unsafe(link_section = ".data")]
static FREE: FreeList = FreeList::new();

/// The entry behind a handle; `None` when it has gone to another socket.
#[inline(always)]
pub fn get(h: Handle) -> Option<&'static Conn> {
    let c = at(h.index())?;
    (c.generation.load(Ordering::Acquire) == h.generation()).then_some(c)
}

/// The carried connection that `h` stands for, and the view of it.
#[inline(always)]
pub fn carried(h: Handle, looks: &Entered) -> Option<(&'static Conn, View<'static>)> {
    let c = get(h)?;
    Some((c, c.view(looks)?))
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
    images::prepare();
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
    images::prepare();
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
        &c.next_try,
        &c.shuts,
        &c.resets,
        &c.told_again,
        &c.counts_asked,
        &c.offer_generation,
    ] {
        word.store(0, Ordering::Relaxed);
    }
    for word in [
        &c.in_vain_since,
        &c.looked_at,
        &c.head_seen,
        &c.head_asleep,
        &c.full_since,
        &c.full,
        &c.posted_by,
        &c.sent_at_wait,
        &c.credited,
    ]
    .into_iter()
    .chain(&c.moved)
    {
        word.store(0, Ordering::Relaxed);
    }
    c.account.store(core::ptr::null_mut(), Ordering::Relaxed);
    c.vain.clear();
    c.closed.store(Closed::Open as u32, Ordering::Release);
    c.fd.store(fd, Ordering::Relaxed);
    c.refs.store(1, Ordering::Relaxed);
    c.record.store(record, Ordering::Relaxed);
    c.role.store(role as u32, Ordering::Relaxed);
    c.since.store(sys::now(), Ordering::Relaxed);
    Some((index, c))
}

fn take() -> Option<(u32, &'static Conn)> {
    if let Some(index) = FREE.take(|index| Some(&at(index as usize)?.next_free)) {
        return Some((index, at(index as usize)?));
    }
    let top = TOP.fetch_add(1, Ordering::Relaxed);
    let Some(c) = at(top as usize) else {
        TOP.fetch_sub(1, Ordering::Relaxed);
        return None;
    };
    c.generation.store(1, Ordering::Relaxed);
    Some((top, c))
}

/// The next new connection may have it.
#[unsafe(link_section = ".text.life")]
pub(super) fn give_back(c: &Conn) {
    FREE.give(place(c), &c.next_free);
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

/// The other end of the same connection, if this process has it too.
pub fn other_end(v: &View<'_>, looks: &Entered) -> Option<(&'static Conn, View<'static>)> {
    let is_other = |its: &View<'_>| {
        (its.mapped.link, its.mapped.index) == (v.mapped.link, v.mapped.index) && its.end != v.end
    };
    all().find_map(|c| Some((c, c.view(looks).filter(is_other)?)))
}

#[inline(always)]
fn at(index: usize) -> Option<&'static Conn> {
    match near(index) {
        Some(seat) => Some(&first()[seat]),
        None => rest()?.get(index - NEAR),
    }
}

/// Where the first ones stand: from the end, beside the first words of the descriptor table, which are touched as soon.
#[inline(always)]
fn near(index: usize) -> Option<usize> {
    (NEAR - 1).checked_sub(index)
}

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
        unsafe { sys::map(size, rw, flags, -1).ok().map(|at| &*at.cast()) }
    })
}
