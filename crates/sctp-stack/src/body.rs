//! The two things that an association can be, behind one set of verbs.

use headwater_ipnet::Address;
use headwater_providers::provider::{Arrived, Event, Outcome, Received, Sending, Waiter};
use headwater_streams::head::Head;
use libc::iovec;

use super::net::Net;
use super::option::chosen::Chosen;
use super::option::message::{Incoming, Outgoing};
use super::option::orders::Order;
use super::option::status::Status;
use super::shm::Shm;

pub enum Body {
    /// With another process of this host.
    Shm(Box<Shm>),
    /// By packets.
    Net(Box<Net>),
}

/// Says the same of both.
macro_rules! either {
    ($body:expr, $inner:ident => $does:expr) => {
        match $body {
            Body::Shm($inner) => $does,
            Body::Net($inner) => $does,
        }
    };
}

impl Body {
    pub fn descriptor(&self) -> i32 {
        match self {
            Body::Shm(shm) => shm.link().shadow().unwrap_or(-1),
            Body::Net(net) => net.descriptor(),
        }
    }

    pub fn head(&self) -> Option<&'static Head> {
        match self {
            Body::Shm(shm) => Some(shm.link().head()),
            Body::Net(_) => None,
        }
    }

    pub fn waiter(&self) -> Waiter {
        match self {
            Body::Shm(shm) => Waiter::Head(shm.link().head()),
            Body::Net(net) => Waiter::Poll(net.descriptor()),
        }
    }

    pub fn local(&self) -> Address {
        either!(self, b => b.local())
    }

    pub fn remote(&self) -> Address {
        either!(self, b => b.remote())
    }

    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        either!(self, b => b.event())
    }

    pub fn take(&mut self) -> Option<Arrived> {
        either!(self, b => b.take())
    }

    #[inline]
    pub fn send(&mut self, data: &[iovec], how: Sending, message: &Outgoing) -> Outcome<usize> {
        either!(self, b => b.send(data, how, message))
    }

    #[inline]
    pub fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        either!(self, b => b.receive(into))
    }

    pub fn last(&self) -> Incoming {
        either!(self, b => b.last())
    }

    pub fn streams(&self) -> u16 {
        either!(self, b => b.streams())
    }

    pub fn status(&self) -> Status {
        either!(self, b => b.status())
    }

    /// Errors: errno.
    pub fn obey(&mut self, order: &Order) -> Result<(), i32> {
        match self {
            Body::Shm(shm) => obey_in_memory(shm, order),
            Body::Net(net) => net.obey(order),
        }
    }

    /// Parameters were changed.
    pub fn tune(&mut self, chosen: &Chosen) {
        if let Body::Net(net) = self {
            net.tune(chosen);
        }
    }

    pub fn release(&mut self) -> Outcome<()> {
        either!(self, b => b.release())
    }

    pub fn disconnect(self) {
        either!(self, b => b.disconnect());
    }

    pub fn part(self) {
        either!(self, b => b.part());
    }

    pub fn close(self) {
        either!(self, b => b.close());
    }
}

/// Where there are no packets, there are neither addresses nor keys: what is about them is done by doing nothing.
fn obey_in_memory(shm: &mut Shm, order: &Order) -> Result<(), i32> {
    let done = match order {
        Order::ResetOutgoing(streams) => shm.reset_outgoing(streams),
        Order::ResetIncoming(streams) => shm.reset_incoming(streams),
        Order::ResetAssociation => shm.reset_association(),
        Order::AddStreams { out, inbound } => shm.add_streams(*out, *inbound),
        Order::StreamValue { stream, .. } if *stream >= shm.streams() => return Err(libc::EINVAL),
        _ => Ok(()),
    };
    done.map_err(|refusal| refusal.unix)
}
