//! Heads come and go: pipes, descriptors, fork, the end of the process.

use core::time::Duration;

use headwater_host::guarded::Guarded;
use headwater_host::lifecycle::{self, Moment, Part};
use headwater_host::reclaim::Retired;
use headwater_host::sync::{Ordering, fence};
use headwater_host::sys::Errno;
use headwater_host::table::{self, Handle};
use headwater_host::{reclaim, sys};

use super::opening::Opened;
use super::{ENDS, Head, SLAB, TOP, ends, linking, local, opening, parcels, signals, tending};
use crate::background;
use crate::board::{self, MOST};
use crate::pipe::words::state;
use crate::pipe::{Pipe, RING};

/// Where the kernel has no barrier for us mappings and descriptors of closed pipes stay for this long, in nanoseconds: a call that began
/// before may still look.
const RETIREMENT: u64 = Duration::from_millis(100).as_nanos() as u64;
/// The same where they are many.
const SHORTEST: u64 = Duration::from_millis(10).as_nanos() as u64;
/// More than so many retired pipes do not wait out their time, and the background thread comes by for them. So many stay in a
/// process that closes pipes and then makes no further call on streams.
const MOST_RETIRED: usize = 64;
/// So few are not worth a barrier of their own, unless a single thread needs none.
const FEW_RETIRED: usize = 8;

struct Lists {
    free: Vec<u32>,
    /// Closed while threads slept at them.
    left: Vec<&'static Head>,
    pipes: Vec<&'static Pipe>,
    retired: Retired<Gone>,
}

