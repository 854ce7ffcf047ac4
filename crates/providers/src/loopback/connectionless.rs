//! ticlts: endpoints for datagrams. Each has a ring of its own, into which all senders put.
//!
//! A datagram is a plain frame: {length of the address, length of the options} as two 16-bit numbers, the sender's address,
//! its options, the data. A frame that was taken in part is one whose address and options are gone.

use std::collections::VecDeque;

use headwater_channel::ring::{Corrupt, Frame, Meta, Ring};
use headwater_host::handed::Sort;
use headwater_host::sync::Ordering;
use headwater_host::sys;
use headwater_host::table::Handle;
use headwater_streams::head::{Head, life};
use headwater_streams::pipe::Pipe;
use headwater_streams::pipe::words::state;
use headwater_tpi::error::{TBADDATA, TBUFOVFLW, TFLOW, TLOOK, TNODATA, TOUTSTATE};
use headwater_tpi::{Info, Refusal};
use libc::iovec;

use super::buffers::{self, Sink, Source};
use super::directory::{Entry, Lost, Route, SeenEnds, map_ring};
use super::link::{from_hex, named, taken, to_hex};
use super::sizes::{Held, Wishes};
use super::{MOST_DATAGRAM, Owned, Space, check_address, check_options, name};
use crate::options::{self, GENERIC_CONNECTIONLESS, Remembered};
use crate::provider::{Arrived, Datagram, Event, IN, OUT, Outcome, Provider, Waiter, nothing};

const LENGTHS: usize = 4;
/// Destinations that an endpoint remembers, and failures that wait for the user.
const MOST_ROUTES: usize = 32;
const MOST_FAILURES: usize = 64;

pub struct Mailbox {
    /// Says nothing: all is known by the ring.
    silent: Owned,
    own: Option<Own>,
    routes: Vec<Route>,
    /// The one used last.
    last: usize,
    ends: SeenEnds,
    failures: VecDeque<Arrived>,
    /// The ring that was full when the endpoint was last used.
    blocked: Option<&'static Head>,
    options: Remembered,
}

/// A ring that others find by its name, and put datagrams into.
pub struct Own {
    pub addr: Vec<u8>,
    pub head: &'static Head,
    entry: Entry,
}

impl Own {
    /// A fresh ring for the address whose name was claimed, which holds what its owner wants.
    pub fn make(name: Owned, addr: Vec<u8>, wishes: Wishes) -> sys::Result<Own> {
        let pipe = Pipe::bare(true, wishes.ring())?;
        let head = life::adopt_hidden(pipe, 0, -1)?;
        wishes.tell_senders(head);
        Own::new(name, addr, head)
    }

    fn new(name: Owned, addr: Vec<u8>, head: &'static Head) -> sys::Result<Own> {
        // Others will hold it too.
        head.words().shared.store(1, Ordering::SeqCst);
        head.words().holders.store(1, Ordering::SeqCst);
        match Entry::new(name, &addr, head) {
            Ok(entry) => Ok(Own { addr, head, entry }),
            Err(e) => {
                life::let_go(head);
                Err(e)
            }
        }
    }

    /// For the image after exec, whose [`restore`](Own::restore) makes the same of it.
    pub fn save(&self) -> Option<String> {
        let pipe = self.head.pipe()?;
        let (name, memfd, bell) = (self.entry.pass_on(), pipe.memfd, pipe.bell(0).ok()?);
        for fd in [memfd, bell] {
            sys::fcntl(fd, libc::F_SETFD, 0).ok()?;
        }
        let [name, memfd, bell] = [name, memfd, bell].map(named);
        Some(format!("{}/{name}/{memfd}/{bell}", to_hex(&self.addr)))
    }

    pub fn restore(saved: &str) -> Option<Own> {
        let fields: Vec<&str> = saved.split('/').collect();
        let [addr, name, memfd, bell] = fields[..] else {
            return None;
        };
        let name = taken(name, Sort::Local).map(Owned)?;
        let memfd = taken(memfd, Sort::Memory).map(Owned)?;
        let bell = taken(bell, Sort::Bell).map(Owned)?;
        let pipe = map_ring(memfd, bell).ok()?;
        let head = life::adopt_hidden(pipe, 0, -1).ok()?;
        Own::new(name, from_hex(addr)?, head).ok()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Senders see it before the end of their connections is told.
        if self.head.words().holders.fetch_sub(1, Ordering::AcqRel) <= 1 {
            self.head.words().set(state::HANGUP);
        }
        life::let_go(self.head);
    }
}

