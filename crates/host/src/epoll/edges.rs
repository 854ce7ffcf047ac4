//! What the program is told of a registration: what holds, and for edge-triggered ones, whether there was an edge.

use libc::epoll_event;

use super::last::{ENDS, ERR, HUP, IN, Last, OUT, RDHUP, is_socket};
use super::regs::{EXCLUSIVE, Inner};
use super::{ET, ONESHOT, Tag};
use crate::sys;
use crate::table::{Arrivals, Descriptor, Handle, Kind};

/// What holds of a connection by the kernel, and all of which the program was told by its edge-triggered registration.
pub struct Told {
    events: u32,
    received: u64,
}

impl Inner {
    /// Before a connection's registration, which was the kernel's alone, gets our tag, by which the kernel says anew what holds: was
    /// the program told all of it?
    pub fn all_told(&mut self, i: usize) -> Option<Told> {
        let reg = *self.at(i);
        let d = reg.d.filter(|_| reg.h.kind() == Kind::Socket)?;
        if reg.events & (ET | ONESHOT | EXCLUSIVE) != ET {
            return None;
        }
        // In this order: what comes meanwhile is not told yet, or not received.
        let told = Told {
            received: d.kernel_received(reg.h)?,
            // With what our tag is registered for besides.
            events: d.kernel_holds(reg.h, 0, reg.want() | IN | ENDS),
        };
        let untold =
            self.taken_out(|_, event| Tag::of(event.u64).is_none() && event.u64 == reg.data);
        (untold == (0, true)).then_some(told)
    }

    /// Behind that: what the kernel says by our tag is no news, if nothing has come.
    pub fn keep_told(&mut self, i: usize, told: &Told) {
        let reg = *self.at(i);
        let Some(d) = reg.d else { return };
        let is_own = |inner: &Inner, event: &epoll_event| {
            let shadow = Tag::of(event.u64).filter(|tag| !tag.is_bell());
            shadow.and_then(|tag| inner.tagged(tag)) == Some(i)
        };
        let (said, is_all) = self.taken_out(is_own);
        if said == 0 {
            return;
        }
        let last = Last::by_kernel(d, reg.h, said);
        let is_old =
            is_all && said & !told.events == 0 && d.kernel_received(reg.h) == Some(told.received);
        if is_old {
            self.at_mut(i).last = last;
        } else {
            self.at_mut(i).last.posted = false;
            self.keep_edge(i, said, false);
        }
    }

    /// Takes out what the kernel has to tell. What is not `own` is kept; of what is, the events. False: there may be more.
    fn taken_out(&mut self, own: impl Fn(&Inner, &epoll_event) -> bool) -> (u32, bool) {
        let mut events = [sys::event(0, 0); 16];
        let n = sys::epoll_poll(self.ep, &mut events).unwrap_or(0);
        let mut said = 0;
        for event in events.iter().take(n) {
            let is_own = own(self, event);
            if is_own {
                said |= event.events;
            }
            if !is_own || Tag::of(event.u64).is_none() {
                self.keep(event);
            }
        }
        self.watch_rung();
        (said, n < events.len())
    }
}

impl Inner {
    /// What the kernel reports of a shadow, as far as the program is to be told.
    pub fn reported(&mut self, i: usize, events: u32) -> u32 {
        let posted = core::mem::take(&mut self.regs[i].last.posted);
        self.report(i, events, posted)
    }

    /// An edge brings all that holds. Where sending has gone over to the kernel since its registration, that says nothing of room yet.
    pub fn room_unasked_for(&mut self, i: usize) -> u32 {
        let reg = &self.regs[i];
        let asked = reg.kernel.is_some_and(|kernel| kernel & OUT != 0);
        let room = reg.want() & OUT;
        let is_edge = reg.events & ET != 0 && reg.carried && is_socket(reg.h);
        if asked || room == 0 || !is_edge || self.needed(i) & OUT == 0 {
            return 0;
        }
        let reg = &mut self.regs[i];
        // First: a send that is refused from here on makes the next room an edge.
        let edges = reg.descriptor().edges(reg.h);
        if !reg.descriptor().has_kernel_room(reg.h) {
            return 0;
        }
        reg.last.told |= room;
        reg.last.edges.1 = edges.1;
        room
    }

