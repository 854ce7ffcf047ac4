//! An endpoint at the bottom of a stream, used by messages: primitives of TPI by putmsg and getmsg, and timod's ioctls, as
//! the library of System V did.
//!
//! What the provider has told but the user has not taken yet waits at the stream head, so the user's state is kept here.

use std::cell::Cell;
use std::collections::BTreeMap;

use headwater_endpoints::endpoint::Endpoint;
use headwater_endpoints::stream::{self, TI_BIND, TI_GETADDRS, TI_OPTMGMT, TI_SYNC, TI_UNBIND};
use headwater_host::sys::Errno;
use headwater_host::table::{self, Handle};
use headwater_providers::provider::{Arrived, Datagram, Event, Outcome, Received, Sending};
use headwater_streams::ddi::M_PCPROTO;
use headwater_streams::exec::guarded::Guarded;
use headwater_streams::head::control;
use headwater_streams::head::inlet::{Front, Inlet};
use headwater_streams::head::message::Priority;
use headwater_streams::head::{self, Head, local, opening};
use headwater_tpi::error::*;
use headwater_tpi::prim::*;
use headwater_tpi::state::{self, Event as Move, State};
use headwater_tpi::{Indication, Info, Refusal, Request};
use libc::iovec;

use crate::port::{Port, interrupted};

/// Longest control part, and longest answer of an ioctl.
const PART: usize = 4096;
/// Data of one T_DATA_REQ at most.
const PIECE: usize = 16 << 10;
/// Expedited data overtakes in this band.
const EXPEDITED: u8 = 1;

const I_STR: u32 = (b'S' as u32) << 8 | 8;

/// A stream with timod on it.
#[derive(Clone, Copy)]
pub struct Messages {
    head: &'static Head,
    stream: Handle,
}

/// What the library knows of an endpoint beside what its provider does.
#[derive(Clone, Copy)]
struct User {
    /// Whose it is; a head's number is used again.
    stream: Handle,
    info: Info,
    /// As the user has seen it.
    state: State,
    /// Connect indications heard and not answered.
    outstanding: usize,
    qlen: u32,
    /// Of ordinary messages, and of those in a band: the one in front is the rest of one taken in part.
    midway: [Option<Midway>; 2],
    /// Sending data, and expedited data, failed for want of room.
    blocked: [bool; 2],
}

#[derive(Clone, Copy, Default)]
struct Midway {
    more: bool,
    expedited: bool,
}

/// By ACCEPTOR_id. Entered inside a perimeter, so that a fork finds it free.
static USERS: Guarded<BTreeMap<u32, User>> = Guarded::new(BTreeMap::new());

/// struct strioctl
#[repr(C)]
struct StrIoctl {
    cmd: i32,
    timeout: i32,
    len: i32,
    data: *mut u8,
}

fn refuse<T>(tli: i32) -> Outcome<T> {
    Err(Refusal::new(tli))
}

/// A call of the stream head failed.
fn failed(errno: Errno) -> Refusal {
    Refusal::system(errno)
}

impl Messages {
    /// The endpoint behind a stream's descriptor, if it has timod on it and a transport below.
    pub fn at(fd: i32) -> Option<Messages> {
        let this = Messages::of(fd)?;
        if !this.has_timod() {
            return None;
        }
        if !this.is_known() {
            this.sync().ok()?;
        }
        Some(this)
    }

    /// As [`at`](Messages::at), pushing timod first where it is missing. TBADF for a stream without a transport, TSYSERR.
    pub fn begin(fd: i32) -> Outcome<Messages> {
        let this = Messages::of(fd).ok_or(Refusal::new(TBADF))?;
        if !this.has_timod() {
            local::push(this.head, b"timod", fd).map_err(failed)?;
        }
        if !this.is_known() {
            this.sync()?;
        }
        Ok(this)
    }

    pub(crate) fn of(fd: i32) -> Option<Messages> {
        let stream = table::stream(fd)?.with_tag(0);
        let head = head::get(stream)?;
        stream::endpoint_of(head)?;
        Some(Messages { head, stream })
    }

