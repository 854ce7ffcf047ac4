//! Authentication of chunks (RFC 4895): which chunks, and shared keys.

use headwater_host::sys;
use headwater_sctp::Association as Engine;
use headwater_sctp::auth::Hmac;
use headwater_sctp_stack::Order;

use super::whom::Whom;
use super::*;
use crate::{AssocT, Body, notice};

/// Chunk types that nobody authenticates: INIT, INIT ACK, SHUTDOWN COMPLETE, AUTH (RFC 4895 3.2).
const NEVER: [u8; 4] = [1, 2, 14, 15];
/// Algorithms in SCTP_HMAC_IDENT at most.
const MOST_HMACS: usize = 4;

impl Core {
    /// A chunk type that peers have to authenticate. EINVAL: it can't be.
    pub(super) fn set_auth_chunk(&mut self, asked: &sctp_authchunk) -> sys::Result<()> {
        let kind = asked.sauth_chunk;
        if NEVER.contains(&kind) {
            return Err(libc::EINVAL);
        }
        self.tune(&Whom::future(), |shared| {
            let config = &mut shared.config;
            config.authentication = true;
            if !config.authenticated_chunks.contains(&kind) {
                config.authenticated_chunks.push(kind);
            }
        });
        Ok(())
    }

    /// EINVAL: none, too many, or without SHA-1, which everybody has; EOPNOTSUPP: an unknown one.
    pub(super) fn set_hmacs(&mut self, value: &[u8]) -> sys::Result<()> {
        let count = read::<sctp_hmacalgo>(value)?.shmac_num_idents as usize;
        if count == 0 || count > MOST_HMACS {
            return Err(libc::EINVAL);
        }
        let hmacs = list_behind::<sctp_hmacalgo>(value, count)?;
        if hmacs.iter().any(|&id| Hmac::from_id(id).is_none()) {
            return Err(libc::EOPNOTSUPP);
        }
        if !hmacs.contains(&Hmac::Sha1.id()) {
            return Err(libc::EINVAL);
        }
        self.options.hmacs = hmacs;
        self.authenticate();
        Ok(())
    }

    /// From now on.
    fn authenticate(&mut self) {
        self.tune(&Whom::future(), |s| s.config.authentication = true);
    }

    /// EINVAL: the key is longer than the value; EACCES: the association does not authenticate.
    pub(super) fn set_key(&mut self, value: &[u8]) -> sys::Result<()> {
        let asked: sctp_authkey = read(value)?;
        let secret = &value[size_of::<sctp_authkey>()..];
        if secret.is_empty() {
            return Err(libc::EINVAL);
        }
        let secret = secret.get(..asked.sca_keylength.into());
        let secret = secret.ok_or(libc::EINVAL)?;
        let whom = self.authenticating(asked.sca_assoc_id)?;
        let order = Order::SetKey {
            number: asked.sca_keynumber,
            secret: secret.to_vec(),
        };
        self.order_keys(&whom, &order)
    }

    /// Makes a key the active one, or deletes or deactivates one that is not. EINVAL: no such key, or not such a one.
    pub(super) fn change_key(&mut self, name: i32, asked: &sctp_authkeyid) -> sys::Result<()> {
        let number = asked.scact_keynumber;
        let whom = self.authenticating(asked.scact_assoc_id)?;
        let future = whom.future.then_some(None);
        for of in whom.these.iter().map(|&id| Some(id)).chain(future) {
            let shared = self.shared(of);
            let fits = match name {
                SCTP_AUTH_ACTIVE_KEY => !shared.deactivated.contains(&number),
                _ => shared.config.active_key != number,
            };
            if !fits || !has_key(shared, number) {
                return Err(libc::EINVAL);
            }
        }
        match name {
            SCTP_AUTH_ACTIVE_KEY => self.order_keys(&whom, &Order::ActivateKey(number)),
            SCTP_AUTH_DELETE_KEY => self.order_keys(&whom, &Order::RemoveKey(number)),
            _ => {
                self.deactivate(&whom, number);
                Ok(())
            }
        }
    }

    fn deactivate(&mut self, whom: &Whom, number: u16) {
        self.change(whom, |shared| shared.deactivated.push(number));
        for id in &whom.these {
            let Some(assoc) = self.assocs.get(id) else {
                continue;
            };
            match &assoc.body {
                Body::ByPackets(by_packets) => {
                    by_packets.change(|a, _| a.deactivate_key(number));
                }
                // Nothing is signed with it.
                Body::ByMemory(_) if assoc.options.events.has(SCTP_AUTHENTICATION_EVENT) => {
                    let told = notice::authentication(SCTP_AUTH_FREE_KEY, number, *id);
                    self.notices.push_back(assoc.notice(told));
                }
                Body::ByMemory(_) => {}
            }
        }
    }

    /// Can messages of this association be signed with that key?
    pub fn can_sign(&self, id: AssocT, number: u16) -> bool {
        let shared = self.shared(Some(id));
        has_key(shared, number) && !shared.deactivated.contains(&number)
    }

    /// Whose keys are meant; to ask for them is to want authentication. EACCES: one that does without.
    fn authenticating(&mut self, id: AssocT) -> sys::Result<Whom> {
        let whom = self.whom(id)?;
        if let [one] = whom.these[..]
            && !whom.future
            && !self.features(Some(one)).auth
        {
            return Err(libc::EACCES);
        }
        if whom.future {
            self.authenticate();
        }
        Ok(whom)
    }

    fn order_keys(&mut self, whom: &Whom, order: &Order) -> sys::Result<()> {
        self.tune(whom, |shared| keep(shared, order));
        for id in &whom.these {
            if let Some(assoc) = self.assocs.get_mut(id) {
                assoc.body.obey(order)?;
            }
        }
        Ok(())
    }

    pub(super) fn get_active_key(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let mut told: sctp_authkeyid = to.asked()?;
        told.scact_keynumber = self.shared_of(told.scact_assoc_id)?.config.active_key;
        to.tell(&told)
    }

    /// What the peer wants authenticated, or what we want. EINVAL: no association has said what.
    pub(super) fn get_auth_chunks(&self, to: &mut Answer<'_>, peers: bool) -> sys::Result<()> {
        let mut head: sctp_authchunks = to.asked()?;
        let id = head.gauth_assoc_id;
        let of = if peers {
            Some(self.one(id)?)
        } else {
            self.one_or_future(id)?
        };
        let side = |a: &Engine| {
            let auth = a.auth()?;
            let side = if peers { auth.theirs() } else { auth.ours() };
            Some(side.chunks().to_vec())
        };
        let assoc = of.and_then(|id| self.assocs.get(&id));
        let chunks = match assoc.and_then(|assoc| assoc.body.look(side)) {
            Some(agreed) => agreed.unwrap_or_default(),
            None if peers => Vec::new(),
            None => self.shared(of).config.authenticated_chunks.clone(),
        };
        head.gauth_number_of_chunks = chunks.len() as u32;
        to.tell_bytes(&[head.bytes(), &chunks].concat())
    }
}

/// Number 0, which is empty, is always there.
fn has_key(shared: &Shared, number: u16) -> bool {
    let mut keys = shared.config.shared_keys.iter();
    number == 0 || keys.any(|(known, _)| *known == number)
}

fn keep(shared: &mut Shared, order: &Order) {
    order.keep_key(&mut shared.config);
    if let Order::SetKey { number, .. } | Order::RemoveKey(number) = order {
        shared.deactivated.retain(|known| known != number);
    }
}
