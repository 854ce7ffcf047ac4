//! The TPI driver: what comes down from the user.

use core::ffi::c_int;
use std::cell::{Cell, RefCell};

use headwater_host::sync::{AtomicU32, Ordering};
use headwater_providers::provider::{Outcome, Sending};
use headwater_streams::ddi::owned::Message;
use headwater_streams::ddi::{FLUSHRW, M_DATA, M_FLUSH, M_IOCTL, M_PCPROTO, M_PROTO};
use headwater_streams::drivers::reply;
use headwater_streams::exec::queue::Flush;
use headwater_streams::exec::{Info, Module, OpenFlag, Queue};
use headwater_tpi::error::*;
use headwater_tpi::prim::*;
use headwater_tpi::state::{self, State};
use headwater_tpi::{Indication, Refusal, Request};
use libc::iovec;

use super::watch::Watch;
use super::{Known, Open, STREAMS, acceptor, change, convert, head_of, id, proto};
use crate::device;
use crate::endpoint::{self, Endpoint};

/// What overtakes data is in this band: expedited data, and what became of datagrams, of which the user is to know before he sends
/// more.
pub(super) const URGENT: u8 = 1;

/// The driver of the device at place `D` in [`device::ALL`].
pub struct Tpi<const D: usize>(Driver);

/// What is the same for all of them.
pub struct Driver {
    pub end: &'static Endpoint,
    pub watch: Watch,
    /// Where data from the endpoint goes first.
    pub scratch: RefCell<Vec<u8>>,
    /// Indications are being sent up.
    pub raising: Cell<bool>,
    /// T_CONN_CON was sent up, and may not have been taken yet; expedited data was sent up behind it.
    pub fresh: Cell<bool>,
    pub behind: Cell<bool>,
    /// T_DISCON_IND of a connection was sent up: requests that crossed it are no mistakes.
    pub crossed: Cell<bool>,
    /// See [`Open`].
    dropped: Cell<bool>,
    /// How many times in a row it was woken for nothing.
    pub barren: Cell<u32>,
    /// It will be called at some time.
    timed: Cell<bool>,
}

impl<const D: usize> Module for Tpi<D> {
    const INFO: Info = Info {
        hiwat: 64 << 10,
        lowat: 16 << 10,
        ..Info::new(id::TPI + D as u16, device::NAMES[D])
    };
    const RSRV: bool = true;
    const WSRV: bool = true;

    fn open(q: Queue, dev: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        static MINORS: AtomicU32 = AtomicU32::new(0);
        if flag == OpenFlag::Module {
            return Err(libc::EINVAL);
        }
        if flag == OpenFlag::Clone {
            let minor = MINORS.fetch_add(1, Ordering::Relaxed) & 0xf_ffff;
            *dev = libc::makedev(libc::major(*dev), minor);
        }
        let (end, known) = match convert::given() {
            Some(end) => (end, known(end)),
            None => (endpoint::detached(device::ALL[D].1).map_err(errno)?, None),
        };
        Ok(Tpi(Driver::new(end, known, q)))
    }

    fn started(&self, q: Queue) {
        q.looks();
        self.look(q, true);
    }

    fn close(&self, q: Queue, _: c_int) {
        STREAMS.enter().remove(&acceptor(q));
        if self.0.end.is_last_holder() && self.0.has_unread(q) {
            // As where it had stayed in the connection: its loss is the peer's to know.
            let _ = self.0.end.disconnect(None, &[]);
        }
        self.0.watch.close(self.0.end);
        self.0.end.let_go();
    }

    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_FLUSH => reply::flush_at_end(q, m),
            M_IOCTL => reply::refuse(q, m, libc::EINVAL),
            M_DATA => self.0.in_order(q, m),
            M_PROTO | M_PCPROTO => self.0.request(q, m),
            _ => {}
        }
        self.look(q.read(), false);
    }

    fn wsrv(&self, q: Queue) {
        while let Some(m) = q.getq() {
            if let Some(rest) = self.0.send(q, m) {
                q.putbq(rest);
                break;
            }
        }
        self.look(q.read(), false);
    }

    fn rsrv(&self, q: Queue) {
        self.look(q, false);
    }

    fn timer(&self, q: Queue, _: usize) {
        self.0.timed.set(false);
        if self.0.watch.is_wanted() {
            self.look(q, true);
        }
    }
}

