//! Packets in: what each chunk does. The packet's tag and checksum were checked.

use core::time::Duration;

use super::{Association, Control, State};
use crate::auth::AuthError;
use crate::recv::{DataError, Placed, SackWanted};
use crate::wire::{self, Cause, Causes, Chunk, Data, Packet, Sack};
use crate::{Arrived, Down, Event, PathId, PathState, Time, Timer, Tsn};

/// Control chunks that may wait to be sent: what a flood asks for beyond that is not answered.
const MOST_CONTROL: usize = 64;
/// A SHUTDOWN ACK said again so often, and nobody there: the peer is gone. At once, its port may be changing hands.
const FAREWELLS: u32 = 2;
/// A SACK may not be delayed by more (6.2).
const MOST_SACK_DELAY: Duration = Duration::from_millis(500);

impl Association {
    /// `from`: the path on which it came.
    pub(crate) fn handle(
        &mut self,
        now: Time,
        packet: &Packet<'_>,
        arrived: &Arrived<'_>,
        from: PathId,
    ) {
        self.stats.packets_in += 1;
        self.stats.bytes_in += arrived.packet.len() as u64;
        let path = &mut self.paths[from];
        // RFC 6951 5.4: the peer's UDP port is the one that its last good packet had.
        path.encap = arrived.encap;
        path.heard = Some(arrived.to);
        let mut verified = false;
        let mut data = false;
        let mut chunks = packet.chunks();
        while let Some(kind) = chunks.kind()
            && let Some(Ok(chunk)) = chunks.next()
            && self.is_open()
        {
            if let Chunk::Auth(auth) = &chunk {
                match self.verify(packet, auth) {
                    Some(()) => verified = true,
                    None => break,
                }
                continue;
            }
            if !verified && self.requires_auth(kind) {
                continue;
            }
            match chunk {
                // Bundled they are not acted on, nor is what follows them.
                Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete { .. }
                    if !packet.has_one_chunk() =>
                {
                    break;
                }
                Chunk::Data(chunk) => {
                    if !data {
                        data = true;
                        self.answer_data_to(from);
                    }
                    self.on_data(&chunk);
                }
                Chunk::Sack(sack) => self.on_sack(now, &sack),
                other => {
                    self.stats.control_in += 1;
                    if !self.on_control(now, other, from, arrived) {
                        break;
                    }
                }
            }
        }
        if data && self.is_open() {
            self.after_data(now);
        }
    }

    /// Any chunk but DATA and SACK. False: the rest of the packet is not looked at.
    fn on_control(
        &mut self,
        now: Time,
        chunk: Chunk<'_>,
        from: PathId,
        arrived: &Arrived<'_>,
    ) -> bool {
        match chunk {
            Chunk::InitAck(init) => self.on_init_ack(now, from, &init),
            Chunk::CookieAck => self.on_cookie_ack(now),
            // 8.5.1 B and C: with the T bit the tag has to be the peer's own, and this one is ours.
            Chunk::Abort {
                tcb_missing: true, ..
            }
            | Chunk::ShutdownComplete { tcb_missing: true } => {}
            Chunk::Abort { causes, .. } => self.on_abort(causes),
            Chunk::Error(causes) => self.on_error(causes),
            _ if !self.is_established() => return true,
            Chunk::Heartbeat(info) => {
                self.answer(Some(from), info.len(), || {
                    Control::HeartbeatAck(info.to_vec())
                });
            }
            Chunk::HeartbeatAck(info) => self.on_heartbeat_ack(now, info),
            Chunk::Shutdown { cumulative } => self.on_shutdown(now, cumulative),
            Chunk::ShutdownAck => self.on_shutdown_ack(),
            Chunk::ShutdownComplete { .. } => self.on_shutdown_complete(),
            Chunk::Forward(_) if self.reset.is_restarting() => {}
            Chunk::Forward(forward) => {
                if !self.features.forward || forward.interleaved != self.features.interleave {
                    self.violation("FORWARD TSN of a kind that was not agreed");
                    return false;
                }
                match self.receiver.on_forward(&forward) {
                    Ok(()) => {
                        self.sack_now = true;
                        self.receiver.end_of_packet();
                    }
                    Err(violation) => self.violation(violation.0),
                }
            }
            Chunk::ReConfig(params) if self.features.reconfiguration => self.on_re_config(params),
            Chunk::Asconf { serial, params } if self.features.addresses => {
                self.on_asconf(now, serial, params, arrived);
            }
            Chunk::AsconfAck { serial, params } if self.features.addresses => {
                self.on_asconf_ack(serial, params);
            }
            Chunk::Unknown { kind, whole, .. } => {
                if wire::chunk::report(kind) {
                    self.answer(Some(from), whole.len(), || {
                        Control::Error(vec![Cause::UnrecognizedChunk(whole).into()])
                    });
                }
                return !wire::chunk::stop(kind);
            }
            _ => {}
        }
        true
    }

    /// Queues an answer of about `size` bytes, unless a flood of them waits already or no packet could take it.
    pub(super) fn answer(
        &mut self,
        to: Option<PathId>,
        size: usize,
        what: impl FnOnce() -> Control,
    ) {
        let most = self.paths[to.unwrap_or(self.last_from)].mtu;
        if self.control.len() < MOST_CONTROL && size < most {
            self.control.push_back((to, what()));
        }
    }

    /// SACKs go where the data came from, unless that address may be somebody else's (5.4).
    fn answer_data_to(&mut self, from: PathId) {
        self.last_from = match self.paths[from].state {
            PathState::Unconfirmed => self.data_path(),
            _ => from,
        };
    }