    /// The endpoint at the stream's bottom.
    pub(crate) fn bottom(&self) -> Option<&'static Endpoint> {
        stream::endpoint_of(self.head)
    }

    /// tirdwr above it has read(2) and write(2) in the place of the t_ calls.
    fn has_timod(&self) -> bool {
        let modules = local::modules(self.head);
        modules.iter().any(|module| module == "timod")
            && !modules.iter().any(|module| module == "tirdwr")
    }

    fn is_known(&self) -> bool {
        self.user().is_ok()
    }

    fn users<T>(&self, f: impl FnOnce(&mut BTreeMap<u32, User>) -> T) -> Option<T> {
        local::inside(self.head, |_| f(&mut USERS.enter()))
    }

    /// What the library knows.
    fn user(&self) -> Outcome<User> {
        let user = self.users(|users| users.get(&local::acceptor(self.head)).copied());
        user.flatten()
            .filter(|user| user.stream == self.stream)
            .ok_or(Refusal::new(TBADF))
    }

    fn change(&self, f: impl FnOnce(&mut User)) {
        self.users(|users| users.get_mut(&local::acceptor(self.head)).map(f));
    }

    /// A request is done.
    fn done(&self, request: Move, same: bool) {
        self.change(|user| {
            let (outstanding, before) = (user.outstanding, user.state);
            user.state = state::completed(before, request, outstanding, same).unwrap_or(before);
            let answers = matches!(request, Move::ConnRes)
                || request == Move::DisconReq && before == State::WresCind;
            if answers {
                user.outstanding = outstanding.saturating_sub(1);
            }
        });
    }

    /// The provider has told the user something.
    fn told(&self, event: Move) {
        self.change(|user| {
            user.state = state::next(user.state, event).unwrap_or(user.state);
            user.outstanding = user
                .outstanding
                .saturating_add_signed(event.outstanding() as isize);
        });
    }

    /// May this be asked now?
    fn may(&self, request: Move) -> Outcome<User> {
        let user = self.user()?;
        if !request.suits(user.info.serv) {
            return refuse(TNOTSUPPORT);
        }
        match state::next(self.seen_state(&user), request) {
            Some(_) => Ok(user),
            None => refuse(TOUTSTATE),
        }
    }

    /// The user's state. A connection accepted on this endpoint by means of another is news.
    fn seen_state(&self, user: &User) -> State {
        let idle = matches!(user.state, State::Unbnd | State::Idle);
        let connected = |s| matches!(s, State::DataXfer | State::WindOrdrel | State::WreqOrdrel);
        if idle
            && self
                .endpoint()
                .and_then(|e| e.state().ok())
                .is_some_and(connected)
        {
            self.change(|user| user.state = State::DataXfer);
            return State::DataXfer;
        }
        user.state
    }

    /// An ioctl of timod. The answer's primitive, or what it was refused for.
    fn ask(&self, cmd: i32, request: &[u8]) -> Outcome<Vec<u8>> {
        let mut buffer = request.to_vec();
        buffer.resize(PART.max(request.len()), 0);
        let mut ioctl = StrIoctl {
            cmd,
            timeout: -1,
            len: request.len() as i32,
            data: buffer.as_mut_ptr(),
        };
        let at = (&raw mut ioctl).expose_provenance();
        // SAFETY: the request and its buffer, which is as large as any answer.
        let result = unsafe { control::ioctl(self.head, -1, I_STR, at) }.map_err(failed)?;
        match result & 0xff {
            0 => {
                buffer.truncate(ioctl.len.max(0) as usize);
                Ok(buffer)
            }
            TSYSERR => Err(Refusal::system(result >> 8 & 0xff)),
            tli => refuse(tli),
        }
    }

    /// Sends a message down; TFLOW while there is no room.
    fn put(&self, request: &Request<'_>, data: Option<&[u8]>, at: Priority) -> Outcome<()> {
        self.head.check_writable().map_err(failed)?;
        match local::put(self.head, Some(&request.encode()), data, at) {
            Ok(true) => Ok(()),
            Ok(false) => refuse(TFLOW),
            Err(e) => Err(failed(e)),
        }
    }

    /// Sends a request and waits for its acknowledgement.
    fn request(&self, request: &Request<'_>, data: &[u8]) -> Outcome<()> {
        let data = (!data.is_empty()).then_some(data);
        // The end of a connection does not wait for room behind its data.
        let at = match request {
            Request::Discon { .. } => Priority::High,
            _ => Priority::Band(0),
        };
        loop {
            match self.put(request, data, at) {
                Err(Refusal { tli: TFLOW, .. }) => {
                    self.wait(libc::POLLOUT as u32).map_err(interrupted)?
                }
                done => break done?,
            }
        }
        loop {
            self.head.check_readable().map_err(failed)?;
            let ack = self.look(|inlet, front| match front.is_high() {
                true => take_all(inlet, front).map(Some),
                false => Ok(None),
            })?;
            let Some((ack, _)) = ack else {
                self.wait(libc::POLLPRI as u32).map_err(interrupted)?;
                continue;
            };
            match Indication::decode(&ack) {
                Ok(Indication::OkAck { prim }) if prim == request.prim() => return Ok(()),
                Ok(Indication::ErrorAck { prim, tli, unix }) if prim == request.prim() => {
                    return Err(Refusal { tli, unix });
                }
                // Of a request that was interrupted.
                _ => {}
            }
        }
    }

    /// Runs `f` on the message in front, if there is one.
    fn look<T>(
        &self,
        mut f: impl FnMut(&mut dyn Inlet, Front) -> Result<Option<T>, head::inlet::Trouble>,
    ) -> Outcome<Option<T>> {
        let found = control::look(self.head, |inlet| match inlet.front()? {
            Some(front) => f(inlet, front),
            None => Ok(None),
        });
        found.map_err(failed)
    }

    /// The message in front and its primitive, acknowledgements aside.
    fn front(&self) -> Option<(Front, Option<i32>)> {
        let seen = self.look(|inlet, front| {
            let mut prim = [0; 4];
            let has = front.control.is_some_and(|len| len >= prim.len());
            if has {
                inlet.copy(0, &mut prim);
            }
            Ok(Some((front, has.then_some(i32::from_ne_bytes(prim)))))
        });
        seen.ok()
            .flatten()
            .filter(|(front, _)| front.kind != M_PCPROTO)
    }

    /// Why there is nothing to receive.
    fn nothing(&self) -> Refusal {
        let error = self.head.check_readable().err();
        // Data may have come meanwhile.
        let look = self
            .peek()
            .is_some_and(|event| !matches!(event, Event::Data | Event::ExData));
        error.map_or(Refusal::new(if look { TLOOK } else { TNODATA }), failed)
    }

    /// Drops what the head still has of a connection that is over for the provider.
    fn drop_connection(&self) -> Outcome<()> {
        while self
            .front()
            .is_some_and(|(_, prim)| prim != Some(T_CONN_IND))
        {
            self.look(|inlet, front| take_all(inlet, front).map(Some))?;
        }
        Ok(())
    }

    /// The state that a user who has not read what waits at the head would be in.
    fn unseen(&self, provider: State, serv: i32) -> (State, usize) {
        let outstanding = self.endpoint().map_or(0, |e| e.requests().0);
        let Some((_, prim)) = self.front().filter(|_| serv != T_CLTS) else {
            return (provider, outstanding);
        };
        let before = match (prim, provider) {
            (Some(T_CONN_CON), _) => State::WconCreq,
            (Some(T_CONN_IND), _) => {
                let heard = outstanding.saturating_sub(self.waiting());
                return (
                    if heard > 0 {
                        State::WresCind
                    } else {
                        State::Idle
                    },
                    heard,
                );
            }
            (Some(T_ORDREL_IND), State::Idle) => State::WindOrdrel,
            (Some(T_ORDREL_IND), _) => State::DataXfer,
            (_, State::Idle | State::WreqOrdrel) => State::DataXfer,
            (_, state) => state,
        };
        (before, outstanding)
    }

    /// How many messages wait.
    fn waiting(&self) -> usize {
        let count = Cell::new(0);
        let counted = control::look(self.head, |inlet| {
            count.set(0);
            inlet.each(&mut |_| count.set(count.get() + 1))
        });
        counted.map_or(0, |()| count.get())
    }

    fn addresses(&self) -> Outcome<[Option<Vec<u8>>; 2]> {
        let ack = self.ask(TI_GETADDRS, &Request::Addr.encode())?;
        let some = |part: &[u8]| (!part.is_empty()).then(|| part.to_vec());
        match Indication::decode(&ack) {
            Ok(Indication::AddrAck { local, remote }) => Ok([some(local), some(remote)]),
            _ => refuse(TPROTO),
        }
    }
}

