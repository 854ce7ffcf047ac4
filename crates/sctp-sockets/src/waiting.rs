//! What a blocking call waits for, and what poll(2) is told.
//!
//! Packets are taken by whoever waits (see [`stack`](headwater_sctp_stack::stack)); an association in shared memory rings. A socket that has
//! one association in shared memory and nothing else waits as a stream does, and looks a while before it sleeps; whoever has
//! several things to wait for arms them all and sleeps at their descriptors.

use core::time::Duration;

use headwater_channel::waiter;
use headwater_host::sync::Ordering;
use headwater_host::table::{self, Handle};
use headwater_host::{next, reclaim, signal, stand_in, sys};
use headwater_sctp_stack::left::{self, Held};
use headwater_sctp_stack::signal::readable;
use headwater_sctp_stack::{stack, until};
use headwater_streams::head::Head;
use headwater_streams::head::arming::Want;

use self::asleep::AtRings;
use super::{AssocT, Body, Core, Options, Socket, State, Style, remote};

mod asleep;

pub(super) const IN: u32 = (libc::POLLIN | libc::POLLRDNORM) as u32;
pub(super) const OUT: u32 = (libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND) as u32;
const HUP: u32 = libc::POLLHUP as u32;
const RDHUP: u32 = libc::POLLRDHUP as u32;
const ERR: u32 = libc::POLLERR as u32;
/// Descriptors that a sleep takes beside the stack's; where there are more it is cut in slices.
const MOST: usize = 256;
const SLICE: u64 = Duration::from_millis(5).as_nanos() as u64;
/// Who takes packets for others can't be cancelled in the midst of it: so often.
const CANCEL: u64 = Duration::from_millis(100).as_nanos() as u64;

/// What readiness of a socket is watched at.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// An association in shared memory: its stream, and its connection.
    ByMemory(Handle, Option<i32>),
    Fd(i32),
}

/// What a call waits for.
#[derive(Clone, Copy)]
pub(super) enum For {
    /// A message, a notification, a peer, the end.
    News,
    /// Room to send, of that association.
    Room(AssocT),
    /// That association to be there.
    Setup(AssocT),
}

/// A call that may wait holds its socket open, whatever becomes of the descriptor.
struct Waiter<'a>(&'a Socket);

impl<'a> Waiter<'a> {
    fn of(socket: &'a Socket) -> Waiter<'a> {
        left::take(|| {
            socket.waiters.fetch_add(1, Ordering::SeqCst);
            Some(Held::Place(
                (&raw const *socket).cast(),
                Socket::call_left_at,
            ))
        });
        Waiter(socket)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        left::give_back(|| self.0.call_left());
    }
}

/// Where a call sleeps.
enum SleepsOn {
    Ring(&'static Head),
    /// Handles of rings to arm, and descriptors.
    Descriptors(Vec<Handle>, Vec<i32>),
}

impl Socket {
    /// A call that held it open is over.
    fn call_left(&self) {
        let last = self.waiters.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.abandoned.swap(false, Ordering::SeqCst) {
            self.close();
        }
    }

    /// The same, of a call that never returns.
    ///
    /// # Safety
    /// `at` is a socket that such a call has kept.
    unsafe fn call_left_at(at: *const ()) {
        // SAFETY: as the caller says.
        unsafe { &*at.cast::<Socket>() }.call_left();
    }

    /// May a call with these flags wait?
    pub(super) fn may_wait(&self, flags: i32) -> bool {
        flags & libc::MSG_DONTWAIT == 0
            && !self.nonblocking.load(Ordering::Relaxed)
            && !remote::never_waits()
    }

    /// The moment until which a call may wait; 0 where it may not.
    pub(super) fn timeout(&self, which: impl FnOnce(&Options) -> Option<Duration>) -> u64 {
        match self.may_wait(0) {
            true => until(which(&self.core.enter().options)),
            false => 0,
        }
    }

    /// Whoever waits looks again: the socket is not as it was.
    pub(super) fn changed(&self) {
        stack::kick(&self.sink);
        let core = self.core.enter();
        core.assocs.values().for_each(|assoc| assoc.body.wake());
    }

    /// Looks a while for the peer of a connected one-to-one socket to send, or to make room. True: what is there is worth an
    /// attempt; false: whoever waits has looked. EINTR.
    pub(super) fn look(&self, want: Want) -> sys::Result<bool> {
        if self.style == Style::Many {
            return Ok(false);
        }
        let _looks = reclaim::enter();
        let Some(head) = self.core.enter().only_ring() else {
            return Ok(false);
        };
        signal::begin_wait();
        let seen = self.sink.signal.changes();
        let events = if want == Want::ROOM { OUT } else { IN };
        let holds = || head.events(events) != 0 || self.sink.signal.changes() != seen;
        match head.look(want, holds) {
            true if signal::interrupted() => Err(libc::EINTR),
            found => Ok(found),
        }
    }

