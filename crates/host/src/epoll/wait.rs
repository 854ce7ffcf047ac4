//! epoll_wait(2): hot registrations first, then a spin while it pays, then the kernel.

use core::time::Duration;

use headwater_channel::wait::Outcome;
use headwater_channel::waiter;
use libc::{epoll_event, sigset_t};

use self::asleep::AtMembers;
use super::regs::Inner;
use super::set::{Held, Set};
use super::{ET, MODES, Tag, Timeout, fdinfo, sys};
use crate::counters::{self, Counter, Reason};
use crate::poll::{Confined, KERNEL_IDLE};
use crate::sync::Ordering;
use crate::table::{self, Kind, Trait};
use crate::{idle, next, process, signal, stand_in};

mod asleep;

/// Sets that ask for no more events than that are given all that fit, and no two of one descriptor.
const MERGED: usize = 16;
/// Looks at shared memory between two looks at the kernel while spinning.
const KERNEL_SPIN: u32 = 200;

/// Streams promise that all that is ready is reported; sockets, all that was ready a little before.
fn has_stream(inner: &Inner) -> bool {
    let is_stream = |&i: &u32| inner.regs[i as usize].h.kind().is(Trait::ToldByBell);
    inner.hot.iter().any(is_stream)
}

/// Between looks at a set in which another process has put what this one can't be told of, and between looks for that.
const PAUSE: u64 = Duration::from_millis(1).as_nanos() as u64;

impl Set {
    pub fn wait(
        &self,
        out: &mut [epoll_event],
        within: Timeout,
        mask: Option<&sigset_t>,
    ) -> Result<i32, Confined> {
        self.see_wait();
        let timeout = within.ns;
        let is_plain = self.concerned.load(Ordering::SeqCst) == 0;
        let begun = match is_plain {
            true => None,
            false => match self.begin(out, timeout) {
                Ok(n) => return Ok(n),
                Err(begun) => begun,
            },
        };
        let sleeps_with = mask.filter(|_| timeout != Some(0));
        signal::under(sleeps_with, || {
            self.wait_on(out, within, mask, is_plain, begun)
        })
    }

    /// A look before the first sleep: what it ends with, if it does; else when that was, if it is known.
    fn begin(&self, out: &mut [epoll_event], timeout: Option<u64>) -> Result<i32, Option<u64>> {
        signal::begin_wait_for_any();
        if timeout == Some(0) {
            stand_in::glance();
        }
        let (n, now) = self.look(out, timeout == Some(0));
        match n > 0 || timeout == Some(0) {
            true => Ok(self.leave(n)),
            false => Err(now),
        }
    }

    /// The rest of it, in which it sleeps.
    fn wait_on(
        &self,
        out: &mut [epoll_event],
        within: Timeout,
        mask: Option<&sigset_t>,
        is_plain: bool,
        mut begun: Option<u64>,
    ) -> Result<i32, Confined> {
        let timeout = within.ns;
        if is_plain {
            if let Some(n) = self.wait_plain(out, within, mask) {
                return Ok(n);
            }
            begun = match self.begin(out, timeout) {
                Ok(n) => return Ok(n),
                Err(begun) => begun,
            };
        }
        // The clock is asked once for all that begins here: a wait for an answer that is on its way takes ten times as long.
        let deadline = timeout.map(|t| begun.unwrap_or_else(sys::now).saturating_add(t));
        loop {
            let n = self.spin(out, begun.take());
            if n > 0 {
                return Ok(self.leave(n));
            }
            if signal::interrupted() {
                next::set_errno(libc::EINTR);
                return Ok(self.leave(-1));
            }
            let left = deadline.map(|d| d.saturating_sub(sys::now()));
            if process::is_confined() && self.is_plain() {
                return Err(Confined { left });
            }
            let left = Timeout { ns: left, ..within };
            let n = self.sleep(out, left, mask);
            if n != 0 {
                return Ok(self.leave(n));
            }
            if deadline.is_some_and(|d| sys::now() >= d) {
                return Ok(self.leave(0));
            }
        }
    }

