//! A message that frees itself.
//!
//! # Contract
//! A `Message` owns a non-empty chain of live blocks that is on no queue.

use core::ffi::c_int;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use std::alloc::{Layout, handle_alloc_error};

use super::block::*;
use super::message::*;

/// Routines of the DDI/DKI on this message: what they get, and what becomes of their answer; then those that change it.
macro_rules! routines {
    ($self:ident:
        $($(#[$doc:meta])* fn $name:ident() -> $ret:ty = $routine:path $(, $made:path)?;)*
        changes:
        $($(#[$also:meta])* fn $changes:ident($($arg:ident: $t:ty = $given:expr)?) -> $told:ty = $by:path $(, $makes:path)?;)*
    ) => {
        $(
            $(#[$doc])*
            pub fn $name(&$self) -> $ret {
                // SAFETY: we own it, and what is made of it.
                unsafe { $($made)?($routine($self.as_ptr())) }
            }
        )*
        $(
            $(#[$also])*
            pub fn $changes(&mut $self $(, $arg: $t)?) -> $told {
                // SAFETY: we own it, and what is put to it or taken off.
                unsafe { $($makes)?($by($self.as_ptr() $(, $given)?)) }
            }
        )*
    };
}

fn is_done(answer: c_int) -> bool {
    answer == 1
}

#[repr(transparent)]
pub struct Message(NonNull<mblk_t>);

// SAFETY: a chain has one owner, and data blocks shared by dupmsg count their references atomically.
unsafe impl Send for Message {}

impl OnQueue {
    #[inline(always)]
    pub(super) fn new(m: Message) -> OnQueue {
        let at = m.0;
        core::mem::forget(m);
        OnQueue(at)
    }

    /// # Safety
    /// It is on no queue any more, and nobody else has it.
    #[inline(always)]
    pub(super) unsafe fn taken(self) -> Message {
        Message(self.0)
    }
}

impl Deref for OnQueue {
    type Target = Message;

    #[inline(always)]
    fn deref(&self) -> &Message {
        // SAFETY: the same pointer, to a message that is there; by a reference nobody frees it.
        unsafe { &*(&raw const *self).cast::<Message>() }
    }
}

impl Message {
    /// A message of one block with room for `room` bytes. Ends the process without memory, as Rust's own containers do.
    pub fn new(kind: u8, room: usize) -> Message {
        Message::try_new(kind, room).unwrap_or_else(|| {
            handle_alloc_error(Layout::array::<u8>(room).unwrap_or(Layout::new::<u8>()))
        })
    }

    /// As [`new`](Message::new); `None` without memory.
    #[inline]
    pub fn try_new(kind: u8, room: usize) -> Option<Message> {
        // SAFETY: a fresh block is ours.
        unsafe {
            let mp = NonNull::new(allocb(room, BPRI_MED))?;
            (*mp.as_ref().b_datap).db_type = kind;
            Some(Message(mp))
        }
    }

    /// A message of one block that holds `bytes`.
    pub fn from_bytes(kind: u8, bytes: &[u8]) -> Message {
        let mut m = Message::new(kind, bytes.len());
        m.push(bytes);
        m
    }

    /// M_DATA.
    pub fn data(bytes: &[u8]) -> Message {
        Message::from_bytes(M_DATA, bytes)
    }

    /// One block with a control structure in it.
    pub fn from_struct<T: Plain>(kind: u8, value: T) -> Message {
        let mut m = Message::new(kind, size_of::<T>());
        m.write(value);
        m
    }

    /// M_ERROR for the two sides of a stream; [`NOERROR`] leaves one as it is, 0 clears it.
    pub fn error(read: u8, write: u8) -> Message {
        Message::from_bytes(M_ERROR, &[read, write])
    }

    /// M_FLUSH, of one band if given.
    pub fn flush(sides: u8, band: Option<u8>) -> Message {
        match band {
            Some(band) => Message::from_bytes(M_FLUSH, &[sides | FLUSHBAND, band]),
            None => Message::from_bytes(M_FLUSH, &[sides]),
        }
    }

    /// Takes a chain over.
    ///
    /// # Safety
    /// `mp` is a message that the caller owns.
    #[inline(always)]
    pub unsafe fn from_raw(mp: *mut mblk_t) -> Option<Message> {
        NonNull::new(mp).map(Message)
    }

    #[inline(always)]
    pub fn into_raw(self) -> *mut mblk_t {
        let mp = self.0.as_ptr();
        core::mem::forget(self);
        mp
    }

    #[inline(always)]
    pub fn as_ptr(&self) -> *mut mblk_t {
        self.0.as_ptr()
    }

    #[inline(always)]
    pub(crate) fn first(&self) -> &mblk_t {
        // SAFETY: we own it.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    fn first_mut(&mut self) -> &mut mblk_t {
        // SAFETY: we own it, and nobody else has it.
        unsafe { self.0.as_mut() }
    }

    routines! { self:
        #[inline(always)]
        fn kind() -> u8 = mtype;
        /// Bytes of the M_DATA blocks (msgdsize).
        fn data_len() -> usize = msgdsize;
        /// Bytes of all blocks.
        fn len() -> usize = msgsize;
        /// The bytes of the first block.
        #[inline]
        fn bytes() -> &[u8] = block_bytes;
        /// A message that shares the data (dupmsg).
        fn dup() -> Option<Message> = dupmsg, Message::from_raw;
        /// A copy (copymsg).
        fn copy() -> Option<Message> = copymsg, Message::from_raw;
        changes:
        /// Appends a message (linkb).
        fn append(tail: Message = tail.into_raw()) -> () = linkb;
        /// Takes everything but the first block off (unlinkb).
        fn take_rest() -> Option<Message> = unlinkb, Message::from_raw;
        /// adjmsg(9F): false if there are too few bytes.
        fn adjust(len: isize = len) -> bool = adjmsg, is_done;
        /// pullupmsg(9F): false if there are too few bytes.
        fn pull_up(len: isize = len) -> bool = pullupmsg, is_done;
    }

    pub fn set_kind(&mut self, kind: u8) {
        // SAFETY: we own it.
        unsafe { (*(*self.as_ptr()).b_datap).db_type = kind }
    }

    /// Of high priority?
    #[inline]
    pub fn is_priority(&self) -> bool {
        self.kind() >= QPCTL
    }

    #[inline]
    pub fn band(&self) -> u8 {
        self.first().b_band.get()
    }

    pub fn set_band(&mut self, band: u8) {
        self.first().b_band.set(band);
    }

    /// MSGMARK and the like.
    pub fn flags(&self) -> u16 {
        self.first().b_flag
    }

    pub fn set_flags(&mut self, flags: u16) {
        self.first_mut().b_flag = flags;
    }

    /// The same to be changed; `None` while the data is shared (dupmsg).
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        // SAFETY: read and write pointer bound the bytes written, and nobody else refers to the data.
        unsafe {
            let mp = self.as_ptr();
            (dblk_t::refs((*mp).b_datap) == 1)
                .then(|| core::slice::from_raw_parts_mut((*mp).b_rptr, length(mp)))
        }
    }

    /// Type and bytes of each block.
    pub fn blocks(&self) -> impl Iterator<Item = (u8, &[u8])> {
        // SAFETY: blocks of our chain.
        unsafe { chain(self.as_ptr()).map(|block| (mtype(block), block_bytes(block))) }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of all M_DATA blocks, copied together.
    pub fn to_data(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.data_len());
        for (_, bytes) in self.blocks().filter(|(kind, _)| *kind == M_DATA) {
            all.extend_from_slice(bytes);
        }
        all
    }

    /// The same message, with data of its own where that is shared, if there is memory.
    pub fn unshared(mut self) -> Message {
        match self.bytes_mut() {
            Some(_) => self,
            None => self.copy().unwrap_or(self),
        }
    }

    /// Is it of one block?
    pub fn is_one_block(&self) -> bool {
        self.first().b_cont.is_null()
    }

    /// Takes off what comes from the first M_DATA block on that is not the first of all.
    pub fn take_data(&mut self) -> Option<Message> {
        let mut last = self.as_ptr();
        // SAFETY: blocks of our chain, of which the rest is a message of ours too.
        unsafe {
            while !(*last).b_cont.is_null() && mtype((*last).b_cont) != M_DATA {
                last = (*last).b_cont;
            }
            Message::from_raw(unlinkb(last))
        }
    }

    /// Moves past `n` bytes, of all there are at most; the blocks stay.
    pub fn skip(&mut self, mut n: usize) {
        let mut mp = self.as_ptr();
        // SAFETY: blocks of our chain; no read pointer passes the write pointer.
        unsafe {
            while !mp.is_null() && n > 0 {
                let some = length(mp).min(n);
                (*mp).b_rptr = (*mp).b_rptr.add(some);
                n -= some;
                mp = (*mp).b_cont;
            }
        }
    }

    /// A message of one block with `len` bytes, and so much room before them; `None` without memory.
    ///
    /// # Safety
    /// `fill` writes all of them, and reads none before.
    pub unsafe fn filled(
        kind: u8,
        room: usize,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<Message> {
        let mut m = Message::try_new(kind, room + len)?;
        m.leave_room(room);
        let mp = m.first_mut();
        // SAFETY: a fresh block of ours, with room for as many bytes behind the read pointer; the caller fills it.
        unsafe {
            fill(core::slice::from_raw_parts_mut(mp.b_rptr, len));
            mp.b_wptr = mp.b_rptr.add(len);
        }
        Some(m)
    }

    /// Writes as many bytes as there is room for behind those of the first block; returns how many.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        // SAFETY: db_lim bounds the buffer, and a shared buffer is not written to.
        unsafe {
            let mp = self.as_ptr();
            if dblk_t::refs((*mp).b_datap) != 1 {
                return 0;
            }
            let room = (*(*mp).b_datap).db_lim.offset_from((*mp).b_wptr).max(0) as usize;
            let n = room.min(bytes.len());
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), (*mp).b_wptr, n);
            (*mp).b_wptr = (*mp).b_wptr.add(n);
            n
        }
    }

    /// Has the first block, which holds nothing yet, begin so many bytes later, or where it ends.
    pub fn leave_room(&mut self, offset: usize) {
        // SAFETY: db_lim bounds the buffer.
        unsafe {
            let mp = self.as_ptr();
            let room = (*(*mp).b_datap).db_lim.offset_from((*mp).b_rptr).max(0) as usize;
            (*mp).b_rptr = (*mp).b_rptr.add(offset.min(room));
            (*mp).b_wptr = (*mp).b_rptr;
        }
    }

    /// A control structure at the start of the first block, if it is long enough.
    pub fn read<T: Plain>(&self) -> Option<T> {
        let bytes = self.bytes();
        // SAFETY: long enough, and any bytes are a T.
        (bytes.len() >= size_of::<T>())
            .then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    /// Puts a structure over as many bytes at the start of the first block. False if there are fewer, or while the data is shared.
    pub fn overwrite<T: Plain>(&mut self, value: T) -> bool {
        let at = self.bytes_mut().and_then(|b| b.get_mut(..size_of::<T>()));
        // SAFETY: so many bytes of ours.
        at.map(|at| unsafe { at.as_mut_ptr().cast::<T>().write_unaligned(value) })
            .is_some()
    }

    /// Puts a structure at the start of the first block, which then holds nothing else. False without room, or while the
    /// data is shared.
    pub fn write<T: Plain>(&mut self, value: T) -> bool {
        // SAFETY: room is checked.
        unsafe {
            let mp = self.as_ptr();
            let data = (*mp).b_datap;
            let room = (*data).db_lim.offset_from((*mp).b_rptr).max(0) as usize;
            if room < size_of::<T>() || dblk_t::refs(data) != 1 {
                return false;
            }
            // Padding must not be what was there before.
            (*mp).b_rptr.write_bytes(0, size_of::<T>());
            (*mp).b_rptr.cast::<T>().write_unaligned(value);
            (*mp).b_wptr = (*mp).b_rptr.add(size_of::<T>());
            true
        }
    }
}

impl Drop for Message {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: we own it.
        unsafe { freemsg(self.as_ptr()) }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {:#x} band {}", self.kind(), self.band())?;
        for (kind, bytes) in self.blocks() {
            write!(f, " [{kind:#x}: {} bytes]", bytes.len())?;
        }
        Ok(())
    }
}
