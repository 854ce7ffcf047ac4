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
const _: () = assert!(MAX_RING <= 1 << crate::ring::TAKEN_BITS);

/// Where the user's words begin in the header page.
const USER_OFFSET: usize = 256;
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

const _: () = assert!(size_of::<Preamble>() == 16 && size_of::<Preamble>() <= USER_OFFSET);

/// A mapped segment. Unmapped on drop; the descriptor is not kept.
pub struct Segment {
    base: *mut u8,
    ring: usize,
}

// SAFETY: the memory is shared by design, and only reached through atomics and ring calls.
unsafe impl Send for Segment {}
// SAFETY: its own fields never change, and what threads do in the memory they do through atomics.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a sealed memfd with two rings of `ring` bytes (a power of two) and maps it. The descriptor is the caller's to
    /// hand over and to close. Errors: those of memfd_create(2), ftruncate(2), fallocate(2) and mmap(2).
    pub fn create(ring: usize, abi: u32) -> Result<(Segment, i32)> {
        if !valid_ring(ring) {
            return Err(libc::EINVAL);
        }
        let fd = sys::memfd_create(c"headwater", libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)?;
        let made = sys::ftruncate(fd, file_size(ring) as u64)
            .and_then(|()| sys::reserve(fd, 0, file_size(ring)))
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
        const { assert!(size_of::<T>() + USER_OFFSET <= HEADER_SIZE) };
        const { assert!(align_of::<T>() <= USER_OFFSET) };
        // SAFETY: inside the header page, aligned (256 from a page), and T says that any bits are valid.
        unsafe { &*(self.base.add(USER_OFFSET) as *const T) }
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
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let base = sys::map(total, libc::PROT_NONE, private, -1)?;
        let segment = Segment { base, ring };
        let shared = libc::MAP_SHARED | libc::MAP_FIXED;
        let (first, second) = (HEADER_SIZE, HEADER_SIZE + ring);
        let mut at = base as usize;
        // From where in the file to where, one after the other.
        for part in [0..second, first..second + ring, second..second + ring] {
            // SAFETY: inside a fresh reservation.
            unsafe { sys::mmap(at, part.len(), rw, shared, fd, part.start)? };
            at += part.len();
        }
        Ok(segment)
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

#[cfg(test)]
mod tests {
    use super::*;

    const ABI: u32 = 77;

    /// A file that looks like a segment, with these seals, this size and this header.
    fn forge(seals: i32, size: usize, words: [u32; 4]) -> i32 {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let fd = sys::memfd_create(c"forged", flags).unwrap();
        sys::ftruncate(fd, size as u64).unwrap();
        // SAFETY: sixteen readable bytes.
        assert_eq!(unsafe { sys::write(fd, words.as_ptr().cast(), 16) }, Ok(16));
        sys::fcntl(fd, libc::F_ADD_SEALS, seals as usize).unwrap();
        fd
    }

    fn opened(seals: i32, size: usize, words: [u32; 4]) -> Result<Segment> {
        let fd = forge(seals, size, words);
        let segment = Segment::open(fd, ABI);
        sys::close(fd).unwrap();
        segment
    }

    const RING: usize = 8192;
    const SIZE: usize = HEADER_SIZE + 2 * RING;
    const WORDS: [u32; 4] = [MAGIC, ABI, HEADER_SIZE as u32, RING as u32];

    #[test]
    fn two_mappings_of_a_segment_are_the_same_memory() {
        let (here, fd) = Segment::create(RING, ABI).unwrap();
        let there = Segment::open(fd, ABI).unwrap();
        sys::close(fd).unwrap();
        for ring in [0, 1] {
            let (mine, theirs) = (here.ring_data(ring), there.ring_data(ring));
            // Across the end of the ring, where the second copy begins.
            mine.copy_in(RING as u64 - 3, &[ring as u8 + 1; 6]);
            let mut seen = [0; 6];
            theirs.copy_out(RING as u64 - 3, &mut seen);
            assert_eq!(seen, [ring as u8 + 1; 6]);
            theirs.copy_out(0, &mut seen[..3]);
            assert_eq!(seen[..3], [ring as u8 + 1; 3]);
        }
    }

    #[test]
    fn a_created_segment_cannot_change_its_size() {
        let (_segment, fd) = Segment::create(MIN_RING, ABI).unwrap();
        assert!(sys::ftruncate(fd, 0).is_err());
        assert!(sys::ftruncate(fd, 1 << 30).is_err());
        sys::close(fd).unwrap();
    }

    #[test]
    fn reserved_memory_is_there_before_it_is_touched() {
        let (_segment, fd) = Segment::create(RING, ABI).unwrap();
        let there = |fd| sys::fstat(fd).unwrap().st_blocks as usize * 512;
        assert!(
            there(fd) < SIZE || std::fs::read("/proc/sys/vm/overcommit_memory").unwrap() == b"2\n"
        );
        sys::allocate(fd, 0, SIZE).unwrap();
        assert_eq!(there(fd), SIZE.next_multiple_of(4096));
        sys::close(fd).unwrap();
    }

    #[test]
    fn a_well_made_segment_is_accepted() {
        assert_eq!(opened(SEALS, SIZE, WORDS).unwrap().ring_size(), RING);
    }

    #[test]
    fn unsealed_memory_is_refused() {
        for seals in [0, libc::F_SEAL_SHRINK, libc::F_SEAL_GROW] {
            assert_eq!(opened(seals, SIZE, WORDS).err(), Some(libc::EPROTO));
        }
    }

    #[test]
    fn a_wrong_size_is_refused() {
        for size in [
            0,
            HEADER_SIZE,
            SIZE - 1,
            SIZE + 4096,
            HEADER_SIZE + 2 * 2048,
        ] {
            let size = size.max(16);
            assert_eq!(opened(SEALS, size, WORDS).err(), Some(libc::EPROTO));
        }
    }

    #[test]
    fn a_header_with_another_layout_is_refused() {
        for i in 0..4 {
            let mut words = WORDS;
            words[i] += 1;
            assert_eq!(opened(SEALS, SIZE, words).err(), Some(libc::EPROTO));
        }
    }

    #[test]
    fn ring_sizes_are_powers_of_two_in_bounds() {
        for ring in [
            0,
            64,
            MIN_RING - 1,
            MIN_RING / 2,
            3 * MIN_RING,
            2 * MAX_RING,
        ] {
            assert_eq!(Segment::create(ring, ABI).err(), Some(libc::EINVAL));
        }
    }
}
