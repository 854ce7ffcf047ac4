//! /dev/udp: a connectionless provider over the kernel's UDP.

use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_ipnet::control::Control;
use headwater_ipnet::incoming::Incoming;
use headwater_ipnet::options::PacketOptions;
use headwater_ipnet::socket::{make_roomy, tell_errors};
use headwater_tpi::error::{TBADADDR, TBADDATA, TFLOW, TLOOK, TNOADDR, TNODATA};
use headwater_tpi::option::{self as opt, INET_UDP, T_UDP_CHECKSUM, XTI_GENERIC, XTI_RCVBUF};
use headwater_tpi::state::State;
use headwater_tpi::{Info, Refusal};
use libc::iovec;

use super::batch::Outgoing;
use super::settings::{self, Chosen};
use super::undelivered::{ALL, Undelivered};
use super::watching::Watching;
use super::{datagrams, hand_out, length, local};
use crate::flusher::{self, Went};
use crate::loopback::{Owned, name};
use crate::options::{self, Known};
use crate::provider::{Arrived, Datagram, Event, IN, Look, Outcome, Provider, nothing};

const TABLE: [&[Known]; 3] = [
    &options::GENERIC_CONNECTIONLESS,
    &options::UDP,
    &options::IP,
];
/// The largest datagram of IPv4.
pub const LARGEST: usize = 65_507;

pub struct Udp {
    fd: Owned,
    v6: bool,
    /// Bound to any address of IPv6, and so to any of IPv4 too.
    both: bool,
    outgoing: Outgoing,
    incoming: Incoming,
    watching: Watching,
    /// Bytes of the datagram in front that were handed out; `None`: nothing was told of it yet.
    taken: Option<usize>,
    errors: Undelivered,
    chosen: Chosen,
}

impl Udp {
    pub fn open(v6: bool) -> Outcome<Udp> {
        let fd = super::socket(v6, libc::SOCK_DGRAM)?;
        Ok(Udp::with(Owned(fd), v6))
    }

    fn with(fd: Owned, v6: bool) -> Udp {
        prepare(fd.number(), v6);
        Udp {
            fd,
            v6,
            both: false,
            outgoing: Outgoing::new(),
            incoming: Incoming::default(),
            watching: Watching::default(),
            taken: None,
            errors: Undelivered::default(),
            chosen: Chosen::default(),
        }
    }

    pub fn restore(fd: i32, _saved: &str) -> Option<Udp> {
        let v6 = local(fd)?.is_v6();
        let mut udp = Udp::with(Owned(super::hidden_copy(fd)?), v6);
        udp.note_bound();
        Some(udp)
    }

