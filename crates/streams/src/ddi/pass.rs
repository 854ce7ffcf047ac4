//! Handing messages on.
//!
//! # Contract
//! As for [`super::queue`]: inside the perimeter. The message belongs to the callee.

use core::ffi::c_int;

use super::block::{BPRI_HI, allocb, mblk_t};
use super::message::*;
use super::queue::*;

/// put(9F): calls the put procedure of `q`.
#[inline(always)]
pub unsafe extern "C-unwind" fn put(q: *mut queue_t, mp: *mut mblk_t) {
    match (*(*q).q_qinfo).qi_putp {
        Some(put) => {
            put(q, mp);
        }
        None => freemsg(mp),
    }
}

/// putnext(9F): calls the put procedure of the queue after `q`. At the end of a stream the message is freed.
#[inline(always)]
pub unsafe extern "C-unwind" fn putnext(q: *mut queue_t, mp: *mut mblk_t) -> c_int {
    let next = (*q).q_next;
    if next.is_null() {
        freemsg(mp);
    } else {
        put(next, mp);
    }
    0
}

/// qreply(9F): sends a message back the other way.
#[inline]
pub unsafe extern "C-unwind" fn qreply(q: *mut queue_t, mp: *mut mblk_t) {
    putnext(OTHERQ(q), mp);
}

/// putctl(9F): puts a control message without data to `q`. 0 for a data type, or without memory.
pub unsafe extern "C-unwind" fn putctl(q: *mut queue_t, kind: c_int) -> c_int {
    hand_control(q, control(kind, None))
}

/// putctl1(9F): with one byte.
pub unsafe extern "C-unwind" fn putctl1(q: *mut queue_t, kind: c_int, param: c_int) -> c_int {
    hand_control(q, control(kind, Some(param as u8)))
}

/// putnextctl(9F).
pub unsafe extern "C-unwind" fn putnextctl(q: *mut queue_t, kind: c_int) -> c_int {
    hand_control((*q).q_next, control(kind, None))
}

/// putnextctl1(9F).
pub unsafe extern "C-unwind" fn putnextctl1(q: *mut queue_t, kind: c_int, param: c_int) -> c_int {
    hand_control((*q).q_next, control(kind, Some(param as u8)))
}

unsafe fn control(kind: c_int, param: Option<u8>) -> *mut mblk_t {
    let kind = kind as u8;
    if datamsg(kind) != 0 && kind != M_DELAY {
        return core::ptr::null_mut();
    }
    let mp = allocb(1, BPRI_HI);
    if !mp.is_null() {
        (*(*mp).b_datap).db_type = kind;
        if let Some(param) = param {
            *(*mp).b_wptr = param;
            (*mp).b_wptr = (*mp).b_wptr.add(1);
        }
    }
    mp
}

unsafe fn hand_control(q: *mut queue_t, mp: *mut mblk_t) -> c_int {
    if mp.is_null() || q.is_null() {
        freemsg(mp);
        return 0;
    }
    put(q, mp);
    1
}
