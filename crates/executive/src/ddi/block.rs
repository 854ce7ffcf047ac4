//! Message blocks and data blocks.
//!
//! # Contract
//! A *chunk* is one allocation: a message block, a data block, the buffer. A `dupb` has a message block of its own and
//! shares the data block. A chunk goes when both its blocks are gone: whoever gives up the second one returns it.
//! Each message block holds one reference to its data block. Blocks that were freed are touched no more.

use core::cell::Cell;
use core::ffi::{c_char, c_uint};
use core::mem::offset_of;
use core::ptr::{NonNull, addr_of_mut, null_mut};
use std::alloc::{Layout, alloc, dealloc};

use headwater_host::sync::{AtomicU32, Ordering, fence};

/// A message block (mblk_t).
#[repr(C)]
pub struct mblk_t {
    pub(crate) b_next: Cell<Option<OnQueue>>,
    pub(crate) b_prev: Cell<Option<OnQueue>>,
    pub b_cont: *mut mblk_t,
    pub b_rptr: *mut u8,
    pub b_wptr: *mut u8,
    pub b_datap: *mut dblk_t,
    pub b_band: Cell<u8>,
    /// Ours: does the block lie in a chunk with a data block?
    b_pad1: u8,
    pub b_flag: u16,
    pub b_pad2: isize,
}

/// A message on a queue, which is used inside the perimeter, and while it is there: see [`Queue`](super::queue::Queue). Made, and
/// taken back, by [`Message`](super::owned::Message) alone.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OnQueue(pub(super) NonNull<mblk_t>);

/// A data block (dblk_t).
#[repr(C)]
pub struct dblk_t {
    /// Set for a buffer that somebody else provided (esballoc).
    pub db_frtnp: *mut free_rtn,
    pub db_base: *mut u8,
    pub db_lim: *mut u8,
    /// Message blocks that refer to this. Counted by [`dblk_t::refs`] only.
    pub db_ref: u8,
    pub db_type: u8,
    pub db_iswhat: u8,
    db_pad: u8,
    pub db_size: u32,
    pub db_msgaddr: *mut c_char,
    pub db_filler: isize,
    db_gone: AtomicU32,
    db_class: u32,
    db_room: usize,
}

/// free_rtn(9S): how an external buffer is given back.
#[repr(C)]
pub struct free_rtn {
    pub free_func: Option<unsafe extern "C-unwind" fn(*mut c_char)>,
    pub free_arg: *mut c_char,
}

/// b_flag: last byte is marked (I_ATMARK).
pub const MSGMARK: u16 = 0x01;
/// b_flag: not to be looped back to the sender.
pub const MSGNOLOOP: u16 = 0x02;
/// b_flag: end of a record.
pub const MSGDELIM: u16 = 0x04;
pub const MSGNOGET: u16 = 0x08;

/// Priorities of allocation, all treated alike.
pub const BPRI_LO: c_uint = 1;
pub const BPRI_MED: c_uint = 2;
pub const BPRI_HI: c_uint = 3;

#[repr(C)]
struct Chunk {
    block: mblk_t,
    data: dblk_t,
}

const _: () = assert!(size_of::<mblk_t>() == 64 && size_of::<Chunk>() == 128);
const _: () = assert!(offset_of!(dblk_t, db_ref) == 24 && offset_of!(dblk_t, db_type) == 25);

const ALONE: u8 = 0;
const WITH_DATA: u8 = 1;

const BLOCK_GONE: u32 = 1;
const DATA_GONE: u32 = 2;

/// One reference in the word that db_ref lies in.
const ONE: u32 = if cfg!(target_endian = "little") {
    1
} else {
    1 << 24
};

const fn count(word: u32) -> u32 {
    (word / ONE) & 0xff
}

impl dblk_t {
    /// The word of which db_ref is one byte. The other bytes are only ever set while there is one reference.
    ///
    /// # Safety
    /// A live data block.
    #[inline(always)]
    unsafe fn counter<'a>(db: *mut dblk_t) -> &'a AtomicU32 {
        // SAFETY: the data block is live, as the caller says; the word is aligned, and while it is shared only this atomic changes it.
        unsafe { AtomicU32::from_ptr(addr_of_mut!((*db).db_ref).cast()) }
    }

