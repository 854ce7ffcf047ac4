//! One set: what the program does to it, and what connections tell it.

use core::cell::UnsafeCell;

use headwater_channel::wait::Learner;
use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, epoll_event};

use super::regs::{EXCLUSIVE, Inner, Reg};
use super::{ET, MODES, ONESHOT, fdinfo, kernel_ctl};
use crate::counters::{self, Reason};
use crate::process;
use crate::sync::{AtomicI32, AtomicU32, Ordering};
use crate::sys;
use crate::table::{self, Descriptor, Handle, Kind, Trait};

mod held;
mod within;

pub use held::Held;
pub use within::{Asker, Tells};

/// What the kernel takes together with EPOLLEXCLUSIVE (epoll_ctl(2)).
const WITH_EXCLUSIVE: u32 = EXCLUSIVE
    | ET
    | (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLWAKEUP) as u32;

/// Of [`Set::refused`]: other processes may share the set.
const INHERITED: u32 = 2;

/// The kind of descriptor that a set is; see the `Descriptor` implementation.
pub struct Sets;

pub struct Set {
    /// Its descriptor, also readable without the lock.
    pub ep: AtomicI32,
    lock: headwater_channel::lock::Lock,
    inner: UnsafeCell<Inner>,
    generation: AtomicU32,
    refs: AtomicU32,
    /// It has had carried connections or sets of ours in it; before that, waiting is the kernel's alone.
    pub concerned: AtomicU32,
    /// Threads asleep in the kernel: while any is, nothing may stay hot.
    pub waiters: AtomicU32,
    /// Takes no carried connections: inherited over fork, or data that looks like tags.
    pub refused: AtomicU32,
    /// It was waited for by a call of ours. Until then the program may wait by system calls of its own, to which the kernel
    /// would tell our tags.
    waited: AtomicU32,
    pub learner: Learner,
}

// SAFETY: `inner` is only reached through `lock`.
unsafe impl Sync for Set {}

