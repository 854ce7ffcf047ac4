//! Queues and what they are made of.
//!
//! # Contract
//! A queue lives from [`crate::exec::attach::alloc_pair`] to `free_pair`, its fields belong to its perimeter. The read queue
//! of a pair lies directly before the write queue.

use core::cell::{Cell, OnceCell};
use core::ffi::{c_char, c_int, c_long, c_void};
use core::ops::Deref;
use core::ptr::{NonNull, null_mut};

use headwater_channel::lock::Lock;

use super::block::OnQueue;
use super::message::Plain;
use super::owned::Message;

pub type Put = unsafe extern "C-unwind" fn(Queue, Message) -> c_int;
pub type Service = unsafe extern "C-unwind" fn(Queue) -> c_int;
/// open(9E): queue, device number, flags of open(2), 0 or MODOPEN or CLONEOPEN, credentials. Returns an errno.
pub type Open =
    unsafe extern "C-unwind" fn(Queue, &mut libc::dev_t, c_int, c_int, *mut c_void) -> c_int;
pub type Close = unsafe extern "C-unwind" fn(Queue, c_int, *mut c_void) -> c_int;

/// queue(9S). What it leads to is live as long as it does.
#[repr(C)]
pub struct queue_t {
    pub(crate) q_qinfo: Cell<&'static qinit>,
    pub(crate) q_first: Cell<Option<OnQueue>>,
    pub(crate) q_last: Cell<Option<OnQueue>>,
    pub(crate) q_next: Cell<Option<Queue>>,
    /// The next one to be serviced.
    pub(crate) q_link: Cell<Option<Queue>>,
    pub(crate) q_ptr: Cell<*mut c_void>,
    /// Bytes of normal and high-priority messages; a band counts its own.
    pub q_count: Cell<usize>,
    pub(crate) q_flag: Cell<usize>,
    pub q_minpsz: Cell<isize>,
    pub q_maxpsz: Cell<isize>,
    pub q_hiwat: Cell<usize>,
    pub q_lowat: Cell<usize>,
    pub(crate) q_bandp: OnceCell<Box<qband>>,
    pub q_nband: Cell<u8>,
    pub(crate) q_pad1: [u8; 3],
    pub(crate) q_pad2: [isize; 2],
    pub(crate) q_perimeter: Cell<&'static Perimeter>,
    /// The stream head that this queue belongs to.
    pub(crate) q_stream: *mut c_void,
    /// How often the queue became full, and how often it back-enabled a writer.
    pub q_fulls: Cell<u64>,
    pub q_wakeups: Cell<u64>,
}

/// qband(9S): a priority band above 0. They go with their queue.
#[derive(Default)]
#[repr(C)]
pub struct qband {
    pub(crate) qb_next: OnceCell<Box<qband>>,
    pub qb_count: Cell<usize>,
    pub(crate) qb_first: Cell<Option<OnQueue>>,
    pub(crate) qb_last: Cell<Option<OnQueue>>,
    pub qb_hiwat: Cell<usize>,
    pub qb_lowat: Cell<usize>,
    pub qb_flag: Cell<usize>,
    pub(crate) qb_pad1: isize,
}

