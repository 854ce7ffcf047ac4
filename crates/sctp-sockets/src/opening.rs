//! bind, listen, connect, accept, peeloff; names and addresses.

use core::net::IpAddr;
use core::time::Duration;
use std::sync::Arc;

use headwater_host::sync::{AtomicBool, AtomicU32, AtomicU64};
use headwater_host::sys;
use headwater_providers::loopback::listening::Listening;
use headwater_providers::loopback::{Owned, Space};
use headwater_sctp::Down;
use headwater_sctp_stack::{
    Addresses, ByMemory, ByPackets, Guarded, Port, Sink, Via, choice, here, names, until,
};
use headwater_tpi::Refusal;
use headwater_tpi::error::{TADDRBUSY, TNOADDR};

use super::gathering::setup_error;
use super::{AssocT, Body, Core, For, Options, Socket, State, Style, abi, face};

/// Requests that are not asked of the kernel all at once.
pub(super) const MOST_REQUESTS: u32 = 128;
/// Peers that have connected and were not looked at.
const MOST_WAITING: usize = 4096;
/// A try to find a port that nobody has.
const TRIES: u32 = 16;

impl Socket {
    pub fn open(v6: bool, style: Style, nonblocking: bool) -> Socket {
        Socket::with(v6, style, nonblocking, Options::new(style))
    }

    fn with(v6: bool, style: Style, nonblocking: bool, options: Options) -> Socket {
        let sink = Arc::<Sink>::default();
        Socket {
            style,
            v6,
            nonblocking: AtomicBool::new(nonblocking),
            sink: sink.clone(),
            edges: AtomicU64::new(0),
            waiters: AtomicU32::new(0),
            abandoned: AtomicBool::new(false),
            remote: Default::default(),
            core: Guarded::new(Core::new(v6, style, options, sink)),
        }
    }

    /// EINVAL: it has an address, or nonsense was given; EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT.
    pub fn bind(&self, addr: &[u8]) -> sys::Result<()> {
        elsewhere!(self.bind(addr));
        let wanted = self.addresses(addr, false)?;
        let done = self.core.enter().bind(&wanted);
        match done {
            Err(libc::EADDRINUSE) if self.shares_port(&wanted) => Ok(()),
            done => done,
        }
    }

    /// SCTP_REUSE_PORT: another socket of this process has the port, and both want to share it.
    fn shares_port(&self, wanted: &Addresses) -> bool {
        if !self.core.enter().options.reuse_port {
            return false;
        }
        let shared = face::all().into_iter().find_map(|open| {
            let other = open.socket.core.enter();
            let same = other.local.as_ref() == Some(wanted) && other.options.reuse_port;
            let copies = other.names.iter().map(|n| Owned::copy_of(n.number()));
            same.then(|| copies.collect::<sys::Result<Vec<_>>>())
        });
        let Some(Ok(names)) = shared else {
            return false;
        };
        let mut core = self.core.enter();
        core.names = names;
        core.local = Some(wanted.clone());
        true
    }

    pub fn listen(&self, backlog: i32) -> sys::Result<()> {
        elsewhere!(self.listen(backlog));
        let done = self.core.enter().listen(backlog);
        self.changed();
        done
    }

    /// EISCONN, EALREADY, EINPROGRESS, ECONNREFUSED, ETIMEDOUT, EINTR ...
    pub fn connect(&self, addr: &[u8]) -> sys::Result<()> {
        elsewhere!(self.connect(addr));
        let to = self.addresses(addr, false)?;
        self.connect_to(&to).1
    }

    /// The number of the association, if one has begun, and what came of it.
    fn connect_to(&self, to: &Addresses) -> (Option<AssocT>, sys::Result<()>) {
        let mut core = self.core.enter();
        core.gather();
        let begun = core.begin(to);
        let timeout = core.options.send_timeout;
        drop(core);
        self.changed();
        let id = match begun {
            Ok(id) => id,
            Err(errno) => return (None, Err(errno)),
        };
        if !self.may_wait(0) {
            return (Some(id), Err(libc::EINPROGRESS));
        }
        let done = self.await_up(id, timeout);
        (Some(id), done)
    }

