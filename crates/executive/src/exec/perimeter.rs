//! Perimeters: all put, service, open and close procedures of a stream run inside its perimeter, one thread at a time.
//! The streams of a multiplexer and those linked below it share one, so that they may call each other directly.
//!
//! # Contract
//! What the `Cell`s hold, and every queue of a perimeter, is touched only by who is inside. Perimeters are never freed, so a
//! stale reference is harmless: enter, then look whether the stream still has this one. A thread that is inside does not
//! enter the same one again.

use core::cell::Cell;
use core::ptr::null_mut;

use headwater_channel::lock::Lock;
use headwater_host::process::{self, Section};

use super::guarded::{Entered, Guarded};
use super::timer;
use crate::ddi::queue::{QENAB, RD, WR, queue_t};

pub struct Perimeter {
    lock: Lock,
    first: Cell<*mut queue_t>,
    last: Cell<*mut queue_t>,
}

// SAFETY: the cells are only touched inside, see the contract.
unsafe impl Sync for Perimeter {}
// SAFETY: the queues that the cells lead to belong to no thread, only to who is inside.
unsafe impl Send for Perimeter {}

/// All perimeters there are, and those that no stream uses.
struct Pool {
    all: Vec<&'static Perimeter>,
    free: Vec<&'static Perimeter>,
}

static POOL: Guarded<Pool> = Guarded::new(Pool {
    all: Vec::new(),
    free: Vec::new(),
});

thread_local! {
    static CURRENT: Cell<*const Perimeter> = const { Cell::new(core::ptr::null()) };
}

impl Perimeter {
    /// One that no stream uses.
    pub fn fresh() -> &'static Perimeter {
        let mut pool = POOL.enter();
        if let Some(free) = pool.free.pop() {
            return free;
        }
        let new = Box::leak(Box::new(Perimeter {
            lock: Lock::new(),
            first: Cell::new(null_mut()),
            last: Cell::new(null_mut()),
        }));
        pool.all.push(new);
        new
    }

    /// The last stream has left it. Once for each [`fresh`](Perimeter::fresh).
    pub fn retire(&'static self) {
        POOL.enter().free.push(self);
    }

    /// Enters. Signal handlers of this thread wait until the guard is gone.
    #[inline]
    pub fn enter(&self) -> Guard<'_> {
        Guard::new(self, process::lock(&self.lock))
    }

    /// Enters if nobody is inside.
    #[inline]
    pub fn try_enter(&self) -> Option<Guard<'_>> {
        Some(Guard::new(self, process::try_lock(&self.lock)?))
    }

    /// Enters two, in an order that all threads keep to; the second guard is `None` if they are one.
    pub fn enter_both<'a>(&'a self, other: &'a Perimeter) -> (Guard<'a>, Option<Guard<'a>>) {
        let (a, b) = (core::ptr::from_ref(self), core::ptr::from_ref(other));
        if a == b {
            return (self.enter(), None);
        }
        if a < b {
            let mine = self.enter();
            return (mine, Some(other.enter()));
        }
        let theirs = other.enter();
        (self.enter(), Some(theirs))
    }

    /// Where this thread is inside, the one entered last.
    pub fn current() -> Option<&'static Perimeter> {
        // SAFETY: perimeters are never freed.
        unsafe { CURRENT.with(Cell::get).as_ref() }
    }

    /// Is a queue waiting to be serviced?
    pub fn has_enabled(&self) -> bool {
        !self.first.get().is_null()
    }

    /// Appends a queue that has just been given QENAB.
    #[inline]
    pub(crate) fn schedule(&self, q: *mut queue_t) {
        // SAFETY: queues of ours, inside.
        unsafe {
            (*q).q_link = null_mut();
            let last = self.last.replace(q);
            if last.is_null() {
                self.first.set(q);
            } else {
                (*last).q_link = q;
            }
        }
    }

    /// Takes a queue off the list, if it is on it.
    ///
    /// # Safety
    /// A live queue of this perimeter, inside.
    pub unsafe fn unschedule(&self, q: *mut queue_t) {
        // SAFETY: a live queue, and the queues of the list are live too; the caller is inside.
        unsafe {
            if (*q).q_flag & QENAB == 0 {
                return;
            }
            (*q).q_flag &= !QENAB;
            let mut before = null_mut::<queue_t>();
            let mut at = self.first.get();
            while !at.is_null() && at != q {
                before = at;
                at = (*at).q_link;
            }
            if at.is_null() {
                return;
            }
            let after = core::mem::replace(&mut (*q).q_link, null_mut());
            if before.is_null() {
                self.first.set(after);
            } else {
                (*before).q_link = after;
            }
            if after.is_null() {
                self.last.set(before);
            }
        }
    }

    /// Services queues, first come, first served, until none is enabled.
    #[inline]
    fn run(&self) {
        while !self.first.get().is_null() {
            self.run_first();
        }
    }

    fn run_first(&self) {
        let q = self.first.get();
        // SAFETY: a queue of ours, inside; it may be freed by what its service procedure does, so it comes off first.
        unsafe {
            let next = core::mem::replace(&mut (*q).q_link, null_mut());
            self.first.set(next);
            if next.is_null() {
                self.last.set(null_mut());
            }
            (*q).q_flag &= !QENAB;
            if let Some(service) = (*(*q).q_qinfo).qi_srvp {
                service(q);
            }
        }
    }
}