impl queue_t {
    /// One of a pair, without procedures.
    pub(crate) fn new(flag: usize, perimeter: &'static Perimeter, stream: *mut c_void) -> queue_t {
        queue_t {
            q_qinfo: Cell::new(&NOTHING),
            q_first: Cell::new(None),
            q_last: Cell::new(None),
            q_next: Cell::new(None),
            q_link: Cell::new(None),
            q_ptr: Cell::new(null_mut()),
            q_count: Cell::new(0),
            q_flag: Cell::new(flag),
            q_minpsz: Cell::new(0),
            q_maxpsz: Cell::new(0),
            q_hiwat: Cell::new(0),
            q_lowat: Cell::new(0),
            q_bandp: OnceCell::new(),
            q_nband: Cell::new(0),
            q_pad1: [0; 3],
            q_pad2: [0; 2],
            q_perimeter: Cell::new(perimeter),
            q_stream: stream,
            q_fulls: Cell::new(0),
            q_wakeups: Cell::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn raise(&self, flags: usize) {
        self.q_flag.set(self.q_flag.get() | flags);
    }

    #[inline(always)]
    pub(crate) fn lower(&self, flags: usize) {
        self.q_flag.set(self.q_flag.get() & !flags);
    }
}

/// Procedures of a pair that has none: what is put there is freed.
pub(crate) static NOTHING: qinit = qinit::of(None, None);

/// A queue: what a procedure was called with, or was reached from that. It is used inside the perimeter, and not after its module was
/// closed (a lower one: unlinked). That, and nothing else, is what makes the calls on it sound; keeping one longer is the only way to
/// misuse it. The same goes for what is seen of the messages on it, which may be used while they are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Queue(NonNull<queue_t>);

// SAFETY: a name for a queue; see there.
unsafe impl Send for Queue {}
// SAFETY: what it names is only touched inside the perimeter, whichever thread holds the name.
unsafe impl Sync for Queue {}

impl Deref for Queue {
    type Target = queue_t;

    #[inline(always)]
    fn deref(&self) -> &queue_t {
        // SAFETY: it is there, see the type; whoever is inside the perimeter changes it by its cells alone.
        unsafe { self.0.as_ref() }
    }
}

/// The lock that the procedures of a stream's queues run in, and the queues enabled in it. How it is entered, and what is serviced
/// then: [`crate::exec::perimeter`].
pub struct Perimeter {
    pub(crate) lock: Lock,
    pub(crate) first: Cell<Option<Queue>>,
    pub(crate) last: Cell<Option<Queue>>,
}

// SAFETY: the cells are only touched inside, see the contract of `exec::perimeter`.
unsafe impl Sync for Perimeter {}
// SAFETY: the queues that the cells lead to belong to no thread, only to who is inside.
unsafe impl Send for Perimeter {}

impl Perimeter {
    pub(crate) const fn new() -> Perimeter {
        Perimeter {
            lock: Lock::new(),
            first: Cell::new(None),
            last: Cell::new(None),
        }
    }

    /// Appends a queue that has just been given QENAB.
    #[inline]
    pub(crate) fn schedule(&self, q: Queue) {
        q.q_link.set(None);
        match self.last.replace(Some(q)) {
            None => self.first.set(Some(q)),
            Some(last) => last.q_link.set(Some(q)),
        }
    }

    /// Takes a queue of this perimeter off the list, if it is on it.
    pub(crate) fn unschedule(&self, q: Queue) {
        if q.flags() & QENAB == 0 {
            return;
        }
        q.lower(QENAB);
        let mut before = None::<Queue>;
        let mut at = self.first.get();
        while let Some(other) = at.filter(|at| *at != q) {
            before = at;
            at = other.q_link.get();
        }
        if at.is_none() {
            return;
        }
        let after = q.q_link.take();
        match before {
            None => self.first.set(after),
            Some(before) => before.q_link.set(after),
        }
        if after.is_none() {
            self.last.set(before);
        }
    }
}

/// qinit(9S): the procedures of one side.
#[repr(C)]
pub struct qinit {
    pub qi_putp: Option<Put>,
    pub qi_srvp: Option<Service>,
    pub qi_qopen: Option<Open>,
    pub qi_qclose: Option<Close>,
    pub qi_qadmin: Option<unsafe extern "C-unwind" fn() -> c_int>,
    pub qi_minfo: Option<&'static module_info>,
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
            qi_minfo: None,
            qi_mstat: core::ptr::null(),
        }
    }
}

/// streamtab(9S): a module or driver. The last two are a multiplexer's lower side.
#[repr(C)]
pub struct streamtab {
    pub st_rdinit: Option<&'static qinit>,
    pub st_wrinit: Option<&'static qinit>,
    pub st_muxrinit: Option<&'static qinit>,
    pub st_muxwinit: Option<&'static qinit>,
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
// SAFETY: what a module says of itself stays as it is.
unsafe impl Sync for module_info {}

/// ioctl(2): a stream is linked below a multiplexer, or taken off again; the same for longer than the linking stream is open.
pub const I_LINK: c_int = (b'S' as c_int) << 8 | 12;
pub const I_UNLINK: c_int = I_LINK + 1;
pub const I_PLINK: c_int = (b'S' as c_int) << 8 | 22;
pub const I_PUNLINK: c_int = I_PLINK + 1;

/// linkblk(9S): what I_LINK and I_UNLINK carry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct linkblk {
    pub l_qtop: *mut queue_t,
    pub l_qbot: *mut queue_t,
    pub l_index: c_int,
    pub l_pad: [c_long; 5],
}

// SAFETY: integers, and pointers that nobody follows without checking.
unsafe impl Plain for linkblk {}

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

impl Queue {
    /// # Safety
    /// A live queue of a pair, used as is said above.
    #[inline(always)]
    pub unsafe fn from_raw(q: *mut queue_t) -> Queue {
        // SAFETY: a queue that is there is somewhere.
        Queue(unsafe { NonNull::new_unchecked(q) })
    }

