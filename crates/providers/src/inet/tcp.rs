//! /dev/tcp: a connection-oriented provider with orderly release over the kernel's TCP.

use std::sync::Once;

use headwater_host::table::{Handle, NOT_KERNELS};
use headwater_host::{config, sys};
use headwater_ipnet::Address;
use headwater_tpi::error::{TADDRBUSY, TBADADDR, TBADSEQ, TLOOK, TNOADDR, TPROVMISMATCH};
use headwater_tpi::option::{INET_TCP, T_TCP_NODELAY, T_YES};
use headwater_tpi::prim::{T_COTS_ORD, T_INFINITE, T_INVALID};
use headwater_tpi::state::State;
use headwater_tpi::{Info, Refusal};
use libc::iovec;
use listener::{Listener, Request};
use marks::Marks;
use urgent::Taken;

use super::ahead::Ahead;
use super::coalesce::{Held, LARGE};
use super::connection::Socket;
use super::run::Run;
use super::settings::Chosen;
use super::{local, poll};
use crate::options::{self, Known};
use crate::provider::{
    Adoption, Arrived, Event, IN, OUT, Outcome, Pending, Provider, Received, Sending,
};

mod image;
mod listener;
mod marks;
mod receiving;
mod sending;
mod urgent;

const TABLE: [&[Known]; 3] = [&options::GENERIC, &options::TCP, &options::IP];
/// The most connection requests that a listener has outstanding, and the least that the kernel queues.
const MOST_OUTSTANDING: u32 = 128;
const BACKLOG: u32 = 16;
const PEER_EVENTS: u32 = (libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP) as u32;
/// The error of a socket that was not shut down: a reset, behind the peer's release.
const BEHIND_END: i32 = libc::EPIPE;
const URGENT: u32 = (libc::POLLPRI | libc::POLLRDBAND) as u32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Unbound, or bound: the kernel has no connection.
    Idle,
    Listening,
    Connecting,
    /// The connection stands, or has failed, and the user has not been told.
    Answered,
    Connected,
}

/// An endpoint over TCP is reason enough to have connections carried, unless the user has said otherwise.
fn start_fast_sockets() {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| {
        let config = config::get();
        if !config.sockets_denied && config.this_program_allowed() {
            headwater_sockets::start();
        }
    });
}

pub struct Tcp {
    socket: Socket,
    v6: bool,
    phase: Phase,
    /// Where the user has bound it.
    bound: Option<Address>,
    listener: Listener,
    /// The bound (and perhaps listening) socket, while `socket` is a connection that was accepted here, or is being released.
    aside: Option<Socket>,
    held: Held,
    run: Run,
    nodelay: bool,
    /// XTI_SNDLOWAT, XTI_RCVLOWAT, where they say more than 1.
    marks: Marks,
    chosen: Chosen,
    called: Option<Address>,
    /// The end of the peer's data was seen, and told.
    ended: bool,
    told_end: bool,
    /// The connection has failed.
    error: Option<i32>,
    /// shutdown(2) is due once nothing is held any more.
    release_due: bool,
    released: bool,
    ahead: Ahead,
    /// Receives from `ahead` since an urgent byte was last looked for.
    unlooked: u32,
    /// Urgent bytes that the kernel still has between the data.
    taken: Taken,
}

impl Tcp {
    pub fn open(v6: bool) -> Outcome<Tcp> {
        start_fast_sockets();
        Ok(Tcp::with(Socket::new(v6)?, v6))
    }

    /// Another socket, with the options that the user has set.
    fn fresh(&self, v6: bool) -> Outcome<Socket> {
        let socket = Socket::new(v6)?;
        self.chosen.renew(socket.fd(), v6);
        Ok(socket)
    }

    fn with(socket: Socket, v6: bool) -> Tcp {
        Tcp {
            socket,
            v6,
            phase: Phase::Idle,
            bound: None,
            listener: Listener::default(),
            aside: None,
            held: Held::default(),
            run: Run::default(),
            nodelay: false,
            marks: Marks::default(),
            chosen: Chosen::default(),
            ended: false,
            told_end: false,
            called: None,
            error: None,
            release_due: false,
            released: false,
            ahead: Ahead::default(),
            unlooked: 0,
            taken: Taken::default(),
        }
    }