impl<const D: usize> Tpi<D> {
    /// Moves what can be moved, and has itself woken for the rest. `again`: whatever was armed.
    fn look(&self, q: Queue, again: bool) {
        if let Some(later) = self.0.look(q, again)
            && !self.0.timed.replace(true)
        {
            q.timeout::<Self>(later, 0);
        }
    }
}

/// For open(2).
fn errno(refusal: Refusal) -> c_int {
    match refusal.tli {
        TSYSERR => refusal.unix,
        TACCES => libc::EACCES,
        _ => libc::EIO,
    }
}

/// Of an endpoint that becomes a stream.
fn known(end: &Endpoint) -> Option<Known> {
    Some(Known {
        state: end.state().ok()?,
        outstanding: end.requests().0,
        blocked: end.blocked(),
    })
}

/// TLI's word for an error of a request: a provider does not know TLOOK.
fn told(refusal: Refusal) -> Refusal {
    match refusal.tli {
        TLOOK => Refusal::new(TOUTSTATE),
        _ => refusal,
    }
}

pub(super) fn ack(indication: &Indication<'_>) -> Message {
    proto(indication.is_high(), &indication.encode())
}

fn vector(bytes: &[u8]) -> iovec {
    headwater_host::sys::buffer(bytes.as_ptr(), bytes.len())
}

/// More parts than this are copied together.
const MOST_PARTS: usize = 8;

/// Runs `f` on the data of a message.
fn with_data<T>(m: &Message, f: impl FnOnce(&[iovec], usize) -> T) -> T {
    let mut parts = [vector(&[]); MOST_PARTS];
    let mut n = 0;
    for (_, bytes) in m
        .blocks()
        .filter(|(kind, bytes)| *kind == M_DATA && !bytes.is_empty())
    {
        if n == MOST_PARTS {
            let all = m.to_data();
            return f(&[vector(&all)], all.len());
        }
        parts[n] = vector(bytes);
        n += 1;
    }
    f(&parts[..n], parts[..n].iter().map(|p| p.iov_len).sum())
}

/// The message without the first `n` bytes of its data.
fn without(mut m: Message, n: usize) -> Message {
    if m.kind() == M_DATA {
        m.adjust(n as isize);
        return m;
    }
    if let Some(mut data) = m.take_rest() {
        data.adjust(n as isize);
        m.append(data);
    }
    m
}

impl Driver {
    fn new(end: &'static Endpoint, known: Option<Known>, q: Queue) -> Driver {
        let head = head_of(q);
        let watch = Watch::new(head);
        let open = Open {
            end,
            wake: watch.wake.clone(),
            known,
            dropped: false,
        };
        STREAMS.enter().insert(acceptor(q), open);
        Driver {
            end,
            watch,
            scratch: Default::default(),
            raising: Cell::new(false),
            fresh: Cell::new(false),
            behind: Cell::new(false),
            crossed: Cell::new(false),
            dropped: Cell::new(false),
            barren: Cell::new(0),
            timed: Cell::new(false),
        }
    }

    fn refuse(&self, q: Queue, prim: i32, refusal: Refusal) {
        let Refusal { tli, unix } = told(refusal);
        q.qreply(ack(&Indication::ErrorAck { prim, tli, unix }));
    }

    /// The stream is of no more use: a request without an acknowledgement was a mistake.
    fn fatal(&self, q: Queue) {
        let errno = libc::EPROTO as u8;
        q.qreply(Message::error(errno, errno));
    }

