//! What the kernel has of each registration: under our tags, or as the program asked.

use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD};

use super::{EXCLUSIVE, Inner, Reg};
use crate::counters::{self, Reason};
use crate::epoll::{ET, MODES, ONESHOT, fdinfo, kernel_ctl};
use crate::sync::Ordering;
use crate::table::{self, Kind};
use crate::{aside, sys};

/// Registered with every shadow, whatever the program asks for: asking again then needs no system call.
const USUAL: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32;
/// Told whatever is registered.
const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

impl Inner {
    /// The kernel's registration is the program's own from here on.
    pub fn surrender(&mut self, i: usize) {
        let reg = *self.at(i);
        if reg.carried {
            match reg.orphan {
                true => self.reach(i),
                false => self.give_back(i, reg.kernel.is_some()),
            }
        }
        self.remove(i);
    }

    /// What the kernel has of a registration becomes what the program asked for; where its number was closed, under that number: its
    /// description has others, or has it again.
    pub(super) fn reach(&self, i: usize) {
        let reg = &self.regs[i];
        if !reg.orphan || table::lookup(reg.fd) == Some(reg.h) {
            return self.give_back(i, true);
        }
        let other = table::entries().find(|&(_, h)| h == reg.h);
        let Some(Ok(fd)) = other.map(|(other, _)| sys::dup_above(other, reg.fd)) else {
            return;
        };
        if fd == reg.fd {
            self.give_back(i, true);
        } else {
            self.give_back_elsewhere(i, fd);
        }
        let _ = sys::close(fd);
    }

    /// The number is another description's by now: in a process of its own, whose numbers are, too, so that nobody here meets the wrong
    /// one. `other` stands for the registration's description.
    fn give_back_elsewhere(&self, i: usize, other: i32) {
        self.note_told_again(i, true);
        let done = aside::run(|| {
            if sys::dup3(other, self.regs[i].fd, libc::O_CLOEXEC).is_ok() {
                self.put_as_asked(i, true);
            }
            0
        });
        if done.is_none() {
            counters::note(Reason::NoMemory);
        }
    }

    pub fn delete(&self, fd: i32) {
        let _ = kernel_ctl(self.ep, EPOLL_CTL_DEL, fd, None);
    }