    /// Until the association is there.
    pub(super) fn await_up(&self, id: AssocT, timeout: Option<Duration>) -> sys::Result<()> {
        self.core.enter().hold_on_to(id);
        let waited = self.wait_for(until(timeout), For::Setup(id), false, |core| {
            core.gather();
            let one = core.style == Style::One;
            match core.assocs.get(&id) {
                Some(assoc) if assoc.state == State::Calling => None,
                Some(assoc) if assoc.state == State::Up => Some(Ok(())),
                // It was there, and has ended in peace before we looked.
                Some(assoc) if matches!(assoc.down, Some(Down::Shutdown)) => Some(Ok(())),
                Some(assoc) => {
                    let errno = match (one, core.error) {
                        (true, told) if told != 0 => core::mem::take(&mut core.error),
                        _ => assoc.down.as_ref().map_or(libc::ECONNREFUSED, setup_error),
                    };
                    Some(Err(errno))
                }
                None => Some(Err(libc::ECONNREFUSED)),
            }
        });
        self.core.enter().let_be_forgotten(id);
        match waited {
            Err(libc::EAGAIN) => Err(libc::EINPROGRESS),
            done => done,
        }
    }

    /// EINVAL: it does not listen; EOPNOTSUPP; EAGAIN; EINTR; EMFILE, ENFILE, ENOMEM.
    pub fn accept(&self) -> sys::Result<Arc<Socket>> {
        elsewhere!(self.accept());
        if self.style == Style::Many {
            return Err(libc::EOPNOTSUPP);
        }
        let timeout = self.timeout(|options| options.receive_timeout);
        self.wait_for(timeout, For::News, false, |core| {
            if !core.listening {
                return Some(Err(libc::EINVAL));
            }
            core.gather();
            match core.waiting.pop_front() {
                Some(id) => {
                    core.settle_backlog();
                    Some(Ok(Arc::new(core.part_with(id)?)))
                }
                None => core.lacking.map(Err),
            }
        })
    }

    /// An association becomes a one-to-one socket. EINVAL: there is none such.
    fn peel_off(&self, id: AssocT) -> sys::Result<Arc<Socket>> {
        let mut core = self.core.enter();
        if self.style == Style::One {
            return Err(libc::EINVAL);
        }
        core.gather();
        let (hosts, port) = core.assocs.get(&id).ok_or(libc::EINVAL)?.body.peer();
        let peeled = Arc::new(core.part_with(id).ok_or(libc::EINVAL)?);
        core.peeled.retain(|(_, socket)| socket.strong_count() > 0);
        for host in hosts {
            let peer = (host.to_canonical(), port);
            core.peeled.push((peer, Arc::downgrade(&peeled)));
        }
        drop(core);
        self.changed();
        Ok(peeled)
    }

    /// Its one association is there. Whoever uses it this moment would not, if it were not.
    fn has_peer(&self) -> bool {
        let core = self.core.try_enter_briefly();
        core.is_none_or(|core| core.assocs.values().any(|a| a.state != State::Over))
    }

    pub fn set_option(&self, level: i32, name: i32, value: &[u8]) -> sys::Result<i32> {
        elsewhere!(self.set_option(level, name, value));
        if level != abi::SOL_SCTP {
            return self.core.enter().set_option(level, name, value).map(|()| 0);
        }
        match name {
            abi::SCTP_SOCKOPT_BINDX_ADD => {
                let wanted = self.addresses(value, true)?;
                self.core.enter().add_addresses(&wanted).map(|()| 0)
            }
            abi::SCTP_SOCKOPT_BINDX_REM => {
                let unwanted = self.addresses(value, true)?;
                self.core.enter().remove_addresses(&unwanted).map(|()| 0)
            }
            abi::SCTP_SOCKOPT_CONNECTX | abi::SCTP_SOCKOPT_CONNECTX_OLD => {
                let to = self.addresses(value, true)?;
                let (id, done) = self.connect_to(&to);
                match (done, id) {
                    (Ok(()), Some(id)) if name == abi::SCTP_SOCKOPT_CONNECTX => Ok(id),
                    (done, _) => done.map(|()| 0),
                }
            }
            _ => {
                let mut core = self.core.enter();
                core.gather();
                let done = core.set_option(level, name, value).map(|()| 0);
                drop(core);
                self.changed();
                done
            }
        }
    }

