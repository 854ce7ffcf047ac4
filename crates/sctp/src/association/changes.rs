//! Changes of streams (RFC 6525) and addresses (RFC 5061) while the association goes on, and of keys (RFC 4895).

use core::net::IpAddr;

use super::{Association, Control, State};
use crate::asconf::{Change, Refused};
use crate::auth::{Auth, KeyError, Vectors};
use crate::reset::{Ask, AskRefused};
use crate::wire::{Cause, Chunk, Packet, PacketBuilder, Params, kind};
use crate::{Arrived, AssocConfig, Event, Outcome, PathChange, PathId, PathState, Time, Timer};

/// A request to change streams or addresses was not even begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeRefused {
    /// There is no association, or not yet.
    NotOpen,
    /// The peer can't do that, or it was not offered.
    Unsupported,
    Streams(AskRefused),
    Addresses(Refused),
}

impl Association {
    /// Asks for a change of streams; an event tells what came of it.
    pub fn change_streams(&mut self, ask: Ask) -> Result<(), ChangeRefused> {
        self.check_change(self.features.reconfiguration)?;
        self.reset
            .ask(ask, &self.sender, &self.receiver)
            .map_err(ChangeRefused::Streams)
    }

    /// Asks for a change of our addresses; an event tells what came of it.
    pub fn change_addresses(&mut self, change: Change) -> Result<(), ChangeRefused> {
        self.check_change(self.features.addresses)?;
        self.asconf
            .ask(change, &self.local)
            .map_err(ChangeRefused::Addresses)?;
        if let Change::Delete(addr) = change {
            self.leave_source(addr);
        }
        Ok(())
    }

    /// May a change be asked for now, which both sides have to support?
    fn check_change(&self, supported: bool) -> Result<(), ChangeRefused> {
        match self.state {
            State::Established if supported => Ok(()),
            State::Established => Err(ChangeRefused::Unsupported),
            _ => Err(ChangeRefused::NotOpen),
        }
    }

    /// An address that is to be deleted is no packet's source any more: the peer refuses to delete the one that asks for it.
    fn leave_source(&mut self, leaving: IpAddr) {
        self.has_left = true;
        let local = &self.local;
        for (_, path) in self.paths.iter_mut() {
            if path.from.is_none_or(|from| from == leaving) {
                let fits = |a: &&IpAddr| **a != leaving && a.is_ipv4() == path.addr.is_ipv4();
                path.from = local.iter().find(fits).copied();
            }
        }
    }

    pub fn set_key(&mut self, number: u16, secret: &[u8]) {
        if let Some(auth) = &mut self.auth {
            auth.set_key(number, secret);
        }
        self.config.keep_key(number, secret);
    }

    pub fn activate_key(&mut self, number: u16) -> Result<(), KeyError> {
        if let Some(auth) = &mut self.auth {
            auth.activate(number)?;
        }
        self.config.active_key = number;
        Ok(())
    }

    /// No more packets are signed with this key; [`Event::KeyFree`] tells when none is.
    pub fn deactivate_key(&mut self, number: u16) -> Result<(), KeyError> {
        match &mut self.auth {
            Some(auth) => auth.deactivate(number)?,
            None if number == self.config.active_key => return Err(KeyError::InUse),
            None => {}
        }
        self.tell(Event::KeyFree(number));
        Ok(())
    }

    pub fn remove_key(&mut self, number: u16) -> Result<(), KeyError> {
        if let Some(auth) = &mut self.auth {
            auth.remove_key(number)?;
        }
        self.config
            .shared_keys
            .retain(|(known, _)| *known != number);
        Ok(())
    }

    pub fn auth(&self) -> Option<&Auth> {
        self.auth.as_deref()
    }

    pub(super) fn change_wanted(&self) -> bool {
        // A shutdown waits for what was asked for before it: messages may wait for a reset.
        let open = matches!(
            self.state,
            State::Established
                | State::ShutdownPending
                | State::ShutdownReceived
                | State::ShutdownSent
        );
        open && (self.reset.wants(&self.sender) || self.asconf.wants())
    }

    /// RE-CONFIG and ASCONF chunks, as far as there are some and they fit.
    pub(super) fn put_changes(&mut self, now: Time, id: PathId, packet: &mut PacketBuilder<'_>) {
        if !self.change_wanted() {
            return;
        }
        if self.reset.wants(&self.sender) {
            self.authenticate(kind::RE_CONFIG, packet);
            if self.reset.write(&mut self.sender, packet) {
                let rto = self.paths[id].rto.current();
                self.timers.set(Timer::Reconf, now + rto);
            }
        }
        if self.asconf.wants() {
            let path = &self.paths[id];
            let (rto, source) = (path.rto.current(), path.from);
            let Some(lookup) = source.or(path.heard).or(self.local.first().copied()) else {
                return;
            };
            self.authenticate(kind::ASCONF, packet);
            if let Some(chunk) = self.asconf.request(lookup, source, packet.room()) {
                packet.raw(chunk);
                self.timers.set(Timer::Asconf, now + rto);
            }
        }
    }

