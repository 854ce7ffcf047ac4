//! Queues and what they are made of.
//!
//! # Contract
//! A queue lives from [`crate::exec::attach::alloc_pair`] to `free_pair`, its fields belong to its perimeter. The read queue
//! of a pair lies directly before the write queue.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;

use super::block::mblk_t;
use crate::exec::perimeter::Perimeter;

pub type Put = unsafe extern "C-unwind" fn(*mut queue_t, *mut mblk_t) -> c_int;
pub type Service = unsafe extern "C-unwind" fn(*mut queue_t) -> c_int;
/// open(9E): queue, device number, flags of open(2), 0 or MODOPEN or CLONEOPEN, credentials. Returns an errno.
pub type Open =
    unsafe extern "C-unwind" fn(*mut queue_t, *mut libc::dev_t, c_int, c_int, *mut c_void) -> c_int;
pub type Close = unsafe extern "C-unwind" fn(*mut queue_t, c_int, *mut c_void) -> c_int;

/// queue(9S).
#[repr(C)]
pub struct queue_t {
    pub q_qinfo: *const qinit,
    pub q_first: *mut mblk_t,
    pub q_last: *mut mblk_t,
    pub q_next: *mut queue_t,
    /// The next one to be serviced.
    pub q_link: *mut queue_t,
    pub q_ptr: *mut c_void,
    /// Bytes of normal and high-priority messages; a band counts its own.
    pub q_count: usize,
    pub q_flag: usize,
    pub q_minpsz: isize,
    pub q_maxpsz: isize,
    pub q_hiwat: usize,
    pub q_lowat: usize,
    pub q_bandp: *mut qband,
    pub q_nband: u8,
    pub q_pad1: [u8; 3],
    pub q_pad2: [isize; 2],
    pub q_perimeter: *const Perimeter,
    /// The stream head that this queue belongs to.
    pub q_stream: *mut c_void,
    /// How often the queue became full, and how often it back-enabled a writer.
    pub q_fulls: u64,
    pub q_wakeups: u64,
}

/// qband(9S): a priority band above 0.
#[repr(C)]
pub struct qband {
    pub qb_next: *mut qband,
    pub qb_count: usize,
    pub qb_first: *mut mblk_t,
    pub qb_last: *mut mblk_t,
    pub qb_hiwat: usize,
    pub qb_lowat: usize,
    pub qb_flag: usize,
    pub qb_pad1: isize,
}

/// qinit(9S): the procedures of one side.
#[repr(C)]
pub struct qinit {
    pub qi_putp: Option<Put>,
    pub qi_srvp: Option<Service>,
    pub qi_qopen: Option<Open>,
    pub qi_qclose: Option<Close>,
    pub qi_qadmin: Option<unsafe extern "C-unwind" fn() -> c_int>,
    pub qi_minfo: *const module_info,
    pub qi_mstat: *const c_void,
}

impl qinit {
    /// Put and service procedures alone: for queues that are neither opened nor closed.
    pub const fn of(putp: Option<Put>, srvp: Option<Service>) -> qinit {
        qinit {
            qi_putp: putp,
            qi_srvp: srvp,
            qi_qopen: None,
            qi_qclose: None,
            qi_qadmin: None,
            qi_minfo: core::ptr::null(),
            qi_mstat: core::ptr::null(),
        }
    }
}

/// streamtab(9S): a module or driver. The last two are a multiplexer's lower side.
#[repr(C)]
pub struct streamtab {
    pub st_rdinit: *const qinit,
    pub st_wrinit: *const qinit,
    pub st_muxrinit: *const qinit,
    pub st_muxwinit: *const qinit,
}

/// module_info(9S).
#[repr(C)]
pub struct module_info {
    pub mi_idnum: u16,
    pub mi_idname: *const c_char,
    pub mi_minpsz: isize,
    pub mi_maxpsz: isize,
    pub mi_hiwat: usize,
    pub mi_lowat: usize,
}

