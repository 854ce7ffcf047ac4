//! Data: what is sent and received by connections and as datagrams, and senders that are told when there is room again.

use headwater_host::poll;
use headwater_host::sync::Ordering;
use headwater_providers::provider::{Datagram, Outcome, Provider, Received, Sending};
use headwater_tpi::state::{self, Event as Move};
use headwater_tpi::{Refusal, error};
use libc::iovec;

use super::waiting::watched;
use super::{Core, Endpoint};

impl Endpoint {
    /// TLOOK: the connection is over.
    #[inline]
    pub fn send(&self, data: &[iovec], how: Sending) -> Outcome<usize> {
        self.send_by(how, |p| p.send(data, how))
    }

    /// The same with options for this data unit. TBADOPT.
    pub fn send_with(&self, opts: &[u8], data: &[iovec], how: Sending) -> Outcome<usize> {
        self.send_by(how, |p| p.send_with(opts, data, how))
    }

    #[inline(always)]
    fn send_by(
        &self,
        how: Sending,
        send: impl FnOnce(&mut dyn Provider) -> Outcome<usize>,
    ) -> Outcome<usize> {
        let m = if how.expedited {
            Move::ExdataReq
        } else {
            Move::DataReq
        };
        let sent = self.with(|c| {
            c.may(m)?;
            self.note_fed();
            send(&mut *c.provider).map_err(gone)
        });
        if sent.is_err_and(|e| e.tli == error::TFLOW) {
            self.refused_for_now(how.expedited);
        }
        self.note_carried();
        sent
    }

    #[inline]
    pub fn receive(&self, into: &[iovec]) -> Outcome<Received> {
        let received = self.with(|c| {
            c.may(Move::DataInd)?;
            let received = c.provider.receive(into);
            self.tell_sleepers(c);
            received
        });
        self.note_carried();
        received
    }

    /// The options of what was received last: see [`Provider::received_options`].
    pub fn received_options(&self) -> Vec<u8> {
        self.look(|c| c.provider.received_options())
            .unwrap_or_default()
    }

    #[inline]
    pub fn send_to(&self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        self.with(|c| {
            c.may(Move::UnitdataReq)?;
            self.note_fed();
            let sent = c.provider.send_to(to, opts, data);
            if sent.is_err_and(|e| e.tli == error::TFLOW) {
                self.refused_for_now(false);
            }
            // What has become of earlier ones.
            self.tell_sleepers(c);
            sent
        })
    }

    /// TBADADDR.
    pub fn check_destination(&self, to: &[u8]) -> Outcome<()> {
        self.with(|c| c.provider.check_destination(to))
    }

    #[inline]
    pub fn receive_from(&self, into: &mut Datagram<'_>) -> Outcome<()> {
        self.with(|c| {
            c.may(Move::UnitdataInd)?;
            let received = c.provider.receive_from(into);
            self.tell_sleepers(c);
            received
        })
    }

    /// There is room again after a TFLOW: for expedited data (true), or normal data. Told once.
    pub fn unblocked(&self) -> Option<bool> {
        let blocked = self.blocked.load(Ordering::Relaxed);
        if blocked == 0 || !self.has_room() || !self.may_send() {
            return None;
        }
        let expedited = blocked & 2 != 0;
        self.blocked
            .fetch_and(!(1 << expedited as u32), Ordering::Relaxed);
        Some(expedited)
    }

    /// Sends of normal data, and of expedited data, that failed with TFLOW and whose users were not told yet that there is room.
    pub fn blocked(&self) -> [bool; 2] {
        let blocked = self.blocked.load(Ordering::Relaxed);
        [blocked & 1 != 0, blocked & 2 != 0]
    }

    fn may_send(&self) -> bool {
        let sends = |c: &mut Core| {
            Ok([Move::DataReq, Move::UnitdataReq]
                .into_iter()
                .any(|m| state::next(c.state, m).is_some()))
        };
        self.with(sends).unwrap_or(false)
    }

    fn has_room(&self) -> bool {
        let fd = self.fd.load(Ordering::Relaxed);
        let mut fds = [watched(fd, libc::POLLOUT as u32)];
        let n = poll::wait(&mut fds, Some(0));
        n > 0 && fds[0].revents & libc::POLLOUT != 0
    }

    #[inline]
    pub(super) fn note_fed(&self) {
        if self.fed.load(Ordering::Relaxed) == 0 {
            self.fed.store(1, Ordering::Relaxed);
        }
    }

    /// The user is told TFLOW, unless he waits.
    #[cold]
    fn refused_for_now(&self, expedited: bool) {
        if self.is_nonblocking() {
            self.blocked
                .fetch_or(1 << expedited as u32, Ordering::Relaxed);
        }
    }
}

/// What an ended connection makes of a call that sends.
pub(super) fn gone(e: Refusal) -> Refusal {
    match e.unix {
        libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN | libc::ETIMEDOUT
            if e.tli == error::TSYSERR =>
        {
            Refusal::new(error::TLOOK)
        }
        _ => e,
    }
}
