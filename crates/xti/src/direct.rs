//! An endpoint of this process, used by function calls.

use headwater_host::sys::Errno;
use headwater_tpi::{Info, state};
use headwater_tpi::{Refusal, error};
use headwater_transport::endpoint::Endpoint;
use headwater_transport::provider::{Arrived, Datagram, Event, Outcome, Received, Sending};
use libc::iovec;

use crate::port::Port;

#[derive(Clone, Copy)]
pub struct Direct(pub &'static Endpoint);

impl Port for Direct {
    fn info(&self) -> Outcome<Info> {
        self.0.info()
    }
    fn state(&self) -> Outcome<i32> {
        Ok(state::xti_state(self.0.state()?))
    }
    fn is_nonblocking(&self) -> bool {
        self.0.is_nonblocking()
    }
    fn bind(&self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        self.0.bind(addr, qlen)
    }
    fn unbind(&self) -> Outcome<()> {
        self.0.unbind()
    }
    fn local(&self) -> Outcome<Option<Vec<u8>>> {
        self.0.local()
    }
    fn remote(&self) -> Outcome<Option<Vec<u8>>> {
        self.0.remote()
    }
    fn connect(&self, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()> {
        self.0.connect(to, opts, data)
    }
    fn accept(&self, seq: i32, on: &dyn Port, opts: &[u8], data: &[u8]) -> Outcome<()> {
        let on = on.endpoint().ok_or(Refusal::new(error::TBADF))?;
        self.0.accept(seq, on, opts, data)
    }
    fn disconnect(&self, seq: Option<i32>, data: &[u8]) -> Outcome<()> {
        self.0.disconnect(seq, data)
    }
    fn release(&self) -> Outcome<()> {
        self.0.release()
    }
    fn requests(&self) -> (usize, u32) {
        self.0.requests()
    }
    fn peek(&self) -> Option<Event> {
        self.0.peek()
    }
    fn lacks(&self) -> Option<Errno> {
        self.0.lacks()
    }
    fn take(&self) -> Option<Arrived> {
        self.0.take()
    }
    #[inline]
    fn send(&self, data: &[iovec], how: Sending) -> Outcome<usize> {
        self.0.send(data, how)
    }
    fn unblocked(&self) -> Option<bool> {
        self.0.unblocked()
    }
    #[inline]
    fn receive(&self, into: &[iovec]) -> Outcome<Received> {
        self.0.receive(into)
    }
    #[inline]
    fn send_to(&self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        self.0.send_to(to, opts, data)
    }
    #[inline]
    fn receive_from(&self, into: &mut Datagram<'_>) -> Outcome<()> {
        self.0.receive_from(into)
    }
    fn negotiate(&self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        self.0.negotiate(flags, opts)
    }
    fn sync(&self) -> Outcome<()> {
        self.0.sync()
    }
    fn wait(&self, events: u32) -> Result<(), Errno> {
        self.0.wait(events, None)
    }
    fn endpoint(&self) -> Option<&'static Endpoint> {
        Some(self.0)
    }
}
