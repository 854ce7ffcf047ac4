//! Paths: which one data takes, heartbeats, failures (RFC 9260 section 8, RFC 7829), path MTU.

use core::net::IpAddr;
use core::time::Duration;

use super::Association;
use crate::{Event, Path, PathChange, PathId, PathState, Pmtu, Rto, Time, Timer};

/// The information in a HEARTBEAT: a nonce, and which path it belongs to.
const INFORMATION: usize = 9;

impl Association {
    /// Where data goes now: the primary if it is well, else another that is, else the least bad.
    pub(super) fn data_path(&self) -> PathId {
        let rank = |path: &Path| match path.state {
            PathState::Active => 0,
            PathState::PotentiallyFailed => 1,
            PathState::Inactive => 2,
            PathState::Unconfirmed => 3,
        };
        match self.paths.get(self.primary) {
            Some(primary) if primary.state == PathState::Active => self.primary,
            _ => self
                .paths
                .iter()
                .min_by_key(|(id, path)| (rank(path), path.errors, *id != self.primary))
                .map_or(self.primary, |(id, _)| id),
        }
    }

    /// Where retransmissions after a timeout go: another active path than the one that failed (6.4.1).
    pub(super) fn retransmission_path(&self) -> PathId {
        let usual = self.data_path();
        match self.sender.lost_on() {
            Some(failed) if failed == usual => self
                .paths
                .iter()
                .find(|(id, path)| *id != failed && path.state == PathState::Active)
                .map_or(usual, |(id, _)| id),
            _ => usual,
        }
    }

    pub(super) fn add_path(
        &mut self,
        now: Time,
        addr: IpAddr,
        encap: Option<u16>,
        state: PathState,
    ) -> Option<PathId> {
        if let Some(known) = self.paths.find(addr) {
            return Some(known);
        }
        let mtu = self.config.mtu;
        let path = Path {
            addr,
            encap,
            from: self.source_for(addr),
            heard: None,
            state,
            rto: Rto::new(self.config.rto),
            window: (self.config.window)(mtu),
            flight: 0,
            mtu,
            probing: match self.config.probe_mtu {
                true => Pmtu::new(mtu, self.config.most_mtu),
                false => Pmtu::fixed(mtu),
            },
            errors: 0,
            last_sent: now,
            heartbeat: None,
            heartbeats: self.config.heartbeats,
            heartbeat_interval: None,
            most_errors: None,
            potentially_failed: None,
            heartbeat_wanted: false,
            probe: None,
            retransmissions: 0,
        };
        self.paths.add(path)
    }