    /// References to this data block.
    ///
    /// # Safety
    /// `db` is a live data block.
    #[inline(always)]
    pub unsafe fn refs(db: *mut dblk_t) -> u32 {
        // SAFETY: the data block is live, as the caller says.
        unsafe { count(dblk_t::counter(db).load(Ordering::Acquire)) }
    }
}

/// allocb(9F): a message block with room for `size` bytes, type M_DATA. Null without memory.
#[inline]
pub extern "C-unwind" fn allocb(size: usize, _pri: c_uint) -> *mut mblk_t {
    let chunk = fresh_chunk(size);
    if chunk.is_null() {
        return null_mut();
    }
    // SAFETY: a fresh chunk, which has its `size` bytes of buffer behind the two blocks.
    unsafe {
        let base = chunk.add(1).cast::<u8>();
        prepare(chunk, base, size, null_mut())
    }
}

/// esballoc(9F): a message block over `size` bytes at `base`, given back by `frtn` when the last reference goes.
///
/// # Safety
/// `base` is null, or has `size` bytes that nobody else touches until they are given back. `frtn` is null, or stays as long; its routine
/// may be called by any thread.
pub unsafe extern "C-unwind" fn esballoc(
    base: *mut u8,
    size: usize,
    _pri: c_uint,
    frtn: *mut free_rtn,
) -> *mut mblk_t {
    let chunk = fresh_chunk(0);
    // SAFETY: the chunk is fresh; the bytes at `base` stay until they are given back, as the caller says.
    unsafe {
        if chunk.is_null() || base.is_null() {
            if !chunk.is_null() {
                recycle(chunk);
            }
            return null_mut();
        }
        prepare(chunk, base, size, frtn)
    }
}

/// freeb(9F): gives up a block; its data when this was the last reference. Null is ignored.
///
/// # Safety
/// `mp` is null, or a live block of the caller's, on no queue, which is gone afterwards.
#[inline]
pub unsafe extern "C-unwind" fn freeb(mp: *mut mblk_t) {
    if mp.is_null() {
        return;
    }
    // SAFETY: the caller gives up a live block. Every block begins a chunk, and a data block is there as long as one refers to it.
    unsafe {
        let own = own_data(mp);
        if (*mp).b_pad1 == WITH_DATA && (*mp).b_datap == own && dblk_t::refs(own) == 1 {
            if !(*own).db_frtnp.is_null() {
                give_back_external(own);
            }
            recycle(mp.cast());
        } else {
            freeb_shared(mp);
        }
    }
}

/// dupb(9F): a second block over the same data. Null without memory or at 255 references.
///
/// # Safety
/// `mp` is a live block, which nobody changes meanwhile.
#[inline]
pub unsafe extern "C-unwind" fn dupb(mp: *mut mblk_t) -> *mut mblk_t {
    // SAFETY: the block is live, as the caller says, and holds its data block; the copy is a chunk of ours alone.
    unsafe {
        let counter = dblk_t::counter((*mp).b_datap);
        let more = |word: u32| (count(word) < 255).then(|| word + ONE);
        if counter
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_err()
        {
            return null_mut();
        }
        let copy = take(0).cast::<mblk_t>();
        if copy.is_null() {
            drop_data((*mp).b_datap);
            return null_mut();
        }
        copy.write(mblk_t {
            b_next: Cell::new(None),
            b_prev: Cell::new(None),
            b_cont: null_mut(),
            b_pad1: ALONE,
            ..mp.read()
        });
        copy
    }
}

/// copyb(9F): a block with its own copy of the data, and the same room before and after it.
///
/// # Safety
/// `mp` is a live block whose pointers lie in its buffer; nobody changes it or its data meanwhile.
pub unsafe extern "C-unwind" fn copyb(mp: *mut mblk_t) -> *mut mblk_t {
    // SAFETY: the pointers of a live block lie in its buffer, as the caller says; that of the copy is as large and lies elsewhere.
    unsafe {
        let from = (*mp).b_datap;
        let size = (*from).db_lim.offset_from((*from).db_base) as usize;
        let copy = allocb(size, BPRI_MED);
        if copy.is_null() {
            return copy;
        }
        let to = (*copy).b_datap;
        (*to).db_type = (*from).db_type;
        (*copy).b_rptr = (*to)
            .db_base
            .offset((*mp).b_rptr.offset_from((*from).db_base));
        let len = (*mp).b_wptr.offset_from((*mp).b_rptr).max(0) as usize;
        (*copy).b_wptr = (*copy).b_rptr.add(len);
        core::ptr::copy_nonoverlapping((*mp).b_rptr, (*copy).b_rptr, len);
        (*copy).b_band = Cell::new((*mp).b_band.get());
        (*copy).b_flag = (*mp).b_flag;
        copy
    }
}

