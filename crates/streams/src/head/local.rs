//! The queued head: its own pair of queues above modules and a driver, or above the two rings of a pipe.
//!
//! # Contract
//! [`Local`] is only reached inside the perimeter ([`inside`]), where nothing waits. Whoever is in a call on the stream moves
//! frames between rings and queues (`pump`); when nobody is, the end of a peer's call in this process does, or the
//! background thread.

use core::cell::{Cell, RefCell};
use core::ffi::c_int;
use core::ptr::null_mut;

use headwater_host::hidden;
use headwater_host::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use headwater_host::sys::{self, Errno};

use super::inlet::{Inlet, Trouble};
use super::message::Priority;
use super::queue_inlet::QueueInlet;
use super::wait::Want;
use super::write::Source;
use super::{Head, all, bottom, life, linking, opening, signals, upper};
use crate::ddi::*;
use crate::exec::attach::{self, free_pair};
use crate::exec::perimeter::{self, Guard, Perimeter};
use crate::exec::registry::{self, Entry};
use crate::pipe::words::state;
use crate::{background, board, drivers, tunables};

/// What a queued head has in this process. All in cells: procedures that a call leads to come back here.
pub struct Local {
    /// The head's read queue; its write queue lies behind it.
    pub rq: *mut queue_t,
    /// The read queue of the pair at the rings; null above a driver.
    pub bottom: *mut queue_t,
    /// The driver's entry, if there is one.
    pub driver: Cell<Option<&'static Entry>>,
    /// Pushed modules, the topmost last.
    pub modules: RefCell<Vec<&'static Entry>>,
    /// Modules that I_POP leaves alone, from the bottom.
    pub anchored: Cell<usize>,
    pub requests: RefCell<super::requests::Pending>,
    /// Streams linked below this one.
    pub links: Cell<u32>,
}

/// A queued head without calls for so long is served by the background thread, in nanoseconds.
const IDLE: u64 = 2_000_000;
/// Who asked for SIGPOLL at a pipe is looked after this often, where what happens is not seen by a call of this process.
const SIGNAL_LOOK: u64 = 4_000_000;
/// How often a queued pipe is asked whether its other end is gone.
const HANGUP_LOOK: u64 = 100_000_000;
/// How often one is served that can't be watched.
const UNWATCHED_LOOK: u64 = 4_000_000;
/// A closing stream looks this often whether its queues have drained.
const DRAIN_LOOK: u64 = 5_000_000;

impl Local {
    pub fn wq(&self) -> *mut queue_t {
        // SAFETY: a live pair.
        unsafe { WR(self.rq) }
    }
}

impl Head {
    /// Inside the perimeter.
    ///
    /// # Safety
    /// The caller is inside the perimeter, and stays there as long as the reference.
    pub unsafe fn local(&self) -> Option<&Local> {
        (*self.local.get()).as_deref()
    }
}

/// Enters the perimeter of a queued head, having moved what has come meanwhile, and runs `f`. `None` when it has no queues.
pub fn inside<T>(head: &Head, f: impl FnOnce(&Local) -> T) -> Option<T> {
    let guard = enter(head)?;
    // SAFETY: inside the perimeter.
    let local = unsafe { head.local() }?;
    if head.has_pipe() && head.inherited.load(Relaxed) == 0 {
        bottom::pump(head, local);
        guard.run();
    }
    let value = f(local);
    note(head, local);
    Some(value)
}

/// What waits in the queues, for `headwater streams list`.
fn note(head: &Head, local: &Local) {
    let mut waiting = board::Waiting::default();
    // SAFETY: the queues from the head down, inside the perimeter.
    unsafe {
        let mut write = local.wq();
        while !write.is_null() && (*write).q_stream == (*local.rq).q_stream {
            waiting.bytes_down += (*write).q_count as u64;
            waiting.bytes_up += (*RD(write)).q_count as u64;
            waiting.fulls += (*write).q_fulls + (*RD(write)).q_fulls;
            waiting.wakeups += (*write).q_wakeups + (*RD(write)).q_wakeups;
            write = (*write).q_next;
        }
    }
    board::note(head.index, &waiting);
}

/// The perimeter's lock, which may change hands while we wait for it.
fn enter(head: &Head) -> Option<Guard<'static>> {
    loop {
        let at = head.perimeter.load(Acquire);
        // SAFETY: perimeters are never freed.
        let perimeter: &'static Perimeter = unsafe { at.as_ref() }?;
        let guard = perimeter.enter();
        if head.perimeter.load(Acquire) == at {
            return Some(guard);
        }
    }
}

