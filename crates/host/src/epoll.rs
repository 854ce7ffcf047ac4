//! epoll sets in which some descriptors are carried.
//!
//! In the kernel a set holds the shadow (end of file, errors, kernel bytes) and the doorbell (edge-triggered) of each
//! carried descriptor, both under a tag of ours in place of the program's data, so that their events are told from each
//! other and from foreign ones. A registration is *hot* when its ring may hold something that no bell will announce, else
//! *armed*: the peer rings. `wait` looks at the hot ones, spins while that pays, arms what is left and sleeps in the kernel.

mod edges;
mod fdinfo;
mod last;
pub mod left;
mod regs;
mod set;
mod wait;

use core::ptr::{from_ref, null, null_mut};
use core::time::Duration;

use libc::epoll_event;

use regs::NESTED;
pub use set::Sets;
use set::{Asker, Set, Tells};
pub use wait::milliseconds;

use crate::counters::{self, Reason};
use crate::lifecycle::{self, Part};
use crate::poll::Confined;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use crate::table::{self, Arrivals, Descriptor, Handle, Kind};
use crate::{next, process, sys};

/// epoll's bits for behaviour rather than readiness.
const MODES: u32 =
    (libc::EPOLLET | libc::EPOLLONESHOT | libc::EPOLLEXCLUSIVE | libc::EPOLLWAKEUP) as u32;
const IN: u32 = (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;
const ET: u32 = libc::EPOLLET as u32;
const ONESHOT: u32 = libc::EPOLLONESHOT as u32;
const MAX_SETS: usize = 4096;

/// The first ones stand beside the other words that most processes touch.
const FEW_SETS: usize = 16;
#[unsafe(link_section = ".data")]
static SETS: [AtomicPtr<Set>; FEW_SETS] = [const { AtomicPtr::new(null_mut()) }; FEW_SETS];
crate::large! {
    static MORE_SETS: [AtomicPtr<Set>; MAX_SETS - FEW_SETS] =
        [const { AtomicPtr::new(null_mut()) }; MAX_SETS - FEW_SETS];
}
#[unsafe(link_section = ".data")]
static COUNT: AtomicU32 = AtomicU32::new(0);

/// What our registrations carry in the kernel instead of the program's data:
/// {secret: 20, bell or shadow: 1, generation: 19, descriptor: 24}.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tag(u64);

impl Tag {
    fn new(bell: bool, generation: u32, fd: i32) -> Tag {
        Tag(secret() << 44
            | (bell as u64) << 43
            | (generation as u64 & 0x7_ffff) << 24
            | (fd as u64 & 0xff_ffff))
    }
    fn of(data: u64) -> Option<Tag> {
        (data >> 44 == secret()).then_some(Tag(data))
    }
    fn is_bell(self) -> bool {
        self.0 >> 43 & 1 == 1
    }
    fn generation(self) -> u32 {
        (self.0 >> 24) as u32 & 0x7_ffff
    }
    fn fd(self) -> i32 {
        (self.0 & 0xff_ffff) as i32
    }
}

/// A number that no pointer and no small integer begins with, different in each family of processes.
fn secret() -> u64 {
    #[unsafe(link_section = ".data")]
    static SECRET: AtomicU64 = AtomicU64::new(0);
    let known = SECRET.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let fresh = 0x80000 | (sys::now() >> 8 ^ process::pid() as u64) & 0x7ffff;
    let first = SECRET.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed);
    first.map_or_else(|known| known, |_| fresh)
}

/// epoll_ctl(2). Returns what it returns, with errno set.
///
/// # Safety
/// `event` is null or valid.
pub unsafe fn ctl(ep: i32, op: i32, fd: i32, event: *mut epoll_event) -> i32 {
    // SAFETY: the caller says that it is null or valid.
    match ctl_inner(ep, op, fd, unsafe { event.as_ref() }) {
        Ok(()) => 0,
        Err(e) => {
            next::set_errno(e);
            -1
        }
    }
}

fn ctl_inner(ep: i32, op: i32, fd: i32, event: Option<&epoll_event>) -> sys::Result<()> {
    let known = set_of(ep);
    if event.is_some_and(|event| Tag::of(event.u64).is_some())
        && let Some(set) = known
    {
        // The program's own data looks like one of our tags: this set goes without us.
        set.refused.store(1, Ordering::Relaxed);
    }
    let tracked = table::used(fd).and_then(|h| Some((h, table::descriptor(h)?)));
    if known.is_none() && tracked.is_none() {
        return kernel_ctl(ep, op, fd, event);
    }
    if let Some(set) = known {
        return set.ctl(op, fd, event, tracked);
    }
    // A set that came to us some other way than by epoll_create: let the kernel say whether it is one.
    kernel_ctl(ep, op, fd, event)?;
    match (op, new_set(ep)) {
        (libc::EPOLL_CTL_ADD, Some(set)) => {
            if GIVEN.load(Ordering::Relaxed) {
                set.inherited();
                set.held().shared = true;
            }
            let _ = kernel_ctl(ep, libc::EPOLL_CTL_DEL, fd, None);
            set.ctl(op, fd, event, tracked)
        }
        _ => Ok(()),
    }
}

