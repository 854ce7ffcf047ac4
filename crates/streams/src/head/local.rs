//! The queued head: its own pair of queues above modules and a driver, or above the two rings of a pipe.
//!
//! ```text
//!   stack     modules pushed and popped, and what I_LIST shows
//!   sending   what goes down from the head
//! ```
//!
//! # Contract
//! [`Local`] is only reached inside the perimeter ([`inside`]), where nothing waits. Whoever is in a call on the stream moves
//! frames between rings and queues (`pump`); when nobody is, the end of a peer's call in this process does, or the
//! background thread.

mod sending;
mod stack;

use core::time::Duration;

pub use sending::{can_put, flush, put, put_last, tell_read, wait_for_room, write};
pub use stack::{acceptor, anchor, device, modules, names, pop, push, top};

use core::cell::{Cell, RefCell};
use core::ptr::null_mut;

use headwater_host::sync::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use headwater_host::sys::{self, Errno};

use super::arming::Want;
use super::inlet::{Inlet, Trouble};
use super::queue_inlet::QueueInlet;
use super::{Head, bottom, signals, upper};
use crate::ddi::*;
use crate::exec::attach;
use crate::exec::perimeter::{Guard, Perimeter};
use crate::exec::queue::Queue;
use crate::exec::registry::Entry;
use crate::pipe::words::state;
use crate::{background, board};

/// What a queued head has in this process. All in cells: procedures that a call leads to come back here.
pub struct Local {
    /// The head's read queue; its write queue lies behind it.
    pub rq: Queue,
    /// The read queue of the pair at the rings; none above a driver.
    pub bottom: Option<Queue>,
    /// The driver's entry, if there is one.
    pub driver: Cell<Option<&'static Entry>>,
    /// Pushed modules, the topmost last.
    pub modules: RefCell<Vec<&'static Entry>>,
    /// Modules that I_POP leaves alone, from the bottom.
    pub anchored: Cell<usize>,
    pub requests: RefCell<Pending>,
    /// Streams linked below this one.
    pub links: Cell<u32>,
}

/// The one request that a stream has on its way at a time.
#[derive(Default)]
pub struct Pending {
    /// Its number; 0: none.
    pub id: u32,
    last: u32,
    pub answer: Option<Message>,
}

impl Pending {
    pub fn is_busy(&self) -> bool {
        self.id != 0
    }

    pub fn begin(&mut self) -> Option<u32> {
        if self.id != 0 {
            return None;
        }
        self.last = self.last.wrapping_add(1).max(1);
        self.id = self.last;
        Some(self.id)
    }

    pub fn end(&mut self) {
        self.id = 0;
        self.answer = None;
    }

    /// An answer came up. A late one, to a request that is over, is freed.
    pub fn answered(&mut self, message: Message) {
        let id = match message.kind() {
            M_COPYIN | M_COPYOUT => message.read::<copyreq>().map(|r| r.cq_id),
            _ => message.read::<iocblk>().map(|r| r.ioc_id),
        };
        if self.id != 0 && id == Some(self.id) && self.answer.is_none() {
            self.answer = Some(message);
        }
    }
}

/// A queued head without calls for so long is served by the background thread, in nanoseconds.
pub(super) const IDLE: u64 = Duration::from_millis(2).as_nanos() as u64;

impl Local {
    /// What goes down is put here: the head's write queue.
    pub fn down(&self) -> Queue {
        self.rq.write()
    }

    /// Closes the topmost module, or the driver, and frees its pair.
    ///
    /// # Safety
    /// The pair directly below the head is one of `qattach`, and goes off `modules` or `driver`.
    pub(super) unsafe fn detach(&self) {
        if let Some(topmost) = self.down().next() {
            // SAFETY: as the caller says.
            unsafe { attach::qdetach(topmost.read(), 0) };
        }
    }
}

impl Head {
    /// Inside the perimeter.
    ///
    /// # Safety
    /// The caller is inside the perimeter, and stays there as long as the reference.
    pub unsafe fn local(&self) -> Option<&Local> {
        // SAFETY: only who is inside the perimeter changes it, and the caller is that, as it says.
        unsafe { (*self.local.get()).as_deref() }
    }