/// After a call: ends of this process that got something are served, one after the other, until all is quiet.
pub fn after_call(head: &'static Head) {
    let Some(peer) = head.local_peer() else {
        return;
    };
    let mut turns = [peer, head];
    // Two modules that answer each other for ever would do so in System V too; but not in one call.
    for _ in 0..1000 {
        let served = turns[0];
        if !served.is_queued() || served.incoming().is_empty() && !served.is_blocked() {
            return;
        }
        let moved = serve(served);
        if !moved {
            return;
        }
        turns.swap(0, 1);
    }
}

/// Moves what has come to a queued head; true if anything did.
pub fn serve(head: &'static Head) -> bool {
    let Some(guard) = enter(head) else {
        return false;
    };
    // SAFETY: inside the perimeter.
    match unsafe { head.local() } {
        Some(local) if head.is_queued() && head.has_pipe() && head.inherited.load(Relaxed) == 0 => {
            let moved = bottom::pump(head, local);
            guard.run();
            note(head, local);
            moved
        }
        _ => false,
    }
}

/// Gives a pipe's head its queues; nothing if it has them.
pub fn begin(head: &Head) -> Result<(), Errno> {
    if head.has_pipe() && !head.is_queued() {
        signals::tell_of_ring(head, false);
    }
    if head.perimeter.load(Acquire).is_null() {
        let fresh = Perimeter::fresh();
        let at = fresh as *const Perimeter as *mut Perimeter;
        if head
            .perimeter
            .compare_exchange(null_mut(), at, AcqRel, Acquire)
            .is_err()
        {
            fresh.retire();
        }
    }
    let Some(_guard) = enter(head) else {
        return Err(libc::ENOSR);
    };
    // SAFETY: inside the perimeter.
    unsafe {
        if head.local().is_none() {
            let perimeter = &*head.perimeter.load(Acquire);
            let rq = upper::pair(head, perimeter);
            let bottom = if head.has_pipe() {
                let bottom = bottom::pair(head, perimeter);
                attach::link_below(rq, bottom);
                bottom
            } else {
                null_mut()
            };
            *head.local.get() = Some(Box::new(Local {
                rq,
                bottom,
                driver: Cell::new(None),
                modules: Default::default(),
                anchored: Cell::new(0),
                requests: Default::default(),
                links: Default::default(),
            }));
        }
    }
    if head.has_pipe() {
        // From here on neither reading nor writing goes by the ring alone.
        head.plain.store(null_mut(), SeqCst);
        head.words().set(state::QUEUED);
        background::alarm(sys::now() + IDLE);
    }
    head.notify();
    Ok(())
}

/// Back to the ring alone, if nothing is between any more.
fn relax(head: &Head, local: &Local) {
    let empty = |q: *mut queue_t| {
        // SAFETY: live queues, inside the perimeter.
        unsafe { (*q).q_first.is_null() && (*OTHERQ(q)).q_first.is_null() }
    };
    let idle = local.modules.borrow().is_empty()
        && local.driver.get().is_none()
        && !local.bottom.is_null()
        && !local.requests.borrow().is_busy()
        && local.links.get() == 0
        && !head.words().has(state::LINKED);
    if idle && empty(local.rq) && empty(local.bottom) && head.is_queued() {
        // SAFETY: live queues.
        let unusual = unsafe { (*local.rq).q_flag & QNOENB != 0 };
        if !unusual {
            head.words().clear(state::QUEUED);
            // Not over what a new pipe has put there: the head may have been closed, and used again.
            let base = head.base.load(Relaxed);
            let _ = head
                .plain
                .compare_exchange(null_mut(), base, SeqCst, Relaxed);
            head.notify();
        }
    }
}

/// Runs `f` on the messages that wait in the head's queue.
pub fn with_inlet<T>(
    head: &Head,
    f: &mut impl FnMut(&mut dyn Inlet) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    head.inherited.store(0, Relaxed);
    if !head.has_pipe() {
        look_below(head, true);
    }
    let found = inside(head, |local| {
        if !head.is_queued() {
            return Err(Trouble::NeedsQueue);
        }
        let ring = head.has_pipe() && local.modules.borrow().is_empty();
        let found = f(&mut QueueInlet::new(local.rq, ring.then_some(head)));
        relax(head, local);
        found
    });
    finish(head);
    found.unwrap_or(Err(Trouble::NeedsQueue))
}

