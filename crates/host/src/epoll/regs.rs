//! The registrations of a set. All under the set's lock.

mod found;
mod heat;
mod kernel;

use libc::epoll_event;

use super::last::{ENDS, Last, OUT, is_socket};
use super::{ET, MODES, ONESHOT, Tag};
use crate::poll::{KERNEL_AFTER, KERNEL_SOON};
use crate::sync::AtomicBool;
use crate::sys;
use crate::table::{Arrivals, Descriptor, Handle};

pub const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;

/// A set was put into another one.
pub static NESTED: AtomicBool = AtomicBool::new(false);

#[derive(Default)]
pub struct Inner {
    pub ep: i32,
    /// Slot + 1 by descriptor number, of what was registered by the description that has the number now.
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
    /// For how long it had not been when the last call began, in nanoseconds; 0: it was asked since.
    pub unasked: u64,
    /// How many directions this process had moved when the hot registrations were gone through last.
    pub moves: u64,
    kernel_first: bool,
    /// Which of the hot ones is told first where there is not room for all.
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
    /// Slots whose bells were heard, for [`watch_rung`](Inner::watch_rung).
    pub rung: Vec<u32>,
    /// Numbers of some were closed.
    pub orphans: bool,
    /// Some are mute: they are looked at again and again.
    pub mutes: bool,
    /// How often the kernel was made to say again what holds, and how many bells were found, which whoever waits on what holds this
    /// set hears too.
    pub posts: u64,
    /// How many ends of members the kernel has told of, and what the kernel had brought to those that are not counted any more.
    pub ends: u64,
    /// Some are sets.
    has_sets: bool,
    /// It is, or was, in another set.
    pub nested: bool,
    /// Other processes may have it.
    pub shared: bool,
    /// And this one has asked for something else there since.
    pub differs: bool,
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
    /// ONESHOT that the kernel has disabled too, by telling of it: it says nothing more of it until it is asked anew.
    spent: bool,
    pub misses: u32,
    pub last: Last,
    /// What the kernel has reported to a look that told nobody, where it can't be made to say it again.
    pub kept: u32,
    /// The ends that the kernel has told of.
    pub ended: u32,
    pub bell: i32,
    /// The bell is registered under this registration's tag (not under that of a duplicate in the same set).
    pub rings: bool,
    /// It was put in by the process that this one is a copy of.
    pub parents: bool,
    /// The kernel had no room for the bell.
    pub mute: bool,
    /// Its descriptor number is closed while the description lives on by another: the kernel keeps it, out of reach.
    pub orphan: bool,
    pub generation: u32,
    /// Index of the event of the current batch, and which batch.
    pub batch: (u32, u32),
    /// In a set in another one: there was something to tell, and no look has found otherwise since.
    listed: bool,
    /// What it had [heard](Reg::heard) when somebody looked, or that was written.
    heard: Heard,
}

/// What has come of what a member is asked for: in all, and of that by the kernel.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Heard {
    all: u64,
    by_kernel: u64,
}

