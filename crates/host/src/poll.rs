//! poll(2) and ppoll(2) over sets in which some descriptors are carried.
//!
//! One look at the shared memory; if nothing is ready, a spin while it pays; then a sleep at shadows and doorbells. Functions
//! that wait own nothing that needs dropping: a cancelled thread may leave them.

use core::cell::Cell;
use core::ptr::{from_ref, null};
use core::time::Duration;

use headwater_channel::wait::{Learner, Outcome};
use headwater_channel::waiter;
use libc::{pollfd, sigset_t};

use crate::sync::{AtomicU32, Ordering};
use crate::table::{self, Descriptor, Handle, Kind, Trait};
use crate::{idle, next, process, signal, sleeps, stand_in, sys};

mod bells;

use bells::{AtBells, Polled};

/// Sets up to this size are handled on the stack. A handler may have 8 KiB of it, of which a CPU's vector registers take up to 4.
pub(crate) const SMALL: usize = 32;
/// The kernel is asked about so many at a time.
const CHUNK: usize = 64;
/// A set in which shared memory had something is shown to the kernel too if it was not for so long, in nanoseconds.
pub(crate) const KERNEL_AFTER: u64 = 5_000;
/// Its turn will come at one of the next calls.
pub(crate) const KERNEL_SOON: u64 = KERNEL_AFTER * 3 / 4;
/// Looks at shared memory between two looks at the kernel while spinning.
const KERNEL_SPIN: u32 = 400;
/// The look at which it is asked if its turn would come soon.
pub(crate) const KERNEL_IDLE: u32 = 4;
/// How long a close may take that has begun, in nanoseconds.
const CLOSING: u64 = Duration::from_millis(2).as_nanos() as u64;
/// Longest sleep on a descriptor whose end other processes share.
pub const SHARED_SLICE: u64 = Duration::from_millis(500).as_nanos() as u64;

/// How often in a row a sleeper woke for nothing at a bell that it then had to ring again for others. After [`MOST_VAIN`] the bell is taken to be
/// rung for somebody who does not sleep: a set that was looked at counts as asleep until it is waited for. Who waits for something else leaves
/// it alone then, and looks at shared memory once in [`VAIN_SLICE`].
#[derive(Default)]
pub struct Vain(AtomicU32);

const MOST_VAIN: u32 = 16;

/// In nanoseconds.
pub const VAIN_SLICE: u64 = Duration::from_millis(1).as_nanos() as u64;

impl Vain {
    pub fn leaves_bell(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= MOST_VAIN
    }

