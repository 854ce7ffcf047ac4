//! What the processes that share an end know of it, whether or not it is carried: an arena that forked processes share, and
//! that an image started by exec maps with the first connection that it adopts.

use headwater_channel::lock::Lock;
use headwater_host::free_list::FreeList;
use headwater_host::sync::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Exchange, Ordering};
use headwater_host::{hidden, process, sys};

const RECORDS: usize = 1 << 16;
/// The smallest there is.
const PAGE: usize = 4096;
/// Arenas that a process may have: that of its own connections and those of connections that it inherited besides.
const ARENAS: usize = 8;

/// Progress of the takeover at this end.
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

/// An operation in the kernel, of the connection that had the record when it began.
#[derive(Clone, Copy)]
pub struct Ticket(u64);

const BUSY: u64 = 0xffff_ffff;
const ONE_GENERATION: u64 = 1 << 32;
const GENERATION: u64 = 0xff_ffff << 32;
const TAKEOVER: u32 = 56;

/// Bits of [`Record::flags`].
pub const NONBLOCK: u32 = 1;
/// The other end has attached: this one may switch.
pub const ATTACHED: u32 = 2;
/// Somebody else may use the descriptor without us: never take it over.
pub const BARRED: u32 = 8;
/// This end shut its sending direction.
pub const SHUT_WR: u32 = 4;
/// And its receiving one: its stream has ended for the readers of all processes wherever nothing is left to be read.
pub const SHUT_RD: u32 = 512;
/// What this end sends, and what it receives, stays with the kernel for good (see comeback.rs).
pub const OUT_STAYS: u32 = 16;
pub const IN_STAYS: u32 = 32;
/// It is in an epoll set that other processes share, or that we don't know: sets hold it as the program says, and the kernel alone
/// serves it.
pub const APART: u32 = 64;
/// The program has disconnected: what the ring holds is nobody's.
pub const DROPPED: u32 = 128;
/// The descriptor went to somebody in a message, where /proc does not show it.
pub const PASSED: u32 = 256;
/// This end has sent an urgent byte.
pub const URGENT: u32 = 1024;

#[repr(C, align(64))]
pub struct Record {
    /// {takeover: 8, generation: 24, operations that are in the kernel (`busy`): 32}
    state: AtomicU64,
    pub holders: AtomicU32,
    pub flags: AtomicU32,
    /// SO_RCVTIMEO and SO_SNDTIMEO in nanoseconds; 0: none.
    pub receive_timeout: AtomicU64,
    pub send_timeout: AtomicU64,
    pub low_water: AtomicU32,
    /// The shadow's error, which a look has taken out of it: told once, to whichever holder calls first.
    pub error: AtomicI32,
    next_free: AtomicU32,
    /// Raised when the record is freed: who was told of it by an exec finds it gone.
    lives: AtomicU32,
    /// Bytes by the kernel, all holders' together; a takeover compares them with the kernel's own counts.
    pub sent: AtomicU64,
    pub received: AtomicU64,
    /// Who let an image that it started have the descriptor, see lend.rs; 0: nobody.
    pub lender: AtomicU64,
    /// When the connection came, in ticks since the machine started.
    pub born: AtomicU64,
    /// Whose presence says that images without the library have the descriptor; 0: none ever had it. See comeback.rs.
    pub strangers: AtomicU64,
    /// How often it was let out to such images, and up to which time they are all known to be gone. These go on through the
    /// record's lives.
    pub lettings: AtomicU32,
    pub cleared: AtomicU32,
    /// How much of `sent` and `received` stands in the statistics of some holder.
    pub counted: [AtomicU64; 2],
    /// The end's writers and readers exclude each other here, out of the peer's reach.
    pub sending: OwnLine,
    pub receiving: OwnLine,
}

#[repr(C, align(64))]
pub struct OwnLine {
    pub lock: Lock,
    /// Sending: progress of a withdrawal, as a ring position plus bytes of the frame there, and that one is on:
    /// {epoch: 16, 1 while it sends, 2 when it has sent all: 16}.
    pub withdrawn: AtomicU64,
    pub withdrawing: AtomicU32,
}

#[repr(C, align(64))]
struct Arena {
    /// Records ever used.
    top: AtomicU32,
    free: FreeList,
    records: [Record; RECORDS],
}

/// An index is {arena: 16, place: 16}. The first arena is the process's own.
static MAPPED: [AtomicPtr<Arena>; ARENAS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; ARENAS];
/// Their memory's descriptors; 0: none.
static MEMORY: [AtomicI32; ARENAS] = [const { AtomicI32::new(0) }; ARENAS];
#[unsafe(link_section = ".data")]
pub static MAPPING: Lock = Lock::new();

