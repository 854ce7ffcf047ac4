//! Which names have a stream: memory that the user's programs share. It says only where to ask; who answers is
//! checked by credentials, so a wrong entry costs an open(2) a failure, never data.
//!
//! # Contract
//! Slots change under the lock in the file; they are read without it. Any bits are valid.

use core::ptr::null_mut;

use headwater_channel::lock::{Lock, Owner};
use headwater_channel::shm::SharedSafe;
use headwater_host::log::{self, Level};
use headwater_host::shared::{self, Shared};
use headwater_host::sync::{AtomicPtr, AtomicU32, AtomicU64, Exchange, Ordering};
use headwater_host::{process, sys};

/// The layout's version is part of the file's name.
const FILE: &str = "attached.3";
const SLOTS: usize = 512;
const HOLDERS: usize = 8;
/// In place of a device number: the inode is a FIFO's name.
const NAMED: u64 = u64::MAX;

#[derive(SharedSafe)]
#[repr(C)]
struct Layout {
    lock: Lock,
    /// Files, not names, with a stream: while there is none, open(2) need not look.
    files: AtomicU32,
    used: AtomicU32,
    reserved: [u64; 6],
    slots: [Slot; SLOTS],
}

#[derive(SharedSafe)]
#[repr(C, align(64))]
struct Slot {
    /// Generation and whether it is taken: odd then.
    state: AtomicU64,
    dev: AtomicU64,
    ino: AtomicU64,
    uid: AtomicU64,
    /// The end of a pipe, by its segment's inode and its side; 0: not known yet, or a driver's stream.
    pipe: AtomicU64,
    side: AtomicU64,
    /// Processes that can answer for it, as far as there is room: owner bits.
    holders: [AtomicU64; HOLDERS],
    reserved: [u64; 2],
}

const _: () = assert!(size_of::<Slot>() == 128 && size_of::<Layout>() == 64 + 128 * SLOTS);

/// What a stream is attached to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    pub dev: u64,
    pub ino: u64,
}

impl Key {
    pub fn of_file(st: &libc::stat) -> Key {
        Key {
            dev: st.st_dev,
            ino: st.st_ino,
        }
    }

    /// A FIFO's name, by its FNV-1a hash.
    pub fn of_name(name: &[u8]) -> Key {
        let hash = |h: u64, b: &u8| (h ^ *b as u64).wrapping_mul(0x100_0000_01b3);
        Key {
            dev: NAMED,
            ino: name.iter().fold(0xcbf2_9ce4_8422_2325, hash),
        }
    }
}

/// An attachment: another of the same key has another generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub key: Key,
    pub generation: u64,
    slot: usize,
}

static MAPPED: AtomicPtr<Layout> = AtomicPtr::new(null_mut());
static FAILED: AtomicU32 = AtomicU32::new(0);

/// Is any file attached?
#[inline]
pub fn any_files() -> bool {
    layout().is_some_and(|l| l.files.load(Ordering::Relaxed) > 0)
}

pub fn find(key: Key) -> Option<Place> {
    used().find_map(|(i, slot)| Some(Place::new(key, slot.matches(key)?, i)))
}

/// The slots that were ever taken.
fn used() -> impl Iterator<Item = (usize, &'static Slot)> {
    let used = |l: &'static Layout| &l.slots[..SLOTS.min(l.used.load(Ordering::Acquire) as usize)];
    layout().map_or(&[][..], used).iter().enumerate()
}

/// The attachments of the end `side` of the pipe with this inode.
pub fn of_end(pipe: u64, side: u32) -> Vec<Place> {
    let places = used().filter_map(|(i, slot)| {
        let key = Key {
            dev: slot.dev.load(Ordering::Relaxed),
            ino: slot.ino.load(Ordering::Relaxed),
        };
        Some(Place::new(key, slot.matches(key)?, i))
    });
    let is_of_end = |place: &Place| place.end() == Some((pipe, side));
    places.filter(is_of_end).collect()
}

/// Takes a slot, with this process as its first holder. EBUSY: the key has one. ENOSR: too many; EIO: no runtime folder.
pub fn post(key: Key) -> Result<Place, sys::Errno> {
    let layout = layout().ok_or(libc::EIO)?;
    let _section = process::lock(&layout.lock);
    if find(key).is_some() {
        return Err(libc::EBUSY);
    }
    let is_free = |s: &Slot| s.state.load(Ordering::Relaxed) & 1 == 0;
    let at = layout.slots.iter().position(is_free).ok_or(libc::ENOSR)?;
    let slot = &layout.slots[at];
    slot.dev.store(key.dev, Ordering::Relaxed);
    slot.ino.store(key.ino, Ordering::Relaxed);
    slot.uid.store(sys::getuid() as u64, Ordering::Relaxed);
    slot.pipe.store(0, Ordering::Relaxed);
    for holder in &slot.holders {
        holder.store(0, Ordering::Relaxed);
    }
    slot.holders[0].store(process::owner().bits(), Ordering::Relaxed);
    let generation = slot.state.load(Ordering::Relaxed) | 1;
    slot.state.store(generation, Ordering::Release);
    layout.used.fetch_max(at as u32 + 1, Ordering::Release);
    layout.count();
    Ok(Place::new(key, generation, at))
}

