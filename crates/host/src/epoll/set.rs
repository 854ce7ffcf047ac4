//! One set: its registrations, and how they move between hot and armed. Everything in [`Inner`] is under the set's lock.

use core::cell::UnsafeCell;

use headwater_channel::bell;
use headwater_channel::wait::Learner;
use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, epoll_event};

use super::{ET, MODES, ONESHOT, Tag};
use crate::process::{self, Section};
use crate::sync::{AtomicU32, Ordering, fence};
use crate::sys;
use crate::table::{Descriptor, Handle};

/// The kind of descriptor that a set is; see the `Descriptor` implementation.
pub struct Sets;

/// A registration goes cold after this many looks in vain.
const PATIENCE: u32 = 100;

pub struct Set {
    lock: headwater_channel::lock::Lock,
    inner: UnsafeCell<Inner>,
    generation: AtomicU32,
    refs: AtomicU32,
    /// Carried registrations; while zero, everything is the kernel's.
    pub carried: AtomicU32,
    /// Threads asleep in the kernel: while any is, nothing may stay hot.
    pub waiters: AtomicU32,
    /// Takes no carried connections: inherited over fork, or data that looks like tags.
    pub refused: AtomicU32,
    pub learner: Learner,
}

// SAFETY: `inner` is only reached through `lock`.
unsafe impl Sync for Set {}

pub struct Inner {
    ep: i32,
    /// Slot + 1 by descriptor number.
    by_fd: Vec<u32>,
    pub regs: Vec<Reg>,
    free: Vec<u32>,
    /// Slots that are hot.
    pub hot: Vec<u32>,
    next_generation: u32,
    pub calls: u32,
}

#[derive(Clone, Copy)]
pub struct Reg {
    pub fd: i32,
    pub h: Handle,
    pub d: Option<&'static dyn Descriptor>,
    /// As the program asked, modes included.
    pub events: u32,
    pub data: u64,
    /// Readiness events registered in the kernel for the shadow.
    kernel: u32,
    pub carried: bool,
    hot: bool,
    armed: bool,
    /// ONESHOT that has fired.
    disabled: bool,
    misses: u32,
    reported: (u64, u64),
    bell: i32,
    pub generation: u32,
    /// Index of the event of the current batch, and which batch.
    pub batch: (u32, u32),
}

/// Access to a set's inside.
pub struct Held<'a> {
    set: &'a Set,
    _section: Section<'a>,
}

impl core::ops::Deref for Held<'_> {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        // SAFETY: the section holds the set's lock.
        unsafe { &*self.set.inner.get() }
    }
}

impl core::ops::DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        // SAFETY: the section holds the set's lock, and we are borrowed mutably.
        unsafe { &mut *self.set.inner.get() }
    }
}

impl Set {
    pub fn new(ep: i32) -> Set {
        Set {
            lock: headwater_channel::lock::Lock::new(),
            inner: UnsafeCell::new(Inner::new(ep)),
            generation: AtomicU32::new(1),
            refs: AtomicU32::new(1),
            carried: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            refused: AtomicU32::new(0),
            learner: Learner::new(),
        }
    }

    pub fn held(&self) -> Held<'_> {
        Held {
            _section: process::lock(&self.lock),
            set: self,
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
        self.refused.store(0, Ordering::Relaxed);
        self.waiters.store(0, Ordering::Relaxed);
        true
    }

    pub fn retain(&self) {
        self.refs.fetch_add(1, Ordering::AcqRel);
    }

    pub fn release(&self) {
        if self.refs.load(Ordering::Acquire) == 1 {
            let mut inner = self.held();
            inner.disarm_all();
            self.carried.store(0, Ordering::Release);
            let g = self.generation.load(Ordering::Relaxed);
            self.generation
                .store((g + 1) & 0xff_ffff, Ordering::Release);
        }
        self.refs.fetch_sub(1, Ordering::AcqRel);
    }

    pub fn inherited(&self) {
        self.refused.store(1, Ordering::Relaxed);
        self.waiters.store(0, Ordering::Relaxed);
    }

    pub fn hold(&self) {
        core::mem::forget(process::lock(&self.lock));
    }

    pub fn let_go(&self) {
        // Both in the parent and in the child, whose copy of the lock is its own.
        self.lock.unlock();
        process::end_section();
    }