    pub(super) fn on_re_config(&mut self, params: Params<'_>) {
        let events = self
            .reset
            .on_re_config(params, &mut self.sender, &mut self.receiver);
        events.into_iter().for_each(|event| self.tell(event));
        if !self.reset.is_outstanding() {
            self.timers.stop(Timer::Reconf);
        }
    }

    pub(super) fn repeat_reset(&mut self, now: Time) {
        self.reset.on_timeout();
        self.change_unanswered(now, self.reset.is_outstanding());
    }

    fn change_unanswered(&mut self, now: Time, outstanding: bool) {
        if outstanding {
            let path = self.data_path();
            self.paths[path].rto.back_off();
            self.path_error(now, path, true);
        }
    }

    /// `from` may be an address that is only about to be added.
    pub(super) fn on_asconf(
        &mut self,
        now: Time,
        serial: u32,
        params: Params<'_>,
        arrived: &Arrived<'_>,
    ) {
        let peer: Vec<IpAddr> = self.paths.iter().map(|(_, path)| path.addr).collect();
        let handled = self.asconf.on_asconf(serial, params, arrived.from, &peer);
        for action in handled.actions {
            self.act(now, action, arrived.encap);
        }
        if let Some(answer) = handled.answer {
            let to = self.paths.find(arrived.from);
            self.answer(to, answer.len(), || Control::Whole(answer));
        }
    }

    fn act(&mut self, now: Time, action: Change, encap: Option<u16>) {
        match action {
            Change::Add(addr) => {
                if let Some(id) = self.add_path(now, addr, encap, PathState::Unconfirmed) {
                    self.paths[id].heartbeat_wanted = true;
                    self.schedule_heartbeat(now, id);
                    self.tell_of_path(addr, PathChange::Added);
                }
            }
            Change::Delete(addr) => {
                if let Some(id) = self.paths.find(addr) {
                    self.remove_path(now, id);
                }
            }
            Change::SetPrimary(addr) => {
                if self.set_primary(addr) {
                    self.tell_of_path(addr, PathChange::MadePrimary);
                }
            }
        }
    }

    pub(super) fn on_asconf_ack(&mut self, serial: u32, params: Params<'_>) {
        match self.asconf.on_ack(serial, params) {
            Ok(done) => {
                for (change, outcome) in done {
                    self.address_done(change, outcome);
                }
                if !self.asconf.is_outstanding() {
                    self.timers.stop(Timer::Asconf);
                }
            }
            Err(_) => self.abort_with(&Cause::IllegalAsconfAck),
        }
    }

    fn address_done(&mut self, change: Change, outcome: Outcome) {
        let addr = match change {
            Change::Add(addr) => {
                if outcome == Outcome::Done && !self.local.contains(&addr) {
                    self.local.push(addr);
                }
                addr
            }
            Change::Delete(addr) => {
                if outcome == Outcome::Done {
                    self.local.retain(|one| *one != addr);
                    for (_, path) in self.paths.iter_mut() {
                        path.from = path.from.filter(|from| *from != addr);
                    }
                }
                addr
            }
            Change::SetPrimary(addr) => addr,
        };
        self.tell(Event::AddressDone { addr, outcome });
    }

    pub(super) fn repeat_asconf(&mut self, now: Time) {
        self.asconf.on_timeout();
        self.change_unanswered(now, self.asconf.is_outstanding());
    }

    /// An authenticated packet from an address that is not the peer's yet: its ASCONF may make it one.
    pub(crate) fn handle_from_elsewhere(
        &mut self,
        now: Time,
        packet: &Packet<'_>,
        arrived: &Arrived<'_>,
    ) {
        let mut chunks = packet.chunks();
        let verified = match chunks.next() {
            Some(Ok(Chunk::Auth(auth))) => self.verify(packet, &auth).is_some(),
            _ => false,
        };
        if !verified || !self.features.addresses {
            return;
        }
        if let Some(Ok(Chunk::Asconf { serial, params })) = chunks.next() {
            self.on_asconf(now, serial, params, arrived);
        }
    }
}

/// The keys of an association, from what both sides said and what the user has told.
pub(crate) fn keys(config: &AssocConfig, ours: &Vectors, theirs: &Vectors) -> Option<Box<Auth>> {
    let mut auth = Auth::agree(ours, theirs)?;
    for (number, secret) in &config.shared_keys {
        auth.set_key(*number, secret);
    }
    // A key that the user has not set yet is used once it is.
    let _ = auth.activate(config.active_key);
    Some(Box::new(auth))
}