    /// Another family than the socket has: a new one, as long as nothing depends on it.
    fn suit(&mut self, address: &Address) -> Outcome<()> {
        if address.is_v6() == self.v6 {
            return Ok(());
        }
        if self.bound.as_ref().is_some_and(|b| b.port() != 0) && self.phase != Phase::Idle {
            return Err(Refusal::new(TBADADDR));
        }
        self.socket = self.fresh(address.is_v6())?;
        self.v6 = address.is_v6();
        Ok(())
    }

    /// Forgets the connection, not the address.
    fn forget(&mut self) {
        self.end_run();
        self.run = Run::default();
        self.held.reset();
        self.ahead.clear();
        self.taken.clear();
        self.ended = false;
        self.told_end = false;
        self.error = None;
        self.release_due = false;
        self.released = false;
        self.marks.waits_for_room = false;
        self.phase = Phase::Idle;
    }

    /// The socket that was put aside is the endpoint's again.
    fn take_back(&mut self) -> bool {
        let Some(socket) = self.aside.take() else {
            return false;
        };
        self.socket = socket;
        // What was chosen meanwhile.
        self.chosen.renew(self.socket.fd(), self.v6);
        if self.listener.qlen > 0 {
            self.phase = Phase::Listening;
        }
        true
    }

    /// A new socket at the old address, where that can be had; the old one is the kernel's to finish.
    fn renew(&mut self) -> Outcome<()> {
        let fresh = self.fresh(self.v6)?;
        if let Some(bound) = self.bound
            && !self.bind_beside(&fresh, &bound)
        {
            // Somebody else has the port by now.
            let _ = super::bind(fresh.fd(), &bound.with_port(0));
            self.bound = local(fresh.fd());
        }
        self.socket = fresh;
        Ok(())
    }

    /// Gives a fresh socket the endpoint's address, which the one before it has too. False: it can't be had.
    fn bind_beside(&self, fresh: &Socket, bound: &Address) -> bool {
        let both = [&self.socket, fresh];
        let were = both.map(Socket::is_reusable);
        both.iter().for_each(|socket| socket.reusable(true));
        let is_bound = super::bind(fresh.fd(), bound).is_ok();
        both.iter()
            .zip(were)
            .for_each(|(socket, was)| socket.reusable(was));
        is_bound
    }

    /// What is left of the connection after its release shall not keep the endpoint from its address, nor anybody else have it meanwhile.
    fn keep_address(&mut self) {
        if let Some(bound) = self.bound
            && self.aside.is_none()
        {
            let fresh = self.fresh(self.v6).ok();
            self.aside = fresh.filter(|fresh| self.bind_beside(fresh, &bound));
        }
    }

    /// Takes a port of the kernel's choice by its number: one that was not named the kernel gives away with a connection that fails,
    /// though the endpoint is bound to it.
    fn bind_to_any_port(&self, to: &Address) -> Outcome<()> {
        let fd = self.socket.fd();
        let (was, chooser) = (self.socket.is_reusable(), Socket::new(self.v6));
        let chosen = chooser.and_then(|chooser| {
            super::bind(chooser.fd(), to)?;
            let port = local(chooser.fd()).ok_or(Refusal::new(TNOADDR))?.port();
            // Until ours has it, nobody else may.
            chooser.reusable(true);
            self.socket.reusable(true);
            let bound = super::bind(fd, &to.with_port(port));
            self.socket.reusable(was);
            bound
        });
        // Without a descriptor for it, as before.
        chosen.or_else(|_| super::bind(fd, to))
    }

    // ---- connected ----

    /// Whether the attempt has come to an end, and how.
    fn look_for_answer(&mut self) {
        if poll(self.socket.fd(), libc::POLLOUT) != 0 {
            if let Some(errno) = self.socket.take_error() {
                self.fail(errno);
            }
            self.phase = Phase::Answered;
        }
    }

    fn fail(&mut self, errno: i32) -> Refusal {
        self.error.get_or_insert(errno);
        self.held.clear();
        Refusal::new(TLOOK)
    }

    /// Who has answered, which the kernel does not know any more where that one has reset the connection.
    fn peer(&self) -> Vec<u8> {
        let called = || self.called.map(Address::to_vec);
        self.remote().or_else(called).unwrap_or_default()
    }
}

