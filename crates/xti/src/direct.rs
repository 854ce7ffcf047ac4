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
            .filter(|messages| {
                messages
                    .endpoint()
                    .is_some_and(|end| ptr::eq(end, self.end))
            })
            .ok_or(Refusal::new(error::TBADF))
    }
}

/// The endpoint's methods of these names, or the stream's.
macro_rules! outcomes {
    ($($method:ident($($argument:ident: $ty:ty),*) -> $outcome:ty;)*) => {$(
        #[inline]
        fn $method(&self $(, $argument: $ty)*) -> $outcome {
            match self.turned() {
                None => self.end.$method($($argument),*),
                Some(messages) => messages?.$method($($argument),*),
            }
        }
    )*};
}

/// The same for what can't fail: of a closed one this is said.
macro_rules! answers {
    ($($method:ident() -> $answer:ty, $closed:expr;)*) => {$(
        fn $method(&self) -> $answer {
            match self.turned() {
                None => self.end.$method(),
                Some(messages) => messages.map_or($closed, |messages| messages.$method()),
            }
        }
    )*};
}

impl Port for Direct {
    outcomes! {
        info() -> Outcome<Info>;
        bind(addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)>;
        unbind() -> Outcome<()>;
        local() -> Outcome<Option<Vec<u8>>>;
        remote() -> Outcome<Option<Vec<u8>>>;
        connect(to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()>;
        disconnect(seq: Option<i32>, data: &[u8]) -> Outcome<()>;
        release() -> Outcome<()>;
        send(data: &[iovec], how: Sending) -> Outcome<usize>;
        receive(into: &[iovec]) -> Outcome<Received>;
        send_to(to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()>;
        receive_from(into: &mut Datagram<'_>) -> Outcome<()>;
        negotiate(flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)>;
        sync() -> Outcome<()>;
    }

    answers! {
        is_nonblocking() -> bool, false;
        requests() -> (usize, u32), (0, 0);
        peek() -> Option<Event>, None;
        lacks() -> Option<Errno>, None;
        take() -> Option<Arrived>, None;
        unblocked() -> Option<bool>, None;
    }

    fn state(&self) -> Outcome<i32> {
        match self.turned() {
            None => Ok(state::xti_state(self.end.state()?)),
            Some(messages) => messages?.state(),
        }
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