    /// Our address towards this one, where there is just one to choose.
    fn source_for(&self, to: IpAddr) -> Option<IpAddr> {
        let mut fitting = self.local.iter().filter(|a| a.is_ipv4() == to.is_ipv4());
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Some(*only),
            _ => None,
        }
    }

    pub(super) fn remove_path(&mut self, now: Time, id: PathId) {
        let Some(path) = self.paths.get(id) else {
            return;
        };
        let addr = path.addr;
        let is_other = |other: &PathId| *other != id && self.paths.get(*other).is_some();
        let Some(other) = self.paths.ids().find(is_other) else {
            return;
        };
        for timer in [Timer::T3(id), Timer::Heartbeat(id), Timer::Pmtu(id)] {
            self.timers.stop(timer);
        }
        if self.primary == id {
            self.primary = other;
        }
        if self.last_from == id {
            self.last_from = self.primary;
        }
        self.sender
            .remove_path(now, id, &mut self.paths, &mut self.timers);
        self.control.retain(|(path, _)| *path != Some(id));
        self.paths.remove(id);
        self.tell_of_path(addr, PathChange::Removed);
    }

    pub(super) fn tell_of_path(&mut self, addr: IpAddr, change: PathChange) {
        self.tell(Event::Path { addr, change });
    }

    /// A HEARTBEAT or data was not answered in time.
    pub(super) fn mark_error(&mut self, now: Time, id: PathId) {
        let limit = self.config.path_retransmissions;
        let potentially = self.config.potentially_failed;
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        let limit = path.most_errors.unwrap_or(limit);
        let potentially = path.potentially_failed.unwrap_or(potentially);
        path.errors += 1;
        if path.state == PathState::Unconfirmed {
            return;
        }
        let state = if path.errors > limit {
            PathState::Inactive
        } else if path.errors > potentially {
            PathState::PotentiallyFailed
        } else {
            path.state
        };
        self.set_path_state(id, state);
        if state != PathState::Active {
            // RFC 7829: a path in doubt is probed at once, and then once per timeout.
            self.schedule_heartbeat(now, id);
        }
    }

    /// The path has answered.
    pub(super) fn path_is_well(&mut self, now: Time, id: PathId) {
        self.errors = 0;
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        path.errors = 0;
        if path.state != PathState::Active && path.state != PathState::Unconfirmed {
            self.set_path_state(id, PathState::Active);
            self.schedule_heartbeat(now, id);
        }
    }

    fn set_path_state(&mut self, id: PathId, state: PathState) {
        let path = &mut self.paths[id];
        if path.state != state {
            path.state = state;
            let addr = path.addr;
            self.tell_of_path(addr, PathChange::State(state));
        }
    }

    /// The address is the peer's: it has answered a HEARTBEAT, or taken part in the handshake.
    pub(super) fn confirm(&mut self, now: Time, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        if path.state == PathState::Unconfirmed {
            path.state = PathState::Active;
            path.errors = 0;
            let addr = path.addr;
            self.tell_of_path(addr, PathChange::Confirmed);
            self.schedule_probe(id);
        }
        self.schedule_heartbeat(now, id);
    }

    /// Sets the time of the next HEARTBEAT. Those of paths that are in doubt go out once per timeout.
    pub(super) fn schedule_heartbeat(&mut self, now: Time, id: PathId) {
        if !self.sends_data() {
            return;
        }
        let jitter = self.nonce();
        let interval = self.config.heartbeat_interval;
        let Some(path) = self.paths.get(id) else {
            return;
        };
        if !path.heartbeats && path.state != PathState::Unconfirmed {
            self.timers.stop(Timer::Heartbeat(id));
            return;
        }
        let rto = path.rto.current();
        let between = match path.state {
            PathState::Unconfirmed | PathState::PotentiallyFailed => Duration::ZERO,
            _ => path.heartbeat_interval.unwrap_or(interval),
        };
        // RTO +/- 50 % (8.3).
        let share = (jitter % 1024) as u32;
        let rto = rto / 2 + rto * share / 1024;
        self.timers.set(Timer::Heartbeat(id), now + rto + between);
    }

    /// Nothing but the shutdown is of interest now.
    pub(super) fn stop_heartbeats(&mut self) {
        for (id, path) in self.paths.iter_mut() {
            path.heartbeat = None;
            path.heartbeat_wanted = false;
            self.timers.stop(Timer::Heartbeat(id));
            self.timers.stop(Timer::Pmtu(id));
        }
    }

    /// The heartbeat timer has expired: either an answer is missing, or it is time for the next.
    pub(super) fn heartbeat_due(&mut self, now: Time, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        if path.heartbeat.take().is_some() {
            path.rto.back_off();
            let unconfirmed = path.state == PathState::Unconfirmed;
            // Where no path is confirmed nothing else could tell that the peer is gone.
            let counts = !unconfirmed || !self.has_confirmed_path();
            self.path_error(now, id, counts);
            if !self.is_open() {
                return;
            }
        }
        self.sender.trim();
        let path = &mut self.paths[id];
        let idle = now.since(path.last_sent) >= path.rto.current() || path.flight == 0;
        if idle || path.state != PathState::Active {
            path.heartbeat_wanted = true;
        }
        self.schedule_heartbeat(now, id);
    }

    fn has_confirmed_path(&self) -> bool {
        let mut states = self.paths.iter().map(|(_, path)| path.state);
        states.any(|state| state != PathState::Unconfirmed)
    }

    /// The information of a new HEARTBEAT on this path; its answer is expected within a timeout.
    pub(super) fn begin_heartbeat(&mut self, now: Time, id: PathId) -> [u8; INFORMATION] {
        let nonce = self.nonce();
        let path = &mut self.paths[id];
        path.heartbeat = Some((nonce, now));
        path.heartbeat_wanted = false;
        let rto = path.rto.current();
        if path.heartbeats || path.state == PathState::Unconfirmed {
            self.timers.set(Timer::Heartbeat(id), now + rto);
        }
        information(nonce, id)
    }

    /// The information of a probe for a larger packet.
    pub(super) fn begin_probe(&mut self, now: Time, id: PathId, size: usize) -> [u8; INFORMATION] {
        let nonce = self.nonce();
        let path = &mut self.paths[id];
        path.probe = Some((nonce, size));
        let rto = path.rto.current();
        self.timers.set(Timer::Pmtu(id), now + rto);
        information(nonce, id)
    }

    pub(super) fn on_heartbeat_ack(&mut self, now: Time, info: &[u8]) {
        let Some((nonce, id)) = read_information(info) else {
            return;
        };
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        if let Some((_, size)) = path.probe.filter(|(expected, _)| *expected == nonce) {
            path.probe = None;
            path.probing.on_ack(size);
            path.adopt_mtu();
            self.timers.stop(Timer::Pmtu(id));
            self.schedule_probe(id);
            return;
        }
        let Some((_, sent)) = path.heartbeat.filter(|(expected, _)| *expected == nonce) else {
            return;
        };
        path.heartbeat = None;
        path.rto.sample(now.since(sent));
        self.confirm(now, id);
        self.path_is_well(now, id);
        self.schedule_heartbeat(now, id);
    }

    /// Sets the time of the next probe for a larger packet, if one is to be made.
    pub(super) fn schedule_probe(&mut self, id: PathId) {
        let Some(path) = self.paths.get(id) else {
            return;
        };
        if let Some(at) = path.probing.next() {
            self.timers.set_if_stopped(Timer::Pmtu(id), at);
        }
    }

    /// The network says that packets of this size are too long.
    pub(crate) fn too_big(&mut self, to: IpAddr, mtu: usize) {
        if let Some(id) = self.paths.find(to) {
            let path = &mut self.paths[id];
            path.probing.on_too_big(mtu);
            path.adopt_mtu();
        }
    }
}

