//! Queue pairs: making them, linking them into a stream below its head and out of it, and a multiplexer's lower side.
//!
//! # Contract
//! Everything here runs inside the perimeter of the stream. A pair is freed only when no other queue leads to it.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use super::perimeter::{Guard, Perimeter};
use super::timer;
use crate::ddi::order::Flush;
use crate::ddi::queue::*;

type Errno = c_int;

/// allocq: a pair without procedures; returns its read queue.
pub fn alloc_pair(perimeter: &'static Perimeter, stream: *mut c_void) -> Queue {
    let pair = [QREADR, 0].map(|side| queue_t::new(QUSE | QWANTR | side, perimeter, stream));
    // SAFETY: a fresh pair, of which this is the read queue.
    unsafe { Queue::from_raw(Box::into_raw(Box::new(pair)).cast()) }
}

/// freeq: flushes and frees a pair that is linked to nothing.
///
/// # Safety
/// The read queue of a live pair, which is gone afterwards.
pub unsafe fn free_pair(read: Queue) {
    for q in [read, read.other()] {
        q.flushq(Flush::All);
        q.unschedule();
        timer::forget(q);
    }
    // SAFETY: a pair that is linked to nothing and not used after this call, as the caller says; `alloc_pair` took it from a box.
    drop(unsafe { Box::from_raw(read.as_ptr().cast::<[queue_t; 2]>()) });
}

/// setq: gives a pair its procedures, and their packet sizes and marks.
///
/// # Safety
/// The read queue of a pair; procedures that may be called with such queues.
pub unsafe fn setq(
    read: Queue,
    read_init: Option<&'static qinit>,
    write_init: Option<&'static qinit>,
) {
    for (q, init) in [(read, read_init), (read.other(), write_init)] {
        let init = init.unwrap_or(&NOTHING);
        q.q_qinfo.set(init);
        if let Some(info) = init.qi_minfo {
            q.q_minpsz.set(info.mi_minpsz);
            q.q_maxpsz.set(info.mi_maxpsz);
            q.q_hiwat.set(info.mi_hiwat);
            q.q_lowat.set(info.mi_lowat);
        }
    }
}

/// Puts a module, or at the end of a stream its driver, directly below the head whose read queue is `head`, and opens it.
/// An errno of its open procedure takes it out again.
///
/// # Safety
/// The procedures of `tab` may be called with queues of a pair that they have opened. `sflag`: 0, MODOPEN, CLONEOPEN.
pub unsafe fn qattach(
    head: Queue,
    tab: &'static streamtab,
    dev: &mut libc::dev_t,
    oflag: c_int,
    sflag: c_int,
) -> Result<(), Errno> {
    let read = alloc_pair(head.perimeter(), head.stream());
    // SAFETY: a pair of our own, with the procedures that it is for.
    unsafe { setq(read, tab.st_rdinit, tab.st_wrinit) };
    link_below(head, read);
    match open(read, dev, oflag, sflag) {
        0 => Ok(()),
        errno => {
            unlink(read);
            // SAFETY: a pair of our own, which nothing leads to any more.
            unsafe { free_pair(read) };
            Err(errno)
        }
    }
}

/// Closes a module or driver, takes it out of its stream and frees it, with the messages it holds.
///
/// # Safety
/// The read queue of a pair that [`qattach`] made, which is gone afterwards.
pub unsafe fn qdetach(read: Queue, oflag: c_int) {
    if let Some(close) = read.procedures().qi_qclose {
        // SAFETY: the procedure that this queue has by `setq`.
        unsafe { close(read, oflag, null_mut()) };
    }
    // Before it is taken out: who waits for room in it is enabled.
    read.flushq(Flush::All);
    read.other().flushq(Flush::All);
    unlink(read);
    // SAFETY: it came from `qattach`, as the caller says, and nothing leads to it any more.
    unsafe { free_pair(read) };
}

fn open(read: Queue, dev: &mut libc::dev_t, oflag: c_int, sflag: c_int) -> Errno {
    match read.procedures().qi_qopen {
        // SAFETY: the procedure that this queue has by `setq`; it gets no credentials.
        Some(open) => unsafe { open(read, dev, oflag, sflag, null_mut()) },
        None => 0,
    }
}

/// Puts a pair, which is linked to nothing, directly below another, above what was there, without opening it.
pub fn link_below(above: Queue, read: Queue) {
    let (above_write, write) = (above.write(), read.write());
    let below = above_write.q_next.replace(Some(write));
    write.q_next.set(below);
    read.q_next.set(Some(above.read()));
    if let Some(below) = below {
        below.read().q_next.set(Some(read));
    }
}

/// Takes a pair out of its stream.
pub fn unlink(read: Queue) {
    let (above, below) = (read.q_next.take(), read.write().q_next.take());
    if let Some(above) = above {
        above.write().q_next.set(below);
    }
    if let Some(below) = below {
        below.read().q_next.set(above);
    }
}

/// Moves a stream, from its head's queue pair down, to another perimeter; both are entered. Timers and enabled queues go
/// along.
pub fn move_stream(head: Queue, from: &Guard<'_>, to: &Guard<'_>) {
    if core::ptr::eq(from.perimeter(), to.perimeter()) {
        return;
    }
    for write in head.write().from_here() {
        for q in [write.read(), write] {
            let enabled = q.flags() & QENAB != 0;
            q.unschedule();
            q.q_perimeter.set(to.perimeter());
            if enabled {
                q.raise(QENAB);
                to.perimeter().schedule(q);
            }
            timer::moved(q, to.perimeter());
        }
    }
}

/// What a stream head's queue was before it was linked below a multiplexer.
pub struct Above([Was; 2]);

struct Was {
    init: &'static qinit,
    ptr: *mut c_void,
    hiwat: usize,
    lowat: usize,
    minpsz: isize,
    maxpsz: isize,
}

/// I_LINK: makes the pair of a stream's head the lower side of the multiplexer `tab`. The stream lies in the multiplexer's
/// perimeter already ([`move_stream`]). EINVAL if `tab` is none.
///
/// # Safety
/// The read queue of a live head, and procedures that may be called with the queues of one.
pub unsafe fn link_lower(head: Queue, tab: &'static streamtab) -> Result<Above, Errno> {
    if tab.st_muxrinit.is_none() || tab.st_muxwinit.is_none() {
        return Err(libc::EINVAL);
    }
    let saved = [head, head.other()].map(|q| Was {
        init: q.procedures(),
        ptr: q.q_ptr.replace(null_mut()),
        hiwat: q.q_hiwat.get(),
        lowat: q.q_lowat.get(),
        minpsz: q.q_minpsz.get(),
        maxpsz: q.q_maxpsz.get(),
    });
    // SAFETY: a head's pair, and such procedures, as the caller says.
    unsafe { setq(head, tab.st_muxrinit, tab.st_muxwinit) };
    Ok(Above(saved))
}

/// I_UNLINK: the pair is a stream head's again.
///
/// # Safety
/// The pair and what [`link_lower`] returned for it.
pub unsafe fn unlink_lower(head: Queue, Above(saved): Above) {
    for (q, was) in [head, head.other()].into_iter().zip(saved) {
        // SAFETY: nobody calls with what was noted for the lower stream any more.
        unsafe { super::module::drop_lower(q) };
        q.unschedule();
        timer::forget(q);
        q.q_qinfo.set(was.init);
        q.q_ptr.set(was.ptr);
        q.q_hiwat.set(was.hiwat);
        q.q_lowat.set(was.lowat);
        q.q_minpsz.set(was.minpsz);
        q.q_maxpsz.set(was.maxpsz);
    }
}