/// epoll_ctl(2) of the kernel's own set.
fn kernel_ctl(ep: i32, op: i32, fd: i32, event: Option<&epoll_event>) -> sys::Result<()> {
    let event = event.map_or(null(), from_ref);
    // SAFETY: null or valid; it is only read.
    unsafe { sys::epoll_ctl(ep, op, fd, event.cast_mut()) }
}

/// Sets that were not seen to be made may have come by an exec, and be others' too.
static GIVEN: AtomicBool = AtomicBool::new(false);

/// This image was given descriptors by a process that has the library.
pub fn given() {
    GIVEN.store(true, Ordering::Relaxed);
}

/// Is what the program puts into the set the kernel's alone to tell: may the set be another process's too, by fork or exec, was it left
/// to the kernel, or is it one of too many?
pub fn is_the_kernels(ep: i32) -> bool {
    match set_of(ep) {
        Some(set) => set.refused.load(Ordering::Relaxed) != 0,
        None => COUNT.load(Ordering::Relaxed) as usize == MAX_SETS || GIVEN.load(Ordering::Relaxed),
    }
}

/// Would epoll_ctl(2) fail, since the kernel's set has the descriptor already, or has not got it, or is none?
pub fn would_fail(ep: i32, op: i32, fd: i32) -> bool {
    let is_no_set = || set_of(ep).is_none() && fdinfo::is_no_set(ep);
    fdinfo::holds(ep, fd) == Some(op == libc::EPOLL_CTL_ADD) || is_no_set()
}

/// What the program took out is gone from the kernel's set too.
pub fn take_out(ep: i32, fd: i32) {
    if let Some(set) = set_of(ep) {
        set.take_out(fd);
    }
}

/// How long a wait may last, in nanoseconds, for ever without; and whether it was given to the nanosecond: the kernel's call that
/// takes it so is made only for a program that makes it too.
#[derive(Clone, Copy)]
pub struct Timeout {
    pub ns: Option<u64>,
    pub exact: bool,
}

/// epoll_wait(2) and its relatives. An error: it is the kernel's set, for as long as is left of the time.
///
/// # Safety
/// `events` is writable for `max` entries; `mask` is null or valid.
pub unsafe fn wait(
    ep: i32,
    events: *mut epoll_event,
    max: i32,
    timeout: Timeout,
    mask: *const libc::sigset_t,
) -> Result<i32, Confined> {
    let own = Confined { left: timeout.ns };
    let set = set_of(ep).filter(|_| max > 0).ok_or(own)?;
    // SAFETY: the caller says that there is so much room, and that the mask is null or valid.
    let (out, mask) = unsafe {
        let out = core::slice::from_raw_parts_mut(events, max as usize);
        (out, mask.as_ref())
    };
    set.wait(out, timeout, mask)
}

/// The connection behind `h` and `fd` was just taken over: its registrations get their bell.
pub fn carried(fd: i32) {
    sets().for_each(|set| set.carry(fd));
}

/// `fd` is looked after from now on; it may be in sets already.
pub fn adopted(fd: i32) {
    if let Some(h) = table::lookup(fd)
        && let Some(d) = table::descriptor(h)
    {
        sets().for_each(|set| set.adopted(fd, h, d));
    }
}

/// Have there been sets?
#[inline]
pub fn any() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// May the connection behind `fd` be taken over, as far as its registrations go?
pub fn allows(fd: i32) -> Result<(), Reason> {
    let h = table::lookup(fd);
    sets().try_for_each(|set| set.allows(fd, h))
}

/// Are all sets that `fd` is in waited for by calls of ours?
pub fn is_waited_for(fd: i32) -> bool {
    sets().all(|set| set.is_waited() || !set.has(fd))
}

/// Is `fd` in a set that is waited for by calls of ours, for `event`?
pub fn covers(fd: i32, event: u32) -> bool {
    sets().any(|set| set.is_waited() && set.asks(fd, event))
}

/// Is `fd` in a set that we know?
pub fn holds(fd: i32) -> bool {
    sets().any(|set| set.has(fd))
}

