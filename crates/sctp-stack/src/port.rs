//! SCTP ports of this process, as Rust programs use them.

use core::net::IpAddr;
use core::time::Duration;
use std::sync::Arc;

use headwater_host::sys;
use headwater_sctp::cookie::RotatingKeys;
use headwater_sctp::endpoint::{ConnectError, Peer};
use headwater_sctp::{AssocConfig, AssocId, Config, Endpoint, Time};

use super::association::Association;
use super::stack::{self, Entry, Inner, Served, Stack};
use super::{Attached, Signal, Sink, choice, environment, here, until};

/// How packets of an association leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Via {
    /// As HEADWATER_SCTP_LINK says for the destination; by default straight on IP where this process may do that and the peer is
    /// on another host, else encapsulated.
    #[default]
    Auto,
    /// Encapsulated, to this UDP port of the peer (RFC 6951).
    Udp(u16),
    /// Straight on IP: CAP_NET_RAW.
    Raw,
}

/// A port that is bound. Associations that it has begun or accepted don't end with it; the port is free again when they have.
pub struct Port {
    served: Arc<Served>,
    listening: bool,
}

impl Port {
    /// Binds a port of the local addresses (none: whichever packets come to); 0: any free port. `config` is what associations of
    /// peers get. EADDRINUSE: a process of this host has the port; EADDRNOTAVAIL; EMFILE, ENFILE ...
    pub fn bind(addresses: &[IpAddr], port: u16, config: &AssocConfig) -> sys::Result<Port> {
        Port::bind_for(addresses, port, config, None)
    }

    /// As [`Port::bind`], for a socket: associations that the port begins or accepts tell its sink.
    pub fn bind_for(
        addresses: &[IpAddr],
        port: u16,
        config: &AssocConfig,
        sink: Option<Arc<Sink>>,
    ) -> sys::Result<Port> {
        if addresses.iter().any(|&a| !here::is_here(a)) {
            return Err(libc::EADDRNOTAVAIL);
        }
        let stack = stack::current()?;
        let again = stack.serve_again(port, |inner| {
            inner.sink = sink.clone();
            inner.engine.config_mut().association = config.clone();
            inner.engine.set_addresses(addresses.to_vec());
            inner.engine.tell_each_arrival(sink.is_some());
        });
        let listening = false;
        if let Some(served) = again {
            return served.map(|served| Port { served, listening });
        }
        let reservation = match port {
            0 => stack.registry.ephemeral(),
            port => stack.registry.reserve(port),
        }?;
        let mut engine_config = Config::new(Box::new(RotatingKeys::new(sys::random_bytes()?)));
        engine_config.association = config.clone();
        let mut engine = Endpoint::new(
            engine_config,
            reservation.port,
            addresses.to_vec(),
            sys::random_bytes()?,
        );
        // For those who wait for edges.
        engine.tell_each_arrival(sink.is_some());
        let served = Served::new(stack, engine, sink);
        stack.serve(&served, reservation)?;
        Ok(Port { served, listening })
    }

    pub fn port(&self) -> u16 {
        self.served.port
    }

    /// Lets peers begin associations, so many of which may wait to be accepted; 0: none any more.
    pub fn listen(&mut self, backlog: usize) -> sys::Result<()> {
        self.served.enter()?.engine.listen(backlog);
        let listens = backlog > 0;
        if self.listening != listens {
            self.listening = listens;
            self.stack().listens(listens);
        }
        Ok(())
    }

    /// How many more may wait, of a port that goes on listening.
    pub fn let_wait(&self, most: usize) {
        if let Ok(mut inner) = self.served.enter() {
            inner.engine.listen(most);
        }
    }

    /// Begins an association, and returns at once: see [`Association::established`]. The first address is tried first. EDESTADDRREQ
    /// (no address), EISCONN, EPROTONOSUPPORT (no such link), ENETUNREACH (none for this version of IP), EBADF; those of socket(2).
    pub fn connect(
        &self,
        addresses: &[IpAddr],
        port: u16,
        config: &AssocConfig,
        via: Via,
    ) -> sys::Result<Association> {
        let first = *addresses.first().ok_or(libc::EDESTADDRREQ)?;
        let encap = encapsulation(self.stack(), first, via)?;
        let link = self.stack().link(encap.is_some());
        if !link.is_some_and(|link| addresses.iter().any(|&to| link.reaches(to))) {
            return Err(libc::ENETUNREACH);
        }
        let peer = Peer {
            addresses,
            port,
            encap,
        };
        let now = sys::now();
        let mut inner = self.served.enter()?;
        let id = inner
            .engine
            .connect(Time(now), &peer, config)
            .map_err(|error| match error {
                ConnectError::NoAddress => libc::EDESTADDRREQ,
                ConnectError::Connected => libc::EISCONN,
                ConnectError::TooMany => libc::ENOBUFS,
            })?;
        let signal = self.adopt(&mut inner, id);
        self.served.act(&mut inner, now);
        drop(inner);
        Ok(Association::new(self.served.clone(), id, signal))
    }

    /// Takes an association that a peer has begun. EAGAIN: there is none; EBADF.
    pub fn accept(&self) -> sys::Result<Association> {
        self.accept_one(false)
    }

    /// As [`Port::accept`], one whose [`Association::descriptor`] is there. EMFILE, ENFILE, ENOMEM: there is none for it, and it
    /// waits on.
    pub fn accept_with_descriptor(&self) -> sys::Result<Association> {
        self.accept_one(true)
    }

