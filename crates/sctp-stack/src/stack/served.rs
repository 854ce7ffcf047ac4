//! One port that this process serves: the engine's endpoint, and beside it what the engine leaves to us: what users have not
//! taken yet, packets that the kernel did not take, and when small messages leave.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use headwater_host::sync::{AtomicBool, AtomicU64, Ordering};
use headwater_host::sys;
use headwater_providers::flusher::{self, Went};
use headwater_sctp::{Arrived, AssocId, Down, Endpoint, Event, Time};

use super::Stack;
use crate::link::Returned;
use crate::on_host::OnHost;
use crate::{Attached, Entered, Guarded, Signal, Sink, environment, here};

mod gathering;
mod outbox;

use gathering::Gathering;
use outbox::Outbox;

/// Bytes that messages may have before they leave, when one follows the other.
const GATHER: usize = 48 << 10;
/// What a message costs beyond its bytes.
const OVERHEAD: usize = 20;
/// A sender that has paused for longer does not send a stream of messages, in nanoseconds.
const PAUSE: u64 = Duration::from_micros(100).as_nanos() as u64;
/// Bytes of packets that are made before they are handed to the links.
const BATCH: usize = 128 << 10;
const SEGMENTS: usize = 64;
/// Packets that fit a window at least, on this host.
const PACKETS: usize = 8;
/// On this host, where packets are large and a small one may wait for the last one's acknowledgement.
const SACK_DELAY: Duration = Duration::from_millis(1);
/// Events that wait for a user.
const MOST_EVENTS: usize = 1024;
/// Before packets that found no room are offered again.
const AGAIN: u64 = Duration::from_micros(500).as_nanos() as u64;

pub struct Served {
    pub stack: &'static Stack,
    pub port: u16,
    myself: Weak<Served>,
    inner: Guarded<Inner>,
    /// As the stack knows it; changed under the lock of `inner`.
    deadline: AtomicU64,
    /// Packets came for it, and it is in the list of the one who pumps.
    touched: AtomicBool,
    /// It is in the stack's list of those that hold something back.
    listed: AtomicBool,
    /// For those who wait for associations.
    pub signal: Arc<Signal>,
}

pub struct Inner {
    pub engine: Endpoint,
    /// Associations of which the user has, or can get, a handle.
    pub entries: HashMap<AssocId, Entry>,
    /// The port itself has a user; if that is a socket, this is what it is told by.
    open: bool,
    pub sink: Option<Arc<Sink>>,
    outbox: Outbox,
    gathering: Gathering,
    /// Associations that wait to be accepted, as the sink was told.
    arrivals: usize,
}

#[derive(Default)]
pub struct Entry {
    pub signal: Arc<Signal>,
    /// A socket is told instead of those who wait for the signal.
    pub sink: Option<Attached>,
    /// Not yet taken, and not only of readiness.
    pub events: VecDeque<Event>,
    /// Its user asked to be told when everything is acknowledged.
    pub wants_dry: bool,
    /// It is over, and why.
    pub down: Option<Down>,
    /// Bytes received since the last look at windows.
    pub consumed: usize,
}

impl Served {
    pub fn new(stack: &'static Stack, engine: Endpoint, sink: Option<Arc<Sink>>) -> Arc<Served> {
        Arc::new_cyclic(|myself| Served {
            stack,
            port: engine.port(),
            myself: myself.clone(),
            inner: Guarded::new(Inner {
                engine,
                entries: HashMap::new(),
                open: true,
                sink,
                outbox: Outbox::default(),
                gathering: Gathering::default(),
                arrivals: 0,
            }),
            deadline: AtomicU64::new(u64::MAX),
            touched: AtomicBool::new(false),
            listed: AtomicBool::new(false),
            signal: Arc::new(Signal::default()),
        })
    }

