//! The calls of XNS 5.2, without C: what they check, what they wait for, what they answer.
//!
//! A call first asks the state table whether it is allowed; the provider then has the last word. In synchronous mode a call
//! sleeps until its event is there or another one wants attention (TLOOK), or a handler without SA_RESTART has run since the call
//! found that it has to.

use headwater_host::signal::begin_wait;
use headwater_providers::provider::{Arrived, Datagram, Event, Outcome, Sending};
use headwater_tpi::error::*;
use headwater_tpi::prim::{SENDZERO, T_CLTS};
use headwater_tpi::state::{self, Call};
use headwater_tpi::{Info, Refusal, refuse};
use libc::iovec;

use crate::port::Port;

const IN: u32 = (libc::POLLIN | libc::POLLPRI) as u32;
const OUT: u32 = libc::POLLOUT as u32;

pub const T_MORE: i32 = 0x001;
pub const T_EXPEDITED: i32 = 0x002;
pub const T_PUSH: i32 = 0x004;

/// Events of t_look.
pub const T_LISTEN: i32 = 0x0001;
pub const T_CONNECT: i32 = 0x0002;
pub const T_DATA: i32 = 0x0004;
pub const T_EXDATA: i32 = 0x0008;
pub const T_DISCONNECT: i32 = 0x0010;
pub const T_UDERR: i32 = 0x0040;
pub const T_ORDREL: i32 = 0x0080;
pub const T_GODATA: i32 = 0x0100;
pub const T_GOEXDATA: i32 = 0x0200;

/// Longest vector of t_sndv and its kind.
pub const T_IOV_MAX: usize = 16;

/// Is the call allowed, by service type and state?
fn check(port: &dyn Port, call: Call) -> Outcome<Info> {
    let info = port.info()?;
    state::check(call, port.state()?, info.serv)?;
    Ok(info)
}

/// TLOOK if one of these events is in front.
fn unless(port: &dyn Port, events: &[Event]) -> Outcome<()> {
    match port.peek() {
        Some(e) if events.contains(&e) => refuse(TLOOK),
        _ => Ok(()),
    }
}

/// May a call wait? As it was when the call first would have: what is set meanwhile is for later ones.
#[derive(Default)]
struct Patience(Option<bool>);

impl Patience {
    fn waits(&mut self, port: &dyn Port) -> bool {
        *self.0.get_or_insert_with(|| !port.is_nonblocking())
    }
}

/// Waits for an event; TNODATA (or `none`) in asynchronous mode.
fn next_event(port: &dyn Port, none: i32) -> Outcome<Event> {
    let mut patience = Patience::default();
    loop {
        if let Some(event) = port.peek() {
            return Ok(event);
        }
        if let Some(errno) = port.lacks() {
            return Err(Refusal::system(errno));
        }
        if !patience.waits(port) {
            return refuse(none);
        }
        port.wait(IN).map_err(Refusal::system)?;
    }
}

/// Does it until it is not refused for want of data or room, `lack` and the poll(2) events that end it. What the provider says has no
/// place the state table may say better.
#[inline(always)]
fn patiently<T>(
    port: &dyn Port,
    call: Call,
    lack: (i32, u32),
    mut act: impl FnMut() -> Outcome<T>,
) -> Outcome<T> {
    let mut patience = Patience::default();
    let mut waits = false;
    loop {
        match act() {
            Err(e) if e.tli == lack.0 && patience.waits(port) => {
                if !waits {
                    // Once more: what ends a wait counts from here.
                    begin_wait();
                    (patience, waits) = (Patience::default(), true);
                    continue;
                }
                port.wait(lack.1).map_err(Refusal::system)?;
            }
            Err(e) if matches!(e.tli, TOUTSTATE | TNOTSUPPORT) => {
                check(port, call)?;
                return Err(e);
            }
            done => return done,
        }
    }
}

