//! The library's own memory, apart from the program's: calls that may be made in signal handlers must not enter a malloc that the
//! handler has interrupted, and a malloc that was preloaded may itself call us.
//!
//! No locks, so that handlers, threads and forks find it whole at any moment. Blocks come in classes of size, four to each
//! doubling; what is freed goes on its class's list and stays there. Blocks too large for that are mapped one by one.
//!
//! Where the kernel gives no more, there is a *reserve*, since an allocation that fails is the end of the program. It is for what exists
//! already: nothing new is begun while memory [is scarce](is_scarce).

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;

use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Exchange, Ordering};
use crate::sys;

/// Tables of many pages, apart from all other zeroed data: the little that a process touches then stands on a page or two, each of
/// which costs it a fault, and each of its forks a copy. A fork also looks through all of a page table (2 MiB) of which a page was
/// touched: what few processes touch is named `rarely`, and stands behind the rest.
#[macro_export]
macro_rules! large {
    (rarely: $($item:item)*) => {
        $(
            #[cfg_attr(target_arch = "x86_64", unsafe(link_section = ".bss.headwater_rare"))]
            $item
        )*
    };
    ($($item:item)*) => {
        $(
            #[cfg_attr(target_arch = "x86_64", unsafe(link_section = ".bss.headwater_large"))]
            $item
        )*
    };
}

pub struct Memory;

/// Blocks are multiples of this.
const UNIT: usize = 16;
const PAGE: usize = 4096;
/// Larger ones are mapped one by one; those above a piece are mapped, and kept when they are freed.
const LARGEST: usize = 1 << 20;
const PIECE: usize = 64 << 10;
/// What small blocks are cut from: first room that is there from the beginning, then regions of this size.
const REGION: usize = 1 << 20;
/// The reserve. A process that serves sockets for its children may want a message of several hundred KiB from it.
const SPARE: usize = 4 << 20;
const CLASSES: usize = class_of(LARGEST) + 1;

/// {changes: 20, address / 16: 44} of the first free block of a class. A free block begins with the address of the next.
#[unsafe(link_section = ".data")]
static FREE: [AtomicU64; CLASSES] = [const { AtomicU64::new(0) }; CLASSES];
const ADDRESS: u64 = (1 << 44) - 1;

const FIRST: usize = 128 << 10;
crate::large! {
    /// Aligned by [`room`].
    static mut ROOM: [u8; FIRST + PAGE] = [0; FIRST + PAGE];
}

/// Cut up where no other region is to be had, and as long as that is so; not touched before, so it costs nothing but addresses.
#[repr(C, align(4096))]
struct Reserve([u8; SPARE]);
crate::large! {
    rarely:
    static mut RESERVE: Reserve = Reserve([0; SPARE]);
}
/// Bytes of it.
static RESERVE_TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Did the kernel give no memory when it was last asked?
static SCARCE: AtomicBool = AtomicBool::new(false);

/// Is there too little memory to begin anything new? Asks the kernel whether that is still so.
#[inline]
pub fn is_scarce() -> bool {
    SCARCE.load(Ordering::Relaxed) && is_still_scarce()
}

#[cold]
fn is_still_scarce() -> bool {
    let region = map(REGION);
    if region.is_null() {
        return true;
    }
    // SAFETY: just mapped, and nobody knows it.
    unsafe { unmap(region, REGION) };
    false
}

/// What is cut up just now: {page: 36, bytes taken / 16: 28}; 0: the first room, untouched.
#[unsafe(link_section = ".data")]
static CUT: AtomicU64 = AtomicU64::new(0);
const TAKEN: u64 = (1 << 28) - 1;

/// Sizes of 16, 32, 48 and 64 bytes; from there on four to each doubling.
const fn class_of(size: usize) -> usize {
    let units = size.div_ceil(UNIT);
    if units <= 4 {
        return units.saturating_sub(1);
    }
    let power = (units - 1).ilog2() as usize;
    4 + (power - 2) * 4 + ((units - 1) >> (power - 2)) - 4
}

const fn size_of_class(class: usize) -> usize {
    if class < 4 {
        return (class + 1) * UNIT;
    }
    let (power, step) = ((class - 4) / 4, (class - 4) % 4);
    ((5 + step) << power) * UNIT
}