    pub fn allows(&self, fd: i32) -> bool {
        let inner = self.held();
        match inner.find(fd) {
            Some(i) => {
                self.refused.load(Ordering::Relaxed) == 0
                    && inner.regs[i].events & libc::EPOLLEXCLUSIVE as u32 == 0
            }
            None => true,
        }
    }

    /// A plain registration's connection is now carried.
    pub fn carry(&self, fd: i32) {
        let mut inner = self.held();
        let Some(i) = inner.find(fd) else { return };
        if inner.regs[i].carried {
            return;
        }
        if inner.make_carried(i, EPOLL_CTL_MOD).is_ok() {
            self.carried.fetch_add(1, Ordering::AcqRel);
            self.announce(&mut inner, i);
        }
    }

    pub fn forget(&self, fd: i32) {
        let mut inner = self.held();
        if let Some(i) = inner.find(fd) {
            self.remove(&mut inner, i);
        }
    }

    fn remove(&self, inner: &mut Inner, i: usize) {
        if inner.regs[i].carried {
            self.carried.fetch_sub(1, Ordering::AcqRel);
        }
        inner.remove(i);
    }

    /// epoll_ctl(2) for a set we look after.
    ///
    /// # Safety
    /// `event` is null or valid.
    pub unsafe fn ctl(
        &self,
        op: i32,
        fd: i32,
        event: *mut epoll_event,
        tracked: Option<(Handle, &'static dyn Descriptor)>,
    ) -> sys::Result<()> {
        let mut inner = self.held();
        let ep = inner.ep;
        let known = inner.find(fd);
        match (op, known, tracked) {
            (EPOLL_CTL_ADD, None, Some((h, d))) if !event.is_null() => {
                let carried = d.bell(h).is_some() && self.refused.load(Ordering::Relaxed) == 0;
                let i = inner.insert(Reg::new(fd, h, d, &*event));
                let added = if carried {
                    inner.make_carried(i, EPOLL_CTL_ADD)
                } else {
                    sys::epoll_ctl(ep, op, fd, event)
                };
                if let Err(e) = added {
                    inner.remove(i);
                    return Err(e);
                }
                if carried {
                    self.carried.fetch_add(1, Ordering::AcqRel);
                    self.announce(&mut inner, i);
                }
                Ok(())
            }
            (EPOLL_CTL_MOD, Some(i), _) if !event.is_null() => {
                let (events, data) = ((*event).events, (*event).u64);
                let reg = &mut inner.regs[i];
                if !reg.carried {
                    sys::epoll_ctl(ep, op, fd, event)?;
                    let reg = &mut inner.regs[i];
                    (reg.events, reg.data) = (events, data);
                    return Ok(());
                }
                let again = (events | reg.events) & (ET | ONESHOT) != 0;
                inner.disarm(i);
                let reg = &mut inner.regs[i];
                (reg.events, reg.data) = (events, data);
                reg.disabled = false;
                reg.reported = (u64::MAX, u64::MAX);
                inner.watch(i, again)?;
                self.announce(&mut inner, i);
                Ok(())
            }
            (EPOLL_CTL_DEL, Some(i), _) => {
                let done = sys::epoll_ctl(ep, op, fd, event);
                if done.is_ok() {
                    self.remove(&mut inner, i);
                }
                done
            }
            _ => sys::epoll_ctl(ep, op, fd, event),
        }
    }

    /// A registration is new or changed: the next `wait` looks at it, or a thread that sleeps already is rung.
    fn announce(&self, inner: &mut Inner, i: usize) {
        if self.waiters.load(Ordering::SeqCst) == 0 {
            inner.heat(i);
        } else {
            inner.cool(i);
        }
    }

    /// Is anything hot ready? Arms nothing.
    pub fn any_ready(&self) -> bool {
        let mut inner = self.held();
        let hot = inner.hot.clone();
        hot.iter().any(|&i| inner.evaluate(i as usize, false) != 0)
    }

    /// Leaves nothing hot; whatever is ready rings its own bell.
    pub fn arm_hot(&self) {
        let mut inner = self.held();
        inner.cool_all();
    }
}

impl Reg {
    fn new(fd: i32, h: Handle, d: &'static dyn Descriptor, event: &epoll_event) -> Reg {
        Reg {
            fd,
            h,
            d: Some(d),
            events: event.events,
            data: event.u64,
            kernel: 0,
            carried: false,
            hot: false,
            armed: false,
            disabled: false,
            misses: 0,
            reported: (u64::MAX, u64::MAX),
            bell: -1,
            generation: 0,
            batch: (0, 0),
        }
    }

