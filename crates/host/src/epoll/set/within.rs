//! A set as whoever waits on what holds it sees it: another set, or poll.

use super::Set;
use crate::epoll::last::ENDS;
use crate::epoll::regs::Reg;
use crate::sync::Ordering;
use crate::table::{Arrivals, Handle, Kind};

/// What a wait on a set would tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tells {
    Nothing,
    /// What shared memory has.
    Ours,
    /// Among others what the kernel has reported just now.
    ByKernel,
}

/// Whose look at a set it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// One that the kernel would make too: it forgets what there is nothing of any more.
    Kernel,
    /// Ours alone.
    Ours,
}

impl Set {
    /// Would a wait tell something? It stays to be told, and whoever sleeps on what holds this set is told of what comes: every
    /// member is armed before it is looked at.
    pub fn tells(&self, asker: Asker) -> Tells {
        let Some(mut inner) = self.held_unless_forking() else {
            // A wait that ends early is made again.
            return Tells::Ours;
        };
        inner.heat_sets();
        let by_kernel = inner.look_behind();
        let ready = inner.arm_and_look();
        if ready && self.waiters.load(Ordering::SeqCst) > 0 {
            // They have lost the bells that were found here.
            inner.cool_all();
        }
        if inner.nested {
            inner.list_what_came();
            if asker == Asker::Kernel && !ready && !by_kernel {
                inner.list_nothing();
            }
        }
        drop(inner);
        match ready {
            _ if by_kernel => Tells::ByKernel,
            true => Tells::Ours,
            false => Tells::Nothing,
        }
    }

    /// Changes with each arrival at a member.
    pub fn arrivals(&self) -> u64 {
        let Some(inner) = self.held_unless_forking() else {
            return 0;
        };
        let each = inner.regs.iter().map(Reg::arrivals);
        each.fold(inner.news, u64::wrapping_add)
    }

    /// What has come to members by the kernel, and room there, and how often it was made to say again what holds, or rung.
    pub fn kernel_arrivals(&self) -> Arrivals {
        let Some(inner) = self.held_unless_forking() else {
            return Arrivals::default();
        };
        let (mut count, mut posts) = (inner.ends, inner.posts);
        for reg in inner.regs.iter().filter(|r| r.is_live()) {
            let came = reg.came();
            count = count.wrapping_add(reg.counts(came).1);
            if reg.h.kind() == Kind::Epoll {
                posts = posts.wrapping_add(came.by_kernel.taken_back);
            }
        }
        Arrivals {
            count,
            taken_back: posts,
            certain: false,
        }
    }

    /// Is that all? Ends are counted when a look has found them, and what comes to others than connections is not.
    pub fn has_counted_all(&self) -> bool {
        let is_counted = |r: &Reg| {
            let of_ours = matches!(r.h.kind(), Kind::Socket | Kind::Epoll);
            let Some(d) = r.d.filter(|_| r.is_live() && of_ours) else {
                return false;
            };
            let counts = d.kernel_arrivals(r.h).certain || d.has_counted_all(r.h);
            counts && d.kernel_holds(r.h, 0, ENDS) & !r.ended == 0
        };
        let inner = self.held_unless_forking().filter(|_| !self.is_inherited());
        inner.is_some_and(|inner| !inner.orphans && inner.all(is_counted))
    }

    /// See [`woken`](crate::epoll::woken).
    pub fn is_woken(&self, h: Handle, as_of_bytes: bool) {
        let mut inner = self.held();
        let hears = |r: &Reg| !as_of_bytes || r.hears_arrivals();
        let mut all = inner.regs.iter();
        let has = all.any(|r| r.is_live() && r.h == h && hears(r));
        inner.news += u64::from(has && inner.nested);
    }
}