// SAFETY: tables that nobody writes to.
unsafe impl Sync for qinit {}
// SAFETY: nobody writes to such a table once it is there.
unsafe impl Sync for streamtab {}
// SAFETY: what a module says of itself stays as it is.
unsafe impl Sync for module_info {}

/// q_flag: waits to be serviced.
pub const QENAB: usize = 0x01;
/// Somebody wants to read: the next message enables the queue.
pub const QWANTR: usize = 0x02;
/// Somebody wants to write: the queue behind is enabled once there is room.
pub const QWANTW: usize = 0x04;
pub const QFULL: usize = 0x08;
pub const QREADR: usize = 0x10;
pub const QUSE: usize = 0x20;
pub const QNOENB: usize = 0x40;
pub const QOLD: usize = 0x80;
pub const QBACK: usize = 0x100;
pub const QHLIST: usize = 0x200;
/// Ours, on a driver's read queue: it is to be serviced when somebody looks for messages at an empty head.
pub const QLOOKS: usize = 0x1000;

/// qb_flag.
pub const QB_FULL: usize = 0x01;
pub const QB_WANTW: usize = 0x02;
pub const QB_BACK: usize = 0x04;

/// Packet size without a limit.
pub const INFPSZ: isize = -1;

/// sflag of open(9E).
pub const MODOPEN: c_int = 0x1;
pub const CLONEOPEN: c_int = 0x2;

/// OTHERQ(9F).
///
/// # Safety
/// `q` is a queue of a live pair.
#[expect(non_snake_case, reason = "its name in C")]
#[inline(always)]
pub unsafe extern "C-unwind" fn OTHERQ(q: *mut queue_t) -> *mut queue_t {
    // SAFETY: a live queue of a pair, as the caller says: the other one is directly before or behind it.
    unsafe {
        if (*q).q_flag & QREADR != 0 {
            q.add(1)
        } else {
            q.sub(1)
        }
    }
}

/// RD(9F): the read queue of the pair.
///
/// # Safety
/// `q` is a queue of a live pair.
#[expect(non_snake_case, reason = "its name in C")]
#[inline(always)]
pub unsafe extern "C-unwind" fn RD(q: *mut queue_t) -> *mut queue_t {
    // SAFETY: a live queue of a pair, as the caller says: the read queue is directly before a write queue.
    unsafe {
        if (*q).q_flag & QREADR != 0 {
            q
        } else {
            q.sub(1)
        }
    }
}

/// WR(9F): the write queue of the pair.
///
/// # Safety
/// `q` is a queue of a live pair.
#[expect(non_snake_case, reason = "its name in C")]
#[inline(always)]
pub unsafe extern "C-unwind" fn WR(q: *mut queue_t) -> *mut queue_t {
    // SAFETY: a live queue of a pair, as the caller says: the write queue is directly behind a read queue.
    unsafe {
        if (*q).q_flag & QREADR != 0 {
            q.add(1)
        } else {
            q
        }
    }
}

/// SAMESTR(9F): is the next queue of the same stream and side?
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
#[expect(non_snake_case, reason = "its name in C")]
#[inline]
pub unsafe extern "C-unwind" fn SAMESTR(q: *mut queue_t) -> c_int {
    // SAFETY: a live queue, as the caller says, and what q_next leads to is live too.
    unsafe {
        let next = (*q).q_next;
        (!next.is_null() && (*q).q_flag & QREADR == (*next).q_flag & QREADR) as c_int
    }
}

/// backq(9F): the queue whose q_next this is, or null.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
#[inline]
pub unsafe extern "C-unwind" fn backq(q: *mut queue_t) -> *mut queue_t {
    // SAFETY: the queues next to a live pair are live, and each has its other one beside it.
    unsafe {
        let behind = (*OTHERQ(q)).q_next;
        if behind.is_null() {
            null_mut()
        } else {
            OTHERQ(behind)
        }
    }
}

/// noenable(9F): only back-enabling, `qenable` and high priority schedule the service procedure from now on.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
#[inline]
pub unsafe extern "C-unwind" fn noenable(q: *mut queue_t) {
    // SAFETY: a live queue, inside its perimeter, as the caller says.
    unsafe {
        (*q).q_flag |= QNOENB;
    }
}