impl Mailbox {
    pub fn open() -> Outcome<Mailbox> {
        Owned::silent().map(Mailbox::with).map_err(Refusal::system)
    }

    fn with(silent: Owned) -> Mailbox {
        Mailbox {
            silent,
            own: None,
            routes: Vec::new(),
            last: 0,
            ends: SeenEnds::default(),
            failures: VecDeque::new(),
            blocked: None,
            options: Remembered::default(),
        }
    }

    pub fn restore(fd: i32, saved: &str) -> Option<Mailbox> {
        let mut mailbox = Mailbox::with(Owned::copy_of(fd).ok()?);
        if saved.is_empty() {
            return Some(mailbox);
        }
        mailbox.own = Some(Own::restore(saved)?);
        Some(mailbox)
    }

    /// Nothing is held of what it sends.
    fn wishes(&self) -> Wishes {
        Wishes {
            send: 0,
            ..Wishes::of(&self.options)
        }
    }

    /// The ring of a destination; `None`: nobody has the address.
    #[inline(always)]
    fn route(&mut self, to: &[u8]) -> Outcome<Option<&'static Head>> {
        if let Some(route) = self.routes.get(self.last)
            && route.to == to
            && !route.is_over()
        {
            return Ok(Some(route.head));
        }
        self.route_slowly(to)
    }

    #[cold]
    fn route_slowly(&mut self, to: &[u8]) -> Outcome<Option<&'static Head>> {
        check_address(to)?;
        self.drop_over();
        if let Some(at) = self.routes.iter().position(|route| route.to == to) {
            self.last = at;
            return Ok(Some(self.routes[at].head));
        }
        let own = self.own.as_ref().ok_or(Refusal::new(TOUTSTATE))?;
        let found = if own.addr == to {
            Route::to_self(to, own.head)
        } else {
            Route::find(Space::Ticlts, to)
        };
        let route = match found {
            Ok(route) => route,
            Err(Lost::Nobody) => return Ok(None),
            Err(Lost::Later) => return Err(Refusal::new(TFLOW)),
            Err(Lost::Failed(e)) => return Err(Refusal::system(e)),
        };
        if self.routes.len() >= MOST_ROUTES {
            self.routes.remove(0);
            self.forget_blocked();
        }
        let head = route.head;
        self.routes.push(route);
        self.last = self.routes.len() - 1;
        Ok(Some(head))
    }

    /// Nothing is kept of owners that have gone.
    #[inline(always)]
    fn drop_ended(&mut self) {
        if self.ends.are_more() {
            self.drop_over();
        }
    }

    #[cold]
    fn drop_over(&mut self) {
        self.routes.retain(|route| !route.is_over());
        self.forget_blocked();
    }

    /// Nobody keeps a ring for who waits at it but its route.
    fn forget_blocked(&mut self) {
        let is_kept = |head: &Head| self.routes.iter().any(|r| core::ptr::eq(r.head, head));
        if self.blocked.is_some_and(|head| !is_kept(head)) {
            self.blocked = None;
        }
    }

    fn fail(&mut self, to: &[u8], opts: &[u8], error: i32) {
        if self.failures.len() < MOST_FAILURES {
            let (to, opts) = (to.to_vec(), opts.to_vec());
            self.failures
                .push_back(Arrived::Undelivered { to, opts, error });
            // Nothing comes by the ring for those who sleep there.
            if let Some(head) = self.head() {
                head.notify();
            }
        }
    }

    fn head(&self) -> Option<&'static Head> {
        self.own.as_ref().map(|own| own.head)
    }

    #[cold]
    fn nothing(&mut self) -> Refusal {
        self.blocked = None;
        nothing(!self.failures.is_empty())
    }
}

impl Provider for Mailbox {
    fn info(&self) -> Info {
        Space::Ticlts.info()
    }

    fn descriptor(&self) -> i32 {
        self.silent.number()
    }