    fn descriptor(&self) -> &'static dyn Descriptor {
        self.d.expect("a live registration")
    }

    fn want(&self) -> u32 {
        self.events & !MODES
    }
}

impl Inner {
    fn new(ep: i32) -> Inner {
        Inner {
            ep,
            by_fd: Vec::new(),
            regs: Vec::new(),
            free: Vec::new(),
            hot: Vec::new(),
            next_generation: 1,
            calls: 0,
        }
    }

    pub fn ep(&self) -> i32 {
        self.ep
    }

    pub fn find(&self, fd: i32) -> Option<usize> {
        match self.by_fd.get(fd as usize) {
            Some(&slot) if slot > 0 => Some(slot as usize - 1),
            _ => None,
        }
    }

    /// The registration that a tag names, unless it has gone.
    pub fn tagged(&self, tag: Tag) -> Option<usize> {
        self.find(tag.fd())
            .filter(|&i| self.regs[i].generation & 0x7_ffff == tag.generation())
    }

    fn insert(&mut self, mut reg: Reg) -> usize {
        reg.generation = self.next_generation;
        self.next_generation = self.next_generation.wrapping_add(1);
        let fd = reg.fd as usize;
        if self.by_fd.len() <= fd {
            self.by_fd.resize(fd + 1, 0);
        }
        let i = match self.free.pop() {
            Some(i) => {
                self.regs[i as usize] = reg;
                i as usize
            }
            None => {
                self.regs.push(reg);
                self.regs.len() - 1
            }
        };
        self.by_fd[fd] = i as u32 + 1;
        i
    }

    fn remove(&mut self, i: usize) {
        self.disarm(i);
        let reg = self.regs[i];
        if reg.hot {
            self.hot.retain(|&j| j as usize != i);
        }
        if reg.bell >= 0 {
            // SAFETY: DEL takes no event.
            let _ =
                unsafe { sys::epoll_ctl(self.ep, EPOLL_CTL_DEL, reg.bell, core::ptr::null_mut()) };
        }
        self.by_fd[reg.fd as usize] = 0;
        self.regs[i].d = None;
        self.regs[i].carried = false;
        self.free.push(i as u32);
    }

    /// Registers shadow and bell under our tags.
    fn make_carried(&mut self, i: usize, op: i32) -> sys::Result<()> {
        let reg = &mut self.regs[i];
        let Some(bell) = reg.descriptor().bell(reg.h) else {
            return Err(libc::ENOENT);
        };
        let (generation, fd) = (reg.generation, reg.fd);
        let mut event = epoll_event {
            events: ET | libc::EPOLLIN as u32,
            u64: Tag::new(true, generation, fd).0,
        };
        // SAFETY: event is valid.
        unsafe { sys::epoll_ctl(self.ep, EPOLL_CTL_ADD, bell, &mut event) }?;
        reg.bell = bell;
        reg.carried = true;
        if let Err(e) = self.register(i, op) {
            // SAFETY: DEL takes no event.
            let _ = unsafe { sys::epoll_ctl(self.ep, EPOLL_CTL_DEL, bell, core::ptr::null_mut()) };
            let reg = &mut self.regs[i];
            (reg.bell, reg.carried) = (-1, false);
            return Err(e);
        }
        Ok(())
    }

    fn register(&mut self, i: usize, op: i32) -> sys::Result<()> {
        let reg = &mut self.regs[i];
        reg.kernel = reg.descriptor().kernel_events(reg.h, reg.want());
        let mut event = epoll_event {
            events: reg.kernel | reg.events & MODES,
            u64: Tag::new(false, reg.generation, reg.fd).0,
        };
        if reg.disabled {
            event.events = ONESHOT;
        }
        // SAFETY: event is valid.
        unsafe { sys::epoll_ctl(self.ep, op, reg.fd, &mut event) }
    }