/// Maps the process's own arena, with the first record.
fn prepare() {
    if MAPPED[0].load(Ordering::Acquire).is_null() {
        let _section = process::lock_own(&MAPPING);
        if !MAPPED[0].load(Ordering::Acquire).is_null() {
            return;
        }
        let memory = create();
        if let Some(arena) = map(memory.unwrap_or(-1)) {
            MEMORY[0].store(memory.unwrap_or(0), Ordering::Relaxed);
            MAPPED[0].store(arena, Ordering::Release);
        }
    }
}

/// Memory that an image which inherits connections can map; `None`: what forked children share must do.
fn create() -> Option<i32> {
    let fd = sys::memfd_create(c"headwater", libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING).ok()?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    let sized = sys::ftruncate(fd, size_of::<Arena>() as u64)
        .and_then(|()| sys::reserve(fd, 0, PAGE))
        .and_then(|()| sys::fcntl(fd, libc::F_ADD_SEALS, seals as usize));
    if sized.is_err() {
        let _ = sys::close(fd);
        return None;
    }
    hidden::hide_spare(fd).ok()
}

fn map(memory: i32) -> Option<*mut Arena> {
    let mut flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    if memory < 0 {
        flags |= libc::MAP_ANONYMOUS;
    }
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    // Never unmapped; all zeroes is a valid Arena.
    let at = sys::map(size_of::<Arena>(), rw, flags, memory);
    at.ok().map(|at| at as *mut Arena)
}

/// The arena of another image, by its memory's descriptor, which stays open; returns its number here.
pub fn join(memory: i32) -> Option<u32> {
    let st = sys::fstat(memory).ok()?;
    let seals = sys::fcntl(memory, libc::F_GET_SEALS, 0).ok()?;
    if st.st_size as usize != size_of::<Arena>() || seals & libc::F_SEAL_SHRINK == 0 {
        return None;
    }
    prepare();
    let _section = process::lock_own(&MAPPING);
    for (i, (arena, known)) in MAPPED.iter().zip(&MEMORY).enumerate() {
        if arena.load(Ordering::Acquire).is_null() {
            arena.store(map(memory)?, Ordering::Release);
            known.store(memory, Ordering::Relaxed);
            return Some(i as u32);
        }
        let same = |fd: i32| sys::fstat(fd).is_ok_and(|k| k.st_ino == st.st_ino);
        let fd = known.load(Ordering::Relaxed);
        if fd > 0 && same(fd) {
            return Some(i as u32);
        }
    }
    None
}

/// The memory that a record is in; `None`: no other image can map it.
pub fn memory_of(index: u32) -> Option<i32> {
    let fd = MEMORY[arena_number(index)].load(Ordering::Relaxed);
    (fd > 0).then_some(fd)
}

/// Is a file the memory of an arena that this process has mapped?
pub fn is_memory(st: &libc::stat) -> bool {
    let same = |k: libc::stat| (k.st_dev, k.st_ino) == (st.st_dev, st.st_ino);
    MEMORY
        .iter()
        .map(|fd| fd.load(Ordering::Relaxed))
        .any(|fd| fd > 0 && sys::fstat(fd).is_ok_and(same))
}

fn arena_number(index: u32) -> usize {
    (index >> 16) as usize % ARENAS
}

#[inline]
fn arena(number: usize) -> Option<&'static Arena> {
    // SAFETY: mapped by `map`, and never unmapped.
    unsafe { MAPPED[number].load(Ordering::Acquire).as_ref() }
}

/// Takes a record. `None`: all are in use.
pub fn allocate() -> Option<u32> {
    prepare();
    let arena = arena(0)?;
    let link = |index: u32| Some(&arena.records[index as usize % RECORDS].next_free);
    loop {
        let index = match arena.free.take(link) {
            Some(index) => index,
            None => {
                let top = arena.top.load(Ordering::Relaxed);
                if top as usize >= RECORDS || !has_memory(top) {
                    return None;
                }
                let next = top + 1;
                let taken =
                    arena
                        .top
                        .compare_exchange(top, next, Ordering::Relaxed, Ordering::Relaxed);
                if taken.is_err() {
                    continue;
                }
                top
            }
        };
        arena.records[index as usize % RECORDS].clear();
        return Some(index);
    }
}

/// Is there memory for a record that was never used, or need nobody ask? The kernel gives it by the page; the first is there.
fn has_memory(index: u32) -> bool {
    let at = core::mem::offset_of!(Arena, records) + index as usize * size_of::<Record>();
    let last = (at + size_of::<Record>() - 1) / PAGE * PAGE;
    last < at.max(PAGE)
        || memory_of(index).is_none_or(|fd| {
            let len = PAGE.min(size_of::<Arena>() - last);
            sys::reserve(fd, last, len).is_ok()
        })
}

/// Gives a record back. Operations that are still in the kernel are those of a number that was closed, and find another
/// generation here.
pub fn free(index: u32) {
    free_life(index, get(index).life());
}

