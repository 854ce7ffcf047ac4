//! Modules and drivers in Rust. A generic adapter makes the tables of C procedures, so there is one executive.
//!
//! # Contract
//! q_ptr of a queue with an adapter's procedures is null or points to a `State` of that adapter, which lives until the
//! close procedure (a lower queue: until I_UNLINK). Procedures run inside the perimeter, so `&self` is never shared between
//! threads at one time; a put procedure may be entered again by what it calls, so state that changes lies in cells.

use core::any::TypeId;
use core::cell::Cell;
use core::ffi::{CStr, c_int, c_void};
use core::marker::PhantomData;
use core::ptr::null_mut;
use std::panic::{AssertUnwindSafe, catch_unwind};

use headwater_host::log::{self, Level};

use super::queue::Queue;
use super::timer::{self, TimerId, Work};
use crate::ddi::owned::Message;
use crate::ddi::queue::*;

type Errno = c_int;

/// What a module says of itself (module_info(9S)). Sizes in bytes; [`INFPSZ`] is no limit.
#[derive(Clone, Copy)]
pub struct Info {
    pub id: u16,
    pub name: &'static CStr,
    pub min_packet: isize,
    pub max_packet: isize,
    pub hiwat: usize,
    pub lowat: usize,
}

impl Info {
    /// Packets of any size, and the usual marks.
    pub const fn new(id: u16, name: &'static CStr) -> Info {
        Info {
            id,
            name,
            min_packet: 0,
            max_packet: INFPSZ,
            hiwat: 5120,
            lowat: 1024,
        }
    }
}

/// How a module is opened (sflag of open(9E)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenFlag {
    Driver,
    Module,
    /// A driver by its clone device: it chooses the minor number.
    Clone,
}

/// Which streams may run at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Each stream has a perimeter of its own.
    PerStream,
    /// All streams opened on the driver run in one perimeter, so they may put to each other's queues.
    Shared,
}

/// A module or driver. Without more than `INFO` and `open` it hands everything on.
pub trait Module: Sized + Send + 'static {
    const INFO: Info;
    /// Is there a read (write) service procedure? Without one the queue holds nothing, and flow control looks past it.
    const RSRV: bool = false;
    const WSRV: bool = false;
    /// For drivers.
    const FLOW: Flow = Flow::PerStream;

    /// open(9E), with the read queue. A clone open puts the minor number that it chose into `dev`. Until it returns messages
    /// pass by; [`started`](Module::started) is the place to send some.
    fn open(q: Queue, dev: &mut libc::dev_t, oflag: c_int, flag: OpenFlag) -> Result<Self, Errno>;

    /// The procedures are on (qprocson(9F)).
    fn started(&self, _q: Queue) {}

    /// close(9E), with the read queue. What is left on the queues is freed afterwards.
    fn close(&self, _q: Queue, _oflag: c_int) {}

    /// put(9E) on the read side: a message on its way up.
    fn rput(&self, q: Queue, m: Message) {
        q.putnext(m);
    }

    /// put(9E) on the write side: a message on its way down.
    fn wput(&self, q: Queue, m: Message) {
        q.putnext(m);
    }

    /// srv(9E) on the read side.
    fn rsrv(&self, q: Queue) {
        q.forward();
    }

    /// srv(9E) on the write side.
    fn wsrv(&self, q: Queue) {
        q.forward();
    }

    /// A timer of [`Queue::timeout`] has run out; `q` is the read queue.
    fn timer(&self, _q: Queue, _token: usize) {}
}

/// A multiplexing driver: a module whose lower side are the heads of streams linked below it. I_LINK comes as M_IOCTL with
/// a [`linkblk`](crate::ddi::linkblk) to `wput`; the answer to that is [`set_lower`] for `l_qbot`, then M_IOCACK.
pub trait Mux: Module {
    /// What is known of a stream linked below.
    type Lower: Send + 'static;
    const LRSRV: bool = false;
    const LWSRV: bool = false;

