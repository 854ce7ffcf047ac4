//! What an association of a socket stands on, behind one set of verbs.

use core::net::IpAddr;

use crate::{Order, Status};
use headwater_host::sys;
use headwater_sctp::{AssocConfig, Association as Engine, Event, Outgoing, Received, Time};
use libc::iovec;

use super::{ByMemory, ByPackets};

/// Dropping it lets the association go: what was sent is still delivered.
pub enum Body {
    /// Shared memory.
    ByMemory(Box<ByMemory>),
    /// Packets.
    ByPackets(Box<ByPackets>),
}

/// Verbs that both have, under the same names.
macro_rules! verbs {
    (&mut $this:ident: $($verbs:tt)*) => { verbs! { ($this) (&mut $this) $($verbs)* } };
    (&$this:ident: $($verbs:tt)*) => { verbs! { ($this) (&$this) $($verbs)* } };
    (($this:ident) ($($receiver:tt)*)) => {};
    (($this:ident) ($($receiver:tt)*) $(#[$about:meta])*
     fn $verb:ident($($name:ident: $type:ty),*) $(-> $told:ty)?; $($more:tt)*) => {
        $(#[$about])*
        pub fn $verb($($receiver)*, $($name: $type),*) $(-> $told)? {
            match $this {
                Body::ByMemory(by_memory) => by_memory.$verb($($name),*),
                Body::ByPackets(by_packets) => by_packets.$verb($($name),*),
            }
        }

        verbs! { ($this) ($($receiver)*) $($more)* }
    };
}

impl Body {
    verbs! { &mut self:
        /// The next event, in their order, but never of mere readiness. After `Event::Down` there is none.
        fn event() -> Option<Event>;
        /// Can a message, or a part of one, be received?
        #[inline]
        fn readable() -> bool;
        /// From the message in front, or from the rest of it. `None`: the end. EAGAIN: nothing; ECONNRESET, ETIMEDOUT ...
        #[inline]
        fn receive(into: &[iovec]) -> sys::Result<Option<Received>>;
        /// What [`receive`](Body::receive) would give, and as much of it as is there; nothing is taken.
        fn peek() -> Option<Received>;
        /// Is it worth trying to send?
        fn has_room() -> bool;
        /// Errors: errno.
        fn obey(order: &Order) -> Result<(), i32>;
        /// Parameters were changed.
        fn tune(config: &AssocConfig);
        fn want_dry(on: bool);
        /// The association ends when both sides have everything.
        fn shutdown();
        /// It ends at once; the peer is told the reason.
        fn abort(reason: &[u8]);
        fn flush();
    }

    verbs! { &self:
        /// The last TSN before which nothing is missing.
        fn cumtsn() -> u32;
        fn local() -> (Vec<IpAddr>, u16);
        /// The primary address first.
        fn peer() -> (Vec<IpAddr>, u16);
        /// Outgoing, incoming.
        fn streams() -> (u16, u16);
        fn status() -> Status;
        /// Bytes that can be received.
        fn unread() -> usize;
        /// Bytes that the peer has not acknowledged, or not read.
        fn unsent() -> usize;
    }

    /// Whole or not at all. With `anyway` a message has room in shared memory as long as the send buffer has: who reads the ring may
    /// be the one who sends. EAGAIN: no room; EMSGSIZE: larger than the send buffer; EINVAL: no such stream; EPIPE, ECONNRESET,
    /// ETIMEDOUT: it is over.
    #[inline]
    pub fn send(&mut self, message: &Outgoing, data: &[iovec], anyway: bool) -> sys::Result<()> {
        match self {
            Body::ByMemory(by_memory) => by_memory.send(message, data, false, anyway),
            Body::ByPackets(by_packets) => by_packets.send(message, data, false),
        }
    }

    /// Looks at the engine's association; `None`: there is none.
    pub fn look<T>(&self, at: impl FnOnce(&Engine) -> T) -> Option<T> {
        match self {
            Body::ByMemory(_) => None,
            Body::ByPackets(by_packets) => by_packets.look(at),
        }
    }

    /// Changes it.
    pub fn change<T>(&self, what: impl FnOnce(&mut Engine, Time) -> T) -> Option<T> {
        match self {
            Body::ByMemory(_) => None,
            Body::ByPackets(by_packets) => by_packets.change(what),
        }
    }

    /// All who sleep at the ring look again. The socket's own descriptor can't say that to several: the first that wakes takes it.
    pub fn wake(&self) {
        if let Body::ByMemory(by_memory) = self {
            by_memory.head().notify();
        }
    }
}
