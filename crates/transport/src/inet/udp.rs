//! /dev/udp: a connectionless provider over the kernel's UDP.

use std::collections::VecDeque;

use headwater_host::sys;
use headwater_tpi::error::{TACCES, TBADADDR, TBADDATA, TBUFOVFLW, TFLOW, TLOOK, TNOADDR, TNODATA};
use headwater_tpi::option::{self as opt, INET_IP, INET_UDP, T_IP_TOS, T_IP_TTL, T_UDP_CHECKSUM};
use headwater_tpi::prim::{SENDZERO, T_CLTS, T_INVALID};
use headwater_tpi::{Info, Refusal};
use libc::iovec;

use super::address::Address;
use super::batch::{Control, Incoming, Outgoing, put_control, send};
use super::settings::{Chosen, Options};
use super::watching::Watching;
use super::{again, length, local, poll, scatter};
use crate::flusher::{self, Went};
use crate::options::{self, Known};
use crate::provider::{Arrived, Datagram, Event, Look, Outcome, Provider, Waiter};

const TABLE: [&[Known]; 3] = [
    &options::GENERIC_CONNECTIONLESS,
    &options::UDP,
    &options::IP,
];
/// The largest datagram of IPv4.
const LARGEST: usize = 65_507;
/// Asked of the kernel, which gives at most net.core.rmem_max.
const RECEIVE_BUFFER: i32 = 4 << 20;
/// Undelivered datagrams remembered.
const MOST_ERRORS: usize = 64;
const IN: u32 = (libc::POLLIN | libc::POLLRDNORM) as u32;

pub struct Udp {
    fd: i32,
    v6: bool,
    outgoing: Outgoing,
    incoming: Incoming,
    watching: Watching,
    /// Bytes of the datagram in front that were handed out; `None`: nothing was told of it yet.
    taken: Option<usize>,
    errors: VecDeque<(Address, i32)>,
    chosen: Chosen,
}

impl Udp {
    pub fn open(v6: bool) -> Outcome<Udp> {
        let fd = super::socket(v6, libc::SOCK_DGRAM)?;
        Ok(Udp::with(fd, v6))
    }

    fn with(fd: i32, v6: bool) -> Udp {
        prepare(fd, v6);
        Udp {
            fd,
            v6,
            outgoing: Outgoing::new(),
            incoming: Incoming::new(),
            watching: Watching::default(),
            taken: None,
            errors: VecDeque::new(),
            chosen: Chosen::default(),
        }
    }

    pub fn restore(fd: i32, _saved: &str) -> Option<Udp> {
        let fd = super::hidden_copy(fd)?;
        Some(Udp::with(fd, local(fd)?.is_v6()))
    }

    fn renew(&mut self, v6: bool) -> Outcome<()> {
        let fd = super::socket(v6, libc::SOCK_DGRAM)?;
        prepare(fd, v6);
        self.chosen.renew(fd, v6);
        headwater_host::hidden::close(self.fd);
        self.fd = fd;
        self.v6 = v6;
        self.incoming = Incoming::new();
        self.taken = None;
        Ok(())
    }

    /// What the network said about earlier datagrams.
    fn read_errors(&mut self) {
        while let Some(undelivered) = read_error(self.fd) {
            if self.errors.len() < MOST_ERRORS {
                self.errors.push_back(undelivered);
            }
        }
        // The last of them is the socket's error too.
        let _ = sys::sockopt::<i32>(self.fd, libc::SOL_SOCKET, libc::SO_ERROR);
    }

    /// Is there a datagram to hand out? May find errors instead.
    fn fill(&mut self) -> bool {
        if !self.incoming.is_empty() {
            return true;
        }
        match self.incoming.fill(self.fd) {
            Ok(()) => {
                self.outgoing.note_received();
                true
            }
            Err(libc::EAGAIN) => false,
            Err(_) => {
                self.read_errors();
                self.incoming.fill(self.fd).is_ok()
            }
        }
    }

    /// Sends what is held; false if the kernel takes nothing now.
    fn send_held(&mut self) -> bool {
        let to = self.outgoing.destination();
        let mut tries = 0;
        while self.outgoing.pending() > 0 {
            match self.outgoing.flush(self.fd) {
                Ok(()) => {}
                Err(libc::EAGAIN) => return false,
                Err(errno) => {
                    tries += 1;
                    self.undelivered(to, errno);
                    if tries > 64 {
                        self.outgoing.clear();
                    }
                }
            }
        }
        true
    }

    /// A send has failed: what the error queue knows, or this.
    fn undelivered(&mut self, to: Address, errno: i32) {
        let before = self.errors.len();
        self.read_errors();
        if self.errors.len() == before && self.errors.len() < MOST_ERRORS {
            self.errors.push_back((to, errno));
        }
    }