    /// A sleep is over. Had the bell `rung`, and was that `in_vain`?
    pub fn woke(&self, rung: bool, in_vain: impl FnOnce() -> bool) {
        let known = self.0.load(Ordering::Relaxed);
        if rung && in_vain() {
            self.0.store(known + 1, Ordering::Relaxed);
        } else if known != 0 {
            // Once in a while it is heard again.
            self.clear();
        }
    }

    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

thread_local! {
    static LEARNER: Learner = const { Learner::new() };
    static SHOWN: Cell<Shown> = const { Cell::new(Shown { set: 0, at: 0 }) };
}

/// Which set this thread showed to the kernel last, and when.
#[derive(Clone, Copy)]
struct Shown {
    set: u64,
    at: u64,
}

impl Shown {
    /// Notes that `fds` are shown to the kernel, if they have not been for so long, in nanoseconds.
    fn is_due(fds: &[pollfd], after: u64) -> bool {
        let mix = |h: u64, p: &pollfd| {
            let entry = (p.fd as u32 as u64) << 16 | p.events as u16 as u64;
            (h.rotate_left(23) ^ entry).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let set = fds.iter().fold(fds.len() as u64, mix);
        let at = sys::now();
        let last = SHOWN.with(Cell::get);
        let due = last.set != set || at.saturating_sub(last.at) >= after;
        if due {
            SHOWN.with(|s| s.set(Shown { set, at }));
        }
        due
    }

    /// The kernel said something of what this thread showed it: it is due again.
    fn hold() {
        SHOWN.with(|s| s.set(Shown { set: 0, at: 0 }));
    }
}

struct Carried {
    h: Handle,
    d: &'static dyn Descriptor,
    bell: i32,
}

/// Does the set hold anything but foreign descriptors?
pub fn concerns(fds: &[pollfd]) -> bool {
    table::any_tracked() && fds.iter().any(|p| tracked(p.fd).is_some())
}

/// The process is confined: the program's own call is to go on, for as long as is left of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Confined {
    pub left: Option<u64>,
}

/// Does the kernel know all that may come to these, once the process is confined?
pub fn only_sockets(fds: &[pollfd]) -> bool {
    let is_socket = |p: &pollfd| table::lookup(p.fd).is_none_or(|h| h.kind() == Kind::Socket);
    fds.iter().all(is_socket)
}

/// ppoll(2) with a timeout in nanoseconds. Returns what poll returns, with errno set.
pub fn poll(
    fds: &mut [pollfd],
    timeout: Option<u64>,
    mask: Option<&sigset_t>,
) -> Result<i32, Confined> {
    let told = poll_noting(fds, timeout, mask, &mut false);
    sleeps::end();
    told
}

/// As [`poll`], in a call that ends its sleeps itself; `late` says whether a number that is told to be closed may have been closed only
/// since it began.
pub(crate) fn poll_noting(
    fds: &mut [pollfd],
    timeout: Option<u64>,
    mask: Option<&sigset_t>,
    late: &mut bool,
) -> Result<i32, Confined> {
    signal::begin_wait_for_any();
    wait_unless(fds, timeout, mask, only_sockets, late)
}

/// As [`poll`], within a call that has begun its wait itself: EINTR by a handler that does not end that one means to look again.
pub fn wait(fds: &mut [pollfd], timeout: Option<u64>) -> i32 {
    let told = wait_unless(fds, timeout, None, |_| false, &mut false);
    sleeps::end();
    told.unwrap_or(0)
}

/// Where the process is confined, and `kernels` says that the kernel knows all of the set, it may wait no longer here.
fn wait_unless(
    fds: &mut [pollfd],
    timeout: Option<u64>,
    mask: Option<&sigset_t>,
    kernels: impl Fn(&[pollfd]) -> bool,
    late: &mut bool,
) -> Result<i32, Confined> {
    let ready = look(fds);
    if ready > 0 {
        return Ok(ready + look_kernel_if_due(fds));
    }
    if timeout == Some(0) {
        stand_in::glance();
        return Ok(match look_kernel(fds) {
            0 => let_in(mask),
            more => more,
        });
    }
    // Nobody waits for what this takes.
    let deadline = timeout.map(|t| sys::now().saturating_add(t));
    signal::under(mask, || wait_until(fds, deadline, mask, kernels, late))
}

/// A signal that waits, and that the mask lets in, ends a call that finds nothing, also one that does not wait.
pub(crate) fn let_in(mask: Option<&sigset_t>) -> i32 {
    mask.map_or(0, |mask| kernel_poll(&mut [], Some(0), Some(mask)))
}

/// The rest of it, in which it sleeps.
fn wait_until(
    fds: &mut [pollfd],
    deadline: Option<u64>,
    mask: Option<&sigset_t>,
    kernels: impl Fn(&[pollfd]) -> bool,
    late: &mut bool,
) -> Result<i32, Confined> {
    let vain = Vain::default();
    loop {
        if spin(fds) == Outcome::Ready {
            if signal::interrupted() {
                next::set_errno(libc::EINTR);
                return Ok(-1);
            }
            let ready = match look(fds) {
                0 => look_kernel(fds),
                ready => ready + look_kernel_if_due(fds),
            };
            if ready > 0 && !(*late && is_closed_only(fds)) {
                return Ok(ready);
            }
        }
        let left = deadline.map(|d| d.saturating_sub(sys::now()));
        let most = stand_in::turn(left);
        if !sleeps::begin() && kernels(fds) {
            return Err(Confined { left });
        }
        idle::about_to_sleep();
        let result = sleep(fds, most, mask, late, &vain);
        let goes_on = result == 0 || result > 0 && *late && is_closed_only(fds);
        if !goes_on {
            return Ok(result);
        }
        if left == Some(0) || deadline.is_some_and(|d| sys::now() >= d) {
            // What was closed meanwhile is told at the end.
            return Ok(if *late {
                look(fds) + look_kernel(fds)
            } else {
                0
            });
        }
        let ready = look(fds);
        if ready > 0 {
            return Ok(ready + look_kernel_if_due(fds));
        }
    }
}

/// The C library's own poll, a cancellation point.
fn kernel_poll(fds: &mut [pollfd], timeout: Option<u64>, mask: Option<&sigset_t>) -> i32 {
    let ts = timeout.map(sys::timespec);
    let ts = ts.as_ref().map_or(null(), from_ref);
    let mask = mask.map_or(null(), from_ref);
    // SAFETY: the list is writable for its length; the time and the mask are null or valid.
    unsafe { next::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, ts, mask) }
}