    /// EBADF in a child of the process that made it.
    #[inline]
    pub fn enter(&self) -> sys::Result<Entered<'_, Inner>> {
        if !self.stack.is_ours() {
            return Err(libc::EBADF);
        }
        Ok(self.inner.enter())
    }

    /// Around a fork: nobody is inside.
    pub fn shut(&self) {
        self.inner.shut();
    }

    pub fn reopen(&self) {
        self.inner.reopen();
    }

    pub fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::SeqCst)
    }

    // ---- asked by the stack ----

    #[inline]
    pub fn arrive(&self, now: u64, packet: &Arrived<'_>) {
        self.inner.enter().engine.handle(Time(now), packet);
    }

    /// True if the caller has to put it on its list.
    pub fn touch(&self) -> bool {
        !self.touched.swap(true, Ordering::Relaxed)
    }

    /// In or out of the stack's list of those that hold something back; false: it was so.
    pub fn list(&self, on: bool) -> bool {
        self.listed.swap(on, Ordering::SeqCst) != on
    }

    pub fn unreachable(&self, now: u64, returned: &Returned<'_>) {
        let mut inner = self.inner.enter();
        let Returned { to, what, quoted } = *returned;
        inner.engine.unreachable(Time(now), to, what, quoted);
    }

    /// After packets have come.
    pub fn settle(&self, now: u64) {
        self.touched.store(false, Ordering::Relaxed);
        let mut inner = self.inner.enter();
        self.act(&mut inner, now);
        self.end_if_unused(inner);
    }

    pub fn on_timeout(&self, now: u64) {
        let mut inner = self.inner.enter();
        self.deadline.store(u64::MAX, Ordering::SeqCst);
        inner.engine.on_timeout(Time(now));
        self.act(&mut inner, now);
        self.end_if_unused(inner);
    }

    // ---- what follows from a change ----

    /// Sends what is to be sent, tells what is to be told, and sees to the next deadline.
    pub fn act(&self, inner: &mut Inner, now: u64) {
        let all = inner.transmit(now, self.stack);
        self.tell(inner);
        self.stop_gathering(inner, now);
        self.see_to_deadline(inner, if all { u64::MAX } else { now + AGAIN });
    }

    /// A message was taken by the engine: does it leave now? True: it has, with all before it.
    #[inline]
    pub fn gather(&self, inner: &mut Inner, now: u64, bytes: usize, at_once: bool) -> bool {
        let gathering = &mut inner.gathering;
        gathering.bytes += bytes + OVERHEAD;
        let answers = core::mem::take(&mut gathering.answering);
        let paused =
            gathering.bytes == bytes + OVERHEAD && now.saturating_sub(gathering.last) > PAUSE;
        let goes = at_once || answers || paused || gathering.bytes >= GATHER;
        if goes || !gathering.held && !flusher::is_there() {
            self.act(inner, now);
            return true;
        }
        if !gathering.held {
            gathering.held = true;
            gathering.since = now;
            if let Some(served) = self.myself.upgrade() {
                self.stack.hold(served);
            }
        }
        false
    }

    fn stop_gathering(&self, inner: &mut Inner, now: u64) {
        let gathering = &mut inner.gathering;
        if core::mem::take(&mut gathering.bytes) > 0 {
            gathering.last = now;
        }
        if core::mem::take(&mut gathering.held) {
            self.stack.drop_hold();
        }
    }

    /// Asked by the flusher; true: it still holds something.
    pub fn flush_if_due(&self, now: u64) -> bool {
        let Some(mut inner) = self.inner.try_enter() else {
            flusher::note(Went::Busy);
            return true;
        };
        if !inner.gathering.held {
            return false;
        }
        if !inner.gathering.is_due(now) {
            flusher::note(Went::Busy);
            return true;
        }
        self.act(&mut inner, now);
        flusher::note(Went::Sent);
        false
    }

    /// What waits for other messages leaves.
    pub fn flush(&self) {
        if let Ok(mut inner) = self.enter() {
            self.flush_inside(&mut inner);
        }
    }

    #[inline]
    pub fn flush_inside(&self, inner: &mut Inner) {
        if inner.gathering.held {
            self.act(inner, sys::now());
        }
    }

    fn tell(&self, inner: &mut Inner) {
        let mut led = false;
        while let Some((id, event)) = inner.engine.event() {
            if matches!(event, Event::Up { .. }) {
                inner.fit_paths(id, self.stack);
                if matches!(event, Event::Up { by_peer: true }) {
                    inner.entries.entry(id).or_default();
                    led |= self.signal.notify();
                }
            }
            let Some(entry) = inner.entries.get_mut(&id) else {
                continue;
            };
            if let Event::Down(why) = &event {
                entry.down = Some(why.clone());
            }
            led |= entry.take_note(event);
            inner.raise(id);
        }
        led |= self.tell_arrivals(inner);
        if led {
            self.stack.leading.ring();
        }
    }

    /// Others wait to be accepted than those the user knows of. True: the leader is to be woken.
    #[must_use]
    pub fn tell_arrivals(&self, inner: &mut Inner) -> bool {
        let waiting = inner.engine.waiting();
        if self.signal.has_descriptor() {
            self.signal.raise(waiting > 0);
        }
        let before = core::mem::replace(&mut inner.arrivals, waiting);
        let sink = inner.sink.as_ref().filter(|_| before != waiting);
        sink.is_some_and(|sink| sink.count_arrivals(before, waiting))
    }

    /// Only an earlier deadline is told at once: a later one is found out when the known one has passed.
    fn see_to_deadline(&self, inner: &Inner, at_most: u64) {
        let engines = inner.engine.timeout().map_or(u64::MAX, |at| at.0);
        let next = engines.min(at_most);
        let known = self.deadline.load(Ordering::SeqCst);
        if next < known {
            self.deadline.store(next, Ordering::SeqCst);
            self.stack.set_deadline(self.port, known, next);
        }
    }

    // ---- the end ----

    /// The user has no more use for the association: it is shut down, or ended at once if `reason` says why.
    pub fn let_go(&self, id: AssocId, reason: Option<&[u8]>) {
        let Ok(mut inner) = self.enter() else { return };
        let now = sys::now();
        match reason {
            Some(reason) => inner.engine.abort(Time(now), id, reason),
            None => inner.engine.shutdown(Time(now), id),
        }
        inner.engine.release(Time(now), id);
        inner.entries.remove(&id);
        self.act(&mut inner, now);
        self.end_if_unused(inner);
    }

    /// Another user takes the port, which associations of a former one still keep. False: somebody has it.
    pub fn open_again(&self, with: impl FnOnce(&mut Inner)) -> bool {
        let mut inner = self.inner.enter();
        let free = !core::mem::replace(&mut inner.open, true);
        if free {
            with(&mut inner);
        }
        free
    }

    /// Nobody has the port, and nothing is left to be done for it.
    pub fn is_unused(&self) -> bool {
        self.inner.enter().is_unused()
    }

    /// The user has no more use for the port: who was not accepted is refused.
    pub fn close(&self) {
        let Ok(mut inner) = self.enter() else { return };
        inner.open = false;
        inner.engine.listen(0);
        let now = sys::now();
        while let Some(id) = inner.engine.accept() {
            inner.engine.abort(Time(now), id, b"");
            inner.engine.release(Time(now), id);
            inner.entries.remove(&id);
        }
        let _ = self.tell_arrivals(&mut inner);
        inner.sink = None;
        self.act(&mut inner, now);
        self.end_if_unused(inner);
    }

    fn end_if_unused(&self, inner: Entered<'_, Inner>) {
        let unused = inner.is_unused();
        drop(inner);
        if unused {
            self.stack.end_service(self.port);
        }
    }

    /// Ends all associations, by `how`.
    pub fn end_all(&self, how: impl Fn(&mut Endpoint, Time, AssocId)) {
        let mut inner = self.inner.enter();
        let now = sys::now();
        let ids: Vec<AssocId> = inner.engine.associations().map(|a| a.id()).collect();
        for id in ids {
            how(&mut inner.engine, Time(now), id);
        }
        self.act(&mut inner, now);
    }

    /// Peers have everything.
    pub fn has_delivered(&self) -> bool {
        let inner = self.inner.enter();
        let mut open = inner.engine.associations().filter(|a| a.is_open());
        open.all(|a| a.sender().buffered() == 0)
    }

    /// No association is open any more.
    pub fn is_idle(&self) -> bool {
        let inner = self.inner.enter();
        !inner.engine.associations().any(|a| a.is_open())
    }
}

