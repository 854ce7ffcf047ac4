//! Messages: chains of blocks, their types, and the structures that control messages carry.
//!
//! # Contract
//! As for [`super::block`]: a message pointer is a chain of live blocks that the caller owns.

use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use core::ptr::null_mut;

use super::block::*;

pub const M_DATA: u8 = 0x00;
pub const M_PROTO: u8 = 0x01;
pub const M_BREAK: u8 = 0x08;
pub const M_PASSFP: u8 = 0x09;
pub const M_SIG: u8 = 0x0b;
pub const M_DELAY: u8 = 0x0c;
pub const M_CTL: u8 = 0x0d;
pub const M_IOCTL: u8 = 0x0e;
pub const M_SETOPTS: u8 = 0x10;
pub const M_RSE: u8 = 0x11;
/// Types from here on have high priority.
pub const QPCTL: u8 = 0x80;
pub const M_IOCACK: u8 = 0x81;
pub const M_IOCNAK: u8 = 0x82;
pub const M_PCPROTO: u8 = 0x83;
pub const M_PCSIG: u8 = 0x84;
pub const M_READ: u8 = 0x85;
pub const M_FLUSH: u8 = 0x86;
pub const M_STOP: u8 = 0x87;
pub const M_START: u8 = 0x88;
pub const M_HANGUP: u8 = 0x89;
pub const M_ERROR: u8 = 0x8a;
pub const M_COPYIN: u8 = 0x8b;
pub const M_COPYOUT: u8 = 0x8c;
pub const M_IOCDATA: u8 = 0x8d;
pub const M_PCRSE: u8 = 0x8e;
pub const M_STOPI: u8 = 0x8f;
pub const M_STARTI: u8 = 0x90;
pub const M_UNHANGUP: u8 = 0x91;

/// M_FLUSH, first byte: which sides; with FLUSHBAND the second byte is the band.
pub const FLUSHR: u8 = 0x01;
pub const FLUSHW: u8 = 0x02;
pub const FLUSHRW: u8 = 0x03;
pub const FLUSHBAND: u8 = 0x04;

/// M_ERROR: leave that side's error as it is.
pub const NOERROR: u8 = 0xff;

/// iocblk(9S): the first block of M_IOCTL, M_IOCACK, M_IOCNAK.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct iocblk {
    pub ioc_cmd: c_int,
    pub ioc_cr: *mut c_void,
    pub ioc_id: c_uint,
    pub ioc_count: c_uint,
    pub ioc_error: c_int,
    pub ioc_rval: c_int,
    pub ioc_filler: [c_long; 4],
}

/// iocblk.ioc_count of a transparent ioctl; its argument follows in an M_DATA block.
pub const TRANSPARENT: c_uint = c_uint::MAX;

/// copyreq(9S): M_COPYIN, M_COPYOUT.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct copyreq {
    pub cq_cmd: c_int,
    pub cq_cr: *mut c_void,
    pub cq_id: c_uint,
    pub cq_addr: *mut c_char,
    pub cq_size: c_uint,
    pub cq_flag: c_int,
    pub cq_private: *mut mblk_t,
    pub cq_filler: [c_long; 4],
}

/// copyresp(9S): M_IOCDATA. `cp_rval` null: the copy succeeded.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct copyresp {
    pub cp_cmd: c_int,
    pub cp_cr: *mut c_void,
    pub cp_id: c_uint,
    pub cp_rval: *mut c_char,
    pub cp_pad1: c_uint,
    pub cp_pad2: c_int,
    pub cp_private: *mut mblk_t,
    pub cp_filler: [c_long; 4],
}

/// Room that any of iocblk, copyreq and copyresp fits into: one block serves for the whole exchange.
pub const IOCTYPES: usize = size_of::<copyreq>();