/// Has a driver that takes its messages from elsewhere look for some; `if_empty`: unless one waits at the head.
pub fn look_below(head: &Head, if_empty: bool) {
    inside(head, |local| {
        // SAFETY: the queues from the head down, inside the perimeter.
        unsafe {
            if if_empty && !(*local.rq).q_first.is_null() {
                return;
            }
            let mut write = local.wq();
            while !(*write).q_next.is_null() {
                write = (*write).q_next;
            }
            let driver = RD(write);
            if (*driver).q_flag & QLOOKS != 0 && (*driver).q_stream == (*local.rq).q_stream {
                qenable(driver);
            }
        }
    });
}

/// After any call that may have put something into the outgoing ring.
fn finish(head: &Head) {
    head.used_at.store(1, Relaxed);
    if let Some(own) = super::get(head.handle()) {
        after_call(own);
    }
}

/// Writes a packet of `n` bytes; false while the stream is full.
pub fn write(head: &Head, source: &mut Source<'_>, n: usize) -> Result<bool, Errno> {
    head.inherited.store(0, Relaxed);
    let sent = inside(head, |local| {
        // SAFETY: inside the perimeter.
        unsafe {
            let wq = local.wq();
            if canputnext(wq) == 0 {
                return Ok(false);
            }
            let offset = head.words().write_offset();
            let mp = allocb(n + offset, BPRI_MED);
            if mp.is_null() {
                return Err(libc::ENOSR);
            }
            (*mp).b_rptr = (*mp).b_rptr.add(offset);
            source.take(core::slice::from_raw_parts_mut((*mp).b_rptr, n));
            (*mp).b_wptr = (*mp).b_rptr.add(n);
            putnext(wq, mp);
            Ok(true)
        }
    });
    finish(head);
    sent.unwrap_or(Ok(false))
}

/// Sends a message down; false while its band is full.
pub fn put(
    head: &Head,
    control: Option<&[u8]>,
    data: Option<&[u8]>,
    priority: Priority,
) -> Result<bool, Errno> {
    // SAFETY: of a queue inside the perimeter.
    put_where(head, control, data, priority, |wq, band| unsafe {
        priority == Priority::High || bcanputnext(wq, band) != 0
    })
}

/// As [`put`], whether there is room or not, for what ends what lies before it.
pub fn put_last(head: &Head, control: &[u8]) -> Result<(), Errno> {
    put_where(head, Some(control), None, Priority::Band(0), |_, _| true).map(drop)
}

fn put_where(
    head: &Head,
    control: Option<&[u8]>,
    data: Option<&[u8]>,
    priority: Priority,
    may: impl Fn(*mut queue_t, u8) -> bool,
) -> Result<bool, Errno> {
    head.inherited.store(0, Relaxed);
    let sent = inside(head, |local| {
        let (kind, band) = match (priority, control) {
            (Priority::High, _) => (M_PCPROTO, 0),
            (Priority::Band(band), Some(_)) => (M_PROTO, band),
            (Priority::Band(band), None) => (M_DATA, band),
        };
        // SAFETY: inside the perimeter.
        unsafe {
            let wq = local.wq();
            if !may(wq, band) {
                return Ok(false);
            }
            let offset = head.words().write_offset();
            let mp = build(control, data, kind, offset).ok_or(libc::ENOSR)?;
            (*mp).b_band = band;
            putnext(wq, mp);
            Ok(true)
        }
    });
    finish(head);
    sent.unwrap_or(Ok(false))
}

/// A message of the two parts; `None` without memory.
///
/// # Safety
/// None beyond that of allocb.
pub unsafe fn build(
    control: Option<&[u8]>,
    data: Option<&[u8]>,
    kind: u8,
    offset: usize,
) -> Option<*mut mblk_t> {
    let block = |bytes: &[u8], kind: u8, offset: usize| {
        let mp = allocb(bytes.len() + offset, BPRI_MED);
        if mp.is_null() {
            return None;
        }
        (*(*mp).b_datap).db_type = kind;
        (*mp).b_rptr = (*mp).b_rptr.add(offset);
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), (*mp).b_rptr, bytes.len());
        (*mp).b_wptr = (*mp).b_rptr.add(bytes.len());
        Some(mp)
    };
    match (control, data) {
        (Some(control), Some(data)) => {
            let first = block(control, kind, 0)?;
            match block(data, M_DATA, offset) {
                Some(second) => (*first).b_cont = second,
                None => {
                    freemsg(first);
                    return None;
                }
            }
            Some(first)
        }
        (Some(control), None) => block(control, kind, 0),
        (None, data) => block(data.unwrap_or(&[]), kind, offset),
    }
}