    pub fn perimeter(&self) -> Option<&'static Perimeter> {
        // SAFETY: perimeters are never freed.
        unsafe { self.perimeter.load(Acquire).as_ref() }
    }
}

/// Enters the perimeter of a queued head, having moved what has come meanwhile, and runs `f`. `None` when it has no queues.
pub fn inside<T>(head: &Head, f: impl FnOnce(&Local) -> T) -> Option<T> {
    let guard = enter(head)?;
    // SAFETY: inside the perimeter.
    let local = unsafe { head.local() }?;
    if head.has_pipe() && head.inherited.load(Relaxed) == 0 {
        bottom::pump(head, local.bottom);
        guard.run();
    }
    let value = f(local);
    note(head, local);
    Some(value)
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
            let moved = bottom::pump(head, local.bottom);
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
    let Some(guard) = enter(head) else {
        return Err(libc::ENOSR);
    };
    // SAFETY: inside the perimeter.
    let place = unsafe { &mut *head.local.get() };
    if place.is_none() {
        let rq = upper::pair(head, guard.perimeter());
        let bottom = head.has_pipe().then(|| {
            let bottom = bottom::pair(head, guard.perimeter());
            attach::link_below(rq, bottom);
            bottom
        });
        *place = Some(Box::new(Local {
            rq,
            bottom,
            driver: Cell::new(None),
            modules: Default::default(),
            anchored: Cell::new(0),
            requests: Default::default(),
            links: Default::default(),
        }));
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
        if if_empty && local.rq.first().is_some() {
            return;
        }
        if let Some(driver) = local.down().from_here().last().map(Queue::read)
            && driver.flags() & QLOOKS != 0
            && driver.stream() == local.rq.stream()
        {
            driver.qenable();
        }
    });
}

/// Waits until something happened at a queued head: in its queues, or at its rings.
/// The rest as for [`Head::wait`].
pub fn wait_for_change(
    head: &Head,
    seen: u32,
    deadline: Option<u64>,
    beside: &mut [libc::pollfd],
) -> Result<(), Errno> {
    let waited = head.wait(Want::EITHER, deadline, beside, || {
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

/// The perimeter's lock, which may change hands while we wait for it.
pub(super) fn enter(head: &Head) -> Option<Guard<'static>> {
    loop {
        let perimeter = head.perimeter()?;
        let guard = perimeter.enter();
        if core::ptr::eq(head.perimeter.load(Acquire), perimeter) {
            return Some(guard);
        }
    }
}

/// What waits in the queues, for `headwater streams list`.
fn note(head: &Head, local: &Local) {
    let mut waiting = board::Waiting::default();
    let ours = |q: &Queue| q.stream() == local.rq.stream();
    for write in local.down().from_here().take_while(ours) {
        let read = write.read();
        waiting.bytes_down += write.count() as u64;
        waiting.bytes_up += read.count() as u64;
        waiting.fulls += write.q_fulls.get() + read.q_fulls.get();
        waiting.wakeups += write.q_wakeups.get() + read.q_wakeups.get();
    }
    board::note(head.index, &waiting);
}

/// Back to the ring alone, if nothing is between any more.
fn relax(head: &Head, local: &Local) {
    let empty = |q: Queue| q.first().is_none() && q.other().first().is_none();
    let idle = local.modules.borrow().is_empty()
        && local.driver.get().is_none()
        && !local.requests.borrow().is_busy()
        && local.links.get() == 0
        && !head.words().has(state::LINKED);
    let usual = local.rq.flags() & QNOENB == 0;
    if idle && empty(local.rq) && local.bottom.is_some_and(empty) && head.is_queued() && usual {
        head.words().clear(state::QUEUED);
        // Not over what a new pipe has put there: the head may have been closed, and used again.
        let base = head.base.load(Relaxed);
        let _ = head
            .plain
            .compare_exchange(null_mut(), base, SeqCst, Relaxed);
        head.notify();
    }
}

/// After any call that may have put something into the outgoing ring.
pub(super) fn finish(head: &Head) {
    head.used_at.store(1, Relaxed);
    after_call(head.forever());
}