/// stroptions(9S): M_SETOPTS.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct stroptions {
    pub so_flags: c_ulong,
    pub so_readopt: i16,
    pub so_wroff: u16,
    pub so_minpsz: isize,
    pub so_maxpsz: isize,
    pub so_hiwat: usize,
    pub so_lowat: usize,
    pub so_band: u8,
    pub so_erropt: u16,
    pub so_maxblk: isize,
    pub so_copyopt: u16,
}

pub const SO_ALL: c_ulong = 0x3f;
pub const SO_READOPT: c_ulong = 0x01;
pub const SO_WROFF: c_ulong = 0x02;
pub const SO_MINPSZ: c_ulong = 0x04;
pub const SO_MAXPSZ: c_ulong = 0x08;
pub const SO_HIWAT: c_ulong = 0x10;
pub const SO_LOWAT: c_ulong = 0x20;
pub const SO_MREADON: c_ulong = 0x40;
pub const SO_MREADOFF: c_ulong = 0x80;
pub const SO_NDELON: c_ulong = 0x100;
pub const SO_NDELOFF: c_ulong = 0x200;
pub const SO_ISTTY: c_ulong = 0x400;
pub const SO_ISNTTY: c_ulong = 0x800;
pub const SO_TOSTOP: c_ulong = 0x1000;
pub const SO_TONSTOP: c_ulong = 0x2000;
pub const SO_BAND: c_ulong = 0x4000;
pub const SO_DELIM: c_ulong = 0x8000;
pub const SO_NODELIM: c_ulong = 0x1_0000;
pub const SO_STRHOLD: c_ulong = 0x2_0000;
pub const SO_ERROPT: c_ulong = 0x4_0000;
pub const SO_COPYOPT: c_ulong = 0x8_0000;
pub const SO_MAXBLK: c_ulong = 0x10_0000;

/// A C structure that may lie in a message.
///
/// # Safety
/// Any bytes are a valid value.
pub unsafe trait Plain: Copy {
    fn zeroed() -> Self {
        // SAFETY: any bytes are a value.
        unsafe { core::mem::zeroed() }
    }
}

macro_rules! plain {
    ($($t:ty),*) => {$(
        // SAFETY: integers, and pointers that nobody follows without checking.
        unsafe impl Plain for $t {}
    )*};
}
plain!(u8, u16, u32, u64, usize, i16, i32, i64, isize);
plain!(iocblk, copyreq, copyresp, stroptions);

/// datamsg(9F): does this type carry a user's data?
#[inline]
pub extern "C-unwind" fn datamsg(kind: u8) -> c_int {
    matches!(kind, M_DATA | M_PROTO | M_PCPROTO | M_DELAY) as c_int
}

/// A message's type, which is that of its first block.
///
/// # Safety
/// `mp` is a live block.
#[inline(always)]
pub unsafe fn mtype(mp: *const mblk_t) -> u8 {
    // SAFETY: the block is live, as the caller says, and its data block with it.
    unsafe { (*(*mp).b_datap).db_type }
}

/// freemsg(9F). Null is ignored.
///
/// # Safety
/// `mp` is null, or a message of the caller's, on no queue, which is gone afterwards.
#[inline]
pub unsafe extern "C-unwind" fn freemsg(mut mp: *mut mblk_t) {
    // SAFETY: the caller gives up a whole message: each block is looked at before it is freed.
    unsafe {
        while !mp.is_null() {
            let next = (*mp).b_cont;
            freeb(mp);
            mp = next;
        }
    }
}

/// dupmsg(9F): a second chain over the same data; null if any block can't be had.
///
/// # Safety
/// `mp` is null, or a message whose blocks are live and which nobody changes meanwhile.
pub unsafe extern "C-unwind" fn dupmsg(mp: *mut mblk_t) -> *mut mblk_t {
    // SAFETY: the blocks are live, as the caller says.
    unsafe { each_block(mp, dupb) }
}

/// copymsg(9F): a chain with its own data; null if any block can't be had.
///
/// # Safety
/// `mp` is null, or a message whose blocks are live, with their pointers in their buffers; nobody changes it meanwhile.
pub unsafe extern "C-unwind" fn copymsg(mp: *mut mblk_t) -> *mut mblk_t {
    // SAFETY: the blocks are live with their pointers in their buffers, as the caller says.
    unsafe { each_block(mp, copyb) }
}