    fn inner(&self) -> Option<Handle> {
        self.head().map(Head::handle)
    }

    fn bind(&mut self, addr: Option<&[u8]>, _: u32) -> Outcome<(Vec<u8>, u32)> {
        if let Some(addr) = addr {
            check_address(addr)?;
        }
        let (addr, name) = name::claim_any(Space::Ticlts, addr, true)?;
        self.own = Some(Own::make(name, addr.clone(), self.wishes()).map_err(Refusal::system)?);
        Ok((addr, 0))
    }

    fn unbind(&mut self) -> Outcome<()> {
        self.own = None;
        self.routes.clear();
        self.failures.clear();
        self.blocked = None;
        Ok(())
    }

    fn local(&self) -> Option<Vec<u8>> {
        self.own.as_ref().map(|own| own.addr.clone())
    }

    #[inline]
    fn peek(&mut self) -> Option<Event> {
        if !self.failures.is_empty() {
            return Some(Event::UdErr);
        }
        self.head()?.has_visible().then_some(Event::Data)
    }

    fn take(&mut self) -> Option<Arrived> {
        self.failures.pop_front()
    }

    fn check_destination(&self, to: &[u8]) -> Outcome<()> {
        check_address(to)
    }

    #[inline]
    fn send_to(&mut self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        let len = buffers::len(data);
        if len > MOST_DATAGRAM {
            return Err(Refusal::new(TBADDATA));
        }
        if !self.failures.is_empty() {
            check_address(to)?;
            return Err(Refusal::new(TLOOK));
        }
        if !opts.is_empty() {
            check_options(opts)?;
        }
        self.drop_ended();
        let Some(head) = self.route(to)? else {
            self.fail(to, opts, libc::ECONNREFUSED);
            return Ok(());
        };
        let own = self.own.as_ref().ok_or(Refusal::new(TOUTSTATE))?;
        match put(head, &own.addr, opts, data, len) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.blocked = Some(head);
                Err(Refusal::new(TFLOW))
            }
            Err(e) => Err(Refusal::system(e)),
        }
    }

    #[inline]
    fn receive_from(&mut self, into: &mut Datagram<'_>) -> Outcome<()> {
        self.drop_ended();
        if !self.failures.is_empty() {
            return Err(Refusal::new(TLOOK));
        }
        let head = self.head().ok_or(Refusal::new(TOUTSTATE))?;
        if !head.has_visible() {
            return Err(self.nothing());
        }
        match take(head, into) {
            Err(Refusal { tli: TNODATA, .. }) => Err(self.nothing()),
            taken => taken,
        }
    }

    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let mut held = Held {
            options: &mut self.options,
            ring: self.own.as_ref().map(|own| own.head.incoming().capacity()),
        };
        let answer = options::negotiate(&[&GENERIC_CONNECTIONLESS], &mut held, flags, opts);
        if let Some(own) = &self.own {
            self.wishes().tell_senders(own.head);
        }
        answer
    }

    fn waiter(&self) -> Waiter {
        match self.blocked.or(self.head()) {
            Some(head) => Waiter::Head(head),
            None => Waiter::Poll(self.silent.number()),
        }
    }

    fn ready(&mut self, want: u32) -> u32 {
        if self
            .blocked
            .is_some_and(|head| head.has_room(MOST_DATAGRAM.min(head.transport_marks().0 / 2)))
        {
            self.blocked = None;
        }
        let failed = if self.failures.is_empty() { 0 } else { IN };
        // Its own ring has nothing to do with sending.
        let room = if self.own.is_some() && self.blocked.is_none() {
            OUT
        } else {
            0
        };
        want & (failed | room)
    }

    fn kernel_means(&self, events: u32) -> u32 {
        events & IN
    }

    fn save(&mut self) -> Option<String> {
        self.own.as_ref().map_or(Some(String::new()), Own::save)
    }

    fn close(&mut self) {
        let _ = self.unbind();
    }
}

/// Puts a datagram into a mailbox; false: no room, which is counted.
#[inline(always)]
pub fn put(head: &Head, from: &[u8], opts: &[u8], data: &[iovec], len: usize) -> sys::Result<bool> {
    head.enter();
    let marks = head.transport_marks();
    let sent = head.put_frames(|ring| push(ring, marks, from, opts, data, len));
    if sent == Ok(false) {
        head.words().full_count.fetch_add(1, Ordering::Relaxed);
    }
    sent
}

