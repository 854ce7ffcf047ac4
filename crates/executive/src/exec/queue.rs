//! A queue as a module in Rust sees it: the routines of the DDI/DKI as methods.
//!
//! # Contract
//! A `Queue` is what a procedure of [`super::Module`] was called with, or was reached from that. It is used inside the
//! perimeter, and not after its module was closed (a lower one: unlinked). That, and nothing else, is what makes the calls
//! here sound; keeping one longer is the only way to misuse it.

use core::ffi::{CStr, c_int, c_long, c_void};

use super::module::Module;
use super::perimeter::{Perimeter, perimeter_of};
use super::timer::{self, TimerId, Work};
use crate::ddi;
use crate::ddi::owned::Message;
use crate::ddi::queue::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Queue(*mut queue_t);

// SAFETY: a name for a queue; see the contract.
unsafe impl Send for Queue {}
// SAFETY: what it names is only touched inside the perimeter, whichever thread holds the name.
unsafe impl Sync for Queue {}

/// What flushq takes off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    All,
    /// M_DATA, M_PROTO, M_PCPROTO and M_DELAY only.
    Data,
}

impl Flush {
    fn flag(self) -> c_int {
        match self {
            Flush::All => ddi::FLUSHALL,
            Flush::Data => ddi::FLUSHDATA,
        }
    }
}

macro_rules! routines {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $t:ty),*) -> bool;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(self $(, $arg: $t)*) -> bool {
            // SAFETY: see the contract.
            unsafe { ddi::$name(self.0 $(, $arg)*) != 0 }
        }
    )*};
}

impl Queue {
    /// # Safety
    /// A live queue, used as the contract says.
    #[inline(always)]
    pub unsafe fn from_raw(q: *mut queue_t) -> Queue {
        Queue(q)
    }

    #[inline(always)]
    pub fn as_ptr(self) -> *mut queue_t {
        self.0
    }

    routines! {
        /// canput(9F).
        canput() -> bool;
        /// bcanput(9F).
        bcanput(band: u8) -> bool;
    }

    /// canputnext(9F); true at the end of a stream, where nothing is kept.
    #[inline]
    pub fn canputnext(self) -> bool {
        self.next().is_none_or(Queue::canput)
    }

    /// bcanputnext(9F).
    #[inline]
    pub fn bcanputnext(self, band: u8) -> bool {
        self.next().is_none_or(|q| q.bcanput(band))
    }

    /// Is there room behind for this message? High priority needs none.
    #[inline]
    pub fn takes_next(self, m: &Message) -> bool {
        m.is_priority() || self.bcanputnext(m.band())
    }

    /// putnext(9F).
    #[inline(always)]
    pub fn putnext(self, m: Message) {
        // SAFETY: see the contract.
        unsafe { ddi::putnext(self.0, m.into_raw()) };
    }

    /// put(9F).
    #[inline]
    pub fn put(self, m: Message) {
        // SAFETY: see the contract.
        unsafe { ddi::put(self.0, m.into_raw()) }
    }

    /// qreply(9F).
    #[inline]
    pub fn qreply(self, m: Message) {
        // SAFETY: see the contract.
        unsafe { ddi::qreply(self.0, m.into_raw()) }
    }

    /// putq(9F).
    #[inline]
    pub fn putq(self, m: Message) {
        // SAFETY: see the contract.
        unsafe { ddi::putq(self.0, m.into_raw()) };
    }

    /// putbq(9F).
    #[inline]
    pub fn putbq(self, m: Message) {
        // SAFETY: see the contract.
        unsafe { ddi::putbq(self.0, m.into_raw()) };
    }

    /// getq(9F).
    #[inline]
    pub fn getq(self) -> Option<Message> {
        // SAFETY: see the contract; what comes off a queue is ours.
        unsafe { Message::from_raw(ddi::getq(self.0)) }
    }

    /// What a service procedure does by default: hands messages on in order while there is room.
    pub fn forward(self) {
        while let Some(m) = self.getq() {
            if !self.takes_next(&m) {
                return self.putbq(m);
            }
            self.putnext(m);
        }
    }

    /// flushq(9F).
    pub fn flushq(self, what: Flush) {
        // SAFETY: see the contract.
        unsafe { ddi::flushq(self.0, what.flag()) }
    }

    /// flushband(9F).
    pub fn flushband(self, band: u8, what: Flush) {
        // SAFETY: see the contract.
        unsafe { ddi::flushband(self.0, band, what.flag()) }
    }

    /// Flushes this queue as an M_FLUSH's bytes say, of which `side` is ours.
    pub fn flush_as(self, m: &Message, what: Flush) {
        let bytes = m.bytes();
        let side = if self.is_read() {
            ddi::FLUSHR
        } else {
            ddi::FLUSHW
        };
        match bytes {
            [sides, ..] if sides & side == 0 => {}
            [sides, band, ..] if sides & ddi::FLUSHBAND != 0 => self.flushband(*band, what),
            [_, ..] => self.flushq(what),
            [] => {}
        }
    }

    /// qenable(9F).
    pub fn qenable(self) {
        // SAFETY: see the contract.
        unsafe { qenable(self.0) }
    }