    /// Tries until there is a result. `looked`: not to look again before the first sleep. EAGAIN: the time is over; EINTR.
    pub(super) fn wait_for<T>(
        &self,
        until: u64,
        what: For,
        mut looked: bool,
        mut attempt: impl FnMut(&mut Core) -> Option<sys::Result<T>>,
    ) -> sys::Result<T> {
        signal::begin_wait();
        let _waiter = Waiter::of(self);
        loop {
            let seen = self.sink.signal.changes();
            // At the ring that it waits at without the lock.
            let looks = reclaim::enter();
            let mut core = self.core.enter();
            if core.closed {
                return Err(libc::EBADF);
            }
            if let Some(done) = attempt(&mut core) {
                return done;
            }
            let sleeps_on = core.sleeps_on(what);
            let has_port = core.has_packets();
            drop(core);
            if sys::now() >= until {
                return Err(libc::EAGAIN);
            }
            let want = match what {
                For::Room(_) => Want::ROOM,
                For::News | For::Setup(_) => Want::DATA,
            };
            if let SleepsOn::Descriptors(..) = sleeps_on {
                drop(looks);
            }
            let slept = self.sleep(seen, sleeps_on, has_port, want, looked, until);
            looked = false;
            // Who is interrupted by a handler with SA_RESTART goes on.
            match slept {
                _ if signal::interrupted() => return Err(libc::EINTR),
                Err(libc::EINTR) => {}
                done => done?,
            }
        }
    }

    fn sleep(
        &self,
        seen: u32,
        sleeps_on: SleepsOn,
        has_port: bool,
        want: Want,
        looked: bool,
        until: u64,
    ) -> sys::Result<()> {
        let room = want == Want::ROOM;
        let events = if room { OUT } else { IN };
        let changed = || self.sink.signal.changes() != seen || signal::interrupted();
        let _asleep = left::sleeps(&self.sink);
        match sleeps_on {
            SleepsOn::Ring(head) => {
                let bell = self.sink.descriptor()?;
                let mut beside = [sys::entry(bell, libc::POLLIN | libc::POLLRDHUP)];
                let deadline = (until != u64::MAX).then_some(until);
                let holds = || head.events(events) != 0 || changed();
                let slept = match looked {
                    true => head.sleep_beside(want, deadline, &mut beside, holds),
                    false => head.wait(want, deadline, &mut beside, holds),
                };
                match slept {
                    Err(libc::ETIME) => Ok(()),
                    done => done,
                }
            }
            SleepsOn::Descriptors(handles, fds) => {
                let until = stand_in::turn_until(until);
                if room {
                    self.sink.want_room();
                }
                let slice = match (fds.len() <= MOST, has_port) {
                    (false, _) => SLICE,
                    (true, true) => CANCEL,
                    // A handler may run right before.
                    (true, false) if signal::handles() => CANCEL,
                    (true, false) => u64::MAX,
                };
                let slept = waiter::sleep(&mut AtRings {
                    handles: &handles,
                    events,
                    rung: Vec::new(),
                    changed,
                    in_kernel: |by_memory: &dyn Fn() -> bool| {
                        let until = until.min(sys::now().saturating_add(slice));
                        let fds = &fds[..fds.len().min(MOST)];
                        match stack::existing().filter(|_| has_port) {
                            Some(stack) => stack
                                .wait(&self.sink.signal, until, fds, by_memory)
                                .map(drop),
                            None => self.sleep_in_kernel(fds, until),
                        }
                    },
                });
                // SAFETY: no arguments; nothing is held here that others wait for.
                unsafe { next::pthread_testcancel() };
                slept
            }
        }
    }

    fn sleep_in_kernel(&self, fds: &[i32], until: u64) -> sys::Result<()> {
        let sink = [self.sink.descriptor()?];
        let mut set = readable(sink.into_iter().chain(fds.iter().copied()));
        let left = (until != u64::MAX).then(|| until.saturating_sub(sys::now()));
        sys::ppoll(&mut set, left).map(drop)
    }

    /// poll(2) events among `want` that hold.
    pub fn ready(&self, want: u32) -> u32 {
        elsewhere!(self.ready(want));
        let mut core = self.core.enter();
        let mut events = core.ready_events();
        if events & want == 0
            && core.has_packets()
            && let Some(stack) = stack::existing()
        {
            // Perhaps something has come.
            core.flush();
            drop(core);
            stack.pump();
            core = self.core.enter();
            events = core.ready_events();
        }
        if events & OUT == 0 && want & OUT != 0 {
            self.sink.want_room();
        }
        events & (want | HUP | ERR)
    }

    /// The last descriptor is gone. Who waits in a call closes it when that is over.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) == 0 && self.abandoned.swap(false, Ordering::SeqCst)
        {
            self.close();
        }
    }

    /// Its messages are added to the process's counters.
    pub fn tell_counts(&self) {
        self.core.enter().tally.tell();
    }