    /// Brings the kernel's registration in line with what must be watched there; always when `again`.
    pub fn watch(&mut self, i: usize, again: bool) -> sys::Result<()> {
        let reg = &self.regs[i];
        if !again && reg.descriptor().kernel_events(reg.h, reg.want()) == reg.kernel {
            return Ok(());
        }
        self.register(i, EPOLL_CTL_MOD)
    }

    /// Events that hold by shared memory alone. Taking them counts as reporting, for edge-triggered registrations.
    pub fn evaluate(&mut self, i: usize, take: bool) -> u32 {
        let reg = &mut self.regs[i];
        if reg.disabled || !reg.carried {
            return 0;
        }
        let d = reg.descriptor();
        let mut ready = d.ready(reg.h, reg.want());
        if ready != 0 && reg.events & ET != 0 {
            let edges = d.edges(reg.h);
            if edges.0 == reg.reported.0 {
                ready &= !(libc::EPOLLIN as u32 | libc::EPOLLRDNORM as u32);
            }
            if edges.1 == reg.reported.1 {
                ready &= !(libc::EPOLLOUT as u32 | libc::EPOLLWRNORM as u32);
            }
            if take && ready & libc::EPOLLIN as u32 != 0 {
                reg.reported.0 = edges.0;
            }
            if take && ready & libc::EPOLLOUT as u32 != 0 {
                reg.reported.1 = edges.1;
            }
        }
        ready
    }

    /// The program is told of this registration.
    pub fn fired(&mut self, i: usize, by_kernel: bool) {
        if self.regs[i].events & ONESHOT != 0 {
            self.regs[i].disabled = true;
            if !by_kernel {
                let _ = self.register(i, EPOLL_CTL_MOD);
            }
        }
    }

    pub fn is_disabled(&self, i: usize) -> bool {
        self.regs[i].disabled
    }

    pub fn heat(&mut self, i: usize) {
        self.disarm(i);
        let reg = &mut self.regs[i];
        reg.misses = 0;
        if !reg.hot {
            reg.hot = true;
            self.hot.push(i as u32);
        }
    }

    /// A hot registration had nothing; true when it has been so for long.
    pub fn missed(&mut self, i: usize) -> bool {
        self.regs[i].misses += 1;
        self.regs[i].misses > PATIENCE
    }

    pub fn hit(&mut self, i: usize) {
        self.regs[i].misses = 0;
    }

    /// Arms one registration; if it is ready nevertheless, its own bell tells whoever sleeps.
    pub fn cool(&mut self, i: usize) {
        self.arm(i);
        fence(Ordering::SeqCst);
        if self.evaluate(i, false) != 0 {
            bell::ring(self.regs[i].bell);
        }
    }

    /// Arms everything hot and looks again once all are armed; true if something is ready, which then stays hot.
    pub fn arm_and_look(&mut self) -> bool {
        for n in 0..self.hot.len() {
            let i = self.hot[n] as usize;
            self.arm_only(i);
        }
        fence(Ordering::SeqCst);
        let mut any = false;
        let mut n = 0;
        while n < self.hot.len() {
            let i = self.hot[n] as usize;
            if self.evaluate(i, false) != 0 {
                self.disarm(i);
                any = true;
                n += 1;
            } else {
                self.regs[i].hot = false;
                self.hot.swap_remove(n);
            }
        }
        any
    }

    pub fn cool_all(&mut self) {
        while let Some(&i) = self.hot.last() {
            self.cool(i as usize);
        }
    }

    fn arm(&mut self, i: usize) {
        self.arm_only(i);
        if self.regs[i].hot {
            self.regs[i].hot = false;
            self.hot.retain(|&j| j as usize != i);
        }
    }

    fn arm_only(&mut self, i: usize) {
        let reg = &mut self.regs[i];
        if !reg.armed && reg.carried {
            reg.armed = true;
            reg.descriptor().arm(reg.h, reg.want());
        }
    }

    fn disarm(&mut self, i: usize) {
        let reg = &mut self.regs[i];
        if reg.armed {
            reg.armed = false;
            reg.descriptor().disarm(reg.h, reg.want());
        }
    }

    fn disarm_all(&mut self) {
        for i in 0..self.regs.len() {
            if self.regs[i].d.is_some() {
                self.disarm(i);
                // The bell was registered in the set that is now gone with its descriptor.
                self.regs[i].bell = -1;
            }
        }
        self.hot.clear();
    }
}
