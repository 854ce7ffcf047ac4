//! Transport endpoints for programs in Rust: one type per thing that an endpoint can be.
//!
//! A [`Listener`] accepts [`Connection`]s, [`Connection::connect`] makes one, [`Datagrams`] sends and receives single messages.
//! Addresses are bytes: of 1 to 1024 opaque ones for the loop-back transports, a `sockaddr_in` or `sockaddr_in6` for TCP,
//! UDP and SCTP, which [`inet`] makes.
//!
//! ```
//! use headwater_xti::api::{Connection, Listener};
//!
//! let listener = Listener::bind("/dev/ticotsord", None, 5)?;
//! let address = listener.address().to_vec();
//! let client = std::thread::spawn(move || {
//!     let c = Connection::connect("/dev/ticotsord", &address)?;
//!     c.send(b"one message")?;
//!     c.release()
//! });
//! let server = listener.accept()?;
//! let mut buf = [0; 100];
//! let got = server.receive(&mut buf)?.expect("not yet released");
//! assert_eq!(&buf[..got.len], b"one message");
//! assert!(server.receive(&mut buf)?.is_none());
//! server.release()?;
//! client.join().unwrap()?;
//! # Ok::<(), headwater_xti::api::Error>(())
//! ```

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Once;

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint;
use headwater_host::{sys, table};
use headwater_providers::provider::{Datagram, Outcome, Received};
use headwater_tpi::state::Call;
use headwater_tpi::{Info, error};
use libc::iovec;

use crate::direct::Direct;
use crate::netaddr::Address;
use crate::port::Port;
use crate::{calls, with};

/// t_errno, and errno with TSYSERR.
pub use headwater_tpi::Refusal as Error;

/// A descriptor and what is behind it.
#[derive(Debug)]
struct Endpoint(RawFd);

impl Endpoint {
    fn open(device: &str) -> Outcome<Endpoint> {
        start();
        let unknown = Error {
            tli: error::TBADNAME,
            unix: libc::ENOENT,
        };
        let device = Device::find(device.as_bytes()).ok_or(unknown)?;
        endpoint::open(device, libc::O_RDWR | libc::O_CLOEXEC).map(Endpoint)
    }

    fn call<T>(&self, f: impl FnOnce(&dyn Port) -> Outcome<T>) -> Outcome<T> {
        with(self.0, f)
    }

    fn bound(device: &str, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Endpoint, Vec<u8>)> {
        let e = Endpoint::open(device)?;
        let (addr, _) = e.call(|p| calls::bind(p, addr, qlen))?;
        Ok((e, addr))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let e = endpoint::at(self.0).inspect(|e| e.forget(self.0));
        let _ = sys::close(self.0);
        if let Some(e) = e {
            e.let_go();
        }
    }
}

fn out(data: &[u8]) -> [iovec; 1] {
    [sys::buffer(data.as_ptr(), data.len())]
}

fn room(into: &mut [u8]) -> [iovec; 1] {
    [sys::buffer(into.as_mut_ptr(), into.len())]
}

/// Waits for connections.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
    device: String,
    addr: Vec<u8>,
}

impl Listener {
    /// Binds an endpoint of `device` (`/dev/ticotsord`, `/dev/tcp` ...); `None`: any address. `queue` is how many requests may
    /// wait. Errors: TBADNAME, TADDRBUSY, TBADADDR, TACCES, TSYSERR.
    pub fn bind(device: &str, addr: Option<&[u8]>, queue: u32) -> Result<Listener, Error> {
        let (endpoint, addr) = Endpoint::bound(device, addr, queue.max(1))?;
        Ok(Listener {
            endpoint,
            device: device.to_owned(),
            addr,
        })
    }

    pub fn address(&self) -> &[u8] {
        &self.addr
    }

    /// Waits for a request and accepts it. A peer that has given up meanwhile is passed over.
    pub fn accept(&self) -> Result<Connection, Error> {
        loop {
            let request = match self.endpoint.call(calls::listen) {
                Err(e) if e.tli == error::TLOOK => {
                    self.endpoint.call(calls::rcvdis)?;
                    continue;
                }
                asked => asked?,
            };
            let on = Endpoint::open(&self.device)?;
            let here = table::lookup(on.0)
                .and_then(|handle| Direct::at(on.0, handle))
                .ok_or(Error::new(error::TBADF))?;
            let accept = |p: &dyn Port| p.accept(request.seq, &here, &[], &[]);
            match self.endpoint.call(accept) {
                Ok(()) => return Ok(Connection(on)),
                Err(e) if matches!(e.tli, error::TBADSEQ | error::TLOOK) => continue,
                Err(e) => return Err(e),
            }
        }
    }
}

/// A connection: messages on a loop-back transport, bytes on TCP. Dropped, it ends at once.
#[derive(Debug)]
pub struct Connection(Endpoint);