/// The same, unless somebody else has done so since `life`.
pub fn free_life(index: u32, life: u32) {
    let Some(arena) = arena(arena_number(index)) else {
        return;
    };
    let place = index & 0xffff;
    let record = &arena.records[place as usize];
    if record.lives.exchange(life, life.wrapping_add(1)) {
        arena.free.give(place, &record.next_free);
    }
}

/// The record behind an index from [`allocate`], or of an arena that was joined.
#[inline]
pub fn get(index: u32) -> &'static Record {
    let arena = arena(arena_number(index)).expect("allocated from it");
    &arena.records[(index & 0xffff) as usize]
}

impl Record {
    fn clear(&self) {
        self.holders.store(1, Ordering::Relaxed);
        self.flags.store(0, Ordering::Relaxed);
        self.receive_timeout.store(0, Ordering::Relaxed);
        self.send_timeout.store(0, Ordering::Relaxed);
        self.low_water.store(1, Ordering::Relaxed);
        self.error.store(0, Ordering::Relaxed);
        self.sent.store(0, Ordering::Relaxed);
        self.lender.store(0, Ordering::Relaxed);
        self.strangers.store(0, Ordering::Relaxed);
        self.born.store(sys::boot_ticks(), Ordering::Relaxed);
        self.received.store(0, Ordering::Relaxed);
        for word in &self.counted {
            word.store(0, Ordering::Relaxed);
        }
        self.sending.withdrawn.store(0, Ordering::Relaxed);
        self.sending.withdrawing.store(0, Ordering::Relaxed);
        self.sending.lock.unlock();
        self.receiving.lock.unlock();
        let before = self.state.load(Ordering::Relaxed);
        let next = before.wrapping_add(ONE_GENERATION) & GENERATION;
        self.state.store(next, Ordering::Release);
    }

    /// Which of the connections that have it one after the other this is.
    pub fn life(&self) -> u32 {
        self.lives.load(Ordering::Acquire)
    }

    /// Holds the record for an image that was told of this life of it. False: it was freed meanwhile.
    pub fn hold(&self, life: u32) -> bool {
        self.holders.fetch_add(1, Ordering::AcqRel);
        let holds = self.life() == life;
        if !holds {
            self.holders.fetch_sub(1, Ordering::AcqRel);
        }
        holds
    }

    /// Counts an operation that enters the kernel. `Err`: the takeover has got past `Open`; look again.
    pub fn enter(&self) -> Result<Ticket, Takeover> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        let ticket = Ticket(before & GENERATION);
        match takeover(before) {
            Takeover::Open | Takeover::Declined => Ok(ticket),
            other => {
                self.leave(ticket);
                Err(other)
            }
        }
    }

    /// The same, once a takeover that is under way has ended. `Err`: it is done.
    pub fn enter_settled(&self) -> Result<Ticket, Takeover> {
        let mut turns = sys::Turns::default();
        loop {
            match self.enter() {
                Err(Takeover::Changing) => turns.give_way(),
                other => return other,
            }
        }
    }

    /// The operation is over; it moved `n` bytes, which `count` counts.
    pub fn leave_counted(&self, ticket: Ticket, count: &AtomicU64, n: usize) {
        if self.state.load(Ordering::Acquire) & GENERATION == ticket.0 {
            count.fetch_add(n as u64, Ordering::AcqRel);
        }
        self.leave(ticket);
    }

    pub fn leave(&self, ticket: Ticket) {
        let _ = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |s| {
                (s & GENERATION == ticket.0 && s & BUSY > 0).then(|| s - 1)
            });
    }

    /// What any operation of the present connection has.
    pub fn ticket(&self) -> Ticket {
        Ticket(self.state.load(Ordering::Acquire) & GENERATION)
    }

    pub fn is_busy(&self) -> bool {
        self.state.load(Ordering::Acquire) & BUSY != 0
    }

    pub fn takeover(&self) -> Takeover {
        takeover(self.state.load(Ordering::Acquire))
    }

    /// Moves from open and idle to `to`.
    pub fn begin(&self, to: Takeover) -> bool {
        let generation = self.state.load(Ordering::Relaxed) & GENERATION;
        self.state
            .exchange(generation, (to as u64) << TAKEOVER | generation)
    }

    /// Ends a change.
    pub fn finish(&self, to: Takeover) {
        let _ = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |s| {
                Some((to as u64) << TAKEOVER | s & (GENERATION | BUSY))
            });
    }

    /// Is SO_RCVLOWAT more than the one byte that it is at first?
    pub fn waits_for_more(&self) -> bool {
        self.low_water.load(Ordering::Relaxed) > 1
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
    match state >> TAKEOVER {
        0 => Takeover::Open,
        1 => Takeover::Changing,
        2 => Takeover::Done,
        _ => Takeover::Declined,
    }
}
