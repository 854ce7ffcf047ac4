//! What a transport provider has to offer for one endpoint. Nothing here waits; all of it is called under the endpoint's
//! lock, and the endpoint has checked that the call is allowed in its state.

use std::any::Any;

use headwater_host::table::Handle;
use headwater_streams::head::Head;
pub use headwater_tpi::Outcome;
use headwater_tpi::{Info, Refusal};
use libc::iovec;

/// poll(2)'s words for something to receive, and for room to send.
pub const IN: u32 = (libc::POLLIN | libc::POLLRDNORM) as u32;
pub const OUT: u32 = (libc::POLLOUT | libc::POLLWRNORM) as u32;

/// A connection request taken from one endpoint for another of the same provider; dropping it refuses the connection.
pub type Pending = Box<dyn Any + Send>;
/// Whether a request was adopted; if not, why, and the request.
pub type Adoption = Result<(), (Refusal, Pending)>;

/// What t_look tells, in the order in which they are to be handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    Listen,
    Connect,
    ExData,
    Data,
    Disconnect,
    UdErr,
    OrdRel,
}

/// An indication other than data, taken by the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Arrived {
    /// A peer asks for a connection.
    Request {
        seq: i32,
        from: Vec<u8>,
        opts: Vec<u8>,
        data: Vec<u8>,
    },
    /// The peer has accepted ours.
    Confirmed {
        by: Vec<u8>,
        opts: Vec<u8>,
        data: Vec<u8>,
    },
    /// The connection (`seq` -1) or a pending request is gone. `reason` is an errno.
    Disconnected {
        reason: i32,
        seq: i32,
        data: Vec<u8>,
    },
    Released {
        data: Vec<u8>,
    },
    /// An earlier datagram could not be delivered.
    Undelivered {
        to: Vec<u8>,
        opts: Vec<u8>,
        error: i32,
    },
}

impl Arrived {
    /// Without options and data.
    pub fn request(seq: i32, from: Vec<u8>) -> Arrived {
        let (opts, data) = Default::default();
        Arrived::Request {
            seq,
            from,
            opts,
            data,
        }
    }

    pub fn confirmed(by: Vec<u8>) -> Arrived {
        let (opts, data) = Default::default();
        Arrived::Confirmed { by, opts, data }
    }