/// Takes a message, both parts.
fn take_all(
    inlet: &mut dyn Inlet,
    front: Front,
) -> Result<(Vec<u8>, Vec<u8>), head::inlet::Trouble> {
    let mut control = vec![0; front.control.unwrap_or(0)];
    let mut data = vec![0; front.data.unwrap_or(0)];
    inlet.copy(0, &mut control);
    inlet.copy(control.len(), &mut data);
    inlet.take(front.control, front.data)?;
    Ok((control, data))
}

/// Takes the control part, and as much of the data as there is room for; how much that is.
fn take_into(
    inlet: &mut dyn Inlet,
    front: Front,
    into: &[iovec],
) -> Result<usize, head::inlet::Trouble> {
    let skip = front.control.unwrap_or(0);
    let mut left = front.data.unwrap_or(0);
    let mut n = 0;
    for part in into {
        let len = part.iov_len.min(left);
        if len > 0 {
            // SAFETY: the caller's buffer.
            inlet.copy(skip + n, unsafe {
                core::slice::from_raw_parts_mut(part.iov_base.cast(), len)
            });
        }
        n += len;
        left -= len;
    }
    inlet.take(front.control, front.data.map(|_| n))?;
    Ok(n)
}

/// The bytes of a vector from `from` on, at most `most`.
fn gather(data: &[iovec], mut from: usize, most: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for part in data {
        let skip = from.min(part.iov_len);
        from -= skip;
        let len = (part.iov_len - skip).min(most - all.len());
        if len > 0 {
            // SAFETY: the caller's buffer.
            all.extend_from_slice(unsafe {
                core::slice::from_raw_parts(part.iov_base.cast::<u8>().add(skip), len)
            });
        }
    }
    all
}

