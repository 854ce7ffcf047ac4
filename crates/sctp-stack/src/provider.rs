//! /dev/sctp_t: associations as connections with orderly release. A message is a data unit, expedited data an unordered
//! message, an orderly release a SHUTDOWN, a disconnection an ABORT.
//!
//! An association has one of two bodies: shared memory, where the peer is a process of this host with the library
//! ([`shm`](super::shm)), or packets ([`net`](super::net)). A listener takes both.

use core::net::{IpAddr, Ipv4Addr};

use headwater_host::handed::{self, Sort, identity};
use headwater_host::sys;
use headwater_host::table::{Handle, NOT_KERNELS};
use headwater_providers::loopback::link::{from_hex, to_hex};
use headwater_providers::loopback::{Owned, connection};
use headwater_providers::options;
use headwater_providers::provider::{
    Arrived, Event, Outcome, Pending, Provider, Received, Sending, Sleep, Waiter,
};
use headwater_tpi::error::{
    TADDRBUSY, TBADADDR, TBADDATA, TBADSEQ, TLOOK, TNOADDR, TNODATA, TOUTSTATE, TPROVMISMATCH,
};
use headwater_tpi::option::T_NEGOTIATE;
use headwater_tpi::prim::{T_COTS_ORD, T_INFINITE, T_INVALID};
use headwater_tpi::{Info, Refusal};
use libc::iovec;

use super::addresses::{self, Addresses};
use super::body::Body;
use super::choice;
use super::here;
use super::names;
use super::net::{IN, Net, OUT};
use super::option::message::Outgoing;
use super::option::orders::Order;
use super::requests::{Accepted, Asking, Waiting};
use super::shm::{Greeting, Shm};
use super::values::Settings;

mod negotiation;

/// The most connection requests that a listener has outstanding.
const MOST_OUTSTANDING: u32 = 128;

pub struct Sctp {
    v6: bool,
    bound: Option<Addresses>,
    /// The port is our choice.
    any_port: bool,
    /// The port's names, which keep it from others of this host.
    names: Vec<Owned>,
    waiting: Option<Waiting>,
    pub body: Option<Body>,
    /// There was none to connect to: errno.
    failed: Option<i32>,
    pub settings: Settings,
}

impl Sctp {
    pub fn open(v6: bool) -> Outcome<Sctp> {
        Ok(Sctp::new(v6))
    }

    fn new(v6: bool) -> Sctp {
        Sctp {
            v6,
            bound: None,
            any_port: false,
            names: Vec::new(),
            waiting: None,
            body: None,
            failed: None,
            settings: Settings::default(),
        }
    }

    #[inline]
    fn body(&mut self) -> Outcome<&mut Body> {
        self.body.as_mut().ok_or(Refusal::new(TOUTSTATE))
    }

    fn greeting(&self) -> Greeting {
        let chosen = &self.settings.chosen.association;
        Greeting {
            out: chosen.outbound,
            inbound: chosen.inbound,
            adaptation: chosen.adaptation.unwrap_or(0),
            called: Ipv4Addr::UNSPECIFIED.into(),
            port: 0,
        }
    }

    /// Takes the port, here and (if it is to be heard in) the network.
    fn take_port(&mut self, wanted: &Addresses, qlen: u32) -> Outcome<Addresses> {
        let listens = qlen > 0 && choice::rules().any(choice::Link::allows_shm);
        loop {
            let (port, names) = names::claim(wanted, listens)?;
            let got = Addresses {
                port,
                ..wanted.clone()
            };
            if qlen == 0 {
                self.names = names;
                return Ok(got);
            }
            let heard = if listens { &names[..] } else { &[] };
            match Waiting::new(&got, qlen, heard, &self.settings.chosen) {
                Err(Refusal { tli: TADDRBUSY, .. }) if wanted.port == 0 => {}
                Err(refusal) => return Err(refusal),
                Ok(waiting) => {
                    self.waiting = Some(waiting);
                    self.names = names;
                    return Ok(got);
                }
            }
        }
    }

    /// Gives the association up: `how` ends it.
    fn leave(&mut self, how: impl FnOnce(Body)) {
        self.failed = None;
        if let Some(body) = self.body.take() {
            how(body);
        }
    }