/// What late calls may look at.
enum Gone {
    /// Used again when they are over.
    Head(&'static Head),
    Pipe(&'static Pipe),
}

static LISTS: Guarded<Lists> = Guarded::new(Lists {
    free: Vec::new(),
    left: Vec::new(),
    pipes: Vec::new(),
    retired: Retired::new(),
});

fn with<T>(f: impl FnOnce(&mut Lists) -> T) -> T {
    f(&mut LISTS.enter())
}

/// streams_pipe(3): two new ends. Errors: EMFILE, ENFILE, ENOMEM, ENOSR (too many streams).
pub fn pipe(flags: i32) -> Result<[i32; 2], Errno> {
    bury();
    if headwater_host::memory::is_scarce() {
        return Err(libc::ENOMEM);
    }
    let (pipe, fds) = Pipe::create(false, flags)?;
    for (side, fd) in fds.into_iter().enumerate() {
        if let Err(e) = adopt(pipe, side as u32, fd) {
            for fd in fds {
                if let Some(h) = table::stream(fd) {
                    close(fd, h);
                } else {
                    let _ = sys::close(fd);
                }
            }
            return Err(e);
        }
    }
    if flags & libc::O_NONBLOCK != 0 {
        pipe.words(0).nonblocking.store(1, Ordering::Relaxed);
        pipe.words(1).nonblocking.store(1, Ordering::Relaxed);
    }
    Ok(fds)
}

/// Closes a stream's descriptor, in the kernel too.
pub fn close(fd: i32, h: Handle) {
    let after = closing(fd, h);
    let _ = sys::close(fd);
    after.into_iter().for_each(After::finish);
}

/// An open fails: closes what it has made, unless another thread has done so by then.
pub fn abandon(opened: Opened) {
    if table::stream(opened.fd) == Some(opened.handle) {
        close(opened.fd, opened.handle);
    }
}

/// Makes `fd` a descriptor of the end `side` of `pipe`, which may have a head here already.
pub fn adopt(pipe: &'static Pipe, side: u32, fd: i32) -> Result<Opened, Errno> {
    let looks = reclaim::enter();
    if let Some(head) = pipe.head(side).filter(|head| hold(head)) {
        let handle = head.handle();
        return enter_copy(Held(head), handle, fd).map(|()| Opened { head, handle, fd });
    }
    drop(looks);
    let head = put_on(pipe, side, fd)?;
    let handle = head.handle();
    // In case another thread closes it.
    let _looks = reclaim::enter();
    enter_table(head, fd)?;
    let name = if pipe.fifo { "fifo" } else { "pipe" };
    board::enter(head.index, fd, name, Some((pipe, head.side())));
    Ok(Opened { head, handle, fd })
}

/// As [`adopt`] for an end without a descriptor of the program's: `shadow` is a hidden socket whose hangup is the end's, or
/// -1. The head is held once more: [`let_go`], after the shadow was closed.
pub fn adopt_hidden(pipe: &'static Pipe, side: u32, shadow: i32) -> Result<&'static Head, Errno> {
    bury();
    match pipe.head(side) {
        Some(head) if hold(head) => Ok(head),
        _ => put_on(pipe, side, shadow),
    }
}

/// As [`adopt_hidden`] for one who only writes to a FIFO: as its second side, so that the reader and the writers know where
/// the other runs.
pub fn adopt_writer(pipe: &'static Pipe) -> Result<&'static Head, Errno> {
    adopt_hidden(pipe, 1, -1)
}

/// A pipe of this process, which stays as it is until this is dropped, also when its last head is closed.
pub struct Borrowed(&'static Pipe);

impl Borrowed {
    /// One without a head yet: it goes with this, unless it has one by then.
    pub fn fresh(pipe: &'static Pipe) -> Borrowed {
        pipe.join();
        Borrowed(pipe)
    }

    pub fn pipe(&self) -> &'static Pipe {
        self.0
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        with(|lists| {
            if self.0.leave() {
                lists.retire(self.0);
            }
        });
    }
}

/// The mapped pipe with this identity.
pub fn borrow_pipe(inode: u64) -> Option<Borrowed> {
    with(|lists| {
        let pipe = lists.pipes.iter().find(|p| p.inode == inode)?;
        pipe.join();
        Some(Borrowed(pipe))
    })
}

/// A head of this process that is not closed before this is dropped.
pub struct Held(&'static Head);

impl Held {
    pub fn head(&self) -> &'static Head {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let_go(self.0);
    }
}

/// The head behind a handle, for who goes on with it beyond a look.
pub fn held(h: Handle) -> Option<Held> {
    let looks = reclaim::enter();
    let head = super::get(h, &looks).filter(|head| hold(head))?;
    let held = Held(head);
    // It may have been closed, and used again, before that.
    (head.handle() == h.with_tag(0)).then_some(held)
}

/// As [`linking::link`] of the stream `fd`. Errors: EBADF and EINVAL (no stream), too.
pub fn link(head: &'static Head, fd: i32, persistent: bool) -> Result<i32, Errno> {
    let lower = match table::stream(fd).and_then(held) {
        Some(lower) => lower,
        None if !sys::is_open(fd) => return Err(libc::EBADF),
        None => return Err(libc::EINVAL),
    };
    let id = linking::link(head, lower.head(), fd, persistent)?;
    core::mem::forget(lower);
    Ok(id)
}

/// A pipe that was kept is not needed any more.
pub fn give_up(pipe: &'static Pipe) {
    let last = with(|lists| {
        let last = pipe.give_up();
        if last {
            lists.retire(pipe);
        }
        last
    });
    if last {
        bury();
    }
}

/// Keeps a head open without a descriptor of the program. False: it is being closed.
#[must_use]
pub fn hold(head: &Head) -> bool {
    let more = |n| (n > 0 && n & ENDS == 0).then_some(n + 1);
    head.entries
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
        .is_ok()
}

/// A new head at an end of a pipe.
fn put_on(pipe: &'static Pipe, side: u32, fd: i32) -> Result<&'static Head, Errno> {
    let head = take(fd)?;
    // A FIFO has one ring.
    let (out, into) = if pipe.fifo { (0, 0) } else { (side, side ^ 1) };
    let words = pipe.words(side) as *const _ as *mut _;
    head.words.store(words, Ordering::Relaxed);
    head.pipe
        .store(pipe as *const Pipe as *mut Pipe, Ordering::Relaxed);
    head.rings
        .store(out | into << 1 | side << 2, Ordering::Relaxed);
    let size = (pipe.ring_size() / RING).ilog2() as usize;
    let base = pipe.base().map_addr(|at| at | size);
    head.base.store(base, Ordering::Relaxed);
    head.plain.store(base, Ordering::Release);
    with(|lists| {
        if !lists.pipes.iter().any(|p| core::ptr::eq(*p, pipe)) {
            lists.pipes.push(pipe);
        }
        // In one step: who finds it is not its only user.
        pipe.attach(side, head);
    });
    Ok(head)
}

/// A head for a driver's stream: its words are its own.
pub fn local_head(fd: i32) -> Result<&'static Head, Errno> {
    let head = take(fd)?;
    head.own_words.renew(crate::tunables::get().close_time_ms);
    head.words
        .store(&head.own_words as *const _ as *mut _, Ordering::Relaxed);
    head.own_bell.store(-1, Ordering::Relaxed);
    enter_table(head, fd)?;
    Ok(head)
}

fn enter_table(head: &'static Head, fd: i32) -> Result<(), Errno> {
    if table::set(fd, head.handle()) {
        return Ok(());
    }
    head.entries.store(0, Ordering::Release);
    release(head);
    Err(libc::EMFILE)
}

/// A free head.
fn take(fd: i32) -> Result<&'static Head, Errno> {
    let head = with(|lists| {
        if let Some(index) = lists.free.pop() {
            return Some(SLAB[index as usize].load(Ordering::Acquire));
        }
        let index = TOP.load(Ordering::Relaxed);
        if index as usize >= MOST {
            return None;
        }
        let head = Box::into_raw(Box::new(Head::fresh(index)));
        SLAB[index as usize].store(head, Ordering::Release);
        TOP.store(index + 1, Ordering::Release);
        Some(head)
    });
    let head = head.ok_or(libc::ENOSR)?;
    // SAFETY: heads are never freed.
    let head: &'static Head = unsafe { &*head };
    head.base.store(core::ptr::null_mut(), Ordering::Relaxed);
    head.plain.store(core::ptr::null_mut(), Ordering::Relaxed);
    head.rings.store(0, Ordering::Relaxed);
    head.pipe.store(core::ptr::null_mut(), Ordering::Relaxed);
    for word in [
        &head.seen_departures,
        &head.looks,
        &head.seen_names,
        &head.signals,
        &head.blocked,
        &head.watched,
        &head.inherited,
        &head.ended,
    ] {
        word.store(0, Ordering::Relaxed);
    }
    head.pumped.store(0, Ordering::Relaxed);
    signals::resumed(head);
    head.asleep.clear();
    head.fd.store(fd, Ordering::Relaxed);
    head.entries.store(1, Ordering::Release);
    Ok(head)
}

/// Gives a head back. Threads that sleep at it wake up, and find that it is another one's; until then it stays.
fn release(head: &'static Head) {
    board::leave(head.index);
    head.generation.fetch_add(1, Ordering::AcqRel);
    head.plain.store(core::ptr::null_mut(), Ordering::Release);
    head.notify();
    with(|lists| lists.left.push(head));
    bury();
}

impl Lists {
    /// Nobody uses the pipe any more, nor finds it from here on.
    fn retire(&mut self, pipe: &'static Pipe) {
        self.pipes.retain(|p| !core::ptr::eq(*p, pipe));
        self.retired.push(Gone::Pipe(pipe));
    }

    /// Heads at which nobody sleeps any more go to rest, and their pipes.
    fn sweep(&mut self) {
        let gone = self.left.extract_if(.., |head| !head.asleep.has_any());
        for head in gone.collect::<Vec<_>>() {
            if let Some(pipe) = head.pipe()
                && pipe.detach(head.side(), head)
            {
                self.retire(pipe);
            }
            self.retired.push(Gone::Head(head));
        }
    }
}

/// Unmaps, or has used again, what nobody looks at any more.
pub fn bury() {
    let (old, crowded) = with(|lists| {
        lists.sweep();
        if lists.retired.len() < FEW_RETIRED && !sys::is_single_threaded() {
            return (Vec::new(), false);
        }
        let crowded = lists.retired.len().saturating_sub(MOST_RETIRED);
        let least = |place| match place < crowded {
            true => SHORTEST,
            false => RETIREMENT,
        };
        let mut old = Vec::new();
        for gone in lists.retired.take_free(least) {
            match gone {
                Gone::Head(head) => lists.free.push(head.index),
                Gone::Pipe(pipe) => old.push(pipe),
            }
        }
        (old, lists.retired.len() > MOST_RETIRED)
    });
    if crowded {
        background::alarm(sys::now() + SHORTEST);
    }
    for pipe in old {
        // SAFETY: out of every list, without heads, and no thread that has entered can have found it.
        unsafe { Pipe::bury(pipe) };
    }
}

/// `new` is a copy of a descriptor of this stream; where its last name here goes meanwhile, the stream is over for the copy too.
pub fn duplicated(h: Handle, new: i32) {
    if let Some(held) = held(h) {
        let _ = enter_copy(held, h, new);
    }
}

/// What holds a head is the descriptor `fd` from here on. Errors: EMFILE.
fn enter_copy(held: Held, h: Handle, fd: i32) -> Result<(), Errno> {
    if !table::set(fd, h) {
        return Err(libc::EMFILE);
    }
    // Whose others are closed has none to look at: see [`closing`].
    fence(Ordering::SeqCst);
    let shadow = &held.0.fd;
    let _ = shadow.compare_exchange(-1, fd, Ordering::Relaxed, Ordering::Relaxed);
    opening::duplicated(h);
    core::mem::forget(held);
    Ok(())
}

/// Takes back one [`hold`].
pub fn let_go(head: &'static Head) {
    if leave(head) {
        After(head).finish();
    }
}

/// One name fewer; true for the last, which has taken the queues apart.
fn leave(head: &'static Head) -> bool {
    loop {
        let names = head.entries.load(Ordering::Acquire);
        let left = match names {
            1 => {
                // Who gets the same end meanwhile goes on with all that is on it.
                let is_last = || head.entries.load(Ordering::Acquire) == 1;
                ends::drain(head, is_last);
                ENDS | 1
            }
            n if n == 0 || n & ENDS != 0 => return false,
            n => n - 1,
        };
        // Two threads may close the last two names at once.
        let done = head
            .entries
            .compare_exchange(names, left, Ordering::AcqRel, Ordering::Acquire);
        if done.is_err() {
            continue;
        }
        if names == 1 {
            // Nobody holds it any more: who gets the end from here on has a head of its own.
            ends::end(head, let_go);
            head.entries.store(0, Ordering::SeqCst);
        }
        return names == 1;
    }
}

/// What is left to do once the kernel has closed the descriptor.
pub struct After(&'static Head);

/// The program closes a descriptor. The last one of this process takes the stream apart: written data may drain first, as
/// I_SETCLTIME says, modules are popped.
pub fn closing(fd: i32, h: Handle) -> Option<After> {
    table::clear_if(fd, h);
    opening::closed(h);
    let looks = reclaim::enter();
    let head = super::get(h, &looks)?;
    if !leave(head) {
        if head.fd.load(Ordering::Relaxed) == fd {
            let first = number_of(h);
            head.fd.store(first, Ordering::Relaxed);
            if first < 0 {
                // One that comes just now may have found this one still.
                fence(Ordering::SeqCst);
                let fd = number_of(h);
                let _ = (head.fd).compare_exchange(-1, fd, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
        return None;
    }
    head.fd.store(-1, Ordering::Relaxed);
    Some(After(head))
}

/// A descriptor of the stream; -1: it has none.
pub fn number_of(h: Handle) -> i32 {
    let found = table::entries().find(|&(_, other)| other.with_tag(0) == h.with_tag(0));
    found.map_or(-1, |(fd, _)| fd)
}

impl After {
    pub fn finish(self) {
        let head = self.0;
        if let Some(pipe) = head.pipe() {
            // Who got the end while it was taken apart has what was kept for it.
            if pipe
                .head(head.side())
                .is_none_or(|at| core::ptr::eq(at, head))
            {
                parcels::left(pipe, head.side());
            }
            head.words().departures.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let _looks = reclaim::enter();
            if let Some(peer) = head.local_peer() {
                peer.notify();
                signals::scan(peer);
                if peer.is_queued() {
                    local::serve(peer);
                }
            }
        } else {
            let bell = head.own_bell.swap(-1, Ordering::Relaxed);
            headwater_host::hidden::close(bell);
        }
        signals::forget(head);
        tending::unwatch(head);
        release(head);
    }
}

/// F_SETFL, FIONBIO: kept where every holder sees it.
pub fn set_nonblocking(h: Handle, on: bool) {
    let looks = reclaim::enter();
    if !opening::set_nonblocking(h, on)
        && let Some(head) = super::get(h, &looks)
    {
        head.words().nonblocking.store(on as u32, Ordering::Release);
    }
}

/// Has forks hold what streams have: nobody changes lists or queues while the process is copied; afterwards both sides go on.
pub fn look_after_forks() {
    lifecycle::add(Part::Perimeters, tending::before_fork, tending::after_fork);
    let (before, after) = (background::before_fork, background::after_fork);
    lifecycle::add(Part::Background, before, after);
    lifecycle::add(Part::Heads, before_fork, after_fork);
    // Procedures of drivers close what is below them.
    lifecycle::add_told(Part::Perimeters, |moment| {
        if let Moment::Leaving = moment {
            exiting();
        }
    });
}

fn before_fork() -> bool {
    LISTS.keep_out();
    // Both processes hold every end from now on.
    for head in super::all(&reclaim::enter()) {
        if let Some(pipe) = head.pipe() {
            head.words().shared.store(1, Ordering::SeqCst);
            if head.words().holders.load(Ordering::Relaxed) > 0 {
                head.words().holders.fetch_add(1, Ordering::SeqCst);
            }
            // Without descriptors left, sleepers look by the clock.
            let _ = pipe.both_bells();
        }
    }
    true
}

fn after_fork(_in_child: bool) {
    LISTS.let_in();
}

/// The process ends: streams are closed as by close(2).
fn exiting() {
    for head in super::all(&reclaim::enter()) {
        if head.words().has(state::LINKED) {
            continue;
        }
        if head.local_peer().is_some() && !head.is_shared() {
            // Nobody is left to read what could be drained.
            head.words().close_time.store(0, Ordering::Relaxed);
        }
        ends::drain(head, || true);
        ends::end(head, let_go);
    }
}
