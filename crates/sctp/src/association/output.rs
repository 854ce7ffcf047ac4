//! Packets out: which goes next, and what goes into it.

use core::net::IpAddr;

use super::opening::put_error;
use super::{Association, Control, State};
use crate::auth::Key;
use crate::recv::SackWanted;
use crate::wire::{CauseOwned, PacketBuilder, kind};
use crate::{PathId, PathState, Time, Timer, Transmit};

impl Association {
    /// Appends the next packet, or several of one size to one destination, to `out`.
    pub(crate) fn transmit(
        &mut self,
        now: Time,
        out: &mut Vec<u8>,
        most: usize,
    ) -> Option<Transmit> {
        let start = out.len();
        let (id, segment, probe) = match self.state {
            State::Closed => return None,
            State::CookieWait | State::CookieEchoed => {
                let (id, len) = self.opening_packet(now, out)?;
                (id, len, false)
            }
            _ => match self.probe_packet(now, out) {
                Some((id, len)) => (id, len, true),
                None => {
                    let (id, len) = self.packets(now, out, most)?;
                    (id, len, false)
                }
            },
        };
        let path = &mut self.paths[id];
        path.last_sent = now;
        // The network may still choose an address that is no more the association's: the peer would not know it.
        let from = path.from.or_else(|| {
            let fits = |a: &&IpAddr| a.is_ipv4() == path.addr.is_ipv4();
            self.local
                .iter()
                .find(fits)
                .copied()
                .filter(|_| self.has_left)
        });
        let len = out.len() - start;
        self.stats.packets_out += len.div_ceil(segment) as u64;
        self.stats.bytes_out += len as u64;
        Some(Transmit {
            from,
            to: path.addr,
            encap: path.encap,
            segment,
            len,
            fragment: !probe && (segment > path.mtu || path.probing.is_to_be_fragmented()),
        })
    }

    /// A packet, and as many more as data fills to the same size; the path and the size of the first.
    fn packets(&mut self, now: Time, out: &mut Vec<u8>, most: usize) -> Option<(PathId, usize)> {
        let (id, with_data) = self.destination(now)?;
        let mtu = self.paths[id].mtu;
        let segment = self.packet(now, id, with_data, mtu, out);
        if segment == 0 {
            return None;
        }
        // What does not fit a packet of that size begins a run of its own.
        if with_data {
            for _ in 1..most {
                let elsewhere = self
                    .sender
                    .wished_path(&self.paths)
                    .is_some_and(|to| to != id);
                if elsewhere || !self.control.is_empty() || !self.sender.wants(now, id, &self.paths)
                {
                    break;
                }
                if self.packet(now, id, true, segment, out) < segment {
                    break;
                }
            }
        }
        Some((id, segment))
    }

    /// Where the next packet goes, and whether data goes with it.
    fn destination(&mut self, now: Time) -> Option<(PathId, bool)> {
        let data = if self.sends_data() {
            let wished = self.sender.wished_path(&self.paths);
            let path = wished.unwrap_or_else(|| self.retransmission_path());
            // A path that may not lead to the peer gets no data (5.4).
            let confirmed = self.paths[path].state != PathState::Unconfirmed;
            (confirmed && self.sender.wants(now, path, &self.paths)).then_some(path)
        } else {
            None
        };
        if let Some((to, _)) = self.control.front() {
            let to = to.filter(|id| self.paths.get(*id).is_some());
            let to = to.unwrap_or_else(|| self.data_path());
            return Some((to, data == Some(to)));
        }
        let wanting = self.paths.iter().find(|(_, path)| path.heartbeat_wanted);
        if let Some((id, _)) = wanting {
            return Some((id, data == Some(id)));
        }
        if let Some(path) = data {
            return Some((path, true));
        }
        if self.owes_sack() {
            return Some((self.last_from, false));
        }
        if self.change_wanted() || self.sender.forward_due() {
            return Some((self.data_path(), false));
        }
        None
    }

    fn owes_sack(&self) -> bool {
        self.sack_now || self.receiver.sack_wanted() == SackWanted::Now
    }

    /// From the handshake to the SHUTDOWN; HEARTBEATs are sent as long (8.3).
    pub(super) fn sends_data(&self) -> bool {
        matches!(
            self.state,
            State::Established | State::ShutdownPending | State::ShutdownReceived
        )
    }