    /// One datagram by itself. An error of an earlier one is not this one's.
    fn send_alone(&mut self, to: &Address, data: &[iovec], control: &[u8]) -> Outcome<()> {
        let mut tries = 0;
        loop {
            let refusal = match send(self.fd, to, data, control) {
                Ok(()) => return Ok(()),
                Err(libc::EAGAIN) => TFLOW,
                Err(libc::EMSGSIZE) => TBADDATA,
                Err(libc::EINVAL | libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) => TBADADDR,
                Err(libc::EACCES | libc::EPERM) => TACCES,
                Err(errno) => {
                    tries += 1;
                    let before = self.errors.len();
                    self.read_errors();
                    let earlier = self.errors.len() > before || errno == libc::ECONNREFUSED;
                    if earlier && tries < 3 {
                        continue;
                    }
                    if self.errors.len() < MOST_ERRORS {
                        self.errors.push_back((*to, errno));
                    }
                    return Ok(());
                }
            };
            return Err(Refusal::new(refusal));
        }
    }
}

impl Drop for Udp {
    fn drop(&mut self) {
        headwater_host::hidden::close(self.fd);
    }
}

fn prepare(fd: i32, v6: bool) {
    let _ = sys::set_sockopt(fd, libc::SOL_UDP, libc::UDP_GRO, &1i32);
    let forced = sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER);
    let _ = forced
        .or_else(|_| sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER));
    let (level, name) = if v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
    } else {
        (libc::IPPROTO_IP, libc::IP_RECVERR)
    };
    let _ = sys::set_sockopt(fd, level, name, &1i32);
}

fn read_error(fd: i32) -> Option<(Address, i32)> {
    // SAFETY: zeroes are valid for both.
    let (mut to, mut message): (libc::sockaddr_storage, libc::msghdr) =
        unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
    let mut control = Control([0; 128]);
    let mut byte = 0u8;
    let mut part = iovec {
        iov_base: &raw mut byte as *mut _,
        iov_len: 1,
    };
    message.msg_name = &raw mut to as *mut _;
    message.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr() as *mut _;
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the message's parts are valid.
    again(|| unsafe { sys::recvmsg(fd, &mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) })
        .ok()?;
    let mut errno = libc::ECONNREFUSED;
    // SAFETY: the kernel filled the control buffer.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(&message);
        while !c.is_null() {
            let is_error = ((*c).cmsg_level, (*c).cmsg_type)
                == (libc::IPPROTO_IP, libc::IP_RECVERR)
                || ((*c).cmsg_level, (*c).cmsg_type) == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
            if is_error {
                // struct sock_extended_err begins with the errno.
                errno = (libc::CMSG_DATA(c) as *const i32).read_unaligned();
            }
            c = libc::CMSG_NXTHDR(&message, c);
        }
    }
    Some((Address::of_storage(&to)?, errno))
}

/// Type of service and time to live, for one datagram. TBADOPT.
fn control_of(v6: bool, opts: &[u8], control: &mut Control) -> Outcome<usize> {
    let mut n = 0;
    for option in opt::Options::all(opts)? {
        let value = option
            .number()
            .filter(|n| (0..256).contains(n))
            .map(|n| (n as i32).to_ne_bytes());
        let (level, name) = match (option.level, option.name) {
            (INET_IP, T_IP_TOS) if v6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            (INET_IP, T_IP_TOS) => (libc::IPPROTO_IP, libc::IP_TOS),
            (INET_IP, T_IP_TTL) if v6 => (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT),
            (INET_IP, T_IP_TTL) => (libc::IPPROTO_IP, libc::IP_TTL),
            _ => continue,
        };
        let value = value.ok_or(Refusal::new(headwater_tpi::error::TBADOPT))?;
        if n < 4 * 24 {
            n = put_control(control, n, level, name, &value);
        }
    }
    Ok(n)
}

fn has_checksum_option(opts: &[u8]) -> bool {
    opt::Options::new(opts)
        .any(|o| o.is_ok_and(|o| (o.level, o.name) == (INET_UDP, T_UDP_CHECKSUM)))
}

impl Provider for Udp {
    fn info(&self) -> Info {
        Info {
            tsdu: LARGEST as i32,
            etsdu: T_INVALID,
            cdata: T_INVALID,
            ddata: T_INVALID,
            addr: size_of::<libc::sockaddr_in6>() as i32,
            opt: 1024,
            tidu: LARGEST as i32,
            serv: T_CLTS,
            state: 0,
            provider_flag: SENDZERO,
        }
    }

    fn descriptor(&self) -> i32 {
        self.fd
    }

    fn bind(&mut self, addr: Option<&[u8]>, _qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        let to = addr.map_or(Ok(Address::any(self.v6)), Address::read)?;
        if to.is_v6() != self.v6 {
            self.renew(to.is_v6())?;
        }
        super::bind(self.fd, &to)?;
        let got = local(self.fd).ok_or(Refusal::new(TNOADDR))?;
        Ok((got.to_vec(), 0))
    }