    /// Nothing in the set is carried: the kernel's own wait, in which that may change. `None`: it has changed already.
    fn wait_plain(
        &self,
        out: &mut [epoll_event],
        timeout: Timeout,
        mask: Option<&sigset_t>,
    ) -> Option<i32> {
        if timeout.ns != Some(0) {
            idle::about_to_sleep();
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        if self.concerned.load(Ordering::SeqCst) != 0 {
            self.waiter_leaves();
            return None;
        }
        let ep = self.ep.load(Ordering::Relaxed);
        let n = kernel_wait(ep, out, timeout, mask);
        if self.concerned.load(Ordering::SeqCst) == 0 {
            self.waiter_leaves();
            return Some(n);
        }
        let errno = next::errno();
        let mut inner = self.wake();
        if n < 0 {
            drop(inner);
            next::set_errno(errno);
            return Some(n);
        }
        inner.begin();
        let told = translate(&mut inner, out, 0, n as usize);
        drop(inner);
        // Events that tell the program nothing don't end its wait.
        (told > 0 || n == 0).then(|| self.leave(told as i32))
    }

    /// While other threads sleep on the set, nothing stays hot: they rely on bells.
    fn leave(&self, n: i32) -> i32 {
        if self.is_inherited() {
            next::keep_errno(|| self.note_shared(n));
        }
        if self.waiters.load(Ordering::SeqCst) > 0 {
            next::keep_errno(|| self.arm_hot());
        }
        n
    }

    /// What this process is told, or is not told, another one that has the set may know better.
    #[cold]
    fn note_shared(&self, told: i32) {
        let strange = core::mem::take(&mut self.held().strange);
        if told > 0 || strange {
            counters::note(Reason::SharedSet);
        } else {
            self.note_strangers();
        }
    }

    /// This process knows nothing of what another one has put into the set, and is told nothing of it. Is there any?
    #[cold]
    pub fn note_strangers(&self) {
        if counters::noted(Reason::SharedSet) > 0 || process::is_confined() {
            return;
        }
        let mut inner = self.held();
        let now = sys::now();
        if now < inner.strangers_due {
            return;
        }
        inner.strangers_due = now + PAUSE;
        // As the program gave it stands what went into a set that no call of theirs had waited for; it may be a connection that is
        // carried where the number here is one too, or nothing: theirs may be younger than this process.
        let may_be_carried = |fd: i32| match table::lookup(fd) {
            Some(h) => h.kind() == Kind::Socket,
            None => !sys::is_open(fd),
        };
        let is_theirs = |fd: i32, data: u64| match Tag::of(data) {
            Some(tag) => !tag.is_bell() && inner.tagged(tag).is_none(),
            None => !inner.knows(fd) && may_be_carried(fd),
        };
        if fdinfo::has_any(inner.ep(), |fd, _, data| is_theirs(fd, data)) {
            counters::note(Reason::SharedSet);
        }
    }

    /// Looks without waiting: at the hot registrations, and at the kernel when it is due or `kernel`.
    /// When that was is told as well where it had to be known.
    fn look(&self, out: &mut [epoll_event], kernel: bool) -> (i32, Option<u64>) {
        let mut inner = self.held_briefly();
        inner.heat_sets();
        inner.begin();
        if inner.mutes {
            inner.heat_mutes();
        }
        let now = (!inner.hot.is_empty()).then(sys::now);
        let due = match now {
            None => kernel,
            Some(now) => inner.is_due(now),
        };
        // Where there is no room for all, each comes first in turn.
        let first = due && inner.comes_first();
        let n = and_what_moved(&mut inner, out, |inner, out| {
            let mut n = 0;
            if first {
                n = look_kernel(inner, out, 0, now);
            }
            n = scan(inner, out, n, true);
            let due = due || n == 0 && kernel || n > 0 && has_stream(inner);
            if due && !first {
                n = look_kernel(inner, out, n, None);
            }
            n
        });
        if n == 0 && inner.nested {
            inner.list_told(false);
        }
        (n as i32, now)
    }

    fn spin(&self, out: &mut [epoll_event], begun: Option<u64>) -> i32 {
        let peers = {
            let inner = self.held_briefly();
            if inner.hot.is_empty() {
                return 0;
            }
            // A hint of where the peers are: the few latest.
            let mut peers = [None; 4];
            for (slot, &i) in peers.iter_mut().zip(inner.hot.iter().rev()) {
                let reg = &inner.regs[i as usize];
                *slot = reg.d.map(|d| (reg.h, d));
            }
            peers
        };
        let mut n = 0;
        let mut turns = 0u32;
        let cpu = || {
            let mine = sys::cpu();
            let mut found = u32::MAX;
            for (h, d) in peers.iter().flatten() {
                let cpu = d.peer_cpu(*h);
                if cpu != u32::MAX && (found == u32::MAX || found == mine) {
                    found = cpu;
                }
            }
            found
        };
        let outcome = self.learner.wait(begun, cpu, || {
            turns += 1;
            if signal::interrupted() {
                return true;
            }
            let mut inner = self.held_briefly();
            inner.begin();
            n = and_what_moved(&mut inner, out, |inner, out| scan(inner, out, 0, false));
            // While nobody waits for us: the next call need not ask then.
            let idle = turns == KERNEL_IDLE && inner.is_due_soon() && cpu() != sys::cpu();
            if n == 0 && (idle || turns.is_multiple_of(KERNEL_SPIN)) {
                n = look_kernel(&mut inner, out, 0, None);
            }
            if n == 0 {
                for _ in 1..inner.hot.len().min(16) {
                    core::hint::spin_loop();
                }
            }
            n > 0
        });
        if outcome == Outcome::Ready {
            counters::add(Counter::Spins, 1);
        }
        n as i32
    }

    /// Arms what is hot and waits in the kernel. 0: nothing yet.
    fn sleep(&self, out: &mut [epoll_event], timeout: Timeout, mask: Option<&sigset_t>) -> i32 {
        idle::about_to_sleep();
        let mut members = AtMembers {
            set: self,
            out,
            timeout: Timeout {
                ns: stand_in::turn(timeout.ns),
                ..timeout
            },
            mask,
            held: None,
        };
        let waited = waiter::sleep(&mut members);
        let (out, mut inner) = members.woken();
        let n = match waited {
            None => None,
            Some((n, errno)) if n < 0 => {
                drop(inner);
                next::set_errno(errno);
                return n;
            }
            Some((n, _)) => Some(n as usize),
        };
        if n == Some(0) {
            inner.slice_over();
        }
        inner.begin();
        let told = and_what_moved(&mut inner, out, |inner, out| {
            match translate(inner, out, 0, n.unwrap_or(0)) {
                0 => scan(inner, out, 0, false),
                told => told,
            }
        }) as i32;
        let strange = n.is_some() && told == 0 && inner.strange;
        drop(inner);
        if strange && self.is_inherited() {
            // Level-triggered, it would come again at once.
            let _ = sys::ppoll(
                &mut [],
                Some(timeout.ns.map_or(PAUSE, |left| left.min(PAUSE))),
            );
        }
        told
    }

    /// The end of a sleep of which nobody was to be told.
    fn wake(&self) -> Held<'_> {
        let mut inner = self.held();
        self.stand_down(&mut inner);
        inner
    }

