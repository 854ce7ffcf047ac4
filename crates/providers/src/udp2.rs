//! /dev/udp2: UDP of our own. The ports are the kernel's: a bound socket holds each, so that no other program gets it, nobody
//! answers "port unreachable", and plain programs can talk to us. What goes where is decided for each destination:
//!
//! ```text
//!   an endpoint of this user on this host    its ring, in shared memory; a full one holds the sender up, nothing is lost
//!   anybody else                             the kernel's UDP, or UDP made here and sent as raw packets
//! ```
//!
//! ```text
//!   names    what the ring of a bound address is called       ways      where datagrams to a place go, remembered
//!   here     which addresses are this host's                  merging   whose turn it is when both have something
//!   link     HEADWATER_UDP2_LINK                               raw       UDP on raw sockets
//! ```

mod here;
pub mod link;
mod merging;
mod names;
pub mod raw;
mod ways;

use core::time::Duration;

use headwater_host::handed::Sort;
use headwater_host::table::Handle;
use headwater_host::{hidden, sys};
use headwater_ipnet::Address;
use headwater_ipnet::options::PacketOptions;
use headwater_streams::head::Head;
use headwater_tpi::error::{TBADDATA, TFLOW, TLOOK, TNODATA};
use headwater_tpi::state::State;
use headwater_tpi::{Info, Refusal};
use libc::iovec;
use link::Link;
use merging::{Merging, Side};
use raw::Raw;
use ways::{Way, Ways};

use crate::inet::udp::{LARGEST, Udp};
use crate::inet::{error_is_readable, is_reusable, length, poll};
use crate::loopback::connectionless::{Own, put, take};
use crate::loopback::link::{named, taken};
use crate::loopback::sizes::Wishes;
use crate::loopback::{Space, name};
use crate::provider::{Arrived, Datagram, Event, IN, Look, OUT, Outcome, Provider, Waiter};

/// What is handed on of an endpoint that is raw: the socket that holds the port.
const HELD: &str = "held/";
/// Between two looks for room, in nanoseconds: a ring of another's has no bell of ours.
const LOOK_FOR_ROOM: u64 = Duration::from_millis(1).as_nanos() as u64;

/// A method of what is the way out and in beside rings: packets made here, or the kernel's socket.
macro_rules! wire {
    (mut $udp2:ident.$method:ident($($argument:expr)?)) => {
        match &mut $udp2.raw {
            Some(raw) => raw.$method($($argument)?),
            None => $udp2.kernel.$method($($argument)?),
        }
    };
    ($udp2:ident.$method:ident()) => {
        match &$udp2.raw {
            Some(raw) => raw.$method(),
            None => $udp2.kernel.$method(),
        }
    };
}

pub struct Udp2 {
    link: Link,
    /// The bound socket.
    kernel: Udp,
    /// In its place as the way out, and in.
    raw: Option<Raw>,
    /// The ring that others on this host put into; `None`: not bound, or not to be found by them.
    own: Option<Own>,
    /// The address it is bound to.
    at: Option<Address>,
    ways: Ways,
    merging: Merging,
    blocked: Option<Blocked>,
}

/// What had no room when a datagram was last refused.
#[derive(Clone, Copy)]
enum Blocked {
    Ring(&'static Head),
    Kernel,
}

impl Udp2 {
    pub fn open(v6: bool) -> Outcome<Udp2> {
        Udp2::open_by(v6, Link::chosen())
    }

    pub fn open_by(v6: bool, link: Link) -> Outcome<Udp2> {
        Ok(Udp2::with(Udp::open(v6)?, link))
    }

    /// Are packets made here?
    pub fn is_raw(&self) -> bool {
        self.raw.is_some()
    }

    fn with(kernel: Udp, link: Link) -> Udp2 {
        Udp2 {
            link,
            kernel,
            raw: None,
            own: None,
            at: None,
            ways: Ways::default(),
            merging: Merging::default(),
            blocked: None,
        }
    }

