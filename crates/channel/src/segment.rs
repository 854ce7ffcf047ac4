//! Sealed memory segments with two rings.
//!
//! File: one page of header, then ring 0, then ring 1. Mapping: header and both rings, with each ring's bytes followed by
//! themselves once more; the file ranges overlap so that three mappings are enough:
//!
//! ```text
//!   address   | header ring0 | ring0 ring1 | ring1 |
//!   ring bytes          ^ring0 twice  ^ring1 twice
//! ```

use crate::shm::SharedSafe;
use crate::sync::{AtomicU32, Ordering};
use crate::sys::{self, Result};

/// Bytes in front of the rings.
pub const HEADER_SIZE: usize = 4096;
pub const MIN_RING: usize = 4096;
pub const MAX_RING: usize = 64 << 20;

const MAGIC: u32 = 0x4857_5347;
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// What every header begins with; a user's words follow.
#[derive(SharedSafe)]
#[repr(C)]
pub struct Preamble {
    magic: AtomicU32,
    /// Version of the layout of everything in the segment.
    abi: AtomicU32,
    header: AtomicU32,
    ring: AtomicU32,
}

/// A mapped segment. Unmapped on drop; the descriptor is not kept.
pub struct Segment {
    base: *mut u8,
    ring: usize,
}

// SAFETY: the memory is shared by design, and only reached through atomics and ring calls.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a sealed memfd with two rings of `ring` bytes (a power of two) and maps it. The descriptor is the caller's to
    /// hand over and to close. Errors: those of memfd_create(2), ftruncate(2) and mmap(2).
    pub fn create(ring: usize, abi: u32) -> Result<(Segment, i32)> {
        if !valid_ring(ring) {
            return Err(libc::EINVAL);
        }
        let fd = sys::memfd_create(c"headwater", libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)?;
        let made = sys::ftruncate(fd, file_size(ring) as u64)
            .and_then(|()| sys::fcntl(fd, libc::F_ADD_SEALS, SEALS as usize))
            .and_then(|_| Segment::map_unchecked(fd, ring));
        match made {
            Ok(segment) => {
                let p = segment.preamble();
                p.magic.store(MAGIC, Ordering::Relaxed);
                p.header.store(HEADER_SIZE as u32, Ordering::Relaxed);
                p.ring.store(ring as u32, Ordering::Relaxed);
                p.abi.store(abi, Ordering::Release);
                Ok((segment, fd))
            }
            Err(e) => {
                let _ = sys::close(fd);
                Err(e)
            }
        }
    }

    /// Maps a segment that somebody else made, after checking size, seals, magic and version. EPROTO: not one of ours.
    pub fn open(fd: i32, abi: u32) -> Result<Segment> {
        let seals = sys::fcntl(fd, libc::F_GET_SEALS, 0)?;
        if seals & (libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)
            != libc::F_SEAL_SHRINK | libc::F_SEAL_GROW
        {
            return Err(libc::EPROTO);
        }
        let size = sys::fstat(fd)?.st_size as usize;
        let ring = size.saturating_sub(HEADER_SIZE) / 2;
        if !valid_ring(ring) || file_size(ring) != size {
            return Err(libc::EPROTO);
        }
        let segment = Segment::map_unchecked(fd, ring)?;
        let p = segment.preamble();
        let matches = p.magic.load(Ordering::Relaxed) == MAGIC
            && p.abi.load(Ordering::Acquire) == abi
            && p.header.load(Ordering::Relaxed) == HEADER_SIZE as u32
            && p.ring.load(Ordering::Relaxed) == ring as u32;
        if matches {
            Ok(segment)
        } else {
            Err(libc::EPROTO)
        }
    }

    pub fn ring_size(&self) -> usize {
        self.ring
    }

    /// Start of the header page.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// The user's header words, behind the preamble. `T` must fit the header page.
    pub fn header<T: SharedSafe>(&self) -> &T {
        const { assert!(size_of::<T>() + 256 <= HEADER_SIZE && align_of::<T>() <= 256) };
        // SAFETY: inside the header page, aligned (256 from a page), and T says that any bits are valid.
        unsafe { &*(self.base.add(256) as *const T) }
    }

    /// The doubly mapped bytes of ring 0 or 1.
    pub fn ring_data(&self, index: usize) -> crate::ring::Data<'_> {
        let offset = HEADER_SIZE + (index & 1) * 2 * self.ring;
        // SAFETY: the mapping made below covers 2 * ring bytes from here, twice the same memory.
        unsafe { crate::ring::Data::new(self.base.add(offset), self.ring) }
    }

    fn preamble(&self) -> &Preamble {
        // SAFETY: the first bytes of the mapped header page.
        unsafe { &*(self.base as *const Preamble) }
    }

    fn map_unchecked(fd: i32, ring: usize) -> Result<Segment> {
        let total = map_size(ring);
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh reservation, then three fixed mappings inside it.
        unsafe {
            let base = sys::mmap(
                0,
                total,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )?;
            let segment = Segment { base, ring };
            let at = base as usize;
            let shared = libc::MAP_SHARED | libc::MAP_FIXED;
            sys::mmap(at, HEADER_SIZE + ring, rw, shared, fd, 0)?;
            sys::mmap(
                at + HEADER_SIZE + ring,
                2 * ring,
                rw,
                shared,
                fd,
                HEADER_SIZE,
            )?;
            sys::mmap(
                at + HEADER_SIZE + 3 * ring,
                ring,
                rw,
                shared,
                fd,
                HEADER_SIZE + ring,
            )?;
            Ok(segment)
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the owner of the value is the last user of the mapping.
        let _ = unsafe { sys::munmap(self.base, map_size(self.ring)) };
    }
}

fn valid_ring(ring: usize) -> bool {
    ring.is_power_of_two() && (MIN_RING..=MAX_RING).contains(&ring)
}

fn file_size(ring: usize) -> usize {
    HEADER_SIZE + 2 * ring
}

fn map_size(ring: usize) -> usize {
    HEADER_SIZE + 4 * ring
}
