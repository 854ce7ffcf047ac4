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

/// Routines of the DDI/DKI on this queue: what C gets for an argument, and what becomes of its answer.
macro_rules! routines {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $t:ty = $given:expr),*) $(-> $ret:ty = $made:expr)?, $routine:path;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(self $(, $arg: $t)*) $(-> $ret)? {
            // SAFETY: see the contract; a message is the caller's, and one that comes off a queue is.
            let _told = unsafe { $routine(self.0 $(, $given)*) };
            $(($made)(_told))?
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
        canput() -> bool = holds, ddi::canput;
        /// bcanput(9F).
        bcanput(band: u8 = band) -> bool = holds, ddi::bcanput;
        /// putnext(9F).
        putnext(m: Message = m.into_raw()), ddi::putnext;
        /// put(9F).
        put(m: Message = m.into_raw()), ddi::put;
        /// qreply(9F).
        qreply(m: Message = m.into_raw()), ddi::qreply;
        /// putq(9F).
        putq(m: Message = m.into_raw()), ddi::putq;
        /// putbq(9F).
        putbq(m: Message = m.into_raw()), ddi::putbq;
        /// getq(9F).
        getq() -> Option<Message> = core::convert::identity, taken;
        /// flushq(9F).
        flushq(what: Flush = what.flag()), ddi::flushq;
        /// flushband(9F).
        flushband(band: u8 = band, what: Flush = what.flag()), ddi::flushband;
        /// qenable(9F).
        qenable(), qenable;
        /// noenable(9F).
        noenable(), noenable;
        /// enableok(9F).
        enableok(), enableok;
        /// qsize(9F): messages on the queue.
        qsize() -> usize = |n| n as usize, ddi::qsize;
        /// putnextctl(9F).
        putnextctl(kind: u8 = kind.into()) -> bool = holds, ddi::putnextctl;
        /// putnextctl1(9F).
        putnextctl1(kind: u8 = kind.into(), param: u8 = param.into()) -> bool = holds, ddi::putnextctl1;
        /// The other queue of the pair (OTHERQ).
        other() -> Queue = Queue, OTHERQ;
        /// The read queue of the pair (RD).
        read() -> Queue = Queue, RD;
        /// The write queue of the pair (WR).
        write() -> Queue = Queue, WR;
        /// backq(9F).
        back() -> Option<Queue> = Queue::unless_null, backq;
        perimeter() -> &'static Perimeter = core::convert::identity, perimeter_of;
    }

    /// What it holds now: to be looked at, before anything else is done with the queue.
    #[inline(always)]
    fn fields(&self) -> &queue_t {
        // SAFETY: see the contract.
        unsafe { &*self.0 }
    }

    #[inline(always)]
    fn unless_null(q: *mut queue_t) -> Option<Queue> {
        (!q.is_null()).then_some(Queue(q))
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

    /// What a service procedure does by default: hands messages on in order while there is room.
    pub fn forward(self) {
        while let Some(m) = self.getq() {
            if !self.takes_next(&m) {
                return self.putbq(m);
            }
            self.putnext(m);
        }
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

    /// A driver's read queue: have it serviced when somebody looks for messages at an empty head, and by
    /// the head's own looks below.
    pub fn looks(self) {
        // SAFETY: see the contract.
        unsafe { (*self.0).q_flag |= QLOOKS }
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

    #[inline]
    pub fn is_read(self) -> bool {
        self.flags() & QREADR != 0
    }

    /// The queue that putnext goes to.
    #[inline]
    pub fn next(self) -> Option<Queue> {
        Queue::unless_null(self.fields().q_next)
    }

    /// q_flag.
    #[inline]
    pub fn flags(self) -> usize {
        self.fields().q_flag
    }

    /// q_count: bytes of normal and high-priority messages.
    pub fn count(self) -> usize {
        self.fields().q_count
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

    /// The stream head's own pointer, as given to `alloc_pair`.
    pub fn stream(self) -> *mut c_void {
        self.fields().q_stream
    }

    /// Has [`Module::timer`] of `M`, whose queue this is, called with `token` after so many nanoseconds. Forgotten when the
    /// module is closed.
    pub fn timeout<M: Module>(self, nanoseconds: u64, token: usize) -> TimerId {
        let work = Work::Module(super::module::on_timer::<M>, token);
        timer::add(self.perimeter(), self.read().0, nanoseconds, work)
    }
}

fn holds(answer: c_int) -> bool {
    answer != 0
}

/// getq(9F), whose message is the caller's.
///
/// # Safety
/// As [`ddi::getq`].
#[inline]
unsafe fn taken(q: *mut queue_t) -> Option<Message> {
    // SAFETY: the caller's queue; what comes off it is ours.
    unsafe { Message::from_raw(ddi::getq(q)) }
}
