//! The library's own descriptors: above those of the program, close-on-exec, and not to be closed by it.

use crate::sync::{AtomicI32, Ordering};
use crate::{sys, table};

/// Where looking for numbers begins at most. The kernel's table of descriptors is as long as the highest number, and a fork copies
/// it: a process that may have a million would pay for a million.
const HIGHEST_FLOOR: i32 = 1536;

/// Where looking for numbers begins, the first that is too high for what we can do without, and for all; -1 before the limits
/// were read.
static FLOOR: AtomicI32 = AtomicI32::new(-1);
static SPARE_CEILING: AtomicI32 = AtomicI32::new(-1);
static CEILING: AtomicI32 = AtomicI32::new(-1);

/// Moves a fresh descriptor of ours out of the program's way. EMFILE, with `fd` closed, when too few are left: a tenth
/// of the limit stays the program's.
pub fn hide(fd: i32) -> sys::Result<i32> {
    let hidden = move_up(fd, floor());
    let _ = sys::close(fd);
    hidden
}

/// As [`hide`], for what the program itself has asked for: takes numbers below its share too when there is no other.
pub fn hide_needed(fd: i32) -> sys::Result<i32> {
    let hidden = move_up(fd, floor()).or_else(|_| move_up(fd, floor() / 3));
    let _ = sys::close(fd);
    hidden
}

/// As [`hide_needed`], for somebody who has come and would be lost: where there is no other number, `fd` keeps its own, one that the
/// program would have given him. EMFILE only where that is one of the standard streams'.
pub fn hide_or_keep(fd: i32) -> sys::Result<i32> {
    match move_up(fd, floor()).or_else(|_| move_up(fd, floor() / 3)) {
        Err(_) if fd > libc::STDERR_FILENO && table::set_hidden(fd) => Ok(fd),
        moved => {
            let _ = sys::close(fd);
            moved
        }
    }
}

/// As [`hide`], for what we can do without: some numbers that [`hide`] gives stay for what we can't.
pub fn hide_spare(fd: i32) -> sys::Result<i32> {
    let hidden = sys::dup_above(fd, floor() / 6 * 5);
    let _ = sys::close(fd);
    enter(hidden?, &SPARE_CEILING)
}

/// EMFILE, with it closed, from this number on.
fn enter(hidden: i32, ceiling: &AtomicI32) -> sys::Result<i32> {
    if hidden >= ceiling.load(Ordering::Relaxed) || !table::set_hidden(hidden) {
        let _ = sys::close(hidden);
        return Err(libc::EMFILE);
    }
    Ok(hidden)
}

fn move_up(fd: i32, floor: i32) -> sys::Result<i32> {
    let mut moved = sys::dup_above(fd, floor);
    let stale = match moved {
        // The program lowered its limit since we read it, or raised it.
        Err(e) => e == libc::EINVAL,
        Ok(n) => n >= CEILING.load(Ordering::Relaxed),
    };
    if stale {
        if let Ok(n) = moved {
            let _ = sys::close(n);
        }
        let known = FLOOR.swap(-1, Ordering::Relaxed).max(1);
        moved = sys::dup_above(fd, self::floor() / (known / floor.max(1)).max(1));
    }
    // EINVAL: the limit is below where we look.
    let hidden = moved.map_err(|e| if e == libc::EINVAL { libc::EMFILE } else { e })?;
    enter(hidden, &CEILING)
}

/// Are there numbers for so many that [may keep them](hide_or_keep)? EMFILE.
pub fn room(count: usize) -> sys::Result<()> {
    let mut held = Vec::with_capacity(count);
    let taken = (0..count).try_for_each(|_| {
        held.push(hide_or_keep(sys::eventfd(0, libc::EFD_CLOEXEC)?)?);
        Ok(())
    });
    held.into_iter().for_each(close);
    taken
}

/// Closes a hidden descriptor.
pub fn close(fd: i32) {
    if fd >= 0 {
        table::clear(fd);
        let _ = sys::close(fd);
    }
}

fn floor() -> i32 {
    let known = FLOOR.load(Ordering::Relaxed);
    if known >= 0 {
        return known;
    }
    let limit = sys::limit(libc::RLIMIT_NOFILE, 1024);
    let soft = limit.min(table::SIZE as u64) as i32;
    CEILING.store(soft - soft / 10, Ordering::Relaxed);
    SPARE_CEILING.store(soft / 4 * 3, Ordering::Relaxed);
    let floor = (soft / 4 * 3).min(HIGHEST_FLOOR);
    FLOOR.store(floor, Ordering::Relaxed);
    floor
}