    fn report(&mut self, i: usize, events: u32, posted: bool) -> u32 {
        let events = self.with_end(i, events);
        // First: a send that is refused from here on makes the next room an edge.
        let (h, Some(d)) = (self.regs[i].h, self.regs[i].d) else {
            return 0;
        };
        let room = is_socket(h).then(|| d.edges(h).1);
        // Likewise: what the look at a set makes the kernel say again it says at the next one.
        let taken_back = d.kernel_arrivals(h).taken_back;
        let holds = self.judge(i, events, posted);
        let reg = &mut self.regs[i];
        // An end that the kernel was not asked for now stays known.
        reg.last.seen = events | reg.last.seen & RDHUP;
        reg.last.taken_back = taken_back;
        if holds != 0 {
            (reg.last.told, reg.last.ends) = (holds, d.ends(h));
        }
        if holds & OUT != 0
            && let Some(room) = room
        {
            reg.last.edges.1 = room;
        }
        holds
    }

    /// As [`reported`](Inner::reported), where nobody is told. An end that was an edge once, and room that there has been all the
    /// time, are none again because we have registered the shadow anew, by which this event was `posted`.
    pub fn holding(&self, i: usize, events: u32, posted: bool) -> u32 {
        let events = match posted {
            true => self.with_end(i, events),
            false => events,
        };
        self.judge(i, events, posted)
    }

    /// What the program is to be told of an event.
    fn judge(&self, i: usize, events: u32, posted: bool) -> u32 {
        let reg = &self.regs[i];
        let Some(d) = reg.d else { return 0 };
        let is_old_room = || d.edges(reg.h).1 == reg.last.edges.1;
        let mut holds = d.kernel_reported(reg.h, events) & (reg.events | ERR | HUP);
        if posted && reg.events & ET != 0 {
            // A reset was an edge, whose error a call may have taken since.
            let ends = d.ends(reg.h);
            let has_reset = ends.reset != reg.last.ends.reset && reg.last.told & ERR == 0;
            let has_ended = has_reset || ends.shut != reg.last.ends.shut;
            if holds & HUP != 0 && holds & !reg.last.told == 0 && !has_ended {
                holds = 0;
            }
            // The end of a stream shows as an event that was not seen before.
            let is_more = has_ended || events & !OUT & !reg.last.seen != 0;
            let is_quiet = !is_more && self.is_quiet(i, d);
            if is_quiet && holds & (ERR | HUP) == 0 {
                holds &= OUT;
            }
            // With an edge of another kind, room is told again. Where others may send round the library, what came shows as such.
            let only_room = is_quiet && holds & !OUT & !reg.last.told == 0
                || !is_more && holds & !OUT == 0 && !d.kernel_arrivals(reg.h).certain;
            if only_room && is_old_room() {
                holds &= !OUT;
            }
        }
        let moved = events & IN != 0 && self.has_only_moved(i, d);
        if moved && holds & IN != 0 {
            holds &= !IN;
            if is_old_room() && holds & !OUT == 0 {
                holds = 0;
            }
        }
        holds
    }

    /// With the end of a stream, where the kernel was not asked for it and what it says may be no more than was said before.
    fn with_end(&self, i: usize, events: u32) -> u32 {
        let reg = &self.regs[i];
        let is_asked = reg.kernel.is_some_and(|kernel| kernel & RDHUP != 0);
        let in_doubt = !is_asked && reg.events & ET != 0 && events & IN != 0;
        match reg.d {
            Some(d) if in_doubt && reg.h.kind() == Kind::Socket => {
                events | d.kernel_holds(reg.h, 0, RDHUP)
            }
            _ => events,
        }
    }

    /// Has nothing come since it was told last that it asks for?
    fn is_quiet(&self, i: usize, d: &dyn Descriptor) -> bool {
        let reg = &self.regs[i];
        if reg.want() & !OUT & !ENDS == 0 {
            return true;
        }
        surely(d, reg.h, |arrivals| {
            arrivals.count == reg.last.by_kernel && d.edges(reg.h).0 == reg.last.edges.0
        })
    }

    /// Does the kernel report bytes that the peer had sent by shared memory, where the program was told of them, and has taken back
    /// to the kernel since? One edge too many does no harm, and one that is lost does: in doubt it is no.
    fn has_only_moved(&self, i: usize, d: &dyn Descriptor) -> bool {
        let reg = &self.regs[i];
        let moved = |arrivals: Arrivals| {
            arrivals.taken_back != reg.last.taken_back
                && (d.edges(reg.h).0, arrivals.count) == reg.last.bytes
        };
        reg.events & ET != 0 && surely(d, reg.h, moved) && d.kernel_holds(reg.h, 0, ENDS) == 0
    }