    /// One fewer sleeps. After the last nobody needs to ring for what is hot: it is looked at again.
    fn stand_down(&self, inner: &mut Inner) {
        if self.waiter_leaves() {
            inner.disarm_hot();
        }
    }
}

/// The C library's own wait, a cancellation point.
fn kernel_wait(ep: i32, out: &mut [epoll_event], timeout: Timeout, mask: Option<&sigset_t>) -> i32 {
    type Exactly = unsafe extern "C-unwind" fn(
        i32,
        *mut epoll_event,
        i32,
        *const libc::timespec,
        *const sigset_t,
    ) -> i32;
    static EXACTLY: next::Next = next::Next::new(c"epoll_pwait2");
    let (events, max) = (out.as_mut_ptr(), out.len() as i32);
    let mask = mask.map_or(core::ptr::null(), core::ptr::from_ref);
    if let Some(ns) = timeout.ns
        && timeout.exact
        && EXACTLY.address() != 0
    {
        // SAFETY: the C library's function of that name has this type; `out` has room for `max`, and the mask is null or valid.
        let n = unsafe {
            let exactly: Exactly = core::mem::transmute(EXACTLY.address());
            exactly(ep, events, max, &sys::timespec(ns), mask)
        };
        if n >= 0 || next::errno() != libc::ENOSYS {
            return n;
        }
    }
    // SAFETY: `out` has room for `max`, and the mask is null or valid.
    unsafe { next::epoll_pwait(ep, events, max, milliseconds(timeout.ns), mask) }
}

/// Up to the next millisecond, as epoll and poll(2) count in them; a wait that ends early is made again.
pub fn milliseconds(timeout: Option<u64>) -> i32 {
    timeout.map_or(-1, |ns| ns.div_ceil(1_000_000).min(i32::MAX as u64) as i32)
}

