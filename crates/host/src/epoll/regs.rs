//! The registrations of a set, and how they move between hot and armed. All under the set's lock.

use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, epoll_event};

use super::edges::Last;
use super::fdinfo;
use super::{ET, MODES, ONESHOT, Tag};
use crate::counters::{self, Reason};
use crate::poll::KERNEL_AFTER;
use crate::sync::{Ordering, fence};
use crate::sys;
use crate::table::{Descriptor, Handle, Kind};

pub const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
/// Registered with every shadow, whatever the program asks for: asking again then needs no system call.
const USUAL: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32;

/// A registration goes cold after this many looks in vain.
const PATIENCE: u32 = 100;

pub struct Inner {
    pub ep: i32,
    /// Slot + 1 by descriptor number.
    pub by_fd: Vec<u32>,
    pub regs: Vec<Reg>,
    pub free: Vec<u32>,
    /// Slots that are hot.
    pub hot: Vec<u32>,
    /// The latest slot whose bell was registered.
    pub belled: Option<u32>,
    pub next_generation: u32,
    /// Which look at the set this is: a registration has one event in each.
    pub batch: u32,
    /// How much the kernel has told once that is kept: whoever waits on what holds this set is told of it.
    pub news: u64,
    /// When the kernel was asked last.
    pub looked: u64,
    kernel_first: bool,
    /// Which of the kernel's events is told first where there is not room for all.
    pub turn: usize,
    /// Which of the hot ones.
    pub scan_turn: usize,
    /// What the kernel had to tell was taken out, and is kept.
    pub collected: bool,
    /// The kernel is asked once more in one look.
    pub asks_again: bool,
    /// The kernel has told of what another process has put in.
    pub strange: bool,
    /// When it is looked next for registrations of other processes.
    pub strangers_due: u64,
    /// One is new, and what the kernel says of it is part of the first edge: it comes first.
    pub is_new: bool,
    /// Something armed in it waits for room.
    pub waits_for_room: bool,
    /// One description may be in it under several numbers.
    pub duplicates: bool,
    /// Numbers of some were closed.
    pub orphans: bool,
    /// Some are mute: they are looked at again and again.
    pub mutes: bool,
    /// Some are sets.
    has_sets: bool,
    /// Other processes may have it.
    pub shared: bool,
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
    pub known: bool,
    /// What is registered in the kernel for the shadow, modes included; `None`: it is not registered.
    pub kernel: Option<u32>,
    pub carried: bool,
    /// The program took it out; kept in the kernel for the next time, since programs do so for each request.
    pub parked: bool,
    pub hot: bool,
    pub armed: bool,
    /// ONESHOT that has fired.
    pub disabled: bool,
    /// ONESHOT that the kernel has as an edge-triggered one, and we disable: looked at from another set, it is not to be
    /// registered anew each time.
    by_edge: bool,
    pub misses: u32,
    pub last: Last,
    /// What the kernel has reported to a look that told nobody, where it can't be made to say it again.
    pub kept: u32,
    pub bell: i32,
    /// The bell is registered under this registration's tag (not under that of a duplicate in the same set).
    pub rings: bool,
    /// The kernel had no room for the bell.
    pub mute: bool,
    /// Its descriptor number is closed while the description lives on by another: the kernel keeps it, out of reach.
    pub orphan: bool,
    pub generation: u32,
    /// Index of the event of the current batch, and which batch.
    pub batch: (u32, u32),
}

/// What a look from outside has found.
enum Found {
    /// The program would be told.
    Told,
    /// Nothing, or what is kept.
    Kept,
    /// What is kept, and our registration anew brings it once more.
    Posted,
}

/// How long a sleep lasts where the kernel has no room for a bell.
const MUTE_SLICE: u64 = 5_000_000;

