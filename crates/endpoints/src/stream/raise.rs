//! The TPI driver: what goes up to the user.

use core::time::Duration;

use headwater_providers::provider::{Arrived, Datagram, Event};
use headwater_streams::ddi::M_PROTO;
use headwater_streams::ddi::owned::Message;
use headwater_streams::exec::Queue;
use headwater_tpi::Indication;
use headwater_tpi::prim::T_CLTS;
use headwater_tpi::state::State;
use libc::iovec;

use super::driver::{Driver, URGENT, ack};

/// Indications raised in one go; then others have their turn.
const AT_ONCE: usize = 64;
/// Data of one T_DATA_IND at most.
const PIECE: usize = 16 << 10;
/// Room for an address, and for options.
const PART: usize = 2048;
const LARGEST_DATAGRAM: usize = 64 << 10;
/// Woken so often for nothing, the driver looks by the clock instead, in nanoseconds.
const BARREN: u32 = 3;
const PAUSE: u64 = Duration::from_millis(2).as_nanos() as u64;

impl Driver {
    /// Raises what can be raised, then waits for more of what there is room for. Gives when to look again at the latest.
    pub fn look(&self, q: Queue, again: bool) -> Option<u64> {
        if self.raising.get() {
            return None;
        }
        let fired = self.watch.has_fired(self.end, again);
        let raised = self.raise(q);
        let waiting = q.write().qsize();
        if waiting > 0 && (fired || raised > 0) {
            // There may be room, or no connection any more.
            q.write().qenable();
        }
        if !fired || raised > 0 || waiting > 0 {
            self.barren.set(0);
        } else if self.barren.replace(self.barren.get() + 1) >= BARREN {
            self.watch.arm(self.end, 0);
            return Some(PAUSE << (self.barren.get() - BARREN).min(8));
        }
        self.watch.arm(self.end, self.wanted(q))
    }

    /// The poll(2) events that would make a difference.
    fn wanted(&self, q: Queue) -> u32 {
        let Ok(info) = self.end.info() else { return 0 };
        let reading = (libc::POLLIN | libc::POLLPRI) as u32;
        let state = State::from_number(info.state).unwrap_or(State::Unbnd);
        let (outstanding, qlen) = self.end.requests();
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
        let write = if q.write().qsize() > 0 {
            libc::POLLOUT as u32
        } else {
            0
        };
        read | write
    }

    fn raise(&self, q: Queue) -> usize {
        self.raising.set(true);
        let mut raised = 0;
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
            let Some(mut m) = self.indication(event) else {
                break;
            };
            m.set_band(band);
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

    fn indication(&self, event: Event) -> Option<Message> {
        match event {
            Event::Data | Event::ExData => match self.end.info().ok()?.serv {
                T_CLTS => self.datagram(),
                _ => self.data(),
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

    fn data(&self) -> Option<Message> {
        let mut scratch = self.scratch.borrow_mut();
        scratch.resize(PIECE, 0);
        let received = self.end.receive(&[vector(&mut scratch)]).ok()?;
        let more = received.more;
        let opts = self.end.received_options();
        let expedited = received.expedited;
        let indication = match expedited {
            _ if !opts.is_empty() => Indication::OptdataInd {
                more,
                expedited,
                opts: &opts,
            },
            true => Indication::ExdataInd { more },
            false => Indication::DataInd { more },
        };
        let mut m = ack(&indication);
        m.append(Message::data(&scratch[..received.len.min(PIECE)]));
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
