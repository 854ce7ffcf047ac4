//! The order of messages on a queue: high priority, then bands from the highest, then normal; first come, first served
//! within each. What each band holds is counted, and writers are back-enabled when it falls below the low-water mark.
//!
//! # Contract
//! As for [`super::queue`]: inside the perimeter. A message put on a queue belongs to it.

use core::ffi::c_int;
use core::ptr::null_mut;

use super::block::mblk_t;
use super::message::*;
use super::queue::*;

/// What flushq and flushband take off: everything, or data messages only.
pub const FLUSHALL: c_int = 1;
pub const FLUSHDATA: c_int = 0;

/// putq(9F): puts a message behind those of its priority. A high-priority message enables the queue, a banded one unless
/// noenable is in force, a normal one if besides the queue was found empty. Returns 1.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
/// `mp` is a message of the caller's, which belongs to the queue afterwards.
#[inline]
pub unsafe extern "C-unwind" fn putq(q: *mut queue_t, mp: *mut mblk_t) -> c_int {
    // SAFETY: inside the perimeter of a live queue, as the caller says, which hands over a message that is on none.
    unsafe {
        let class = class(mp);
        let behind = if class == 0 {
            (*q).q_last
        } else {
            last_of(q, class)
        };
        insert_behind(q, behind, mp, class);
        let flag = (*q).q_flag;
        if class == HIGH || flag & QNOENB == 0 && (class > 0 || flag & QWANTR != 0) {
            qenable(q);
        }
        1
    }
}

/// putbq(9F): puts a message before those of its priority. Enables the queue for high priority, or if a reader found it
/// empty. Returns 1.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
/// `mp` is a message of the caller's, which belongs to the queue afterwards.
#[inline]
pub unsafe extern "C-unwind" fn putbq(q: *mut queue_t, mp: *mut mblk_t) -> c_int {
    // SAFETY: a live queue of the caller's perimeter, and a message that it hands over.
    unsafe {
        let class = class(mp);
        let behind = match class {
            HIGH => null_mut(),
            _ => last_of(q, class + 1),
        };
        insert_behind(q, behind, mp, class);
        enable_for(q, class);
        1
    }
}

/// insq(9F): puts a message before `emp`, or at the end if that is null. Returns 0, and leaves the message to the caller,
/// if it would be out of order there.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
/// `mp` is a message of the caller's, which belongs to the queue if 1 is returned. `emp` is null or a message on `q`.
pub unsafe extern "C-unwind" fn insq(q: *mut queue_t, emp: *mut mblk_t, mp: *mut mblk_t) -> c_int {
    // SAFETY: a live queue of the caller's perimeter; `emp` is on it, so what is before that is live; `mp` is on none.
    unsafe {
        let class = class(mp);
        let behind = if emp.is_null() {
            (*q).q_last
        } else {
            (*emp).b_prev
        };
        let fits = (emp.is_null() || self::class(emp) <= class)
            && (behind.is_null() || self::class(behind) >= class);
        if !fits {
            return 0;
        }
        insert_behind(q, behind, mp, class);
        enable_for(q, class);
        1
    }
}

/// getq(9F): takes the first message. On an empty queue asks to be enabled by the next one, and returns null.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
#[inline]
pub unsafe extern "C-unwind" fn getq(q: *mut queue_t) -> *mut mblk_t {
    // SAFETY: what is first on a live queue is on it; the caller is inside its perimeter.
    unsafe {
        let mp = (*q).q_first;
        if mp.is_null() {
            (*q).q_flag |= QWANTR;
        } else {
            (*q).q_flag &= !QWANTR;
            rmvq(q, mp);
        }
        mp
    }
}

/// rmvq(9F): takes a message, which is on this queue, off it.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is. `mp` is on it, and is the caller's afterwards.
#[inline]
pub unsafe extern "C-unwind" fn rmvq(q: *mut queue_t, mp: *mut mblk_t) {
    // SAFETY: the message is on this queue, and the caller inside its perimeter, as it says.
    unsafe {
        let band = unlink(q, mp);
        relieve(q, band);
    }
}