/// Is what `h` stands for in a set that we know, by `fd` or a number that is closed by now?
pub fn knows(fd: i32, h: Handle) -> bool {
    sets().any(|set| set.has_member(fd, h))
}

/// Has this process put it into one of its sets, by such a number, and not taken it out since?
pub fn was_given(fd: i32, h: Handle) -> bool {
    let given = |set: &Set| set.asks(fd, u32::MAX) || set.has_orphan(h);
    sets().any(|set| !set.is_inherited() && given(set))
}

/// What this process has registered of it is the kernel's alone from here on.
pub fn leave_one(fd: i32, h: Handle) {
    let own = sets().filter(|set| !set.is_inherited());
    own.for_each(|set| set.leave_one(fd, h));
}

/// `fd` is about to be closed (or replaced) by the program.
#[unsafe(link_section = ".text.life")]
pub fn closing(fd: i32) {
    sets().for_each(|set| set.forget(fd));
}

/// `fd` is about to be closed while its description lives on by another number: registrations stay, as in the kernel.
pub fn orphaned(fd: i32) {
    sets().for_each(|set| set.orphan(fd));
}

/// The description that `h` stood for has ended, after its last number.
pub fn ended(h: Handle) {
    sets().for_each(|set| set.ended(h));
}

/// After epoll_create(2): sets are known from the beginning, for they may be put into each other.
pub fn created(ep: i32) {
    new_set(ep);
}

/// Gives `fd` another description by `change`: for the program it is still what it has put into its sets.
pub fn replace(fd: i32, change: impl FnOnce()) {
    let withdraw = |set: &'static Set| Some((set, set.withdraw(fd)?));
    let withdrawn: Vec<_> = sets().filter_map(withdraw).collect();
    change();
    let tracked = table::lookup(fd).and_then(|h| Some((h, table::descriptor(h)?)));
    for (set, reg) in withdrawn {
        set.put_back(&reg, tracked);
    }
}

/// An epoll descriptor itself is closed: this number of it, which is nobody's in the table any more.
pub fn closed_set(h: Handle, fd: i32) {
    if let Some(set) = in_slot(h.index()) {
        set.leave_number(fd, || {
            table::entries().find(|&(_, x)| x == h).map(|(fd, _)| fd)
        });
        set.release();
    }
}

/// Another number for the same set.
pub fn duplicated_set(h: Handle, fd: i32) {
    if let Some(set) = in_slot(h.index()) {
        set.retain();
        table::set(fd, h);
    }
}

/// The process is about to confine itself: sockets are registered as the program asked, without us. Those that `has_rest` says
/// have something that the kernel does not know of are noted in [`left`].
pub fn surrender(has_rest: impl Fn(Handle) -> bool) {
    sets().for_each(|set| set.surrender(&has_rest));
}

/// Does the kernel know all that is in the set?
pub fn is_plain(ep: i32) -> bool {
    set_of(ep).is_none_or(Set::is_plain)
}

/// The program asks the kernel itself for what this set has to tell: its members, which `leave` leaves to the kernel, are registered
/// as the program asked, now and later.
pub fn leave(ep: i32, leave: impl Fn(i32)) {
    leave_below(ep, &leave, MAX_NESTS);
}

/// The sets that an image gets which this process becomes.
pub fn for_image() -> impl Iterator<Item = i32> {
    let sets = table::entries().filter(|(_, h)| h.kind() == Kind::Epoll);
    sets.map(|(ep, _)| ep).filter(|&ep| sys::survives_exec(ep))
}

/// Somebody gets a set who knows nothing of what is in it: its members, which `leave` leaves to the kernel in all processes, are
/// registered as the program asked.
pub fn leave_to_others(ep: i32, leave: impl Fn(i32)) {
    match set_of(ep) {
        // Its registrations are the parent's too, or this memory is.
        Some(set) if set.is_inherited() || process::is_borrowed() => {
            let members =
                table::entries().filter(|&(fd, h)| h.kind() == Kind::Socket && set.has(fd));
            members.for_each(|(fd, _)| leave(fd));
            set.let_apart();
            counters::note(Reason::SharedSet);
        }
        _ => leave_below(ep, &leave, MAX_NESTS),
    }
}

/// The kernel's own bound for sets in sets.
const MAX_NESTS: usize = 5;