/// read(2) of `n` bytes begins where a module asked to be told: M_READ, unless something is there to read.
pub fn tell_read(head: &Head, n: usize) {
    inside(head, |local| {
        // SAFETY: inside the perimeter.
        unsafe {
            if (*local.rq).q_first.is_null() {
                putnext(local.wq(), Message::from_struct(M_READ, n).into_raw());
            }
        }
    });
}

/// Waits until band `band` may have room, or nobody is left to read.
pub fn wait_for_room(head: &Head, band: u8) -> Result<(), Errno> {
    wait_for_room_until(head, band, None)
}

pub fn wait_for_room_until(head: &Head, band: u8, deadline: Option<u64>) -> Result<(), Errno> {
    let seen = head.version();
    if can_put(head, band) {
        return Ok(());
    }
    wait_for_change_beside(head, seen, deadline, &mut [opening::watched(head)])
}

/// Waits until something happened at a queued head: in its queues, or at its rings.
pub fn wait_for_change(head: &Head, seen: u32, deadline: Option<u64>) -> Result<(), Errno> {
    wait_for_change_beside(head, seen, deadline, &mut [])
}

/// The same as [`Head::wait_beside`].
pub fn wait_for_change_beside(
    head: &Head,
    seen: u32,
    deadline: Option<u64>,
    beside: &mut [libc::pollfd],
) -> Result<(), Errno> {
    let waited = head.wait_beside(Want::EITHER, deadline, beside, || {
        head.version() != seen || head.has_news()
    });
    head.used_at.store(1, Relaxed);
    waited
}

impl Head {
    /// Is there something at the rings that the last pump has not seen?
    pub fn has_news(&self) -> bool {
        if !self.has_pipe() {
            return false;
        }
        let ring = self.incoming();
        let arrived = !ring.is_empty() && ring.tail() != self.pumped.load(Relaxed);
        arrived || self.is_blocked() && self.has_room(1)
    }

    /// Does the bottom's write queue wait for room in the ring? A hint.
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Relaxed) != 0
    }
}

/// I_CANPUT, and what poll says of writing.
pub fn can_put(head: &Head, band: u8) -> bool {
    if head.has_hung_up() {
        return false;
    }
    if !head.is_queued() {
        return head.may_put(band, 1);
    }
    inside(head, |local| {
        // SAFETY: inside the perimeter.
        unsafe { bcanputnext(local.wq(), band) != 0 }
    })
    .unwrap_or(false)
}

/// Names of the pushed modules, the topmost first.
pub fn modules(head: &Head) -> Vec<String> {
    inside(head, |local| {
        let modules = local.modules.borrow();
        modules.iter().rev().map(|m| m.name().to_string()).collect()
    })
    .unwrap_or_default()
}

/// As I_LIST shows them: modules and what is below.
pub fn names(head: &Head) -> Vec<String> {
    let mut names = modules(head);
    names.push(device(head));
    names
}

/// What is at the bottom.
pub fn device(head: &Head) -> String {
    match head.pipe() {
        Some(pipe) if pipe.fifo => "fifo".to_string(),
        Some(_) => "pipe".to_string(),
        None => inside(head, |local| {
            local.driver.get().map(|d| d.name().to_string())
        })
        .flatten()
        .unwrap_or_default(),
    }
}

/// The topmost module's name.
pub fn top(head: &Head) -> Option<String> {
    if !head.is_queued() {
        return None;
    }
    inside(head, |local| {
        local.modules.borrow().last().map(|m| m.name().to_string())
    })
    .flatten()
}