/// flushq(9F): frees all messages, or those of data types.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn flushq(q: *mut queue_t, flag: c_int) {
    // SAFETY: a live queue, and the caller inside its perimeter, as it says.
    unsafe {
        flush(q, flag, |_| true);
        for n in 0..=(*q).q_nband {
            relieve(q, n);
            if n == u8::MAX {
                break;
            }
        }
    }
}

/// flushband(9F): as flushq for one band; band 0 has the normal and the high-priority messages.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn flushband(q: *mut queue_t, pri: u8, flag: c_int) {
    // SAFETY: a live queue, inside its perimeter, as the caller says.
    unsafe {
        flush(q, flag, |band| band == pri);
        relieve(q, pri);
    }
}

/// qsize(9F): messages on the queue.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn qsize(q: *mut queue_t) -> c_int {
    // SAFETY: messages on a queue are live and linked by b_next up to null; inside the perimeter none comes or goes meanwhile.
    unsafe {
        let mut n = 0;
        let mut mp = (*q).q_first;
        while !mp.is_null() {
            n += 1;
            mp = (*mp).b_next;
        }
        n
    }
}

/// Class of high-priority messages; below it a class is a band.
const HIGH: u16 = 256;

/// # Safety
/// A live message, which is the caller's or on a queue whose perimeter it is inside.
#[inline(always)]
unsafe fn class(mp: *mut mblk_t) -> u16 {
    // SAFETY: nobody else touches the message, as the caller says.
    unsafe {
        if mtype(mp) >= QPCTL {
            // A high-priority message is in no band.
            (*mp).b_band = 0;
            HIGH
        } else {
            (*mp).b_band as u16
        }
    }
}

/// The last message of this class or a higher one.
///
/// # Safety
/// A live queue, inside its perimeter.
unsafe fn last_of(q: *mut queue_t, class: u16) -> *mut mblk_t {
    // SAFETY: inside the perimeter of a live queue, as the caller says: what it and its bands lead to are messages on it, or null.
    unsafe {
        let mut mp = (*q).q_last;
        if mp.is_null() || self::class(mp) >= class {
            return mp;
        }
        for n in class..=(*q).q_nband as u16 {
            if let Some(band) = find_band(q, n as u8)
                && !band.qb_last.is_null()
            {
                return band.qb_last;
            }
        }
        // Only high priority is before: few, so from the front.
        mp = null_mut();
        let mut next = (*q).q_first;
        while !next.is_null() && self::class(next) >= class {
            mp = next;
            next = (*next).b_next;
        }
        mp
    }
}

/// # Safety
/// A live queue, inside its perimeter.
#[inline]
unsafe fn enable_for(q: *mut queue_t, class: u16) {
    // SAFETY: a live queue, inside its perimeter, as the caller says.
    unsafe {
        if class == HIGH || (*q).q_flag & (QNOENB | QWANTR) == QWANTR {
            qenable(q);
        }
    }
}

/// # Safety
/// A live queue, inside its perimeter; `behind` is null or on it, `mp` a message of the caller's.
#[inline(always)]
unsafe fn insert_behind(q: *mut queue_t, behind: *mut mblk_t, mp: *mut mblk_t, class: u16) {
    // SAFETY: `behind` is null or on this live queue, so what comes after it is too; `mp` is on none. The caller is inside the perimeter.
    unsafe {
        let before = if behind.is_null() {
            core::mem::replace(&mut (*q).q_first, mp)
        } else {
            core::mem::replace(&mut (*behind).b_next, mp)
        };
        (*mp).b_prev = behind;
        (*mp).b_next = before;
        if before.is_null() {
            (*q).q_last = mp;
        } else {
            (*before).b_prev = mp;
        }
        let bytes = msgsize(mp);
        if class == 0 || class == HIGH {
            (*q).q_count += bytes;
            if (*q).q_count >= (*q).q_hiwat && (*q).q_flag & QFULL == 0 {
                (*q).q_flag |= QFULL;
                (*q).q_fulls += 1;
            }
        } else {
            count_in_band(q, mp, bytes);
        }
    }
}