    fn accept_one(&self, described: bool) -> sys::Result<Association> {
        let mut id = self.take(described)?;
        if id.is_none() {
            self.stack().pump();
            id = self.take(described)?;
        }
        let id = id.ok_or(libc::EAGAIN)?;
        let mut inner = self.served.enter()?;
        let signal = self.adopt(&mut inner, id);
        // What has come before.
        let attached = inner.entries.get(&id).and_then(|e| e.sink.as_ref());
        if attached.is_some_and(|sink| sink.tell(false)) {
            self.stack().leading.ring();
        }
        drop(inner);
        Ok(Association::new(self.served.clone(), id, signal))
    }

    /// The association has a user now, who waits for this signal or for the port's sink.
    fn adopt(&self, inner: &mut Inner, id: AssocId) -> Arc<Signal> {
        let entry: &mut Entry = inner.entries.entry(id).or_default();
        let sink = inner.sink.as_ref();
        entry.sink = sink.map(|sink| Attached::new(sink, self.served.port, id));
        entry.signal.clone()
    }

    fn take(&self, described: bool) -> sys::Result<Option<AssocId>> {
        let mut inner = self.served.enter()?;
        if described && let Some(next) = inner.engine.first_waiting() {
            inner.entries.entry(next).or_default().signal.descriptor()?;
        }
        let id = inner.engine.accept();
        let _ = self.served.tell_arrivals(&mut inner);
        Ok(id)
    }

    /// Waits until there is something to accept; false: the time is over. EINTR, EBADF.
    pub fn wait(&self, timeout: Option<Duration>) -> sys::Result<bool> {
        let waits = || {
            self.served
                .enter()
                .map_or(true, |inner| inner.engine.waiting() > 0)
        };
        self.served.enter()?;
        self.stack()
            .wait(&self.served.signal, until(timeout), &[], waits)
    }

    /// A hidden descriptor that is readable while there is something to accept.
    pub fn descriptor(&self) -> sys::Result<i32> {
        let fd = self.served.signal.descriptor()?;
        let inner = self.served.enter()?;
        self.served.signal.raise(inner.engine.waiting() > 0);
        Ok(fd)
    }

    /// One more local address, of this port and of those of its associations whose peers can be told. A port of all addresses has
    /// it already. EADDRNOTAVAIL, EBADF.
    pub fn add_address(&self, addr: IpAddr) -> sys::Result<()> {
        if !here::is_here(addr) {
            return Err(libc::EADDRNOTAVAIL);
        }
        self.change_addresses(|engine| {
            if !engine.addresses().is_empty() {
                engine.add_address(addr);
            }
            Ok(())
        })
    }

    /// One local address less. EBUSY: it is the last one; EINVAL: it is none of them; EBADF.
    pub fn remove_address(&self, addr: IpAddr) -> sys::Result<()> {
        self.change_addresses(|engine| match engine.addresses() {
            [last] if *last == addr => Err(libc::EBUSY),
            all if !all.contains(&addr) => Err(libc::EINVAL),
            _ => {
                engine.remove_address(addr);
                Ok(())
            }
        })
    }

    fn change_addresses(
        &self,
        change: impl FnOnce(&mut Endpoint) -> sys::Result<()>,
    ) -> sys::Result<()> {
        let mut inner = self.served.enter()?;
        let done = change(&mut inner.engine);
        self.served.act(&mut inner, sys::now());
        done
    }

    /// What later associations of peers get.
    pub fn configure(&self, change: impl FnOnce(&mut Config)) -> sys::Result<()> {
        change(self.served.enter()?.engine.config_mut());
        Ok(())
    }

    /// Parameters of these, and how long a cookie is good.
    pub fn offer(&self, association: &AssocConfig, cookie_life: Duration) {
        let _ = self.configure(|config| {
            config.association = association.clone();
            config.cookie_lifetime = cookie_life;
        });
    }

    /// The program is about to wait for a descriptor of ours by poll(2) or the like: see [`Association::hand_over`].
    pub fn hand_over(&self) {
        self.stack().hand_over();
    }

    fn stack(&self) -> &'static Stack {
        self.served.stack
    }
}

/// Who was not accepted is refused.
impl Drop for Port {
    fn drop(&mut self) {
        if self.stack().is_ours() {
            let _ = self.listen(0);
            self.served.close();
        }
    }
}

impl Association {
    /// Begins an association from a port of its own, and returns at once. Errors: those of [`Port::bind`], [`Port::connect`].
    pub fn connect(
        addresses: &[IpAddr],
        port: u16,
        config: &AssocConfig,
        via: Via,
    ) -> sys::Result<Association> {
        Port::bind(&[], 0, config)?.connect(addresses, port, config, via)
    }
}

/// The peer's UDP port, if packets go there encapsulated.
fn encapsulation(stack: &Stack, to: IpAddr, via: Via) -> sys::Result<Option<u16>> {
    let raw = stack.link(false).is_some_and(|raw| raw.reaches(to));
    let via = match via {
        Via::Auto => match choice::link_to(to) {
            choice::Link::Udp(port) => Via::Udp(port),
            choice::Link::Raw => Via::Raw,
            choice::Link::Auto if raw && !here::is_own(to)? => Via::Raw,
            choice::Link::Auto | choice::Link::Shm => Via::Udp(environment::udp_port()),
        },
        via => via,
    };
    match via {
        Via::Udp(port) => Ok(Some(port)),
        _ if raw => Ok(None),
        _ => Err(libc::EPROTONOSUPPORT),
    }
}