/// Gives `mp` the data block of `other`, which is used up; for pullupmsg, which must keep `mp` where it is.
///
/// # Safety
/// Live blocks of the caller's; `other` came from [`allocb`] and is not shared.
pub(super) unsafe fn replace_data(mp: *mut mblk_t, other: *mut mblk_t) {
    // SAFETY: both blocks are live, as the caller says. `other` began its chunk, which its data block keeps; the old data is given up once.
    unsafe {
        let data = (*other).b_datap;
        let old = (*mp).b_datap;
        (*mp).b_datap = data;
        (*mp).b_rptr = (*other).b_rptr;
        (*mp).b_wptr = (*other).b_wptr;
        (*data).db_gone.fetch_or(BLOCK_GONE, Ordering::AcqRel);
        drop_data(old);
    }
}

/// # Safety
/// A live block.
#[inline(always)]
unsafe fn own_data(mp: *mut mblk_t) -> *mut dblk_t {
    // SAFETY: every live block begins a chunk, also one that uses nothing else of it.
    unsafe { addr_of_mut!((*mp.cast::<Chunk>()).data) }
}

/// # Safety
/// A data block in a chunk that is not returned yet.
#[inline(always)]
unsafe fn chunk_of(db: *mut dblk_t) -> *mut Chunk {
    // SAFETY: it lies in a chunk, as the caller says, and always at the same place.
    unsafe { db.byte_sub(offset_of!(Chunk, data)).cast() }
}

/// A chunk with class and room noted. Null without memory.
#[inline(always)]
fn fresh_chunk(size: usize) -> *mut Chunk {
    let (chunk, class, room) = match class_of(size) {
        Some(class) => (take(class), class, ROOM[class]),
        None => (alloc_large(size), CLASSES, size),
    };
    if !chunk.is_null() {
        // SAFETY: the chunk has just been allocated, for us alone.
        unsafe {
            (*chunk).data.db_class = class as u32;
            (*chunk).data.db_room = room;
        }
    }
    chunk
}

/// # Safety
/// A chunk from [`fresh_chunk`]; `base` has `size` bytes, and `frtn` is null or as esballoc(9F) wants it.
#[inline(always)]
unsafe fn prepare(
    chunk: *mut Chunk,
    base: *mut u8,
    size: usize,
    frtn: *mut free_rtn,
) -> *mut mblk_t {
    // SAFETY: the chunk is fresh, with class and room noted, and `base` has `size` bytes, as the caller says.
    unsafe {
        let data = addr_of_mut!((*chunk).data);
        data.write(dblk_t {
            db_frtnp: frtn,
            db_base: base,
            db_lim: base.add(size),
            db_ref: 1,
            db_type: 0,
            db_iswhat: 0,
            db_pad: 0,
            db_size: size as u32,
            db_msgaddr: null_mut(),
            db_filler: 0,
            db_gone: AtomicU32::new(0),
            db_class: (*data).db_class,
            db_room: (*data).db_room,
        });
        let block = addr_of_mut!((*chunk).block);
        block.write(mblk_t {
            b_next: Cell::new(None),
            b_prev: Cell::new(None),
            b_cont: null_mut(),
            b_rptr: base,
            b_wptr: base,
            b_datap: data,
            b_band: Cell::new(0),
            b_pad1: WITH_DATA,
            b_flag: 0,
            b_pad2: 0,
        });
        block
    }
}

/// # Safety
/// A live block of the caller's, which is gone afterwards.
#[cold]
unsafe fn freeb_shared(mp: *mut mblk_t) {
    // SAFETY: the caller gives up a live block. Its chunk stays until both blocks are given up, and whoever sees that it is the second
    // returns it.
    unsafe {
        let data = (*mp).b_datap;
        if (*mp).b_pad1 == ALONE {
            drop_data(data);
            give(mp.cast(), 0);
            return;
        }
        let own = own_data(mp);
        // With a reference to our own data held, it can't be gone yet: whoever drops the last one returns the chunk.
        if data == own {
            (*own).db_gone.fetch_or(BLOCK_GONE, Ordering::AcqRel);
            drop_data(own);
            return;
        }
        drop_data(data);
        if (*own).db_gone.fetch_or(BLOCK_GONE, Ordering::AcqRel) & DATA_GONE != 0 {
            recycle(mp.cast());
        }
    }
}