impl Port for Messages {
    fn info(&self) -> Outcome<Info> {
        let user = self.user()?;
        Ok(Info {
            state: self.seen_state(&user).number(),
            ..user.info
        })
    }

    fn state(&self) -> Outcome<i32> {
        Ok(state::xti_state(self.seen_state(&self.user()?)))
    }

    fn is_nonblocking(&self) -> bool {
        opening::is_nonblocking(self.head)
    }

    fn bind(&self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        let addr = addr.unwrap_or(&[]);
        let ack = self.ask(TI_BIND, &Request::Bind { addr, qlen }.encode())?;
        let Ok(Indication::BindAck { addr, qlen }) = Indication::decode(&ack) else {
            return refuse(TPROTO);
        };
        self.change(|user| user.qlen = qlen);
        self.done(Move::BindReq, false);
        Ok((addr.to_vec(), qlen))
    }

    fn unbind(&self) -> Outcome<()> {
        self.ask(TI_UNBIND, &Request::Unbind.encode())?;
        self.change(|user| user.qlen = 0);
        self.done(Move::UnbindReq, false);
        Ok(())
    }

    fn local(&self) -> Outcome<Option<Vec<u8>>> {
        self.addresses().map(|[local, _]| local)
    }

    fn remote(&self) -> Outcome<Option<Vec<u8>>> {
        self.addresses().map(|[_, remote]| remote)
    }