/// I_PUSH. Errors: EINVAL (unknown, or too many), what the module's open says.
pub fn push(head: &Head, name: &[u8], _fd: c_int) -> Result<c_int, Errno> {
    let Some(entry) = find_module(name) else {
        headwater_host::log::write(
            headwater_host::log::Level::Warn,
            format_args!("I_PUSH: no module named {}", String::from_utf8_lossy(name)),
        );
        return Err(libc::EINVAL);
    };
    begin(head)?;
    head.inherited.store(0, Relaxed);
    let pushed = inside(head, |local| {
        if local.modules.borrow().len() >= tunables::get().nstrpush {
            return Err(libc::EINVAL);
        }
        if !local.bottom.is_null() && local.modules.borrow().is_empty() {
            // SAFETY: inside the perimeter; nothing is between the two.
            unsafe { bottom::bring_up(head, local.bottom) };
        }
        // SAFETY: inside the perimeter; the pair is linked below the head.
        unsafe { attach::qattach(local.rq, entry.table(), &mut 0, 0, MODOPEN)? };
        local.modules.borrow_mut().push(entry);
        Ok(0)
    });
    let pushed = pushed.unwrap_or(Err(libc::ENXIO));
    if pushed.is_err() {
        settle(head);
    }
    show(head);
    head.notify();
    finish(head);
    pushed
}

/// I_POP. Errors: EINVAL without a module, or below an anchor.
pub fn pop(head: &Head) -> Result<c_int, Errno> {
    let popped = inside(head, |local| {
        if local.modules.borrow().len() <= local.anchored.get() {
            return Err(libc::EINVAL);
        }
        local.modules.borrow_mut().pop();
        // SAFETY: inside the perimeter; the pair below the head is the topmost module's.
        unsafe { attach::qdetach(RD((*local.wq()).q_next), 0) };
        Ok(0)
    });
    settle(head);
    show(head);
    head.notify();
    finish(head);
    popped.unwrap_or(Err(libc::EINVAL))
}

fn settle(head: &Head) {
    inside(head, |local| relax(head, local));
}

/// For `headwater streams list`.
fn show(head: &Head) {
    let names = modules(head);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    board::modules(head.index, &names);
}

/// I_ANCHOR: what is pushed now stays. EINVAL on a pipe.
pub fn anchor(head: &Head) -> Result<c_int, Errno> {
    if head.has_pipe() {
        return Err(libc::EINVAL);
    }
    inside(head, |local| {
        local.anchored.set(local.modules.borrow().len());
        0
    })
    .ok_or(libc::EINVAL)
}

/// I_FLUSH, I_FLUSHBAND on a stream with queues.
pub fn flush(head: &Head, what: u8, band: Option<u8>) -> Result<(), Errno> {
    let flushed = inside(head, |local| {
        let message = Message::flush(what, band);
        // SAFETY: inside the perimeter.
        unsafe { putnext(local.wq(), message.into_raw()) };
        if !local.bottom.is_null() && what & FLUSHR != 0 {
            // Nothing above a pipe's bottom sends it back up.
            // SAFETY: as above.
            unsafe { putnext(local.bottom, Message::flush(FLUSHR, band).into_raw()) };
        }
    });
    if flushed.is_some() && head.has_pipe() && what & FLUSHR != 0 {
        let opened = super::control::flush_ring(head, false, band);
        head.ring_peer_for_band(opened);
    }
    inside(head, |local| relax(head, local));
    finish(head);
    flushed.ok_or(libc::ENXIO)
}

/// What I_FDINSERT puts into a message for this stream: what its driver accepts in a T_CONN_RES.
pub fn acceptor(head: &Head) -> u32 {
    head.index | 1 << 24
}