pub fn bind(port: &dyn Port, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
    check(port, Call::Bind)?;
    port.bind(addr.filter(|a| !a.is_empty()), qlen)
}

pub fn unbind(port: &dyn Port) -> Outcome<()> {
    check(port, Call::Unbind)?;
    unless(port, &[Event::Listen, Event::Data, Event::UdErr])?;
    port.unbind()
}

/// A connection request or its confirmation.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Connection {
    pub addr: Vec<u8>,
    pub opts: Vec<u8>,
    pub data: Vec<u8>,
    pub seq: i32,
}

pub fn listen(port: &dyn Port) -> Outcome<Connection> {
    begin_wait();
    check(port, Call::Listen)?;
    let (outstanding, qlen) = port.requests();
    if qlen == 0 {
        return refuse(TBADQLEN);
    }
    if outstanding >= qlen as usize && port.peek().is_none() {
        return refuse(TQFULL);
    }
    loop {
        if next_event(port, TNODATA)? != Event::Listen {
            return refuse(TLOOK);
        }
        // Another thread may have been quicker.
        if let Some(Arrived::Request {
            seq,
            from,
            opts,
            data,
        }) = port.take()
        {
            return Ok(Connection {
                addr: from,
                opts,
                data,
                seq,
            });
        }
    }
}

pub fn accept(
    port: &dyn Port,
    on: &dyn Port,
    same: bool,
    seq: i32,
    opts: &[u8],
    data: &[u8],
) -> Outcome<()> {
    let info = check(port, Call::Accept)?;
    check_data(data, info.cdata)?;
    let (outstanding, _) = port.requests();
    if same {
        if outstanding > 1 {
            return refuse(TINDOUT);
        }
    } else {
        let theirs = on.info()?;
        if theirs.serv == T_CLTS {
            return refuse(TPROVMISMATCH);
        }
        state::check(Call::AcceptOn, on.state()?, theirs.serv)?;
        if on.requests().1 > 0 {
            return refuse(TRESQLEN);
        }
    }
    unless(port, &[Event::Disconnect, Event::Listen])?;
    port.accept(seq, on, opts, data)
}

fn check_data(data: &[u8], most: i32) -> Outcome<()> {
    match most {
        -1 => Ok(()),
        most if data.len() as i64 <= most.max(0) as i64 => Ok(()),
        _ => refuse(TBADDATA),
    }
}

/// May a data unit of no bytes be sent?
fn check_nothing(port: &dyn Port, call: Call) -> Outcome<()> {
    match check(port, call)?.provider_flag & SENDZERO {
        0 => refuse(TBADDATA),
        _ => Ok(()),
    }
}

pub fn connect(port: &dyn Port, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<Connection> {
    begin_wait();
    let info = check(port, Call::Connect)?;
    if to.is_empty() {
        return refuse(TBADADDR);
    }
    check_data(data, info.cdata)?;
    unless(port, &[Event::Listen, Event::Disconnect])?;
    port.connect(to, opts, data)?;
    if port.is_nonblocking() {
        // However soon the answer is there: it is t_rcvconnect that tells.
        return refuse(TNODATA);
    }
    confirmed(port)
}

pub fn rcvconnect(port: &dyn Port) -> Outcome<Connection> {
    begin_wait();
    check(port, Call::RcvConnect)?;
    confirmed(port)
}

fn confirmed(port: &dyn Port) -> Outcome<Connection> {
    if next_event(port, TNODATA)? != Event::Connect {
        return refuse(TLOOK);
    }
    match port.take() {
        Some(Arrived::Confirmed { by, opts, data }) => Ok(Connection {
            addr: by,
            opts,
            data,
            seq: 0,
        }),
        _ => refuse(TNODATA),
    }
}

/// Why a connection, or a request for one, is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disconnection {
    pub reason: i32,
    pub seq: i32,
    pub data: Vec<u8>,
}