fn leave_below(ep: i32, leave: &dyn Fn(i32), depth: usize) {
    let Some(set) = set_of(ep) else { return };
    set.refused.store(1, Ordering::Relaxed);
    for (fd, h) in table::entries().filter(|&(fd, h)| set.has_member(fd, h)) {
        match h.kind() {
            Kind::Socket => leave(fd),
            Kind::Epoll if depth > 0 && !set_of(fd).is_some_and(|s| s.is_inherited()) => {
                leave_below(fd, leave, depth - 1)
            }
            _ => {}
        }
    }
    set.make_plain();
}

#[unsafe(link_section = ".data")]
static HELD: AtomicU32 = AtomicU32::new(0);
#[unsafe(link_section = ".data")]
static HOLDING: AtomicBool = AtomicBool::new(false);

/// Does a fork hold the sets?
pub fn is_held() -> bool {
    fence(Ordering::SeqCst);
    HOLDING.load(Ordering::SeqCst)
}

/// Around fork: no set is in the middle of a change. A set that is made meanwhile is not held: see [`new_set`].
#[unsafe(link_section = ".text.life")]
pub fn before_fork() {
    HOLDING.store(true, Ordering::SeqCst);
    let count = COUNT.load(Ordering::SeqCst);
    if count > 0 {
        // The child is to know the parent's tags.
        secret();
    }
    // What is written costs a page after each fork.
    if count > 0 {
        HELD.store(count, Ordering::Relaxed);
    }
    those(0..count).for_each(|set| {
        set.before_fork();
        set.hold();
    });
    fence(Ordering::SeqCst);
}

/// Lets the sets go that are held.
#[unsafe(link_section = ".text.life")]
pub fn let_go() {
    let held = HELD.load(Ordering::Relaxed);
    if held != 0 {
        HELD.store(0, Ordering::Relaxed);
        those(0..held).for_each(|set| set.let_go());
    }
    HOLDING.store(false, Ordering::SeqCst);
}

/// In the parent of a fork, and in its child: sets that that one has inherited take no new carried connections, since the parent may
/// share them.
#[unsafe(link_section = ".text.life")]
pub fn after_fork(in_child: bool) {
    let held = HELD.load(Ordering::Relaxed);
    let_go();
    if in_child {
        crate::sleeps::in_child();
        // Who had a set that was made since then is not here.
        those(held..COUNT.load(Ordering::Acquire)).for_each(Set::let_go_of_parents);
        sets().for_each(|set| set.inherited());
    }
}

/// Are there sets in sets?
pub fn are_nested() -> bool {
    NESTED.load(Ordering::Relaxed)
}

/// The kernel has woken whoever waits on the connection `h`, though nothing has come: `as_of_bytes`, or whatever they ask for. That is
/// an edge of a set for who waits on what holds it.
pub fn woken(h: Handle, as_of_bytes: bool) {
    if are_nested() {
        sets().for_each(|set| set.is_woken(h, as_of_bytes));
    }
}

/// Is it the last number of a set that a thread sleeps on?
pub fn ends_under_a_wait(h: Handle) -> bool {
    by_handle(h).is_some_and(Set::ends_under_a_wait)
}

/// Makes sets possible; before anything that one can hold is tracked.
pub fn start() {
    table::register(Kind::Epoll, &Sets);
}

/// Has forks hold the sets. The sockets, which have more to do for it, do the same instead.
fn look_after_forks() {
    let hold = || {
        before_fork();
        true
    };
    lifecycle::add_first(Part::Sets, hold, after_fork);
}

fn set_of(ep: i32) -> Option<&'static Set> {
    let h = table::lookup(ep)?;
    if h.kind() != Kind::Epoll {
        return None;
    }
    by_handle(h)
}

#[inline]
fn slot(i: usize) -> Option<&'static AtomicPtr<Set>> {
    SETS.get(i).or_else(|| MORE_SETS.get(i - FEW_SETS))
}

#[inline]
fn in_slot(i: usize) -> Option<&'static Set> {
    let at = slot(i)?.load(Ordering::Acquire);
    // SAFETY: sets are never freed.
    unsafe { at.as_ref() }
}

fn by_handle(h: Handle) -> Option<&'static Set> {
    let set = in_slot(h.index())?;
    (set.generation() == h.generation()).then_some(set)
}