    /// A message that comes up from below. `q` is the lower read queue; nothing is next to it.
    fn lrput(lower: &Self::Lower, q: Queue, m: Message);
    fn lrsrv(_lower: &Self::Lower, _q: Queue) {}
    /// Room again below: the lower write queue, which putnext goes down from, was back-enabled.
    fn lwsrv(_lower: &Self::Lower, _q: Queue) {}
}

/// Notes what belongs to a stream linked below, until it is unlinked. `q` is either queue of `l_qbot`'s pair; false, and
/// nothing noted, if it is no lower queue of a multiplexer in Rust.
pub fn set_lower<M: Mux>(q: Queue, lower: M::Lower) -> bool {
    if !has_mark(q, &LOWER) {
        return false;
    }
    // SAFETY: whoever notes something new has no call under way with what was noted before.
    unsafe { drop_lower(q) };
    note_fresh(q, lower);
    true
}

/// What belongs to the lower stream of `q`, once it was noted.
pub fn with_lower<M: Mux, T>(q: Queue, f: impl FnOnce(&M::Lower) -> T) -> Option<T> {
    let state = has_mark(q, &LOWER).then_some(q.q_ptr.get())?;
    // SAFETY: the mark has been looked at, and the type is first.
    unsafe {
        let any = state.cast::<State<()>>().as_ref()?;
        (any.of == TypeId::of::<M::Lower>()).then(|| f(&(*state.cast::<State<M::Lower>>()).it))
    }
}

/// The tables of a module or driver.
pub fn streamtab_of<M: Module>() -> &'static streamtab {
    Tables::<M>::PLAIN
}

/// The tables of a multiplexer.
pub fn mux_streamtab_of<M: Mux>() -> &'static streamtab {
    Tables::<M>::MUX
}

/// qi_mstat of our own tables points to one of these, which tells what q_ptr is.
static ADAPTED: u8 = 0;
static LOWER: u8 = 1;

fn has_mark(q: Queue, mark: &'static u8) -> bool {
    q.procedures().qi_mstat == core::ptr::from_ref(mark).cast()
}

/// What both queues of the pair lead to.
fn note(q: Queue, state: *mut c_void) {
    q.q_ptr.set(state);
    q.other().q_ptr.set(state);
}

/// Of a module, or of a stream below a multiplexer.
#[repr(C)]
struct State<S> {
    free: unsafe fn(*mut c_void),
    of: TypeId,
    dead: Cell<bool>,
    it: S,
}

fn note_fresh<S: 'static>(q: Queue, it: S) -> *const State<S> {
    let state = Box::into_raw(Box::new(State {
        free: free::<S>,
        of: TypeId::of::<S>(),
        dead: Cell::new(false),
        it,
    }));
    note(q, state.cast());
    state
}

struct Tables<M>(PhantomData<M>);

impl<M: Module> Tables<M> {
    const INFO: &'static module_info = &module_info {
        mi_idnum: M::INFO.id,
        mi_idname: M::INFO.name.as_ptr(),
        mi_minpsz: M::INFO.min_packet,
        mi_maxpsz: M::INFO.max_packet,
        mi_hiwat: M::INFO.hiwat,
        mi_lowat: M::INFO.lowat,
    };
    const READ: &'static qinit = &qinit {
        qi_putp: Some(put::<M, true>),
        qi_srvp: procedure(M::RSRV, serve::<M, true>),
        qi_qopen: Some(open::<M>),
        qi_qclose: Some(close::<M>),
        ..of_ours(Self::INFO, &ADAPTED)
    };
    const WRITE: &'static qinit = &qinit {
        qi_putp: Some(put::<M, false>),
        qi_srvp: procedure(M::WSRV, serve::<M, false>),
        ..of_ours(Self::INFO, &ADAPTED)
    };
    const PLAIN: &'static streamtab = &streamtab {
        st_rdinit: Some(Self::READ),
        st_wrinit: Some(Self::WRITE),
        st_muxrinit: None,
        st_muxwinit: None,
    };
}