impl Connection {
    /// Connects an endpoint of `device`. Errors: TLOOK when it was refused (then `unix` says why), TBADADDR, TBADNAME.
    pub fn connect(device: &str, to: &[u8]) -> Result<Connection, Error> {
        let (e, _) = Endpoint::bound(device, None, 0)?;
        match e.call(|p| calls::connect(p, to, &[], &[])) {
            Ok(_) => Ok(Connection(e)),
            Err(refused) if refused.tli == error::TLOOK => Err(Error {
                unix: e.call(calls::rcvdis)?.reason,
                ..refused
            }),
            Err(e) => Err(e),
        }
    }

    /// Sends one whole message (on TCP: bytes), waiting for room.
    pub fn send(&self, data: &[u8]) -> Result<(), Error> {
        match self.0.call(|p| calls::snd(p, &out(data), 0))? {
            sent if sent == data.len() => Ok(()),
            _ => Err(Error::new(error::TLOOK)),
        }
    }

    /// Receives at most one message, waiting for it; `more` says that it goes on. `None`: the peer has released its side.
    /// TLOOK: the connection is gone.
    pub fn receive(&self, into: &mut [u8]) -> Result<Option<Received>, Error> {
        let room = room(into);
        match self.0.call(|p| calls::rcv(p, &room)) {
            Ok((len, flags)) => Ok(Some(Received {
                len,
                more: flags & calls::T_MORE != 0,
                expedited: flags & calls::T_EXPEDITED != 0,
            })),
            Err(e) if e.tli == error::TLOOK => {
                self.0.call(|p| calls::rcvrel(p, Call::RcvRel))?;
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// No more will be sent; what was sent arrives.
    pub fn release(&self) -> Result<(), Error> {
        self.0.call(|p| calls::sndrel(p, Call::SndRel, &[]))
    }

    /// The peer's address.
    pub fn peer(&self) -> Result<Vec<u8>, Error> {
        self.0.call(|p| Ok(p.remote()?.unwrap_or_default()))
    }

    pub fn info(&self) -> Result<Info, Error> {
        self.0.call(|p| p.info())
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        self.0.0
    }
}

/// An endpoint for datagrams.
#[derive(Debug)]
pub struct Datagrams {
    endpoint: Endpoint,
    addr: Vec<u8>,
}

impl Datagrams {
    /// As [`Listener::bind`], on `/dev/ticlts` or `/dev/udp`.
    pub fn bind(device: &str, addr: Option<&[u8]>) -> Result<Datagrams, Error> {
        let (endpoint, addr) = Endpoint::bound(device, addr, 0)?;
        Ok(Datagrams { endpoint, addr })
    }

    pub fn address(&self) -> &[u8] {
        &self.addr
    }

    /// Sends one datagram, waiting for room. Errors: TBADADDR, TBADDATA when it is too long, TLOOK when an earlier one could
    /// not be delivered (then `unix` says why, once, and this one was not sent).
    pub fn send_to(&self, to: &[u8], data: &[u8]) -> Result<(), Error> {
        let sent = self
            .endpoint
            .call(|p| calls::sndudata(p, to, &[], &out(data)));
        sent.map_err(|e| self.why(e))
    }

    /// What TLOOK is about: an earlier datagram.
    fn why(&self, refusal: Error) -> Error {
        if refusal.tli != error::TLOOK {
            return refusal;
        }
        let earlier = self.endpoint.call(calls::rcvuderr);
        Error {
            unix: earlier.map_or(0, |e| e.error),
            ..refusal
        }
    }

    /// Receives one datagram, waiting for it: how long it is, and who sent it. What does not fit stays for the next call,
    /// which has no address. TLOOK as with [`send_to`](Datagrams::send_to).
    pub fn receive_from(&self, into: &mut [u8]) -> Result<(Received, Vec<u8>), Error> {
        let room = room(into);
        let (mut addr, mut opts) = ([0; 1024], [0; 1024]);
        let mut d = Datagram {
            addr: &mut addr,
            opts: &mut opts,
            data: &room,
            ..Datagram::default()
        };
        let received = self.endpoint.call(|p| calls::rcvudata(p, &mut d));
        received.map_err(|e| self.why(e))?;
        let received = Received {
            len: d.data_len,
            more: d.more,
            expedited: false,
        };
        Ok((received, d.addr[..d.addr_len].to_vec()))
    }
}

impl AsRawFd for Datagrams {
    fn as_raw_fd(&self) -> RawFd {
        self.endpoint.0
    }
}

/// The bytes of an address for `/dev/tcp` and `/dev/udp`.
pub fn inet(addr: SocketAddr) -> Vec<u8> {
    Address::Inet(addr).encode()
}

/// Endpoints need a few things of the process. Once, by whichever call comes first.
fn start() {
    static START: Once = Once::new();
    START.call_once(|| {
        headwater_streams::api::start();
        headwater_endpoints::start();
    });
}