impl Set {
    pub fn new(ep: i32) -> Set {
        Set {
            ep: AtomicI32::new(ep),
            lock: headwater_channel::lock::Lock::new(),
            inner: UnsafeCell::new(Inner::new(ep)),
            generation: AtomicU32::new(1),
            refs: AtomicU32::new(1),
            concerned: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            refused: AtomicU32::new(0),
            waited: AtomicU32::new(0),
            learner: Learner::new(),
        }
    }

    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Takes a set that nobody uses any more for another descriptor.
    pub fn reuse(&self, ep: i32) -> bool {
        if self.refs.load(Ordering::Acquire) != 0
            || self
                .refs
                .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
        {
            return false;
        }
        let mut inner = self.held();
        *inner = Inner::new(ep);
        self.ep.store(ep, Ordering::Relaxed);
        self.refused.store(0, Ordering::Relaxed);
        self.concerned.store(0, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
        // Not the waiters: somebody may still wait on the closed one, and too many cost nothing but rings.
        true
    }

    pub fn retain(&self) {
        self.refs.fetch_add(1, Ordering::AcqRel);
    }

    /// The number `fd` goes. Where the set is reached by that one, by `other` from now on.
    pub fn leave_number(&self, fd: i32, other: impl FnOnce() -> Option<i32>) {
        if self.ep.load(Ordering::Relaxed) != fd {
            return;
        }
        let mut inner = self.held();
        if self.refs.load(Ordering::Acquire) > 1
            && let Some(other) = other()
        {
            super::left::renumber(fd, other);
            inner.ep = other;
            self.ep.store(other, Ordering::Relaxed);
        }
    }

    pub fn release(&self) {
        if self.refs.load(Ordering::Acquire) == 1 {
            let mut inner = self.held();
            inner.disarm_all();
            let g = self.generation.load(Ordering::Relaxed);
            self.generation
                .store((g + 1) & 0xff_ffff, Ordering::Release);
        }
        self.refs.fetch_sub(1, Ordering::AcqRel);
    }

    /// Has it one number, and sleeps a thread on it?
    pub fn ends_under_a_wait(&self) -> bool {
        self.refs.load(Ordering::Acquire) == 1 && self.waiters.load(Ordering::SeqCst) > 0
    }

    pub fn inherited(&self) {
        let _ = self
            .refused
            .compare_exchange(0, INHERITED, Ordering::Relaxed, Ordering::Relaxed);
        self.waiters.store(0, Ordering::Relaxed);
        // Who sleeps there is to be rung, whatever this process closes.
        self.held().leave_to_parent();
        // The parent's registrations have our tags, now and later.
        self.concerned.store(1, Ordering::Relaxed);
    }

    pub fn is_inherited(&self) -> bool {
        self.refused.load(Ordering::Relaxed) == INHERITED
    }

    /// A waiter comes back; true for the last.
    pub fn waiter_leaves(&self) -> bool {
        let before = self
            .waiters
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        before == Ok(1)
    }

    pub fn hold(&self) {
        core::mem::forget(process::lock_own(&self.lock));
    }

    pub fn let_go(&self) {
        // Both in the parent and in the child, whose copy of the lock is its own.
        self.lock.unlock();
        process::end_section();
    }

    /// In the child of a fork that has not held it: what is in it may have been copied in the middle of a change.
    pub fn let_go_of_parents(&self) {
        let mut fresh = Inner::new(self.ep.load(Ordering::Relaxed));
        fresh.shared = true;
        // SAFETY: whoever had it is not in this process, whose only thread this is. What stood there is nobody's, and is not dropped.
        unsafe { self.inner.get().write(fresh) };
        self.lock.unlock();
    }

    pub fn is_waited(&self) -> bool {
        self.waited.load(Ordering::Acquire) != 0
    }

    /// A wait begins. What was put in carried before the first one is told by us from now on.
    #[inline]
    pub fn see_wait(&self) {
        if !self.is_waited() {
            self.first_wait();
        }
    }

    #[cold]
    fn first_wait(&self) {
        if self.waited.swap(1, Ordering::AcqRel) == 0 {
            self.carry_all();
        }
    }

    /// A child of fork shares the kernel's set, in which nothing can be changed then: it has our tags from now on.
    pub fn before_fork(&self) {
        if !self.is_waited() {
            self.carry_all();
        }
        let mut inner = self.held();
        inner.unpark();
        inner.shared = true;
    }

    fn carry_all(&self) {
        if self.refused.load(Ordering::Relaxed) != 0 {
            return;
        }
        let plain: Vec<i32> = {
            let inner = self.held();
            let is_ours = |r: &Reg| match r.h.kind() {
                Kind::Socket => r.d.is_some_and(|d| d.bell(r.h).is_some()),
                Kind::Epoll => r.d.is_some(),
                _ => false,
            };
            let plain = inner.regs.iter().filter(|r| !r.carried && is_ours(r));
            plain.map(|r| r.fd).collect()
        };
        for fd in plain {
            self.carry(fd);
        }
    }

    pub fn has(&self, fd: i32) -> bool {
        self.held().find(fd).is_some()
    }

    /// By its own number, or one that is closed by now.
    pub fn has_member(&self, fd: i32, h: Handle) -> bool {
        self.has(fd) || self.has_orphan(h)
    }

    /// By a number that is closed by now.
    pub fn has_orphan(&self, h: Handle) -> bool {
        let inner = self.held();
        inner.orphans && inner.regs.iter().any(|r| r.is_orphan_of(h))
    }

    /// Does the program ask for `event` of it here?
    pub fn asks(&self, fd: i32, event: u32) -> bool {
        let inner = self.held();
        inner
            .find(fd)
            .is_some_and(|i| !inner.regs[i].parked && inner.regs[i].events & event != 0)
    }

    pub fn allows(&self, fd: i32, h: Option<Handle>) -> Result<(), Reason> {
        let inner = self.held();
        // Out of reach, so that it can't be made ours.
        let is_lost = |r: &Reg| !r.carried && h.is_some_and(|h| r.is_orphan_of(h));
        if inner.orphans && inner.regs.iter().any(is_lost) {
            return Err(Reason::EpollClosed);
        }
        match inner.find(fd) {
            Some(i)
                if self.refused.load(Ordering::Relaxed) != 0
                    || inner.regs[i].events & EXCLUSIVE != 0 =>
            {
                Err(Reason::EpollExclusive)
            }
            _ => Ok(()),
        }
    }

    /// Are descriptors like this one looked after here? In a set that came by fork, too, those of which the kernel knows nothing.
    fn takes(&self, h: Handle) -> bool {
        match self.refused.load(Ordering::Relaxed) {
            0 => !matches!(h.kind(), Kind::Socket | Kind::Epoll) || self.is_waited(),
            INHERITED => h.kind().is(Trait::ToldByBell),
            _ => false,
        }
    }

    /// A registration's connection is now carried: it was plain, or had another bell.
    pub fn carry(&self, fd: i32) {
        let mut inner = self.held();
        let Some(i) = inner.find(fd) else { return };
        if inner.regs[i].d.is_none() {
            return;
        }
        if inner.regs[i].carried {
            if !self.is_inherited() && inner.change_bell(i) {
                self.announce(&mut inner, i);
            }
            return;
        }
        let reg = *inner.at(i);
        if reg.events & ONESHOT != 0 && has_fired(inner.ep, fd) {
            // Registering it anew must not arm it.
            inner.regs[i].disabled = true;
        }
        // Before the kernel can report a tag to somebody who sleeps already.
        self.concerned.store(1, Ordering::SeqCst);
        // Who sleeps may be about to be told of it; and what the kernel tells of those that can't be reached could not be put back.
        let is_alone = self.is_waited() && self.waiters.load(Ordering::SeqCst) == 0;
        let is_shared = inner.shared || self.is_inherited();
        if is_shared && reg.events & ET != 0 {
            // To register it anew makes an edge of what holds.
            counters::note(Reason::ToldAgain);
        }
        let told = (is_alone && !inner.orphans && !is_shared)
            .then(|| inner.all_told(i))
            .flatten();
        match inner.make_carried(i, EPOLL_CTL_MOD) {
            Ok(()) => {
                told.inspect(|told| inner.keep_told(i, told));
                inner.begin_list(i);
                self.announce(&mut inner, i);
            }
            // It was closed and opened anew outside this set.
            Err(_) => inner.remove(i),
        }
    }

    pub fn forget(&self, fd: i32) {
        let mut inner = self.held();
        if let Some(i) = inner.find(fd) {
            inner.closed(i);
        }
        let is_held = |h: Handle| table::descriptor(h).is_some_and(|d| d.is_held(h));
        inner.drop_orphans(|h| table::entries().any(|(n, x)| n != fd && x == h) || is_held(h));
    }

    /// The program's registrations of what `h` stands for, by `fd` or a number that is closed by now, are the kernel's alone from here
    /// on.
    pub fn leave_one(&self, fd: i32, h: Handle) {
        let mut inner = self.held();
        if let Some(i) = inner.find(fd) {
            inner.surrender(i);
        }
        for i in 0..inner.regs.len() {
            if inner.at(i).is_orphan_of(h) {
                inner.surrender(i);
            }
        }
    }

    /// A descriptor that was foreign when it was put into the set is looked after from now on.
    pub fn adopted(&self, fd: i32, h: Handle, d: &'static dyn Descriptor) {
        let mut inner = self.held();
        if let Some(i) = inner.find(fd)
            && inner.regs[i].d.is_none()
        {
            let reg = &mut inner.regs[i];
            (reg.h, reg.d) = (h, Some(d));
        }
    }

    pub fn take_out(&self, fd: i32) {
        let mut inner = self.held();
        if let Some(i) = inner.find(fd)
            && inner.regs[i].parked
        {
            inner.narrow(i);
        }
    }

    /// Takes out a number that is to get another description. A set that came by fork is the parent's too, whose number keeps
    /// the one that it has.
    pub fn withdraw(&self, fd: i32) -> Option<Reg> {
        let mut inner = self.held();
        let i = inner.find(fd).filter(|_| !self.is_inherited())?;
        let mut reg = inner.regs[i];
        reg.disabled |= !reg.carried && reg.events & ONESHOT != 0 && has_fired(inner.ep, fd);
        inner.delete(fd);
        // What had the bell may be closed, and its number another's.
        let mut all = inner.regs.iter().enumerate();
        if all.any(|(j, r)| j != i && r.rings && r.bell == reg.bell) {
            inner.regs[i].rings = false;
        }
        inner.remove(i);
        (!reg.parked).then_some(reg)
    }

    /// The same number, with its new description. Without room for it nobody is told.
    pub fn put_back(&self, reg: &Reg, tracked: Option<(Handle, &'static dyn Descriptor)>) {
        let mut inner = self.held();
        if inner.find(reg.fd).is_some() {
            return;
        }
        let mut event = reg.event();
        let added = self.add(&mut inner, reg.fd, &event, tracked, false);
        let Some(i) = inner.find(reg.fd).filter(|_| added.is_ok() && reg.disabled) else {
            return;
        };
        inner.disarm(i);
        inner.regs[i].disabled = true;
        event.events &= MODES;
        let _ = match inner.regs[i].carried {
            true => inner.register(i, EPOLL_CTL_MOD, 0),
            false => kernel_ctl(inner.ep, EPOLL_CTL_MOD, reg.fd, Some(&event)),
        };
    }

    pub fn ended(&self, h: Handle) {
        let mut inner = self.held();
        inner.same(h).for_each(|i| inner.closed(i));
    }

    pub fn orphan(&self, fd: i32) {
        let has_bell = {
            let inner = self.held();
            let reg = inner.find(fd).map(|i| inner.regs[i]);
            reg.is_some_and(|r| r.d.is_some_and(|d| d.bell(r.h).is_some()))
        };
        if has_bell && self.refused.load(Ordering::Relaxed) == 0 {
            // While it can be reached, though nobody may have waited yet.
            self.carry(fd);
        }
        self.held().orphan(fd);
    }

    /// Every socket's registration becomes the program's own.
    pub fn surrender(&self, has_rest: &impl Fn(Handle) -> bool) {
        let mut inner = self.held();
        for i in 0..inner.regs.len() {
            let reg = *inner.at(i);
            if reg.d.is_none() || !matches!(reg.h.kind(), Kind::Socket | Kind::Epoll) {
                continue;
            }
            if reg.h.kind() == Kind::Socket && has_rest(reg.h) && !reg.parked && !reg.disabled {
                super::left::note(inner.ep, &reg);
            }
            inner.surrender(i);
        }
    }

    /// The same, and the set goes on knowing what is in it.
    pub fn make_plain(&self) {
        let mut inner = self.held();
        for i in 0..inner.regs.len() {
            let reg = *inner.at(i);
            let Some(d) = reg.d else { continue };
            if !reg.carried || !matches!(reg.h.kind(), Kind::Socket | Kind::Epoll) {
                continue;
            }
            inner.surrender(i);
            if !reg.parked && !reg.orphan {
                inner.insert(Reg::new(reg.fd, Some((reg.h, d)), &reg.event()));
            }
        }
    }

    /// Leaves to the kernel, as the program says, what is marked so.
    pub fn let_apart(&self) {
        let mut inner = self.held();
        let all = fdinfo::all(inner.ep);
        for i in 0..inner.regs.len() {
            inner.let_apart_if(i, |fd, data| all.binary_search(&(fd, data)).is_ok());
        }
    }

    /// epoll_ctl(2) for a set we look after.
    pub fn ctl(
        &self,
        op: i32,
        fd: i32,
        event: Option<&epoll_event>,
        tracked: Option<(Handle, &'static dyn Descriptor)>,
    ) -> sys::Result<()> {
        let member = tracked.filter(|(h, _)| op == EPOLL_CTL_ADD && h.kind() == Kind::Epoll);
        let inner = member.and_then(|(h, _)| super::by_handle(h));
        if let Some(inner) = inner.filter(|inner| !core::ptr::eq(*inner, self)) {
            inner.held().nest();
        }
        // Who sleeps on the set counts itself before it takes the lock, and is seen by who takes it later.
        let mut inner = self.held_briefly();
        let ep = inner.ep;
        if let Some((h, _)) = tracked {
            inner.reach_again(fd, h);
        }
        let mut known = inner.find(fd);
        let asked = event.map_or(0, |event| event.events);
        let exclusive = asked & EXCLUSIVE != 0;
        if exclusive && op == EPOLL_CTL_ADD && tracked.is_some() && asked & !WITH_EXCLUSIVE != 0 {
            return Err(libc::EINVAL);
        }
        if exclusive && op == EPOLL_CTL_MOD && tracked.is_some() {
            return Err(libc::EINVAL);
        }
        if let (EPOLL_CTL_ADD, Some(i), Some(added)) = (op, known, event)
            && !inner.regs[i].parked
        {
            // EEXIST, unless the number was closed as a foreign one and is another socket's now: the kernel knows.
            kernel_ctl(ep, op, fd, event)?;
            inner.remove(i);
            return self.add(&mut inner, fd, added, tracked, true);
        }
        if let (EPOLL_CTL_ADD, Some(i)) = (op, known)
            && inner.regs[i].parked
            && (exclusive || tracked.is_none())
        {
            // It can't be what it was: a new one.
            inner.narrow(i);
            inner.remove(i);
            known = None;
        }
        if let Some(i) = known {
            inner.let_apart(i);
        }
        match (op, known, event) {
            (EPOLL_CTL_ADD, None, Some(event)) => self.add(&mut inner, fd, event, tracked, false),
            (EPOLL_CTL_ADD, Some(i), Some(event))
                if inner.regs[i].parked
                    && let Some((h, d)) = tracked =>
            {
                let reg = &mut inner.regs[i];
                (reg.h, reg.d, reg.parked) = (h, Some(d), false);
                self.change(&mut inner, i, event)
            }
            (EPOLL_CTL_MOD | EPOLL_CTL_DEL, Some(i), _) if inner.regs[i].parked => {
                Err(libc::ENOENT)
            }
            (EPOLL_CTL_MOD, Some(i), Some(event)) => {
                if !inner.regs[i].carried {
                    inner.begin_list(i);
                    kernel_ctl(ep, op, fd, Some(event))?;
                    let reg = &mut inner.regs[i];
                    (reg.events, reg.data, reg.disabled) = (event.events, event.u64, false);
                    return Ok(());
                }
                self.change(&mut inner, i, event)
            }
            (EPOLL_CTL_DEL, Some(i), _) => {
                let reg = &inner.regs[i];
                // Whoever else has the set is to find it gone.
                let parks = reg.carried && !inner.shared && !inner.nested;
                if parks && reg.events & EXCLUSIVE == 0 && reg.h.kind() != Kind::Epoll {
                    inner.park(i);
                    return Ok(());
                }
                let done = kernel_ctl(ep, op, fd, event);
                if done.is_ok() {
                    inner.remove(i);
                }
                done
            }
            _ => kernel_ctl(ep, op, fd, event),
        }
    }

    /// A registration that is new to us. The kernel has it already, as the program asked, where `is_in`.
    fn add(
        &self,
        inner: &mut Inner,
        fd: i32,
        event: &epoll_event,
        tracked: Option<(Handle, &'static dyn Descriptor)>,
        is_in: bool,
    ) -> sys::Result<()> {
        let mut carried = false;
        // A foreign one may be connected later, and taken over then.
        if let Some((h, d)) = tracked {
            let is_set = h.kind() == Kind::Epoll;
            let has_bell = d.bell(h).is_some();
            if h.kind().is(Trait::ToldByBell) && !has_bell {
                // No descriptor was left for it.
                if is_in {
                    inner.delete(fd);
                }
                return Err(libc::ENOSPC);
            }
            carried = (has_bell || is_set) && self.takes(h) && !d.is_apart(h);
            if carried || is_set {
                self.concerned.store(1, Ordering::SeqCst);
            } else if has_bell && self.refused.load(Ordering::Relaxed) != 0 {
                // What is in shared memory is told to none of those who have the set, until it has gone back to the kernel.
                counters::note(Reason::SharedSet);
            }
        }
        match (carried, is_in) {
            // As new, whatever the kernel would have to say of it at once.
            (true, true) => inner.delete(fd),
            // First, since the number may be none.
            (false, false) => kernel_ctl(inner.ep, EPOLL_CTL_ADD, fd, Some(event))?,
            _ => {}
        }
        let i = inner.insert(Reg::new(fd, tracked, event));
        if carried {
            if let Err(e) = inner.make_carried(i, EPOLL_CTL_ADD) {
                inner.remove(i);
                return Err(e);
            }
            inner.is_added(i);
            self.announce(inner, i);
        }
        Ok(())
    }

    /// The program asks for other events, or for the same ones anew.
    fn change(&self, inner: &mut Inner, i: usize, event: &epoll_event) -> sys::Result<()> {
        if (event.events | inner.regs[i].events) & EXCLUSIVE != 0 {
            return Err(libc::EINVAL);
        }
        inner.disarm(i);
        let reg = &inner.regs[i];
        let by_edge = (event.events | reg.events) & (ET | ONESHOT) != 0;
        let differs = by_edge || (event.events, event.u64) != (reg.events, reg.data);
        if inner.shared && differs && !core::mem::replace(&mut inner.differs, true) {
            // To those who have the set too it asks for what it asked for.
            counters::note(Reason::SharedSet);
        }
        let again = inner.nested || by_edge;
        inner.ask(i, event);
        inner.watch(i, again)?;
        self.announce(inner, i);
        Ok(())
    }

    /// A registration is new or changed: the next `wait` looks at it, or a thread that sleeps already is rung.
    fn announce(&self, inner: &mut Inner, i: usize) {
        inner.is_new |= inner.regs[i].events & (ET | ONESHOT) == ET;
        if self.waiters.load(Ordering::SeqCst) == 0 {
            inner.heat(i);
        } else {
            inner.cool(i);
            if inner.regs[i].mute {
                inner.wake_sleepers(i);
            }
        }
    }

    /// Does the kernel know all that is in it?
    pub fn is_plain(&self) -> bool {
        self.held().regs.iter().all(|r| r.d.is_none())
    }

    pub fn is_concerned(&self) -> bool {
        self.concerned.load(Ordering::SeqCst) != 0
    }

    /// Leaves nothing hot; whatever is ready rings its own bell.
    pub fn arm_hot(&self) {
        let mut inner = self.held();
        inner.cool_all();
    }
}

/// Did a plain one-shot registration report its event? Then the kernel keeps only its mode bits.
fn has_fired(ep: i32, fd: i32) -> bool {
    fdinfo::has(ep, fd, |events, _| events & !MODES == 0)
}