    pub fn restore(fd: i32, saved: &str) -> Option<Udp2> {
        let held = saved.strip_prefix(HELD);
        let mut endpoint = match held {
            Some(holder) => {
                let holder = taken(holder, Sort::Inet)?;
                let kernel = Udp::restore(holder, "");
                hidden::close(holder);
                Udp2::with(kernel?, Link::Raw)
            }
            None => Udp2::with(Udp::restore(fd, "")?, Link::chosen()),
        };
        endpoint.note_bound();
        if held.is_some() {
            let at = endpoint.at?;
            endpoint.raw = Raw::restore(&at, endpoint.kernel.descriptor(), fd);
        } else if !saved.is_empty() {
            endpoint.own = Own::restore(saved);
        }
        Some(endpoint)
    }

    fn note_bound(&mut self) {
        let local = self.kernel.local();
        self.at = local.and_then(|bytes| Address::read(&bytes).ok());
    }

    /// The ring under the name of the address. Where there is none to be had, the kernel carries everything.
    fn open_ring(&mut self, at: &Address) {
        let fd = self.kernel.descriptor();
        // Of a port that is shared (T_IP_REUSEADDR) the kernel decides which endpoint gets what.
        if !self.link.has_rings() || is_reusable(fd) {
            return;
        }
        if let Some(name) = names::of_endpoint(at, fd)
            && let Ok(claimed) = name::claim(Space::Udp2, &name, true)
        {
            let wishes = self.wishes();
            self.own = Own::make(claimed, name, wishes).ok();
        }
    }

    fn wishes(&self) -> Wishes {
        Wishes {
            receive: self.kernel.receive_buffer(),
            ..Wishes::default()
        }
    }

    fn head(&self) -> Option<&'static Head> {
        self.own.as_ref().map(|own| own.head)
    }

    #[inline]
    fn ring_has_data(&self) -> bool {
        self.own
            .as_ref()
            .is_some_and(|own| !own.head.incoming().is_empty())
    }

    #[inline]
    fn has_errors(&self) -> bool {
        wire!(self.has_errors())
    }

    /// Through the ring; `None`: it is of no use, the kernel carries this one.
    #[inline]
    fn put(&mut self, to: &Address, data: &[iovec], len: usize) -> Option<Outcome<()>> {
        self.drop_ended();
        let way = match self.ways.find(to) {
            Way::Ring(way) => way,
            Way::Wire => return None,
            Way::Unknown => return self.look_up(to, data, len),
        };
        // Where the ring is used, nobody else asks the kernel what became of what was sent by it.
        if wire!(mut self.hears_errors()) {
            return Some(Err(Refusal::new(TLOOK)));
        }
        let head = way.head();
        match put(head, way.from.bytes(), &[], data, len) {
            Ok(true) => Some(Ok(())),
            Ok(false) => {
                self.blocked = Some(Blocked::Ring(head));
                Some(Err(Refusal::new(TFLOW)))
            }
            Err(_) => {
                self.ways.spoiled(to);
                self.note_departures();
                None
            }
        }
    }

    #[inline(always)]
    fn drop_ended(&mut self) {
        if self.ways.drop_ended() {
            self.note_departures();
        }
    }

    /// A ring that is known no more is nothing to wait for.
    fn note_departures(&mut self) {
        if matches!(self.blocked, Some(Blocked::Ring(head)) if self.ways.is_over(head)) {
            self.blocked = None;
        }
    }

    #[cold]
    fn look_up(&mut self, to: &Address, data: &[iovec], len: usize) -> Option<Outcome<()>> {
        let at = self.at?;
        self.ways.look_up(to, &at, self.own.as_ref());
        self.note_departures();
        // What went by the kernel before is not to come later than what goes by the ring from here on.
        self.kernel.flush();
        match self.ways.find(to) {
            Way::Ring(_) => self.put(to, data, len),
            Way::Wire | Way::Unknown => None,
        }
    }