    pub fn add_bell(&mut self, i: usize, bell: i32) -> sys::Result<()> {
        let reg = &mut self.regs[i];
        let event = sys::event(ET | libc::EPOLLIN as u32, reg.tag(true).0);
        reg.bell = bell;
        match kernel_ctl(self.ep, EPOLL_CTL_ADD, bell, Some(&event)) {
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

    /// Takes the bell that there is now in place of the former one; false: it is the same.
    pub fn change_bell(&mut self, i: usize) -> bool {
        let reg = &mut self.regs[i];
        let Some(bell) = reg.d.and_then(|d| d.bell(reg.h)) else {
            return false;
        };
        if bell == reg.bell || reg.orphan || reg.h.kind() == Kind::Epoll {
            return false;
        }
        let former = reg.bell;
        if core::mem::take(&mut reg.rings) {
            self.delete(former);
        }
        let _ = self.add_bell(i, bell);
        let _ = self.watch(i, true);
        true
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
        } else if reg.events & ET != 0 || self.nested {
            // Bytes that nobody asked for would be an edge.
            libc::EPOLLRDHUP as u32
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
        let reg = self.at(i);
        let apart = reg.carried && reg.d.is_some_and(|d| d.is_apart(reg.h));
        if apart {
            self.disarm(i);
            self.forget_hot(i);
            let reg = self.at(i);
            if reg.rings {
                self.delete(reg.bell);
            }
            let reg = &mut self.regs[i];
            (reg.carried, reg.rings) = (false, false);
            if there(reg.fd, reg.tag(false).0) {
                self.reach(i);
            }
        }
        apart
    }

    /// What the kernel has of a registration, if it is `there`, becomes what the program asked for.
    fn give_back(&self, i: usize, there: bool) {
        self.note_told_again(i, there);
        self.put_as_asked(i, there);
    }

    /// What holds becomes an edge for the kernel, whatever the program was told; and an end it tells of one that was told once too.
    fn note_told_again(&self, i: usize, there: bool) {
        let reg = &self.regs[i];
        if !reg.parked && (reg.events & ET != 0 || reg.disabled && !(there && reg.spent)) {
            counters::note(Reason::ToldAgain);
        }
    }

    fn put_as_asked(&self, i: usize, there: bool) {
        let reg = &self.regs[i];
        if reg.parked {
            self.delete(reg.fd);
        } else if !(there && reg.disabled && reg.spent) {
            self.put(reg, reg.left_to_kernel(), there);
        }
    }

    /// Registers what the program asked for, as far as `events` go, under the program's data.
    pub(super) fn put(&self, reg: &Reg, events: u32, there: bool) {
        let event = sys::event(reg.events & events, reg.data);
        let op = match (reg.events & EXCLUSIVE, there) {
            (0, true) => EPOLL_CTL_MOD,
            (0, false) => EPOLL_CTL_ADD,
            _ => {
                // Which cannot be modified.
                self.delete(reg.fd);
                EPOLL_CTL_ADD
            }
        };
        let _ = kernel_ctl(self.ep, op, reg.fd, Some(&event));
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
        let event = sys::event(wanted, reg.tag(false).0);
        let op = if reg.kernel.is_none() && reg.carried && op == EPOLL_CTL_MOD && reg.known {
            EPOLL_CTL_ADD
        } else {
            op
        };
        kernel_ctl(self.ep, op, reg.fd, Some(&event))?;
        reg.last.posted = op == EPOLL_CTL_MOD || ours && reg.events & EXCLUSIVE != 0;
        self.posts += u64::from(reg.last.posted);
        reg.kernel = Some(wanted);
        reg.known = true;
        reg.spent = false;
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

    /// The set is put into another one, to which the kernel tells by edges what wakes this one: nothing that nobody asked for.
    pub fn nest(&mut self) {
        super::NESTED.store(true, Ordering::Relaxed);
        if core::mem::replace(&mut self.nested, true) || self.shared {
            return;
        }
        self.unpark();
        for i in 0..self.regs.len() {
            self.begin_list(i);
            let reg = *self.at(i);
            if !reg.is_live() || reg.modes() & ET != 0 {
                continue;
            }
            let asked = self.needed(i) | self.usual(i);
            if reg.kernel.is_some_and(|k| k & !MODES & !asked != 0) {
                let _ = self.register(i, EPOLL_CTL_MOD, asked);
            }
        }
    }

    pub(super) fn is_watched(&self, i: usize, needed: u32) -> bool {
        let reg = &self.regs[i];
        if reg.disabled {
            return reg.spent || reg.kernel == Some(ONESHOT);
        }
        let enough = |k: u32| k & needed == needed && k & MODES == reg.modes();
        reg.kernel.is_some_and(enough)
    }

    /// The program is told nothing of these events that the kernel reported. What it asks for the kernel would say again if that was
    /// registered anew.
    pub fn quiet(&mut self, i: usize, events: u32) {
        let reg = self.at(i);
        let needed = reg.d.map_or(0, |d| d.kernel_events(reg.h, reg.want()));
        if self.is_silent(i) || events & !(needed | ALWAYS) != 0 {
            self.narrow(i);
        }
    }

    /// The kernel reported what the program did not ask for: register no more than is needed, so that it stays quiet.
    pub fn narrow(&mut self, i: usize) {
        let reg = &self.regs[i];
        if reg.disabled && !reg.parked && reg.kernel.is_some_and(|k| k & ONESHOT != 0) {
            // It is, by that.
            self.regs[i].spent = true;
            return;
        }
        if reg.parked {
            self.delete(reg.fd);
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

    /// The program is told of this registration.
    pub fn fired(&mut self, i: usize, by_kernel: bool) {
        if self.regs[i].events & ONESHOT != 0 {
            self.keep_count(i);
            let reg = &mut self.regs[i];
            reg.disabled = true;
            // Or it was registered anew, for more, as it told of that.
            if !by_kernel || reg.by_edge || reg.last.posted {
                let _ = self.register(i, EPOLL_CTL_MOD, 0);
            } else {
                reg.spent = true;
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

    /// Those who sleep already, without knowing that nothing will tell of this one, come back: its room is an event for the kernel.
    pub fn wake_sleepers(&mut self, i: usize) {
        let needed = self.needed(i);
        let _ = self.register(i, EPOLL_CTL_MOD, needed | libc::EPOLLOUT as u32);
    }
}