impl<M: Mux> Tables<M> {
    const LOWER_READ: &'static qinit = &qinit {
        qi_putp: Some(lower_put::<M>),
        qi_srvp: procedure(M::LRSRV, lower_serve::<M, true>),
        ..of_ours(Self::INFO, &LOWER)
    };
    const LOWER_WRITE: &'static qinit = &qinit {
        qi_srvp: procedure(M::LWSRV, lower_serve::<M, false>),
        ..of_ours(Self::INFO, &LOWER)
    };
    const MUX: &'static streamtab = &streamtab {
        st_muxrinit: Some(Self::LOWER_READ),
        st_muxwinit: Some(Self::LOWER_WRITE),
        ..*Self::PLAIN
    };
}

const fn procedure(is_there: bool, service: Service) -> Option<Service> {
    if is_there { Some(service) } else { None }
}

/// Without procedures yet.
const fn of_ours(info: &'static module_info, mark: &'static u8) -> qinit {
    qinit {
        qi_minfo: Some(info),
        qi_mstat: core::ptr::from_ref(mark).cast(),
        ..qinit::of(None, None)
    }
}

unsafe extern "C-unwind" fn open<M: Module>(
    q: Queue,
    dev: &mut libc::dev_t,
    oflag: c_int,
    sflag: c_int,
    _credentials: *mut c_void,
) -> c_int {
    let flag = match sflag {
        CLONEOPEN => OpenFlag::Clone,
        MODOPEN => OpenFlag::Module,
        _ => OpenFlag::Driver,
    };
    let module = match guard(|| M::open(q, dev, oflag, flag)) {
        Some(Ok(module)) => module,
        Some(Err(errno)) => return errno.max(1),
        None => {
            log_panic(q);
            return libc::EPROTO;
        }
    };
    // SAFETY: it lives until it is closed, which is not while it is opened.
    let state = unsafe { &*note_fresh(q, module) };
    run(q, &state.dead, || state.it.started(q))
}

unsafe extern "C-unwind" fn close<M: Module>(
    q: Queue,
    oflag: c_int,
    _credentials: *mut c_void,
) -> c_int {
    // SAFETY: a close procedure gets its own read queue, whose q_ptr is null or our state; that goes only after the last use here.
    unsafe {
        let state = q.q_ptr.get().cast::<State<M>>();
        if state.is_null() {
            return 0;
        }
        if !(*state).dead.get() && guard(|| (*state).it.close(q, oflag)).is_none() {
            log_panic(q);
        }
        // From here on messages pass by again.
        note(q, null_mut());
        if guard(|| drop(Box::from_raw(state))).is_none() {
            log_panic(q);
        }
    }
    0
}

unsafe extern "C-unwind" fn put<M: Module, const READ: bool>(q: Queue, m: Message) -> c_int {
    // SAFETY: a put procedure gets its own queue.
    let Some(state) = (unsafe { state_of::<M>(q) }) else {
        q.putnext(m);
        return 0;
    };
    run(q, &state.dead, || {
        if READ {
            state.it.rput(q, m);
        } else {
            state.it.wput(q, m);
        }
    })
}

unsafe extern "C-unwind" fn serve<M: Module, const READ: bool>(q: Queue) -> c_int {
    // SAFETY: a service procedure gets its own queue.
    let Some(state) = (unsafe { state_of::<M>(q) }) else {
        return 0;
    };
    run(q, &state.dead, || {
        if READ {
            state.it.rsrv(q);
        } else {
            state.it.wsrv(q);
        }
    })
}

impl Queue {
    /// Has [`Module::timer`] of `M`, whose queue this is, called with `token` after so many nanoseconds. Forgotten when the
    /// module is closed.
    pub fn timeout<M: Module>(self, nanoseconds: u64, token: usize) -> TimerId {
        let work = Work::Module(on_timer::<M>, token);
        timer::add(self.perimeter(), Some(self.read()), nanoseconds, work)
    }
}