    fn connect(&self, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()> {
        self.may(Move::ConnReq)?;
        self.request(&Request::Conn { dest: to, opts }, data)?;
        self.done(Move::ConnReq, false);
        Ok(())
    }

    fn accept(&self, seq: i32, on: &dyn Port, opts: &[u8], data: &[u8]) -> Outcome<()> {
        self.may(Move::ConnRes)?;
        let same = on.acceptor() == self.acceptor();
        match (on.acceptor(), on.endpoint(), self.endpoint()) {
            (Some(acceptor), _, _) => {
                self.request(
                    &Request::ConnRes {
                        acceptor,
                        opts,
                        seq,
                    },
                    data,
                )?;
                if !same {
                    self.users(|users| {
                        users
                            .get_mut(&acceptor)
                            .map(|user| user.state = State::DataXfer)
                    });
                }
            }
            // In direct mode it has no stream to be named by.
            (None, Some(theirs), Some(ours)) => ours.accept(seq, theirs, opts, data)?,
            _ => return refuse(TBADF),
        }
        self.done(Move::ConnRes, same);
        Ok(())
    }

    fn disconnect(&self, seq: Option<i32>, data: &[u8]) -> Outcome<()> {
        self.may(Move::DisconReq)?;
        let request = Request::Discon {
            seq: seq.unwrap_or(NO_SEQUENCE),
        };
        match self.request(&request, data) {
            // It is over for the provider, which the user has not seen.
            Err(Refusal { tli: TOUTSTATE, .. }) if seq.is_none() => self.drop_connection()?,
            done => done?,
        }
        self.change(|user| user.midway = [None; 2]);
        self.done(Move::DisconReq, false);
        Ok(())
    }

    fn release(&self) -> Outcome<()> {
        self.may(Move::OrdrelReq)?;
        // Behind the data, for which there was room.
        self.head.check_writable().map_err(failed)?;
        local::put_last(self.head, &Request::Ordrel.encode()).map_err(failed)?;
        if stream::has_dropped(self.head) {
            return refuse(TLOOK);
        }
        self.done(Move::OrdrelReq, false);
        Ok(())
    }

    fn requests(&self) -> (usize, u32) {
        self.user()
            .map_or((0, 0), |user| (user.outstanding, user.qlen))
    }

    fn peek(&self) -> Option<Event> {
        let (front, prim) = self.front()?;
        let Some(prim) = prim else {
            return Some(self.rest(&front));
        };
        Some(match prim {
            T_CONN_IND => Event::Listen,
            T_CONN_CON => Event::Connect,
            T_DISCON_IND => Event::Disconnect,
            T_UDERROR_IND => Event::UdErr,
            T_ORDREL_IND => Event::OrdRel,
            T_EXDATA_IND => Event::ExData,
            _ => Event::Data,
        })
    }

    fn take(&self) -> Option<Arrived> {
        if matches!(self.peek()?, Event::Data | Event::ExData) {
            return None;
        }
        let (control, data) = self
            .look(|inlet, front| take_all(inlet, front).map(Some))
            .ok()
            .flatten()?;
        let vec = |part: &[u8]| part.to_vec();
        Some(match Indication::decode(&control).ok()? {
            Indication::ConnInd { src, opts, seq } => {
                self.told(Move::ConnInd);
                Arrived::Request {
                    seq,
                    from: vec(src),
                    opts: vec(opts),
                    data,
                }
            }
            Indication::ConnCon { res, opts } => {
                self.told(Move::ConnCon);
                Arrived::Confirmed {
                    by: vec(res),
                    opts: vec(opts),
                    data,
                }
            }
            Indication::DisconInd { reason, seq } => {
                let outstanding = self.user().map_or(0, |user| user.outstanding);
                self.told(Move::discon_ind(outstanding));
                Arrived::Disconnected { reason, seq, data }
            }
            Indication::OrdrelInd => {
                self.told(Move::OrdrelInd);
                Arrived::Released { data }
            }
            Indication::UderrorInd { dest, opts, error } => Arrived::Undelivered {
                to: vec(dest),
                opts: vec(opts),
                error,
            },
            _ => return None,
        })
    }

    fn send(&self, data: &[iovec], how: Sending) -> Outcome<usize> {
        let user = self.may(if how.expedited {
            Move::ExdataReq
        } else {
            Move::DataReq
        })?;
        let most = if user.info.tidu > 0 {
            PIECE.min(user.info.tidu as usize)
        } else {
            PIECE
        };
        let total: usize = data.iter().map(|part| part.iov_len).sum();
        let mut sent = 0;
        loop {
            if self.peek() == Some(Event::Disconnect) {
                return if sent > 0 { Ok(sent) } else { refuse(TLOOK) };
            }
            let piece = gather(data, sent, most);
            let more = how.more || sent + piece.len() < total;
            let (request, band) = match how.expedited {
                true => (Request::Exdata { more }, EXPEDITED),
                false => (Request::Data { more }, 0),
            };
            match self.put(&request, Some(&piece), Priority::Band(band)) {
                Ok(()) if stream::has_dropped(self.head) => {
                    return match self.peek() {
                        _ if sent > 0 => Ok(sent),
                        Some(_) => refuse(TLOOK),
                        // The user knows of the end.
                        None => refuse(TOUTSTATE),
                    };
                }
                Ok(()) => sent += piece.len(),
                Err(_) if sent > 0 => return Ok(sent),
                Err(e) => {
                    let full = e.tli == TFLOW;
                    self.change(|user| user.blocked[how.expedited as usize] |= full);
                    return Err(e);
                }
            }
            if sent == total {
                return Ok(sent);
            }
        }
    }

    fn unblocked(&self) -> Option<bool> {
        let user = self.user().ok()?;
        let state = self.seen_state(&user);
        [Move::DataReq, Move::UnitdataReq]
            .into_iter()
            .find(|&m| m.suits(user.info.serv) && state::next(state, m).is_some())?;
        let expedited = [true, false].into_iter().find(|&expedited| {
            let band = if expedited { EXPEDITED } else { 0 };
            user.blocked[expedited as usize] && local::can_put(self.head, band)
        })?;
        self.change(|user| user.blocked[expedited as usize] = false);
        Some(expedited)
    }

    fn receive(&self, into: &[iovec]) -> Outcome<Received> {
        let user = self.may(Move::DataInd)?;
        let mut got: Option<Received> = None;
        let mut midway = user.midway;
        // All of a data unit that has come, and that there is room for; of expedited ones a piece.
        while let Some((len, rest, whole)) = self.look(|inlet, front| {
            let midway = &mut midway[is_banded(&front)];
            let whole = match data_ind(inlet, &front) {
                Some(whole) => whole,
                None if front.control.is_none() && !front.is_high() => midway.unwrap_or_default(),
                None => return Ok(None),
            };
            if got.is_some() && whole.expedited {
                return Ok(None);
            }
            let (left, n) = crate::calls::rest(into, got.map_or(0, |got| got.len));
            let len = take_into(inlet, front, &left[..n])?;
            let rest = len < front.data.unwrap_or(0);
            *midway = rest.then_some(whole);
            Ok(Some((len, rest, whole)))
        })? {
            let all = Received {
                len: got.map_or(0, |got| got.len) + len,
                more: rest || whole.more,
                expedited: whole.expedited,
            };
            got = Some(all);
            let room: usize = into.iter().map(|part| part.iov_len).sum();
            if !all.more || all.len == room || all.expedited {
                break;
            }
        }
        self.change(|user| user.midway = midway);
        got.ok_or_else(|| self.nothing())
    }

    fn send_to(&self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        let user = self.may(Move::UnitdataReq)?;
        let total: usize = data.iter().map(|part| part.iov_len).sum();
        if user.info.tsdu > 0 && total > user.info.tsdu as usize {
            return refuse(TBADDATA);
        }
        // T_UNITDATA_REQ has no acknowledgement that could say so.
        match self.endpoint() {
            Some(end) => end.check_destination(to)?,
            None if to.is_empty() => return refuse(TBADADDR),
            None => {}
        }
        if self.peek() == Some(Event::UdErr) {
            return refuse(TLOOK);
        }
        let sent = self.put(
            &Request::Unitdata { dest: to, opts },
            Some(&gather(data, 0, total)),
            Priority::Band(0),
        );
        let full = sent.is_err_and(|e| e.tli == TFLOW);
        self.change(|user| user.blocked[0] |= full);
        sent
    }

    fn receive_from(&self, into: &mut Datagram<'_>) -> Outcome<()> {
        let user = self.may(Move::UnitdataInd)?;
        let got = self.look(|inlet, front| {
            let mut control = vec![0; front.control.unwrap_or(0)];
            inlet.copy(0, &mut control);
            (into.addr_len, into.opts_len) = (0, 0);
            match Indication::decode(&control) {
                Ok(Indication::UnitdataInd { src, opts }) if !front.is_high() => {
                    if src.len() > into.addr.len() && !into.addr.is_empty()
                        || opts.len() > into.opts.len() && !into.opts.is_empty()
                    {
                        inlet.take(front.control, front.data)?;
                        return Ok(Some(None));
                    }
                    into.addr_len = fill(into.addr, src);
                    into.opts_len = fill(into.opts, opts);
                }
                _ if front.control.is_none() && !front.is_high() && user.midway[0].is_some() => {}
                _ => return Ok(None),
            }
            let len = take_into(inlet, front, into.data)?;
            Ok(Some(Some((len, len < front.data.unwrap_or(0)))))
        })?;
        match got {
            None => Err(self.nothing()),
            Some(None) => refuse(TBUFOVFLW),
            Some(Some((len, rest))) => {
                (into.data_len, into.more) = (len, rest);
                self.change(|user| user.midway[0] = rest.then_some(Midway::default()));
                Ok(())
            }
        }
    }

    fn negotiate(&self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let flags = flags as i32;
        let ack = self.ask(TI_OPTMGMT, &Request::Optmgmt { flags, opts }.encode())?;
        match Indication::decode(&ack) {
            Ok(Indication::OptmgmtAck { flags, opts }) => Ok((flags as u32, opts.to_vec())),
            _ => refuse(TPROTO),
        }
    }

    fn sync(&self) -> Outcome<()> {
        if let Some(e) = self.endpoint() {
            e.sync()?;
        }
        let all = 7u32;
        let ack = self.ask(TI_SYNC, &all.to_ne_bytes())?;
        let Ok(Indication::InfoAck(info)) = Indication::decode(&ack) else {
            return refuse(TPROTO);
        };
        let provider = State::from_number(info.state).unwrap_or_default();
        let known = self.user().ok();
        let before = stream::known_before(self.head);
        let something = self.front().is_some();
        let (state, outstanding) = match (known, before) {
            // Something told waits for its call.
            (Some(user), _) if something => (self.seen_state(&user), user.outstanding),
            (None, Some(before)) if something => (before.state, before.outstanding),
            _ => self.unseen(provider, info.serv),
        };
        let qlen = self.endpoint().map_or(0, |e| e.requests().1);
        let user = User {
            stream: self.stream,
            info,
            state,
            outstanding,
            qlen,
            midway: known.map(|user| user.midway).unwrap_or_default(),
            blocked: known
                .map(|user| user.blocked)
                .or(before.map(|before| before.blocked))
                .unwrap_or_default(),
        };
        let kept = self.users(|users| users.insert(local::acceptor(self.head), user));
        kept.map(drop).ok_or(Refusal::new(TBADF))
    }

    fn wait(&self, events: u32) -> Result<(), Errno> {
        let always = (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) as u32;
        let seen = self.head.version();
        if self.head.events(events) & (events | always) != 0 {
            return Ok(());
        }
        local::wait_for_change(self.head, seen, None)
    }

    fn endpoint(&self) -> Option<&'static Endpoint> {
        stream::endpoint_of(self.head)
    }

