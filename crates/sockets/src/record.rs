//! What the processes that share an end know of it, whether or not it is carried: an arena that forked processes share.

use std::sync::OnceLock;

use headwater_channel::lock::Lock;
use headwater_host::sync::{AtomicU32, AtomicU64, Ordering};
use headwater_host::sys;

const RECORDS: usize = 1 << 16;

/// Progress of the takeover at this end, in the upper half of [`Record::state`]; the lower half counts operations that
/// are in the kernel (`busy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Takeover {
    /// Operations go to the kernel and are counted.
    Open = 0,
    /// A thread is taking the connection over, or undoing that; short.
    Changing = 1,
    /// Taken over.
    Done = 2,
    /// Never will be.
    Declined = 3,
}

/// Bits of [`Record::flags`].
pub const NONBLOCK: u32 = 1;
/// The other end has attached: this one may switch.
pub const ATTACHED: u32 = 2;
/// Somebody else may use the descriptor without us: never take it over.
pub const BARRED: u32 = 8;
/// This end shut its sending direction.
pub const SHUT_WR: u32 = 4;

#[repr(C, align(64))]
pub struct Record {
    state: AtomicU64,
    pub holders: AtomicU32,
    pub flags: AtomicU32,
    /// SO_RCVTIMEO and SO_SNDTIMEO in nanoseconds; 0: none.
    pub receive_timeout: AtomicU64,
    pub send_timeout: AtomicU64,
    pub low_water: AtomicU32,
    next_free: AtomicU32,
    /// Bytes by the kernel, all holders' together; a takeover compares them with the kernel's own counts.
    pub sent: AtomicU64,
    pub received: AtomicU64,
    /// How much of `sent` and `received` stands in the statistics of some holder.
    pub counted: [AtomicU64; 2],
    /// The end's writers and readers exclude each other here, out of the peer's reach.
    pub sending: OwnLine,
    pub receiving: OwnLine,
}

#[repr(C, align(64))]
pub struct OwnLine {
    pub lock: Lock,
    /// Sending: progress of a withdrawal, as a ring position plus bytes of the frame there, and that one is on.
    pub withdrawn: AtomicU64,
    pub withdrawing: AtomicU32,
}

#[repr(C, align(64))]
struct Arena {
    /// Records ever used.
    top: AtomicU32,
    /// {tag: 32, index + 1: 32} of a stack of free ones.
    free: AtomicU64,
    records: [Record; RECORDS],
}

static ARENA: OnceLock<Option<&'static Arena>> = OnceLock::new();

/// Maps the arena; before the first fork that could matter, so at start.
pub fn prepare() {
    arena();
}

fn arena() -> Option<&'static Arena> {
    *ARENA.get_or_init(|| {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping, never unmapped; all zeroes is a valid Arena.
        unsafe {
            sys::mmap(0, size_of::<Arena>(), rw, flags, -1, 0)
                .ok()
                .map(|at| &*(at as *const Arena))
        }
    })
}

/// Takes a record. `None`: all are in use.
pub fn allocate() -> Option<u32> {
    let arena = arena()?;
    loop {
        let free = arena.free.load(Ordering::Acquire);
        let index = match (free as u32).checked_sub(1) {
            Some(index) => {
                let next = arena.records[index as usize]
                    .next_free
                    .load(Ordering::Relaxed);
                let new = ((free >> 32).wrapping_add(1)) << 32 | next as u64;
                if arena
                    .free
                    .compare_exchange(free, new, Ordering::AcqRel, Ordering::Relaxed)
                    .is_err()
                {
                    continue;
                }
                index
            }
            None => {
                let top = arena.top.fetch_add(1, Ordering::Relaxed);
                if top as usize >= RECORDS {
                    arena.top.fetch_sub(1, Ordering::Relaxed);
                    return None;
                }
                top
            }
        };
        arena.records[index as usize].clear();
        return Some(index);
    }
}

/// Gives a record back; nobody uses it any more.
pub fn free(index: u32) {
    let Some(arena) = arena() else { return };
    loop {
        let free = arena.free.load(Ordering::Acquire);
        arena.records[index as usize]
            .next_free
            .store(free as u32, Ordering::Relaxed);
        let new = ((free >> 32).wrapping_add(1)) << 32 | (index as u64 + 1);
        if arena
            .free
            .compare_exchange(free, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            return;
        }
    }
}

/// The record behind an index from [`allocate`].
#[inline]
pub fn get(index: u32) -> &'static Record {
    let arena = arena().expect("allocated from it");
    &arena.records[index as usize]
}

impl Record {
    fn clear(&self) {
        self.holders.store(1, Ordering::Relaxed);
        self.flags.store(0, Ordering::Relaxed);
        self.receive_timeout.store(0, Ordering::Relaxed);
        self.send_timeout.store(0, Ordering::Relaxed);
        self.low_water.store(1, Ordering::Relaxed);
        self.sent.store(0, Ordering::Relaxed);
        self.received.store(0, Ordering::Relaxed);
        for word in &self.counted {
            word.store(0, Ordering::Relaxed);
        }
        self.sending.withdrawn.store(0, Ordering::Relaxed);
        self.sending.withdrawing.store(0, Ordering::Relaxed);
        self.sending.lock.unlock();
        self.receiving.lock.unlock();
        self.state.store(0, Ordering::Release);
    }

    /// Counts an operation that enters the kernel. `Err`: the takeover has got past `Open`; look again.
    pub fn enter(&self) -> Result<(), Takeover> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        match takeover(before) {
            Takeover::Open | Takeover::Declined => Ok(()),
            other => {
                self.leave();
                Err(other)
            }
        }
    }

    pub fn leave(&self) {
        // A connection that was freed meanwhile may have cleared the count.
        let _ = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |s| {
                if s as u32 > 0 { Some(s - 1) } else { None }
            });
    }

    /// Adds to `busy` for a wait whose end is certain to be reported, or takes it back.
    pub fn busy(&self, change: i32) {
        if change > 0 {
            self.state.fetch_add(1, Ordering::AcqRel);
        } else {
            self.leave();
        }
    }

    pub fn is_busy(&self) -> bool {
        self.state.load(Ordering::Acquire) as u32 != 0
    }

    pub fn takeover(&self) -> Takeover {
        takeover(self.state.load(Ordering::Acquire))
    }

    /// Moves from open and idle to `to`.
    pub fn begin(&self, to: Takeover) -> bool {
        self.state
            .compare_exchange(0, (to as u64) << 32, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Ends a change.
    pub fn finish(&self, to: Takeover) {
        let _ = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |s| {
                Some((to as u64) << 32 | s & 0xffff_ffff)
            });
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    pub fn set(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag, Ordering::AcqRel);
        } else {
            self.flags.fetch_and(!flag, Ordering::AcqRel);
        }
    }
}

fn takeover(state: u64) -> Takeover {
    match (state >> 32) as u32 {
        0 => Takeover::Open,
        1 => Takeover::Changing,
        2 => Takeover::Done,
        _ => Takeover::Declined,
    }
}