/// One datagram as one frame; false: no room.
#[inline(always)]
fn push(
    ring: &Ring<'_>,
    (limit, low): (usize, usize),
    from: &[u8],
    opts: &[u8],
    data: &[iovec],
    len: usize,
) -> Result<bool, Corrupt> {
    let before = LENGTHS + from.len() + opts.len();
    let total = before + len;
    if !ring.may_send(total, limit, low) {
        return Ok(false);
    }
    let Some(mut room) = ring.reserve(total, false)?.filter(|room| room.len >= total) else {
        return Ok(false);
    };
    let room = &mut buffers::room(&mut room)[..total];
    let (head, body) = room.split_at_mut(before);
    head[..2].copy_from_slice(&(from.len() as u16).to_ne_bytes());
    head[2..4].copy_from_slice(&(opts.len() as u16).to_ne_bytes());
    head[LENGTHS..LENGTHS + from.len()].copy_from_slice(from);
    if !opts.is_empty() {
        head[LENGTHS + from.len()..].copy_from_slice(opts);
    }
    match data {
        [v] => body.copy_from_slice(buffers::bytes(v)),
        _ => Source::new(data).take(body),
    }
    ring.commit(total, Meta::default());
    Ok(true)
}

/// Takes the datagram in front of a mailbox, or what is left of it. TNODATA; TBUFOVFLW: address or options did not fit.
#[inline(always)]
pub fn take(head: &Head, into: &mut Datagram<'_>) -> Outcome<()> {
    head.enter();
    let ring = head.incoming();
    let section = head.taking(&ring).map_err(Refusal::system)?;
    let pulled = pull(&ring, into);
    head.taken(&ring, section, pulled)
        .map_err(Refusal::system)?
}

#[inline(always)]
fn pull(ring: &Ring<'_>, into: &mut Datagram<'_>) -> Result<Outcome<()>, Corrupt> {
    let Some(frame) = ring.peek()? else {
        return Ok(Err(Refusal::new(TNODATA)));
    };
    if frame.special {
        return Err(Corrupt);
    }
    let before = if frame.taken == 0 {
        match read_front(ring, &frame, into)? {
            Some(before) => before,
            None => {
                ring.consume(&frame, frame.len);
                return Ok(Err(Refusal::new(TBUFOVFLW)));
            }
        }
    } else {
        into.addr_len = 0;
        into.opts_len = 0;
        0
    };
    let mut sink = Sink::new(into.data);
    let left = frame.len - before;
    let n = left.min(sink.left());
    sink.fill(ring, &frame, before, n);
    ring.consume(&frame, before + n);
    into.data_len = n;
    into.more = n < left;
    Ok(Ok(()))
}

/// Address and options of a fresh frame; how many bytes stand before the data. `None`: no room for them.
#[inline(always)]
fn read_front(
    ring: &Ring<'_>,
    frame: &Frame,
    into: &mut Datagram<'_>,
) -> Result<Option<usize>, Corrupt> {
    if frame.len < LENGTHS {
        return Err(Corrupt);
    }
    let [a0, a1, o0, o1, ..] = ring.first_eight(frame);
    let addr = u16::from_ne_bytes([a0, a1]) as usize;
    let opts = u16::from_ne_bytes([o0, o1]) as usize;
    let before = LENGTHS + addr + opts;
    if before > frame.len {
        return Err(Corrupt);
    }
    // No room at all means that it is not wanted (maxlen 0).
    let fits = |room: usize, len: usize| room == 0 || room >= len;
    if !fits(into.addr.len(), addr) || !fits(into.opts.len(), opts) {
        return Ok(None);
    }
    into.addr_len = addr.min(into.addr.len());
    into.opts_len = opts.min(into.opts.len());
    ring.copy_frame(frame, LENGTHS, &mut into.addr[..into.addr_len]);
    ring.copy_frame(frame, LENGTHS + addr, &mut into.opts[..into.opts_len]);
    Ok(Some(before))
}