/// Is nothing told but that numbers are closed? The kernel's wait tells that of what is closed meanwhile only when something else ends
/// it, where we would find it by beginning anew.
fn is_closed_only(fds: &[pollfd]) -> bool {
    let told = fds.iter().filter(|p| p.revents != 0);
    told.map(|p| p.revents).all(|told| told == libc::POLLNVAL)
}

/// Streams promise what poll(2) says of sets: all that is ready is reported. Of sockets all that was ready a little before.
fn has_stream(fds: &[pollfd]) -> bool {
    let is_stream =
        |p: &pollfd| table::lookup(p.fd).is_some_and(|h| h.kind().is(Trait::ToldByBell));
    fds.len() > 1 && fds.iter().any(is_stream)
}

/// [`look_kernel`], where its turn has come.
fn look_kernel_if_due(fds: &mut [pollfd]) -> i32 {
    if has_stream(fds) || Shown::is_due(fds, KERNEL_AFTER) {
        look_kernel(fds)
    } else {
        0
    }
}

/// Fills `revents` from shared memory alone.
fn look(fds: &mut [pollfd]) -> i32 {
    let mut ready = 0;
    for p in fds {
        p.revents = 0;
        if let Some((h, d)) = tracked(p.fd) {
            p.revents = d.ready(h, p.events as u32) as i16;
            ready += (p.revents != 0) as i32;
        }
    }
    ready
}

/// Adds what the kernel knows, without waiting; returns how many became ready that were not.
// Frames as large as this one's stay apart: signal handlers may have little stack.
#[inline(never)]
fn look_kernel(fds: &mut [pollfd]) -> i32 {
    let mut more = 0;
    for chunk in fds.chunks_mut(CHUNK) {
        let mut kernel = [EMPTY; CHUNK];
        for (k, p) in kernel.iter_mut().zip(chunk.iter()) {
            *k = kernel_side(p);
        }
        match sys::ppoll(&mut kernel[..chunk.len()], Some(0)) {
            Err(_) => continue,
            Ok(0) => {}
            // It holds at the next call too, as like as not.
            Ok(_) => Shown::hold(),
        }
        for (k, p) in kernel.iter().zip(chunk) {
            more += merge(p, k.revents) as i32;
        }
    }
    more
}

fn spin(fds: &mut [pollfd]) -> Outcome {
    let carried = |p: &pollfd| {
        let (h, d) = tracked(p.fd)?;
        d.bell(h).map(|_| (h, d))
    };
    if !fds.iter().any(|p| carried(p).is_some()) {
        return Outcome::Sleep;
    }
    let mut turns = 0;
    let cpu = || {
        let mine = sys::cpu();
        let peers = fds.iter().filter_map(carried).map(|(h, d)| d.peer_cpu(h));
        peers.fold(u32::MAX, |best, c| {
            if best == u32::MAX || best == mine {
                c
            } else {
                best
            }
        })
    };
    let is_apart = cpu() != sys::cpu();
    let ready = || {
        turns += 1;
        if signal::interrupted() {
            return true;
        }
        let shared = fds
            .iter()
            .any(|p| tracked(p.fd).is_some_and(|(h, d)| d.ready(h, p.events as u32) != 0));
        // While nobody waits for us: the next call need not ask then.
        let idle = || turns == KERNEL_IDLE && is_apart && Shown::is_due(fds, KERNEL_SOON);
        shared || (turns % KERNEL_SPIN == 0 || idle()) && kernel_ready(fds)
    };
    LEARNER.with(|l| l.wait(None, cpu, ready))
}

