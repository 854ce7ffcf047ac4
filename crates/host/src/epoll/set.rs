//! One set: its registrations, and how they move between hot and armed. Everything in [`Inner`] is under the set's lock.

use core::cell::UnsafeCell;

use headwater_channel::bell;
use headwater_channel::wait::Learner;
use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, epoll_event};

use super::{ET, MODES, ONESHOT, Tag};
use crate::process::{self, Section};
use crate::sync::{AtomicI32, AtomicU32, Ordering, fence};
use crate::sys;
use crate::table::{Descriptor, Handle, Kind};

/// The kind of descriptor that a set is; see the `Descriptor` implementation.
pub struct Sets;

/// Registered with every shadow, whatever the program asks for: asking again then needs no system call.
const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
const USUAL: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32;

/// A registration goes cold after this many looks in vain.
const PATIENCE: u32 = 100;

pub struct Set {
    /// Its descriptor, also readable without the lock.
    pub ep: AtomicI32,
    lock: headwater_channel::lock::Lock,
    inner: UnsafeCell<Inner>,
    generation: AtomicU32,
    refs: AtomicU32,
    /// Registrations that are ours to know; while there are none, waiting is the kernel's alone.
    pub members: AtomicU32,
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
    /// Something armed in it waits for room.
    waits_for_room: bool,
    /// One description may be in it under several numbers.
    pub duplicates: bool,
}