impl Reg {
    pub fn new(
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
            by_edge: false,
            misses: 0,
            last: Last::nothing(),
            kept: 0,
            bell: core::hint::black_box(-1),
            rings: false,
            mute: false,
            orphan: false,
            generation: 0,
            batch: (0, 0),
        }
    }

    pub fn descriptor(&self) -> &'static dyn Descriptor {
        self.d.expect("a live registration")
    }

    pub fn want(&self) -> u32 {
        self.events & !MODES
    }

    /// The modes that the kernel has it in, while it is not disabled.
    fn modes(&self) -> u32 {
        match self.by_edge {
            true => self.events & MODES & !ONESHOT | ET,
            false => self.events & MODES,
        }
    }

    /// The program asks for other events.
    pub fn ask(&mut self, event: &epoll_event) {
        (self.events, self.data) = (event.events, event.u64);
        self.disabled = false;
        self.by_edge &= self.events & ONESHOT != 0;
        (self.last, self.kept) = (Last::nothing(), 0);
    }

    pub fn is_live(&self) -> bool {
        self.d.is_some() && self.carried && !self.parked && !self.disabled
    }

    pub fn slice(&self) -> Option<u64> {
        if self.is_live() {
            self.descriptor().slice(self.h, self.want())
        } else {
            None
        }
    }
}

impl Inner {
    pub fn new(ep: i32) -> Inner {
        Inner {
            ep,
            by_fd: Vec::new(),
            regs: Vec::new(),
            free: Vec::new(),
            hot: Vec::new(),
            belled: None,
            next_generation: 1,
            batch: 0,
            news: 0,
            looked: 0,
            kernel_first: false,
            turn: 0,
            scan_turn: 0,
            is_new: false,
            collected: false,
            asks_again: false,
            strange: false,
            strangers_due: 0,
            waits_for_room: false,
            duplicates: false,
            orphans: false,
            mutes: false,
            has_sets: false,
            shared: false,
        }
    }

    pub fn ep(&self) -> i32 {
        self.ep
    }

    /// Before a look.
    pub fn begin(&mut self) {
        // Registrations begin with 0.
        self.batch = self.batch.wrapping_add(1).max(1);
    }

    /// Was the kernel not asked for a while?
    pub fn is_due(&self) -> bool {
        self.is_new || self.was_unasked(KERNEL_AFTER)
    }

    /// For so long, in nanoseconds?
    pub fn was_unasked(&self, ns: u64) -> bool {
        sys::now().saturating_sub(self.looked) >= ns
    }

    /// Does the kernel come before the hot registrations this time?
    pub fn comes_first(&mut self) -> bool {
        self.kernel_first = !self.kernel_first;
        self.kernel_first || self.is_new
    }

    pub fn find(&self, fd: i32) -> Option<usize> {
        match self.by_fd.get(fd as usize) {
            Some(&slot) if slot > 0 => Some(slot as usize - 1),
            _ => None,
        }
    }

    /// That of what has the number now.
    pub fn find_own(&self, fd: i32) -> Option<usize> {
        self.find(fd).filter(|&i| !self.regs[i].orphan)
    }

    /// The registration that a tag names, unless it has gone.
    pub fn tagged(&self, tag: Tag) -> Option<usize> {
        self.find(tag.fd())
            .filter(|&i| self.regs[i].generation & 0x7_ffff == tag.generation())
    }

