//! What an association of a socket stands on, behind one set of verbs.

use core::net::IpAddr;

use crate::option::orders::Order;
use crate::option::status::Status;
use headwater_host::sys;
use headwater_sctp::Time;
use headwater_sctp::association::Association as Engine;
use headwater_sctp::config::AssocConfig;
use headwater_sctp::event::Event;
use headwater_sctp::recv::Received;
use headwater_sctp::send::Outgoing;
use libc::iovec;

use super::by_memory::ByMemory;
use super::by_packets::ByPackets;

/// Dropping it lets the association go: what was sent is still delivered.
pub enum Body {
    /// Shared memory.
    ByMemory(Box<ByMemory>),
    /// Packets.
    ByPackets(Box<ByPackets>),
}

/// Says the same of both.
macro_rules! either {
    ($body:expr, $inner:ident => $does:expr) => {
        match $body {
            Body::ByMemory($inner) => $does,
            Body::ByPackets($inner) => $does,
        }
    };
}

impl Body {
    /// The next event, in their order, but never of mere readiness. After `Event::Down` there is none.
    pub fn event(&mut self) -> Option<Event> {
        either!(self, b => b.event())
    }

    /// Can a message, or a part of one, be received?
    #[inline]
    pub fn readable(&mut self) -> bool {
        either!(self, b => b.readable())
    }

    /// From the message in front, or from the rest of it. `None`: the end. EAGAIN: nothing; ECONNRESET, ETIMEDOUT ...
    #[inline]
    pub fn receive(&mut self, into: &[iovec]) -> sys::Result<Option<Received>> {
        either!(self, b => b.receive(into))
    }

    /// What [`receive`](Body::receive) would give, and as much of it as is there; nothing is taken.
    pub fn peek(&mut self) -> Option<Received> {
        either!(self, b => b.peek())
    }

    /// The last TSN before which nothing is missing.
    pub fn cumtsn(&self) -> u32 {
        either!(self, b => b.cumtsn())
    }

    /// Whole or not at all. EAGAIN: no room; EMSGSIZE: larger than the send buffer; EINVAL: no such stream; EPIPE, ECONNRESET,
    /// ETIMEDOUT: it is over.
    #[inline]
    pub fn send(&mut self, message: &Outgoing, data: &[iovec], more: bool) -> sys::Result<()> {
        either!(self, b => b.send(message, data, more))
    }

    /// As [`send`](Body::send), but in shared memory a message has room as long as the send buffer has: who reads the ring may be
    /// the one who sends.
    pub fn send_anyway(
        &mut self,
        message: &Outgoing,
        data: &[iovec],
        more: bool,
    ) -> sys::Result<()> {
        match self {
            Body::ByMemory(by_memory) => by_memory.send_anyway(message, data, more),
            Body::ByPackets(by_packets) => by_packets.send(message, data, more),
        }
    }

    /// Is it worth trying to send?
    pub fn has_room(&mut self) -> bool {
        either!(self, b => b.has_room())
    }

    pub fn local(&self) -> (Vec<IpAddr>, u16) {
        either!(self, b => b.local())
    }

    /// The primary address first.
    pub fn peer(&self) -> (Vec<IpAddr>, u16) {
        either!(self, b => b.peer())
    }

    /// Outgoing, incoming.
    pub fn streams(&self) -> (u16, u16) {
        either!(self, b => b.streams())
    }

    pub fn status(&self) -> Status {
        either!(self, b => b.status())
    }

    /// Bytes that can be received.
    pub fn unread(&self) -> usize {
        either!(self, b => b.unread())
    }

    /// Bytes that the peer has not acknowledged, or not read.
    pub fn unsent(&self) -> usize {
        either!(self, b => b.unsent())
    }

    /// Errors: errno.
    pub fn obey(&mut self, order: &Order) -> Result<(), i32> {
        either!(self, b => b.obey(order))
    }

    /// Parameters were changed.
    pub fn tune(&mut self, config: &AssocConfig) {
        either!(self, b => b.tune(config));
    }

    pub fn want_dry(&mut self, on: bool) {
        either!(self, b => b.want_dry(on));
    }

    /// The association ends when both sides have everything.
    pub fn shutdown(&mut self) {
        either!(self, b => b.shutdown());
    }

    /// It ends at once; the peer is told the reason.
    pub fn abort(&mut self, reason: &[u8]) {
        either!(self, b => b.abort(reason));
    }

    pub fn flush(&mut self) {
        either!(self, b => b.flush());
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