    /// `value`: what the program passed, `room` bytes at most; then the answer. A socket is one that was peeled off. EINPROGRESS
    /// comes with an answer too.
    pub fn get_option(
        &self,
        level: i32,
        name: i32,
        value: &mut Vec<u8>,
        room: usize,
    ) -> sys::Result<Option<Arc<Socket>>> {
        elsewhere!(self.get_option(level, name, value, room));
        match (level, name) {
            (abi::SOL_SCTP, abi::SCTP_SOCKOPT_PEELOFF | abi::SCTP_SOCKOPT_PEELOFF_FLAGS) => {
                let [id, _]: [AssocT; 2] = abi::read(value)?;
                self.peel_off(id).map(Some)
            }
            (abi::SOL_SCTP, abi::SCTP_SOCKOPT_CONNECTX3) => {
                // The face has put the addresses behind the struct.
                let at = size_of::<abi::sctp_getaddrs_old>();
                let to = self.addresses(value.get(at..).ok_or(libc::EINVAL)?, true)?;
                let (id, done) = self.connect_to(&to);
                value.truncate(at);
                if let Some(id) = id {
                    value[..4].copy_from_slice(&id.to_ne_bytes());
                }
                done.map(|()| None)
            }
            (abi::SOL_SCTP, abi::SCTP_GET_PEER_ADDRS | abi::SCTP_GET_LOCAL_ADDRS) => {
                let id = abi::read(value)?;
                let mut core = self.core.enter();
                core.gather();
                let all = if name == abi::SCTP_GET_PEER_ADDRS {
                    core.peer_addresses(id)?
                } else {
                    core.local_addresses(id)?
                };
                drop(core);
                let bytes: Vec<u8> = all.iter().flat_map(|a| a.bytes().to_vec()).collect();
                if bytes.len() + 8 > room {
                    return Err(libc::ENOMEM);
                }
                value.truncate(4);
                value.extend_from_slice(&(all.len() as u32).to_ne_bytes());
                value.extend_from_slice(&bytes);
                Ok(None)
            }
            _ => {
                let mut core = self.core.enter();
                core.gather();
                core.get_option(level, name, value, room).map(|()| None)
            }
        }
    }
}

pub(super) fn refused(refusal: Refusal) -> i32 {
    match refusal.tli {
        TADDRBUSY => libc::EADDRINUSE,
        TNOADDR => libc::EADDRNOTAVAIL,
        _ if refusal.unix != 0 => refusal.unix,
        _ => libc::EINVAL,
    }
}

impl Core {
    pub(super) fn bind(&mut self, wanted: &Addresses) -> sys::Result<()> {
        if self.local.is_some() {
            return Err(libc::EINVAL);
        }
        let fits = |&host: &IpAddr| !is_for_many(host) && here::is_here(host);
        if !wanted.hosts.iter().all(fits) {
            return Err(libc::EADDRNOTAVAIL);
        }
        if wanted.port != 0 && wanted.port < 1024 && !may_have_low_ports() {
            return Err(libc::EACCES);
        }
        let (port, names) = names::claim(&self.named(wanted), false).map_err(refused)?;
        self.names = names;
        self.local = Some(Addresses {
            port,
            ..wanted.clone()
        });
        Ok(())
    }

    /// By what it is known on this host: without IPv4, if IPV6_V6ONLY says so.
    fn named(&self, at: &Addresses) -> Addresses {
        let mut named = at.clone();
        if self.v6 && self.options.v6only && at.hosts.is_empty() {
            named.hosts.push(names::IPV6_ONLY);
        }
        named
    }

    fn be_bound(&mut self) -> sys::Result<()> {
        match self.local {
            Some(_) => Ok(()),
            None => self.bind(&Addresses::any(self.v6, 0)),
        }
    }

