//! A sleep in poll(2).

use headwater_channel::waiter::Place;
use libc::{pollfd, sigset_t};

use super::{
    Carried, EMPTY, LEARNER, SHARED_SLICE, VAIN_SLICE, for_carried, forget_moved, is_closed_only,
    kernel_poll, kernel_side, look, stand_down, unclaimed_slice,
};
use crate::counters::{self, Counter};
use crate::table::Handle;
use crate::{next, process, signal, sys};

/// A thread asleep at shadows and bells.
pub(super) struct AtBells<'a> {
    pub fds: &'a mut [pollfd],
    pub who: &'a [Handle],
    /// The kernel's side of `fds`, and behind that the bells of those that are carried: so many are `used`.
    pub kernel: &'a mut [pollfd],
    pub timeout: Option<u64>,
    pub mask: Option<&'a sigset_t>,
    pub late: bool,
    pub is_vain: bool,
    pub slice: u64,
    pub used: usize,
}

/// What the kernel said, and whether numbers have moved, or others were left out, meanwhile.
pub(super) struct Polled {
    pub result: i32,
    pub errno: i32,
    pub moved: bool,
    pub left_out: bool,
}

impl Place for AtBells<'_> {
    /// Else so many are ready, and there was no sleep.
    type Slept = Result<Polled, i32>;

    fn arm(&mut self) {
        if self.is_vain {
            self.slice = VAIN_SLICE;
        }
        for_carried(self.who, self.fds, |c, p| {
            c.d.arm(c.h, p.events as u32);
            let slice = c.d.slice(c.h, p.events as u32);
            self.slice = self.slice.min(slice.unwrap_or(u64::MAX));
        });
        self.slice = self.slice.min(unclaimed_slice(self.who, self.fds));
    }

    fn look(&mut self) -> Option<Result<Polled, i32>> {
        let ready = look(self.fds);
        (ready > 0).then_some(Err(ready))
    }

    fn sleep(&mut self) -> Result<Polled, i32> {
        let (fds, who) = (&*self.fds, self.who);
        let mut n = fds.len();
        for (k, p) in self.kernel.iter_mut().zip(fds) {
            *k = kernel_side(p);
        }
        for_carried(who, fds, |c, _| {
            self.kernel[n] = sys::entry(if self.is_vain { !c.bell } else { c.bell }, libc::POLLIN);
            n += 1;
        });
        self.used = n;
        let kernel = &mut self.kernel[..n];
        let mut polled = Polled {
            result: -1,
            errno: libc::EINTR,
            moved: false,
            left_out: false,
        };
        let bound = self.timeout.unwrap_or(u64::MAX).min(self.slice);
        let begun = sys::now();
        let mut until = begun.saturating_add(bound);
        // Without a bell it is but a slice.
        let bell = kernel.get(fds.len()..).and_then(|bells| bells.first());
        let bell = bell.filter(|_| !self.is_vain).map_or(-1, |p| p.fd);
        if !signal::begin_nap(signal::ring, bell as usize) {
            return Ok(polled);
        }
        polled.result = loop {
            let left = (until < u64::MAX).then(|| until.saturating_sub(sys::now()));
            let result = kernel_poll(kernel, left, self.mask);
            if result > 0 {
                polled.moved = forget_moved(kernel, who, fds);
            }
            if result <= 0 || polled.moved || !self.late || !is_closed_only(kernel) {
                break result;
            }
            polled.left_out = true;
            if n == fds.len() {
                until = until.min(sys::now().saturating_add(SHARED_SLICE));
            }
            let closed = kernel.iter_mut().filter(|k| k.revents != 0);
            closed.for_each(|k| *k = EMPTY);
        };
        polled.errno = next::errno();
        signal::end_nap();
        counters::add(Counter::Sleeps, 1);
        LEARNER.with(|l| l.slept(sys::now() - begun));
        Ok(polled)
    }

    fn take(&mut self) -> bool {
        self.for_rung(|c| c.d.take(c.h, c.bell))
    }

    fn disarm(&mut self) {
        stand_down(self.who, self.fds);
    }

    fn settle(&mut self) -> bool {
        self.for_rung(|c| {
            c.d.settle(c.h);
            true
        })
    }

    fn undisturbed<R>(&mut self, part: impl FnOnce(&mut Self) -> R) -> R {
        process::without_handlers(|| part(self))
    }
}

impl AtBells<'_> {
    /// For each whose bell has rung and was not taken by others, as far as `f` says that so it is. True: there are such.
    fn for_rung(&mut self, mut f: impl FnMut(&Carried) -> bool) -> bool {
        let mut any = false;
        let bells = self.kernel.get_mut(self.fds.len()..self.used);
        let mut bells = bells.unwrap_or_default().iter_mut();
        let mut at = bells.next();
        for_carried(self.who, self.fds, |c, _| {
            let Some(bell) = at.take_if(|bell| [c.bell, !c.bell].contains(&bell.fd)) else {
                return;
            };
            if bell.revents != 0 {
                bell.revents = f(c) as i16;
                any |= bell.revents != 0;
            }
            at = bells.next();
        });
        any
    }
}
