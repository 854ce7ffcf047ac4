//! Perimeters: all put, service, open and close procedures of a stream run inside its perimeter, one thread at a time.
//! The streams of a multiplexer and those linked below it share one, so that they may call each other directly.
//!
//! # Contract
//! What a perimeter's `Cell`s hold, and every queue of it, is touched only by who is inside. Perimeters are never freed, so a
//! stale reference is harmless: enter, then look whether the stream still has this one. A thread that is inside does not
//! enter the same one again.

use core::cell::Cell;

use headwater_host::guarded::{Entered, Guarded};
use headwater_host::process::{self, Section};

pub use crate::ddi::queue::Perimeter;
use crate::ddi::queue::{QENAB, Queue};

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
        let new = Box::leak(Box::new(Perimeter::new()));
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

/// Every perimeter entered, and the pool of them.
pub(super) struct AllHeld {
    _perimeters: Vec<Section<'static>>,
    _pool: Entered<'static, Pool>,
}

/// Waits until nobody is inside any perimeter, and keeps everybody out. Called outside all of them.
pub(super) fn hold() -> AllHeld {
    loop {
        let mut known: Vec<_> = POOL.enter().all.clone();
        known.sort_by_key(|p| core::ptr::from_ref(*p));
        let sections = known.iter().map(|p| process::lock(&p.lock)).collect();
        let pool = POOL.enter();
        if pool.all.len() == known.len() {
            return AllHeld {
                _perimeters: sections,
                _pool: pool,
            };
        }
    }
}
