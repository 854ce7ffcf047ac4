//! This process's streams, for `headwater streams list`: a sealed memfd with a slot for each stream head, whose number a file
//! `streams.PID` in the runtime folder tells. What waits in a pipe's rings is in its segment, which the reader maps by the number of its memfd; what
//! waits in queues is put into the slot with [`note`].
//!
//! Without a runtime folder there is no listing, and nothing else is lost.

pub mod folder;
pub mod read;

use headwater_channel::lock::{Lock, Owner};
use headwater_channel::shm::SharedSafe;
use headwater_host::process;
use headwater_host::sync::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use headwater_host::{hidden, sys, table};

use crate::pipe::Pipe;
use crate::tunables;

/// Streams of a process at most.
pub const MOST: usize = 1 << 16;
const MAGIC: u64 = u64::from_le_bytes(*b"HWSTREAM");
/// Changes with every change of the layouts here.
const ABI: u32 = 2;
/// Names of this many modules are shown.
pub const MODULES: usize = 8;
const NONE: u32 = u32::MAX;

#[derive(SharedSafe)]
#[repr(C)]
struct Layout {
    magic: AtomicU64,
    abi: AtomicU32,
    /// One past the highest slot ever used.
    top: AtomicU32,
    owner: AtomicU64,
    reserved: [u64; 29],
    slots: [Slot; MOST],
}

#[derive(SharedSafe)]
#[repr(C)]
struct Slot {
    /// The descriptor plus one; 0: no stream.
    fd: AtomicU32,
    /// A pipe's memfd in this process, and which end; otherwise [`NONE`].
    memfd: AtomicU32,
    side: AtomicU32,
    modules: AtomicU32,
    /// Identity of the memfd.
    inode: AtomicU64,
    /// Of the head's queue.
    hiwat: AtomicU32,
    lowat: AtomicU32,
    /// Seconds of CLOCK_MONOTONIC.
    since: AtomicU64,
    /// Bytes that wait in queues: going down, coming up.
    bytes: [AtomicU64; 2],
    fulls: AtomicU64,
    wakeups: AtomicU64,
    name: [AtomicU64; 4],
    pushed: [AtomicU64; MODULES],
    reserved: [u64; 11],
}

const _: () = assert!(size_of::<Slot>() == 256 && size_of::<Layout>() == 256 * (MOST + 1));

static BOARD: AtomicPtr<Layout> = AtomicPtr::new(core::ptr::null_mut());
/// Which process tried to make [`BOARD`]: a fork's child makes its own.
static MAKER: AtomicU64 = AtomicU64::new(0);
static MAKING: Lock = Lock::new();
/// What this process's board lies in; -1: nothing.
static MEMFD: AtomicI32 = AtomicI32::new(-1);
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// What waits in a stream's queues; for a driver's stream also what became of its flow control.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting {
    pub bytes_down: u64,
    pub bytes_up: u64,
    pub fulls: u64,
    pub wakeups: u64,
}

/// A stream was opened; `end`: which one of a pipe.
pub fn enter(index: u32, fd: i32, name: &str, end: Option<(&Pipe, u32)>) {
    let Some(slot) = own().and_then(|board| board.slot(index)) else {
        return;
    };
    slot.clear();
    match end {
        Some((pipe, side)) => {
            slot.side.store(side, Relaxed);
            slot.inode.store(pipe.inode, Relaxed);
            slot.memfd.store(pipe.memfd as u32, Relaxed);
        }
        None => slot.memfd.store(NONE, Relaxed),
    }
    let t = tunables::get();
    slot.hiwat.store(t.hiwat as u32, Relaxed);
    slot.lowat.store(t.lowat as u32, Relaxed);
    write_name(&slot.name, name);
    slot.since.store(sys::now() / 1_000_000_000, Relaxed);
    slot.fd.store(fd as u32 + 1, Release);
}

/// What is pushed now, the topmost first.
pub fn modules(index: u32, names: &[&str]) {
    let Some(slot) = slot_of(index) else { return };
    for (to, name) in slot.pushed.chunks(1).zip(names) {
        write_name(to, name);
    }
    slot.modules.store(names.len() as u32, Release);
}

/// What waits in a stream's queues now.
#[inline]
pub fn note(index: u32, waiting: &Waiting) {
    let Some(slot) = slot_of(index) else { return };
    slot.bytes[0].store(waiting.bytes_down, Relaxed);
    slot.bytes[1].store(waiting.bytes_up, Relaxed);
    slot.fulls.store(waiting.fulls, Relaxed);
    slot.wakeups.store(waiting.wakeups, Relaxed);
}

/// The stream was closed.
pub fn leave(index: u32) {
    if let Some(slot) = slot_of(index) {
        slot.fd.store(0, Release);
    }
}

/// The slot of a stream that was entered.
#[inline]
fn slot_of(index: u32) -> Option<&'static Slot> {
    // SAFETY: null, or mapped for as long as the process lives.
    let board = unsafe { BOARD.load(Acquire).as_ref() }?;
    if MAKER.load(Relaxed) != process::owner().bits() {
        // Our parent's.
        return None;
    }
    board.slots.get(index as usize)
}