    fn acceptor(&self) -> Option<u32> {
        Some(local::acceptor(self.head))
    }
}

impl Messages {
    /// The front is the rest of a data message, or was written without T_DATA_IND.
    fn rest(&self, front: &Front) -> Event {
        let user = self.user().ok();
        let midway = user.and_then(|user| user.midway[is_banded(front)]);
        match midway.unwrap_or_default().expedited {
            true => Event::ExData,
            false => Event::Data,
        }
    }
}

/// The place in `midway`: what is in a band overtakes the rest of what is not.
fn is_banded(front: &Front) -> usize {
    usize::from(front.band > 0)
}

/// T_DATA_IND or T_EXDATA_IND in front.
fn data_ind(inlet: &mut dyn Inlet, front: &Front) -> Option<Midway> {
    let mut control = vec![0; front.control.unwrap_or(0)];
    inlet.copy(0, &mut control);
    match Indication::decode(&control) {
        Ok(Indication::DataInd { more }) => Some(Midway {
            more,
            expedited: false,
        }),
        Ok(Indication::ExdataInd { more }) => Some(Midway {
            more,
            expedited: true,
        }),
        Ok(Indication::OptdataInd {
            more, expedited, ..
        }) => Some(Midway { more, expedited }),
        _ => None,
    }
}

/// How many bytes of `part` were wanted.
fn fill(into: &mut [u8], part: &[u8]) -> usize {
    let n = part.len().min(into.len());
    into[..n].copy_from_slice(&part[..n]);
    n
}
