//! Perimeters: all put, service, open and close procedures of a stream run inside its perimeter, one thread at a time.
//! The streams of a multiplexer and those linked below it share one, so that they may call each other directly.
//!
//! # Contract
//! What the `Cell`s hold, and every queue of a perimeter, is touched only by who is inside. Perimeters are never freed, so a
//! stale reference is harmless: enter, then look whether the stream still has this one. A thread that is inside does not
//! enter the same one again.

use core::cell::Cell;

use headwater_channel::lock::Lock;
use headwater_host::process::{self, Section};

use super::guarded::{Entered, Guarded};
use super::timer;
use crate::ddi::queue::{QENAB, Queue};

pub struct Perimeter {
    lock: Lock,
    first: Cell<Option<Queue>>,
    last: Cell<Option<Queue>>,
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
    static CURRENT: Cell<Option<&'static Perimeter>> = const { Cell::new(None) };
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
            first: Cell::new(None),
            last: Cell::new(None),
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
    pub fn enter(&'static self) -> Guard<'static> {
        Guard::new(self, process::lock(&self.lock))
    }

    /// Enters if nobody is inside.
    #[inline]
    pub fn try_enter(&'static self) -> Option<Guard<'static>> {
        Some(Guard::new(self, process::try_lock(&self.lock)?))
    }

    /// Enters two, in an order that all threads keep to; the second guard is `None` if they are one.
    pub fn enter_both(
        &'static self,
        other: &'static Perimeter,
    ) -> (Guard<'static>, Option<Guard<'static>>) {
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
        CURRENT.get()
    }

    /// Is a queue waiting to be serviced?
    pub fn has_enabled(&self) -> bool {
        self.first.get().is_some()
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

    /// Services queues, first come, first served, until none is enabled.
    #[inline]
    fn run(&self) {
        while let Some(q) = self.first.get() {
            self.run_first(q);
        }
    }

    fn run_first(&self, q: Queue) {
        // It may be freed by what its service procedure does, so it comes off first.
        let next = q.q_link.take();
        self.first.set(next);
        if next.is_none() {
            self.last.set(None);
        }
        q.lower(QENAB);
        if let Some(service) = q.procedures().qi_srvp {
            // SAFETY: the procedure that this queue of ours has by `setq`, inside.
            unsafe { service(q) };
        }
    }
}

/// Inside a perimeter. On drop services the enabled queues, then leaves.
pub struct Guard<'a> {
    perimeter: &'static Perimeter,
    outer: Option<&'static Perimeter>,
    _section: Section<'a>,
}

impl<'a> Guard<'a> {
    #[inline]
    fn new(perimeter: &'static Perimeter, section: Section<'a>) -> Guard<'a> {
        Guard {
            perimeter,
            outer: CURRENT.replace(Some(perimeter)),
            _section: section,
        }
    }

    /// Services the enabled queues now.
    #[inline]
    pub fn run(&self) {
        let outer = CURRENT.replace(Some(self.perimeter));
        self.perimeter.run();
        CURRENT.set(outer);
    }

    pub fn perimeter(&self) -> &'static Perimeter {
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

/// Moves a stream, from its head's queue pair down, to another perimeter; both are entered. Timers and enabled queues go
/// along.
pub fn move_stream(head: Queue, from: &Guard<'_>, to: &Guard<'_>) {
    if core::ptr::eq(from.perimeter, to.perimeter) {
        return;
    }
    for write in head.write().from_here() {
        for q in [write.read(), write] {
            let enabled = q.flags() & QENAB != 0;
            q.unschedule();
            q.q_perimeter.set(to.perimeter);
            if enabled {
                q.raise(QENAB);
                to.perimeter.schedule(q);
            }
            timer::moved(q, to.perimeter);
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
