//! select(2) and pselect(2) over sets in which some descriptors are carried, by poll(2).
//!
//! The kernel looks at as many descriptors as its table has room for, whatever the program says, and the library's own ones are
//! high: programs that say what they may have (getdtablesize(3)) have sets that are shorter. All calls say no more than what
//! the program's descriptors alone would make of the table.

use core::cell::Cell;
use core::slice;
use core::time::Duration;

use libc::{c_ulong, fd_set, pollfd, sigset_t};

use crate::poll::{self, Confined, EMPTY, SMALL, with_room};
use crate::sync::{AtomicI32, Ordering};
use crate::{next, process, signal, sleeps, sys, table};

/// What the kernel's table has room for at least; below that no bit is left out.
const FIRST_TABLE: i32 = 64;
/// How long it is believed that no higher descriptor has come by ways we don't see, in nanoseconds.
const BELIEVED: u64 = Duration::from_millis(1).as_nanos() as u64;
/// How long a wait lasts beside descriptors that have ended and whose end was not asked for.
const BESIDE_ENDED: u64 = Duration::from_millis(10).as_nanos() as u64;
const LONG: usize = c_ulong::BITS as usize;

/// Room in a table that holds the highest descriptor that the program is known to have had.
static ROOM: AtomicI32 = AtomicI32::new(FIRST_TABLE);

thread_local! {
    static LOOKED: Cell<u64> = const { Cell::new(0) };
}

/// The program has got the descriptor `fd`.
#[inline(always)]
pub fn made(fd: i32) {
    if fd >= ROOM.load(Ordering::Relaxed) {
        grow(fd);
    }
}

#[cold]
fn grow(fd: i32) {
    // The kernel's tables are powers of two times a KiB.
    let per_step = 1024 / size_of::<usize>() as i32;
    let steps = (fd / per_step + 1) as u32;
    let room = (steps.next_power_of_two() as i32).saturating_mul(per_step);
    ROOM.fetch_max(room, Ordering::Relaxed);
}

/// What to say in place of `nfds`.
///
/// # Safety
/// Each set is null or valid, for as many bits as the kernel reads.
pub unsafe fn fit(nfds: i32, sets: [*const fd_set; 3]) -> i32 {
    let room = ROOM.load(Ordering::Relaxed);
    if nfds <= room || !table::any() {
        return nfds;
    }
    if process::is_confined() {
        // Each call of the program makes its own system call, and no other.
        return nfds.min(room);
    }
    if nfds <= libc::FD_SETSIZE as i32 {
        // SAFETY: the caller says that each is null or valid for so many bits.
        let high = unsafe { members(nfds, sets) }.filter(|&fd| fd >= room);
        high.filter(|&fd| is_programs(fd)).for_each(made);
    } else {
        look();
    }
    nfds.min(ROOM.load(Ordering::Relaxed))
}

fn is_programs(fd: i32) -> bool {
    let hidden = |h: table::Handle| h.kind() == table::Kind::Hidden;
    !table::lookup(fd).is_some_and(hidden) && sys::is_open(fd)
}

/// Notes all descriptors of the program: some are inherited, or come by ways that we don't see.
#[cold]
fn look() {
    let now = sys::now();
    if LOOKED.get() + BELIEVED > now && LOOKED.get() != 0 {
        return;
    }
    LOOKED.set(now);
    let Ok(dir) = sys::open(
        c"/proc/self/fd",
        libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC,
        0,
    ) else {
        return;
    };
    let _ = sys::each_number(dir, |fd| {
        if fd != dir && table::lookup(fd).is_none_or(|h| h.kind() != table::Kind::Hidden) {
            made(fd);
        }
        true
    });
    let _ = sys::close(dir);
}

/// Where the bit of `fd` is: which word, and the bit in it.
fn place(fd: i32) -> (usize, c_ulong) {
    (fd as usize / LONG, 1 << (fd as usize % LONG))
}

/// The words of the sets, none of one that is not given. Programs may give one set for several.
type Sets<'a> = [&'a [Cell<c_ulong>]; 3];

/// # Safety
/// As [`concerns`], for as long as they are used.
unsafe fn words<'a>(nfds: i32, sets: [*const fd_set; 3]) -> Sets<'a> {
    let count = (nfds.max(0) as usize).div_ceil(LONG);
    sets.map(|set| match set.is_null() {
        true => &[],
        // SAFETY: the caller says that it has so many bits, and the kernel reads and writes them by words.
        false => unsafe { slice::from_raw_parts(set.cast(), count) },
    })
}

fn word(set: &[Cell<c_ulong>], at: usize) -> c_ulong {
    set.get(at).map_or(0, Cell::get)
}

fn has(set: &[Cell<c_ulong>], fd: i32) -> bool {
    let (at, bit) = place(fd);
    word(set, at) & bit != 0
}

/// Who is in any of the sets, lowest first.
///
/// # Safety
/// As [`concerns`], as long as it is asked.
pub unsafe fn members(nfds: i32, sets: [*const fd_set; 3]) -> impl Iterator<Item = i32> {
    // SAFETY: the caller says that each is null or valid for so many bits, as long as it is asked.
    members_of(nfds, unsafe { words(nfds, sets) })
}