    fn listen(&mut self, backlog: i32) -> sys::Result<()> {
        if self.style == Style::One && !self.listening && !self.assocs.is_empty() {
            return Err(libc::EINVAL);
        }
        self.be_bound()?;
        // A negative one is a great one, as for other sockets. Zero ends it, for a socket with many associations, where nobody waits for
        // accept(2); one that has but one takes it for the least.
        self.backlog = match self.style {
            Style::One => (backlog as u32 as usize).clamp(1, MOST_WAITING),
            Style::Many => MOST_WAITING,
        };
        if backlog == 0 && self.style == Style::Many {
            return self.listen_no_more();
        }
        let rules = choice::rules();
        let shm = rules.any(choice::Link::allows_shm);
        let packets = rules.any(choice::Link::allows_packets);
        if shm && self.memory_listener.is_none() && !self.needs_packets() {
            for name in &self.names {
                // The kernel lets one more wait than it is told.
                sys::listen(name.number(), self.backlog as i32 - 1)?;
            }
            let mut by_memory = Listening::new(Space::Sctp, MOST_REQUESTS, &self.names)?;
            by_memory.keeps_departed = true;
            self.memory_listener = Some(by_memory);
        }
        if packets {
            let heard = self.open_port().and_then(|()| match &mut self.port {
                Some(port) => port.listen(self.backlog),
                None => Ok(()),
            });
            match heard {
                // Who shares the port hears it.
                Err(libc::EADDRINUSE) if self.options.reuse_port => {}
                Err(errno @ (libc::EADDRINUSE | libc::EMFILE | libc::ENFILE)) => return Err(errno),
                // Without a network this host is all there is.
                Err(_) if shm => {}
                done => done?,
            }
        }
        self.listening = true;
        self.changes += 1;
        self.settle_backlog();
        Ok(())
    }

    /// Those that wait here for accept(2) count too.
    pub(super) fn settle_backlog(&self) {
        if self.style == Style::One
            && self.listening
            && let Some(port) = &self.port
        {
            port.let_wait(self.backlog.saturating_sub(self.waiting.len()));
        }
    }

    fn listen_no_more(&mut self) -> sys::Result<()> {
        self.listening = false;
        if self.memory_listener.take().is_some()
            && let Some(local) = self.local.clone()
        {
            self.names.clear();
            self.names = names::claim(&self.named(&local), false).map_err(refused)?.1;
        }
        if let Some(port) = &mut self.port {
            port.listen(0)?;
        }
        self.changes += 1;
        Ok(())
    }

    /// The socket's port in the stack.
    fn open_port(&mut self) -> sys::Result<()> {
        if self.port.is_some() {
            return Ok(());
        }
        let Some(local) = &self.local else {
            return Err(libc::EINVAL);
        };
        let port = Port::bind_for(
            &local.hosts,
            local.port,
            &self.options.config,
            Some(self.sink.clone()),
        )?;
        let life = self.options.cookie_life;
        let (ipv4, ipv6) = (!(self.v6 && self.options.v6only), self.v6);
        port.configure(|config| {
            config.cookie_lifetime = life;
            (config.ipv4, config.ipv6) = (ipv4, ipv6);
        })?;
        self.port = Some(port);
        Ok(())
    }

    /// Begins an association, and does not wait.
    pub(super) fn begin(&mut self, to: &Addresses) -> sys::Result<AssocT> {
        if self.closed {
            return Err(libc::EBADF);
        }
        if self.style == Style::One {
            self.make_room_for_one()?;
        }
        let mut to = to.clone();
        to.be_somewhere();
        if to.port == 0 {
            return Err(libc::EINVAL);
        }
        for host in &to.hosts {
            if let Some(id) = self.by_peer(*host, to.port) {
                return Err(match self.assocs.get(&id).map(|a| a.state) {
                    Some(State::Calling) => libc::EALREADY,
                    _ => libc::EISCONN,
                });
            }
        }
        if to.hosts.iter().any(|&host| is_for_many(host)) {
            return Err(libc::EINVAL);
        }
        let is_peeled_off = |&host: &IpAddr| self.is_peeled_off(host, to.port);
        if to.hosts.iter().any(is_peeled_off) {
            return Err(libc::EADDRNOTAVAIL);
        }
        self.be_bound()?;
        self.was_connected = true;
        self.error = 0;
        let link = choice::link_to(to.hosts[0]);
        let from = self.place();
        if link.allows_shm() && !self.needs_packets() {
            let called = ByMemory::call(&to, &from, &self.options.config, Some(&from.hosts));
            if let Some(by_memory) = called.map_err(refused)? {
                if !by_memory.is_up() {
                    // The backlog is full.
                    return Err(libc::ECONNREFUSED);
                }
                return Ok(self.add(Body::ByMemory(Box::new(by_memory)), State::Up));
            }
        }
        if !link.allows_packets() {
            return Err(libc::ECONNREFUSED);
        }
        self.begin_far(&to)
    }