    /// Events that hold by shared memory alone, or were kept. Taking them counts as reporting, for edge-triggered registrations:
    /// with an edge, of shared memory or `kernel`'s, all that holds is reported, as epoll(7) does.
    pub fn evaluate(&mut self, i: usize, take: bool, kernel: bool) -> u32 {
        let reg = &self.regs[i];
        if reg.disabled || reg.parked || !reg.carried {
            return 0;
        }
        let events = match reg.kept {
            0 => 0,
            // Closed by all its numbers. A set has no bell at all.
            _ if reg.h.kind() != Kind::Epoll && reg.descriptor().bell(reg.h).is_none() => 0,
            // As epoll(7) does, an edge tells what holds when it is told.
            events => {
                let asked = events | self.needed(i) | ERR | HUP;
                reg.descriptor().kernel_holds(reg.h, events, asked)
            }
        };
        let kept = match events {
            0 => 0,
            events => self.holding(i, events, false),
        };
        if kept == 0 {
            let reg = &mut self.regs[i];
            if take && reg.events & (ET | ONESHOT) == ET {
                // A wait that finds nothing of it has looked, as epoll(7)'s does. What comes is another edge.
                reg.kept = 0;
            }
            return self.shared(i, take, kernel);
        }
        if take {
            let events = events | core::mem::take(&mut self.regs[i].kept);
            self.report(i, events, false);
        }
        self.shared(i, take, true) | kept
    }

    fn shared(&mut self, i: usize, take: bool, kernel: bool) -> u32 {
        let reg = &self.regs[i];
        let d = reg.descriptor();
        let is_edge = reg.events & ET != 0;
        // First: what comes while we look is an edge that is still to be told.
        let (mut edges, mut by_kernel) = match is_edge {
            true => (d.edges(reg.h), d.kernel_arrivals(reg.h)),
            false => Default::default(),
        };
        let unknown = by_kernel.count != reg.last.by_kernel;
        let came_by_kernel = is_edge && unknown && d.has_taken_arrivals(reg.h);
        let is_socket = is_socket(reg.h);
        if is_edge && !kernel && edges == reg.last.edges && !came_by_kernel && is_socket {
            return 0;
        }
        // Of room by the kernel its registration may say nothing: out of reach, or, told once, only by the next call.
        let is_untold = |ready: u32| match (is_edge, reg.orphan) {
            (true, orphan) => orphan && reg.last.told & OUT == 0,
            (false, orphan) => orphan || !is_socket && ready != 0 && reg.events & ONESHOT != 0,
        };
        let is_told = is_edge && !kernel && edges.0 == reg.last.edges.0;
        let look = || {
            let ready = in_a_set(match is_told {
                true => d.still_ready(reg.h, reg.want()),
                false => d.ready(reg.h, reg.want()),
            });
            match is_untold(ready) && reg.want() & OUT & !ready != 0 && d.has_kernel_room(reg.h) {
                true => ready | reg.want() & OUT,
                false => ready,
            }
        };
        // Told once, and never registered anew: with all that the kernel knows of it.
        let with_kernels = |ready: u32| {
            if !reg.orphan || reg.events & ONESHOT == 0 || kernel {
                return ready;
            }
            let holds = d.kernel_holds(reg.h, 0, self.needed(i) | ERR | HUP);
            ready | self.holding(i, holds, false)
        };
        let mut ready = look();
        if !is_edge {
            return match ready {
                0 => 0,
                ready => with_kernels(ready),
            };
        }
        // What has come counts even if it was taken since.
        let known = reg.last.edges.0 != u64::MAX;
        if !known && ready != 0 {
            // The first time all that is there is one edge: what came between those two looks is told now, and is none later.
            (edges, by_kernel) = (d.edges(reg.h), d.kernel_arrivals(reg.h));
            ready = look();
        }
        if known && ready != 0 && reg.h.kind() == Kind::Epoll {
            // What the look itself has found in a set is told with the rest.
            edges = d.edges(reg.h);
        }
        // The kernel wakes whoever waits when the program shuts a direction, and what can be read then is told again.
        let shut = known && ready & !OUT != 0 && d.ends(reg.h).shut != reg.last.ends.shut;
        let came = edges.0 != reg.last.edges.0 || came_by_kernel && known;
        let arrived = reg.want() & !OUT != 0 && (shut || came && reg.hears_arrivals());
        if arrived && known && !kernel && reg.want() & OUT & !ready != 0 && d.has_kernel_room(reg.h)
        {
            ready |= reg.want() & OUT;
        }
        let emptied = ready & OUT != 0 && edges.1 != reg.last.edges.1;
        if !kernel && (ready == 0 || !arrived && !emptied) {
            return 0;
        }
        ready = with_kernels(ready);
        if take {
            let reg = &mut self.regs[i];
            reg.last.edges.0 = edges.0;
            if ready & IN != 0 {
                reg.last.bytes = (edges.0, by_kernel.count);
                if !kernel {
                    // Else that was seen before, by its report.
                    reg.last.taken_back = by_kernel.taken_back;
                }
            }
            reg.last.ends = d.ends(reg.h);
            if kernel || came_by_kernel || !known {
                reg.last.by_kernel = by_kernel.count;
            }
            if ready & OUT != 0 {
                reg.last.edges.1 = edges.1;
            }
        }
        ready
    }
}