/// # Safety
/// A message whose blocks `make` may be called with, or null.
unsafe fn each_block(
    mut mp: *mut mblk_t,
    make: unsafe extern "C-unwind" fn(*mut mblk_t) -> *mut mblk_t,
) -> *mut mblk_t {
    // SAFETY: the blocks of the caller's message are live; those of the new one are ours alone.
    unsafe {
        let mut first = null_mut::<mblk_t>();
        let mut last = null_mut::<mblk_t>();
        while !mp.is_null() {
            let copy = make(mp);
            if copy.is_null() {
                freemsg(first);
                return null_mut();
            }
            if last.is_null() {
                first = copy;
            } else {
                (*last).b_cont = copy;
            }
            last = copy;
            mp = (*mp).b_cont;
        }
        first
    }
}

/// linkb(9F): appends the chain `tail`.
///
/// # Safety
/// `mp` is a message of the caller's. `tail` is null or another one, which belongs to it afterwards.
pub unsafe extern "C-unwind" fn linkb(mp: *mut mblk_t, tail: *mut mblk_t) {
    // SAFETY: the last block of a live message, as the caller says, to which nobody else links.
    unsafe {
        (*last_block(mp)).b_cont = tail;
    }
}

/// unlinkb(9F): takes the first block off and returns the rest, perhaps null.
///
/// # Safety
/// `mp` is a message of the caller's.
pub unsafe extern "C-unwind" fn unlinkb(mp: *mut mblk_t) -> *mut mblk_t {
    // SAFETY: a live block of the caller's, as it says.
    unsafe { core::mem::replace(&mut (*mp).b_cont, null_mut()) }
}

/// rmvb(9F): takes `block` out of the chain. Returns the chain left, null if it was the only one, -1 if it isn't there.
///
/// # Safety
/// `mp` is null or a message of the caller's. `block` may be any address.
pub unsafe extern "C-unwind" fn rmvb(mp: *mut mblk_t, block: *mut mblk_t) -> *mut mblk_t {
    // SAFETY: the blocks of the chain are live, as the caller says; `block` is only touched once it was met there.
    unsafe {
        let mut first = mp;
        let mut link = &raw mut first;
        while !(*link).is_null() {
            if *link == block {
                *link = (*block).b_cont;
                (*block).b_cont = null_mut();
                return first;
            }
            link = &raw mut (**link).b_cont;
        }
        core::ptr::without_provenance_mut(usize::MAX)
    }
}

/// msgdsize(9F): bytes in the M_DATA blocks.
///
/// # Safety
/// `mp` is null, or a message whose blocks are live.
#[inline]
pub unsafe extern "C-unwind" fn msgdsize(mp: *const mblk_t) -> usize {
    // SAFETY: the blocks of the chain are live, as the caller says.
    unsafe {
        let data = chain(mp).filter(|&block| mtype(block) == M_DATA);
        data.map(|block| length(block)).sum()
    }
}

/// xmsgsize: bytes in the leading blocks of the first one's type.
///
/// # Safety
/// `mp` is null, or a message whose blocks are live.
pub unsafe extern "C-unwind" fn xmsgsize(mp: *const mblk_t) -> usize {
    // SAFETY: b_cont leads from one live block to the next, as the caller says.
    unsafe {
        let alike = chain(mp).take_while(|&block| mtype(block) == mtype(mp));
        alike.map(|block| length(block)).sum()
    }
}

/// Bytes of all blocks, which is what a queue counts.
///
/// # Safety
/// `mp` is a message whose blocks are live.
#[inline]
pub unsafe fn msgsize(mp: *const mblk_t) -> usize {
    // SAFETY: the first block is there, and all that follow are live, as the caller says.
    unsafe {
        length(mp)
            + chain((*mp).b_cont)
                .map(|block| length(block))
                .sum::<usize>()
    }
}