impl Layout {
    /// The slot for a new stream.
    fn slot(&self, index: u32) -> Option<&Slot> {
        let slot = self.slots.get(index as usize)?;
        let at = core::mem::offset_of!(Layout, slots) + index as usize * size_of::<Slot>();
        sys::reserve(MEMFD.load(Relaxed), at, size_of::<Slot>()).ok()?;
        if self.top.load(Relaxed) <= index {
            self.top.fetch_max(index + 1, AcqRel);
        }
        Some(slot)
    }
}

impl Slot {
    fn clear(&self) {
        self.fd.store(0, Release);
        self.modules.store(0, Relaxed);
        for word in self.bytes.iter().chain([&self.fulls, &self.wakeups]) {
            word.store(0, Relaxed);
        }
    }
}

/// This process's board, made when it is first needed. `None` where there can be none.
fn own() -> Option<&'static Layout> {
    let me = process::owner();
    if MAKER.load(Acquire) != me.bits() {
        make(me);
    }
    // SAFETY: null, or mapped for as long as the process lives.
    unsafe { BOARD.load(Acquire).as_ref() }
}

#[cold]
fn make(me: Owner) {
    let _section = process::lock_free_in_child(&MAKING);
    if MAKER.load(Acquire) != me.bits() {
        // SAFETY: as in `own`.
        let inherited = unsafe { BOARD.load(Acquire).as_ref() };
        let made = map(me).ok();
        if let (Some(from), Some(to)) = (inherited, made) {
            inherit(from, to);
        }
        let made = made.map_or(core::ptr::null_mut(), |b| core::ptr::from_ref(b).cast_mut());
        BOARD.store(made, Release);
        MAKER.store(me.bits(), Release);
    }
}

fn map(me: Owner) -> sys::Result<&'static Layout> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let memfd = sys::memfd_create(c"headwater-streams", flags).and_then(hidden::hide)?;
    // A parent's, if there is one.
    hidden::close(MEMFD.swap(memfd, Relaxed));
    let board = map_sealed(memfd)?;
    board.owner.store(me.bits(), Relaxed);
    board.abi.store(ABI, Relaxed);
    board.magic.store(MAGIC, Release);
    // In the place of what an earlier program of this number may have left.
    let entry = format!("{memfd} {}", me.bits());
    folder::replace(&file(me.pid()), entry.as_bytes())?;
    // SAFETY: a function that may run at any exit.
    unsafe { libc::atexit(remove) };
    Ok(board)
}

fn map_sealed(memfd: i32) -> sys::Result<&'static Layout> {
    let (size, header) = (size_of::<Layout>(), core::mem::offset_of!(Layout, slots));
    sys::ftruncate(memfd, size as u64)?;
    sys::reserve(memfd, 0, header)?;
    sys::fcntl(memfd, libc::F_ADD_SEALS, SEALS as usize)?;
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh shared mapping of a file of that size, which it keeps; never unmapped, and any bits are valid.
    unsafe {
        let at = sys::map(size, rw, libc::MAP_SHARED, memfd)?;
        Ok(&*(at as *const Layout))
    }
}

fn file(pid: u32) -> String {
    format!("streams.{pid}")
}

extern "C" fn remove() {
    let me = process::owner();
    if MAKER.load(Acquire) == me.bits() {
        folder::remove(&file(me.pid()));
    }
}

/// What a child of fork has from its parent. The parent goes on writing to its own, so each is checked.
fn inherit(from: &Layout, to: &Layout) {
    let top = from.top.load(Acquire).min(MOST as u32);
    for (index, old) in (0..top).zip(&from.slots) {
        let fd = old.fd.load(Acquire).wrapping_sub(1) as i32;
        let ours = fd >= 0 && table::stream(fd).is_some_and(|h| h.index() == index as usize);
        let Some(new) = ours.then(|| to.slot(index)).flatten() else {
            continue;
        };
        new.copy(old);
    }
}

impl Slot {
    fn copy(&self, from: &Slot) {
        for (to, from) in [
            (&self.memfd, &from.memfd),
            (&self.side, &from.side),
            (&self.modules, &from.modules),
            (&self.hiwat, &from.hiwat),
            (&self.lowat, &from.lowat),
        ] {
            to.store(from.load(Relaxed), Relaxed);
        }
        let names = self.name.iter().chain(&self.pushed);
        let theirs = from.name.iter().chain(&from.pushed);
        let long = names.zip(theirs);
        for (to, from) in long.chain([(&self.inode, &from.inode), (&self.since, &from.since)]) {
            to.store(from.load(Relaxed), Relaxed);
        }
        self.fd.store(from.fd.load(Relaxed), Release);
    }
}

fn write_name(to: &[AtomicU64], name: &str) {
    for (i, word) in to.iter().enumerate() {
        let mut bytes = [0; 8];
        let rest = name.as_bytes().get(i * 8..).unwrap_or(&[]);
        let n = rest.len().min(8);
        bytes[..n].copy_from_slice(&rest[..n]);
        word.store(u64::from_le_bytes(bytes), Relaxed);
    }
}