/// Adds what the kernel knows to `known` events; returns how many there are then. Of these themselves it may know more, which few
/// are asked for.
fn look_kernel(
    inner: &mut Inner,
    out: &mut [epoll_event],
    known: usize,
    now: Option<u64>,
) -> usize {
    if known == out.len() && known > MERGED {
        return known;
    }
    inner.looked = now.unwrap_or_else(sys::now);
    inner.unasked = 0;
    inner.is_new = false;
    if inner.may_have_moved() {
        inner.watch_hot();
    }
    let told = ask_kernel(inner, out, known);
    match core::mem::take(&mut inner.collected) {
        // It was looked at the hot ones before.
        true => scan(inner, out, told, false),
        false => told,
    }
}

/// Looks, by `look`. What ends have taken back to the kernel meanwhile shows there alone, which may have been asked before.
fn and_what_moved(
    inner: &mut Inner,
    out: &mut [epoll_event],
    look: impl FnOnce(&mut Inner, &mut [epoll_event]) -> usize,
) -> usize {
    let moves = counters::read(Counter::Unswitches);
    let mut n = look(inner, out);
    if counters::read(Counter::Unswitches) != moves {
        inner.asks_again = true;
        n = look_kernel(inner, out, n, None);
        inner.asks_again = false;
    }
    if n > 0 && inner.nested {
        inner.list_told(n == out.len());
    }
    n
}

fn ask_kernel(inner: &mut Inner, out: &mut [epoll_event], known: usize) -> usize {
    let told = fill(inner, out, known);
    if told < out.len() || told > MERGED {
        return told;
    }
    if told == known {
        let mut set = [sys::entry(inner.ep(), libc::POLLIN)];
        if sys::ppoll(&mut set, Some(0)).unwrap_or(0) == 0 {
            return told;
        }
        inner.looked = 0;
    }
    add_what_holds(inner, out);
    told
}

/// As many of the kernel's events as there is room for, in its order, in which those that it told of come last: asked for more, it
/// would put off others. Where what comes is stale bells, or more of one registration, what lies behind that is asked for too.
/// Returns how many the program is told of then.
fn fill(inner: &mut Inner, out: &mut [epoll_event], known: usize) -> usize {
    let mut told = known;
    for _ in 0..MERGED {
        let room = out.len() - told;
        if room == 0 {
            break;
        }
        let (before, posts) = (told, inner.posts);
        let mut few = [sys::event(0, 0); MERGED];
        let n = if out.len() <= MERGED {
            // What is not told is not seen either.
            let n = sys::epoll_poll(inner.ep(), &mut few[..room]).unwrap_or(0);
            for event in &few[..n] {
                let data = event.u64;
                let again =
                    Tag::of(data).is_none() && out[known..before].iter().any(|e| { e.u64 } == data);
                if again {
                    // As like as not the one that was told of when the set was asked before.
                    inner.keep(event);
                } else {
                    told = tell(inner, out, told, event);
                }
            }
            inner.watch_rung();
            n
        } else {
            let n = sys::epoll_poll(inner.ep(), &mut out[told..]).unwrap_or(0);
            told = translate(inner, out, told, n);
            n
        };
        if n > 0 {
            // It holds at the next call too, as like as not.
            inner.looked = 0;
        }
        // Bells come once, and not in place of what lies behind them.
        let is_same = told == before && inner.posts == posts;
        if n < room || told > known && (is_same || out.len() > MERGED) {
            break;
        }
    }
    told
}

/// The kernel may know more of those that fill the room because of what their rings say. They themselves are asked: what the set was
/// asked for beyond its room would come behind all others next time, and might never be told.
fn add_what_holds(inner: &mut Inner, out: &mut [epoll_event]) {
    let (mut at, mut asked) = ([0; MERGED], [sys::entry(-1, 0); MERGED]);
    let is_told = |&i: &usize| {
        let reg = &inner.regs[i];
        reg.batch.0 == inner.batch && !reg.orphan && !inner.is_silent(i)
    };
    let told = inner.hot.iter().map(|&i| i as usize).filter(is_told);
    let mut count = 0;
    for (i, (at, entry)) in told.zip(at.iter_mut().zip(&mut asked)) {
        let watched = inner.regs[i].kernel.map_or(0, |events| events & !MODES);
        (*at, *entry) = (i, sys::entry(inner.regs[i].fd, watched as i16));
        count += 1;
    }
    if count == 0 || sys::ppoll(&mut asked[..count], Some(0)).unwrap_or(0) == 0 {
        return;
    }
    for (&i, entry) in at.iter().zip(&asked[..count]) {
        let events = u32::from(entry.revents as u16);
        if events == 0 || events & libc::POLLNVAL as u32 != 0 {
            continue;
        }
        let more = inner.reported(i, events);
        let reg = &mut inner.regs[i];
        out[reg.batch.1 as usize].events |= more;
        // The set says it once more, to those that have it by edges.
        reg.last.posted |= reg.events & ET != 0;
    }
}