impl Path {
    /// Packets of this size from now on, whatever the network takes: IP fragments what is too long.
    pub fn fix_mtu(&mut self, mtu: usize) {
        self.begin_anew(Pmtu::fixed(mtu));
    }

    /// Packets of this size from now on; larger ones, no longer than `most`, are searched for.
    pub fn search_mtu(&mut self, mtu: usize, most: usize) {
        self.begin_anew(Pmtu::new(mtu, most));
    }

    fn begin_anew(&mut self, probing: Pmtu) {
        self.probing = probing;
        self.probe = None;
        self.adopt_mtu();
    }

    /// Uses the packet size that probing has found.
    pub(crate) fn adopt_mtu(&mut self) {
        let mtu = self.probing.mtu();
        if mtu != self.mtu {
            self.mtu = mtu;
            self.window.set_mtu(mtu);
        }
    }
}

fn information(nonce: u64, id: PathId) -> [u8; INFORMATION] {
    let mut bytes = [0; INFORMATION];
    bytes[..8].copy_from_slice(&nonce.to_be_bytes());
    bytes[8] = id.0;
    bytes
}

fn read_information(info: &[u8]) -> Option<(u64, PathId)> {
    let bytes: &[u8; INFORMATION] = info.try_into().ok()?;
    let nonce = u64::from_be_bytes(bytes[..8].try_into().ok()?);
    Some((nonce, PathId(bytes[8])))
}