    fn unbind(&mut self) -> Outcome<()> {
        self.send_held();
        self.outgoing.clear();
        self.errors.clear();
        self.renew(self.v6)
    }

    fn local(&self) -> Option<Vec<u8>> {
        local(self.fd)
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
        let (to, error) = self.errors.pop_front()?;
        Some(Arrived::Undelivered {
            to: to.to_vec(),
            opts: Vec::new(),
            error,
        })
    }

    #[inline]
    fn send_to(&mut self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        let len = length(data);
        let to = Address::read(to)?;
        if to.is_v6() != self.v6 || to.port() == 0 {
            return Err(Refusal::new(TBADADDR));
        }
        if len > LARGEST {
            return Err(Refusal::new(TBADDATA));
        }
        if opts.is_empty() && self.outgoing.join(&to, data, len) {
            if self.outgoing.is_full() {
                self.send_held();
            }
            return Ok(());
        }
        if self.outgoing.pending() > 0 && !self.send_held() {
            return Err(Refusal::new(TFLOW));
        }
        if opts.is_empty() {
            if self.outgoing.begin(&to, data, len) {
                return Ok(());
            }
            return self.send_alone(&to, data, &[]);
        }
        let mut control = Control([0; 128]);
        let n = control_of(self.v6, opts, &mut control)?;
        if has_checksum_option(opts) {
            let mut settings = Options {
                fd: self.fd,
                v6: self.v6,
                chosen: &mut self.chosen,
            };
            options::apply(&[&options::UDP], &mut settings, opts)?;
        }
        self.send_alone(&to, data, &control.0[..n])
    }

    #[inline]
    fn receive_from(&mut self, into: &mut Datagram<'_>) -> Outcome<()> {
        (into.addr_len, into.opts_len, into.data_len, into.more) = (0, 0, 0, false);
        if !self.errors.is_empty() {
            return Err(Refusal::new(TLOOK));
        }
        if !self.fill() {
            self.flush();
            return Err(Refusal::new(if self.errors.is_empty() {
                TNODATA
            } else {
                TLOOK
            }));
        }
        let Some(front) = self.incoming.front(self.taken.unwrap_or(0)) else {
            return Err(Refusal::new(TNODATA));
        };
        if self.taken.is_none() && !into.addr.is_empty() {
            let Some(from) = Address::of_storage(front.from) else {
                self.incoming.pop();
                return Err(Refusal::new(TNODATA));
            };
            let from = from.bytes();
            if from.len() > into.addr.len() {
                self.incoming.pop();
                return Err(Refusal::new(TBUFOVFLW));
            }
            into.addr[..from.len()].copy_from_slice(from);
            into.addr_len = from.len();
        }
        let n = scatter(front.data, into.data);
        into.data_len = n;
        into.more = n < front.data.len();
        if into.more {
            self.taken = Some(self.taken.unwrap_or(0) + n);
        } else {
            self.taken = None;
            self.incoming.pop();
        }
        Ok(())
    }

    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let mut settings = Options {
            fd: self.fd,
            v6: self.v6,
            chosen: &mut self.chosen,
        };
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
        if want & IN == 0 || !self.watching.goes_on(self.fd) {
            return Look::Sleep;
        }
        if self.errors.is_empty() && !self.fill() {
            return Look::Again;
        }
        self.watching.found();
        Look::Ready
    }

    fn waiter(&self) -> Waiter {
        Waiter::Poll(self.fd)
    }

    fn ready(&mut self, want: u32) -> u32 {
        if !self.incoming.is_empty() || !self.errors.is_empty() {
            want & IN
        } else {
            0
        }
    }

    /// An error is something to be taken.
    fn kernel_means(&self, events: u32) -> u32 {
        let gone = (libc::POLLERR | libc::POLLHUP) as u32;
        if events & gone != 0 {
            events & !gone | IN
        } else {
            events
        }
    }

    fn save(&mut self) -> Option<String> {
        self.send_held();
        Some(String::new())
    }

    fn forked(&mut self) {
        self.outgoing.forked();
        flusher::forked();
    }

    fn close(&mut self) {
        // Datagrams may be lost; those that the kernel takes are not.
        let mut turns = 0;
        while !self.send_held() && turns < 100 {
            poll_writable(self.fd);
            turns += 1;
        }
        self.outgoing.clear();
    }
}

fn poll_writable(fd: i32) {
    if poll(fd, libc::POLLOUT) == 0 {
        let mut set = [libc::pollfd {
            fd,
            events: libc::POLLOUT,
            revents: 0,
        }];
        let _ = sys::ppoll(&mut set, Some(1_000_000));
    }
}