/// Begins to look after an epoll descriptor that takes a tracked descriptor for the first time.
fn new_set(ep: i32) -> Option<&'static Set> {
    if ep < 0 || table::lookup(ep).is_some() {
        return None;
    }
    let claim = |i: usize| {
        let slot = slot(i)?;
        // Written to at once where it is free, as it will be: to read from a page that nobody has touched costs a fault of its own.
        let at = slot
            .compare_exchange(null_mut(), null_mut(), Ordering::Acquire, Ordering::Acquire)
            .unwrap_or_else(|at| at);
        // SAFETY: sets are never freed.
        match unsafe { at.as_ref() } {
            Some(set) => set.reuse(ep).then_some(set),
            None => {
                let fresh = Box::into_raw(Box::new(Set::new(ep)));
                match slot.compare_exchange(at, fresh, Ordering::AcqRel, Ordering::Acquire) {
                    // SAFETY: just leaked; never freed from here on.
                    Ok(_) => Some(unsafe { &*fresh }),
                    Err(_) => {
                        // SAFETY: it was never published.
                        drop(unsafe { Box::from_raw(fresh) });
                        None
                    }
                }
            }
        }
    };
    let (i, set) = (0..MAX_SETS).find_map(|i| Some((i, claim(i)?)))?;
    COUNT.fetch_max(i as u32 + 1, Ordering::SeqCst);
    look_after_forks();
    if is_held() {
        // A child that is being made has it too.
        set.held().shared = true;
    }
    let h = Handle::new(Kind::Epoll, set.generation(), i as u32);
    if !table::set(ep, h) {
        set.release();
        return None;
    }
    Some(set)
}

fn sets() -> impl Iterator<Item = &'static Set> {
    those(0..COUNT.load(Ordering::Acquire))
}

fn those(which: core::ops::Range<u32>) -> impl Iterator<Item = &'static Set> {
    which.filter_map(|i| in_slot(i as usize))
}

/// How long a sleep on a set lasts at most, in nanoseconds, where other threads may look at it.
const OTHERS_SLICE: u64 = Duration::from_millis(100).as_nanos() as u64;

fn ready(h: Handle, want: u32, asker: Asker) -> u32 {
    let Some(set) = by_handle(h) else { return 0 };
    set.see_wait();
    if set.is_inherited() {
        set.note_strangers();
    }
    if want & IN == 0 || !set.is_concerned() || set.tells(asker) == Tells::Nothing {
        return 0;
    }
    if set.is_inherited() {
        // It may have been told to another process.
        counters::note(Reason::SharedSet);
    }
    want & IN
}

/// A set as a member of another set, or of poll's: readable when a wait on it would tell something. What the kernel says of it may
/// be about bells, or what nobody asked for.
impl Descriptor for Sets {
    fn ready(&self, h: Handle, want: u32) -> u32 {
        ready(h, want, Asker::Kernel)
    }
    fn still_ready(&self, h: Handle, want: u32) -> u32 {
        ready(h, want, Asker::Ours)
    }
    fn arm(&self, _h: Handle, _want: u32) {
        // A look leaves its members armed.
    }
    fn disarm(&self, _h: Handle, _want: u32) {}
    fn bell(&self, _h: Handle) -> Option<i32> {
        None
    }
    fn settle(&self, _h: Handle) {}
    /// What wakes several that sleep on a set, or on what holds it, may be taken by the look of the first.
    fn slice(&self, _h: Handle, _want: u32) -> Option<u64> {
        (!crate::sys::is_single_threaded()).then_some(OTHERS_SLICE)
    }
    fn kernel_events(&self, _h: Handle, want: u32) -> u32 {
        want
    }
    fn edges(&self, h: Handle) -> (u64, u64) {
        (by_handle(h).map_or(0, Set::arrivals), 0)
    }
    fn kernel_arrivals(&self, h: Handle) -> Arrivals {
        by_handle(h).map_or(Arrivals::default(), Set::kernel_arrivals)
    }
    fn has_counted_all(&self, h: Handle) -> bool {
        by_handle(h).is_some_and(Set::has_counted_all)
    }
    /// The kernel tells of each by itself.
    fn has_taken_arrivals(&self, _h: Handle) -> bool {
        false
    }
    /// Of what the kernel knows by itself; the rest is [`ready`](Descriptor::ready)'s.
    fn kernel_reported(&self, h: Handle, events: u32) -> u32 {
        match by_handle(h) {
            Some(set) if set.is_concerned() && set.tells(Asker::Ours) != Tells::ByKernel => {
                events & !IN
            }
            _ => events,
        }
    }
    /// What its members had may have been taken since.
    fn kernel_holds(&self, h: Handle, reported: u32, _asked: u32) -> u32 {
        let Some(set) = by_handle(h) else { return 0 };
        let mut look = [sys::entry(set.ep.load(Ordering::Relaxed), libc::POLLIN)];
        match crate::sys::ppoll(&mut look, Some(0)) {
            Ok(0) => reported & !IN,
            _ => reported,
        }
    }
    fn ring(&self, _h: Handle, _bell: i32) {
        // Those of its members have been rung.
    }
}