pub fn rcvdis(port: &dyn Port) -> Outcome<Disconnection> {
    check(port, Call::RcvDis)?;
    match taken(port, Event::Disconnect) {
        Some(Arrived::Disconnected { reason, seq, data }) => {
            Ok(Disconnection { reason, seq, data })
        }
        _ => refuse(TNODIS),
    }
}

/// What is in front, if it is this.
fn taken(port: &dyn Port, event: Event) -> Option<Arrived> {
    port.peek().filter(|&front| front == event)?;
    port.take()
}

/// `seq`: of a request that is refused; only in T_INCON.
pub fn snddis(port: &dyn Port, seq: Option<i32>, data: &[u8]) -> Outcome<()> {
    let info = check(port, Call::SndDis)?;
    check_data(data, info.ddata)?;
    let incoming = port.state()? == state::T_INCON;
    if incoming && seq.is_none() {
        return refuse(TBADSEQ);
    }
    unless(port, &[Event::Disconnect])?;
    port.disconnect(seq.filter(|_| incoming), data)
}

/// t_sndrel; `data` of t_sndreldata.
pub fn sndrel(port: &dyn Port, call: Call, data: &[u8]) -> Outcome<()> {
    check(port, call)?;
    if !data.is_empty() {
        // No provider has T_ORDRELDATA.
        return refuse(TBADDATA);
    }
    unless(port, &[Event::Disconnect])?;
    patiently(port, call, (TFLOW, OUT), || port.release())
}

pub fn rcvrel(port: &dyn Port, call: Call) -> Outcome<Vec<u8>> {
    check(port, call)?;
    unless(port, &[Event::Disconnect])?;
    match taken(port, Event::OrdRel) {
        Some(Arrived::Released { data }) => Ok(data),
        _ => refuse(TNOREL),
    }
}

/// How many bytes of a vector are left after the first `done`, as a vector of at most [`T_IOV_MAX`].
fn rest(data: &[iovec], mut done: usize) -> ([iovec; T_IOV_MAX], usize) {
    let empty = headwater_host::sys::buffer(core::ptr::null::<u8>(), 0);
    let mut left = [empty; T_IOV_MAX];
    let mut n = 0;
    for part in data {
        let skip = done.min(part.iov_len);
        done -= skip;
        if skip < part.iov_len {
            left[n] = iovec {
                // SAFETY: inside the part.
                iov_base: unsafe { part.iov_base.cast::<u8>().add(skip) }.cast(),
                iov_len: part.iov_len - skip,
            };
            n += 1;
        }
    }
    (left, n)
}

/// t_snd and t_sndv. Synchronous: all of it, unless an event or a signal comes between; then what was sent counts.
#[inline]
pub fn snd(port: &dyn Port, data: &[iovec], flags: i32) -> Outcome<usize> {
    if flags & !(T_MORE | T_EXPEDITED | T_PUSH) != 0 {
        return refuse(TBADFLAG);
    }
    let how = Sending {
        more: flags & T_MORE != 0,
        expedited: flags & T_EXPEDITED != 0,
        push: flags & T_PUSH != 0,
    };
    let total: usize = data.iter().map(|p| p.iov_len).sum();
    if total == 0 {
        check_nothing(port, Call::Snd)?;
    }
    match port.send(data, how) {
        Ok(n) if n == total => Ok(n),
        first => snd_slowly(port, data, how, total, first),
    }
}

