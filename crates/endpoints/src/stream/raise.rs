//! The TPI driver: what goes up to the user.

use core::time::Duration;

use headwater_host::sync::Ordering::Relaxed;
use headwater_providers::provider::{Arrived, Datagram, Event};
use headwater_streams::ddi::M_PROTO;
use headwater_streams::ddi::owned::Message;
use headwater_streams::exec::Queue;
use headwater_tpi::prim::{T_CLTS, T_DATA_IND, T_EXDATA_IND};
use headwater_tpi::state::State;
use headwater_tpi::{Indication, data_primitive};
use libc::iovec;

use super::driver::{Driver, URGENT, ack};
use super::head_of;
use crate::endpoint::Endpoint;

/// Indications raised in one go; then others have their turn.
const AT_ONCE: usize = 64;
/// Data of one T_DATA_IND at most.
const PIECE: usize = 16 << 10;
/// Room for an address, and for options.
const PART: usize = 2048;
const LARGEST_DATAGRAM: usize = 64 << 10;
/// How soon it looks again where somebody waits at the endpoint for room, whose thread may never come back, in nanoseconds.
const AGAIN: u64 = Duration::from_millis(10).as_nanos() as u64;
pub(super) const WRITING: u32 = libc::POLLOUT as u32;
/// Woken so often for nothing, the driver looks by the clock instead, in nanoseconds.
pub(super) const BARREN: u32 = 3;
const PAUSE: u64 = Duration::from_millis(2).as_nanos() as u64;

/// The poll(2) events of the endpoint that would make a difference to the driver with this read queue: for what it could put up, and
/// for what waits to be sent.
pub(super) fn wanted(end: &Endpoint, q: Queue) -> [u32; 2] {
    let Ok(info) = end.info() else { return [0; 2] };
    let reading = (libc::POLLIN | libc::POLLPRI) as u32;
    let state = State::from_number(info.state).unwrap_or(State::Unbnd);
    let (outstanding, qlen) = end.requests();
    let read = match state {
        State::Idle if info.serv == T_CLTS || qlen > 0 => reading,
        State::WresCind if outstanding < qlen as usize => reading,
        State::WresCind => libc::POLLPRI as u32,
        State::WconCreq => reading | libc::POLLOUT as u32,
        State::DataXfer | State::WindOrdrel => reading,
        // The end of the peer's data stays readable: only errors are of interest.
        State::WreqOrdrel => libc::POLLPRI as u32,
        _ => 0,
    };
    let read = if q.canputnext() { read } else { 0 };
    let write = match q.write().first() {
        Some(_) => WRITING,
        None => 0,
    };
    [read, write]
}

/// See [`Local::is_relied_on`](headwater_streams::head::local::Local::is_relied_on).
fn is_relied_on(q: Queue) -> bool {
    // SAFETY: inside the perimeter of the queue's stream.
    head_of(q)
        .is_none_or(|head| unsafe { head.local() }.is_none_or(|local| local.is_relied_on(head)))
}

impl Driver {
    /// Raises what can be raised, then waits for more of what there is room for. Gives when to look again at the latest.
    pub fn look(&self, q: Queue, again: bool) -> Option<u64> {
        if self.raising.get() {
            return None;
        }
        let fired = self.watch.has_fired(self.end, again);
        let raised = self.raise(q);
        let waits = q.write().first().is_some();
        if waits && (fired || raised > 0) {
            // There may be room, or no connection any more.
            q.write().qenable();
        }
        if raised > 0 {
            self.below.vain.store(0, Relaxed);
        }
        if !fired || raised > 0 || waits {
            self.barren.set(0);
        } else if self.barren.replace(self.barren.get() + 1) >= BARREN {
            self.watch.arm(&self.below, 0);
            return Some(PAUSE << (self.barren.get() - BARREN).min(8));
        }
        // Who waits for room is told by the endpoint.
        let for_room = waits && self.below.for_room.load(Relaxed) > 0;
        let [up, down] = [is_relied_on(q), waits && !for_room];
        let want = match up || down {
            true => wanted(self.end, q),
            false => [0; 2],
        };
        let wanted = [up, down].into_iter().zip(want).filter(|(is, _)| *is);
        let later = self
            .watch
            .arm(&self.below, wanted.fold(0, |all, (_, some)| all | some));
        let again = for_room.then_some(AGAIN);
        later.into_iter().chain(again).min()
    }

    /// Is it to look when something was sent? Somebody relies on it, something waits to be sent, or was dropped.
    pub fn is_awake(&self, q: Queue) -> bool {
        q.first().is_some()
            || self.below.dropped.load(Relaxed)
            || self.watch.is_armed()
            || is_relied_on(q)
    }

