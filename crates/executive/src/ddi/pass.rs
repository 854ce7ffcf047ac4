//! Handing messages on.
//!
//! # Contract
//! As for [`super::queue`]: inside the perimeter. The message belongs to the callee.

use core::ffi::c_int;

use super::block::{BPRI_HI, allocb, mblk_t};
use super::message::*;
use super::queue::*;

/// put(9F): calls the put procedure of `q`.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
/// `mp` is a message of the caller's, which is handed on.
#[inline(always)]
pub unsafe extern "C-unwind" fn put(q: *mut queue_t, mp: *mut mblk_t) {
    // SAFETY: a live queue, inside its perimeter, and a message that the caller hands over: what a put procedure is called with.
    unsafe {
        match (*(*q).q_qinfo).qi_putp {
            Some(put) => {
                put(q, mp);
            }
            None => freemsg(mp),
        }
    }
}

/// putnext(9F): calls the put procedure of the queue after `q`. At the end of a stream the message is freed.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
/// `mp` is a message of the caller's, which is handed on.
#[inline(always)]
pub unsafe extern "C-unwind" fn putnext(q: *mut queue_t, mp: *mut mblk_t) -> c_int {
    // SAFETY: the queue next to a live one is live, and in the perimeter that the caller is inside; the message is handed over.
    unsafe {
        let next = (*q).q_next;
        if next.is_null() {
            freemsg(mp);
        } else {
            put(next, mp);
        }
        0
    }
}

/// qreply(9F): sends a message back the other way.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
/// `mp` is a message of the caller's, which is handed on.
#[inline]
pub unsafe extern "C-unwind" fn qreply(q: *mut queue_t, mp: *mut mblk_t) {
    // SAFETY: a live queue, inside its perimeter, and a message to hand over, as the caller says; the other queue of the pair is live too.
    unsafe {
        putnext(OTHERQ(q), mp);
    }
}

/// putctl(9F): puts a control message without data to `q`. 0 for a data type, or without memory.
///
/// # Safety
/// `q` is null, or a live queue inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn putctl(q: *mut queue_t, kind: c_int) -> c_int {
    // SAFETY: a live queue, inside its perimeter, or null, as the caller says; the message is fresh.
    unsafe { hand_control(q, control(kind, None)) }
}

/// putctl1(9F): with one byte.
///
/// # Safety
/// `q` is null, or a live queue inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn putctl1(q: *mut queue_t, kind: c_int, param: c_int) -> c_int {
    // SAFETY: a live queue, inside its perimeter, or null, as the caller says; the message is fresh.
    unsafe { hand_control(q, control(kind, Some(param as u8))) }
}

/// putnextctl(9F).
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn putnextctl(q: *mut queue_t, kind: c_int) -> c_int {
    // SAFETY: what is next to a live queue is live too, or null; the message is fresh.
    unsafe { hand_control((*q).q_next, control(kind, None)) }
}

/// putnextctl1(9F).
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn putnextctl1(q: *mut queue_t, kind: c_int, param: c_int) -> c_int {
    // SAFETY: what is next to a live queue is live too, or null; the message is fresh.
    unsafe { hand_control((*q).q_next, control(kind, Some(param as u8))) }
}

fn control(kind: c_int, param: Option<u8>) -> *mut mblk_t {
    let kind = kind as u8;
    if datamsg(kind) != 0 && kind != M_DELAY {
        return core::ptr::null_mut();
    }
    let mp = allocb(1, BPRI_HI);
    if !mp.is_null() {
        // SAFETY: a fresh block of ours, with room for one byte.
        unsafe {
            (*(*mp).b_datap).db_type = kind;
            if let Some(param) = param {
                *(*mp).b_wptr = param;
                (*mp).b_wptr = (*mp).b_wptr.add(1);
            }
        }
    }
    mp
}

/// # Safety
/// A live queue inside whose perimeter the caller is, or null; a message of the caller's, or null.
unsafe fn hand_control(q: *mut queue_t, mp: *mut mblk_t) -> c_int {
    // SAFETY: a message of ours or null, and a live queue or null, inside whose perimeter the caller is, as it says.
    unsafe {
        if mp.is_null() || q.is_null() {
            freemsg(mp);
            return 0;
        }
        put(q, mp);
        1
    }
}
