//! Queue pairs: making them, linking them into a stream below its head and out of it, and a multiplexer's lower side.
//!
//! # Contract
//! Everything here runs inside the perimeter of the stream. A pair is freed only when no other queue leads to it.

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use super::perimeter::Perimeter;
use super::timer;
use crate::ddi::order::{FLUSHALL, flushq};
use crate::ddi::queue::*;

type Errno = c_int;

const PAIR: Layout = Layout::new::<[queue_t; 2]>();

/// allocq: a pair without procedures; returns its read queue.
pub fn alloc_pair(perimeter: &Perimeter, stream: *mut c_void) -> *mut queue_t {
    // SAFETY: two queues for which zeroes are a start; their procedures come with `setq`.
    unsafe {
        let read = alloc_zeroed(PAIR).cast::<queue_t>();
        if read.is_null() {
            handle_alloc_error(PAIR);
        }
        for (q, side) in [(read, QREADR), (read.add(1), 0)] {
            (*q).q_flag = QUSE | QWANTR | side;
            (*q).q_perimeter = perimeter;
            (*q).q_stream = stream;
            (*q).q_qinfo = &raw const NOTHING;
        }
        read
    }
}

/// Procedures of a pair that has none: what is put there is freed.
static NOTHING: qinit = qinit::of(None, None);

/// freeq: flushes and frees a pair that is linked to nothing.
///
/// # Safety
/// The read queue of a live pair, which is gone afterwards.
pub unsafe fn free_pair(read: *mut queue_t) {
    // SAFETY: a pair that is linked to nothing and not used after this call, as the caller says; `alloc_pair` took it from the allocator.
    unsafe {
        for q in [read, read.add(1)] {
            flushq(q, FLUSHALL);
            (*(*q).q_perimeter).unschedule(q);
            timer::forget(q);
            free_bands(q);
        }
        dealloc(read.cast(), PAIR);
    }
}

/// setq: gives a pair its procedures, and their packet sizes and marks.
///
/// # Safety
/// The read queue of a live pair; tables that live for ever.
pub unsafe fn setq(read: *mut queue_t, read_init: *const qinit, write_init: *const qinit) {
    // SAFETY: the queues of a live pair, and tables that live for ever, or null, as the caller says.
    unsafe {
        for (q, init) in [(read, read_init), (read.add(1), write_init)] {
            (*q).q_qinfo = if init.is_null() {
                &raw const NOTHING
            } else {
                init
            };
            let info = if init.is_null() {
                null()
            } else {
                (*init).qi_minfo
            };
            if !info.is_null() {
                (*q).q_minpsz = (*info).mi_minpsz;
                (*q).q_maxpsz = (*info).mi_maxpsz;
                (*q).q_hiwat = (*info).mi_hiwat;
                (*q).q_lowat = (*info).mi_lowat;
            }
        }
    }
}

/// Puts a module, or at the end of a stream its driver, directly below the head whose read queue is `head`, and opens it.
/// An errno of its open procedure takes it out again.
///
/// # Safety
/// Live queues; `dev` valid. `sflag`: 0, MODOPEN, CLONEOPEN.
pub unsafe fn qattach(
    head: *mut queue_t,
    tab: &'static streamtab,
    dev: &mut libc::dev_t,
    oflag: c_int,
    sflag: c_int,
) -> Result<(), Errno> {
    // SAFETY: live queues, as the caller says, and a pair of our own; what fails to open is taken out before it is freed.
    unsafe {
        let read = alloc_pair(&*(*head).q_perimeter, (*head).q_stream);
        setq(read, tab.st_rdinit, tab.st_wrinit);
        link_below(head, read);
        match open(read, dev, oflag, sflag) {
            0 => Ok(()),
            errno => {
                unlink(read);
                free_pair(read);
                Err(errno)
            }
        }
    }
}

/// Calls the open procedures of all modules and the driver again, as a further open of the same stream does.
///
/// # Safety
/// As [`qattach`].
pub unsafe fn qreopen(
    head: *mut queue_t,
    dev: &mut libc::dev_t,
    oflag: c_int,
) -> Result<(), Errno> {
    // SAFETY: write queues of one stream, from a live head down; nothing is taken out meanwhile.
    unsafe {
        let mut write = (*WR(head)).q_next;
        while !write.is_null() {
            let below = (*write).q_next;
            let sflag = if below.is_null() { 0 } else { MODOPEN };
            match open(RD(write), dev, oflag, sflag) {
                0 => write = below,
                errno => return Err(errno),
            }
        }
        Ok(())
    }
}