/// The size that is to be had for a layout. Where more than a unit's alignment is asked for, it is a power of two, which is
/// aligned to itself up to a page.
fn wanted(layout: Layout) -> usize {
    match layout.align() {
        0..=UNIT => layout.size(),
        align => layout.size().max(align).next_power_of_two(),
    }
}

// SAFETY: blocks of a class are as large as its size, are aligned as `wanted` says, and are on one list at most.
unsafe impl GlobalAlloc for Memory {
    // In one place, where the tests that inject faults find it.
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = wanted(layout);
        if size > LARGEST || layout.align() > PAGE {
            return map_aligned(layout);
        }
        let class = class_of(size);
        pop(class).unwrap_or_else(|| fresh(class))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let size = wanted(layout);
        // SAFETY: the caller gives back a block of this layout: a mapping of its own, or one of the class.
        unsafe {
            if size > LARGEST || layout.align() > PAGE {
                return unmap(block, layout.size().next_multiple_of(PAGE));
            }
            push(class_of(size), block, block);
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let mapped = wanted(layout) > LARGEST || layout.align() > PAGE;
        // SAFETY: the caller's layout is not empty, and a block has room for its size.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() && !mapped {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller says that the size, rounded up to the alignment, is no overflow.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (from, to) = (wanted(layout), wanted(new));
        let listed = from <= LARGEST && to <= LARGEST && layout.align() <= PAGE;
        if listed && class_of(from) == class_of(to) {
            return block;
        }
        // SAFETY: the new size is not 0, both blocks are as large as what is copied, and the old one is the caller's to give back.
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                core::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

fn word(before: u64, block: *mut u8) -> u64 {
    (before & !ADDRESS).wrapping_add(ADDRESS + 1) | (block as u64 >> 4)
}

/// # Safety
/// `block` is of a class, whose blocks stay mapped.
unsafe fn next_of<'a>(block: *mut u8) -> &'a AtomicU64 {
    // SAFETY: aligned to a unit, and as large; whoever may look at it while it is free does so by atomics alone.
    unsafe { &*(block as *const AtomicU64) }
}

fn pop(class: usize) -> Option<*mut u8> {
    let first = |head: u64| ((head & ADDRESS) << 4) as *mut u8;
    let without_it = |head| {
        let block = Some(first(head)).filter(|block| !block.is_null())?;
        // SAFETY: blocks stay mapped. Where another thread has taken this one, the word is its own, and the exchange fails.
        let next = unsafe { next_of(block) }.load(Ordering::Relaxed) as *mut u8;
        Some(word(head, next))
    };
    let head = FREE[class].fetch_update(Ordering::AcqRel, Ordering::Acquire, without_it);
    head.ok().map(first)
}

/// Puts a chain of free blocks on their list.
///
/// # Safety
/// `first` leads to `last`, and they are the caller's.
unsafe fn push(class: usize, first: *mut u8, last: *mut u8) {
    // SAFETY: the last is a block of the class.
    let next = unsafe { next_of(last) };
    let with_them = |head| {
        next.store((head & ADDRESS) << 4, Ordering::Relaxed);
        Some(word(head, first))
    };
    let _ = FREE[class].fetch_update(Ordering::AcqRel, Ordering::Relaxed, with_them);
}

/// Bytes of blocks of a class that are made at a time. What is aligned to itself stays so in them; and a process that needs a few blocks of
/// several classes touches few pages: larger blocks stand one behind the other, whatever their class.
const fn run_of(size: usize) -> usize {
    match size {
        0..=128 => 512,
        129..=512 => 2048,
        513..PAGE => size,
        _ => size.next_multiple_of(PAGE),
    }
}

/// A block that was never used. Small ones are made several at a time.
fn fresh(class: usize) -> *mut u8 {
    let size = size_of_class(class);
    if size > PIECE {
        let whole = size.next_multiple_of(PAGE);
        let mapped = map(whole);
        return if mapped.is_null() { cut(whole) } else { mapped };
    }
    let run = run_of(size);
    let count = (run / size).max(1);
    let first = cut(run);
    if first.is_null() || count == 1 {
        return first;
    }
    // SAFETY: the run has room for so many blocks, and nobody else knows it.
    unsafe {
        let at = |i: usize| first.add(i * size);
        for i in 1..count - 1 {
            next_of(at(i)).store(at(i + 1) as u64, Ordering::Relaxed);
        }
        push(class, at(1), at(count - 1));
    }
    first
}

fn room() -> usize {
    (&raw mut ROOM as usize).next_multiple_of(PAGE)
}

/// Bytes of the current region, multiples of a unit, aligned to themselves up to a page.
fn cut(bytes: usize) -> *mut u8 {
    loop {
        let now = CUT.load(Ordering::Acquire);
        let (base, taken) = match now {
            0 => (room(), 0),
            _ => ((now >> 28) as usize * PAGE, (now & TAKEN) as usize * UNIT),
        };
        let taken = taken.next_multiple_of(bytes.min(PAGE));
        let whole = match base {
            _ if base == room() => FIRST,
            _ => REGION,
        };
        let entered =
            |base: usize, taken: usize| ((base / PAGE) as u64) << 28 | (taken / UNIT) as u64;
        if taken + bytes <= whole {
            if CUT.exchange(now, entered(base, taken + bytes)) {
                return (base + taken) as *mut u8;
            }
            continue;
        }
        let region = map(REGION);
        if region.is_null() {
            let spare = cut_reserve(bytes);
            if spare.is_null() && CUT.load(Ordering::Acquire) != now {
                // Another thread has got a region since we looked.
                continue;
            }
            return spare;
        }
        if CUT.exchange(now, entered(region as usize, bytes)) {
            return region;
        }
        // SAFETY: just mapped, and nobody knows it.
        unsafe { unmap(region, REGION) };
    }
}

/// The same of the reserve; null: it has not so many left.
fn cut_reserve(bytes: usize) -> *mut u8 {
    let from = |taken: usize| taken.next_multiple_of(bytes.min(PAGE));
    let room = |taken| Some(from(taken) + bytes).filter(|&end| end <= SPARE);
    let before = RESERVE_TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
    before.map_or(null_mut(), |taken| {
        (&raw mut RESERVE).cast::<u8>().wrapping_add(from(taken))
    })
}

fn map(bytes: usize) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let mapped = sys::map(bytes, rw, flags, -1);
    if mapped.is_err() != SCARCE.load(Ordering::Relaxed) {
        SCARCE.store(mapped.is_err(), Ordering::Relaxed);
    }
    mapped.unwrap_or(null_mut())
}

fn map_aligned(layout: Layout) -> *mut u8 {
    let bytes = layout.size().next_multiple_of(PAGE);
    if layout.align() <= PAGE {
        return map(bytes);
    }
    let whole = bytes + layout.align();
    let at = map(whole);
    if at.is_null() {
        return at;
    }
    let before = at.align_offset(layout.align());
    let after = whole - bytes - before;
    // SAFETY: what is outside the block, in whole pages.
    unsafe {
        let start = at.add(before);
        if before > 0 {
            unmap(at, before);
        }
        if after > 0 {
            unmap(start.add(bytes), after);
        }
        start
    }
}

/// # Safety
/// The pages are mapped, and nobody uses them any more.
unsafe fn unmap(at: *mut u8, bytes: usize) {
    // SAFETY: nobody finds out that they are gone.
    let _ = unsafe { sys::munmap(at, bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_say_and_waste_little() {
        for size in (1..5000)
            .chain((5000..=LARGEST).step_by(61))
            .chain([LARGEST])
        {
            let class = class_of(size);
            assert!(size_of_class(class) >= size, "{size}");
            assert!(class == 0 || size_of_class(class - 1) < size, "{size}");
            assert!(size < 64 || size_of_class(class) <= size + size / 4 + UNIT);
            if size.is_power_of_two() && size >= UNIT {
                assert_eq!(size_of_class(class), size);
            }
        }
    }

    #[test]
    fn blocks_are_apart_aligned_and_used_again() {
        let sizes = [
            1,
            16,
            17,
            100,
            500,
            4095,
            4097,
            70_000,
            300_000,
            LARGEST + 1,
        ];
        let aligns = [1, 16, 64, 4096, 8192];
        let mut seed = 7u32;
        let mut held: Vec<(*mut u8, Layout, u8)> = Vec::new();
        for turn in 0..5_000u32 {
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            let pick = (seed >> 8) as usize;
            if held.len() > 60 || turn % 3 == 2 {
                let (at, layout, mark) = held.swap_remove(pick % held.len());
                // SAFETY: allocated with this layout below.
                unsafe {
                    let bytes = core::slice::from_raw_parts(at, layout.size());
                    assert!(bytes.iter().all(|&b| b == mark));
                    Memory.dealloc(at, layout);
                }
                continue;
            }
            let layout =
                Layout::from_size_align(sizes[pick % sizes.len()], aligns[pick / 16 % 5]).unwrap();
            // SAFETY: not of size zero.
            unsafe {
                let at = Memory.alloc(layout);
                assert!(!at.is_null() && (at as usize).is_multiple_of(layout.align()));
                at.write_bytes(turn as u8, layout.size());
                held.push((at, layout, turn as u8));
            }
        }
        for (at, layout, _) in held {
            // SAFETY: allocated with this layout, and freed by no turn.
            unsafe { Memory.dealloc(at, layout) };
        }
    }

    /// Lets the kernel give no more memory, or again.
    fn limit(bytes: u64) {
        let limit = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: a valid limit.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
    }

    fn is_spare(block: *mut u8) -> bool {
        let reserve = &raw const RESERVE as usize;
        (reserve..reserve + SPARE).contains(&(block as usize))
    }

    /// Is the work's answer yes in a process of its own?
    fn in_child(work: impl FnOnce() -> bool) {
        // SAFETY: the child makes threads of its own at most, and leaves.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(!work() as i32);
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
    }

    /// However often the kernel gives no memory for a moment.
    #[test]
    fn the_reserve_is_for_when_there_is_nothing_else() {
        in_child(|| {
            (0..2 * SPARE / REGION).all(|_| {
                limit(0);
                // What the last region has left.
                let spare = (0..REGION / PAGE + FIRST / PAGE + 1).find_map(|_| {
                    let block = cut(PAGE);
                    (is_spare(block) || block.is_null()).then_some(block)
                });
                limit(libc::RLIM_INFINITY);
                let mut more = (0..REGION / PAGE).map(|_| cut(PAGE));
                spare.is_some_and(is_spare) && more.all(|b| !b.is_null() && !is_spare(b))
            })
        });
    }

    /// Takes all that is left, by pages, as several threads do at once; false: was refused while there was more.
    fn takes_all(start: &std::sync::Barrier) -> bool {
        if start.wait().is_leader() {
            limit(0);
        }
        start.wait();
        while !cut(PAGE).is_null() {}
        RESERVE_TAKEN.load(Ordering::Acquire) + PAGE > SPARE
    }

    #[test]
    fn no_thread_is_refused_while_there_is_a_reserve() {
        for _ in 0..100 {
            in_child(|| {
                let start = std::sync::Barrier::new(4);
                let all = std::thread::scope(|s| {
                    [0; 4]
                        .map(|_| s.spawn(|| takes_all(&start)))
                        .map(|t| t.join())
                });
                all.iter().all(|all| matches!(all, Ok(true)))
            });
        }
    }

    #[test]
    fn threads_share_it() {
        let run = |mark: u8| {
            let layout = Layout::from_size_align(48, 8).unwrap();
            for _ in 0..5_000 {
                // SAFETY: allocated and freed with one layout.
                unsafe {
                    let two = [Memory.alloc(layout), Memory.alloc(layout)];
                    two.iter().for_each(|at| at.write_bytes(mark, 48));
                    for at in two {
                        assert!(
                            core::slice::from_raw_parts(at, 48)
                                .iter()
                                .all(|&b| b == mark)
                        );
                        Memory.dealloc(at, layout);
                    }
                }
            }
        };
        std::thread::scope(|s| {
            for mark in 0..4 {
                s.spawn(move || run(mark));
            }
        });
    }
}
