//! Threads asleep at the own bell.

use headwater_channel::bell;
use headwater_channel::waiter::{self, Place};
use headwater_host::process;

use crate::conn::Conn;
use crate::pins::{self, Sleep};
use crate::segment::View;
use crate::switch::{help_withdraw, readable, writable};

/// Sleeps by `in_kernel`, which hears the own bell, unless there is something: `is_ready` says so without a lock.
pub fn sleep<R>(
    c: &'static Conn,
    v: &View<'static>,
    kind: Sleep,
    is_ready: impl Fn() -> bool,
    in_kernel: impl FnMut() -> Result<(), R>,
) -> Result<(), R> {
    waiter::sleep(&mut AtBell {
        c,
        v,
        kind,
        is_ready,
        in_kernel,
    })
}

struct AtBell<'a, I, K> {
    c: &'static Conn,
    v: &'a View<'static>,
    kind: Sleep,
    is_ready: I,
    in_kernel: K,
}

impl<I: Fn() -> bool, K: FnMut() -> Result<(), R>, R> Place for AtBell<'_, I, K> {
    type Slept = Result<(), R>;

    fn arm(&mut self) {
        pins::fall_asleep(self.v, self.kind);
    }

    fn look(&mut self) -> Option<Result<(), R>> {
        (self.is_ready)().then_some(Ok(()))
    }

    fn sleep(&mut self) -> Result<(), R> {
        (self.in_kernel)()
    }

    fn disarm(&mut self) {
        pins::wake_up(self.c, self.v, self.kind);
    }

    fn take(&mut self) -> bool {
        bell::take(self.v.own_bell())
    }

    fn settle(&mut self) -> bool {
        settle(self.c, self.v)
    }

    fn woke(&mut self, passed_on: bool) {
        self.c.vain.woke(passed_on, || !(self.is_ready)());
    }

    fn undisturbed<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        process::without_handlers(|| part(self))
    }
}

/// The own bell was consumed by one of several sleepers: arm again for the others, and ring if there is something already. True if so.
pub fn settle(c: &Conn, v: &View<'_>) -> bool {
    help_withdraw(c, v);
    let reader = v.in_ring().readers().settle(|| readable(v));
    let writer = || writable(c, v) == Some(true);
    let again = v.out_ring().writers().settle(writer) || reader;
    if again {
        bell::ring(v.own_bell());
    }
    again
}

/// A reader no longer sleeps.
pub fn stop_reading(v: &View<'_>) {
    if v.in_ring().readers().leave(|| readable(v)) {
        bell::ring(v.own_bell());
    }
}

/// A writer no longer sleeps.
pub fn stop_writing(c: &Conn, v: &View<'_>) {
    let may_write = || writable(c, v) != Some(false);
    if v.out_ring().writers().leave(may_write) {
        bell::ring(v.own_bell());
    }
}