    /// Calls by packets.
    fn call_far(&mut self, to: &Addresses, mut from: Addresses) -> Outcome<()> {
        let listener = self.waiting.as_ref().and_then(Waiting::by_packets);
        let mut called = Net::call(to, &from, &self.settings, listener);
        if let Err(Refusal { tli: TADDRBUSY, .. }) = called
            && self.any_port
        {
            // Another user, or a process without shared memory, has the port that we had chosen.
            from.port = 0;
            called = Net::call(to, &from, &self.settings, None);
        }
        match called {
            Ok(net) => {
                if let Some(bound) = &mut self.bound {
                    bound.port = net.local().port();
                }
                self.body = Some(Body::Net(Box::new(net)));
                Ok(())
            }
            Err(Refusal { unix, .. }) if unix != 0 => {
                self.failed = Some(unix);
                Ok(())
            }
            Err(refusal) => Err(refusal),
        }
    }

    fn listener(&mut self) -> Option<(&mut Waiting, &[Owned])> {
        Some((self.waiting.as_mut()?, &self.names))
    }

    #[inline(always)]
    fn send_message(&mut self, data: &[iovec], how: Sending, message: Outgoing) -> Outcome<usize> {
        self.body()?.send(data, how, &message)
    }

    pub fn restore(v6: bool, fd: i32, saved: &str) -> Option<Sctp> {
        let fields: Vec<&str> = saved.splitn(4, '/').collect();
        let [bound, names, qlen, body] = fields[..] else {
            return None;
        };
        let mut sctp = Sctp::new(v6);
        sctp.bound = Addresses::read(&from_hex(bound)?).ok();
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let (name, is) = name.split_once('.')?;
            let name = handed::take(name.parse().ok()?, is.parse().ok()?, Sort::Local)?;
            sctp.names.push(Owned::of_hidden(name));
        }
        if !body.is_empty() {
            sctp.body = Some(Body::Shm(Box::new(Shm::restore(fd, body)?)));
        }
        let qlen: u32 = qlen.parse().ok()?;
        if let Some(at) = sctp.bound.as_ref().filter(|_| qlen > 0) {
            let chosen = &sctp.settings.chosen;
            let waiting = match &sctp.body {
                Some(_) => Waiting::new(at, qlen, &sctp.names, chosen),
                None => Waiting::restore(Owned::copy_of(fd).ok()?, at, qlen, chosen),
            };
            sctp.waiting = Some(waiting.ok()?);
        }
        Some(sctp)
    }
}

impl Provider for Sctp {
    fn info(&self) -> Info {
        Info {
            tsdu: T_INFINITE,
            etsdu: T_INFINITE,
            cdata: T_INVALID,
            ddata: T_INVALID,
            addr: (addresses::MOST * size_of::<libc::sockaddr_in6>()) as i32,
            opt: 4096,
            tidu: headwater_providers::loopback::link::PIECE as i32,
            serv: T_COTS_ORD,
            state: 0,
            provider_flag: 0,
        }
    }

    fn descriptor(&self) -> i32 {
        let body = self.body.as_ref().map(Body::descriptor).filter(|&d| d >= 0);
        let waiting = self.waiting.as_ref().map(Waiting::descriptor);
        body.or(waiting).unwrap_or(-1)
    }

    fn inner(&self) -> Option<Handle> {
        Some(self.body.as_ref()?.head()?.handle())
    }

    fn bind(&mut self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        let wanted = match addr {
            Some(addr) => Addresses::read(addr)?,
            None => Addresses::any(self.v6, 0),
        };
        if !wanted.hosts.iter().all(|&host| here::is_here(host)) {
            return Err(Refusal::new(TNOADDR));
        }
        let qlen = qlen.min(MOST_OUTSTANDING);
        let got = self.take_port(&wanted, qlen)?;
        self.any_port = wanted.port == 0;
        let bytes = got.to_bytes();
        self.bound = Some(got);
        Ok((bytes, qlen))
    }

    fn unbind(&mut self) -> Outcome<()> {
        self.waiting = None;
        self.names.clear();
        self.bound = None;
        Ok(())
    }

    fn local(&self) -> Option<Vec<u8>> {
        match &self.body {
            Some(body) => Some(body.local().to_vec()),
            None => self.bound.as_ref().map(Addresses::to_bytes),
        }
    }

    fn remote(&self) -> Option<Vec<u8>> {
        self.body.as_ref().map(|body| body.remote().to_vec())
    }