    fn raise(&self, q: Queue) -> usize {
        self.raising.set(true);
        let mut raised = 0;
        // Mostly it is data: then nothing else need be asked.
        while self.has_connections
            && raised < AT_ONCE
            && q.bcanputnext(0)
            && let Some(m) = self.data(q)
        {
            q.putnext(m);
            raised += 1;
        }
        while let Some(event) = self.end.peek() {
            let band = match event {
                Event::ExData if !self.is_fresh(q) => URGENT,
                Event::UdErr => URGENT,
                _ => 0,
            };
            if !q.bcanputnext(band) {
                break;
            }
            if raised == AT_ONCE {
                q.qenable();
                break;
            }
            let Some(mut m) = self.indication(q, event) else {
                break;
            };
            if event != Event::Data {
                m.set_band(band);
            }
            q.putnext(m);
            raised += 1;
        }
        self.raising.set(false);
        raised
    }

    /// Has the user still to see T_CONN_CON, which nothing may overtake, or expedited data that was raised behind it?
    fn is_fresh(&self, q: Queue) -> bool {
        if !self.fresh.get() {
            return false;
        }
        let confirms = |kind, bytes: &[u8]| {
            kind == M_PROTO && matches!(Indication::decode(bytes), Ok(Indication::ConnCon { .. }))
        };
        let above = core::iter::successors(q.next(), |at| at.next());
        let waits = above
            .filter_map(|at| at.with_first(confirms))
            .any(|confirms| confirms || self.behind.get());
        self.fresh.set(waits);
        self.behind.set(waits);
        waits
    }

    fn indication(&self, q: Queue, event: Event) -> Option<Message> {
        match event {
            Event::Data | Event::ExData => match self.has_connections {
                true => self.data(q),
                false => self.datagram(),
            },
            _ => Some(self.arrived(&self.end.take()?)),
        }
    }

    pub(super) fn arrived(&self, arrived: &Arrived) -> Message {
        let (indication, data): (_, &[u8]) = match *arrived {
            Arrived::Request {
                seq,
                from: ref src,
                ref opts,
                ref data,
            } => (Indication::ConnInd { src, opts, seq }, data),
            Arrived::Confirmed {
                by: ref res,
                ref opts,
                ref data,
            } => {
                self.fresh.set(true);
                self.behind.set(false);
                (Indication::ConnCon { res, opts }, data)
            }
            Arrived::Disconnected {
                reason,
                seq,
                ref data,
            } => {
                self.crossed.set(seq == -1 || self.crossed.get());
                (Indication::DisconInd { reason, seq }, data)
            }
            Arrived::Released { ref data } => (Indication::OrdrelInd, data),
            Arrived::Undelivered {
                to: ref dest,
                ref opts,
                error,
            } => (Indication::UderrorInd { dest, opts, error }, &[]),
        };
        // With a block of data, if there is any.
        let mut m = ack(&indication);
        if !data.is_empty() {
            m.append(Message::data(data));
        }
        m
    }

    /// T_DATA_IND, T_EXDATA_IND or T_OPTDATA_IND, in the band where it belongs.
    fn data(&self, q: Queue) -> Option<Message> {
        let mut scratch = self.scratch.borrow_mut();
        scratch.resize(PIECE, 0);
        let received = self.end.receive(&[vector(&mut scratch)]).ok()?;
        let more = received.more;
        let opts = match self.has_options {
            true => self.end.received_options(),
            false => Vec::new(),
        };
        let expedited = received.expedited;
        let prim = if expedited { T_EXDATA_IND } else { T_DATA_IND };
        let mut m = match opts.is_empty() {
            true => Message::from_bytes(M_PROTO, &data_primitive(prim, more)),
            false => ack(&Indication::OptdataInd {
                more,
                expedited,
                opts: &opts,
            }),
        };
        m.append(Message::data(&scratch[..received.len.min(PIECE)]));
        if expedited && !self.is_fresh(q) {
            m.set_band(URGENT);
        }
        Some(m)
    }

    fn datagram(&self) -> Option<Message> {
        let mut scratch = self.scratch.borrow_mut();
        scratch.resize(2 * PART + LARGEST_DATAGRAM, 0);
        let (addr, rest) = scratch.split_at_mut(PART);
        let (opts, data) = rest.split_at_mut(PART);
        let mut into = Datagram {
            addr,
            opts,
            data: &[vector(data)],
            ..Datagram::default()
        };
        self.end.receive_from(&mut into).ok()?;
        let (src, opts) = (&into.addr[..into.addr_len], &into.opts[..into.opts_len]);
        let len = into.data_len;
        let indication = Indication::UnitdataInd { src, opts }.encode();
        let mut m = Message::from_bytes(M_PROTO, &indication);
        m.append(Message::data(&data[..len.min(LARGEST_DATAGRAM)]));
        Some(m)
    }
}

fn vector(bytes: &mut [u8]) -> iovec {
    headwater_host::sys::buffer(bytes.as_mut_ptr(), bytes.len())
}