    fn on_data(&mut self, chunk: &Data<'_>) {
        if !matches!(
            self.state,
            State::Established | State::ShutdownPending | State::ShutdownSent
        ) {
            return;
        }
        if self.reset.is_restarting() {
            return;
        }
        match self.receiver.on_data(chunk) {
            Ok(placed) => match (placed, chunk.unordered) {
                (Placed::New, false) => self.stats.ordered_in += 1,
                (Placed::New, true) => self.stats.unordered_in += 1,
                (Placed::Duplicate, _) => self.stats.duplicates_in += 1,
                (Placed::NoRoom, _) => {}
            },
            Err(DataError::NoUserData(tsn)) => self.abort_with(&Cause::NoUserData(tsn)),
            Err(DataError::BadStream(stream)) => {
                self.answer(None, 4, || {
                    Control::Error(vec![Cause::InvalidStream(stream).into()])
                });
            }
            Err(DataError::Violation(what)) => self.violation(what),
        }
    }

    fn after_data(&mut self, now: Time) {
        self.last_traffic = now;
        self.receiver.end_of_packet();
        match self.receiver.sack_wanted() {
            SackWanted::Delayed => {
                let delay = self.config.sack_delay.min(MOST_SACK_DELAY);
                self.timers.set_if_stopped(Timer::Sack, now + delay);
            }
            SackWanted::Now | SackWanted::No => {}
        }
        if self.state == State::ShutdownSent {
            // 9.2: every packet with data is answered with a SHUTDOWN, and a SACK, at once.
            self.sack_now = true;
            self.say_once(Control::Shutdown);
        }
    }

    fn on_sack(&mut self, now: Time, sack: &Sack<'_>) {
        if !self.is_established() || self.reset.is_restarting() {
            return;
        }
        self.stats.sacks_in += 1;
        self.stats.gaps_in += sack.gaps().len() as u64;
        match self
            .sender
            .on_sack(now, sack, &mut self.paths, &mut self.timers)
        {
            Ok(acked) => self.after_ack(now, acked),
            Err(_) => self.violation("a SACK for what was never sent"),
        }
    }

    /// The cumulative acknowledgement of a SHUTDOWN. There are peers that put a TSN of their own there: it is not believed, and
    /// the shutdown goes on.
    pub(super) fn acknowledge(&mut self, now: Time, cumulative: Tsn) {
        if let Ok(acked) =
            self.sender
                .on_cumulative(now, cumulative, &mut self.paths, &mut self.timers)
        {
            self.after_ack(now, acked);
        }
    }

    fn after_ack(&mut self, now: Time, acked: crate::send::Acked) {
        if let Some((path, rtt)) = acked.rtt
            && let Some(path) = self.paths.get_mut(path)
        {
            path.rto.sample(rtt);
        }
        if acked.bytes > 0 {
            self.last_traffic = now;
        }
        for id in PathId::each(acked.paths) {
            if let Some(path) = self.paths.get_mut(id) {
                path.probing.data_passed();
            }
            self.path_is_well(now, id);
        }
        if acked.bytes == 0
            && let Some(path) = self.sender.probed_path()
        {
            // A peer that keeps its window shut but answers is alive (6.1 A), and the probe did get there.
            self.paths[path].probing.data_passed();
            self.path_is_well(now, path);
        }
        if acked.all && acked.bytes > 0 {
            self.tell(Event::Dry);
        }
        if acked.advanced {
            self.set_expiry();
        }
        self.go_on_closing(now);
    }

    fn on_error(&mut self, causes: Causes<'_>) {
        let all = causes.to_owned();
        for cause in causes {
            match cause {
                Ok(Cause::StaleCookie(by)) => {
                    self.on_stale_cookie(by);
                    return;
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
        if self.is_established() {
            self.tell(Event::RemoteError(all));
        }
    }

    pub(crate) fn requires_auth(&self, kind: u8) -> bool {
        self.auth
            .as_deref()
            .is_some_and(|auth| auth.we_require(kind))
    }

    /// Checks an AUTH chunk; `None`: the packet ends here.
    pub(super) fn verify(&mut self, packet: &Packet<'_>, chunk: &wire::Auth<'_>) -> Option<()> {
        let auth = self.auth.as_deref_mut()?;
        match auth.verify(packet, chunk) {
            Ok(()) => {
                if core::mem::replace(&mut self.peer_key, chunk.key) != chunk.key {
                    self.tell(Event::NewKey(chunk.key));
                }
                Some(())
            }
            Err(AuthError::UnsupportedHmac(id)) => {
                self.answer(None, 4, || {
                    Control::Error(vec![Cause::UnsupportedHmac(id).into()])
                });
                None
            }
            Err(_) => None,
        }
    }

    /// The network says that nobody there speaks SCTP. (That a host can't be reached may pass, and is not heard.)
    pub(crate) fn unreachable(&mut self, now: Time, to: core::net::IpAddr) {
        if self.state == State::CookieWait {
            self.end(Down::SetupFailed { refused: true });
        } else if self.state == State::ShutdownAckSent && self.errors >= FAREWELLS {
            // Its SHUTDOWN COMPLETE was lost, and the process that would say it again is gone. Nothing is to be taken back.
            self.end(Down::Shutdown);
        } else if let Some(id) = self.paths.find(to) {
            let limit = self.paths[id].most_errors;
            let limit = limit.unwrap_or(self.config.path_retransmissions);
            if self.paths.len() > 1 && self.paths[id].state != PathState::Unconfirmed {
                self.paths[id].errors = limit;
                self.mark_error(now, id);
            }
        }
    }
}