/// Does this hold of what has come by the kernel, as far as all of that is counted? In doubt it is no.
fn surely(d: &dyn Descriptor, h: Handle, holds: impl Fn(Arrivals) -> bool) -> bool {
    let arrivals = d.kernel_arrivals(h);
    // What was on its way has come by the second look.
    holds(arrivals) && (arrivals.certain || d.has_counted_all(h) && holds(d.kernel_arrivals(h)))
}

/// A set has no word for POLLNVAL.
fn in_a_set(events: u32) -> u32 {
    const NVAL: u32 = libc::POLLNVAL as u32;
    if events & NVAL != 0 {
        events & !NVAL | ERR
    } else {
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoll::regs::Reg;
    use crate::sync::{AtomicU32, Ordering};

    /// A carried connection by which nothing comes; what the kernel knows of its end is here.
    struct Silent(AtomicU32);

    impl Descriptor for Silent {
        fn ready(&self, _: Handle, _: u32) -> u32 {
            0
        }
        fn arm(&self, _: Handle, _: u32) {}
        fn disarm(&self, _: Handle, _: u32) {}
        fn bell(&self, _: Handle) -> Option<i32> {
            None
        }
        fn settle(&self, _: Handle) {}
        fn kernel_events(&self, _: Handle, want: u32) -> u32 {
            want
        }
        fn edges(&self, _: Handle) -> (u64, u64) {
            (7, 7)
        }
        fn kernel_arrivals(&self, _: Handle) -> Arrivals {
            Arrivals {
                count: 5,
                taken_back: 0,
                certain: true,
            }
        }
        fn kernel_holds(&self, _: Handle, _: u32, asked: u32) -> u32 {
            self.0.load(Ordering::Relaxed) & asked
        }
        fn kernel_reported(&self, _: Handle, events: u32) -> u32 {
            events
        }
    }

    /// Where the registration's mode excludes EPOLLRDHUP, the end of a peer that was killed shows as EPOLLIN, which a registration
    /// anew would bring too.
    #[test]
    fn an_end_behind_a_registration_anew_is_told_once() {
        let kernel: &'static Silent = Box::leak(Box::new(Silent(AtomicU32::new(0))));
        let asked = libc::epoll_event {
            events: IN | ET | libc::EPOLLEXCLUSIVE as u32,
            u64: 1,
        };
        let h = Handle::new(Kind::Socket, 1, 0);
        let mut inner = Inner::new(-1);
        let i = inner.insert(Reg::new(3, Some((h, kernel)), &asked));
        let reg = &mut inner.regs[i];
        (reg.carried, reg.kernel) = (true, Some(IN | ET));
        reg.last.edges = (7, 7);
        reg.last.by_kernel = 5;
        let told = |inner: &mut Inner| {
            inner.regs[i].last.posted = true;
            inner.reported(i, IN)
        };
        inner.regs[i].last.seen = IN;
        assert_eq!(told(&mut inner), 0);
        kernel.0.store(RDHUP, Ordering::Relaxed);
        assert_eq!(told(&mut inner), IN);
        assert_eq!(told(&mut inner), 0);
    }
}