#[inline(never)]
fn kernel_ready(fds: &[pollfd]) -> bool {
    fds.chunks(CHUNK).any(|chunk| {
        let mut kernel = [EMPTY; CHUNK];
        for (k, p) in kernel.iter_mut().zip(chunk) {
            *k = kernel_side(p);
        }
        let is_ready = sys::ppoll(&mut kernel[..chunk.len()], Some(0)).is_ok_and(|n| n > 0);
        if is_ready {
            Shown::hold();
        }
        is_ready
    })
}

/// Arms, looks again, and waits in the kernel. 0: nothing yet, or time is up.
#[inline(never)]
fn sleep(
    fds: &mut [pollfd],
    timeout: Option<u64>,
    mask: Option<&sigset_t>,
    late: &mut bool,
    vain: &Vain,
) -> i32 {
    if fds.len() <= SMALL {
        let mut kernel = [EMPTY; 2 * SMALL];
        let mut who = [Handle::FOREIGN; SMALL];
        return sleep_with(
            fds,
            &mut who[..fds.len()],
            &mut kernel,
            timeout,
            mask,
            late,
            vain,
        );
    }
    let slept = with_room(2 * fds.len(), EMPTY, |kernel| {
        with_room(fds.len(), Handle::FOREIGN, |who| {
            sleep_with(fds, who, kernel, timeout, mask, late, vain)
        })
    });
    slept.flatten().unwrap_or(-1)
}

/// Runs `f` with a list that is too long for the stack. Whoever leaves a wait inside for good leaves the list too. `None`: there is
/// no memory, as errno says.
pub(crate) fn with_room<T: Copy, R>(
    count: usize,
    empty: T,
    f: impl FnOnce(&mut [T]) -> R,
) -> Option<R> {
    const { assert!(size_of::<T>() > 0) };
    let Ok(layout) = core::alloc::Layout::array::<T>(count.max(SMALL)) else {
        next::set_errno(libc::ENOMEM);
        return None;
    };
    // SAFETY: the layout is not empty.
    let room = unsafe { std::alloc::alloc(layout) } as *mut T;
    if room.is_null() {
        next::set_errno(libc::ENOMEM);
        return None;
    }
    // SAFETY: there is room for so many, each is written to before it is read, and nobody else knows of them.
    let list = unsafe {
        for i in 0..count {
            room.add(i).write(empty);
        }
        core::slice::from_raw_parts_mut(room, count)
    };
    let result = f(list);
    // SAFETY: allocated with this layout just now; `f` can't have kept the list.
    unsafe { std::alloc::dealloc(room as *mut u8, layout) };
    Some(result)
}

/// `who` gets the handles of `fds`: a number may be another connection's when the wait is over. What is
/// closed meanwhile is left out, unless there is more to tell.
fn sleep_with(
    fds: &mut [pollfd],
    who: &mut [Handle],
    kernel: &mut [pollfd],
    timeout: Option<u64>,
    mask: Option<&sigset_t>,
    late: &mut bool,
    vain: &Vain,
) -> i32 {
    for (h, p) in who.iter_mut().zip(fds.iter()) {
        *h = tracked(p.fd).map_or(Handle::FOREIGN, |(h, _)| h);
    }
    let who = &*who;
    // First the bare ones: from here on none of them gets a bell.
    if !begin_unclaimed(who) {
        return 0;
    }
    let polled = waiter::sleep(&mut AtBells {
        fds: &mut *fds,
        who,
        kernel: &mut *kernel,
        timeout,
        mask,
        late: *late,
        is_vain: vain.leaves_bell(),
        slice: u64::MAX,
        used: 0,
    });
    let kernel = &kernel[..fds.len()];
    let Polled {
        result,
        errno,
        moved,
        left_out,
    } = match polled {
        Ok(polled) => polled,
        Err(ready) => return ready,
    };
    if result == 0 {
        for_carried(who, fds, |c, p| c.d.slice_over(c.h, p.events as u32));
    }
    if result < 0 {
        next::set_errno(errno);
        return -1;
    }
    // A number that was bad from the beginning ends the first sleep.
    let is_bad = kernel.iter().any(|k| k.revents & libc::POLLNVAL != 0);
    *late |= moved && !is_bad;
    let mut ready = look(fds);
    for (k, p) in kernel.iter().zip(fds.iter_mut()) {
        ready += merge(p, k.revents) as i32;
    }
    if ready > 0 && *late && (moved || left_out) {
        ready += look_kernel(fds);
    }
    *late |= ready == 0;
    vain.woke(result > 0, || ready == 0);
    ready
}