    /// A primitive.
    fn request(&self, q: Queue, m: Message) {
        let request = match Request::decode(m.bytes()) {
            Ok(request) => request,
            Err(bad) => match bad.prim() {
                Some(prim) => return self.refuse(q, prim, bad.refusal()),
                // T_ERROR_ACK could name none.
                None => return self.fatal(q),
            },
        };
        let prim = request.prim();
        match request {
            Request::Info | Request::Capability { .. } | Request::Addr => {}
            _ => change(q, |open| open.known = None),
        }
        let done = |()| ack(&Indication::OkAck { prim });
        let answer = match request {
            Request::Data { .. }
            | Request::Exdata { .. }
            | Request::OptData { .. }
            | Request::Unitdata { .. }
            | Request::Ordrel => return self.in_order(q, m),
            Request::Info => (self.end.info()).map(|info| ack(&Indication::InfoAck { info })),
            Request::Capability { bits } => self.end.info().map(|info| {
                let bits = bits & (TC1_INFO | TC1_ACCEPTOR_ID);
                let wants = |bit| bits & bit != 0;
                let named = wants(TC1_ACCEPTOR_ID).then_some(q);
                ack(&Indication::CapabilityAck {
                    bits,
                    info: Some(info).filter(|_| wants(TC1_INFO)).unwrap_or_default(),
                    acceptor: named.map_or(0, acceptor),
                })
            }),
            Request::Bind { addr, qlen } => {
                let bound = self.end.bind(Some(addr).filter(|a| !a.is_empty()), qlen);
                bound.map(|(addr, qlen)| ack(&Indication::BindAck { addr: &addr, qlen }))
            }
            Request::Unbind => self.end.unbind().map(|()| self.flush(q)).map(done),
            Request::Conn { dest, opts } => {
                self.crossed.set(false);
                self.end.connect(dest, opts, &m.to_data()).map(done)
            }
            Request::ConnRes {
                acceptor,
                opts,
                seq,
            } => self.accept(seq, acceptor, opts, &m.to_data()).map(done),
            Request::Discon { seq } => self.disconnect(q, seq, &m.to_data()).map(done),
            Request::Optmgmt { flags, opts } => {
                let answer = self.end.negotiate(flags as u32, opts);
                answer.map(|(flags, opts)| {
                    let flags = flags as i32;
                    ack(&Indication::OptmgmtAck { flags, opts: &opts })
                })
            }
            Request::Addr => {
                let part =
                    |address: Outcome<Option<Vec<u8>>>| address.ok().flatten().unwrap_or_default();
                let (local, remote) = (&part(self.end.local()), &part(self.end.remote()));
                Ok(ack(&Indication::AddrAck { local, remote }))
            }
        };
        match answer {
            Ok(answer) => q.qreply(answer),
            Err(refusal) => self.refuse(q, prim, refusal),
        }
    }

    /// What was on its way is void, above too.
    fn flush(&self, q: Queue) {
        q.write().flushq(Flush::Data);
        q.read().putnextctl1(M_FLUSH, FLUSHRW);
    }

    fn accept(&self, seq: i32, acceptor: u32, opts: &[u8], data: &[u8]) -> Outcome<()> {
        let info = self.end.info()?;
        if state::Event::ConnRes.suits(info.serv)
            && state::next(self.end.state()?, state::Event::ConnRes).is_none()
        {
            return Err(Refusal::new(TOUTSTATE));
        }
        let wake = {
            let streams = STREAMS.enter();
            let open = streams.get(&acceptor).ok_or(Refusal::new(TBADF))?;
            self.end.accept(seq, open.end, opts, data)?;
            open.wake.clone()
        };
        self.crossed.set(false);
        if let Some(wake) = wake {
            wake.kick();
        }
        Ok(())
    }

    fn disconnect(&self, q: Queue, seq: i32, data: &[u8]) -> Outcome<()> {
        if self.end.state()? == State::WresCind {
            return self.end.disconnect(Some(seq), data);
        }
        self.end.disconnect(None, data)?;
        self.flush(q);
        Ok(())
    }

    /// Data and what goes behind it: at once, or when there is room.
    fn in_order(&self, q: Queue, mut m: Message) {
        if m.kind() == M_PCPROTO {
            m.set_kind(M_PROTO);
        }
        self.note_dropped(q, false);
        if q.first().is_some() {
            return q.putq(m);
        }
        if let Some(rest) = self.send(q, m) {
            q.putbq(rest);
        }
    }

    fn note_dropped(&self, q: Queue, dropped: bool) {
        if self.dropped.replace(dropped) != dropped {
            change(q, |open| open.dropped = dropped);
        }
    }