    #[inline]
    fn send_by_kernel(&mut self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        let sent = self.kernel.send_to(to, opts, data);
        self.note_full(&sent);
        sent
    }

    #[inline]
    fn note_full(&mut self, sent: &Outcome<()>) {
        if matches!(sent, Err(refusal) if refusal.tli == TFLOW) {
            self.blocked = Some(Blocked::Kernel);
        }
    }

    #[inline]
    fn take_from(&mut self, side: Side, into: &mut Datagram<'_>) -> Outcome<()> {
        match side {
            Side::Ring => take(self.head().ok_or(Refusal::new(TNODATA))?, into),
            Side::Wire => {
                let taken = wire!(mut self.receive_from(into));
                self.merging.looked_at_wire(!is_nothing(&taken));
                taken
            }
        }
    }

    fn has_room(&mut self) -> bool {
        let room = match self.blocked {
            None => true,
            Some(Blocked::Ring(head)) => {
                head.has_room(LARGEST.min(head.transport_marks().0 / 2)) || self.ways.is_over(head)
            }
            Some(Blocked::Kernel) => poll(self.descriptor(), libc::POLLOUT) != 0,
        };
        if room {
            self.blocked = None;
        }
        room
    }
}

fn is_nothing(taken: &Outcome<()>) -> bool {
    matches!(taken, Err(refusal) if refusal.tli == TNODATA)
}

impl Provider for Udp2 {
    fn info(&self) -> Info {
        self.kernel.info()
    }

    fn descriptor(&self) -> i32 {
        wire!(self.descriptor())
    }

    fn inner(&self) -> Option<Handle> {
        self.head().map(Head::handle)
    }

    fn has_both(&self) -> bool {
        self.at.is_some()
    }

    fn bind(&mut self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        if self.link.is_raw() {
            raw::prepare(&mut self.kernel, addr)?;
        }
        let bound = self.kernel.bind(addr, qlen)?;
        self.note_bound();
        if let Some(at) = self.at {
            self.open_ring(&at);
            if self.link.is_raw() {
                self.raw = Raw::open(&at, self.kernel.descriptor());
            }
        }
        Ok(bound)
    }

    fn unbind(&mut self) -> Outcome<()> {
        // Senders are to find nobody before they find the port free.
        self.own = None;
        self.at = None;
        self.ways = Ways::default();
        self.merging = Merging::default();
        self.blocked = None;
        self.raw = None;
        self.kernel.unbind()
    }

    fn local(&self) -> Option<Vec<u8>> {
        self.at.map(Address::to_vec)
    }

    fn peek(&mut self) -> Option<Event> {
        if self.has_errors() {
            return Some(Event::UdErr);
        }
        if self.ring_has_data() && !wire!(mut self.hears_errors()) {
            return Some(Event::Data);
        }
        wire!(mut self.peek())
    }

    fn take(&mut self) -> Option<Arrived> {
        wire!(mut self.take())
    }

    #[inline]
    fn check_destination(&self, to: &[u8]) -> Outcome<()> {
        self.kernel.check_destination(to)
    }

    fn send_to(&mut self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        if !self.link.has_rings() && self.raw.is_none() {
            return self.send_by_kernel(to, opts, data);
        }
        let address = self.kernel.reach(Address::read(to)?)?;
        let len = length(data);
        if len > LARGEST {
            return Err(Refusal::new(TBADDATA));
        }
        if self.has_errors() {
            return Err(Refusal::new(TLOOK));
        }
        if self.link.has_rings() {
            if !opts.is_empty() {
                // What they ask for has no meaning where there are no packets.
                self.kernel.take_options(opts)?;
            }
            if let Some(done) = self.put(&address, data, len) {
                return done;
            }
        }
        let sent = match &mut self.raw {
            Some(raw) => {
                let mut options = PacketOptions::default();
                if !opts.is_empty() {
                    options = self.kernel.take_options(opts)?;
                    raw.take_over_options(self.kernel.descriptor());
                }
                raw.send(&address, options, data)
            }
            None => return self.send_by_kernel(to, opts, data),
        };
        self.note_full(&sent);
        sent
    }