#[cold]
fn snd_slowly(
    port: &dyn Port,
    data: &[iovec],
    how: Sending,
    total: usize,
    first: Outcome<usize>,
) -> Outcome<usize> {
    if first.is_err_and(|e| matches!(e.tli, TOUTSTATE | TNOTSUPPORT)) {
        check(port, Call::Snd)?;
    }
    begin_wait();
    let mut patience = Patience::default();
    let mut done = 0;
    let mut last = match first {
        // Once more: what ends a wait counts from here.
        Err(Refusal { tli: TFLOW, .. }) if patience.waits(port) => port.send(data, how),
        first => first,
    };
    loop {
        match last {
            Ok(n) => {
                done += n;
                if done == total {
                    return Ok(done);
                }
            }
            Err(Refusal { tli: TFLOW, .. }) => {
                if !patience.waits(port) {
                    return if done > 0 { Ok(done) } else { last };
                }
                if let Err(e) = port.wait(OUT) {
                    last = Err(Refusal::system(e));
                    return if done > 0 { Ok(done) } else { last };
                }
            }
            Err(_) if done > 0 => return Ok(done),
            Err(e) => return Err(e),
        }
        let (left, n) = rest(data, done);
        last = port.send(&left[..n], how);
    }
}

/// t_rcv and t_rcvv. Gives the bytes and T_MORE, T_EXPEDITED.
#[inline]
pub fn rcv(port: &dyn Port, into: &[iovec]) -> Outcome<(usize, i32)> {
    let got = patiently(port, Call::Rcv, (TNODATA, IN), || port.receive(into))?;
    let more = if got.more { T_MORE } else { 0 };
    let expedited = if got.expedited { T_EXPEDITED } else { 0 };
    Ok((got.len, more | expedited))
}

/// t_sndudata and t_sndvudata.
#[inline]
pub fn sndudata(port: &dyn Port, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
    if data.iter().all(|p| p.iov_len == 0) {
        check_nothing(port, Call::SndUData)?;
    }
    patiently(port, Call::SndUData, (TFLOW, OUT), || {
        port.send_to(to, opts, data)
    })
}

/// t_rcvudata and t_rcvvudata.
#[inline]
pub fn rcvudata(port: &dyn Port, into: &mut Datagram<'_>) -> Outcome<()> {
    patiently(port, Call::RcvUData, (TNODATA, IN), || {
        port.receive_from(into)
    })
}

/// An earlier datagram that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    pub addr: Vec<u8>,
    pub opts: Vec<u8>,
    pub error: i32,
}

pub fn rcvuderr(port: &dyn Port) -> Outcome<Undelivered> {
    check(port, Call::RcvUdErr)?;
    match taken(port, Event::UdErr) {
        Some(Arrived::Undelivered { to, opts, error }) => Ok(Undelivered {
            addr: to,
            opts,
            error,
        }),
        _ => refuse(TNOUDERR),
    }
}

/// The event in front; 0: none. T_GODATA and T_GOEXDATA are told once.
pub fn look(port: &dyn Port) -> Outcome<i32> {
    port.info()?;
    Ok(match port.peek() {
        None => match port.unblocked() {
            None => 0,
            Some(false) => T_GODATA,
            Some(true) => T_GOEXDATA,
        },
        Some(Event::Listen) => T_LISTEN,
        Some(Event::Connect) => T_CONNECT,
        Some(Event::Data) => T_DATA,
        Some(Event::ExData) => T_EXDATA,
        Some(Event::Disconnect) => T_DISCONNECT,
        Some(Event::UdErr) => T_UDERR,
        Some(Event::OrdRel) => T_ORDREL,
    })
}

pub fn optmgmt(port: &dyn Port, flags: i32, opts: &[u8]) -> Outcome<(i32, Vec<u8>)> {
    use headwater_tpi::option::{T_CHECK, T_CURRENT, T_DEFAULT, T_NEGOTIATE};
    check(port, Call::OptMgmt)?;
    if !matches!(flags, T_NEGOTIATE | T_CHECK | T_DEFAULT | T_CURRENT) {
        return refuse(TBADFLAG);
    }
    let (flags, list) = port.negotiate(flags as u32, opts)?;
    Ok((flags as i32, list))
}

/// The state, learnt anew.
pub fn sync(port: &dyn Port) -> Outcome<i32> {
    port.sync()?;
    port.state()
}