    pub fn insert(&mut self, mut reg: Reg) -> usize {
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

    pub fn remove(&mut self, i: usize) {
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

    /// The kernel's registration is the program's own from here on.
    pub fn surrender(&mut self, i: usize) {
        let reg = self.regs[i];
        if reg.carried {
            match reg.orphan {
                true => self.reach(i),
                false => self.give_back(i, reg.kernel.is_some()),
            }
        }
        self.remove(i);
    }

    /// A registration whose number is closed, under that number: its description has others.
    fn reach(&mut self, i: usize) {
        let reg = self.regs[i];
        let other = crate::table::entries().find(|&(fd, h)| h == reg.h && fd != reg.fd);
        let Some((other, _)) = other else { return };
        let Ok(fd) = sys::dup_above(other, reg.fd) else {
            return;
        };
        if fd == reg.fd {
            if reg.events & ET != 0 {
                counters::note(Reason::ToldAgain);
            }
            let mut event = epoll_event {
                events: reg.events,
                u64: reg.data,
            };
            // SAFETY: event is valid.
            let _ = unsafe { sys::epoll_ctl(self.ep, EPOLL_CTL_MOD, fd, &mut event) };
        }
        let _ = sys::close(fd);
    }

    /// The live registrations of one description.
    pub fn same(&self, h: Handle) -> impl Iterator<Item = usize> + use<> {
        let same = |r: &Reg| r.d.is_some() && r.carried && r.h == h;
        let list: Vec<usize> = (0..self.regs.len())
            .filter(|&j| same(&self.regs[j]))
            .collect();
        list.into_iter()
    }

    pub fn delete(&self, fd: i32) {
        // SAFETY: DEL takes no event.
        let _ = unsafe { sys::epoll_ctl(self.ep, EPOLL_CTL_DEL, fd, core::ptr::null_mut()) };
    }

    pub fn add_bell(&mut self, i: usize, bell: i32) -> sys::Result<()> {
        let reg = &mut self.regs[i];
        let mut event = epoll_event {
            events: ET | libc::EPOLLIN as u32,
            u64: Tag::new(true, reg.generation, reg.fd).0,
        };
        reg.bell = bell;
        // SAFETY: event is valid.
        match unsafe { sys::epoll_ctl(self.ep, EPOLL_CTL_ADD, bell, &mut event) } {
            Ok(()) => {
                reg.rings = true;
                self.belled = Some(i as u32);
            }
            Err(libc::EEXIST) => self.duplicates = true,
            Err(libc::ENOMEM | libc::ENOSPC) => {
                (reg.mute, self.mutes) = (true, true);
                counters::note(Reason::NoMemory);
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// The number of a registration is about to be closed while others remain for its description.
    pub fn orphan(&mut self, fd: i32) {
        if let Some(i) = self.find(fd) {
            self.orphans = true;
            self.regs[i].orphan = true;
        }
    }

    /// Registers shadow and bell under our tags. A set has no bell: the kernel knows when one of its members is rung.
    pub fn make_carried(&mut self, i: usize, op: i32) -> sys::Result<()> {
        let reg = &mut self.regs[i];
        if reg.h.kind() == Kind::Epoll {
            reg.carried = true;
            self.has_sets = true;
            let want = self.regs[i].want();
            let added = self.register(i, op, want);
            self.regs[i].carried = added.is_ok();
            return added;
        }
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
    pub fn needed(&self, i: usize) -> u32 {
        let reg = &self.regs[i];
        let needed = reg.descriptor().kernel_events(reg.h, reg.want());
        // The kernel refuses all but these two beside EXCLUSIVE; what the program itself asked for it has judged.
        if reg.events & EXCLUSIVE != 0 {
            needed & (reg.want() | (libc::EPOLLIN | libc::EPOLLOUT) as u32)
        } else {
            needed
        }
    }

    /// What is registered beside what is needed.
    pub fn usual(&self, i: usize) -> u32 {
        let reg = &self.regs[i];
        if reg.events & EXCLUSIVE != 0 || reg.h.kind() == Kind::Epoll {
            0
        } else {
            USUAL
        }
    }

    /// Leaves a registration to the kernel as the program says, if another process that shares the set may have changed it.
    pub fn let_apart(&mut self, i: usize) -> bool {
        let ep = self.ep;
        self.let_apart_if(i, |fd, ours| fdinfo::has(ep, fd, |_, data| data == ours))
    }

    /// The same; `there` says whether the kernel has a number's registration with that data still.
    pub fn let_apart_if(&mut self, i: usize, there: impl Fn(i32, u64) -> bool) -> bool {
        let reg = self.regs[i];
        let apart = reg.carried && reg.d.is_some_and(|d| d.is_apart(reg.h));
        if apart {
            self.disarm(i);
            self.hot.retain(|&j| j as usize != i);
            if reg.rings {
                self.delete(reg.bell);
            }
            let reg = &mut self.regs[i];
            (reg.carried, reg.hot, reg.rings) = (false, false, false);
            if there(reg.fd, Tag::new(false, reg.generation, reg.fd).0) {
                self.give_back(i, true);
            }
        }
        apart
    }

    /// What the kernel has of a registration, if it is `there`, becomes what the program asked for.
    fn give_back(&self, i: usize, there: bool) {
        let reg = &self.regs[i];
        if reg.parked {
            return self.delete(reg.fd);
        }
        if reg.events & ET != 0 {
            // What holds becomes an edge for the kernel, whatever the program was told.
            counters::note(Reason::ToldAgain);
        }
        self.put(reg, if reg.disabled { MODES } else { u32::MAX }, there);
    }

    /// Registers what the program asked for, as far as `events` go, under the program's data.
    fn put(&self, reg: &Reg, events: u32, there: bool) {
        let mut event = epoll_event {
            events: reg.events & events,
            u64: reg.data,
        };
        let op = match (reg.events & EXCLUSIVE, there) {
            (0, true) => EPOLL_CTL_MOD,
            (0, false) => EPOLL_CTL_ADD,
            _ => {
                // Which cannot be modified.
                self.delete(reg.fd);
                EPOLL_CTL_ADD
            }
        };
        // SAFETY: event is valid.
        let _ = unsafe { sys::epoll_ctl(self.ep, op, reg.fd, &mut event) };
    }

    pub fn register(&mut self, i: usize, mut op: i32, readiness: u32) -> sys::Result<()> {
        if self.regs[i].orphan || self.let_apart(i) {
            return Ok(());
        }
        let ours = op == EPOLL_CTL_MOD;
        if self.regs[i].events & EXCLUSIVE != 0 && ours {
            // Which cannot be modified.
            self.delete(self.regs[i].fd);
            op = EPOLL_CTL_ADD;
        }
        let reg = &mut self.regs[i];
        let wanted = if reg.disabled {
            ONESHOT
        } else {
            readiness | reg.modes()
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
        reg.last.posted = op == EPOLL_CTL_MOD || ours && reg.events & EXCLUSIVE != 0;
        reg.kernel = Some(wanted);
        reg.known = true;
        Ok(())
    }

    /// Brings the kernel's registration in line with what must be watched there; always when `again`. More than that may
    /// be registered: see [`narrow`](Inner::narrow).
    pub fn watch(&mut self, i: usize, again: bool) -> sys::Result<()> {
        let needed = self.needed(i);
        if self.is_watched(i, needed) && !again {
            return Ok(());
        }
        self.register(i, EPOLL_CTL_MOD, needed | self.usual(i))
    }

    fn is_watched(&self, i: usize, needed: u32) -> bool {
        let reg = &self.regs[i];
        let enough = |k: u32| k & needed == needed && k & MODES == reg.modes();
        reg.kernel.is_some_and(enough)
    }

    /// Directions may have moved by calls of this process, for which no bell rings.
    pub fn watch_hot(&mut self) {
        let mut collected = false;
        // From the end: one that has to be left to the kernel goes from the list.
        for n in (0..self.hot.len()).rev() {
            let Some(&i) = self.hot.get(n) else { continue };
            let i = i as usize;
            if !self.regs[i].is_live() || self.is_watched(i, self.needed(i)) {
                continue;
            }
            let reg = &self.regs[i];
            if reg.events & ET != 0 && reg.h.kind() == Kind::Socket && !collected {
                collected = true;
                self.collect();
            }
            let _ = self.watch(i, false);
        }
    }

    /// Takes out what the kernel has to tell before a registration anew makes it say again what it has said.
    fn collect(&mut self) {
        let mut events = [epoll_event { events: 0, u64: 0 }; 16];
        let n = sys::epoll_poll(self.ep, &mut events).unwrap_or(0);
        for event in &events[..n] {
            let shadow = Tag::of(event.u64).filter(|tag| !tag.is_bell());
            match shadow.and_then(|tag| self.tagged(tag)) {
                Some(i) if self.regs[i].events & ET != 0 && !self.regs[i].last.posted => {
                    self.regs[i].kept |= event.events;
                    self.collected = true;
                    self.heat(i);
                }
                _ => {
                    self.keep(event);
                }
            }
        }
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
        if reg.kernel != Some(needed | reg.modes()) {
            let _ = self.register(i, EPOLL_CTL_MOD, needed);
        }
    }

    /// What was taken out is out of the kernel's set, too.
    pub fn unpark(&mut self) {
        for i in 0..self.regs.len() {
            if self.regs[i].d.is_some() && self.regs[i].parked {
                self.narrow(i);
                self.remove(i);
            }
        }
    }

    pub fn park(&mut self, i: usize) {
        self.disarm(i);
        self.regs[i].parked = true;
        if self.regs[i].hot {
            self.regs[i].hot = false;
            self.hot.retain(|&j| j as usize != i);
        }
    }

    /// Sets in this set are looked at each time: no bell of theirs is known here.
    pub fn heat_sets(&mut self) {
        if !self.has_sets {
            return;
        }
        self.has_sets = false;
        for i in 0..self.regs.len() {
            let reg = &self.regs[i];
            if reg.d.is_some() && reg.h.kind() == Kind::Epoll {
                self.has_sets = true;
                if reg.is_live() {
                    self.heat(i);
                }
            }
        }
    }

    /// What it keeps the kernel from telling of this set what a wait would not tell, and what it does report stays to be told. Is
    /// there something that the program would be told?
    pub fn look_behind(&mut self) -> bool {
        self.watch_hot();
        let mut events = [epoll_event { events: 0, u64: 0 }; 16];
        let (mut told, mut has_posted) = (false, false);
        for _ in 0..4 {
            let n = sys::epoll_poll(self.ep, &mut events).unwrap_or(0);
            let mut posted = false;
            for event in &events[..n] {
                match self.found(event) {
                    Found::Told => told = true,
                    Found::Kept => {}
                    Found::Posted => posted = true,
                }
            }
            has_posted |= posted;
            if !posted && (told || n < events.len()) {
                break;
            }
        }
        if has_posted {
            // What holds was heard by the look after that.
            let by_edge = self.regs.iter_mut().filter(|r| r.by_edge);
            by_edge.for_each(|r| r.last.posted = false);
        }
        told
    }

    /// One event that was found by the way. Would the program be told of it?
    pub fn keep(&mut self, event: &epoll_event) -> bool {
        let (events, data) = (event.events, event.u64);
        let Some(tag) = Tag::of(data) else {
            self.post_again(data);
            return true;
        };
        let Some(i) = self.tagged(tag) else {
            return false;
        };
        let reg = self.regs[i];
        let Some(d) = reg.d else { return false };
        if tag.is_bell() {
            self.heat(i);
            d.rung(reg.h);
            let _ = self.watch(i, false);
            if self.duplicates {
                self.same(reg.h).for_each(|j| self.heat(j));
            }
            return false;
        }
        let silent = self.is_silent(i);
        let holds = self.holding(i, events, reg.last.posted);
        self.regs[i].last.posted = false;
        if silent || holds == 0 {
            self.narrow(i);
            return false;
        }
        if reg.orphan || reg.modes() & (ET | ONESHOT) == ET {
            self.keep_edge(i, events, reg.last.posted);
            return false;
        }
        let _ = self.watch(i, reg.events & ONESHOT != 0);
        // It is to be told, whatever it was told of before.
        self.regs[i].last.posted = false;
        true
    }

    /// What the kernel tells once, and has just told us, of a registration that is the program's own. False: it is told always.
    fn post_again(&mut self, data: u64) -> bool {
        let once = |r: &Reg| !r.carried && r.data == data && r.events & (ET | ONESHOT) != 0;
        let mut any = false;
        for (i, reg) in self.regs.iter().enumerate() {
            if once(reg) && self.find(reg.fd) == Some(i) {
                self.put(reg, u32::MAX, true);
                any = true;
            }
        }
        any
    }

    /// What the kernel tells once is kept, and whoever waits on what holds this set is told of it: given back, it would wake them
    /// again and again.
    fn keep_edge(&mut self, i: usize, events: u32, posted: bool) {
        let reg = &mut self.regs[i];
        // What a one-shot registration says because of ours it has said before.
        if !(reg.by_edge && posted) || events & !reg.kept != 0 {
            self.news += 1;
        }
        reg.kept |= events;
        self.heat(i);
        if self.shared {
            // The kernel has told it now, and nobody else will be.
            counters::note(Reason::SharedSet);
        }
    }

    /// One event that was found by a look from outside.
    fn found(&mut self, event: &epoll_event) -> Found {
        let Some(tag) = Tag::of(event.u64) else {
            if self.post_again(event.u64) {
                // To whoever waits by edges on what holds this set.
                counters::note(Reason::ToldAgain);
            }
            return Found::Told;
        };
        let is_once = |&i: &usize| {
            let reg = &self.regs[i];
            let on = reg.carried && !reg.orphan && !self.is_silent(i);
            on && reg.events & ONESHOT != 0 && !reg.by_edge
        };
        let shadow = self.tagged(tag).filter(|_| !tag.is_bell());
        let Some(i) = shadow.filter(is_once) else {
            return match self.keep(event) {
                true => Found::Told,
                false => Found::Kept,
            };
        };
        self.regs[i].by_edge = true;
        self.keep(event);
        let _ = self.watch(i, true);
        Found::Posted
    }

    /// The program is told of this registration.
    pub fn fired(&mut self, i: usize, by_kernel: bool) {
        if self.regs[i].events & ONESHOT != 0 {
            let reg = &mut self.regs[i];
            reg.disabled = true;
            if !by_kernel || reg.by_edge {
                let _ = self.register(i, EPOLL_CTL_MOD, 0);
            }
        }
    }

    /// What still holds of what the kernel says of one that it has by edges, and may have said before the program asked anew.
    pub fn still(&self, i: usize, events: u32) -> u32 {
        let reg = &self.regs[i];
        match reg.d {
            Some(d) if reg.by_edge => d.kernel_holds(reg.h, events, events),
            _ => events,
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
        if self.evaluate(i, false, false) != 0 {
            let reg = &self.regs[i];
            reg.descriptor().ring(reg.h, reg.bell);
        }
    }

    /// Arms everything hot for a sleep and looks again; true if something is ready. They stay on the hot list.
    pub fn arm_and_look(&mut self) -> bool {
        for n in (0..self.hot.len()).rev() {
            self.arm_only(self.hot[n] as usize);
        }
        fence(Ordering::SeqCst);
        (0..self.hot.len()).any(|n| self.evaluate(self.hot[n] as usize, false, false) != 0)
    }

    /// A bell whose ring ends a sleep; -1: there is none.
    pub fn any_bell(&mut self) -> i32 {
        let bell = |i: u32| {
            let reg = self.regs.get(i as usize)?;
            (reg.carried && reg.rings).then_some(reg.bell)
        };
        if let Some(bell) = self.belled.and_then(bell) {
            return bell;
        }
        self.belled = match self.belled {
            None => None,
            Some(_) => (0..self.regs.len() as u32).find(|&i| bell(i).is_some()),
        };
        self.belled.map_or(-1, |i| self.regs[i as usize].bell)
    }

    /// How long a sleep may last. Hot registrations whose end is shared, and those that wait for room anywhere in the set.
    pub fn slice(&mut self) -> Option<u64> {
        let hot = self.hot.iter().map(|&i| i as usize);
        let shared = hot.filter_map(|i| self.regs[i].slice()).min();
        if self.mutes || self.is_unwatched() {
            return Some(MUTE_SLICE);
        }
        if !self.waits_for_room {
            return shared;
        }
        let room = self.regs.iter().filter_map(Reg::slice).min();
        self.waits_for_room = room.is_some();
        room
    }

    /// Is there one of which the kernel would have to say more than it was asked for, and can't be asked any more?
    fn is_unwatched(&self) -> bool {
        let unwatched = |i: usize| {
            let reg = &self.regs[i];
            reg.orphan && reg.is_live() && !self.is_watched(i, self.needed(i))
        };
        self.orphans && (0..self.regs.len()).any(unwatched)
    }

    /// A sleep lasted its slice: what waits for room may have to go on by the kernel.
    pub fn slice_over(&mut self) {
        if self.waits_for_room {
            for i in 0..self.regs.len() {
                let reg = &self.regs[i];
                if reg.is_live() && reg.want() & libc::EPOLLOUT as u32 != 0 {
                    let before = self.needed(i);
                    reg.descriptor().slice_over(reg.h, reg.want());
                    // The kernel has had room all along: only registering anew makes that an edge.
                    let gained = self.needed(i) & !before != 0;
                    let _ = self.watch(i, gained);
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

    /// Those who sleep already, without knowing that nothing will tell of this one, come back: its room is an event for the kernel.
    pub fn wake_sleepers(&mut self, i: usize) {
        let needed = self.needed(i);
        let _ = self.register(i, EPOLL_CTL_MOD, needed | libc::EPOLLOUT as u32);
    }

    /// Whoever waits looks at those itself that nothing tells of.
    pub fn heat_mutes(&mut self) {
        self.mutes = false;
        for i in 0..self.regs.len() {
            let reg = &self.regs[i];
            if !reg.mute || reg.d.is_none() {
                continue;
            }
            self.mutes = true;
            if reg.is_live() {
                self.heat(i);
            }
        }
    }

    pub fn cool_all(&mut self) {
        while let Some(&i) = self.hot.last() {
            self.cool(i as usize);
        }
    }

    pub fn arm(&mut self, i: usize) {
        self.arm_only(i);
        if self.regs[i].hot {
            self.regs[i].hot = false;
            self.hot.retain(|&j| j as usize != i);
        }
    }

    pub fn arm_only(&mut self, i: usize) {
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

    pub fn disarm(&mut self, i: usize) {
        let reg = &mut self.regs[i];
        if reg.armed {
            reg.armed = false;
            reg.descriptor().disarm(reg.h, reg.want());
        }
    }

    pub fn disarm_all(&mut self) {
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