impl Place {
    fn new(key: Key, generation: u64, slot: usize) -> Place {
        Place {
            key,
            generation,
            slot,
        }
    }

    fn slot(&self) -> Option<&'static Slot> {
        layout().map(|l| &l.slots[self.slot])
    }

    /// Is it still attached?
    pub fn is_current(&self) -> bool {
        self.slot()
            .is_some_and(|s| s.state.load(Ordering::Acquire) == self.generation)
    }

    /// Whoever holds this end of a pipe can answer.
    pub fn tell_end(&self, pipe: u64, side: u32) {
        if let Some(slot) = self.slot() {
            slot.side.store(side as u64, Ordering::Relaxed);
            slot.pipe.store(pipe, Ordering::Release);
        }
    }

    /// The attached end of a pipe: the segment's inode, and the side.
    pub fn end(&self) -> Option<(u64, u32)> {
        let slot = self.slot()?;
        let pipe = slot.pipe.load(Ordering::Acquire);
        let side = slot.side.load(Ordering::Relaxed) as u32 & 1;
        (pipe != 0 && self.is_current()).then_some((pipe, side))
    }

    /// Ends the attachment; false if it had ended.
    pub fn clear(&self) -> bool {
        let Some(layout) = layout() else { return false };
        let _section = process::lock(&layout.lock);
        let current = self.is_current();
        if current {
            let state = &layout.slots[self.slot].state;
            state.store(self.generation.wrapping_add(1), Ordering::Release);
            layout.count();
        }
        current
    }

    /// This process can answer for it.
    pub fn join(&self) {
        let Some(slot) = self.slot() else { return };
        let me = process::owner().bits();
        if slot.holders.iter().any(|h| h.load(Ordering::Relaxed) == me) {
            return;
        }
        for holder in &slot.holders {
            let seen = holder.load(Ordering::Relaxed);
            let free = seen == 0 || process::dead(Owner::from_bits(seen));
            if free && holder.exchange(seen, me) {
                return;
            }
        }
    }

    /// This process can't any more.
    pub fn leave(&self) {
        let Some(slot) = self.slot() else { return };
        let me = process::owner().bits();
        if self.is_current() {
            for holder in &slot.holders {
                holder.exchange(me, 0);
            }
        }
    }

    /// Does some process live that may soon answer for it?
    pub fn has_holder(&self) -> bool {
        let lives = |holder: &AtomicU64| {
            let bits = holder.load(Ordering::Relaxed);
            bits != 0 && !process::dead(Owner::from_bits(bits))
        };
        let slot = self.slot().filter(|_| self.is_current());
        slot.is_some_and(|slot| slot.holders.iter().any(lives))
    }
}

impl Slot {
    /// The generation, if it is taken for this key by this user.
    fn matches(&self, key: Key) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        let same = self.ino.load(Ordering::Relaxed) == key.ino
            && self.dev.load(Ordering::Relaxed) == key.dev
            && self.uid.load(Ordering::Relaxed) == sys::getuid() as u64;
        (state & 1 == 1 && same).then_some(state)
    }
}

impl Layout {
    /// Under the lock.
    fn count(&self) {
        let is_file = |s: &&Slot| {
            s.state.load(Ordering::Relaxed) & 1 == 1 && s.dev.load(Ordering::Relaxed) != NAMED
        };
        let files = self.slots.iter().filter(is_file).count();
        self.files.store(files as u32, Ordering::Release);
    }
}

#[inline]
fn layout() -> Option<&'static Layout> {
    let known = MAPPED.load(Ordering::Acquire);
    if known.is_null() {
        return map();
    }
    // SAFETY: attached for the life of the process.
    Some(unsafe { &*known })
}

#[cold]
fn map() -> Option<&'static Layout> {
    // The child of a vfork shares our memory, not our place in it.
    if FAILED.load(Ordering::Relaxed) != 0 || process::is_borrowed() {
        return None;
    }
    let shared = Shared::open(&shared::folder(), FILE, size_of::<Layout>(), true);
    match shared {
        Ok(shared) => {
            let at = shared.without_file() as *mut Layout;
            // Two threads at once: attached once too often, the same memory.
            MAPPED.store(at, Ordering::Release);
            // SAFETY: aligned to 64 bytes, long enough, and any bits are valid.
            Some(unsafe { &*at })
        }
        Err(e) => {
            FAILED.store(1, Ordering::Relaxed);
            let told = "no runtime folder, so no attached names";
            log::write(Level::Warn, format_args!("{told}: {e:?}"));
            None
        }
    }
}