impl Provider for Tcp {
    fn info(&self) -> Info {
        Info {
            tsdu: 0,
            etsdu: T_INFINITE,
            cdata: T_INVALID,
            ddata: T_INVALID,
            addr: size_of::<libc::sockaddr_in6>() as i32,
            opt: 1024,
            tidu: 65536,
            serv: T_COTS_ORD,
            state: 0,
            provider_flag: 0,
        }
    }

    fn descriptor(&self) -> i32 {
        self.socket.fd()
    }

    fn inner(&self) -> Option<Handle> {
        self.socket.handle()
    }

    fn bind(&mut self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        let to = addr.map_or(Ok(Address::any(self.v6)), Address::read)?;
        self.suit(&to)?;
        let qlen = qlen.min(MOST_OUTSTANDING);
        let was = self.socket.is_reusable();
        // A restarted server finds connections of the earlier one at its port.
        self.socket.reusable(was || qlen > 0);
        let bound = match to.port() {
            // Who asks for no address gets none to rely on, and sooner.
            0 if qlen == 0 && addr.is_some() => self.bind_to_any_port(&to),
            _ => super::bind(self.socket.fd(), &to),
        };
        bound.inspect_err(|_| self.socket.reusable(was))?;
        if qlen > 0
            && let Err(errno) = self.socket.listen(qlen.max(BACKLOG) as i32)
        {
            self.socket = self.fresh(self.v6)?;
            return Err(match errno {
                libc::EADDRINUSE => Refusal::new(TADDRBUSY),
                errno => Refusal::system(errno),
            });
        }
        let got = local(self.socket.fd()).ok_or(Refusal::new(TNOADDR))?;
        self.bound = Some(got);
        self.listener = Listener::new(qlen);
        self.phase = if qlen > 0 {
            Phase::Listening
        } else {
            Phase::Idle
        };
        Ok((got.to_vec(), qlen))
    }

    fn unbind(&mut self) -> Outcome<()> {
        self.socket = self.fresh(self.v6)?;
        self.listener = Listener::default();
        self.bound = None;
        self.phase = Phase::Idle;
        Ok(())
    }

    fn local(&self) -> Option<Vec<u8>> {
        let now = local(self.socket.fd()).filter(|a| a.port() != 0);
        now.or(self.bound).map(Address::to_vec)
    }

    fn remote(&self) -> Option<Vec<u8>> {
        Some(Address::of_storage(&sys::sock_name(self.socket.fd(), true).ok()?)?.to_vec())
    }

    fn connect(&mut self, to: &[u8], opts: &[u8], _data: &[u8]) -> Outcome<()> {
        let to = Address::read(to)?;
        if to.port() == 0 {
            return Err(Refusal::new(TBADADDR));
        }
        if !opts.is_empty() {
            self.negotiate(headwater_tpi::option::T_NEGOTIATE as u32, opts)?;
        }
        if to.is_v6() != self.v6 {
            // Bound to any address it may just as well be one of the other family.
            self.suit(&to)?;
        }
        if self.phase == Phase::Listening {
            // A listener may connect while it has nothing outstanding; it listens again afterwards.
            let fresh = self.fresh(self.v6)?;
            self.aside = Some(core::mem::replace(&mut self.socket, fresh));
        }
        self.called = Some(to);
        let refused = match self.socket.connect(&to) {
            Err(libc::EAFNOSUPPORT | libc::EINVAL) => TBADADDR,
            Err(libc::EADDRINUSE) => TADDRBUSY,
            Err(libc::EAGAIN) => TNOADDR,
            begun => {
                // An error is the peer's answer, or the network's.
                self.error = begun.err().or(self.error);
                self.phase = begun.map_or(Phase::Answered, |()| Phase::Connecting);
                return Ok(());
            }
        };
        self.take_back();
        Err(Refusal::new(refused))
    }

    fn take_request(&mut self, seq: i32) -> Outcome<Pending> {
        Ok(Box::new(self.listener.remove(seq)?))
    }

    fn return_request(&mut self, _seq: i32, request: Pending) {
        if let Ok(request) = request.downcast::<Request>() {
            self.listener.put_back(*request);
        }
    }

