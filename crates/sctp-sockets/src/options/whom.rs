//! About which associations an option is: Linux's rules for the number in its struct. Of a one-to-one socket it does not matter: it
//! has one association, or will have.

use headwater_host::sys;

use super::*;
use crate::{AssocT, State, Style};

/// Those to come, and these; by default nobody.
#[derive(Default)]
pub(super) struct Whom {
    pub(super) future: bool,
    pub(super) these: Vec<AssocT>,
}

impl Core {
    pub(super) fn is_one(&self) -> bool {
        self.style == Style::One
    }

    /// EOPNOTSUPP: the socket is of the other style.
    pub(super) fn be_of(&self, style: Style) -> sys::Result<()> {
        (self.style == style).then_some(()).ok_or(libc::EOPNOTSUPP)
    }

    /// The association that is meant, if it is there.
    pub(super) fn meant(&self, id: AssocT) -> Option<AssocT> {
        match self.style {
            Style::One if self.listening => None,
            Style::One => {
                let mut all = self.assocs.values();
                all.find(|assoc| assoc.state == State::Up)
                    .map(|assoc| assoc.id)
            }
            Style::Many if id <= SCTP_ALL_ASSOC => None,
            Style::Many => {
                let assoc = self.assocs.get(&id)?;
                (assoc.state != State::Over).then_some(assoc.id)
            }
        }
    }

    /// An association that must be there. EINVAL.
    pub(super) fn one(&self, id: AssocT) -> sys::Result<AssocT> {
        self.meant(id).ok_or(libc::EINVAL)
    }

    /// An association, or those to come: `None`. EINVAL.
    pub(super) fn one_or_future(&self, id: AssocT) -> sys::Result<Option<AssocT>> {
        let found = self.meant(id);
        if found.is_none() && id != SCTP_FUTURE_ASSOC && !self.is_one() {
            return Err(libc::EINVAL);
        }
        Ok(found)
    }

    /// One, those to come, those that there are, or all of these. EINVAL.
    pub(super) fn whom(&self, id: AssocT) -> sys::Result<Whom> {
        if let Some(found) = self.meant(id) {
            return Ok(Whom::only(found));
        }
        if self.is_one() {
            return Ok(Whom::future());
        }
        match id {
            SCTP_FUTURE_ASSOC => Ok(Whom::future()),
            SCTP_CURRENT_ASSOC | SCTP_ALL_ASSOC => Ok(Whom {
                future: id == SCTP_ALL_ASSOC,
                these: self.live(),
            }),
            _ => Err(libc::EINVAL),
        }
    }

    /// As [`Core::one_or_future`], to be changed.
    pub(super) fn whom_or_future(&self, id: AssocT) -> sys::Result<Whom> {
        Ok(self
            .one_or_future(id)?
            .map_or_else(Whom::future, Whom::only))
    }

    pub(super) fn everybody(&self) -> Whom {
        Whom {
            future: true,
            these: self.live(),
        }
    }

    /// Those that are not over.
    pub(super) fn live(&self) -> Vec<AssocT> {
        let live = self.assocs.values().filter(|a| a.state != State::Over);
        live.map(|assoc| assoc.id).collect()
    }

    pub(super) fn shared(&self, of: Option<AssocT>) -> &Shared {
        match of.and_then(|id| self.assocs.get(&id)) {
            Some(assoc) => &assoc.options,
            None => &self.options,
        }
    }

    /// Of an association, or of those to come. EINVAL.
    pub(super) fn shared_of(&self, id: AssocT) -> sys::Result<&Shared> {
        Ok(self.shared(self.one_or_future(id)?))
    }

    /// Changes what packets do not depend on.
    pub(super) fn change(&mut self, whom: &Whom, mut change: impl FnMut(&mut Shared)) {
        if whom.future {
            change(&mut self.options);
        }
        for id in &whom.these {
            if let Some(assoc) = self.assocs.get_mut(id) {
                change(&mut assoc.options);
            }
        }
    }

    /// Changes what associations go by.
    pub(super) fn tune(&mut self, whom: &Whom, mut change: impl FnMut(&mut Shared)) {
        self.change(whom, |shared| {
            change(shared);
            shared.settle();
        });
        if whom.future {
            self.tell_port();
        }
        for id in &whom.these {
            if let Some(assoc) = self.assocs.get_mut(id) {
                assoc.body.tune(&assoc.options.config);
            }
        }
    }

    /// What peers' associations are to get.
    pub(super) fn tell_port(&self) {
        if let Some(port) = &self.port {
            port.offer(&self.options.config, self.options.cookie_life);
        }
    }

    /// Sets a number that each association has. EINVAL: it is more than `most`.
    pub(super) fn set_value(
        &mut self,
        asked: &sctp_assoc_value,
        most: u32,
        set: impl Fn(&mut Shared, u32),
    ) -> sys::Result<()> {
        let whom = self.whom(asked.assoc_id)?;
        if asked.assoc_value > most {
            return Err(libc::EINVAL);
        }
        self.tune(&whom, |shared| set(shared, asked.assoc_value));
        Ok(())
    }

    /// Tells one.
    pub(super) fn get_value(
        &self,
        to: &mut Answer<'_>,
        value: impl FnOnce(&Shared) -> u32,
    ) -> sys::Result<()> {
        let mut told: sctp_assoc_value = to.asked()?;
        told.assoc_value = value(self.shared_of(told.assoc_id)?);
        to.tell(&told)
    }
}

impl Whom {
    fn only(id: AssocT) -> Whom {
        Whom {
            these: vec![id],
            ..Whom::default()
        }
    }

    pub(super) fn future() -> Whom {
        Whom {
            future: true,
            ..Whom::default()
        }
    }
}
