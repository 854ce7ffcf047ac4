//! ticots and ticotsord: endpoints for connections.

use headwater_host::handed::Sort;
use headwater_host::sys;
use headwater_host::table::{Handle, NOT_KERNELS};
use headwater_tpi::error::{TBADSEQ, TNOTSUPPORT, TOUTSTATE, TPROVMISMATCH};
use headwater_tpi::{Info, Refusal};
use libc::iovec;

use super::link::{End, Link, from_hex, named, taken, to_hex};
use super::listening::Listening;
use super::request::{self, Call, Request};
use super::sizes::{Held, Wishes};
use super::{Owned, Space, check_address, check_options, check_user_data, name};
use crate::options::{self, GENERIC, Remembered};
use crate::provider::{
    self, Adoption, Arrived, Event, IN, Outcome, Pending, Provider, Received, Sending, Waiter,
    nothing,
};

const OUT: u32 = provider::OUT | libc::POLLWRBAND as u32;
const URGENT: u32 = libc::POLLPRI as u32 | libc::POLLRDBAND as u32;
const HUP: u32 = libc::POLLHUP as u32;

pub struct Circuit {
    space: Space,
    local: Option<Vec<u8>>,
    /// The socket that has the address.
    name: Option<Owned>,
    listening: Option<Listening>,
    link: Option<Link>,
    /// There was none to connect to.
    failed: Option<End>,
    options: Remembered,
}

/// What poll(2) says of a connection's ring in the words of a transport's user: its end is something to take. Before the
/// connection is confirmed nothing can be sent, and nothing is expedited.
pub fn means(link: &Link, events: u32) -> u32 {
    let ended = if events & HUP != 0 && !link.is_quiet() {
        IN
    } else {
        0
    };
    let early = if link.is_open() { 0 } else { OUT | URGENT };
    (events | ended) & !(HUP | early)
}

impl Circuit {
    pub fn open(orderly: bool) -> Outcome<Circuit> {
        Ok(Circuit::empty(orderly))
    }

    fn empty(orderly: bool) -> Circuit {
        Circuit {
            space: if orderly {
                Space::Ticotsord
            } else {
                Space::Ticots
            },
            local: None,
            name: None,
            listening: None,
            link: None,
            failed: None,
            options: Remembered::default(),
        }
    }

    fn link(&mut self) -> Outcome<&mut Link> {
        self.link.as_mut().ok_or(Refusal::new(TOUTSTATE))
    }

    /// Has the connection hold as much as the user wants.
    fn tell_wishes(&self) {
        let wishes = Wishes::of(&self.options);
        if let Some(link) = &self.link
            && wishes != Wishes::default()
        {
            wishes.tell(link.head());
        }
    }

    /// Gives the connection up: `how` ends it.
    fn leave(&mut self, how: impl FnOnce(Link)) {
        self.failed = None;
        if let Some(link) = self.link.take() {
            how(link);
        }
    }

    fn listener(&mut self) -> Option<(&mut Listening, &[Owned])> {
        Some((self.listening.as_mut()?, self.name.as_slice()))
    }

    fn claim(&mut self, addr: Option<&[u8]>, qlen: u32) -> Outcome<Vec<u8>> {
        if addr.is_none() && qlen == 0 {
            // Nobody can ask for it, so there is nothing to keep from others.
            return Ok(name::unused());
        }
        let (addr, name) = name::claim_any(self.space, addr, qlen > 0)?;
        if qlen > 0 {
            let listening = Listening::new(self.space, qlen, core::slice::from_ref(&name))
                .map_err(Refusal::system)?;
            self.listening = Some(listening);
        }
        self.name = Some(name);
        Ok(addr)
    }

