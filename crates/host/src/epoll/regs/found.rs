//! What the kernel tells before the program asks: to a look from outside, or when it is to say something anew. It stays to be told.

use libc::epoll_event;

use super::{Inner, Reg};
use crate::counters::{self, Counter, Reason};
use crate::epoll::last::{ENDS, HUP, RDHUP};
use crate::epoll::{ET, ONESHOT, Tag};
use crate::sys;
use crate::table::{self, Kind};

/// What a look from outside has found.
enum Found {
    /// The program would be told.
    Told,
    /// Nothing, or what is kept.
    Kept,
    /// What is kept, and our registration anew brings it once more.
    Posted,
}

impl Inner {
    /// May a hot registration need another watch than it has? A move by a call of this process, or of one that shares an end, rings no
    /// bell.
    pub fn may_have_moved(&mut self) -> bool {
        // First: what moves from here on is counted later.
        let moves =
            counters::read(Counter::Switches).wrapping_add(counters::read(Counter::Unswitches));
        let moved = moves != core::mem::replace(&mut self.moves, moves);
        moved || table::shares_ends() || self.is_special()
    }

    /// Are there registrations that change by more than calls and bells?
    fn is_special(&self) -> bool {
        self.nested || self.shared || self.has_sets || self.mutes || self.duplicates || self.orphans
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
        let mut events = [sys::event(0, 0); 16];
        let n = sys::epoll_poll(self.ep, &mut events).unwrap_or(0);
        for event in &events[..n] {
            let shadow = Tag::of(event.u64).filter(|tag| !tag.is_bell());
            match shadow.and_then(|tag| self.tagged(tag)) {
                Some(i) if self.regs[i].events & ET != 0 && !self.regs[i].last.posted => {
                    self.regs[i].kept |= event.events;
                    self.heat(i);
                }
                _ => {
                    self.keep(event);
                }
            }
        }
        self.watch_rung();
        // What is kept now is to be told by this very look.
        self.collected |= n > 0;
    }

    /// What it keeps the kernel from telling of this set what a wait would not tell, and what it does report stays to be told. Is
    /// there something that the program would be told?
    pub fn look_behind(&mut self) -> bool {
        self.watch_hot();
        let mut events = [sys::event(0, 0); 16];
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
            self.watch_rung();
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
        let reg = *self.at(i);
        let Some(d) = reg.d else { return false };
        if tag.is_bell() {
            self.posts += 1;
            self.heat_rung(i);
            d.rung(reg.h);
            if self.duplicates {
                self.same(reg.h).for_each(|j| self.heat(j));
            }
            return false;
        }
        self.note_ends(i, events);
        let silent = self.is_silent(i);
        let holds = self.holding(i, events, reg.last.posted);
        self.regs[i].last.posted = false;
        if silent || holds == 0 {
            self.quiet(i, events);
            return false;
        }
        // What is told always the kernel says again by itself, also of one that is out of reach.
        let modes = reg.modes() & (ET | ONESHOT);
        if modes == ET || reg.orphan && modes != 0 {
            self.keep_edge(i, events, reg.last.posted);
            return false;
        }
        let _ = self.watch(i, reg.events & ONESHOT != 0);
        // It is to be told, whatever it was told of before.
        self.regs[i].last.posted = false;
        true
    }

    /// An end comes once; an error may be taken, and another one come, but behind the end of both directions.
    pub fn note_ends(&mut self, i: usize, events: u32) {
        let reg = &mut self.regs[i];
        let once = match events & HUP {
            0 => RDHUP,
            _ => ENDS,
        };
        let new = events & once & !reg.ended;
        if new != 0 {
            reg.ended |= new;
            self.ends += 1;
        }
    }

    /// What the kernel tells once, and has just told us, of a registration that is the program's own. False: it is told always.
    fn post_again(&mut self, data: u64) -> bool {
        let once = |r: &Reg| !r.carried && r.data == data && r.events & (ET | ONESHOT) != 0;
        let mut any = false;
        for (i, reg) in self.regs.iter().enumerate().filter(|(_, r)| once(r)) {
            if self.find(reg.fd) == Some(i) {
                self.put(reg, u32::MAX, true);
            } else if reg.orphan && reg.d.is_some() {
                // By a number that its description lost.
                self.reach(i);
            } else {
                continue;
            }
            any = true;
        }
        any
    }

    /// What the kernel tells once is kept, and whoever waits on what holds this set is told of it: given back, it would wake them
    /// again and again.
    pub fn keep_edge(&mut self, i: usize, events: u32, posted: bool) {
        let is_old = posted
            && (self.regs[i].by_edge && events & !self.regs[i].kept == 0 || self.only_asked(i));
        self.news += u64::from(!is_old);
        self.regs[i].kept |= events;
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
}
