//! How registrations move between hot and armed.

use core::time::Duration;

use super::{Inner, Reg};
use crate::sync::{Ordering, fence};
use crate::table::Kind;

/// A registration goes cold after this many looks in vain.
const MOST_MISSES: u32 = 100;

/// How long a sleep lasts where the kernel has no room for a bell.
const MUTE_SLICE: u64 = Duration::from_millis(5).as_nanos() as u64;

impl Inner {
    pub fn park(&mut self, i: usize) {
        self.disarm(i);
        self.keep_count(i);
        self.regs[i].parked = true;
        self.forget_hot(i);
    }

    /// It is not looked at each time any more. The latest is the first to go, as a rule.
    pub fn forget_hot(&mut self, i: usize) {
        let was_hot = core::mem::take(&mut self.at_mut(i).hot);
        if was_hot && let Some(n) = self.hot.iter().rposition(|&j| j as usize == i) {
            self.hot.remove(n);
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

    /// Its bell was heard, which also says that a direction moved.
    pub fn heat_rung(&mut self, i: usize) {
        self.heat(i);
        self.rung.push(i as u32);
    }

    /// Of those whose bells were heard the kernel may have to watch for room now. Not before all is taken in that it said together with
    /// the bells, which else would be taken for what it says again.
    pub fn watch_rung(&mut self) {
        for n in 0..self.rung.len() {
            let _ = self.watch(self.rung[n] as usize, false);
        }
        self.rung.clear();
    }

    /// A hot registration had nothing; true when it has been so for long.
    pub fn missed(&mut self, i: usize) -> bool {
        self.regs[i].misses += 1;
        self.regs[i].misses > MOST_MISSES
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

    /// Arms everything hot for a sleep. They stay on the hot list.
    pub fn arm_hot(&mut self) {
        for n in (0..self.hot.len()).rev() {
            self.arm_only(self.hot[n] as usize);
        }
    }

    /// For who is told of the set by another one, and sleeps there.
    pub fn arm_and_look(&mut self) -> bool {
        self.arm_hot();
        fence(Ordering::SeqCst);
        self.is_any_ready()
    }

    /// The look behind arming.
    pub fn is_any_ready(&mut self) -> bool {
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
        self.forget_hot(i);
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

    /// What the process that this one is a copy of has armed stays so there, and is not here.
    pub fn leave_to_parent(&mut self) {
        // A child counts anew.
        self.moves = u64::MAX;
        for reg in &mut self.regs {
            let Some(d) = reg.d else { continue };
            reg.parents |= reg.rings;
            if reg.armed && d.armed_by_parent(reg.h, reg.want()) {
                reg.armed = false;
            }
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