    /// Before a wait for its descriptor, by poll(2) or the like: the background thread takes packets from now on.
    pub fn hand_over(&self) {
        if let Some(stack) = stack::existing() {
            stack.hand_over();
        }
    }

    pub fn sources(&self, each: &mut dyn FnMut(Source)) {
        elsewhere!(self.sources(each));
        let core = self.core.enter();
        if let Some(by_memory) = &core.memory_listener {
            each(Source::Fd(by_memory.descriptor()));
        }
        for assoc in core.assocs.values() {
            if let Body::ByMemory(by_memory) = &assoc.body {
                each(Source::ByMemory(by_memory.handle(), by_memory.shadow()));
            }
        }
        if let Ok(fd) = self.sink.descriptor() {
            each(Source::Fd(fd));
        }
    }

    /// Changes with the sources.
    pub fn source_changes(&self) -> u64 {
        self.core.enter().changes
    }
}

impl Core {
    pub(super) fn has_packets(&self) -> bool {
        self.port.is_some() || self.assocs.len() > self.ids_by_memory.len()
    }

    /// The ring of its only association, where nothing else can come.
    fn only_ring(&self) -> Option<&'static Head> {
        let [only] = self.ids_by_memory[..] else {
            return None;
        };
        if self.memory_listener.is_some() || self.has_packets() {
            return None;
        }
        match &self.assocs.get(&only)?.body {
            Body::ByMemory(by_memory) if by_memory.is_up() => Some(by_memory.head()),
            _ => None,
        }
    }

    fn sleeps_on(&self, what: For) -> SleepsOn {
        let by_memory = |id: &AssocT| match &self.assocs.get(id)?.body {
            Body::ByMemory(by_memory) => Some(by_memory),
            Body::ByPackets(_) => None,
        };
        if let For::Room(id) = what
            && let Some(by_memory) = by_memory(&id)
        {
            return SleepsOn::Ring(by_memory.head());
        }
        // What others have to say would not let the call sleep.
        let whose = match what {
            For::News => self.current,
            For::Room(id) | For::Setup(id) => Some(id),
        };
        if let Some(head) = self.only_ring() {
            return SleepsOn::Ring(head);
        }
        let (listening, ids_by_memory) = match &whose {
            Some(id) => (None, core::slice::from_ref(id)),
            None => (self.memory_listener.as_ref(), &self.ids_by_memory[..]),
        };
        let mut handles = Vec::new();
        let mut fds: Vec<i32> = listening.iter().map(|l| l.descriptor()).collect();
        for by_memory in ids_by_memory.iter().filter_map(by_memory) {
            let h = by_memory.handle();
            fds.extend(table::descriptor(h).and_then(|d| d.bell(h)));
            fds.extend(by_memory.shadow());
            handles.push(h);
        }
        SleepsOn::Descriptors(handles, fds)
    }

    fn flush(&mut self) {
        for assoc in self.assocs.values_mut().take(1) {
            assoc.body.flush();
        }
    }

    fn ready_events(&mut self) -> u32 {
        self.gather();
        let mut events = 0;
        if self.error != 0 {
            events |= ERR | IN | OUT;
        }
        if self.listening && self.style == Style::One {
            let nobody = self.waiting.is_empty() && self.lacking.is_none();
            return events | if nobody { 0 } else { IN };
        }
        if self.has_something() || self.read_shut || self.lacking.is_some() {
            events |= IN;
        }
        if self.style == Style::Many {
            return events | if self.lacks_room() { 0 } else { OUT };
        }
        match self.only() {
            None => events | OUT | HUP,
            Some(assoc) => {
                events
                    | match assoc.state {
                        State::Calling => 0,
                        State::Over => IN | OUT | HUP | RDHUP,
                        State::Up if assoc.peer_released => {
                            IN | RDHUP | if assoc.body.has_room() { OUT } else { 0 }
                        }
                        State::Up if assoc.body.has_room() => OUT,
                        State::Up => 0,
                    }
            }
        }
    }

    /// One-to-many: is there an association for which a call that does not wait found no room, and there is none yet?
    fn lacks_room(&mut self) -> bool {
        let assocs = &mut self.assocs;
        self.full.retain(|id| {
            let assoc = assocs.get_mut(id).filter(|a| a.state != State::Over);
            assoc.is_some_and(|assoc| !assoc.body.has_room())
        });
        !self.full.is_empty()
    }

    /// Is there something to receive?
    fn has_something(&mut self) -> bool {
        if self.peeked.is_some() {
            return true;
        }
        let assocs = &mut self.assocs;
        let mut readable = |id: &AssocT| assocs.get_mut(id).is_some_and(|a| a.body.readable());
        match &self.current {
            // Notifications wait for the rest of the message, unless that never comes.
            Some(id) => readable(id) || assocs.get(id).is_none_or(|a| a.state == State::Over),
            None => !self.notices.is_empty() || self.ready.iter().any(readable),
        }
    }
}