fn members_of(nfds: i32, sets: Sets) -> impl Iterator<Item = i32> {
    let words = (nfds.max(0) as usize).div_ceil(LONG);
    let all = (0..words).flat_map(move |at| {
        let mut left = sets.iter().fold(0, |all, set| all | word(set, at));
        core::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some((at * LONG + bit) as i32)
        })
    });
    all.take_while(move |&fd| fd < nfds)
}

/// Do any of the sets hold descriptors that are not foreign?
///
/// # Safety
/// Each set is null or valid for `nfds` bits.
pub unsafe fn concerns(nfds: i32, sets: [*const fd_set; 3]) -> bool {
    let ours = |fd| table::lookup(fd).is_some_and(|h| h.kind() != table::Kind::Hidden);
    // SAFETY: the caller says that each is null or valid for so many bits.
    table::any_tracked() && unsafe { members(nfds, sets) }.any(ours)
}

/// select(2) and pselect(2) on sets with carried descriptors.
///
/// # Safety
/// Sets are null or valid for `nfds` bits, and the mask is null or valid.
pub unsafe fn select(
    nfds: i32,
    sets: [*mut fd_set; 3],
    timeout: Option<u64>,
    mask: *const sigset_t,
) -> Result<i32, Confined> {
    // SAFETY: the caller says that each is null or valid, the sets for so many bits.
    let (sets, mask) = unsafe {
        let sets = words(nfds, sets.map(<*mut fd_set>::cast_const));
        (sets, mask.as_ref())
    };
    let count = members_of(nfds, sets).count();
    if count <= SMALL {
        select_with(nfds, sets, timeout, mask, &mut [EMPTY; SMALL])
    } else {
        let room = with_room(count, EMPTY, |list| {
            select_with(nfds, sets, timeout, mask, list)
        });
        room.unwrap_or(Ok(-1))
    }
}

const ASK: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
const MEAN: [i16; 3] = [
    libc::POLLIN | libc::POLLHUP | libc::POLLERR,
    libc::POLLOUT | libc::POLLERR,
    libc::POLLPRI,
];

/// Is an entry in the `i`th set, and is that true which the set asks for?
fn holds(p: &pollfd, i: usize) -> bool {
    // What is closed while it waits is of every set.
    p.events & ASK[i] != 0 && p.revents & (MEAN[i] | libc::POLLNVAL) != 0
}

#[inline(never)]
fn select_with(
    nfds: i32,
    sets: Sets,
    timeout: Option<u64>,
    mask: Option<&sigset_t>,
    list: &mut [pollfd],
) -> Result<i32, Confined> {
    let mut n = 0;
    for (p, fd) in list.iter_mut().zip(members_of(nfds, sets)) {
        let asked = sets.iter().zip(ASK).filter(|(set, _)| has(set, fd));
        let events = asked.fold(0, |events, (_, ask)| events | ask);
        *p = sys::entry(fd, events);
        n += 1;
    }
    let list = &mut list[..n];
    let sleeps_with = mask.filter(|_| timeout != Some(0));
    let told = signal::under(sleeps_with, || wait(list, timeout, mask));
    sleeps::end();
    let bits = match told? {
        Ok(bits) => bits,
        Err(errno) => {
            next::set_errno(errno);
            return Ok(-1);
        }
    };
    for (i, set) in sets.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
        set.iter().for_each(|word| word.set(0));
        for p in list.iter().filter(|p| holds(p, i)) {
            let (at, bit) = place(p.fd);
            let word = &set[at];
            word.set(word.get() | bit);
        }
    }
    Ok(bits)
}

/// Waits until a bit is to be told; how many are. poll(2) tells what no set asks for, too: the end of a descriptor that is
/// looked at for exceptions only.
fn wait(
    list: &mut [pollfd],
    timeout: Option<u64>,
    mask: Option<&sigset_t>,
) -> Result<Result<i32, i32>, Confined> {
    let deadline = timeout.map(|t| sys::now().saturating_add(t));
    let mut left = timeout;
    let mut late = false;
    loop {
        if poll::poll_noting(list, left, mask, &mut late)? < 0 {
            return Ok(Err(next::errno()));
        }
        if !late && list.iter().any(|p| p.revents & libc::POLLNVAL != 0) {
            return Ok(Err(libc::EBADF));
        }
        let told = |p: &pollfd| (0..3).filter(|&i| holds(p, i)).count() as i32;
        let bits = list.iter().map(told).sum();
        if bits == 0 && timeout == Some(0) && list.iter().any(|p| p.revents != 0) {
            return Ok(if poll::let_in(mask) < 0 {
                Err(next::errno())
            } else {
                Ok(0)
            });
        }
        left = deadline.map(|d| d.saturating_sub(sys::now()));
        if bits > 0 || left == Some(0) {
            return Ok(Ok(bits));
        }
        // Those that have ended would be told again at once.
        for p in list.iter_mut().filter(|p| p.revents != 0) {
            p.fd = !p.fd;
        }
        let bound = left.map_or(BESIDE_ENDED, |l| l.min(BESIDE_ENDED));
        let beside =
            poll::poll_noting(list, Some(bound), mask, &mut late).map_err(|_| Confined { left })?;
        for p in list.iter_mut().filter(|p| p.fd < 0) {
            p.fd = !p.fd;
        }
        if beside < 0 {
            return Ok(Err(next::errno()));
        }
        left = deadline.map(|d| d.saturating_sub(sys::now()));
        if beside == 0 && left == Some(0) {
            return Ok(Ok(0));
        }
    }
}