/// Leaves out what the kernel says of numbers that are not what they were when the sleep began. Are there any? Of those that are
/// closed it may have told what a close of ours does before it closes the number, which is waited for.
fn forget_moved(kernel: &mut [pollfd], who: &[Handle], fds: &[pollfd]) -> bool {
    let at = kernel.iter_mut().zip(who).zip(fds);
    let ours = at.filter(|((_, h), _)| **h != Handle::FOREIGN);
    let moved = ours.filter(|((_, h), p)| tracked(p.fd).is_none_or(|(now, _)| now != **h));
    let mut until = None;
    let mut any = false;
    for ((k, _), p) in moved {
        any = true;
        if core::mem::take(&mut k.revents) == 0 {
            continue;
        }
        let until = *until.get_or_insert_with(|| sys::now() + CLOSING);
        while tracked(p.fd).is_none() && !process::is_confined() && sys::now() < until {
            if !sys::is_open(p.fd) {
                break;
            }
            headwater_channel::sys::sched_yield();
        }
    }
    any
}

fn stand_down(who: &[Handle], fds: &[pollfd]) {
    for_carried(who, fds, |c, p| c.d.disarm(c.h, p.events as u32));
    end_unclaimed(who);
}

fn for_carried(who: &[Handle], fds: &[pollfd], mut f: impl FnMut(&Carried, &pollfd)) {
    for (&h, p) in who.iter().zip(fds) {
        if let Some(d) = table::descriptor(h)
            && let Some(bell) = d.bell(h)
        {
            f(&Carried { h, d, bell }, p);
        }
    }
}

/// Counts the wait at every descriptor without a bell, so that none gets one while we sleep; false when one just did.
fn begin_unclaimed(who: &[Handle]) -> bool {
    for (i, &h) in who.iter().enumerate() {
        if let Some(d) = table::descriptor(h)
            && d.bell(h).is_none()
            && !d.busy(h, 1)
        {
            end_unclaimed(&who[..i]);
            return false;
        }
    }
    true
}

/// Those that should have a bell, and for which no descriptor was left, are looked at by the clock.
fn unclaimed_slice(who: &[Handle], fds: &[pollfd]) -> u64 {
    let slices = who.iter().zip(fds).filter_map(|(&h, p)| {
        let d = table::descriptor(h)?;
        let bare = d.bell(h).is_none();
        bare.then(|| d.slice(h, p.events as u32)).flatten()
    });
    slices.min().unwrap_or(u64::MAX)
}

fn end_unclaimed(who: &[Handle]) {
    for &h in who {
        if let Some(d) = table::descriptor(h)
            && d.bell(h).is_none()
        {
            d.busy(h, -1);
        }
    }
}

pub(crate) const EMPTY: pollfd = sys::entry(-1, 0);

fn kernel_side(p: &pollfd) -> pollfd {
    let events = match tracked(p.fd) {
        Some((h, d)) => d.kernel_events(h, p.events as u16 as u32),
        None => p.events as u16 as u32,
    };
    if events & table::NOT_KERNELS != 0 {
        return EMPTY;
    }
    sys::entry(p.fd, events as i16)
}

/// Adds kernel events to an entry; true if it only now became ready.
fn merge(p: &mut pollfd, revents: i16) -> bool {
    if revents == 0 {
        return false;
    }
    let events = match tracked(p.fd) {
        Some((h, d)) => {
            let always = (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) as u32;
            let holds = d.kernel_reported(h, revents as u16 as u32);
            (holds & (p.events as u16 as u32 | always)) as i16
        }
        None => revents,
    };
    let before = p.revents;
    p.revents |= events;
    before == 0 && p.revents != 0
}

fn tracked(fd: i32) -> Option<(Handle, &'static dyn Descriptor)> {
    let h = table::used(fd)?;
    Some((h, table::descriptor(h)?))
}