impl Entry {
    /// Keeps the event and tells the user of it. True: the leader is to be woken.
    fn take_note(&mut self, event: Event) -> bool {
        let room = event == Event::Writable;
        let idle = event == Event::Dry && !self.wants_dry;
        self.keep(event);
        match &self.sink {
            None => self.signal.notify(),
            Some(_) if idle => false,
            Some(sink) => sink.tell(room),
        }
    }

    /// Until it is taken. Whoever never takes any loses the oldest.
    fn keep(&mut self, event: Event) {
        match event {
            Event::Readable | Event::Writable => return,
            Event::Dry if !self.wants_dry => return,
            _ => {}
        }
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

impl Inner {
    fn is_unused(&self) -> bool {
        !self.open
            && self.entries.is_empty()
            && self.outbox.runs.is_empty()
            && self.engine.associations().next().is_none()
    }

    /// The user has received something.
    #[inline]
    pub fn note_received(&mut self) {
        self.gathering.answering = true;
    }

    /// Its user wants no message to wait for others.
    #[inline]
    pub fn is_urgent(&self, id: AssocId) -> bool {
        self.engine
            .association(id)
            .is_some_and(|a| !a.config().nagle)
    }

    /// Puts the descriptor of an association right.
    #[inline]
    pub fn raise(&self, id: AssocId) {
        if let Some(entry) = self.entries.get(&id)
            && entry.signal.has_descriptor()
        {
            entry.signal.raise(self.is_ready(id, entry));
        }
    }

    fn is_ready(&self, id: AssocId, entry: &Entry) -> bool {
        !entry.events.is_empty()
            || self.engine.readable(id)
            || !entry.signal.knows_end() && self.engine.association(id).is_none_or(|a| a.at_end())
            || entry.signal.wants_room() && self.has_room(id)
    }

    /// Is it worth trying to send? Not for every little room after there was none: each try would get a packet's worth.
    pub fn has_room(&self, id: AssocId) -> bool {
        let association = self.engine.association(id);
        association.is_none_or(|a| !a.is_open() || a.has_room())
    }

    /// Hands the engine's packets to the links. False: the kernel has no room.
    fn transmit(&mut self, now: u64, stack: &Stack) -> bool {
        if !self.outbox.send(stack) {
            return false;
        }
        self.outbox.bytes = stack.take_buffer();
        loop {
            while self.outbox.bytes.len() < BATCH {
                let at = self.outbox.bytes.len();
                let sent = self
                    .engine
                    .transmit(Time(now), &mut self.outbox.bytes, SEGMENTS);
                let Some(transmit) = sent else { break };
                self.outbox.runs.push_back((at, transmit));
            }
            let done = self.outbox.runs.is_empty();
            if !self.outbox.send(stack) {
                return false;
            }
            if done {
                stack.give_buffer(core::mem::take(&mut self.outbox.bytes));
                return true;
            }
            self.outbox.bytes.clear();
        }
    }

    /// No larger packets than the routes take. On this host nothing between could take less: there they are larger, unless paths
    /// are not to be probed for that.
    fn fit_paths(&mut self, id: AssocId, stack: &Stack) {
        let Some(association) = self.engine.association(id) else {
            return;
        };
        let config = association.config();
        let (may_grow, window) = (config.probe_mtu, config.window);
        // As many packets as keep acknowledgements coming find room in each window.
        let windows = [
            config.send_buffer,
            config.receive_window,
            association.sender().peer_window(),
        ];
        let largest = windows.iter().min().map_or(0, |least| least / PACKETS);
        let each = association.paths().iter();
        let paths: Vec<(IpAddr, bool, usize)> = each
            .map(|(_, p)| (p.addr, p.encap.is_some(), p.mtu))
            .collect();
        let now = Time(sys::now());
        for (addr, encapsulated, before) in paths {
            let Some(link) = stack.link(encapsulated) else {
                continue;
            };
            let most = link.largest(addr).min(environment::largest_packet());
            let here = here::is_here(addr);
            let mtu = if here && may_grow {
                stack.on_host.packet(most.min(largest.max(before)))
            } else if may_grow {
                before.min(most)
            } else {
                before
            };
            self.engine.change(id, |a| {
                if here {
                    a.set_config(now, |config| {
                        config.sack_delay = config.sack_delay.min(SACK_DELAY)
                    });
                }
                a.set_path(now, addr, |path| {
                    match may_grow {
                        true => path.mtu = mtu,
                        false => path.fix_mtu(mtu),
                    }
                    if here {
                        path.window = Box::new(OnHost::new(window(mtu), mtu, &stack.on_host));
                    } else {
                        path.window.set_mtu(mtu);
                    }
                })
            });
        }
    }
}
