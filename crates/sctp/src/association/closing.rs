//! Shutdown (RFC 9260 9.2), abort (9.1), and the end.

use super::{Association, Control, State};
use crate::wire::{Cause, CauseOwned, Causes, PacketBuilder, kind};
use crate::{Down, Event, Time, Timer, Transmit, Tsn};

/// The last packet of an association, which outlives it.
pub(crate) type LastPacket = (Transmit, Vec<u8>);

/// T5-shutdown-guard, in RTO.Max (9.2).
const GUARD: u32 = 5;
/// What a packet with an ABORT has besides the reason: headers, AUTH, padding.
const ABORT_HEAD: usize = 80;

impl Association {
    /// No more is sent; what was taken is delivered first.
    pub(crate) fn shutdown(&mut self, now: Time) {
        match self.state {
            State::CookieWait if self.sender.is_idle() => self.end(Down::Shutdown),
            // What is queued is delivered, if the peer answers.
            State::CookieWait | State::CookieEchoed | State::Established => {
                self.sender.close();
                if self.state == State::Established {
                    self.state = State::ShutdownPending;
                    self.go_on_closing(now);
                }
            }
            _ => {}
        }
    }

    /// The next step of a shutdown, if everything was acknowledged.
    pub(super) fn go_on_closing(&mut self, now: Time) {
        if self.state == State::Established && self.sender.is_closed() {
            self.state = State::ShutdownPending;
        }
        if self.sender.is_stuck() {
            // The user has left a message unfinished, and shut down: the others behind it would keep this up for ever.
            self.abort(b"a message without its end");
            return;
        }
        if !self.sender.is_idle() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                self.state = State::ShutdownSent;
                let guard = self.config.guard.unwrap_or(GUARD * self.config.rto.max);
                self.timers.set(Timer::Guard, now + guard);
                self.say_shutdown(now, Control::Shutdown);
            }
            State::ShutdownReceived => {
                self.state = State::ShutdownAckSent;
                self.say_shutdown(now, Control::ShutdownAck);
            }
            _ => {}
        }
    }

    fn say_shutdown(&mut self, now: Time, what: Control) {
        self.stop_heartbeats();
        let path = self.data_path();
        self.timers
            .set(Timer::Shutdown, now + self.paths[path].rto.current());
        self.say_once(what);
    }

    /// T2-shutdown has expired.
    pub(super) fn repeat_shutdown(&mut self, now: Time) {
        let path = self.data_path();
        self.paths[path].rto.back_off();
        self.path_error(now, path, true);
        match self.state {
            State::ShutdownSent => self.say_shutdown(now, Control::Shutdown),
            State::ShutdownAckSent => self.say_shutdown(now, Control::ShutdownAck),
            _ => {}
        }
    }

    pub(super) fn on_shutdown(&mut self, now: Time, cumulative: Tsn) {
        match self.state {
            State::Established | State::ShutdownPending | State::ShutdownReceived => {
                self.acknowledge(now, cumulative);
                if !self.is_open() {
                    return;
                }
                self.tell_of_shutdown();
                self.sender.close();
                self.state = State::ShutdownReceived;
                self.go_on_closing(now);
            }
            State::ShutdownSent => {
                self.tell_of_shutdown();
                self.state = State::ShutdownAckSent;
                self.say_shutdown(now, Control::ShutdownAck);
            }
            // Our SHUTDOWN ACK was lost, and the peer's timer may be the faster one.
            State::ShutdownAckSent => self.say_once(Control::ShutdownAck),
            _ => {}
        }
    }

    fn tell_of_shutdown(&mut self) {
        if !core::mem::replace(&mut self.peer_has_shut_down, true) {
            self.tell(Event::PeerShutdown);
        }
    }

    pub(super) fn on_shutdown_ack(&mut self) {
        if matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            self.bid_farewell(kind::SHUTDOWN_COMPLETE, |packet| {
                packet.shutdown_complete(false)
            });
            self.end(Down::Shutdown);
        }
    }

    /// It began anew while we wait for the end of the shutdown (5.2.4 A).
    pub(crate) fn refuse_restart(&mut self) {
        self.say_once(Control::ShutdownAck);
        self.say_once(Control::Error(vec![Cause::CookieWhileShutdown.into()]));
    }

    pub(crate) fn say_shutdown_ack(&mut self) {
        self.say_once(Control::ShutdownAck);
    }

    pub(crate) fn on_shutdown_complete(&mut self) {
        if self.state == State::ShutdownAckSent {
            self.end(Down::Shutdown);
        }
    }

    pub(crate) fn on_abort(&mut self, causes: Causes<'_>) {
        self.end(match self.state {
            // Both have shut down, and everything was acknowledged: there is nothing to take back. The peer has not heard of our
            // SHUTDOWN ACK in the time that it had left.
            State::ShutdownAckSent => Down::Shutdown,
            _ => Down::Aborted {
                by_peer: true,
                causes: causes.to_owned(),
            },
        });
    }

    /// Ends at once; `reason` goes to the peer as the cause "user-initiated abort".
    pub(crate) fn abort(&mut self, reason: &[u8]) {
        let most = self.paths[self.data_path()].mtu.saturating_sub(ABORT_HEAD);
        let reason = &reason[..reason.len().min(most)];
        self.abort_with(&Cause::UserAbort(reason));
    }

    /// Ends at once, and says why.
    pub(super) fn abort_with(&mut self, cause: &Cause<'_>) {
        if !self.is_open() {
            return;
        }
        if self.state != State::CookieWait {
            self.bid_farewell(kind::ABORT, |packet| {
                packet.abort(false, |causes| {
                    causes.put(cause);
                });
            });
        }
        self.end(Down::Aborted {
            by_peer: false,
            causes: vec![CauseOwned::from(*cause)],
        });
    }

    pub(super) fn violation(&mut self, what: &str) {
        self.abort_with(&Cause::ProtocolViolation(what.as_bytes()));
    }

    /// Makes the last packet, with a chunk of this kind.
    fn bid_farewell(&mut self, kind: u8, fill: impl FnOnce(&mut PacketBuilder<'_>)) {
        let path = &self.paths[self.data_path()];
        let (from, to, encap, mtu) = (path.from, path.addr, path.encap, path.mtu);
        let mut packet = Vec::new();
        let mut builder = self.begin_packet(&mut packet, mtu);
        // ABORT may have to be authenticated like any other chunk.
        self.authenticate(kind, &mut builder);
        fill(&mut builder);
        // RFC 9653 5.2: a peer without a TCB yet could not take it without a checksum.
        let checksum = !self.features.zero_checksum_out || !self.is_established();
        let len = builder.finish(self.signing_key(), checksum);
        self.last_packet = Some((Transmit::one(from, to, encap, len), packet));
    }

    /// It is over. What was received stays to be read.
    pub(super) fn end(&mut self, why: Down) {
        if !self.is_open() {
            return;
        }
        self.state = State::Closed;
        self.timers.stop_all();
        self.control.clear();
        self.opening = None;
        self.sack_now = false;
        self.fail_all();
        for (_, path) in self.paths.iter_mut() {
            path.flight = 0;
            path.heartbeat_wanted = false;
        }
        self.tell(Event::Down(why));
    }

    /// What is not acknowledged has failed.
    pub(super) fn fail_all(&mut self) {
        self.sender.fail_all();
        while let Some(failed) = self.sender.failed() {
            self.events.push_back(Event::SendFailed(failed));
        }
    }

    /// Queues a control chunk unless one like it waits already.
    pub(super) fn say_once(&mut self, what: Control) {
        if !self.control.iter().any(|(_, c)| *c == what) {
            self.control.push_back((None, what));
        }
    }
}