    fn note_bound(&mut self) {
        let any =
            local(self.fd.number()).is_some_and(|at| at.port() != 0 && at.ip().is_unspecified());
        let only = sys::sockopt::<i32>(self.fd.number(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
        self.both = self.v6 && any && only == Ok(0);
    }

    /// A destination as the socket has it. TBADADDR.
    #[inline]
    pub fn reach(&self, to: Address) -> Outcome<Address> {
        match to.is_v6() {
            _ if to.port() == 0 => Err(Refusal::new(TBADADDR)),
            v6 if v6 == self.v6 => Ok(to),
            false if self.both => Ok(to.mapped()),
            _ => Err(Refusal::new(TBADADDR)),
        }
    }

    /// Has the network said something that was read and not told?
    #[inline]
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// As [`has_errors`](Udp::has_errors), of what was sent last too.
    #[inline]
    pub fn hears_errors(&mut self) -> bool {
        self.errors.hears(self.fd.number(), ALL)
    }

    /// Is there a datagram that was taken from the kernel and not handed out?
    #[inline]
    pub fn has_taken(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// What the user wants to be held of what comes, and not less than the kernel holds in any case; 0: nothing was said.
    pub fn receive_buffer(&self) -> u32 {
        match self.chosen.asked(XTI_GENERIC, XTI_RCVBUF) {
            0 => 0,
            asked => asked.max(settings::receive_buffer(self.fd.number())),
        }
    }

    #[inline]
    pub fn is_v6(&self) -> bool {
        self.v6
    }

    /// The options that came with a datagram: some are the endpoint's from now on, the others go with it alone. TBADOPT.
    pub fn take_options(&mut self, opts: &[u8]) -> Outcome<PacketOptions> {
        let read = PacketOptions::read(opts)?;
        if has_checksum_option(opts) {
            let mut settings = self.chosen.on(self.fd.number(), self.v6);
            options::apply(&[&options::UDP], &mut settings, opts)?;
        }
        Ok(read)
    }

    /// A fresh socket with the same options.
    pub fn renew(&mut self, v6: bool) -> Outcome<()> {
        let fd = super::socket(v6, libc::SOCK_DGRAM)?;
        prepare(fd, v6);
        self.chosen.renew(fd, v6);
        self.fd = Owned(fd);
        self.v6 = v6;
        self.both = false;
        self.incoming = Incoming::default();
        self.taken = None;
        Ok(())
    }

    /// Is there a datagram to hand out? May find errors instead.
    fn fill(&mut self) -> bool {
        if !self.incoming.is_empty() {
            return !self.hears_errors();
        }
        match self.incoming.fill(self.fd.number()) {
            Ok(()) => {
                self.outgoing.pace.note_received();
                true
            }
            Err(libc::EAGAIN) => false,
            Err(_) => {
                self.errors.read(self.fd.number(), ALL);
                self.incoming.fill(self.fd.number()).is_ok()
            }
        }
    }

    /// Sends what is held; false if the kernel takes nothing now.
    fn send_held(&mut self) -> bool {
        let to = self.outgoing.destination();
        let mut tries = 0;
        while self.outgoing.pending() > 0 {
            match self.outgoing.flush(self.fd.number()) {
                Ok(()) => self.errors.note_sent(),
                Err(libc::EAGAIN) => return false,
                Err(errno) => {
                    tries += 1;
                    self.errors.blame(self.fd.number(), to, errno, ALL);
                    if tries > 64 {
                        self.outgoing.clear();
                    }
                }
            }
        }
        true
    }
}

fn prepare(fd: i32, v6: bool) {
    let _ = sys::set_sockopt(fd, libc::SOL_UDP, libc::UDP_GRO, &1i32);
    make_roomy(fd);
    if v6 {
        tell_errors(fd, true);
    }
    // One of IPv6 may send to IPv4.
    tell_errors(fd, false);
}

fn has_checksum_option(opts: &[u8]) -> bool {
    opt::Options::new(opts)
        .any(|o| o.is_ok_and(|o| (o.level, o.name) == (INET_UDP, T_UDP_CHECKSUM)))
}

impl Provider for Udp {
    fn info(&self) -> Info {
        datagrams(LARGEST)
    }

    fn descriptor(&self) -> i32 {
        self.fd.number()
    }

    fn bind(&mut self, addr: Option<&[u8]>, _qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        let to = addr.map_or(Ok(Address::any(self.v6)), Address::read)?;
        if to.is_v6() != self.v6 {
            self.renew(to.is_v6())?;
        }
        super::bind(self.fd.number(), &to)?;
        self.note_bound();
        let got = local(self.fd.number()).ok_or(Refusal::new(TNOADDR))?;
        Ok((got.to_vec(), 0))
    }

    fn unbind(&mut self) -> Outcome<()> {
        self.send_held();
        self.outgoing.clear();
        self.errors.clear();
        self.renew(self.v6)
    }

    fn local(&self) -> Option<Vec<u8>> {
        local(self.fd.number())
            .filter(|a| a.port() != 0)
            .map(Address::to_vec)
    }

    fn peek(&mut self) -> Option<Event> {
        let data = self.errors.is_empty() && self.fill();
        if !self.errors.is_empty() {
            return Some(Event::UdErr);
        }
        data.then_some(Event::Data)
    }

    fn take(&mut self) -> Option<Arrived> {
        self.peek();
        self.errors.take()
    }

    #[inline]
    fn check_destination(&self, to: &[u8]) -> Outcome<()> {
        self.reach(Address::read(to)?).map(drop)
    }

    fn send_to(&mut self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        let len = length(data);
        let to = self.reach(Address::read(to)?)?;
        if len > LARGEST {
            return Err(Refusal::new(TBADDATA));
        }
        self.errors.check()?;
        if opts.is_empty() && self.outgoing.join(&to, data, len) {
            if self.outgoing.is_full() {
                self.send_held();
            }
            return Ok(());
        }
        if self.outgoing.pending() > 0 && !self.send_held() {
            return Err(Refusal::new(TFLOW));
        }
        self.errors.check()?;
        if opts.is_empty() {
            if self.outgoing.begins(&to, len) {
                if self.hears_errors() {
                    return Err(Refusal::new(TLOOK));
                }
                self.outgoing.hold(&to, data, len);
                return Ok(());
            }
            return self
                .errors
                .send(self.fd.number(), (&to, &to), data, &[], ALL);
        }
        let mut control = Control([0; 128]);
        let by_v6 = self.v6 && !to.is_mapped();
        let n = self.take_options(opts)?.put(by_v6, &mut control, 0);
        let control = &control.0[..n];
        self.errors
            .send(self.fd.number(), (&to, &to), data, control, ALL)
    }

    #[inline]
    fn receive_from(&mut self, into: &mut Datagram<'_>) -> Outcome<()> {
        (into.addr_len, into.opts_len, into.data_len, into.more) = (0, 0, 0, false);
        let there = self.errors.is_empty() && self.fill();
        self.errors.check()?;
        if !there {
            self.flush();
            return Err(nothing(!self.errors.is_empty()));
        }
        let Some(front) = self.incoming.front(self.taken.unwrap_or(0)) else {
            return Err(Refusal::new(TNODATA));
        };
        let from = || Address::of_storage(front.from);
        let done = hand_out(&mut self.taken, from, front.data, into);
        if done != Ok(false) {
            self.incoming.pop();
        }
        done.map(drop)
    }

    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let mut settings = self.chosen.on(self.fd.number(), self.v6);
        options::negotiate(&TABLE, &mut settings, flags, opts)
    }

    fn flush(&mut self) {
        if self.outgoing.pending() == 0 {
            return;
        }
        if flusher::tick().is_some_and(|now| !self.outgoing.is_due(now)) {
            return;
        }
        let sent = self.send_held();
        flusher::note(if sent { Went::Sent } else { Went::Stuck });
    }

    fn keeps_back(&self) -> bool {
        self.outgoing.pending() > 0
    }

    fn look_again(&mut self, want: u32) -> Look {
        if want & IN == 0 || !self.watching.goes_on(self.fd.number()) {
            return Look::Sleep;
        }
        if self.errors.is_empty() && !self.fill() {
            return Look::Again;
        }
        self.watching.found();
        Look::Ready
    }

    fn ready(&mut self, want: u32) -> u32 {
        let any = !self.incoming.is_empty() || !self.errors.is_empty();
        if any { want & IN } else { 0 }
    }

    /// An error is something to be taken.
    fn kernel_means(&self, events: u32) -> u32 {
        super::error_is_readable(events)
    }

    fn catch_up(&mut self, _state: State, _qlen: u32) {
        self.note_bound();
    }

    fn save(&mut self) -> Option<String> {
        self.send_held();
        Some(String::new())
    }

    fn forked(&mut self) {
        self.outgoing.forked();
    }

    fn close(&mut self) {
        // Datagrams may be lost; those that the kernel takes are not.
        let mut turns = 0;
        while !self.send_held() && turns < 100 {
            name::poll(self.fd.number(), libc::POLLOUT, 1_000_000);
            turns += 1;
        }
        self.outgoing.clear();
    }
}