/// # Safety
/// A live data block, of whose references one is the caller's, and is gone afterwards.
unsafe fn drop_data(db: *mut dblk_t) {
    // SAFETY: the caller gives up one reference. Who gives up the last one is alone with the data block, and with the chunk if its
    // block has gone.
    unsafe {
        if count(dblk_t::counter(db).fetch_sub(ONE, Ordering::Release)) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        if !(*db).db_frtnp.is_null() {
            give_back_external(db);
        }
        if (*db).db_gone.fetch_or(DATA_GONE, Ordering::AcqRel) & BLOCK_GONE != 0 {
            recycle(chunk_of(db));
        }
    }
}

/// # Safety
/// A data block with db_frtnp, without references.
#[cold]
unsafe fn give_back_external(db: *mut dblk_t) {
    // SAFETY: the last reference is gone, and db_frtnp is not null: by esballoc(9F) the routine is there until it was called.
    unsafe {
        let routine = &*(*db).db_frtnp;
        if let Some(free) = routine.free_func {
            free(routine.free_arg);
        }
    }
}

const CLASSES: usize = 5;
/// Bytes of buffer in a chunk of each class. Larger ones come from the allocator as they are.
const ROOM: [usize; CLASSES] = [0, 128, 512, 2048, 8192];
/// Chunks that a thread keeps of each class: under 64 KiB together.
const KEPT: [u32; CLASSES] = [32, 32, 16, 8, 2];

/// Free chunks of this thread, linked by b_cont.
struct Cache {
    first: [Cell<*mut Chunk>; CLASSES],
    count: [Cell<u32>; CLASSES],
}

thread_local! {
    static CACHE: Cache = const {
        Cache {
            first: [const { Cell::new(null_mut()) }; CLASSES],
            count: [const { Cell::new(0) }; CLASSES],
        }
    };
}

#[inline(always)]
fn class_of(size: usize) -> Option<usize> {
    ROOM.iter().position(|&room| size <= room)
}

fn layout(room: usize) -> Option<Layout> {
    Layout::from_size_align(size_of::<Chunk>().checked_add(room)?, 16).ok()
}

#[inline(always)]
fn take(class: usize) -> *mut Chunk {
    let kept = CACHE.try_with(|c| {
        let chunk = c.first[class].get();
        if !chunk.is_null() {
            // SAFETY: a chunk of this list is free, and this thread's alone.
            unsafe {
                c.first[class].set((*chunk).block.b_cont.cast());
            }
            c.count[class].set(c.count[class].get() - 1);
        }
        chunk
    });
    match kept {
        Ok(chunk) if !chunk.is_null() => chunk,
        _ => alloc_large(ROOM[class]),
    }
}

/// # Safety
/// A chunk with class and room noted, which nobody uses any more.
#[inline(always)]
unsafe fn recycle(chunk: *mut Chunk) {
    // SAFETY: the caller gives up a chunk that noted its class and room.
    unsafe {
        let class = (*chunk).data.db_class as usize;
        if class < CLASSES {
            give(chunk, class);
        } else {
            release(chunk, (*chunk).data.db_room);
        }
    }
}

/// # Safety
/// A chunk of this class, which nobody uses any more.
#[inline(always)]
unsafe fn give(chunk: *mut Chunk, class: usize) {
    // SAFETY: the caller gives up a chunk of this class, which nobody refers to any more.
    unsafe {
        let kept = CACHE.try_with(|c| {
            let count = c.count[class].get();
            if count >= KEPT[class] {
                return false;
            }
            (*chunk).block.b_cont = c.first[class].get().cast();
            c.first[class].set(chunk);
            c.count[class].set(count + 1);
            true
        });
        if kept != Ok(true) {
            release(chunk, ROOM[class]);
        }
    }
}

#[cold]
fn alloc_large(room: usize) -> *mut Chunk {
    // SAFETY: the layout is not empty, there is a `Chunk` in it.
    layout(room).map_or(null_mut(), |l| unsafe { alloc(l).cast() })
}