    fn adopt(&mut self, request: Pending, opts: &[u8], _data: &[u8]) -> Adoption {
        let mut request = match request.downcast::<Request>() {
            Ok(request) => request,
            Err(other) => return Err((Refusal::new(TPROVMISMATCH), other)),
        };
        let Some(socket) = request.socket.take() else {
            return Err((Refusal::new(TBADSEQ), request));
        };
        let v6 = request.from.is_v6();
        let own = core::mem::replace(&mut self.socket, socket);
        if !opts.is_empty()
            && let Err(refusal) = self.negotiate(headwater_tpi::option::T_NEGOTIATE as u32, opts)
        {
            request.socket = Some(core::mem::replace(&mut self.socket, own));
            return Err((refusal, request));
        }
        self.forget();
        self.chosen.renew(self.socket.fd(), v6);
        self.socket.note_receive_mark();
        if self.bound.is_some() {
            self.aside = Some(own);
        } else {
            self.v6 = v6;
        }
        self.phase = Phase::Connected;
        Ok(())
    }

    fn reject(&mut self, seq: i32, _data: &[u8]) -> Outcome<()> {
        let request = self.listener.remove(seq)?;
        if let Some(socket) = &request.socket {
            let _ = socket.abort();
        }
        Ok(())
    }

    fn disconnect(&mut self, _data: &[u8]) -> Outcome<()> {
        self.forget();
        let aborted = self.socket.abort();
        if self.take_back() {
            return Ok(());
        }
        if aborted.is_err() {
            self.socket.reset_on_close();
            return self.renew();
        }
        if let Some(bound) = self.bound
            && local(self.socket.fd()).is_none_or(|now| now.port() != bound.port())
        {
            // The kernel keeps a port over this only where it was asked for by number.
            let _ = super::bind(self.socket.fd(), &bound);
        }
        Ok(())
    }

    fn release(&mut self) -> Outcome<()> {
        if self.error.is_none() {
            self.release_due = true;
            self.send_held();
        }
        // It may be over, though its user has to hear of the peer's release first.
        self.released = self.error.is_none();
        self.released.then_some(()).ok_or(Refusal::new(TLOOK))
    }

    fn connection_over(&mut self) {
        if self.release_due {
            self.drain();
            self.send_held();
        }
        self.forget();
        if !self.take_back() {
            let _ = self.renew();
        }
    }

    fn lacks(&self) -> Option<sys::Errno> {
        self.listener.lacking
    }

    fn peek(&mut self) -> Option<Event> {
        if self.phase == Phase::Connecting {
            self.look_for_answer();
        }
        match self.phase {
            Phase::Idle | Phase::Connecting => None,
            Phase::Listening => {
                let gone_first = self.listener.waiting.is_empty() && self.listener.has_gone();
                if !gone_first && self.listener.look(&self.socket) {
                    return Some(Event::Listen);
                }
                let is_gone = gone_first || self.listener.has_gone();
                is_gone.then_some(Event::Disconnect)
            }
            // What was reset had been made.
            Phase::Answered => match self.error {
                None | Some(libc::ECONNRESET | BEHIND_END) => Some(Event::Connect),
                Some(_) => Some(Event::Disconnect),
            },
            Phase::Connected => self.next_event(),
        }
    }

    fn take(&mut self) -> Option<Arrived> {
        match self.peek()? {
            Event::Listen => self.listener.tell(),
            Event::Connect => {
                self.phase = Phase::Connected;
                Some(Arrived::confirmed(self.peer()))
            }
            Event::Disconnect if self.phase == Phase::Listening => self.listener.tell_gone(),
            Event::Disconnect => {
                let reason = match self.error.take()? {
                    BEHIND_END => libc::ECONNRESET,
                    errno => errno,
                };
                self.held.clear();
                self.phase = Phase::Idle;
                Some(Arrived::ended(reason, -1))
            }
            Event::OrdRel => {
                self.told_end = true;
                Some(Arrived::Released { data: Vec::new() })
            }
            _ => None,
        }
    }

    #[inline]
    fn send(&mut self, data: &[iovec], how: Sending) -> Outcome<usize> {
        match self.marks.room {
            0 => self.put(data, how),
            _ => self.put_by_mark(data, how),
        }
    }