    /// Gives back what there is no room for.
    fn send(&self, q: Queue, m: Message) -> Option<Message> {
        if m.kind() == M_DATA {
            return self.send_data(q, m, &[], false, false);
        }
        match Request::decode(m.bytes()) {
            Ok(Request::Data { more }) => self.send_data(q, m, &[], more, false),
            Ok(Request::Exdata { more }) => self.send_data(q, m, &[], more, true),
            Ok(Request::OptData {
                more,
                expedited,
                opts,
            }) => {
                let opts = opts.to_vec();
                self.send_data(q, m, &opts, more, expedited)
            }
            Ok(Request::Unitdata { dest, opts }) => {
                let mut sent = with_data(&m, |data, _| self.end.send_to(dest, opts, data));
                // By messages, what happened to an earlier one is told and holds up nothing.
                while let Err(Refusal { tli: TLOOK, .. }) = sent
                    && let Some(earlier) = self.end.take()
                {
                    let mut indication = self.arrived(&earlier);
                    indication.set_band(URGENT);
                    q.qreply(indication);
                    sent = with_data(&m, |data, _| self.end.send_to(dest, opts, data));
                }
                match sent {
                    Ok(()) => None,
                    Err(Refusal { tli: TFLOW, .. }) => Some(m),
                    Err(e) => {
                        self.undelivered(q, dest, opts, e);
                        None
                    }
                }
            }
            Ok(Request::Ordrel) => match self.end.release() {
                Err(Refusal { tli: TFLOW, .. }) => Some(m),
                Err(e) => {
                    self.out_of_place(q, e, self.crossed.get());
                    None
                }
                Ok(()) => None,
            },
            _ => None,
        }
    }

    fn send_data(
        &self,
        q: Queue,
        m: Message,
        opts: &[u8],
        more: bool,
        expedited: bool,
    ) -> Option<Message> {
        let how = Sending {
            more,
            expedited,
            push: true,
        };
        let refuses_nothing = |info: headwater_tpi::Info| info.provider_flag & SENDZERO == 0;
        let (total, sent) = with_data(&m, |data, total| {
            let sent = match opts {
                _ if total == 0 && self.end.info().is_ok_and(refuses_nothing) => Ok(0),
                [] => self.end.send(data, how),
                opts => self.end.send_with(opts, data, how),
            };
            (total, sent)
        });
        match sent {
            Ok(n) if n >= total => None,
            Ok(n) => Some(without(m, n)),
            Err(Refusal { tli: TFLOW, .. }) => Some(m),
            Err(e) => {
                // On sctp_t nothing more can be sent once the peer has released.
                use State::{Idle, Unbnd, WreqOrdrel};
                let ended = matches!(self.end.state(), Ok(Idle | Unbnd | WreqOrdrel));
                self.out_of_place(q, e, ended && e.tli == TOUTSTATE);
                None
            }
        }
    }

    /// A request that has no acknowledgement can't be done. What the end of the connection makes void is dropped.
    fn out_of_place(&self, q: Queue, e: Refusal, void: bool) {
        if e.tli == TLOOK || void && e.tli == TOUTSTATE {
            self.note_dropped(q, true);
        } else {
            self.fatal(q);
        }
    }

    /// Did the user leave data at the stream head?
    fn has_unread(&self, q: Queue) -> bool {
        self.raising.set(true);
        let Some(head) = q.next() else { return false };
        let mut unread = false;
        while let Some(m) = head.getq() {
            unread |= m.kind() == M_DATA
                || matches!(
                    Indication::decode(m.bytes()),
                    Ok(Indication::DataInd { .. }
                        | Indication::ExdataInd { .. }
                        | Indication::OptdataInd { .. })
                );
        }
        unread
    }

    fn undelivered(&self, q: Queue, dest: &[u8], opts: &[u8], e: Refusal) {
        let error = match e.tli {
            TOUTSTATE | TNOTSUPPORT => return self.fatal(q),
            TSYSERR => e.unix,
            TBADADDR => libc::EADDRNOTAVAIL,
            TBADDATA => libc::EMSGSIZE,
            TACCES => libc::EACCES,
            _ => libc::EINVAL,
        };
        let indication = Indication::UderrorInd { dest, opts, error };
        let mut m = Message::from_bytes(M_PROTO, &indication.encode());
        m.set_band(URGENT);
        q.qreply(m);
    }
}
