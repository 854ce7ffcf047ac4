//! Who holds what on a board: each process that puts something there takes a *seat*, a byte of the board's file that it keeps
//! locked. The kernel drops the lock when the process ends, whatever way, and tells everybody who asks, in any pid namespace;
//! an entry of the board names the seat of its process.
//!
//! These are the locks of fcntl(2) that belong to a process: a child of fork has none of its parent's, but may take some by
//! the descriptor that it inherited, after chroot too. A process drops its locks when it closes *any* descriptor of the file,
//! so there is one, which stays open; where another had to be opened, because the file leads to other memory by now, the seat is
//! taken again.

use headwater_channel::lock::{Lock, Owner};
use headwater_channel::shm::SharedSafe;

use crate::process;
use crate::shared::Shared;
use crate::sync::{AtomicU64, Ordering};
use crate::sys;

const SEATS: usize = 8192;
/// A process asks so many seats before it does without.
const PROBES: usize = 256;

/// The part of a board that says who sits where.
#[derive(SharedSafe)]
#[repr(C)]
pub struct Table {
    /// Raised by each process that takes the seat.
    generations: [AtomicU64; SEATS],
}

/// A process's seat: {generation: 32, index + 1: 32}; 0 is nobody's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat(u64);

impl Seat {
    pub const NONE: Seat = Seat(0);

    pub const fn from_bits(bits: u64) -> Seat {
        Seat(bits)
    }

    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Its number alone.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }

    fn new(index: usize, generation: u64) -> Seat {
        Seat(generation << 32 | (index as u64 + 1))
    }

    /// `None`: no such seat; somebody has scribbled on the board.
    fn index(self) -> Option<usize> {
        let index = (self.0 as u32).checked_sub(1)? as usize;
        (index < SEATS).then_some(index)
    }
}

/// The seats of a board, and this process's.
pub struct Seats {
    table: &'static Table,
    file: Shared,
    /// Private memory: whoever holds it and is not this process was left behind by fork.
    taking: Lock,
    /// The seat, and the owner bits of the process that took it, or tried to.
    seat: AtomicU64,
    of: AtomicU64,
}

impl Seats {
    /// `table` lies in the memory of `file`.
    pub fn new(table: &'static Table, file: Shared) -> Seats {
        Seats {
            table,
            file,
            taking: Lock::new(),
            seat: AtomicU64::new(0),
            of: AtomicU64::new(0),
        }
    }

    pub fn file(&self) -> &Shared {
        &self.file
    }

    /// This process's seat, taken at the first call. `None`: there is none to be had.
    pub fn mine(&self) -> Option<Seat> {
        let me = process::owner();
        if self.of.load(Ordering::Acquire) != me.bits() {
            self.take(me);
        }
        Some(Seat(self.seat.load(Ordering::Relaxed))).filter(|s| s.0 != 0)
    }

    #[cold]
    fn take(&self, me: Owner) {
        let _section = process::lock_free_in_child(&self.taking);
        if self.of.load(Ordering::Relaxed) != me.bits() {
            let seat = self.find(me).map_or(0, Seat::bits);
            self.seat.store(seat, Ordering::Relaxed);
            self.of.store(me.bits(), Ordering::Release);
        }
    }

    /// This process has closed another descriptor of the file, which drops its locks there: takes its seat again. If another has
    /// taken it meanwhile, the next call of [`mine`](Seats::mine) looks for a new one.
    pub fn hold(&self) {
        let me = process::owner();
        let seat = Seat(self.seat.load(Ordering::Relaxed));
        let (true, Some(index)) = (self.of.load(Ordering::Acquire) == me.bits(), seat.index())
        else {
            return;
        };
        let locked = self.file.has_file()
            && sys::lock_byte(self.file.file, libc::F_SETLK, libc::F_WRLCK, index as u64).is_ok();
        let generation = self.table.generations[index].load(Ordering::Acquire);
        if !locked || Seat::new(index, generation) != seat {
            self.of.store(0, Ordering::Release);
        }
    }

    fn find(&self, me: Owner) -> Option<Seat> {
        if !self.file.has_file() {
            return None;
        }
        let first = (me.pid() as usize).wrapping_mul(0x9e37) % SEATS;
        for i in (0..PROBES).map(|i| (first + i) % SEATS) {
            match sys::lock_byte(self.file.file, libc::F_SETLK, libc::F_WRLCK, i as u64) {
                Ok(_) => {
                    // What names the seat of its last holder is nobody's from here on.
                    let generation = self.table.generations[i].fetch_add(1, Ordering::AcqRel) + 1;
                    return Some(Seat::new(i, generation));
                }
                Err(libc::EAGAIN | libc::EACCES) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Has the process ended that took this seat? Not said when in doubt.
    pub fn is_vacant(&self, seat: Seat) -> bool {
        let Some(index) = seat.index() else {
            return true;
        };
        let generation = self.table.generations[index].load(Ordering::Acquire);
        if Seat::new(index, generation) != seat {
            return true;
        }
        self.is_unlocked(index)
    }

    /// As [`is_vacant`](Seats::is_vacant), for something that knows the seat's number only.
    pub fn is_vacant_number(&self, number: u32) -> bool {
        Seat(number as u64)
            .index()
            .is_none_or(|i| self.is_unlocked(i))
    }

    fn is_unlocked(&self, index: usize) -> bool {
        let mine = Seat(self.seat.load(Ordering::Relaxed)).index() == Some(index);
        if mine && self.of.load(Ordering::Acquire) == process::owner().bits() {
            // The kernel tells of other processes' locks only.
            return false;
        }
        sys::lock_byte(self.file.file, libc::F_GETLK, libc::F_WRLCK, index as u64)
            .is_ok_and(|lock| lock.l_type as i32 == libc::F_UNLCK)
    }
}
