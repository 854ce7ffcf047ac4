//! An endpoint of this process, used by function calls.

use core::ptr;

use headwater_endpoints::endpoint::{self, Endpoint};
use headwater_endpoints::stream;
use headwater_host::sys::Errno;
use headwater_host::table::Handle;
use headwater_providers::provider::{Arrived, Datagram, Event, Outcome, Received, Sending};
use headwater_tpi::{Info, state};
use headwater_tpi::{Refusal, error};
use libc::iovec;

use crate::messages::Messages;
use crate::port::Port;

/// For one call. Where another thread makes a stream of the endpoint meanwhile, the call goes on by messages.
#[derive(Clone, Copy)]
pub struct Direct {
    end: &'static Endpoint,
    handle: Handle,
    fd: i32,
}

impl Direct {
    /// The endpoint with this handle, as the one behind a descriptor.
    #[inline]
    pub fn at(fd: i32, handle: Handle) -> Option<Direct> {
        let end = endpoint::get(handle)?;
        Some(Direct { end, handle, fd })
    }

    /// An endpoint without a descriptor.
    pub fn alone(end: &'static Endpoint) -> Direct {
        Direct {
            end,
            handle: end.handle(),
            fd: -1,
        }
    }

    /// What it has become, or TBADF where it was closed; `None` while it is what it was.
    #[inline]
    fn turned(&self) -> Option<Outcome<Messages>> {
        if self.end.handle() == self.handle {
            return None;
        }
        Some(self.look_for_stream())
    }

    #[cold]
    fn look_for_stream(&self) -> Outcome<Messages> {
        stream::wait_for_others();
        Messages::at(self.fd)
            .filter(|messages| messages.bottom().is_some_and(|end| ptr::eq(end, self.end)))
            .ok_or(Refusal::new(error::TBADF))
    }
}

/// The endpoint's method of this name, or the stream's.
macro_rules! outcome {
    ($self:ident . $method:ident ( $($argument:expr),* )) => {
        match $self.turned() {
            None => $self.end.$method($($argument),*),
            Some(messages) => messages?.$method($($argument),*),
        }
    };
}

/// The same for what can't fail: of a closed one this is said.
macro_rules! answer {
    ($self:ident . $method:ident (), $closed:expr) => {
        match $self.turned() {
            None => $self.end.$method(),
            Some(messages) => messages.map_or($closed, |messages| messages.$method()),
        }
    };
}

impl Port for Direct {
    fn info(&self) -> Outcome<Info> {
        outcome!(self.info())
    }
    fn state(&self) -> Outcome<i32> {
        match self.turned() {
            None => Ok(state::xti_state(self.end.state()?)),
            Some(messages) => messages?.state(),
        }
    }
    fn is_nonblocking(&self) -> bool {
        answer!(self.is_nonblocking(), false)
    }
    fn bind(&self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        outcome!(self.bind(addr, qlen))
    }
    fn unbind(&self) -> Outcome<()> {
        outcome!(self.unbind())
    }
    fn local(&self) -> Outcome<Option<Vec<u8>>> {
        outcome!(self.local())
    }
    fn remote(&self) -> Outcome<Option<Vec<u8>>> {
        outcome!(self.remote())
    }
    fn connect(&self, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()> {
        outcome!(self.connect(to, opts, data))
    }
    fn accept(&self, seq: i32, on: &dyn Port, opts: &[u8], data: &[u8]) -> Outcome<()> {
        match self.turned() {
            None => {
                let on = on.endpoint().ok_or(Refusal::new(error::TBADF))?;
                self.end.accept(seq, on, opts, data)
            }
            Some(messages) => messages?.accept(seq, on, opts, data),
        }
    }
    fn disconnect(&self, seq: Option<i32>, data: &[u8]) -> Outcome<()> {
        outcome!(self.disconnect(seq, data))
    }
    fn release(&self) -> Outcome<()> {
        outcome!(self.release())
    }
    fn requests(&self) -> (usize, u32) {
        answer!(self.requests(), (0, 0))
    }
    fn peek(&self) -> Option<Event> {
        answer!(self.peek(), None)
    }
    fn lacks(&self) -> Option<Errno> {
        answer!(self.lacks(), None)
    }
    fn take(&self) -> Option<Arrived> {
        answer!(self.take(), None)
    }
    #[inline]
    fn send(&self, data: &[iovec], how: Sending) -> Outcome<usize> {
        outcome!(self.send(data, how))
    }
    fn unblocked(&self) -> Option<bool> {
        answer!(self.unblocked(), None)
    }
    #[inline]
    fn receive(&self, into: &[iovec]) -> Outcome<Received> {
        outcome!(self.receive(into))
    }
    #[inline]
    fn send_to(&self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        outcome!(self.send_to(to, opts, data))
    }
    #[inline]
    fn receive_from(&self, into: &mut Datagram<'_>) -> Outcome<()> {
        outcome!(self.receive_from(into))
    }
    fn negotiate(&self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        outcome!(self.negotiate(flags, opts))
    }
    fn sync(&self) -> Outcome<()> {
        outcome!(self.sync())
    }
    fn wait(&self, events: u32) -> Result<(), Errno> {
        if let Some(messages) = self.turned() {
            return messages.map_or(Err(libc::EBADF), |messages| messages.wait(events));
        }
        match self.end.wait(self.handle, events, None) {
            // What it has become is looked at first, and waited for next.
            Err(libc::EBADF) if self.turned().is_some_and(|messages| messages.is_ok()) => Ok(()),
            waited => waited,
        }
    }
    fn endpoint(&self) -> Option<&'static Endpoint> {
        match self.turned() {
            None => Some(self.end),
            Some(messages) => messages.ok()?.endpoint(),
        }
    }
    fn acceptor(&self) -> Option<u32> {
        self.turned()?.ok()?.acceptor()
    }
}