/// Inside a perimeter. On drop services the enabled queues, then leaves.
pub struct Guard<'a> {
    perimeter: &'a Perimeter,
    outer: *const Perimeter,
    _section: Section<'a>,
}

impl<'a> Guard<'a> {
    #[inline]
    fn new(perimeter: &'a Perimeter, section: Section<'a>) -> Guard<'a> {
        Guard {
            perimeter,
            outer: CURRENT.replace(perimeter),
            _section: section,
        }
    }

    /// Services the enabled queues now.
    #[inline]
    pub fn run(&self) {
        let outer = CURRENT.replace(self.perimeter);
        self.perimeter.run();
        CURRENT.set(outer);
    }

    pub fn perimeter(&self) -> &'a Perimeter {
        self.perimeter
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.run();
        CURRENT.set(self.outer);
    }
}

/// The perimeter that a queue lies in.
///
/// # Safety
/// A live queue.
pub unsafe fn perimeter_of(q: *mut queue_t) -> &'static Perimeter {
    // SAFETY: a live queue, as the caller says; perimeters are never freed.
    unsafe { &*(*q).q_perimeter }
}

/// Moves a stream, from its head's queue pair down, to another perimeter; both are entered. Timers and enabled queues go
/// along.
///
/// # Safety
/// Live queues of `from`.
pub unsafe fn move_stream(head: *mut queue_t, from: &Guard<'_>, to: &Guard<'_>) {
    if core::ptr::eq(from.perimeter, to.perimeter) {
        return;
    }
    // SAFETY: write queues of a live stream, from its head down, and both perimeters are entered.
    unsafe {
        let mut write = WR(head);
        while !write.is_null() {
            for q in [RD(write), write] {
                let enabled = (*q).q_flag & QENAB != 0;
                from.perimeter.unschedule(q);
                (*q).q_perimeter = to.perimeter;
                if enabled {
                    (*q).q_flag |= QENAB;
                    to.perimeter.schedule(q);
                }
                timer::moved(q, to.perimeter);
            }
            write = (*write).q_next;
        }
    }
}

/// Every perimeter and table of the executive entered, so that a fork finds nothing half done. Dropped by parent and child.
pub struct Held {
    _perimeters: Vec<Section<'static>>,
    _pool: Entered<'static, Pool>,
    _tables: (timer::Table, super::registry::Table),
}

/// Waits until nobody is inside any perimeter, and keeps everybody out. Called outside all of them.
pub fn hold_all() -> Held {
    loop {
        let mut known: Vec<_> = POOL.enter().all.clone();
        known.sort_by_key(|p| core::ptr::from_ref(*p));
        let sections = known.iter().map(|p| process::lock(&p.lock)).collect();
        let pool = POOL.enter();
        if pool.all.len() == known.len() {
            return Held {
                _perimeters: sections,
                _pool: pool,
                _tables: (timer::hold(), super::registry::hold()),
            };
        }
    }
}