    /// noenable(9F).
    pub fn noenable(self) {
        // SAFETY: see the contract.
        unsafe { noenable(self.0) }
    }

    /// enableok(9F).
    pub fn enableok(self) {
        // SAFETY: see the contract.
        unsafe { enableok(self.0) }
    }

    /// A driver's read queue: have it serviced when somebody looks for messages at an empty head, and by
    /// the head's own looks below.
    pub fn looks(self) {
        // SAFETY: see the contract.
        unsafe { (*self.0).q_flag |= QLOOKS }
    }

    /// qsize(9F): messages on the queue.
    pub fn qsize(self) -> usize {
        // SAFETY: see the contract.
        unsafe { ddi::qsize(self.0) as usize }
    }

    /// strqget(9F).
    pub fn strqget(self, what: c_int, band: u8) -> Result<c_long, c_int> {
        let mut value = 0;
        // SAFETY: see the contract.
        match unsafe { ddi::strqget(self.0, what, band, &mut value) } {
            0 => Ok(value),
            errno => Err(errno),
        }
    }

    /// strqset(9F).
    pub fn strqset(self, what: c_int, band: u8, value: c_long) -> Result<(), c_int> {
        // SAFETY: see the contract.
        match unsafe { ddi::strqset(self.0, what, band, value) } {
            0 => Ok(()),
            errno => Err(errno),
        }
    }

    /// putnextctl(9F).
    pub fn putnextctl(self, kind: u8) -> bool {
        // SAFETY: see the contract.
        unsafe { ddi::putnextctl(self.0, kind as c_int) == 1 }
    }

    /// putnextctl1(9F).
    pub fn putnextctl1(self, kind: u8, param: u8) -> bool {
        // SAFETY: see the contract.
        unsafe { ddi::putnextctl1(self.0, kind as c_int, param as c_int) == 1 }
    }

    /// The other queue of the pair (OTHERQ).
    #[inline]
    pub fn other(self) -> Queue {
        // SAFETY: see the contract.
        Queue(unsafe { OTHERQ(self.0) })
    }

    /// The read queue of the pair (RD).
    #[inline]
    pub fn read(self) -> Queue {
        // SAFETY: see the contract.
        Queue(unsafe { RD(self.0) })
    }

    /// The write queue of the pair (WR).
    #[inline]
    pub fn write(self) -> Queue {
        // SAFETY: see the contract.
        Queue(unsafe { WR(self.0) })
    }

    #[inline]
    pub fn is_read(self) -> bool {
        self.flags() & QREADR != 0
    }

    /// The queue that putnext goes to.
    #[inline]
    pub fn next(self) -> Option<Queue> {
        // SAFETY: see the contract.
        let next = unsafe { (*self.0).q_next };
        (!next.is_null()).then_some(Queue(next))
    }

    /// backq(9F).
    pub fn back(self) -> Option<Queue> {
        // SAFETY: see the contract.
        let back = unsafe { backq(self.0) };
        (!back.is_null()).then_some(Queue(back))
    }

    /// q_flag.
    #[inline]
    pub fn flags(self) -> usize {
        // SAFETY: see the contract.
        unsafe { (*self.0).q_flag }
    }

    /// q_count: bytes of normal and high-priority messages.
    pub fn count(self) -> usize {
        // SAFETY: see the contract.
        unsafe { (*self.0).q_count }
    }

    /// Type and band of the first message.
    pub fn first(self) -> Option<(u8, u8)> {
        // SAFETY: see the contract.
        unsafe {
            let mp = (*self.0).q_first.as_ref()?;
            Some((ddi::mtype(mp), mp.b_band))
        }
    }

    /// Runs `f` on the type and the first block of the first message.
    pub fn with_first<T>(self, f: impl FnOnce(u8, &[u8]) -> T) -> Option<T> {
        // SAFETY: see the contract; a block holds what lies between its pointers.
        unsafe {
            let mp = (*self.0).q_first.as_ref()?;
            let len = mp.b_wptr.offset_from(mp.b_rptr).max(0) as usize;
            Some(f(
                ddi::mtype(mp),
                core::slice::from_raw_parts(mp.b_rptr, len),
            ))
        }
    }

    /// Name of the module that the queue belongs to.
    pub fn name(self) -> Option<&'static CStr> {
        // SAFETY: see the contract; the tables live for ever.
        unsafe {
            let info = (*(*self.0).q_qinfo).qi_minfo.as_ref()?;
            (!info.mi_idname.is_null()).then(|| CStr::from_ptr(info.mi_idname))
        }
    }

    pub fn perimeter(self) -> &'static Perimeter {
        // SAFETY: see the contract.
        unsafe { perimeter_of(self.0) }
    }

    /// The stream head's own pointer, as given to `alloc_pair`.
    pub fn stream(self) -> *mut c_void {
        // SAFETY: see the contract.
        unsafe { (*self.0).q_stream }
    }

    /// Has [`Module::timer`] of `M`, whose queue this is, called with `token` after so many nanoseconds. Forgotten when the
    /// module is closed.
    pub fn timeout<M: Module>(self, nanoseconds: u64, token: usize) -> TimerId {
        let work = Work::Module(super::module::on_timer::<M>, token);
        timer::add(self.perimeter(), self.read().0, nanoseconds, work)
    }
}