/// # Safety
/// A read queue, inside its perimeter, which its stream has not closed.
unsafe fn on_timer<M: Module>(q: Queue, token: usize) {
    // SAFETY: with that mark its q_ptr is null or a state, and which one is looked at first.
    let state = unsafe {
        let any = q.q_ptr.get().cast::<State<()>>();
        if !has_mark(q, &ADAPTED) || any.is_null() || (*any).of != TypeId::of::<M>() {
            return;
        }
        &*any.cast::<State<M>>()
    };
    run(q, &state.dead, || state.it.timer(q, token));
}

/// The state of a queue, unless it is not open, or nothing was noted by [`set_lower`].
///
/// # Safety
/// A live queue with the tables of the module `S`, or the lower ones of a multiplexer that has `S` of each, inside its perimeter.
#[inline(always)]
unsafe fn state_of<'a, S>(q: Queue) -> Option<&'a State<S>> {
    // SAFETY: q_ptr of such a queue is null or leads to a `State` that lives until the close procedure, or until it is unlinked.
    unsafe { q.q_ptr.get().cast::<State<S>>().as_ref() }
}

unsafe extern "C-unwind" fn lower_put<M: Mux>(q: Queue, m: Message) -> c_int {
    // SAFETY: a put procedure gets its own queue.
    let Some(state) = (unsafe { state_of::<M::Lower>(q) }) else {
        // Between setq and the multiplexer's answer to I_LINK nobody is there to take it.
        return 0;
    };
    run(q, &state.dead, || M::lrput(&state.it, q, m))
}

unsafe extern "C-unwind" fn lower_serve<M: Mux, const READ: bool>(q: Queue) -> c_int {
    // SAFETY: a service procedure gets its own queue.
    let Some(state) = (unsafe { state_of::<M::Lower>(q) }) else {
        return 0;
    };
    run(q, &state.dead, || {
        if READ {
            M::lrsrv(&state.it, q);
        } else {
            M::lwsrv(&state.it, q);
        }
    })
}

/// Frees what [`set_lower`] noted for the pair of `q`, if anything.
///
/// # Safety
/// Nobody refers to what was noted.
pub(super) unsafe fn drop_lower(q: Queue) {
    let state = q.q_ptr.get();
    if state.is_null() || !has_mark(q, &LOWER) {
        return;
    }
    note(q, null_mut());
    // SAFETY: with that mark it begins as every `State` does; nobody refers to it, as the caller says.
    unsafe { ((*state.cast::<State<()>>()).free)(state) };
}

/// # Safety
/// What was noted by this type, which is gone afterwards.
unsafe fn free<S>(state: *mut c_void) {
    // SAFETY: called once, with the box that it was noted with.
    guard(|| drop(unsafe { Box::from_raw(state.cast::<State<S>>()) }));
}

/// Runs a procedure of a module that has not died.
#[inline(always)]
fn run(q: Queue, dead: &Cell<bool>, procedure: impl FnOnce()) -> c_int {
    if !dead.get() && guard(procedure).is_none() {
        died(q, dead);
    }
    0
}

/// Runs a procedure; `None` when it panicked.
#[inline(always)]
fn guard<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            // Its destructor is the module's code too.
            core::mem::forget(payload);
            None
        }
    }
}

/// A module panicked: it gets no message any more, and its stream is told so, both sides.
#[cold]
fn died(q: Queue, dead: &Cell<bool>) {
    if !dead.replace(true) {
        log_panic(q);
        q.read()
            .putnext(Message::error(libc::EPROTO as u8, libc::EPROTO as u8));
    }
}

#[cold]
fn log_panic(q: Queue) {
    let name = q.name().unwrap_or(c"?");
    log::write(
        Level::Error,
        format_args!("module {name:?} panicked: its stream is over (EPROTO)"),
    );
}
