//! /dev/sctp_t: associations as connections with orderly release. A message is a data unit, expedited data an unordered
//! message, an orderly release a SHUTDOWN, a disconnection an ABORT.
//!
//! What an endpoint has is a [`Connection`], by shared memory, where the peer is a process of this host with the library, or by
//! packets. A listener takes both.

use core::net::IpAddr;

use headwater_host::handed::Sort;
use headwater_host::sys;
use headwater_host::table::Handle;
use headwater_providers::loopback::Owned;
use headwater_providers::loopback::link::{from_hex, named, taken, to_hex};
use headwater_providers::options;
use headwater_providers::provider::{
    Adoption, Arrived, Event, IN, Outcome, Pending, Provider, Received, Sending, Sleep, Waiter,
    nothing,
};
use headwater_sctp::asconf::Change;
use headwater_tpi::error::{
    TADDRBUSY, TBADADDR, TBADDATA, TBADSEQ, TNOADDR, TOUTSTATE, TPROVMISMATCH,
};
use headwater_tpi::option::T_NEGOTIATE;
use headwater_tpi::prim::{T_COTS_ORD, T_INFINITE, T_INVALID};
use headwater_tpi::{Info, Refusal};
use libc::iovec;

use super::connection::Connection;
use super::option::message::{Outgoing, received_options};
use super::requests::{Accepted, Asking, Waiting};
use super::values::Settings;
use super::{Addresses, Order, addresses, choice, here, names};

mod negotiation;

/// The most connection requests that a listener has outstanding.
const MOST_OUTSTANDING: u32 = 128;

#[derive(Default)]
pub struct Sctp {
    v6: bool,
    bound: Option<Addresses>,
    /// The port is our choice.
    any_port: bool,
    /// The port's names, which keep it from others of this host.
    names: Vec<Owned>,
    waiting: Option<Waiting>,
    connection: Option<Connection>,
    /// There was none to connect to: errno.
    failed: Option<i32>,
    pub settings: Settings,
}

impl Sctp {
    pub fn open(v6: bool) -> Outcome<Sctp> {
        Ok(Sctp {
            v6,
            ..Sctp::default()
        })
    }