/// Adds the hot registrations that are ready to `known` events, round-robin when there are more than fit; returns how many there
/// are then. With `age`, those that have had nothing for many calls while others had are left to their bells.
fn scan(inner: &mut Inner, out: &mut [epoll_event], known: usize, age: bool) -> usize {
    if known == out.len() {
        return known;
    }
    let mut n = known;
    let mut k = 0;
    let count = inner.hot.len();
    let first = if count > out.len() - known {
        // Counted where it matters: what else is done in turns must not keep the same ones in front.
        let turn = inner.scan_turn;
        inner.scan_turn = turn.wrapping_add(1);
        turn % count
    } else {
        0
    };
    while k < count.min(inner.hot.len()) && n < out.len() {
        let i = inner.hot[(first + k) % inner.hot.len()] as usize;
        let ready = inner.evaluate(i, true, false);
        if ready != 0 {
            inner.hit(i);
            inner.disarm(i);
            inner.fired(i, false);
            n = enter(inner, i, ready, out, n);
        } else if age && inner.missed(i) && inner.regs[i].h.kind() != Kind::Epoll {
            inner.cool(i);
            continue;
        }
        k += 1;
    }
    n
}

/// Tells of a registration: in its event of this batch, or in a new one, the `n`th. Returns how many there are then.
fn enter(inner: &mut Inner, i: usize, events: u32, out: &mut [epoll_event], n: usize) -> usize {
    let batch = inner.batch;
    let reg = &mut inner.regs[i];
    if reg.batch.0 == batch {
        out[reg.batch.1 as usize].events |= events;
        return n;
    }
    reg.batch = (batch, n as u32);
    out[n] = sys::event(events, reg.data);
    n + 1
}

/// Turns `count` kernel events behind `known` ones in place into what the program is told: bells into their connection's readiness,
/// tags into data. Returns how many events there are then.
fn translate(inner: &mut Inner, out: &mut [epoll_event], known: usize, count: usize) -> usize {
    let told = (known..known + count).fold(known, |told, k| {
        let event = out[k];
        tell(inner, out, told, &event)
    });
    inner.watch_rung();
    told
}

/// One of the kernel's events, behind `told` ones, for which there is room.
fn tell(inner: &mut Inner, out: &mut [epoll_event], told: usize, event: &epoll_event) -> usize {
    let at = Tag::of(event.u64).map(|tag| (tag, inner.tagged(tag)));
    let (tag, i) = match at {
        // Told by the same look before, as like as not.
        None if inner.asks_again => {
            inner.keep(event);
            return told;
        }
        None => {
            out[told] = *event;
            return told + 1;
        }
        Some((_, None)) => {
            inner.strange = true;
            return told;
        }
        Some((tag, Some(i))) => (tag, i),
    };
    let silent = inner.is_silent(i);
    let mut events = 0;
    if tag.is_bell() {
        inner.posts += 1;
        inner.heat_rung(i);
        let reg = &inner.regs[i];
        if let Some(d) = reg.d {
            d.rung(reg.h);
        }
        if inner.duplicates {
            for j in inner.same(inner.regs[i].h) {
                inner.heat(j);
            }
        }
    } else {
        inner.note_ends(i, event.events);
        let holds = inner.still(i, event.events);
        events = inner.reported(i, holds);
        if events != 0 {
            events |= inner.room_unasked_for(i);
        }
        let _ = inner.watch(i, false);
    }
    if !silent {
        events |= inner.evaluate(i, true, events != 0);
    }
    if silent || events == 0 {
        if !tag.is_bell() {
            inner.quiet(i, event.events);
        }
        return told;
    }
    inner.fired(i, !tag.is_bell());
    enter(inner, i, events, out, told)
}