/// open(2) of a device. `minor` as the name says, or `None` for a new one.
pub fn open_device(device: &'static Entry, minor: Option<u32>, flags: c_int) -> Result<i32, Errno> {
    let visible = crate::pipe::placeholder(flags)?;
    let head = life::local_head(visible).inspect_err(|_| {
        let _ = sys::close(visible);
    })?;
    head.words()
        .write_options
        .store(super::write::SNDZERO, Relaxed);
    match flags & libc::O_ACCMODE {
        libc::O_RDONLY => head.words().set(state::NO_WRITE),
        libc::O_WRONLY => head.words().set(state::NO_READ),
        _ => {}
    }
    if flags & libc::O_NONBLOCK != 0 {
        head.words().nonblocking.store(1, Release);
    }
    let shared = device.shared_perimeter();
    if let Some(shared) = shared {
        head.perimeter.store(shared as *const _ as *mut _, Release);
    } else {
        head.perimeter.store(null_mut(), Release);
    }
    let opened = begin(head).and_then(|()| {
        inside(head, |local| {
            let sflag = if minor.is_none() { CLONEOPEN } else { 0 };
            let mut dev = device.number(minor.unwrap_or(0));
            // SAFETY: inside the perimeter.
            unsafe { attach::qattach(local.rq, device.table(), &mut dev, flags, sflag)? };
            local.driver.set(Some(device));
            Ok(libc::minor(dev))
        })
        .unwrap_or(Err(libc::ENXIO))
    });
    let minor = match opened {
        Ok(minor) => minor,
        Err(e) => {
            life::close(visible, head.handle());
            return Err(e);
        }
    };
    board::enter(head.index, visible, device.name());
    for name in drivers::autopush(device.name(), minor) {
        if let Err(e) = push(head, name.as_bytes(), visible) {
            life::close(visible, head.handle());
            return Err(e);
        }
    }
    Ok(visible)
}

/// The last descriptor of this process is closed: what was written may drain, then modules and driver are closed.
pub fn end(head: &'static Head) {
    if head.perimeter.load(Acquire).is_null() {
        return;
    }
    drain(head);
    linking::unlink_all(head);
    signals::forget(head);
    let shared = inside(head, |l| {
        l.driver
            .get()
            .is_some_and(|d| d.shared_perimeter().is_some())
    }) == Some(true);
    inside(head, |local| {
        // SAFETY: inside the perimeter; the pairs are linked below the head, the topmost first.
        unsafe {
            while local.modules.borrow_mut().pop().is_some() {
                attach::qdetach(RD((*local.wq()).q_next), 0);
            }
            if local.driver.take().is_some() {
                attach::qdetach(RD((*local.wq()).q_next), 0);
            }
        }
    });
    finish(head);
    if let Some(_guard) = enter(head) {
        // SAFETY: inside the perimeter; nothing is linked to the pairs any more but each other.
        unsafe {
            if let Some(local) = (*head.local.get()).take() {
                for rq in [local.rq, local.bottom] {
                    if !rq.is_null() {
                        qprocsoff(rq);
                        flushq(rq, FLUSHALL);
                        flushq(WR(rq), FLUSHALL);
                    }
                }
                free_pair(local.rq);
                if !local.bottom.is_null() {
                    free_pair(local.bottom);
                }
            }
        }
        head.blocked.store(0, Relaxed);
        // Still inside: nobody else begins anew with the old one.
        let own = head.perimeter.swap(null_mut(), AcqRel);
        // SAFETY: perimeters are never freed.
        if let Some(own) = unsafe { own.as_ref() }
            && !shared
        {
            own.retire();
        }
    }
    if head.has_pipe() && !head.is_shared() {
        head.words().clear(state::QUEUED);
    }
}

/// Lets written data go down, for as long as I_SETCLTIME says. Not with O_NONBLOCK, nor after a signal.
fn drain(head: &'static Head) {
    let inherited = head.inherited.load(Relaxed) != 0;
    let failed = head.words().has(state::WRITE_ERROR);
    if inherited || failed || opening::is_nonblocking(head) || head.has_hung_up() {
        return;
    }
    let deadline = sys::now() + head.words().close_time.load(Relaxed) as u64 * 1_000_000;
    loop {
        let seen = head.version();
        let holds = inside(head, |local| {
            let mut q = local.wq();
            // SAFETY: the write queues from the head down, inside the perimeter.
            unsafe {
                while !(*q).q_next.is_null() && SAMESTR(q) != 0 {
                    q = (*q).q_next;
                    if !(*q).q_first.is_null() && (*q).q_perimeter == head.perimeter.load(Relaxed) {
                        return true;
                    }
                }
            }
            false
        });
        let failed = head.words().has(state::WRITE_ERROR);
        if holds != Some(true) || failed || head.has_hung_up() {
            return;
        }
        let now = sys::now();
        if now >= deadline {
            return;
        }
        let until = deadline.min(now + DRAIN_LOOK);
        if let Err(libc::EINTR) = wait_for_change(head, seen, Some(until)) {
            return;
        }
    }
}