    pub fn restore(orderly: bool, fd: i32, saved: &str) -> Option<Circuit> {
        let mut circuit = Circuit::empty(orderly);
        let fields: Vec<&str> = saved.splitn(4, '/').collect();
        let [local, name, qlen, link] = fields[..] else {
            return None;
        };
        circuit.local = Some(from_hex(local)?).filter(|local| !local.is_empty());
        if !name.is_empty() {
            circuit.name = Some(Owned(taken(name, Sort::Local)?));
        }
        let qlen: u32 = qlen.parse().ok()?;
        if !link.is_empty() {
            circuit.link = Some(Link::restore(fd, link)?);
        }
        if qlen > 0 {
            let listening = if circuit.link.is_some() {
                Listening::new(circuit.space, qlen, circuit.name.as_slice()).ok()?
            } else {
                Listening::with_set(Owned::copy_of(fd).ok()?, circuit.space, qlen)
            };
            circuit.listening = Some(listening);
        }
        Some(circuit)
    }
}

impl Provider for Circuit {
    fn info(&self) -> Info {
        self.space.info()
    }

    fn descriptor(&self) -> i32 {
        let link = self.link.as_ref().and_then(Link::shadow);
        let listening = self.listening.as_ref().map(Listening::descriptor);
        link.or(listening).unwrap_or(-1)
    }

    fn inner(&self) -> Option<Handle> {
        self.link.as_ref().map(|link| link.head().handle())
    }

    fn bind(&mut self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        if let Some(addr) = addr {
            check_address(addr)?;
        }
        let addr = self.claim(addr, qlen)?;
        self.local = Some(addr.clone());
        Ok((addr, qlen))
    }

    fn unbind(&mut self) -> Outcome<()> {
        self.listening = None;
        self.name = None;
        self.local = None;
        Ok(())
    }

    fn local(&self) -> Option<Vec<u8>> {
        let called = || self.link.as_ref()?.local().map(<[u8]>::to_vec);
        self.local.clone().or_else(called)
    }

    fn remote(&self) -> Option<Vec<u8>> {
        self.link.as_ref().map(|link| link.remote().to_vec())
    }

