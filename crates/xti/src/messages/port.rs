//! The t_ calls as messages.

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint::Endpoint;
use headwater_endpoints::stream::{self, TI_BIND, TI_OPTMGMT, TI_SYNC, TI_UNBIND};
use headwater_host::stand_in;
use headwater_host::sys::Errno;
use headwater_providers::provider::{
    Arrived, Datagram, Event, Outcome, Received, Sending, nothing,
};
use headwater_streams::head::inlet::{Front, Sink};
use headwater_streams::head::message::Priority;
use headwater_streams::head::write::Source;
use headwater_streams::head::{local, opening};
use headwater_tpi::error::*;
use headwater_tpi::prim::*;
use headwater_tpi::state::{self, Event as Move, State};
use headwater_tpi::{Indication, Info, Refusal, Request, refuse};
use libc::iovec;

use super::exchange::{data_ind, fill, gather, take_all, take_into};
use super::{Messages, Midway, USERS, User};
use crate::port::Port;

/// Data of one T_DATA_REQ at most.
const PIECE: usize = 16 << 10;
/// Expedited data overtakes in this band.
const EXPEDITED: u8 = 1;

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
                let request = Request::ConnRes {
                    acceptor,
                    opts,
                    seq,
                };
                self.request(&request, data)?;
                if !same {
                    let connected = |user: &mut User| user.state = State::DataXfer;
                    self.users(|users| users.get_mut(&acceptor).map(connected));
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
        self.head.check_writable().map_err(Refusal::system)?;
        local::put_last(self.head, &Request::Ordrel.encode()).map_err(Refusal::system)?;
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
        stand_in::glance();
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
        let mut source = Source::new(data);
        let mut sent = 0;
        loop {
            if self.peek() == Some(Event::Disconnect) {
                return if sent > 0 { Ok(sent) } else { refuse(TLOOK) };
            }
            let piece = gather(&mut source, most.min(total - sent));
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
        // On sctp_t nothing more can be sent once the peer has released.
        let is_sctp = |e: &Endpoint| matches!(e.device(), Some(Device::Sctp | Device::Sctp6));
        if state == State::WreqOrdrel && self.endpoint().is_some_and(is_sctp) {
            return None;
        }
        let expedited = [true, false].into_iter().find(|&expedited| {
            let band = if expedited { EXPEDITED } else { 0 };
            user.blocked[expedited as usize] && local::can_put(self.head, band)
        })?;
        self.change(|user| user.blocked[expedited as usize] = false);
        Some(expedited)
    }

    fn receive(&self, into: &[iovec]) -> Outcome<Received> {
        self.may(Move::DataInd)?;
        let mut got: Option<Received> = None;
        // All of a data unit that has come, and that there is room for; of expedited ones a piece.
        while let Some((len, rest, whole)) = self.look(|inlet, front| {
            // Another thread may have taken the message's beginning, until this look.
            let midway = self.midway(&front);
            let whole = match data_ind(inlet, &front) {
                Some(whole) => whole,
                None if front.control.is_none() && !front.is_high() => midway.unwrap_or_default(),
                None => return Ok(None),
            };
            if got.is_some() && whole.expedited {
                return Ok(None);
            }
            let len = take_into(
                inlet,
                front,
                Sink::behind(into, got.map_or(0, |got| got.len)),
            )?;
            let rest = len < front.data.unwrap_or(0);
            if rest || midway.is_some() {
                self.set_midway(&front, rest.then_some(whole));
            }
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
            Some(&gather(&mut Source::new(data), total)),
            Priority::Band(0),
        );
        let full = sent.is_err_and(|e| e.tli == TFLOW);
        self.change(|user| user.blocked[0] |= full);
        sent
    }

    fn receive_from(&self, into: &mut Datagram<'_>) -> Outcome<()> {
        self.may(Move::UnitdataInd)?;
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
                _ if front.control.is_none()
                    && !front.is_high()
                    && self.midway(&front).is_some() => {}
                _ => return Ok(None),
            }
            let len = take_into(inlet, front, Sink::new(into.data))?;
            let rest = len < front.data.unwrap_or(0);
            self.set_midway(&front, rest.then_some(Midway::default()));
            Ok(Some(Some((len, rest))))
        })?;
        match got {
            None => Err(self.nothing()),
            Some(None) => refuse(TBUFOVFLW),
            Some(Some((len, rest))) => {
                (into.data_len, into.more) = (len, rest);
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
        let Ok(Indication::InfoAck { info }) = Indication::decode(&ack) else {
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
        let kept = self.users(|users| {
            // Of now: another thread may have received or sent since, by its first call too.
            let now = self.known_in(users);
            let midway = now.map(|now| now.midway).unwrap_or_default();
            let blocked = now.map(|now| now.blocked);
            let blocked = blocked.or(before.map(|before| before.blocked));
            let user = User {
                stream: self.stream,
                info,
                state,
                outstanding,
                qlen,
                midway,
                blocked: blocked.unwrap_or_default(),
            };
            users.insert(local::acceptor(self.head), user)
        });
        kept.map(drop).ok_or(Refusal::new(TBADF))
    }

    fn wait(&self, events: u32) -> Result<(), Errno> {
        self.wait_for(events)
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

    /// Why there is nothing to receive.
    fn nothing(&self) -> Refusal {
        let error = self.head.check_readable().err();
        // Data may have come meanwhile.
        let look = self
            .peek()
            .is_some_and(|event| !matches!(event, Event::Data | Event::ExData));
        error.map_or(nothing(look), Refusal::system)
    }
}

/// Inside a look, and so inside the stream's perimeter.
impl Messages {
    /// Of the data message whose rest this is, if its beginning has been received.
    fn midway(&self, front: &Front) -> Option<Midway> {
        let users = USERS.enter();
        let user = self.known_in(&users);
        user.and_then(|user| user.midway[is_banded(front)])
    }

    fn set_midway(&self, front: &Front, midway: Option<Midway>) {
        if let Some(user) = USERS.enter().get_mut(&local::acceptor(self.head)) {
            user.midway[is_banded(front)] = midway;
        }
    }
}

/// The place in `midway`: what is in a band overtakes the rest of what is not.
fn is_banded(front: &Front) -> usize {
    usize::from(front.band > 0)
}