/// Closes a module or driver, takes it out of its stream and frees it, with the messages it holds.
///
/// # Safety
/// The read queue of a pair that [`qattach`] made.
pub unsafe fn qdetach(read: *mut queue_t, oflag: c_int) {
    // SAFETY: the read queue of a pair that `qattach` made, as the caller says: its write queue lies behind it, what is next to it is live.
    unsafe {
        if let Some(close) = (*(*read).q_qinfo).qi_qclose {
            close(read, oflag, null_mut());
        }
        // Before it is taken out: who waits for room in it is enabled.
        flushq(read, FLUSHALL);
        flushq(read.add(1), FLUSHALL);
        unlink(read);
        free_pair(read);
    }
}

/// # Safety
/// The read queue of a live pair, inside its perimeter.
unsafe fn open(read: *mut queue_t, dev: &mut libc::dev_t, oflag: c_int, sflag: c_int) -> Errno {
    // SAFETY: a live pair of the caller's, whose table stays; the procedure may write to `dev`, and gets no credentials.
    unsafe {
        match (*(*read).q_qinfo).qi_qopen {
            Some(open) => open(read, dev, oflag, sflag, null_mut()),
            None => 0,
        }
    }
}

/// Puts a pair directly below another, above what was there, without opening it.
///
/// # Safety
/// Any queue of a live pair, and the read queue of one that is linked to nothing.
pub unsafe fn link_below(above: *mut queue_t, read: *mut queue_t) {
    // SAFETY: live queues, as the caller says: each pair has both, and what is below is one of a live pair too.
    unsafe {
        let (above_write, write) = (WR(above), WR(read));
        let below = (*above_write).q_next;
        (*write).q_next = below;
        (*above_write).q_next = write;
        (*read).q_next = RD(above);
        if !below.is_null() {
            (*RD(below)).q_next = read;
        }
    }
}

/// # Safety
/// The read queue of a live pair, inside its perimeter.
unsafe fn unlink(read: *mut queue_t) {
    // SAFETY: a live pair, as the caller says; what is next to it is live, or null.
    unsafe {
        let write = WR(read);
        let (above, below) = ((*read).q_next, (*write).q_next);
        if !above.is_null() {
            (*WR(above)).q_next = below;
        }
        if !below.is_null() {
            (*RD(below)).q_next = above;
        }
        (*read).q_next = null_mut();
        (*write).q_next = null_mut();
    }
}

/// What a stream head's pair was before it was linked below a multiplexer.
pub struct Above {
    init: [*const qinit; 2],
    ptr: [*mut c_void; 2],
    marks: [[usize; 2]; 2],
    sizes: [[isize; 2]; 2],
}

/// I_LINK: makes the pair of a stream's head the lower side of the multiplexer `tab`. The stream lies in the multiplexer's
/// perimeter already ([`super::perimeter::move_stream`]). EINVAL if `tab` is none.
///
/// # Safety
/// The read queue of a live head.
pub unsafe fn link_lower(head: *mut queue_t, tab: &'static streamtab) -> Result<Above, Errno> {
    if tab.st_muxrinit.is_null() || tab.st_muxwinit.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the two queues of a live head lie one behind the other; the tables of `tab` live for ever.
    unsafe {
        let pair = [head, head.add(1)];
        let saved = Above {
            init: pair.map(|q| (*q).q_qinfo),
            ptr: pair.map(|q| (*q).q_ptr),
            marks: pair.map(|q| [(*q).q_hiwat, (*q).q_lowat]),
            sizes: pair.map(|q| [(*q).q_minpsz, (*q).q_maxpsz]),
        };
        setq(head, tab.st_muxrinit, tab.st_muxwinit);
        for q in pair {
            (*q).q_ptr = null_mut();
        }
        Ok(saved)
    }
}

/// I_UNLINK: the pair is a stream head's again.
///
/// # Safety
/// The pair and what [`link_lower`] returned for it.
pub unsafe fn unlink_lower(head: *mut queue_t, saved: Above) {
    // SAFETY: the two queues of a live head, and what they had before the multiplexer's tables, as the caller says.
    unsafe {
        for (i, q) in [head, head.add(1)].into_iter().enumerate() {
            super::module::drop_lower(q);
            (*(*q).q_perimeter).unschedule(q);
            timer::forget(q);
            (*q).q_qinfo = saved.init[i];
            (*q).q_ptr = saved.ptr[i];
            [(*q).q_hiwat, (*q).q_lowat] = saved.marks[i];
            [(*q).q_minpsz, (*q).q_maxpsz] = saved.sizes[i];
        }
    }
}
