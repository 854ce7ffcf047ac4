//! A sleep in epoll_wait(2).

use headwater_channel::waiter::Place;
use libc::{epoll_event, sigset_t};

use super::kernel_wait;
use crate::counters::{self, Counter};
use crate::epoll::Timeout;
use crate::epoll::set::{Held, Set};
use crate::sync::Ordering;
use crate::{next, signal, sys};

/// A thread asleep in the kernel's set, in which the bells of what is hot are armed.
pub(super) struct AtMembers<'a> {
    pub set: &'a Set,
    pub out: &'a mut [epoll_event],
    pub timeout: Timeout,
    pub mask: Option<&'a sigset_t>,
    /// The inside of the set, but while it sleeps.
    pub held: Option<Held<'a>>,
}

/// What the kernel's wait has returned, and its errno.
pub(super) type Waited = (i32, i32);

impl<'a> AtMembers<'a> {
    /// Where events go to, and the inside of the set.
    pub fn woken(mut self) -> (&'a mut [epoll_event], Held<'a>) {
        let set = self.set;
        let inner = self.held.take().unwrap_or_else(|| set.held());
        (self.out, inner)
    }

    fn inner(&mut self) -> &mut Held<'a> {
        let set = self.set;
        self.held.get_or_insert_with(|| set.held())
    }
}

impl Place for AtMembers<'_> {
    /// `None`: something was ready, and there was no sleep.
    type Slept = Option<Waited>;

    fn arm(&mut self) {
        self.set.waiters.fetch_add(1, Ordering::SeqCst);
        let inner = self.inner();
        if inner.mutes {
            inner.heat_mutes();
        }
        inner.heat_sets();
        inner.arm_hot();
    }

    fn look(&mut self) -> Option<Option<Waited>> {
        self.inner().is_any_ready().then_some(None)
    }

    fn sleep(&mut self) -> Option<Waited> {
        let inner = self.inner();
        let (ep, bell) = (inner.ep(), inner.any_bell());
        let ns = match (self.timeout.ns, self.inner().slice()) {
            (Some(t), Some(s)) => Some(t.min(s)),
            (t, s) => t.or(s),
        };
        self.held = None;
        let begun = sys::now();
        let (n, errno) = match signal::begin_nap(signal::ring, bell as usize) {
            true => {
                let within = Timeout { ns, ..self.timeout };
                let n = kernel_wait(ep, self.out, within, self.mask);
                (n, next::errno())
            }
            false => (-1, libc::EINTR),
        };
        signal::end_nap();
        if n >= 0 {
            counters::add(Counter::Sleeps, 1);
            self.set.learner.slept(sys::now() - begun);
        }
        Some((n, errno))
    }

    /// Bells are registered for edges, and stay rung: each thread that sleeps on is told by itself, or [armed for](Set::leave).
    fn take(&mut self) -> bool {
        false
    }

    fn disarm(&mut self) {
        let set = self.set;
        set.stand_down(self.inner());
    }

    fn settle(&mut self) -> bool {
        false
    }
}