    fn connect(&mut self, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()> {
        let mut to = Addresses::read(to)?;
        if to.port == 0 {
            return Err(Refusal::new(TBADADDR));
        }
        if !data.is_empty() {
            return Err(Refusal::new(TBADDATA));
        }
        if !opts.is_empty() {
            self.negotiate(T_NEGOTIATE as u32, opts)?;
        }
        to.be_somewhere();
        let from = self.bound.clone();
        let from = from.unwrap_or_else(|| Addresses::any(self.v6, 0));
        let link = choice::link_to(to.hosts[0]);
        if link.allows_shm()
            && let Some(shm) = Shm::call(&to, &from, self.greeting())?
        {
            self.body = Some(Body::Shm(Box::new(shm)));
        } else if link.allows_packets() {
            self.call_far(&to, from)?;
        } else {
            self.failed = Some(libc::ECONNREFUSED);
        }
        Ok(())
    }

    fn take_request(&mut self, seq: i32) -> Outcome<Pending> {
        let (waiting, names) = self.listener().ok_or(Refusal::new(TBADSEQ))?;
        let asking = waiting.take_out(seq, names)?;
        let chosen = self.settings.chosen.clone();
        Ok(Box::new(Accepted { asking, chosen }))
    }

    fn return_request(&mut self, seq: i32, request: Pending) {
        let Some((waiting, names)) = self.listener() else {
            return;
        };
        match request.downcast::<Accepted>() {
            Ok(accepted) => waiting.put_back(seq, accepted.asking, names),
            Err(_) => waiting.lose(seq),
        }
    }

    fn adopt(
        &mut self,
        request: Pending,
        opts: &[u8],
        data: &[u8],
    ) -> Result<(), (Refusal, Pending)> {
        let request = match request.downcast::<Accepted>() {
            Ok(request) => request,
            Err(other) => return Err((Refusal::new(TPROVMISMATCH), other)),
        };
        if !data.is_empty() {
            return Err((Refusal::new(TBADDATA), request));
        }
        self.settings.inherit(&request.chosen);
        if !opts.is_empty()
            && let Err(refusal) = self.negotiate(T_NEGOTIATE as u32, opts)
        {
            return Err((refusal, request));
        }
        self.body = Some(match request.asking {
            Asking::Shm(request) => match Shm::accept(request, self.greeting()) {
                Ok(shm) => Body::Shm(Box::new(shm)),
                // What it came with is used up.
                Err(refusal) => return Err((refusal, Box::new(()))),
            },
            Asking::Net(mut net) => {
                net.adopted(&self.settings);
                Body::Net(net)
            }
        });
        Ok(())
    }

    fn reject(&mut self, seq: i32, _data: &[u8]) -> Outcome<()> {
        let (waiting, names) = self.listener().ok_or(Refusal::new(TBADSEQ))?;
        waiting.take_out(seq, names)?.refuse();
        Ok(())
    }

    fn disconnect(&mut self, _data: &[u8]) -> Outcome<()> {
        self.leave(Body::disconnect);
        Ok(())
    }

    fn release(&mut self) -> Outcome<()> {
        self.body()?.release()
    }

    fn connection_over(&mut self) {
        self.leave(Body::part);
    }

    #[inline]
    fn peek(&mut self) -> Option<Event> {
        if let Some(body) = &mut self.body {
            return body.event();
        }
        if self.failed.is_some() {
            return Some(Event::Disconnect);
        }
        let (waiting, names) = self.listener()?;
        waiting.event(names)
    }

    fn lacks(&self) -> Option<sys::Errno> {
        self.waiting.as_ref()?.lacks()
    }

    fn take(&mut self) -> Option<Arrived> {
        if let Some(body) = &mut self.body {
            return body.take();
        }
        if let Some(reason) = self.failed.take() {
            return Some(Arrived::Disconnected {
                reason,
                seq: -1,
                data: Vec::new(),
            });
        }
        let (waiting, names) = self.listener()?;
        waiting.take(names)
    }

    #[inline]
    fn send(&mut self, data: &[iovec], how: Sending) -> Outcome<usize> {
        let message = self.settings.outgoing;
        self.send_message(data, how, message)
    }

    fn send_with(&mut self, opts: &[u8], data: &[iovec], how: Sending) -> Outcome<usize> {
        let message = self.settings.outgoing.with(opts)?;
        self.send_message(data, how, message)
    }

    #[inline]
    fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        match &mut self.body {
            Some(body) => body.receive(into),
            None => Err(Refusal::new(if self.peek().is_some() {
                TLOOK
            } else {
                TNODATA
            })),
        }
    }