/// What has come to a member of a set.
#[derive(Clone, Copy)]
pub struct Came {
    pub edges: (u64, u64),
    pub by_kernel: Arrivals,
}

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
            spent: false,
            misses: 0,
            last: Last::nothing(),
            kept: 0,
            ended: 0,
            bell: core::hint::black_box(-1),
            rings: false,
            parents: false,
            mute: false,
            orphan: false,
            generation: 0,
            batch: (0, 0),
            listed: false,
            heard: Heard::default(),
        }
    }

    pub fn descriptor(&self) -> &'static dyn Descriptor {
        self.d.expect("a live registration")
    }

    /// As the program asked.
    pub fn event(&self) -> epoll_event {
        sys::event(self.events, self.data)
    }

    /// Its own in the kernel's set, or its bell's.
    pub fn tag(&self, bell: bool) -> Tag {
        Tag::new(bell, self.generation, self.fd)
    }

    pub fn want(&self) -> u32 {
        self.events & !MODES
    }

    /// Which of its events the kernel is to have when the registration is its alone.
    fn left_to_kernel(&self) -> u32 {
        match self.disabled {
            true => MODES,
            false => u32::MAX,
        }
    }

    /// The modes that the kernel has it in, while it is not disabled.
    fn modes(&self) -> u32 {
        match self.by_edge {
            true => self.events & MODES & !ONESHOT | ET,
            false => self.events & MODES,
        }
    }

    /// The program asks for other events.
    fn ask(&mut self, event: &epoll_event) {
        (self.events, self.data) = (event.events, event.u64);
        self.disabled = false;
        self.by_edge &= self.events & ONESHOT != 0;
        (self.last, self.kept) = (Last::nothing(), 0);
    }

    /// Was it put in by a number of what `h` stands for that is closed by now?
    pub fn is_orphan_of(&self, h: Handle) -> bool {
        self.orphan && self.d.is_some() && self.h == h
    }

    pub fn is_live(&self) -> bool {
        self.d.is_some() && self.carried && !self.parked && !self.disabled
    }

    /// Is what arrives news of it? Not to who asks for room and ends of a connection alone.
    pub fn hears_arrivals(&self) -> bool {
        !is_socket(self.h) || self.want() & !OUT & !ENDS != 0
    }

    /// What whoever waits on what holds its set counts of what has come by shared memory, and by the kernel with room for more.
    fn counted(&self) -> (u64, u64) {
        match self.is_live() {
            true => self.counts(self.came()),
            false => (0, 0),
        }
    }

    /// The former alone.
    pub fn arrivals(&self) -> u64 {
        match self.is_live() && self.hears_arrivals() {
            true => self.descriptor().edges(self.h).0,
            false => 0,
        }
    }

    pub fn came(&self) -> Came {
        let d = self.descriptor();
        Came {
            edges: d.edges(self.h),
            by_kernel: d.kernel_arrivals(self.h),
        }
    }

    pub fn counts(&self, came: Came) -> (u64, u64) {
        let (arrived, room) = came.edges;
        match self.is_live() {
            false => (0, 0),
            true if self.hears_arrivals() => (arrived, came.by_kernel.count.wrapping_add(room)),
            true => (0, room),
        }
    }

    /// What has come of what it asks for. What the kernel has kept for itself is not in it.
    fn heard(&self) -> Heard {
        let Came { edges, by_kernel } = self.came();
        let (arrived, by_kernel) = match self.hears_arrivals() {
            true => (edges.0, by_kernel.count),
            false => (0, 0),
        };
        let room = match self.want() & OUT {
            0 => 0,
            _ => edges.1,
        };
        let by_kernel = by_kernel.wrapping_add(u64::from(self.ended));
        let all = arrived.wrapping_add(by_kernel).wrapping_add(room);
        Heard { all, by_kernel }
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
            next_generation: 1,
            ..Inner::default()
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

    /// Was the kernel not asked for a while before the call that begins now?
    pub fn is_due(&mut self, now: u64) -> bool {
        self.unasked = now.saturating_sub(self.looked);
        self.is_new || self.unasked >= KERNEL_AFTER
    }

    /// Will it be due at one of the next calls?
    pub fn is_due_soon(&self) -> bool {
        self.unasked >= KERNEL_SOON
    }

    /// Does the kernel come before the hot registrations this time?
    pub fn comes_first(&mut self) -> bool {
        self.kernel_first = !self.kernel_first;
        self.kernel_first || self.is_new
    }

    // In one place: where an index may be out of bounds is an address that each process relocates.
    #[inline]
    pub fn at(&self, i: usize) -> &Reg {
        &self.regs[i]
    }

    #[inline]
    pub fn at_mut(&mut self, i: usize) -> &mut Reg {
        &mut self.regs[i]
    }

    pub fn find(&self, fd: i32) -> Option<usize> {
        match self.by_fd.get(fd as usize) {
            Some(&slot) if slot > 0 => Some(slot as usize - 1),
            _ => None,
        }
    }

    /// The registration that a tag names, unless it has gone.
    pub fn tagged(&self, tag: Tag) -> Option<usize> {
        let named = |&i: &usize| self.at(i).generation & 0x7_ffff == tag.generation();
        let found = self.find(tag.fd()).filter(named);
        found.or_else(|| self.orphans_of(tag.fd()).find(named))
    }

    /// Does this hold of each that can be reached by its number?
    pub fn all(&self, holds: impl Fn(&Reg) -> bool) -> bool {
        let reached = self.by_fd.iter().filter(|&&slot| slot > 0);
        reached.map(|&slot| self.at(slot as usize - 1)).all(holds)
    }

    /// Has it one by this number, reached or not?
    pub fn knows(&self, fd: i32) -> bool {
        self.find(fd).is_some() || self.orphans_of(fd).next().is_some()
    }

    /// Those that were registered by a number and lost it. The kernel keeps them, beside that of what has the number now.
    fn orphans_of(&self, fd: i32) -> impl Iterator<Item = usize> + use<'_> {
        let is_one = move |r: &Reg| r.orphan && r.d.is_some() && r.fd == fd;
        let all = match self.orphans {
            true => &self.regs[..],
            false => &[],
        };
        all.iter()
            .enumerate()
            .filter(move |(_, r)| is_one(r))
            .map(|(i, _)| i)
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

    /// Its last number here is closed. What a parent has put in stays in the set that both share, as long as that has the description.
    pub fn closed(&mut self, i: usize) {
        let reg = self.at_mut(i);
        reg.rings &= !reg.parents;
        self.remove(i);
    }

    pub fn remove(&mut self, i: usize) {
        self.disarm(i);
        self.keep_count(i);
        let reg = *self.at(i);
        self.forget_hot(i);
        if !reg.orphan {
            self.by_fd[reg.fd as usize] = 0;
        }
        let gone = self.at_mut(i);
        (gone.d, gone.carried, gone.orphan) = (None, false, false);
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

    /// The number of a registration is about to be closed while others remain for its description.
    pub fn orphan(&mut self, fd: i32) {
        let Some(i) = self.find(fd) else { return };
        let reg = *self.at(i);
        if reg.parked {
            // While it can be reached.
            self.delete(fd);
        }
        if reg.parked || reg.d.is_none() {
            return self.remove(i);
        }
        self.place(i, fd, true);
        self.orphans = true;
    }

    /// The description `h` has a number again, by which it was registered.
    pub fn reach_again(&mut self, fd: i32, h: Handle) {
        if self.find(fd).is_some() {
            return;
        }
        let known = self.orphans_of(fd).find(|&i| self.at(i).h == h);
        if let Some(i) = known {
            self.place(i, fd, false);
        }
    }

    fn place(&mut self, i: usize, fd: i32, is_orphan: bool) {
        self.at_mut(i).orphan = is_orphan;
        if let Some(place) = self.by_fd.get_mut(fd as usize) {
            *place = if is_orphan { 0 } else { i as u32 + 1 };
        }
    }

    /// Those whose description lives on by no number have gone from the kernel's set.
    pub fn drop_orphans(&mut self, lives: impl Fn(Handle) -> bool) {
        if !self.orphans {
            return;
        }
        self.orphans = false;
        for i in 0..self.regs.len() {
            let reg = self.at(i);
            match reg.orphan && reg.d.is_some() {
                true if lives(reg.h) => self.orphans = true,
                true => self.closed(i),
                false => {}
            }
        }
    }

    /// One is about to tell nothing more. Those who count what arrives at this set are not to take that for an arrival.
    pub fn keep_count(&mut self, i: usize) {
        // What has arrived stands on the sender's line: read for who counts it alone.
        if !self.nested {
            return;
        }
        let (news, by_kernel) = self.at(i).counted();
        self.news = self.news.wrapping_add(news);
        self.ends = self.ends.wrapping_add(by_kernel);
    }

    /// The program asks for other events.
    pub fn ask(&mut self, i: usize, event: &epoll_event) {
        if !self.nested {
            return self.at_mut(i).ask(event);
        }
        if !self.shared {
            // What the kernel has to tell of it is kept.
            self.look_behind();
        }
        let was_listed = self.is_listed(i) || self.has_to_tell(i);
        let reg = self.at(i);
        // The registration anew takes the place of what the kernel has told of it to who has not looked yet.
        self.news += u64::from(reg.is_live() && reg.heard().by_kernel != reg.heard.by_kernel);
        let came = self.at(i).came();
        let counted = self.at(i).counts(came);
        self.at_mut(i).ask(event);
        self.appears(i, counted, came, was_listed);
    }

    /// A registration is new.
    pub fn is_added(&mut self, i: usize) {
        if self.nested {
            self.appears(i, (0, 0), self.at(i).came(), false);
        }
    }

    /// A registration, which `counted` for so much of what `came`, is new or asks for something else. As the kernel has it, that is an
    /// arrival for who waits on what holds this set if there is something to tell, and it was not [listed](Inner::is_listed) before.
    fn appears(&mut self, i: usize, counted: (u64, u64), came: Came, was_listed: bool) {
        let reg = self.at(i);
        // Of what came before, once: what comes from here on is an arrival by itself.
        let counts = reg.counts(came);
        let is_ready =
            reg.is_live() && (reg.descriptor().ready(reg.h, reg.want()) != 0 || self.holds(i));
        let arrived = u64::from(is_ready && !was_listed);
        let uncounted = |before: u64, now: u64| before.wrapping_sub(now);
        let news = uncounted(counted.0, counts.0).wrapping_add(arrived);
        self.news = self.news.wrapping_add(news);
        self.ends = self.ends.wrapping_add(uncounted(counted.1, counts.1));
        self.list(i, is_ready || was_listed);
    }

    /// There is something to tell of a registration, or a look has found nothing.
    fn list(&mut self, i: usize, is_listed: bool) {
        let reg = &mut self.regs[i];
        reg.listed = is_listed;
        reg.heard = reg.heard();
    }

    /// As the kernel has it, what has come once makes a registration ready to be told of, until a wait or a look from outside finds
    /// nothing, or a wait has told of it by an edge; asked for something else meanwhile, it is no news.
    fn is_listed(&self, i: usize) -> bool {
        let reg = self.at(i);
        reg.is_live() && (reg.listed || reg.kept != 0 || reg.heard() != reg.heard)
    }

    /// Does the kernel say what it says because a registration that is listed was asked for anew, or because it is one-shot and ours is
    /// not?
    fn only_asked(&self, i: usize) -> bool {
        let reg = self.at(i);
        reg.listed && reg.heard() == reg.heard && (reg.by_edge || reg.last.told == 0)
    }

    /// It is in another set, or carried, from now on, or is to be asked for something else without that.
    pub(super) fn begin_list(&mut self, i: usize) {
        let reg = self.at(i);
        if self.nested && reg.d.is_some() && !self.is_silent(i) {
            let is_listed = reg.listed || self.has_to_tell(i);
            self.list(i, is_listed);
        }
    }

    /// A wait has told of those of this batch, and found nothing of the others, unless its room `is_full`.
    pub fn list_told(&mut self, is_full: bool) {
        for i in 0..self.regs.len() {
            let reg = self.at(i);
            if reg.d.is_none() {
                continue;
            }
            match reg.batch.0 == self.batch {
                true => self.list(i, reg.events & (ET | ONESHOT) == 0),
                false if !is_full && self.is_listed(i) => self.list(i, false),
                false => {}
            }
        }
    }

    /// Somebody looks from outside.
    pub fn list_what_came(&mut self) {
        for i in 0..self.regs.len() {
            let reg = self.at(i);
            if reg.is_live() && reg.heard() != reg.heard {
                self.list(i, true);
            }
        }
    }

    /// A look from outside has found nothing.
    pub fn list_nothing(&mut self) {
        for i in 0..self.regs.len() {
            if self.at(i).d.is_some() && self.is_listed(i) && !self.holds(i) {
                self.list(i, false);
            }
        }
    }

    /// Would a wait tell something of it, as far as the kernel does not know by itself?
    fn has_to_tell(&mut self, i: usize) -> bool {
        if self.evaluate(i, false, false) != 0 {
            return true;
        }
        let reg = self.at(i);
        let by_kernel = !reg.carried || reg.events & ET == 0;
        by_kernel && !self.is_silent(i) && self.holds(i)
    }

    /// Does the kernel know of something that the program asks for?
    fn holds(&self, i: usize) -> bool {
        let reg = self.at(i);
        let asked = reg.want() | (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        let asks = self.needed(i) | asked;
        reg.descriptor().kernel_holds(reg.h, 0, asks) & asked != 0
    }

    pub fn is_silent(&self, i: usize) -> bool {
        self.regs[i].disabled || self.regs[i].parked
    }

    pub fn disarm(&mut self, i: usize) {
        let reg = &mut self.regs[i];
        if reg.armed {
            reg.armed = false;
            reg.descriptor().disarm(reg.h, reg.want());
        }
    }
}
