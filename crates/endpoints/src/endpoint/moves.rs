//! The endpoint's state: which requests it allows, and what these and the provider's news make of it.

use headwater_providers::provider::{Adoption, Arrived, Event, Outcome, Provider};
use headwater_tpi::option::{List, T_ALLOPT, T_CURRENT, T_NOTSUPPORT};
use headwater_tpi::state::{self, Event as Move, State};
use headwater_tpi::{Refusal, error, refuse};

use super::Core;
use super::shared::Shared;

impl Core {
    pub(super) fn next(&self, m: Move) -> Outcome<State> {
        if !m.suits(self.provider.info().serv) {
            return refuse(error::TNOTSUPPORT);
        }
        state::next(self.state, m).ok_or(Refusal::new(error::TOUTSTATE))
    }

    /// A request that was not adopted goes back to where it came from.
    pub(super) fn adopted_or_back(&mut self, seq: i32, adopted: Adoption) -> Outcome<()> {
        adopted.map_err(|(refusal, request)| {
            self.provider.return_request(seq, request);
            refusal
        })
    }

    /// May data be sent in this state?
    #[inline]
    pub(super) fn may(&self, m: Move) -> Outcome<()> {
        match state::next(self.state, m) {
            Some(_) => Ok(()),
            None => self.next(m).map(|_| ()),
        }
    }

    /// A request: checked, done, acknowledged by the move `ack`.
    pub(super) fn request<T>(
        &mut self,
        m: Move,
        ack: Move,
        act: impl FnOnce(&mut dyn Provider) -> Outcome<T>,
    ) -> Outcome<T> {
        let waiting = self.next(m)?;
        let next = state::next(waiting, ack).ok_or(Refusal::new(error::TOUTSTATE))?;
        let result = act(&mut *self.provider)?;
        self.state = next;
        self.publish(&[m, ack]);
        Ok(result)
    }

    /// The provider has told something.
    pub(super) fn told(&mut self, m: Move) {
        if let Some(next) = state::next(self.state, m) {
            self.state = next;
        }
        self.publish(&[m]);
    }

    /// Other processes learn of it when they ask.
    pub(super) fn publish(&self, moves: &[Move]) {
        if let Some(shared) = self.shared {
            shared.moved(moves);
        }
    }

    pub(super) fn set_qlen(&mut self, qlen: u32) {
        self.qlen = qlen;
        if let Some(shared) = self.shared {
            shared.set_qlen(qlen);
        }
    }

    /// What other processes have done with the endpoint.
    pub(super) fn catch_up(&mut self) {
        let Some(now) = self.shared.and_then(Shared::standing) else {
            return;
        };
        if now.outstanding == 0 {
            // They were answered elsewhere.
            for seq in core::mem::take(&mut self.doubled) {
                if self.outstanding.contains(&seq) {
                    self.answered(seq);
                    drop(self.provider.take_request(seq));
                }
            }
        }
        if now.state == self.state {
            return;
        }
        use State::{DataXfer, WconCreq, WindOrdrel, WreqOrdrel};
        let connected = |s| matches!(s, WconCreq | DataXfer | WindOrdrel | WreqOrdrel);
        if connected(self.state) && !connected(now.state) {
            self.provider.connection_over();
        }
        if now.state == State::Unbnd {
            let _ = self.provider.unbind();
        }
        self.state = now.state;
        self.qlen = now.qlen;
        self.provider.catch_up(now.state, now.qlen);
    }

    /// Does the provider have options of this level?
    pub(super) fn has_level(&mut self, level: u32) -> Outcome<bool> {
        let mut all = List::new();
        all.push(level, T_ALLOPT, 0, &[]);
        let (worst, _) = self.provider.negotiate(T_CURRENT as u32, all.bytes())?;
        Ok(worst != T_NOTSUPPORT as u32)
    }

    pub(super) fn answered(&mut self, seq: i32) {
        self.outstanding.retain(|&s| s != seq);
    }

    /// Is the user told of no further request before one is answered?
    pub(super) fn is_full(&self) -> bool {
        self.qlen > 0 && self.outstanding.len() >= self.qlen as usize
    }

    pub(super) fn peek(&mut self) -> Option<Event> {
        match self.state {
            State::Unbnd => None,
            _ => self.provider.peek(),
        }
    }

    pub(super) fn take(&mut self) -> Option<Arrived> {
        self.peek()?;
        let arrived = self.provider.take()?;
        match &arrived {
            Arrived::Request { seq, .. } => {
                self.told(Move::ConnInd);
                self.outstanding.push(*seq);
            }
            Arrived::Confirmed { .. } => self.told(Move::ConnCon),
            Arrived::Disconnected { seq, .. } => {
                self.told(Move::discon_ind(self.outstanding.len()));
                if self.outstanding.contains(seq) {
                    self.answered(*seq);
                } else {
                    self.provider.connection_over();
                }
            }
            Arrived::Released { .. } => {
                self.told(Move::OrdrelInd);
                if self.state == State::Idle {
                    self.provider.connection_over();
                }
            }
            Arrived::Undelivered { .. } => {}
        }
        Some(arrived)
    }
}