    /// The peer's association is a socket of its own by now, and still there.
    fn is_peeled_off(&self, host: IpAddr, port: u16) -> bool {
        let named = |peer: &(IpAddr, u16)| *peer == (host.to_canonical(), port);
        let mut those = self.peeled.iter().filter(|(peer, _)| named(peer));
        those.any(|(_, socket)| socket.upgrade().is_some_and(|socket| socket.has_peer()))
    }

    /// Somebody wants to know what becomes of it.
    pub(super) fn hold_on_to(&mut self, id: AssocT) {
        if let Some(assoc) = self.assocs.get_mut(&id) {
            assoc.awaited = true;
        }
    }

    pub(super) fn let_be_forgotten(&mut self, id: AssocT) {
        if let Some(assoc) = self.assocs.get_mut(&id) {
            assoc.awaited = false;
        }
        self.list(id);
        self.gather_known();
    }

    fn begin_far(&mut self, to: &Addresses) -> sys::Result<AssocT> {
        for _ in 0..TRIES {
            match self.open_port() {
                Err(libc::EADDRINUSE) if self.chose_port() => {
                    // Another user, or a process without shared memory, has the port that we had chosen.
                    self.names.clear();
                    self.local = None;
                    self.be_bound()?;
                }
                Err(errno) => return Err(errno),
                Ok(()) => break,
            }
        }
        let via = self.options.encap.map_or(Via::Auto, Via::Udp);
        let port = self.port.as_ref().ok_or(libc::EADDRINUSE)?;
        let association = port.connect(&to.hosts, to.port, &self.options.config, via)?;
        let mut by_packets = ByPackets::new(association, false);
        by_packets.attach(&self.sink);
        Ok(self.add(Body::ByPackets(Box::new(by_packets)), State::Calling))
    }

    /// Something is wanted that only packets have: keys, or a clock.
    fn needs_packets(&self) -> bool {
        let options = &self.options;
        options.encap.is_some()
            || options.config.autoclose.is_some()
            || options.config.authentication
    }

    /// The port is none that the program has asked for, or could know.
    fn chose_port(&self) -> bool {
        self.assocs.is_empty()
            && !self.listening
            && self.local.as_ref().is_some_and(|l| l.hosts.is_empty())
    }

    fn make_room_for_one(&mut self) -> sys::Result<()> {
        if self.listening {
            return Err(libc::EISCONN);
        }
        let Some(assoc) = self.only() else {
            return Ok(());
        };
        let id = assoc.id;
        match assoc.state {
            State::Calling => Err(libc::EALREADY),
            // All that is missing is the last word of a shutdown, for which nobody need wait.
            State::Up if !assoc.peer_released || assoc.body.readable() => Err(libc::EISCONN),
            State::Up | State::Over => {
                self.remove(id);
                Ok(())
            }
        }
    }

    /// An association goes to a socket of its own.
    fn part_with(&mut self, id: AssocT) -> Option<Socket> {
        let mut assoc = self.remove(id)?;
        let socket = Socket::with(self.v6, Style::One, false, self.options.clone());
        if let Body::ByPackets(by_packets) = &mut assoc.body {
            by_packets.attach(&socket.sink);
        }
        let mut core = socket.core.enter();
        let (hosts, port) = assoc.body.local();
        core.local = Some(Addresses {
            v6: self.v6,
            port,
            hosts: match &self.local {
                Some(local) if local.hosts.is_empty() => Vec::new(),
                _ => hosts,
            },
        });
        core.was_connected = true;
        let (its, rest) = core::mem::take(&mut self.notices)
            .into_iter()
            .partition(|notice| notice.assoc == id);
        (core.notices, self.notices) = (its, rest);
        core.put(assoc);
        drop(core);
        Some(socket)
    }
}

/// No single host's.
fn is_for_many(host: IpAddr) -> bool {
    match host.to_canonical() {
        IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_multicast(),
    }
}

/// As the kernel has it by default: root, or where net.ipv4.ip_unprivileged_port_start gives all of them to everybody.
fn may_have_low_ports() -> bool {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let first: u16 = text.map_or(1024, |t| t.trim().parse().unwrap_or(1024));
    first <= 1 || sys::getuid() == 0
}
