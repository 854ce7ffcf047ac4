//! Flow control, and a queue's parameters.
//!
//! # Contract
//! As for [`super::queue`]: inside the perimeter.

use core::ffi::{c_int, c_long};

use super::order::relieve;
use super::queue::*;

/// qfields_t of strqget(9F) and strqset(9F).
pub const QHIWAT: c_int = 0;
pub const QLOWAT: c_int = 1;
pub const QMAXPSZ: c_int = 2;
pub const QMINPSZ: c_int = 3;
pub const QCOUNT: c_int = 4;
pub const QFIRST: c_int = 5;
pub const QLAST: c_int = 6;
pub const QFLAG: c_int = 7;
pub const QBAD: c_int = 8;

/// canput(9F): is there room in the first queue from `q` on that has a service procedure, or the last one? If not, the
/// queue behind it is enabled once there is.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
#[inline]
pub unsafe extern "C-unwind" fn canput(q: *mut queue_t) -> c_int {
    // SAFETY: a live queue, inside its perimeter, as the caller says; where it would be held is one too.
    unsafe {
        let q = holder(q);
        if (*q).q_flag & QFULL == 0 {
            return 1;
        }
        (*q).q_flag |= QWANTW;
        0
    }
}

/// bcanput(9F): canput for a band. A band never used has room.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn bcanput(q: *mut queue_t, pri: u8) -> c_int {
    // SAFETY: a live queue, inside its perimeter, as the caller says; no other reference to the band is about.
    unsafe {
        if pri == 0 {
            return canput(q);
        }
        match find_band(holder(q), pri) {
            Some(band) if band.qb_flag & QB_FULL != 0 => {
                band.qb_flag |= QB_WANTW;
                0
            }
            _ => 1,
        }
    }
}

/// canputnext(9F).
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is. There is a queue next to it.
#[inline]
pub unsafe extern "C-unwind" fn canputnext(q: *mut queue_t) -> c_int {
    // SAFETY: the queue next to a live one is live, and there is one, as the caller says.
    unsafe { canput((*q).q_next) }
}

/// bcanputnext(9F).
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is. There is a queue next to it.
#[inline]
pub unsafe extern "C-unwind" fn bcanputnext(q: *mut queue_t, pri: u8) -> c_int {
    // SAFETY: there is a queue next to this live one, as the caller says, and it is live too.
    unsafe { bcanput((*q).q_next, pri) }
}

/// The queue where a message put to `q` would be held.
///
/// # Safety
/// A live queue, inside its perimeter.
#[inline(always)]
unsafe fn holder(mut q: *mut queue_t) -> *mut queue_t {
    // SAFETY: q_next leads from one live queue of the perimeter to the next, or is null; each has a table of procedures.
    unsafe {
        while (*(*q).q_qinfo).qi_srvp.is_none() && !(*q).q_next.is_null() {
            q = (*q).q_next;
        }
        q
    }
}

/// strqget(9F): a field of the queue, or of band `pri`. Returns 0 or EINVAL.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is. `value` may be written to.
pub unsafe extern "C-unwind" fn strqget(
    q: *mut queue_t,
    what: c_int,
    pri: u8,
    value: *mut c_long,
) -> c_int {
    let address = |p: *mut super::block::mblk_t| p.expose_provenance() as c_long;
    // SAFETY: a live queue, inside its perimeter, and a word to write to, as the caller says.
    unsafe {
        *value = if pri == 0 {
            match what {
                QHIWAT => (*q).q_hiwat as c_long,
                QLOWAT => (*q).q_lowat as c_long,
                QMAXPSZ => (*q).q_maxpsz as c_long,
                QMINPSZ => (*q).q_minpsz as c_long,
                QCOUNT => (*q).q_count as c_long,
                QFIRST => address((*q).q_first),
                QLAST => address((*q).q_last),
                QFLAG => (*q).q_flag as c_long,
                _ => return libc::EINVAL,
            }
        } else {
            let band = make_band(q, pri);
            match what {
                QHIWAT => band.qb_hiwat as c_long,
                QLOWAT => band.qb_lowat as c_long,
                QCOUNT => band.qb_count as c_long,
                QFIRST => address(band.qb_first),
                QLAST => address(band.qb_last),
                QFLAG => band.qb_flag as c_long,
                _ => return libc::EINVAL,
            }
        };
    }
    0
}

/// strqset(9F): sets marks or packet sizes. Returns 0, EPERM for a field that can't be set, or EINVAL.
/// A queue (band) that has room by its new marks is no longer full.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn strqset(
    q: *mut queue_t,
    what: c_int,
    pri: u8,
    value: c_long,
) -> c_int {
    // SAFETY: a live queue, inside its perimeter, as the caller says.
    unsafe {
        match what {
            QHIWAT | QLOWAT => {
                set_mark(q, what, pri, value as usize);
                0
            }
            QMAXPSZ if pri == 0 => {
                (*q).q_maxpsz = value as isize;
                0
            }
            QMINPSZ if pri == 0 => {
                (*q).q_minpsz = value as isize;
                0
            }
            QCOUNT | QFIRST | QLAST | QFLAG => libc::EPERM,
            _ => libc::EINVAL,
        }
    }
}

/// # Safety
/// A live queue, inside its perimeter.
unsafe fn set_mark(q: *mut queue_t, what: c_int, pri: u8, value: usize) {
    // SAFETY: a live queue, inside its perimeter, as the caller says; the band is referred to nowhere else.
    unsafe {
        if pri == 0 {
            match what {
                QHIWAT => (*q).q_hiwat = value,
                _ => (*q).q_lowat = value,
            }
            if (*q).q_count < (*q).q_hiwat {
                (*q).q_flag &= !QFULL;
            } else if !(*q).q_first.is_null() {
                (*q).q_flag |= QFULL;
            }
        } else {
            let band = make_band(q, pri);
            match what {
                QHIWAT => band.qb_hiwat = value,
                _ => band.qb_lowat = value,
            }
            if band.qb_count < band.qb_hiwat {
                band.qb_flag &= !QB_FULL;
            } else if !band.qb_first.is_null() {
                band.qb_flag |= QB_FULL;
            }
        }
        relieve(q, pri);
    }
}