    /// The connection (`seq` -1) or a request has ended, and nothing was said.
    pub fn ended(reason: i32, seq: i32) -> Arrived {
        let data = Vec::new();
        Arrived::Disconnected { reason, seq, data }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Sending {
    /// T_MORE: the TSDU goes on in the next call.
    pub more: bool,
    /// T_EXPEDITED.
    pub expedited: bool,
    /// T_PUSH, or TCP_NODELAY: nothing may be held back.
    pub push: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Received {
    pub len: usize,
    /// The TSDU goes on.
    pub more: bool,
    pub expedited: bool,
}

/// Where a datagram goes: parts in, lengths and T_MORE out.
#[derive(Default)]
pub struct Datagram<'a> {
    pub addr: &'a mut [u8],
    pub opts: &'a mut [u8],
    pub data: &'a [iovec],
    pub addr_len: usize,
    pub opts_len: usize,
    pub data_len: usize,
    /// The rest stays for the next call, which gets no address.
    pub more: bool,
}

/// What a blocked call sleeps at.
pub enum Waiter {
    /// A loop-back connection or mailbox: the stream head's own waiting.
    Head(&'static Head),
    /// A descriptor of the provider's, by poll(2) (and Fast Sockets, if it is a socket carried by them).
    Poll(i32),
    /// What comes by a ring or by a descriptor; a sender waits for room in the ring that is `full`, or at the descriptor.
    Both {
        ring: &'static Head,
        fd: i32,
        full: Option<&'static Head>,
    },
}

/// There is no data: TNODATA; TLOOK, where something else is to be told.
pub fn nothing(is_news: bool) -> Refusal {
    use headwater_tpi::error::{TLOOK, TNODATA};
    Refusal::new(if is_news { TLOOK } else { TNODATA })
}

/// Sleeps until something may have changed, and no longer than to the deadline (nanoseconds). Errors: EINTR, ETIME.
pub type Sleep = Box<dyn FnOnce(Option<u64>) -> Result<(), headwater_host::sys::Errno> + Send>;

/// What came of [`Provider::look_again`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    Ready,
    /// Not yet, but the next look may pay.
    Again,
    Sleep,
}

#[allow(unused_variables)]
pub trait Provider: Send {
    fn info(&self) -> Info;

    /// The provider's own descriptor, hidden, of which the program's number is a copy; -1: none, the program's says nothing.
    /// It may change with `adopt`, `unbind`, `disconnect`: then the endpoint renews the program's.
    fn descriptor(&self) -> i32;

    /// What [`descriptor`](Provider::descriptor), or another descriptor of the provider's, stands for in the table of
    /// descriptors, if its readiness is known to a socket or a stream of ours.
    fn inner(&self) -> Option<Handle> {
        None
    }

    /// Does what comes, come by the kernel's [`descriptor`](Provider::descriptor) and beside it, so that neither it nor
    /// [`inner`](Provider::inner) alone knows what holds?
    fn has_both(&self) -> bool {
        false
    }

    /// Binds; `None`: any address. Gives the address and the queue length granted. An address that can't be had:
    /// TADDRBUSY, TNOADDR, TBADADDR, TACCES.
    fn bind(&mut self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)>;
    fn unbind(&mut self) -> Outcome<()>;

    /// The address it is bound to, and that of the peer.
    fn local(&self) -> Option<Vec<u8>>;
    fn remote(&self) -> Option<Vec<u8>> {
        None
    }

    /// Begins a connection; its end comes as [`Event::Connect`] or [`Event::Disconnect`].
    fn connect(&mut self, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()> {
        Err(Refusal::new(headwater_tpi::error::TNOTSUPPORT))
    }

    /// Takes the request with this number, to be adopted by another endpoint or this one. TBADSEQ.
    fn take_request(&mut self, seq: i32) -> Outcome<Pending> {
        Err(Refusal::new(headwater_tpi::error::TNOTSUPPORT))
    }
    /// It could not be adopted: it waits again under its number.
    fn return_request(&mut self, seq: i32, request: Pending) {}
    /// Becomes the accepted end of a connection. A request of another provider: TPROVMISMATCH.
    fn adopt(&mut self, request: Pending, opts: &[u8], data: &[u8]) -> Adoption {
        Err((Refusal::new(headwater_tpi::error::TPROVMISMATCH), request))
    }
    /// Refuses a request. TBADSEQ.
    fn reject(&mut self, seq: i32, data: &[u8]) -> Outcome<()> {
        Err(Refusal::new(headwater_tpi::error::TNOTSUPPORT))
    }
    /// Ends the connection, or the attempt at one, at once. A listener that accepted on itself listens again.
    fn disconnect(&mut self, data: &[u8]) -> Outcome<()> {
        Err(Refusal::new(headwater_tpi::error::TNOTSUPPORT))
    }
    /// No more data will be sent.
    fn release(&mut self) -> Outcome<()> {
        Err(Refusal::new(headwater_tpi::error::TNOTSUPPORT))
    }
    /// Both directions were released, or the peer disconnected and the user took that: the connection is over.
    fn connection_over(&mut self) {}

    /// With an endpoint that listens: why nobody is told of a peer that has come. EMFILE, ENFILE, ENOMEM.
    fn lacks(&self) -> Option<headwater_host::sys::Errno> {
        None
    }

    /// The event in front, if any; nothing is taken.
    fn peek(&mut self) -> Option<Event>;
    /// Takes the event in front, unless it is data.
    fn take(&mut self) -> Option<Arrived>;

    /// Sends as much as there is room for; TFLOW: none at all. TSDU boundaries are kept where the provider has them: what
    /// was cut off by lack of room counts as T_MORE.
    fn send(&mut self, data: &[iovec], how: Sending) -> Outcome<usize> {
        Err(Refusal::new(headwater_tpi::error::TNOTSUPPORT))
    }
    /// The same for a TSDU with options of its own, as T_OPTDATA_REQ has them. TBADOPT.
    fn send_with(&mut self, opts: &[u8], data: &[iovec], how: Sending) -> Outcome<usize> {
        self.send(data, how)
    }
    /// The options of what was received last, where the user wants to be told: for T_OPTDATA_IND. Empty: none.
    fn received_options(&mut self) -> Vec<u8> {
        Vec::new()
    }
    /// Receives at most one TSDU. TNODATA; TLOOK when another event is in front.
    fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        Err(Refusal::new(headwater_tpi::error::TNOTSUPPORT))
    }
    /// Could a datagram be sent to this address? TBADADDR.
    fn check_destination(&self, to: &[u8]) -> Outcome<()> {
        Ok(())
    }
    /// TFLOW, TBADADDR, TBADDATA, TBADOPT.
    fn send_to(&mut self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        Err(Refusal::new(headwater_tpi::error::TNOTSUPPORT))
    }
    /// TNODATA; TLOOK when an error is in front; TBUFOVFLW when address or options don't fit: the datagram is gone.
    fn receive_from(&mut self, into: &mut Datagram<'_>) -> Outcome<()> {
        Err(Refusal::new(headwater_tpi::error::TNOTSUPPORT))
    }

    /// t_optmgmt: `flags` is T_NEGOTIATE ...; gives the overall flag and the list of answers. TBADOPT, TBADFLAG, TACCES.
    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)>;

    /// What is held back goes to the kernel, as far as it takes it. Before fork and blocking.
    fn flush(&mut self) {}
    /// The same before exec and exit, after which nobody sends the rest. `last`: nor anything else.
    fn finish(&mut self, _last: bool) {
        self.flush();
    }
    /// Is anything held back, for the flusher?
    fn keeps_back(&self) -> bool {
        false
    }

    /// A call is about to sleep until `want` may hold: another look, where what comes is probably on its way.
    fn look_again(&mut self, want: u32) -> Look {
        Look::Sleep
    }

    /// What a blocked call sleeps at.
    fn waiter(&self) -> Waiter {
        Waiter::Poll(self.descriptor())
    }

    /// Another way to sleep until `want` may hold, where the provider has a better one than its waiter.
    fn sleep(&mut self, want: u32) -> Option<Sleep> {
        None
    }

    /// POLLIN, POLLPRI and so on that hold by what this process has already taken from kernel or ring.
    fn ready(&mut self, want: u32) -> u32 {
        0
    }
    /// How long a sleep for `want` may last, in nanoseconds, where not everything that ends it rings.
    fn slice(&self, want: u32) -> Option<u64> {
        None
    }
    /// The events that the kernel is to watch for `want` on the descriptor, where there is no `inner`.
    fn kernel_wants(&self, want: u32) -> u32 {
        want
    }
    /// What holds when the kernel (or `inner`) says `events`: the user of a transport sees an end as something to read.
    fn kernel_means(&self, events: u32) -> u32 {
        events
    }

    /// It is about to be closed, and nobody else has it: where something is unread that was taken from the kernel, its loss is the
    /// peer's to know, as of what the kernel has.
    fn lose_unread(&mut self) {}

    /// Another process has brought the endpoint into this state (t_sync). What it did is found in the kernel, if at all.
    fn catch_up(&mut self, state: headwater_tpi::state::State, qlen: u32) {}

    /// For the image after exec(2): what who makes it anew needs besides the program's descriptor.
    fn save(&mut self) -> Option<String> {
        None
    }
    /// The process is about to be copied: what must not be shared goes.
    fn forking(&mut self) {}
    /// This process is a child that has copies of everything.
    fn forked(&mut self) {}
    /// The endpoint is closed: coalesced data is sent, a connection ended as close(2) of a socket does.
    fn close(&mut self) {}
}