#[derive(Clone, Copy)]
pub struct Reg {
    pub fd: i32,
    pub h: Handle,
    pub d: Option<&'static dyn Descriptor>,
    /// As the program asked, modes included.
    pub events: u32,
    pub data: u64,
    /// It has been registered under our tag once.
    known: bool,
    /// What is registered in the kernel for the shadow, modes included; `None`: it is not registered.
    kernel: Option<u32>,
    pub carried: bool,
    /// The program took it out; kept in the kernel for the next time, since programs do so for each request.
    parked: bool,
    hot: bool,
    armed: bool,
    /// ONESHOT that has fired.
    disabled: bool,
    misses: u32,
    reported: (u64, u64),
    bell: i32,
    /// The bell is registered under this registration's tag (not under that of a duplicate in the same set).
    rings: bool,
    /// Its descriptor number is closed while the description lives on by another: the kernel keeps it, out of reach.
    orphan: bool,
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
            ep: AtomicI32::new(ep),
            lock: headwater_channel::lock::Lock::new(),
            inner: UnsafeCell::new(Inner::new(ep)),
            generation: AtomicU32::new(1),
            refs: AtomicU32::new(1),
            members: AtomicU32::new(0),
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
        self.ep.store(ep, Ordering::Relaxed);
        self.refused.store(0, Ordering::Relaxed);
        self.members.store(0, Ordering::Relaxed);
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
        if inner.regs[i].carried || inner.regs[i].d.is_none() {
            return;
        }
        match inner.make_carried(i, EPOLL_CTL_MOD) {
            Ok(()) => self.announce(&mut inner, i),
            // It was closed and opened anew outside this set.
            Err(_) => inner.remove(i),
        }
    }

    pub fn forget(&self, fd: i32) {
        let mut inner = self.held();
        if let Some(i) = inner.find(fd) {
            inner.remove(i);
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
            self.members.store(inner.members(), Ordering::SeqCst);
        }
    }

    pub fn orphan(&self, fd: i32) {
        self.held().orphan(fd);
    }

    /// Sets in this set: what is hot in them is not known to the kernel.
    pub fn arm_nested(&self) {
        let nested: Vec<Handle> = {
            let inner = self.held();
            let sets = inner
                .regs
                .iter()
                .filter(|r| r.d.is_some() && r.h.kind() == Kind::Epoll);
            sets.map(|r| r.h).collect()
        };
        for h in nested {
            super::arm_set(h);
        }
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
        let mut known = inner.find(fd);
        if let (EPOLL_CTL_ADD, Some(i)) = (op, known)
            && inner.regs[i].orphan
        {
            // The number is another description's by now.
            inner.remove(i);
            known = None;
        }
        if let (EPOLL_CTL_ADD, Some(i)) = (op, known)
            && !inner.regs[i].parked
            && !event.is_null()
        {
            // EEXIST, unless the number was closed as a foreign one and is another socket's now: the kernel knows.
            sys::epoll_ctl(ep, op, fd, event)?;
            let _ = sys::epoll_ctl(ep, EPOLL_CTL_DEL, fd, event);
            inner.remove(i);
            known = None;
        }
        match (op, known, tracked) {
            (EPOLL_CTL_ADD, None, None) if !event.is_null() => {
                sys::epoll_ctl(ep, op, fd, event)?;
                // It may be connected later, and taken over then.
                inner.insert(Reg::new(fd, None, &*event));
                Ok(())
            }
            (EPOLL_CTL_ADD, Some(i), Some((h, d)))
                if inner.regs[i].parked && !event.is_null() && (*event).events & EXCLUSIVE == 0 =>
            {
                let reg = &mut inner.regs[i];
                (reg.h, reg.d, reg.parked) = (h, Some(d), false);
                self.change(&mut inner, i, &*event)
            }
            (EPOLL_CTL_MOD | EPOLL_CTL_DEL, Some(i), _) if inner.regs[i].parked => {
                Err(libc::ENOENT)
            }
            (EPOLL_CTL_ADD, None, Some((h, d))) if !event.is_null() => {
                let carried = d.bell(h).is_some() && self.refused.load(Ordering::Relaxed) == 0;
                let i = inner.insert(Reg::new(fd, Some((h, d)), &*event));
                let added = if carried {
                    inner.make_carried(i, EPOLL_CTL_ADD)
                } else {
                    sys::epoll_ctl(ep, op, fd, event)
                };
                if let Err(e) = added {
                    inner.remove(i);
                    return Err(e);
                }
                self.members.store(inner.members(), Ordering::SeqCst);
                if carried {
                    self.announce(&mut inner, i);
                }
                Ok(())
            }
            (EPOLL_CTL_MOD, Some(i), _) if !event.is_null() => {
                if !inner.regs[i].carried {
                    sys::epoll_ctl(ep, op, fd, event)?;
                    let reg = &mut inner.regs[i];
                    (reg.events, reg.data) = ((*event).events, (*event).u64);
                    return Ok(());
                }
                self.change(&mut inner, i, &*event)
            }
            (EPOLL_CTL_DEL, Some(i), _) => {
                if inner.regs[i].carried && inner.regs[i].events & EXCLUSIVE == 0 {
                    inner.park(i);
                    return Ok(());
                }
                let done = sys::epoll_ctl(ep, op, fd, event);
                if done.is_ok() {
                    inner.remove(i);
                }
                done
            }
            _ => sys::epoll_ctl(ep, op, fd, event),
        }
    }

    /// The program asks for other events, or for the same ones anew.
    fn change(&self, inner: &mut Inner, i: usize, event: &epoll_event) -> sys::Result<()> {
        if (event.events | inner.regs[i].events) & EXCLUSIVE != 0 {
            return Err(libc::EINVAL);
        }
        inner.disarm(i);
        let reg = &mut inner.regs[i];
        let again = (event.events | reg.events) & (ET | ONESHOT) != 0;
        (reg.events, reg.data) = (event.events, event.u64);
        reg.disabled = false;
        reg.reported = (u64::MAX, u64::MAX);
        inner.watch(i, again)?;
        self.announce(inner, i);
        Ok(())
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
    fn new(
        fd: i32,
        tracked: Option<(Handle, &'static dyn Descriptor)>,
        event: &epoll_event,
    ) -> Reg {
        Reg {
            fd,
            h: tracked.map_or(Handle::FOREIGN, |t| t.0),
            d: tracked.map(|t| t.1),
            events: event.events,
            data: event.u64,
            known: false,
            kernel: None,
            carried: false,
            parked: false,
            hot: false,
            armed: false,
            disabled: false,
            misses: 0,
            reported: (u64::MAX, u64::MAX),
            bell: -1,
            rings: false,
            orphan: false,
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

    fn is_live(&self) -> bool {
        self.d.is_some() && self.carried && !self.parked && !self.disabled
    }

    fn slice(&self) -> Option<u64> {
        if self.is_live() {
            self.descriptor().slice(self.h, self.want())
        } else {
            None
        }
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
            waits_for_room: false,
            duplicates: false,
        }
    }

    fn members(&self) -> u32 {
        self.regs.iter().filter(|r| r.d.is_some()).count() as u32
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
        self.by_fd[reg.fd as usize] = 0;
        self.regs[i].d = None;
        self.regs[i].carried = false;
        self.free.push(i as u32);
        if reg.rings {
            self.delete(reg.bell);
            // A duplicate in this set goes on with it.
            if let Some(j) = self.same(reg.h).next() {
                let _ = self.add_bell(j, reg.bell);
            }
        }
    }

    /// The live registrations of one description.
    pub fn same(&self, h: Handle) -> impl Iterator<Item = usize> + use<> {
        let same = |r: &Reg| r.d.is_some() && r.carried && r.h == h;
        let list: Vec<usize> = (0..self.regs.len())
            .filter(|&j| same(&self.regs[j]))
            .collect();
        list.into_iter()
    }

    fn delete(&self, fd: i32) {
        // SAFETY: DEL takes no event.
        let _ = unsafe { sys::epoll_ctl(self.ep, EPOLL_CTL_DEL, fd, core::ptr::null_mut()) };
    }

    fn add_bell(&mut self, i: usize, bell: i32) -> sys::Result<()> {
        let reg = &mut self.regs[i];
        let mut event = epoll_event {
            events: ET | libc::EPOLLIN as u32,
            u64: Tag::new(true, reg.generation, reg.fd).0,
        };
        reg.bell = bell;
        // SAFETY: event is valid.
        match unsafe { sys::epoll_ctl(self.ep, EPOLL_CTL_ADD, bell, &mut event) } {
            Ok(()) => reg.rings = true,
            Err(libc::EEXIST) => self.duplicates = true,
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// The number of a registration is about to be closed while others remain for its description.
    pub fn orphan(&mut self, fd: i32) {
        if let Some(i) = self.find(fd) {
            self.regs[i].orphan = true;
        }
    }

    /// Registers shadow and bell under our tags.
    fn make_carried(&mut self, i: usize, op: i32) -> sys::Result<()> {
        let reg = &mut self.regs[i];
        let Some(bell) = reg.descriptor().bell(reg.h) else {
            return Err(libc::ENOENT);
        };
        reg.carried = true;
        let added = self.add_bell(i, bell).and_then(|()| {
            let needed = self.needed(i);
            self.register(i, op, needed | self.usual(i))
        });
        if added.is_err() {
            let reg = &mut self.regs[i];
            reg.carried = false;
            if core::mem::take(&mut reg.rings) {
                self.delete(bell);
            }
        }
        added
    }

    /// What the kernel must watch on the shadow.
    fn needed(&self, i: usize) -> u32 {
        let reg = &self.regs[i];
        let needed = reg.descriptor().kernel_events(reg.h, reg.want());
        // The kernel refuses RDHUP beside EXCLUSIVE, which only the program itself may then have asked for.
        if reg.events & EXCLUSIVE != 0 {
            needed & (reg.want() | !(libc::EPOLLRDHUP as u32))
        } else {
            needed
        }
    }

    fn usual(&self, i: usize) -> u32 {
        if self.regs[i].events & EXCLUSIVE != 0 {
            0
        } else {
            USUAL
        }
    }

    fn register(&mut self, i: usize, mut op: i32, readiness: u32) -> sys::Result<()> {
        if self.regs[i].orphan {
            return Ok(());
        }
        if self.regs[i].events & EXCLUSIVE != 0 && op == EPOLL_CTL_MOD {
            // Which cannot be modified.
            self.delete(self.regs[i].fd);
            op = EPOLL_CTL_ADD;
        }
        let reg = &mut self.regs[i];
        let wanted = if reg.disabled {
            ONESHOT
        } else {
            readiness | reg.events & MODES
        };
        let mut event = epoll_event {
            events: wanted,
            u64: Tag::new(false, reg.generation, reg.fd).0,
        };
        let op = if reg.kernel.is_none() && reg.carried && op == EPOLL_CTL_MOD && reg.known {
            EPOLL_CTL_ADD
        } else {
            op
        };
        // SAFETY: event is valid.
        unsafe { sys::epoll_ctl(self.ep, op, reg.fd, &mut event) }?;
        reg.kernel = Some(wanted);
        reg.known = true;
        Ok(())
    }

    /// Brings the kernel's registration in line with what must be watched there; always when `again`. More than that may
    /// be registered: see [`narrow`](Inner::narrow).
    pub fn watch(&mut self, i: usize, again: bool) -> sys::Result<()> {
        let needed = self.needed(i);
        let reg = &self.regs[i];
        let enough = reg
            .kernel
            .is_some_and(|k| k & needed == needed && k & MODES == reg.events & MODES);
        if enough && !again {
            return Ok(());
        }
        self.register(i, EPOLL_CTL_MOD, needed | self.usual(i))
    }

    /// The kernel reported what the program did not ask for: register no more than is needed, so that it stays quiet.
    pub fn narrow(&mut self, i: usize) {
        let reg = &self.regs[i];
        if reg.parked {
            // SAFETY: DEL takes no event.
            let _ =
                unsafe { sys::epoll_ctl(self.ep, EPOLL_CTL_DEL, reg.fd, core::ptr::null_mut()) };
            self.regs[i].kernel = None;
            return;
        }
        let needed = reg.descriptor().kernel_events(reg.h, reg.want());
        if reg.kernel != Some(needed | reg.events & MODES) {
            let _ = self.register(i, EPOLL_CTL_MOD, needed);
        }
    }

    fn park(&mut self, i: usize) {
        self.disarm(i);
        self.regs[i].parked = true;
        if self.regs[i].hot {
            self.regs[i].hot = false;
            self.hot.retain(|&j| j as usize != i);
        }
    }

    /// Events that hold by shared memory alone. Taking them counts as reporting, for edge-triggered registrations.
    pub fn evaluate(&mut self, i: usize, take: bool) -> u32 {
        let reg = &mut self.regs[i];
        if reg.disabled || reg.parked || !reg.carried {
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
            if ready & libc::EPOLLIN as u32 == 0 {
                // The kernel reports that edge itself.
                ready &= !(libc::EPOLLRDHUP as u32);
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
                let _ = self.register(i, EPOLL_CTL_MOD, 0);
            }
        }
    }

    pub fn is_silent(&self, i: usize) -> bool {
        self.regs[i].disabled || self.regs[i].parked
    }

    pub fn heat(&mut self, i: usize) {
        self.disarm(i);
        if self.regs[i].parked {
            return;
        }
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

    /// Arms everything hot for a sleep and looks again; true if something is ready. They stay on the hot list.
    pub fn arm_and_look(&mut self) -> bool {
        for n in 0..self.hot.len() {
            self.arm_only(self.hot[n] as usize);
        }
        fence(Ordering::SeqCst);
        (0..self.hot.len()).any(|n| self.evaluate(self.hot[n] as usize, false) != 0)
    }

    /// How long a sleep may last. Hot registrations whose end is shared, and those that wait for room anywhere in the set.
    pub fn slice(&mut self) -> Option<u64> {
        let hot = self.hot.iter().map(|&i| i as usize);
        let shared = hot.filter_map(|i| self.regs[i].slice()).min();
        if !self.waits_for_room {
            return shared;
        }
        let room = self.regs.iter().filter_map(Reg::slice).min();
        self.waits_for_room = room.is_some();
        room
    }

    /// A sleep lasted its slice: what waits for room may have to go on by the kernel.
    pub fn slice_over(&mut self) {
        if self.waits_for_room {
            for i in 0..self.regs.len() {
                let reg = &self.regs[i];
                if reg.is_live() && reg.want() & libc::EPOLLOUT as u32 != 0 {
                    reg.descriptor().slice_over(reg.h, reg.want());
                    let _ = self.watch(i, false);
                }
            }
        }
    }

    /// After a sleep of the only sleeper: the hot ones are looked at again, so nobody needs to ring for them.
    pub fn disarm_hot(&mut self) {
        for n in 0..self.hot.len() {
            self.disarm(self.hot[n] as usize);
        }
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
        if self.regs[i].carried {
            // The direction may have moved since the kernel was last told what to watch.
            let _ = self.watch(i, false);
        }
        let reg = &mut self.regs[i];
        if !reg.armed && reg.carried {
            reg.armed = true;
            reg.descriptor().arm(reg.h, reg.want());
            self.waits_for_room |= reg.want() & libc::EPOLLOUT as u32 != 0;
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