/// The blocks of a chain.
///
/// # Safety
/// `mp` is null, or a message whose blocks are live until the last of them was asked for.
#[inline(always)]
pub unsafe fn chain(mp: *const mblk_t) -> impl Iterator<Item = *const mblk_t> {
    let some = |mp: *const mblk_t| (!mp.is_null()).then_some(mp);
    // SAFETY: b_cont leads from one live block to the next, as the caller says.
    core::iter::successors(some(mp), move |&mp| some(unsafe { (*mp).b_cont }))
}

/// Bytes of one block.
///
/// # Safety
/// `mp` is a live block whose pointers lie in one buffer.
#[inline(always)]
pub unsafe fn length(mp: *const mblk_t) -> usize {
    // SAFETY: a live block, as the caller says; both pointers lie in its buffer.
    unsafe { (*mp).b_wptr.offset_from((*mp).b_rptr).max(0) as usize }
}

/// The bytes of one block.
///
/// # Safety
/// `mp` is a live block whose pointers lie in one buffer, for `'a`; nobody writes between them.
#[inline(always)]
pub unsafe fn block_bytes<'a>(mp: *const mblk_t) -> &'a [u8] {
    // SAFETY: read and write pointer of a live block bound bytes that were written, and stay as the caller says.
    unsafe { core::slice::from_raw_parts((*mp).b_rptr, length(mp)) }
}

/// adjmsg(9F): trims `len` bytes from the front, or `-len` from the back, of blocks of one type. 0 if there are too few.
///
/// # Safety
/// `mp` is a message of the caller's.
pub unsafe extern "C-unwind" fn adjmsg(mp: *mut mblk_t, len: isize) -> c_int {
    // SAFETY: a message of the caller's, as it says, which both may trim.
    unsafe {
        if len < 0 {
            trim_back(mp, len.unsigned_abs())
        } else {
            trim_front(mp, len as usize)
        }
    }
}

/// # Safety
/// A message of the caller's.
unsafe fn trim_front(mut mp: *mut mblk_t, mut len: usize) -> c_int {
    // SAFETY: blocks of the caller's message, of which those of the first type hold `len` bytes and more: it doesn't end before.
    unsafe {
        if xmsgsize(mp) < len {
            return 0;
        }
        while len > 0 {
            let n = length(mp).min(len);
            (*mp).b_rptr = (*mp).b_rptr.add(n);
            len -= n;
            mp = (*mp).b_cont;
        }
        1
    }
}

/// # Safety
/// A message of the caller's.
unsafe fn trim_back(mp: *mut mblk_t, len: usize) -> c_int {
    // SAFETY: blocks of the caller's message; no write pointer moves but back.
    unsafe {
        let kind = mtype(last_block(mp));
        let mut run = mp;
        let mut next = mp;
        while !next.is_null() {
            if mtype(next) != kind {
                run = (*next).b_cont;
            }
            next = (*next).b_cont;
        }
        let Some(mut keep) = xmsgsize(run).checked_sub(len) else {
            return 0;
        };
        while !run.is_null() {
            let n = length(run).min(keep);
            (*run).b_wptr = (*run).b_rptr.add(n);
            keep -= n;
            run = (*run).b_cont;
        }
        1
    }
}