/// enableok(9F): takes noenable back.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
#[inline]
pub unsafe extern "C-unwind" fn enableok(q: *mut queue_t) {
    // SAFETY: a live queue, inside its perimeter, as the caller says.
    unsafe {
        (*q).q_flag &= !QNOENB;
    }
}

/// qenable(9F): schedules the service procedure, if there is one.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
#[inline]
pub unsafe extern "C-unwind" fn qenable(q: *mut queue_t) {
    // SAFETY: a live queue, inside its perimeter, as the caller says; its procedures are in a table that stays, perimeters stay for ever.
    unsafe {
        if (*q).q_flag & QENAB == 0 && (*(*q).q_qinfo).qi_srvp.is_some() {
            (*q).q_flag |= QENAB;
            (*(*q).q_perimeter).schedule(q);
        }
    }
}

/// qprocson(9F): put and service procedures are on as soon as the queue is linked in, and run in its perimeter.
pub extern "C-unwind" fn qprocson(_q: *mut queue_t) {}

/// qprocsoff(9F): the service procedure is not run any more.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
pub unsafe extern "C-unwind" fn qprocsoff(q: *mut queue_t) {
    // SAFETY: the queues of a live pair, inside their perimeter, as the caller says; perimeters stay for ever.
    unsafe {
        let perimeter = &*(*q).q_perimeter;
        perimeter.unschedule(RD(q));
        perimeter.unschedule(WR(q));
    }
}

/// freezestr(9F): nothing moves in a perimeter but by who is in it.
pub extern "C-unwind" fn freezestr(_q: *mut queue_t) {}
pub extern "C-unwind" fn unfreezestr(_q: *mut queue_t) {}

/// Band `n` > 0, if it was used before.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is.
/// The reference is given up before another to the same band is asked for.
#[inline]
pub unsafe fn find_band<'a>(q: *mut queue_t, n: u8) -> Option<&'a mut qband> {
    // SAFETY: a live queue, inside its perimeter, as the caller says; q_nband counts the bands of its list.
    unsafe {
        if n == 0 || n > (*q).q_nband {
            return None;
        }
        let mut band = (*q).q_bandp;
        for _ in 1..n {
            band = (*band).qb_next;
        }
        Some(&mut *band)
    }
}

/// Band `n` > 0, made now with all below it if need be. New bands have the queue's marks.
///
/// # Safety
/// `q` is a live queue, inside whose perimeter the caller is. `n` is not 0.
/// The reference is given up before another to the same band is asked for.
pub unsafe fn make_band<'a>(q: *mut queue_t, n: u8) -> &'a mut qband {
    // SAFETY: a live queue, inside its perimeter, as the caller says. The links are null or lead to bands, of which `n` > 0 are there in
    // the end: `link` lies in the last of them.
    unsafe {
        let mut link = &raw mut (*q).q_bandp;
        for _ in 0..n {
            if (*link).is_null() {
                *link = Box::into_raw(Box::new(qband {
                    qb_next: null_mut(),
                    qb_count: 0,
                    qb_first: null_mut(),
                    qb_last: null_mut(),
                    qb_hiwat: (*q).q_hiwat,
                    qb_lowat: (*q).q_lowat,
                    qb_flag: 0,
                    qb_pad1: 0,
                }));
                (*q).q_nband += 1;
            }
            link = &raw mut (**link).qb_next;
        }
        &mut *(link
            .byte_sub(core::mem::offset_of!(qband, qb_next))
            .cast::<qband>())
    }
}

/// Frees the bands; no message of theirs is left.
///
/// # Safety
/// Inside the perimeter of the queue, whose bands nobody refers to.
pub(crate) unsafe fn free_bands(q: *mut queue_t) {
    // SAFETY: the bands came from a box each, and nobody else refers to them any more, as the caller says.
    unsafe {
        while !(*q).q_bandp.is_null() {
            let band = Box::from_raw((*q).q_bandp);
            (*q).q_bandp = band.qb_next;
        }
        (*q).q_nband = 0;
    }
}