    /// Fills one packet; its length, 0 if there was nothing to put into it.
    fn packet(
        &mut self,
        now: Time,
        id: PathId,
        with_data: bool,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut packet = self.begin_packet(out, limit);
        if let Some(auth) = &mut self.auth {
            auth.sign_with(self.sender.wished_key());
        }
        self.put_control(now, id, &mut packet);
        let sack =
            self.owes_sack() || (with_data && self.receiver.sack_wanted() == SackWanted::Delayed);
        if sack && packet.room() >= 16 {
            self.authenticate(kind::SACK, &mut packet);
            if self.receiver.write_sack(&mut packet) {
                self.sack_now = false;
                self.stats.sacks_out += 1;
                self.timers.stop(Timer::Sack);
            }
        }
        if self.paths[id].heartbeat_wanted && packet.room() >= 24 {
            self.authenticate(kind::HEARTBEAT, &mut packet);
            let info = self.begin_heartbeat(now, id);
            packet.heartbeat(kind::HEARTBEAT, &info);
        }
        self.put_changes(now, id, &mut packet);
        if self.sends_data() && self.sender.forward_due() {
            let kind = match self.features.interleave {
                true => kind::I_FORWARD_TSN,
                false => kind::FORWARD_TSN,
            };
            self.authenticate(kind, &mut packet);
            self.sender
                .write_forward(now, id, &self.paths, &mut self.timers, &mut packet);
        }
        if with_data {
            let kind = match self.features.interleave {
                true => kind::I_DATA,
                false => kind::DATA,
            };
            self.authenticate(kind, &mut packet);
            self.sender
                .fill(now, id, &mut self.paths, &mut self.timers, &mut packet);
        }
        let nothing = match self.auth.as_deref() {
            Some(auth) if packet.is_signed() => {
                packet.len() <= crate::wire::HEADER + auth.overhead()
            }
            _ => packet.is_empty(),
        };
        if nothing {
            packet.cancel();
            return 0;
        }
        packet.finish(self.signing_key(), !self.features.zero_checksum_out)
    }

    /// Control chunks for this path, or for any.
    fn put_control(&mut self, now: Time, id: PathId, packet: &mut PacketBuilder<'_>) {
        while let Some((to, chunk)) = self.control.front() {
            if to.is_some_and(|to| to != id) {
                break;
            }
            let (kind, size) = match chunk {
                Control::CookieAck => (kind::COOKIE_ACK, 4),
                Control::HeartbeatAck(info) => (kind::HEARTBEAT_ACK, info.len() + 8),
                Control::Error(causes) => (kind::ERROR, size_of_causes(causes) + 4),
                Control::Shutdown => (kind::SHUTDOWN, 8),
                Control::ShutdownAck => (kind::SHUTDOWN_ACK, 4),
                Control::Whole(bytes) => (bytes[0], bytes.len()),
            };
            if size > packet.room() {
                if !packet.is_empty() {
                    break;
                }
                // It fits no packet at all.
                self.control.pop_front();
                continue;
            }
            let (_, chunk) = self.control.pop_front().expect("it is in front");
            self.authenticate(kind, packet);
            self.stats.control_out += 1;
            match chunk {
                Control::CookieAck => packet.cookie_ack(),
                Control::HeartbeatAck(info) => packet.heartbeat(kind::HEARTBEAT_ACK, &info),
                Control::Error(causes) => put_error(packet, &causes),
                Control::Shutdown => {
                    packet.shutdown(self.receiver.cumulative());
                    let rto = self.paths[id].rto.current();
                    self.timers.set(Timer::Shutdown, now + rto);
                }
                Control::ShutdownAck => packet.shutdown_ack(),
                Control::Whole(bytes) => packet.raw(&bytes),
            }
        }
    }

    /// A probe for a larger packet, if it is time for one.
    fn probe_packet(&mut self, now: Time, out: &mut Vec<u8>) -> Option<(PathId, usize)> {
        if !self.features.pad || self.state != State::Established {
            return None;
        }
        let (id, size) = self
            .paths
            .iter_mut()
            .filter(|(_, path)| path.probe.is_none() && path.is_usable())
            .find_map(|(id, path)| Some((id, path.probing.probe(now)?)))?;
        let info = self.begin_probe(now, id, size);
        let mut packet = self.begin_packet(out, size);
        self.authenticate(kind::HEARTBEAT, &mut packet);
        packet.heartbeat(kind::HEARTBEAT, &info);
        let room = packet.room();
        if room >= 4 {
            packet.pad(room);
        }
        let checksum = !self.features.zero_checksum_out;
        Some((id, packet.finish(self.signing_key(), checksum)))
    }

    pub(super) fn begin_packet<'o>(&self, out: &'o mut Vec<u8>, limit: usize) -> PacketBuilder<'o> {
        PacketBuilder::begin(out, self.local_port, self.peer_port, self.peer_tag, limit)
    }

    /// What a packet with an AUTH chunk is signed with.
    pub(super) fn signing_key(&self) -> Option<&Key> {
        self.auth.as_deref()?.signing_key()
    }

    /// Puts an AUTH chunk in front of the first chunk whose kind the peer wants authenticated, or has to (RFC 5061 4.1).
    pub(super) fn authenticate(&self, kind: u8, packet: &mut PacketBuilder<'_>) {
        let Some(auth) = self.auth.as_deref() else {
            return;
        };
        let always = matches!(kind, kind::ASCONF | kind::ASCONF_ACK);
        if !packet.is_signed() && (always || auth.peer_requires(kind)) {
            auth.place(packet);
        }
    }
}

fn size_of_causes(causes: &[CauseOwned]) -> usize {
    causes
        .iter()
        .map(|cause| cause.value().len().next_multiple_of(4) + 4)
        .sum()
}