    #[inline(always)]
    pub fn as_ptr(self) -> *mut queue_t {
        self.0.as_ptr()
    }

    /// The other queue of the pair (OTHERQ).
    #[inline(always)]
    pub fn other(self) -> Queue {
        // SAFETY: the read queue of a pair lies directly before the write queue.
        Queue(unsafe {
            match self.is_read() {
                true => self.0.add(1),
                false => self.0.sub(1),
            }
        })
    }

    /// The read queue of the pair (RD).
    #[inline(always)]
    pub fn read(self) -> Queue {
        match self.is_read() {
            true => self,
            false => self.other(),
        }
    }

    /// The write queue of the pair (WR).
    #[inline(always)]
    pub fn write(self) -> Queue {
        self.read().other()
    }

    #[inline(always)]
    pub fn is_read(self) -> bool {
        self.flags() & QREADR != 0
    }

    /// q_flag.
    #[inline(always)]
    pub fn flags(self) -> usize {
        self.q_flag.get()
    }

    /// The queue that putnext goes to.
    #[inline(always)]
    pub fn next(self) -> Option<Queue> {
        self.q_next.get()
    }

    /// This queue, and those that messages go on to.
    pub fn from_here(self) -> impl Iterator<Item = Queue> {
        core::iter::successors(Some(self), |q| q.next())
    }

    /// SAMESTR(9F): is the next queue of the same stream and side?
    pub fn samestr(self) -> bool {
        self.next().is_some_and(|n| n.is_read() == self.is_read())
    }

    /// backq(9F): the queue whose putnext goes here.
    #[inline]
    pub fn back(self) -> Option<Queue> {
        self.other().next().map(Queue::other)
    }

    /// weldq(9F): may this queue, at the end of its stream, go on to `to`? Or, if not `together`: does it, and was welded to it?
    pub fn can_be_welded(self, to: Queue, together: bool) -> bool {
        let next = match together {
            true => None,
            false => Some(to),
        };
        core::ptr::eq(self.perimeter(), to.perimeter())
            && self.is_read() != to.is_read()
            && self.next() == next
    }

    /// It goes on there from here on.
    pub fn weld(self, to: Option<Queue>) {
        self.q_next.set(to);
    }

    /// The procedures of its side.
    #[inline(always)]
    pub fn procedures(self) -> &'static qinit {
        self.q_qinfo.get()
    }

    /// The perimeter that it lies in.
    #[inline(always)]
    pub fn perimeter(self) -> &'static Perimeter {
        self.q_perimeter.get()
    }

    /// The stream head's own pointer, as given to `alloc_pair`.
    #[inline(always)]
    pub fn stream(self) -> *mut c_void {
        self.q_stream
    }

    /// noenable(9F): only back-enabling, `qenable` and high priority schedule the service procedure from now on.
    #[inline]
    pub fn noenable(self) {
        self.raise(QNOENB);
    }

    /// enableok(9F): takes noenable back.
    #[inline]
    pub fn enableok(self) {
        self.lower(QNOENB);
    }

    /// qenable(9F): schedules the service procedure, if there is one.
    #[inline]
    pub fn qenable(self) {
        if self.flags() & QENAB == 0 && self.procedures().qi_srvp.is_some() {
            self.raise(QENAB);
            self.perimeter().schedule(self);
        }
    }

    /// qprocsoff(9F): the service procedure is not run any more. (They are on as soon as the queue is linked in.)
    pub fn qprocsoff(self) {
        self.read().unschedule();
        self.write().unschedule();
    }

    /// Takes back what qenable(9F) did, if it was not serviced yet.
    pub fn unschedule(self) {
        self.perimeter().unschedule(self);
    }
}

impl queue_t {
    /// Band `n` > 0, if it was used before.
    #[inline]
    pub fn find_band(&self, n: u8) -> Option<&qband> {
        let bands = core::iter::successors(self.q_bandp.get(), |band| band.qb_next.get());
        bands
            .map(|band| &**band)
            .nth(usize::from(n).checked_sub(1)?)
    }

    /// Band `n` > 0, made now with all below it if need be. New bands have the queue's marks.
    pub fn make_band(&self, n: u8) -> &qband {
        let mut link = &self.q_bandp;
        let mut at = 1;
        loop {
            let band = link.get_or_init(|| {
                self.q_nband.set(at);
                Box::new(qband {
                    qb_hiwat: self.q_hiwat.clone(),
                    qb_lowat: self.q_lowat.clone(),
                    ..qband::default()
                })
            });
            if at >= n {
                return band;
            }
            at += 1;
            link = &band.qb_next;
        }
    }
}