/// # Safety
/// A live queue, inside its perimeter; `mp` is on it, in a band above 0.
unsafe fn count_in_band(q: *mut queue_t, mp: *mut mblk_t, bytes: usize) {
    // SAFETY: `mp` has just been linked in, so that what is next to it is null or on this queue; nothing else refers to the band meanwhile.
    unsafe {
        let n = (*mp).b_band;
        let band = make_band(q, n);
        let in_band = |other: *mut mblk_t| !other.is_null() && class(other) == n as u16;
        if !in_band((*mp).b_prev) {
            band.qb_first = mp;
        }
        if !in_band((*mp).b_next) {
            band.qb_last = mp;
        }
        band.qb_count += bytes;
        if band.qb_count >= band.qb_hiwat && band.qb_flag & QB_FULL == 0 {
            band.qb_flag |= QB_FULL;
            (*q).q_fulls += 1;
        }
    }
}

/// Takes a message off and out of the counts; returns its band.
///
/// # Safety
/// A live queue, inside its perimeter; `mp` is on it, and is the caller's afterwards.
#[inline(always)]
unsafe fn unlink(q: *mut queue_t, mp: *mut mblk_t) -> u8 {
    // SAFETY: `mp` is on this live queue, as the caller says, so its neighbours and band are too; the caller is inside the perimeter.
    unsafe {
        let n = (*mp).b_band;
        let bytes = msgsize(mp);
        if n == 0 {
            (*q).q_count = (*q).q_count.saturating_sub(bytes);
        } else if let Some(band) = find_band(q, n) {
            band.qb_count = band.qb_count.saturating_sub(bytes);
            if band.qb_first == band.qb_last {
                band.qb_first = null_mut();
                band.qb_last = null_mut();
            } else if band.qb_first == mp {
                band.qb_first = (*mp).b_next;
            } else if band.qb_last == mp {
                band.qb_last = (*mp).b_prev;
            }
        }
        let (prev, next) = ((*mp).b_prev, (*mp).b_next);
        if prev.is_null() {
            (*q).q_first = next;
        } else {
            (*prev).b_next = next;
        }
        if next.is_null() {
            (*q).q_last = prev;
        } else {
            (*next).b_prev = prev;
        }
        (*mp).b_prev = null_mut();
        (*mp).b_next = null_mut();
        n
    }
}

/// # Safety
/// A live queue, inside its perimeter.
unsafe fn flush(q: *mut queue_t, flag: c_int, wanted: impl Fn(u8) -> bool) {
    // SAFETY: messages on a live queue, inside its perimeter; the next one is known before one is taken off, and who took it off frees it.
    unsafe {
        let mut mp = (*q).q_first;
        while !mp.is_null() {
            let next = (*mp).b_next;
            if wanted((*mp).b_band) && (flag == FLUSHALL || datamsg(mtype(mp)) != 0) {
                unlink(q, mp);
                freemsg(mp);
            }
            mp = next;
        }
    }
}

/// Below the low-water mark the band is not full any more, and who wanted to write is enabled.
///
/// # Safety
/// A live queue, inside its perimeter.
#[inline(always)]
pub(super) unsafe fn relieve(q: *mut queue_t, n: u8) {
    // SAFETY: a live queue, inside its perimeter, as the caller says.
    unsafe {
        if n == 0 {
            let flag = (*q).q_flag;
            if flag & (QFULL | QWANTW) != 0 && is_low((*q).q_count, (*q).q_lowat) {
                (*q).q_flag = flag & !(QFULL | QWANTW);
                if flag & QWANTW != 0 {
                    back_enable(q);
                }
            }
        } else if let Some(band) = find_band(q, n) {
            let flag = band.qb_flag;
            if is_low(band.qb_count, band.qb_lowat) {
                band.qb_flag = flag & !(QB_FULL | QB_WANTW);
                if flag & QB_WANTW != 0 {
                    back_enable(q);
                }
            }
        }
    }
}

#[inline(always)]
fn is_low(count: usize, lowat: usize) -> bool {
    count < lowat || count == 0
}

/// Enables the nearest queue behind that has a service procedure.
///
/// # Safety
/// A live queue, inside its perimeter.
#[cold]
unsafe fn back_enable(q: *mut queue_t) {
    // SAFETY: the queues behind a live one are live, and in its perimeter; each has a table of procedures.
    unsafe {
        (*q).q_wakeups += 1;
        let mut behind = backq(q);
        while !behind.is_null() {
            if (*(*behind).q_qinfo).qi_srvp.is_some() {
                qenable(behind);
                return;
            }
            behind = backq(behind);
        }
    }
}
