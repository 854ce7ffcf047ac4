//! What the calls need of an endpoint, whether it is used directly or by messages.

use headwater_endpoints::endpoint::Endpoint;
use headwater_host::sys::Errno;
use headwater_providers::provider::{Arrived, Datagram, Event, Outcome, Received, Sending};
use headwater_tpi::Info;
use libc::iovec;

/// One endpoint. Nothing but [`wait`](Port::wait) waits for the peer; requests wait for their acknowledgement.
pub trait Port {
    /// Sizes, service type, flags, and the provider's state (TS_).
    fn info(&self) -> Outcome<Info>;
    /// T_UNBND, T_IDLE ...
    fn state(&self) -> Outcome<i32>;
    fn is_nonblocking(&self) -> bool;

    /// `None`: any address. Gives the address and the queue length granted.
    fn bind(&self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)>;
    fn unbind(&self) -> Outcome<()>;
    fn local(&self) -> Outcome<Option<Vec<u8>>>;
    fn remote(&self) -> Outcome<Option<Vec<u8>>>;

    fn connect(&self, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()>;
    /// Accepts request `seq` on the endpoint `on`, which may be this one.
    fn accept(&self, seq: i32, on: &dyn Port, opts: &[u8], data: &[u8]) -> Outcome<()>;
    /// `None`: the connection; else a request.
    fn disconnect(&self, seq: Option<i32>, data: &[u8]) -> Outcome<()>;
    fn release(&self) -> Outcome<()>;
    /// Requests taken and not answered, and how many may be.
    fn requests(&self) -> (usize, u32);

    fn peek(&self) -> Option<Event>;
    /// Nothing is in front, and this is why: a peer has come, and there is nothing to let it in with. EMFILE, ENFILE, ENOMEM.
    fn lacks(&self) -> Option<Errno> {
        None
    }
    fn take(&self) -> Option<Arrived>;

    fn send(&self, data: &[iovec], how: Sending) -> Outcome<usize>;
    /// A send failed with TFLOW before, and now there is room: for expedited data (true) or normal data. Told once.
    fn unblocked(&self) -> Option<bool>;
    fn receive(&self, into: &[iovec]) -> Outcome<Received>;
    fn send_to(&self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()>;
    fn receive_from(&self, into: &mut Datagram<'_>) -> Outcome<()>;

    fn negotiate(&self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)>;
    /// t_sync: learns the state anew.
    fn sync(&self) -> Outcome<()>;

    /// Sleeps until poll(2) would report one of `events`; EINTR.
    fn wait(&self, events: u32) -> Result<(), Errno>;

    /// The endpoint itself, to be accepted on.
    fn endpoint(&self) -> Option<&'static Endpoint>;
    /// What T_CONN_RES names it by, in message mode.
    fn acceptor(&self) -> Option<u32> {
        None
    }
}