    #[inline]
    fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        self.get(into)
    }

    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let mut settings = self.chosen.on(self.socket.fd(), self.v6);
        let answer = options::negotiate(&TABLE, &mut settings, flags, opts);
        let nodelay = self.chosen.number(INET_TCP, T_TCP_NODELAY) == T_YES;
        let was = core::mem::replace(&mut self.nodelay, nodelay);
        if nodelay && !was {
            self.flush();
        }
        self.note_marks();
        answer
    }

    fn flush(&mut self) {
        self.send_kept();
    }

    fn finish(&mut self, last: bool) {
        self.push_out(last);
        self.send_kept();
    }

    fn keeps_back(&self) -> bool {
        !self.keeps_nothing() || self.release_due
    }

    fn ready(&mut self, want: u32) -> u32 {
        let mut ready = 0;
        let told = match self.phase {
            Phase::Listening => !self.listener.waiting.is_empty() || self.listener.has_gone(),
            Phase::Answered => true,
            Phase::Connected => {
                !self.ahead.is_empty() || self.error.is_some() || self.ended && !self.told_end
            }
            _ => false,
        };
        if told {
            ready |= want & IN;
        }
        let holds = self.held.pending() > 0 && self.held.room() >= LARGE;
        if self.phase == Phase::Connected && holds && !self.marks.waits_for_room {
            ready |= want & OUT;
        }
        ready
    }

    fn kernel_wants(&self, want: u32) -> u32 {
        match self.phase {
            // Without a connection the kernel says POLLHUP.
            Phase::Idle | Phase::Answered => NOT_KERNELS,
            Phase::Listening if self.listener.is_full() => want & !IN,
            Phase::Listening => want,
            Phase::Connecting if want & IN != 0 => want | OUT,
            Phase::Connecting => want & !OUT,
            // The end stays readable for the kernel; the user has been told.
            Phase::Connected if self.ended => want & !(IN | libc::POLLRDHUP as u32),
            Phase::Connected if want & IN != 0 => want | libc::POLLPRI as u32,
            Phase::Connected => want,
        }
    }

    fn kernel_means(&self, events: u32) -> u32 {
        match self.phase {
            // Without a connection it hangs up.
            Phase::Idle | Phase::Answered => 0,
            // Watched or not.
            Phase::Listening if self.listener.is_full() => events & !IN,
            Phase::Connecting if events & (OUT | PEER_EVENTS) != 0 => IN,
            Phase::Connected => {
                let mut means = events & !PEER_EVENTS;
                if self.ended {
                    // Watched or not.
                    means &= !IN;
                }
                if events & PEER_EVENTS != 0
                    && !(self.told_end && events & libc::POLLERR as u32 == 0)
                {
                    means |= IN;
                }
                if events & libc::POLLPRI as u32 != 0 {
                    means |= IN | URGENT;
                }
                means
            }
            _ => events,
        }
    }

    fn catch_up(&mut self, state: State, qlen: u32) {
        if state == State::Unbnd {
            return;
        }
        let v6 = local(self.socket.fd()).map(|a| a.is_v6());
        self.v6 = v6.unwrap_or(self.v6);
        match (state, self.phase) {
            (State::Idle | State::WresCind, Phase::Idle) => {
                self.bound = local(self.socket.fd()).filter(|a| a.port() != 0);
                if qlen > 0 {
                    self.listener = Listener::new(qlen);
                    self.phase = Phase::Listening;
                }
            }
            (State::WconCreq, Phase::Idle) => self.phase = Phase::Connecting,
            (
                State::DataXfer | State::WindOrdrel | State::WreqOrdrel,
                Phase::Idle | Phase::Connecting | Phase::Answered,
            ) => self.phase = Phase::Connected,
            _ => {}
        }
        self.told_end |= state == State::WreqOrdrel;
        self.released |= state == State::WindOrdrel;
    }

    fn save(&mut self) -> Option<String> {
        Some(self.image())
    }

    fn forking(&mut self) {
        // Either process may read what is before them from here on, and send.
        self.taken.clear();
        self.end_run();
    }

    fn forked(&mut self) {
        // What is held is the parent's to send, and the socket too.
        self.held.clear();
        self.release_due = false;
    }

    fn lose_unread(&mut self) {
        if !self.ahead.is_empty() {
            self.socket.reset_on_close();
        }
    }

    fn close(&mut self) {
        self.drain();
        self.listener.clear();
        self.aside = None;
    }
}