    fn received_options(&mut self) -> Vec<u8> {
        match &self.body {
            Some(body) if self.settings.chosen.tells => body.last().to_options(),
            _ => Vec::new(),
        }
    }

    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let table = [&options::GENERIC[..], &super::option::TABLE];
        options::negotiate(&table, self, flags, opts)
    }

    fn waiter(&self) -> Waiter {
        match &self.body {
            Some(body) => body.waiter(),
            None => Waiter::Poll(self.descriptor()),
        }
    }

    fn sleep(&mut self, want: u32) -> Option<Sleep> {
        match &self.body {
            Some(Body::Net(net)) => Some(net.sleep(want)),
            _ => None,
        }
    }

    fn ready(&mut self, want: u32) -> u32 {
        let known = match (&mut self.body, &self.waiting) {
            (Some(Body::Net(net)), _) => return net.ready(want),
            // Looked at with care: an attempt may have to be made again.
            (Some(Body::Shm(shm)), _) => {
                shm.is_answered() || !shm.link().is_open() && shm.event().is_some()
            }
            (None, Some(waiting)) => waiting.has_news(),
            (None, None) => false,
        };
        if known || self.failed.is_some() {
            want & IN
        } else {
            0
        }
    }

    fn kernel_wants(&self, want: u32) -> u32 {
        match &self.body {
            // The descriptor becomes readable for whatever happens.
            Some(Body::Net(net)) => {
                net.is_waited_for(want);
                want & !OUT | IN
            }
            Some(Body::Shm(shm)) if shm.link().is_quiet() => NOT_KERNELS,
            Some(Body::Shm(_)) => want,
            None => {
                if let Some(by_packets) = self.waiting.as_ref().and_then(Waiting::by_packets) {
                    by_packets.hand_over();
                }
                want
            }
        }
    }

    fn kernel_means(&self, events: u32) -> u32 {
        let Some(body) = &self.body else {
            // A descriptor that says nothing could be written to.
            return events & IN;
        };
        let shm = match body {
            Body::Shm(shm) => shm,
            Body::Net(net) => return net.means(events),
        };
        connection::means(shm.link(), events)
    }

    fn save(&mut self) -> Option<String> {
        let body = match &self.body {
            Some(Body::Shm(shm)) => shm.save()?,
            Some(Body::Net(_)) => return None,
            None => String::new(),
        };
        let bound = self.bound.as_ref().map_or(Vec::new(), Addresses::to_bytes);
        let names = self.names.iter().map(|name| {
            let fd = name.pass_on();
            format!("{fd}.{}", identity(fd))
        });
        let names: Vec<String> = names.collect();
        let qlen = self.waiting.as_ref().map_or(0, Waiting::qlen);
        let (bound, names) = (to_hex(&bound), names.join(","));
        Some(format!("{bound}/{names}/{qlen}/{body}"))
    }

    fn forking(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.forking();
        }
    }

    fn forked(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.forked();
        }
        if let Some(Body::Net(net)) = &mut self.body {
            net.forked();
        }
    }

    fn close(&mut self) {
        self.leave(Body::close);
        self.waiting = None;
        self.names.clear();
    }
}

impl Sctp {
    /// Parameters were changed: for the association, or for those to come.
    pub fn tell_parameters(&mut self) {
        let chosen = &self.settings.chosen;
        if let Some(body) = &mut self.body {
            body.tune(chosen);
        } else if let Some(by_packets) = self.waiting.as_ref().and_then(Waiting::by_packets) {
            by_packets.configure(chosen);
        }
    }

    /// Errors: errno.
    pub fn obey(&mut self, order: Order) -> Result<(), i32> {
        if let Some(body) = &mut self.body {
            return body.obey(&order);
        }
        if let Order::AddAddress(host) = order {
            return self.add_address(host);
        }
        self.settings.keep(order)?;
        self.tell_parameters();
        Ok(())
    }

    /// To where it is bound. EOPNOTSUPP: peers may know of that already.
    fn add_address(&mut self, host: IpAddr) -> Result<(), i32> {
        let bound = self.bound.as_mut().ok_or(libc::ENOTCONN)?;
        let hosts = &mut bound.hosts;
        match hosts.len() {
            0 => {}
            _ if hosts.contains(&host) => {}
            _ if self.waiting.is_some() => return Err(libc::EOPNOTSUPP),
            addresses::MOST => return Err(libc::ENOSPC),
            _ if !here::is_here(host) => return Err(libc::EADDRNOTAVAIL),
            _ => hosts.push(host),
        }
        Ok(())
    }
}