    #[inline]
    fn connection(&mut self) -> Outcome<&mut Connection> {
        self.connection.as_mut().ok_or(Refusal::new(TOUTSTATE))
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
    fn leave(&mut self, how: impl FnOnce(Connection)) {
        self.failed = None;
        if let Some(connection) = self.connection.take() {
            how(connection);
        }
    }

    /// Calls by packets.
    fn call_far(&mut self, to: &Addresses, mut from: Addresses) -> Outcome<()> {
        let listener = self.waiting.as_ref().and_then(Waiting::by_packets);
        let mut called = Connection::call(to, &from, &self.settings, listener);
        if let Err(Refusal { tli: TADDRBUSY, .. }) = called
            && self.any_port
        {
            // Another user, or a process without shared memory, has the port that we had chosen.
            from.port = 0;
            called = Connection::call(to, &from, &self.settings, None);
        }
        match called {
            Ok(connection) => {
                if let Some(bound) = &mut self.bound {
                    bound.port = connection.local().port();
                }
                self.connection = Some(connection);
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
        self.connection()?.send(data, how, &message)
    }

    pub fn restore(v6: bool, fd: i32, saved: &str) -> Option<Sctp> {
        let fields: Vec<&str> = saved.splitn(4, '/').collect();
        let [bound, names, qlen, connection] = fields[..] else {
            return None;
        };
        let mut sctp = Sctp::open(v6).ok()?;
        sctp.bound = Addresses::read(&from_hex(bound)?).ok();
        for name in names.split(',').filter(|name| !name.is_empty()) {
            sctp.names.push(Owned(taken(name, Sort::Local)?));
        }
        if !connection.is_empty() {
            sctp.connection = Some(Connection::restore(fd, connection)?);
        }
        let qlen: u32 = qlen.parse().ok()?;
        if let Some(at) = sctp.bound.as_ref().filter(|_| qlen > 0) {
            let chosen = &sctp.settings.chosen;
            let waiting = match &sctp.connection {
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
        let connection = self.connection.as_ref().map(|c| c.descriptor());
        let waiting = self.waiting.as_ref().map(Waiting::descriptor);
        let connection = connection.filter(|&d| d >= 0);
        connection.or(waiting).unwrap_or(-1)
    }

    fn inner(&self) -> Option<Handle> {
        Some(self.connection.as_ref()?.head()?.handle())
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
        match &self.connection {
            Some(connection) => Some(connection.local().to_vec()),
            None => self.bound.as_ref().map(Addresses::to_bytes),
        }
    }

    fn remote(&self) -> Option<Vec<u8>> {
        Some(self.connection.as_ref()?.remote().to_vec())
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
            && let Some(called) = Connection::call_by_memory(&to, &from, &self.settings)?
        {
            self.connection = Some(called);
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

    fn adopt(&mut self, request: Pending, opts: &[u8], data: &[u8]) -> Adoption {
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
        self.connection = Some(match request.asking {
            Asking::ByMemory(request) => match Connection::accept(request, &self.settings) {
                Ok(accepted) => accepted,
                // What it came with is used up.
                Err(refusal) => return Err((refusal, Box::new(()))),
            },
            Asking::ByPackets(mut arrived) => {
                arrived.adopted(&self.settings);
                *arrived
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
        self.leave(Connection::disconnect);
        Ok(())
    }

    fn release(&mut self) -> Outcome<()> {
        self.connection()?.release()
    }

    fn connection_over(&mut self) {
        self.leave(Connection::part);
    }

    #[inline]
    fn peek(&mut self) -> Option<Event> {
        if let Some(connection) = &mut self.connection {
            return connection.event();
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
        if let Some(connection) = &mut self.connection {
            return connection.take();
        }
        if let Some(reason) = self.failed.take() {
            return Some(Arrived::ended(reason, -1));
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
        match &mut self.connection {
            Some(connection) => connection.receive(into),
            None => Err(nothing(self.peek().is_some())),
        }
    }

    fn received_options(&mut self) -> Vec<u8> {
        match &self.connection {
            Some(c) if self.settings.chosen.tells => received_options(&c.last()),
            _ => Vec::new(),
        }
    }

    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let table = [&options::GENERIC[..], &super::option::TABLE];
        options::negotiate(&table, self, flags, opts)
    }

    fn waiter(&self) -> Waiter {
        match &self.connection {
            Some(connection) => connection.waiter(),
            None => Waiter::Poll(self.descriptor()),
        }
    }

    fn sleep(&mut self, want: u32) -> Option<Sleep> {
        self.connection.as_ref()?.sleep(want)
    }

    fn ready(&mut self, want: u32) -> u32 {
        if let Some(connection) = &mut self.connection {
            return connection.ready(want);
        }
        let known = self.waiting.as_ref().is_some_and(Waiting::has_news);
        if known || self.failed.is_some() {
            want & IN
        } else {
            0
        }
    }

    fn kernel_wants(&self, want: u32) -> u32 {
        if let Some(connection) = &self.connection {
            return connection.kernel_wants(want);
        }
        if let Some(by_packets) = self.waiting.as_ref().and_then(Waiting::by_packets) {
            by_packets.hand_over();
        }
        want
    }

    fn kernel_means(&self, events: u32) -> u32 {
        match &self.connection {
            Some(connection) => connection.kernel_means(events),
            // A descriptor that says nothing could be written to.
            None => events & IN,
        }
    }

    fn save(&mut self) -> Option<String> {
        let connection = match &self.connection {
            Some(connection) => connection.save()?,
            None => String::new(),
        };
        let bound = self.bound.as_ref().map_or(Vec::new(), Addresses::to_bytes);
        let names = self.names.iter().map(|name| named(name.pass_on()));
        let names: Vec<String> = names.collect();
        let qlen = self.waiting.as_ref().map_or(0, Waiting::qlen);
        let (bound, names) = (to_hex(&bound), names.join(","));
        Some(format!("{bound}/{names}/{qlen}/{connection}"))
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
    }

    fn close(&mut self) {
        self.leave(Connection::close);
        self.waiting = None;
        self.names.clear();
    }
}

impl Sctp {
    /// Parameters were changed: for the association, or for those to come.
    pub fn tell_parameters(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.tune(&self.settings);
        } else if let Some(by_packets) = self.waiting.as_ref().and_then(Waiting::by_packets) {
            let chosen = &self.settings.chosen;
            by_packets.offer(&chosen.association, chosen.cookie_life);
        }
    }

    /// Errors: errno.
    pub fn obey(&mut self, order: Order) -> Result<(), i32> {
        if let Some(connection) = &mut self.connection {
            return connection.obey(&order);
        }
        if let Order::Addresses(Change::Add(host)) = order {
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