/// pullupmsg(9F): makes the first `len` bytes (-1: all of the first block's type) contiguous and aligned in the first
/// block. 0 if there are too few, or no memory; the message is then as it was.
///
/// # Safety
/// `mp` is a message of the caller's; nobody writes to its data meanwhile.
pub unsafe extern "C-unwind" fn pullupmsg(mp: *mut mblk_t, len: isize) -> c_int {
    // SAFETY: a message of the caller's, whose first blocks hold the bytes that are copied. The fresh one has room for them, and is ours.
    unsafe {
        let all = xmsgsize(mp);
        let len = if len < 0 { all } else { len as usize };
        if len > all {
            return 0;
        }
        let aligned = (*mp).b_rptr.addr().is_multiple_of(align_of::<usize>());
        let whole = (*mp).b_cont.is_null() || mtype((*mp).b_cont) != mtype(mp);
        if aligned && (length(mp) == len || length(mp) > len && whole) {
            return 1;
        }
        // What the first block has beyond `len` stays in it.
        let size = len.max(length(mp));
        let fresh = allocb(size, BPRI_MED);
        if fresh.is_null() {
            return 0;
        }
        (*(*fresh).b_datap).db_type = mtype(mp);
        let mut to = (*fresh).b_wptr;
        let mut left = size;
        let mut from = mp;
        while left > 0 {
            let n = length(from).min(left);
            core::ptr::copy_nonoverlapping((*from).b_rptr, to, n);
            to = to.add(n);
            left -= n;
            (*from).b_rptr = (*from).b_rptr.add(n);
            from = (*from).b_cont;
        }
        (*fresh).b_wptr = to;
        replace_data(mp, fresh);
        drop_emptied(mp);
        1
    }
}

/// Frees the blocks behind the first that a pull-up left empty.
///
/// # Safety
/// A message of the caller's.
unsafe fn drop_emptied(mp: *mut mblk_t) {
    // SAFETY: blocks of the caller's message; each is read before it is freed, and the first one links past them.
    unsafe {
        let kind = mtype(mp);
        let mut next = (*mp).b_cont;
        while !next.is_null() && mtype(next) == kind && length(next) == 0 {
            let rest = (*next).b_cont;
            freeb(next);
            next = rest;
        }
        (*mp).b_cont = next;
    }
}

/// msgpullup(9F): a new message whose first `len` bytes (-1: all of the first type) are contiguous; the old one stays.
///
/// # Safety
/// `mp` is a message whose blocks are live, with their pointers in their buffers; nobody changes it meanwhile.
pub unsafe extern "C-unwind" fn msgpullup(mp: *mut mblk_t, len: isize) -> *mut mblk_t {
    // SAFETY: the message is live, as the caller says; the copy is ours alone.
    unsafe {
        let all = xmsgsize(mp);
        if len > 0 && len as usize > all {
            return null_mut();
        }
        let copy = copymsg(mp);
        if !copy.is_null() && pullupmsg(copy, len) == 0 {
            freemsg(copy);
            return null_mut();
        }
        copy
    }
}