/// The background thread's turn: serves what no call serves. Returns when it wants the next one.
pub fn tick(now: u64) -> u64 {
    let mut next = crate::exec::timer::run_due(now);
    for head in all() {
        if head.signals.load(Relaxed) != 0 && head.has_pipe() {
            signals::scan(head);
            next = next.min(now + SIGNAL_LOOK);
        }
        let inherited = head.inherited.load(Relaxed) != 0;
        if head.signals.load(Relaxed) != 0 && head.has_pipe() && head.is_queued() && !inherited {
            serve(head);
        }
        if head.is_queued() && head.has_pipe() && !inherited && head.ended.load(Relaxed) == 0 {
            // The end of another process is announced by nothing that a module would see.
            if head.has_hung_up_now() {
                serve(head);
            }
            next = next.min(now + HANGUP_LOOK);
        }
        if !head.is_queued() || !head.has_pipe() || inherited || head.watched.load(Acquire) != 0 {
            continue;
        }
        let local_only = head.local_peer().is_some() && !head.is_shared();
        if local_only {
            continue;
        }
        if head.used_at.swap(0, Relaxed) != 0 || head.has_sleepers() {
            next = next.min(now + IDLE);
            continue;
        }
        if !watch(head) {
            while serve(head) {}
            next = next.min(now + UNWATCHED_LOOK);
        }
    }
    next
}

/// A watched head is closed.
pub fn unwatch(head: &Head) {
    if head.watched.swap(0, AcqRel) != 0 {
        background::unwatch(head.known_bell());
        head.disarm(Want::EITHER);
    }
}

/// Hands a head to the background thread until it is closed: it arms the bell like any sleeper. False: the kernel has no room for
/// another watch.
fn watch(head: &'static Head) -> bool {
    head.watched.store(1, Release);
    let handle = head.handle();
    let bell = head.bell();
    head.arm(Want::EITHER);
    let served = background::watch(bell, move || {
        let Some(head) = super::get(handle) else {
            return background::Keep::No;
        };
        if !head.is_queued() {
            // Watched again once it has queues again.
            if head.watched.swap(0, AcqRel) != 0 {
                head.disarm(Want::EITHER);
            }
            return background::Keep::No;
        }
        head.disarm(Want::EITHER);
        if headwater_channel::bell::take(bell) {
            head.settle();
        }
        while serve(head) {}
        after_call(head);
        head.arm(Want::EITHER);
        if head.has_news() {
            headwater_channel::bell::ring(bell);
        }
        background::Keep::Yes
    });
    if served.is_err() {
        head.disarm(Want::EITHER);
        head.watched.store(0, Release);
        return false;
    }
    if head.has_news() {
        headwater_channel::bell::ring(bell);
    }
    true
}

static HELD: headwater_host::sync::AtomicPtr<(perimeter::Held, linking::Held)> =
    headwater_host::sync::AtomicPtr::new(null_mut());

/// Takes every perimeter: the child's copies are made at a message boundary.
pub fn before_fork() {
    HELD.store(
        Box::into_raw(Box::new((perimeter::hold_all(), linking::hold()))),
        Release,
    );
}

pub fn after_fork(in_child: bool) {
    let held = HELD.swap(null_mut(), AcqRel);
    if !held.is_null() {
        // SAFETY: from before_fork. The child's copies of the locks name the parent, and are released all the same.
        drop(unsafe { Box::from_raw(held) });
    }
    if !in_child {
        return;
    }
    signals::after_fork();
    for head in all() {
        head.watched.store(0, Relaxed);
        head.asleep.store(0, Relaxed);
        if !head.has_pipe() {
            // The parent's.
            hidden::close(head.own_bell.swap(-1, AcqRel));
        }
        if head.is_queued() && head.has_pipe() {
            discard_queued(head);
            head.inherited.store(1, Relaxed);
            background::alarm(sys::now() + IDLE);
        }
    }
}

/// In a child of fork: messages on their way belong to the parent, or they would come twice.
fn discard_queued(head: &Head) {
    let Some(_guard) = enter(head) else { return };
    // SAFETY: inside the perimeter.
    unsafe {
        let Some(local) = head.local() else { return };
        let mut write = local.wq();
        while !write.is_null() {
            flushq(RD(write), FLUSHALL);
            flushq(write, FLUSHALL);
            write = (*write).q_next;
        }
    }
    head.blocked.store(0, Relaxed);
}

/// The module of this name, if it is one.
pub fn find_module(name: &[u8]) -> Option<&'static Entry> {
    registry::find_module(name)
}