    #[inline]
    fn receive_from(&mut self, into: &mut Datagram<'_>) -> Outcome<()> {
        if self.own.is_none() && self.raw.is_none() {
            return self.kernel.receive_from(into);
        }
        self.drop_ended();
        if self.has_errors() {
            return Err(Refusal::new(TLOOK));
        }
        let (ring, wire) = (self.ring_has_data(), wire!(self.has_taken()));
        let first = self.merging.turn(ring, wire);
        if first == Side::Ring && wire!(mut self.hears_errors()) {
            return Err(Refusal::new(TLOOK));
        }
        let taken = self.take_from(first, into);
        // Another process may have taken it, or the look at the kernel was in vain.
        if is_nothing(&taken) && (ring || first == Side::Ring) {
            let other = first.other();
            let taken = self.take_from(other, into);
            self.merging.served(other, taken.is_ok() && into.more);
            return taken;
        }
        self.merging.served(first, taken.is_ok() && into.more);
        taken
    }

    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let done = self.kernel.negotiate(flags, opts)?;
        if let Some(own) = &self.own {
            self.wishes().tell_senders(own.head);
        }
        if let Some(raw) = &mut self.raw {
            raw.take_over_options(self.kernel.descriptor());
        }
        Ok(done)
    }

    fn flush(&mut self) {
        self.kernel.flush();
    }

    fn keeps_back(&self) -> bool {
        self.kernel.keeps_back()
    }

    fn look_again(&mut self, want: u32) -> Look {
        if want & IN == 0 {
            Look::Sleep
        } else if self.ring_has_data() {
            Look::Ready
        } else if self.merging.by_wire && self.raw.is_none() {
            self.kernel.look_again(want)
        } else {
            Look::Sleep
        }
    }

    fn waiter(&self) -> Waiter {
        let full = match self.blocked {
            Some(Blocked::Ring(head)) => Some(head),
            _ => None,
        };
        match (self.head(), full) {
            (Some(ring), full) => Waiter::Both {
                ring,
                fd: self.descriptor(),
                full,
            },
            (None, Some(full)) => Waiter::Head(full),
            (None, None) => Waiter::Poll(self.descriptor()),
        }
    }

    fn ready(&mut self, want: u32) -> u32 {
        let mut ready = 0;
        if wire!(self.has_taken()) || self.has_errors() {
            ready |= IN;
        }
        if want & OUT != 0 && self.has_room() {
            ready |= OUT;
        }
        ready & want
    }

    fn slice(&self, want: u32) -> Option<u64> {
        (want & OUT != 0 && self.blocked.is_some()).then_some(LOOK_FOR_ROOM)
    }

    fn kernel_wants(&self, want: u32) -> u32 {
        match self.blocked {
            Some(Blocked::Kernel) => want,
            _ => want & !OUT,
        }
    }

    /// Its own ring has nothing to do with sending; an error is something to be taken.
    fn kernel_means(&self, events: u32) -> u32 {
        error_is_readable(events) & !OUT
    }

    fn catch_up(&mut self, state: State, qlen: u32) {
        self.kernel.catch_up(state, qlen);
        if state == State::Idle {
            self.note_bound();
        }
    }

    fn save(&mut self) -> Option<String> {
        self.kernel.save()?;
        if self.raw.is_some() {
            let fd = self.kernel.descriptor();
            sys::fcntl(fd, libc::F_SETFD, 0).ok()?;
            return Some(format!("{HELD}{}", named(fd)));
        }
        self.own.as_ref().map_or(Some(String::new()), Own::save)
    }

    fn forked(&mut self) {
        self.kernel.forked();
        self.ways.forked();
        if let Some(raw) = &mut self.raw {
            raw.forked();
        }
    }

    fn close(&mut self) {
        self.own = None;
        self.raw = None;
        self.ways = Ways::default();
        self.kernel.close();
    }
}