/// # Safety
/// A message whose blocks are live.
#[inline]
unsafe fn last_block(mut mp: *mut mblk_t) -> *mut mblk_t {
    // SAFETY: b_cont leads from one live block of the caller's message to the next.
    unsafe {
        while !(*mp).b_cont.is_null() {
            mp = (*mp).b_cont;
        }
        mp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddi::owned::Message;

    fn chain(blocks: &[(u8, &[u8])]) -> Message {
        let mut blocks = blocks.iter().map(|(kind, b)| Message::from_bytes(*kind, b));
        let mut m = blocks.next().unwrap();
        blocks.for_each(|b| m.append(b));
        m
    }

    fn shape(m: &Message) -> Vec<(u8, Vec<u8>)> {
        m.blocks().map(|(kind, b)| (kind, b.to_vec())).collect()
    }

    #[test]
    fn sizes_count_data_or_everything() {
        let m = chain(&[(M_PROTO, b"head"), (M_DATA, b"abc"), (M_DATA, b"de")]);
        assert_eq!((m.data_len(), m.len()), (5, 9));
        // SAFETY: ours.
        assert_eq!(unsafe { xmsgsize(m.as_ptr()) }, 4);
        assert_eq!(m.to_data(), b"abcde");
    }

    #[test]
    fn adjmsg_trims_over_blocks_of_one_type() {
        let mut m = chain(&[(M_DATA, b"abc"), (M_DATA, b"def"), (M_PROTO, b"x")]);
        assert!(!m.adjust(7));
        assert!(m.adjust(4));
        assert_eq!(m.to_data(), b"ef");
        assert!(!m.adjust(-2));
        assert!(m.adjust(-1));
        assert_eq!(m.len(), 2);
        let mut m = chain(&[(M_PROTO, b"p"), (M_DATA, b"abc"), (M_DATA, b"def")]);
        assert!(!m.adjust(-7));
        assert!(m.adjust(-4));
        assert_eq!((m.to_data(), m.bytes()), (b"ab".to_vec(), &b"p"[..]));
    }

    #[test]
    fn pullupmsg_keeps_the_message_where_it_is_and_stops_at_another_type() {
        let mut m = chain(&[
            (M_PROTO, b"ab"),
            (M_PROTO, b"cd"),
            (M_PROTO, b"ef"),
            (M_DATA, b"data"),
        ]);
        let dup = m.dup().unwrap();
        let at = m.as_ptr();
        assert!(!m.pull_up(7));
        assert!(m.pull_up(3));
        assert_eq!((m.as_ptr(), m.bytes()), (at, &b"abc"[..]));
        let rest = [
            b"abc".to_vec(),
            b"d".to_vec(),
            b"ef".to_vec(),
            b"data".to_vec(),
        ];
        assert_eq!(shape(&m).into_iter().map(|s| s.1).collect::<Vec<_>>(), rest);
        assert!(m.pull_up(-1));
        assert_eq!(
            shape(&m),
            [(M_PROTO, b"abcdef".to_vec()), (M_DATA, b"data".to_vec())]
        );
        drop(m);
        assert_eq!(dup.len(), 10);
    }

    #[test]
    fn pullupmsg_aligns_a_block_that_begins_anywhere() {
        let mut m = Message::data(b"xabcdefgh");
        m.adjust(1);
        assert!(m.pull_up(-1));
        assert!(
            m.bytes()
                .as_ptr()
                .addr()
                .is_multiple_of(align_of::<usize>())
        );
        assert_eq!(m.bytes(), b"abcdefgh");
    }

    #[test]
    fn msgpullup_leaves_the_old_message() {
        let m = chain(&[(M_DATA, b"ab"), (M_DATA, b"cd")]);
        // SAFETY: ours.
        unsafe {
            let all = Message::from_raw(msgpullup(m.as_ptr(), -1)).unwrap();
            assert_eq!((all.bytes(), m.bytes()), (&b"abcd"[..], &b"ab"[..]));
            assert!(msgpullup(m.as_ptr(), 5).is_null());
        }
    }

    #[test]
    fn rmvb_takes_a_block_out_and_says_when_it_is_not_there() {
        // SAFETY: blocks of our own.
        unsafe {
            let first = Message::data(b"a").into_raw();
            let second = Message::data(b"b").into_raw();
            linkb(first, second);
            assert_eq!(rmvb(first, second), first);
            assert_eq!(rmvb(first, second).addr(), usize::MAX);
            assert!(rmvb(first, first).is_null());
            freemsg(first);
            freemsg(second);
        }
    }

    #[test]
    fn a_shared_message_is_not_written_to() {
        let mut m = Message::data(b"ab");
        let dup = m.dup().unwrap();
        assert!(m.bytes_mut().is_none() && m.push(b"c") == 0 && !m.write(1u8));
        drop(dup);
        m.bytes_mut().unwrap()[0] = b'x';
        assert_eq!(m.bytes(), b"xb");
    }

    #[test]
    fn control_structures_travel_in_blocks() {
        let options = stroptions {
            so_flags: SO_HIWAT,
            so_hiwat: 77,
            ..Default::default()
        };
        let m = Message::from_struct(M_SETOPTS, options);
        assert_eq!(m.read::<stroptions>().map(|o| o.so_hiwat), Some(77));
        assert!(Message::data(b"short").read::<iocblk>().is_none());
        assert_eq!(size_of::<copyresp>(), IOCTYPES);
        assert!(size_of::<iocblk>() <= IOCTYPES);
    }
}