/// # Safety
/// A chunk with that room, which nobody uses any more.
#[cold]
unsafe fn release(chunk: *mut Chunk, room: usize) {
    if let Some(l) = layout(room) {
        // SAFETY: allocated with this layout, as the caller says who knows its room.
        unsafe {
            dealloc(chunk.cast(), l);
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        for (class, room) in ROOM.into_iter().enumerate() {
            let mut chunk = self.first[class].replace(null_mut());
            self.count[class].set(u32::MAX);
            while !chunk.is_null() {
                // SAFETY: chunks of this list are free and belong to this thread.
                unsafe {
                    let next = (*chunk).block.b_cont.cast();
                    release(chunk, room);
                    chunk = next;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddi::message::*;
    use crate::ddi::owned::Message;

    static RETURNED: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C-unwind" fn returned(arg: *mut c_char) {
        // SAFETY: the argument is the count of the test.
        unsafe {
            *arg += 1;
            RETURNED.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn data_lives_until_its_last_block_goes_in_whatever_order() {
        // SAFETY: blocks of our own.
        unsafe {
            for original_first in [false, true] {
                let mp = Message::data(b"shared").into_raw();
                (*mp).b_band.set(3);
                let dup = dupb(mp);
                let again = dupb(dup);
                assert_eq!((dblk_t::refs((*mp).b_datap), (*dup).b_band.get()), (3, 3));
                freeb(again);
                let (first, second) = if original_first { (mp, dup) } else { (dup, mp) };
                freeb(first);
                assert_eq!(Message::from_raw(second).unwrap().bytes(), b"shared");
            }
        }
    }

    #[test]
    fn a_data_block_has_255_references_at_most() {
        // SAFETY: blocks of our own.
        unsafe {
            let mp = allocb(0, BPRI_LO);
            (*(*mp).b_datap).db_type = M_CTL;
            let dups: Vec<_> = (0..254).map(|_| dupb(mp)).collect();
            assert!(dups.iter().all(|d| !d.is_null()));
            assert!(dupb(mp).is_null());
            assert_eq!(mtype(mp), M_CTL);
            dups.into_iter().for_each(|d| freeb(d));
            assert_eq!(dblk_t::refs((*mp).b_datap), 1);
            freeb(mp);
        }
    }

    #[test]
    fn an_external_buffer_is_given_back_once() {
        let mut count: c_char = 0;
        let mut buffer = *b"external";
        let mut routine = free_rtn {
            free_func: Some(returned),
            free_arg: &raw mut count,
        };
        // SAFETY: the buffer outlives the blocks.
        unsafe {
            let mp = esballoc(buffer.as_mut_ptr(), 8, BPRI_HI, &mut routine);
            (*mp).b_wptr = (*mp).b_rptr.add(8);
            let dup = dupb(mp);
            freeb(mp);
            assert_eq!(RETURNED.load(Ordering::Relaxed), 0);
            assert_eq!(Message::from_raw(dup).unwrap().bytes(), b"external");
            assert_eq!((RETURNED.load(Ordering::Relaxed), count), (1, 1));
            assert!(esballoc(null_mut(), 8, BPRI_HI, &mut routine).is_null());
        }
    }

    #[test]
    fn a_copy_keeps_the_room_before_its_data() {
        // SAFETY: a block of our own.
        unsafe {
            let mp = allocb(20, BPRI_MED);
            (*mp).b_rptr = (*mp).b_rptr.add(5);
            (*mp).b_wptr = (*mp).b_rptr;
            let mut m = Message::from_raw(mp).unwrap();
            assert_eq!(m.push(&[9; 20]), 15);
            let copy = m.copy().unwrap();
            let raw = copy.as_ptr();
            assert_eq!((*raw).b_rptr.offset_from((*(*raw).b_datap).db_base), 5);
            assert_eq!(copy.bytes(), m.bytes());
        }
    }

    #[test]
    fn blocks_of_all_sizes_are_used_again_by_any_thread() {
        let sizes = [0, 1, 64, 128, 129, 512, 2048, 4096, 8192, 8193, 1 << 20];
        for _ in 0..3 {
            let made: Vec<_> = sizes
                .iter()
                .flat_map(|&n| (0..40).map(move |_| Message::from_bytes(M_DATA, &vec![n as u8; n])))
                .collect();
            let bytes = |m: &Message| m.bytes().iter().all(|&b| b == m.len() as u8);
            assert!(made.iter().all(bytes));
            std::thread::spawn(move || drop(made)).join().unwrap();
        }
    }
}