    fn connect(&mut self, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()> {
        check_address(to)?;
        check_options(opts)?;
        check_user_data(data)?;
        let from = self.local.clone().unwrap_or_default();
        let call = Call {
            space: self.space,
            from: &from,
            to,
            opts,
            data,
            ring: Wishes::of(&self.options).ring(),
        };
        match Link::call(&call)? {
            Ok(link) => {
                self.link = Some(link);
                self.tell_wishes();
            }
            Err(end) => self.failed = Some(end),
        }
        Ok(())
    }

    fn take_request(&mut self, seq: i32) -> Outcome<Pending> {
        let (listening, name) = self.listener().ok_or(Refusal::new(TBADSEQ))?;
        Ok(Box::new(listening.take_out(seq, name)?))
    }

    fn return_request(&mut self, seq: i32, request: Pending) {
        let Some((listening, name)) = self.listener() else {
            return;
        };
        match request.downcast::<Request>() {
            Ok(request) => listening.put_back(seq, *request, name),
            Err(_) => listening.lose(seq),
        }
    }

    fn adopt(&mut self, request: Pending, opts: &[u8], data: &[u8]) -> Adoption {
        let request = match request.downcast::<Request>() {
            Ok(request) if request.space == self.space => request,
            Ok(request) => return Err((Refusal::new(TPROVMISMATCH), request)),
            Err(other) => return Err((Refusal::new(TPROVMISMATCH), other)),
        };
        if let Err(refusal) = check_options(opts).and_then(|()| check_user_data(data)) {
            return Err((refusal, request));
        }
        let by = self.local.clone().unwrap_or_else(|| request.to.clone());
        match Link::accept(*request, &by, opts, data) {
            Ok(link) => {
                self.link = Some(link);
                self.tell_wishes();
                Ok(())
            }
            // What it came with is used up.
            Err(e) => Err((Refusal::system(e), Box::new(()))),
        }
    }

    fn reject(&mut self, seq: i32, data: &[u8]) -> Outcome<()> {
        check_user_data(data)?;
        let (listening, name) = self.listener().ok_or(Refusal::new(TBADSEQ))?;
        let request = listening.take_out(seq, name)?;
        request::say_last(request.socket.number(), data);
        Ok(())
    }

    fn disconnect(&mut self, data: &[u8]) -> Outcome<()> {
        check_user_data(data)?;
        self.leave(|link| link.disconnect(data));
        Ok(())
    }

    fn release(&mut self) -> Outcome<()> {
        if self.space != Space::Ticotsord {
            return Err(Refusal::new(TNOTSUPPORT));
        }
        self.link()?.release()
    }

    fn connection_over(&mut self) {
        self.leave(Link::part);
    }

    #[inline]
    fn peek(&mut self) -> Option<Event> {
        if let Some(link) = &mut self.link {
            return link.event();
        }
        if self.failed.is_some() {
            return Some(Event::Disconnect);
        }
        let (listening, name) = self.listener()?;
        listening.event(name)
    }

    fn lacks(&self) -> Option<sys::Errno> {
        self.listening.as_ref()?.lacks()
    }

    fn take(&mut self) -> Option<Arrived> {
        if let Some(link) = &mut self.link {
            return link.take();
        }
        if let Some(end) = self.failed.take() {
            return Some(end.told());
        }
        let (listening, name) = self.listener()?;
        listening.take(name)
    }

    #[inline]
    fn send(&mut self, data: &[iovec], how: Sending) -> Outcome<usize> {
        self.link()?.send(data, how)
    }

    #[inline]
    fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        match &mut self.link {
            Some(link) => link.receive(into),
            None => Err(nothing(self.peek().is_some())),
        }
    }

    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let head = self.link.as_ref().map(Link::head);
        // Of a connection that is over the ring counts no more, whether that was told or not.
        let head = head.filter(|head| !head.has_hung_up());
        let mut held = Held {
            options: &mut self.options,
            ring: head.map(|head| head.outgoing().capacity()),
        };
        let answer = options::negotiate(&[&GENERIC], &mut held, flags, opts);
        self.tell_wishes();
        answer
    }

    fn waiter(&self) -> Waiter {
        match &self.link {
            Some(link) => Waiter::Head(link.head()),
            None => Waiter::Poll(self.descriptor()),
        }
    }

    fn ready(&mut self, want: u32) -> u32 {
        let known = match (&self.link, &self.listening) {
            // Looked at with care: an attempt may have to be made again.
            (Some(_), _) => {
                self.link.as_ref().is_some_and(|link| !link.is_open()) && self.peek().is_some()
            }
            (None, Some(listening)) => listening.has_news(),
            (None, None) => false,
        };
        let any = known || self.failed.is_some();
        if any { want & IN } else { 0 }
    }

    fn kernel_wants(&self, want: u32) -> u32 {
        match &self.link {
            // The kernel would go on to say POLLHUP.
            Some(link) if link.is_quiet() => NOT_KERNELS,
            _ => want,
        }
    }

    fn kernel_means(&self, events: u32) -> u32 {
        let Some(link) = &self.link else {
            // A descriptor that says nothing could be written to.
            return events & IN;
        };
        means(link, events)
    }

    fn save(&mut self) -> Option<String> {
        let link = match &self.link {
            Some(link) => link.save()?,
            None => String::new(),
        };
        let name = self.name.as_ref().map(|name| named(name.pass_on()));
        let name = name.unwrap_or_default();
        let qlen = self.listening.as_ref().map_or(0, Listening::qlen);
        let local = to_hex(self.local.as_deref().unwrap_or(&[]));
        Some(format!("{local}/{name}/{qlen}/{link}"))
    }

    fn forking(&mut self) {
        if let Some(listening) = &mut self.listening {
            listening.forking();
        }
    }

    fn forked(&mut self) {
        if let Some(listening) = &mut self.listening {
            listening.forked();
        }
    }

    fn close(&mut self) {
        let orderly = self.space == Space::Ticotsord;
        if let Some(link) = self.link.take() {
            link.close(orderly);
        }
        self.listening = None;
        self.name = None;
    }
}
