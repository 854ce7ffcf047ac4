//! What goes with messages by default, and what is told of them: events, and messages that were given up.

use headwater_host::sys;
use headwater_sctp::send::Policy;

use super::whom::Whom;
use super::*;
use crate::{AssocT, SendInfo, State, control, notice};

/// Flags that a default may have.
const DEFAULT_FLAGS: u16 = SCTP_UNORDERED | SCTP_ADDR_OVER | SCTP_ABORT | SCTP_EOF;

impl Core {
    /// EINVAL: a flag that can't be a default.
    pub(super) fn set_default_param(&mut self, asked: &sctp_sndrcvinfo) -> sys::Result<()> {
        if asked.sinfo_flags & !DEFAULT_FLAGS != 0 {
            return Err(libc::EINVAL);
        }
        let mut info = SendInfo::of_sndrcv(asked)?;
        let whom = self.whom(core::mem::take(&mut info.raw.snd_assoc_id))?;
        self.change(&whom, |shared| shared.send = info);
        Ok(())
    }

    pub(super) fn get_default_param(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let asked: sctp_sndrcvinfo = to.asked()?;
        let mut told = self.default_of(asked.sinfo_assoc_id)?.sndrcv();
        // The old struct has no policies, but a time to live.
        told.sinfo_flags &= !SCTP_PR_SCTP_MASK;
        to.tell(&told)
    }

    pub(super) fn set_default_info(&mut self, asked: &sctp_sndinfo) -> sys::Result<()> {
        if asked.snd_flags & !DEFAULT_FLAGS != 0 {
            return Err(libc::EINVAL);
        }
        let whom = self.whom(asked.snd_assoc_id)?;
        self.change(&whom, |shared| {
            shared.send.key = None;
            shared.send.raw = sctp_sndinfo {
                snd_assoc_id: 0,
                ..*asked
            };
        });
        Ok(())
    }

    pub(super) fn get_default_info(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let asked: sctp_sndinfo = to.asked()?;
        to.tell(&self.default_of(asked.snd_assoc_id)?.raw)
    }

    fn default_of(&self, id: AssocT) -> sys::Result<SendInfo> {
        let mut send = self.shared_of(id)?.send;
        send.raw.snd_assoc_id = id;
        Ok(send)
    }

    pub(super) fn set_default_reliability(
        &mut self,
        asked: &sctp_default_prinfo,
    ) -> sys::Result<()> {
        if asked.pr_policy & !SCTP_PR_SCTP_MASK != 0 {
            return Err(libc::EINVAL);
        }
        let reliability = control::reliability(asked.pr_policy, asked.pr_value)?;
        let whom = self.whom(asked.pr_assoc_id)?;
        self.change(&whom, |shared| shared.send.reliability = reliability);
        Ok(())
    }

    pub(super) fn get_default_reliability(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let mut told: sctp_default_prinfo = to.asked()?;
        let send = self.shared_of(told.pr_assoc_id)?.send;
        (told.pr_policy, told.pr_value) = control::policy(send.reliability);
        to.tell(&told)
    }

    pub(super) fn set_context(&mut self, asked: &sctp_assoc_value) -> sys::Result<()> {
        let whom = self.whom(asked.assoc_id)?;
        self.change(&whom, |shared| shared.context = asked.assoc_value);
        Ok(())
    }

    /// Holds for all associations, as Linux has it.
    pub(super) fn set_events(&mut self, wanted: &[u8]) -> sys::Result<()> {
        let mut events = self.options.events;
        events.subscribe(wanted)?;
        let all = self.everybody();
        self.subscribe(&all, |shared| shared.events = events);
        Ok(())
    }

    pub(super) fn get_events(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let told = self.options.events.as_subscribe();
        if to.room == 0 {
            return Err(libc::EINVAL);
        }
        to.tell_bytes(&told[..to.room.min(told.len())])
    }

    pub(super) fn set_event(&mut self, asked: &sctp_event) -> sys::Result<()> {
        self.options.events.clone().set(asked.se_type, true)?;
        let mut whom = self.whom(asked.se_assoc_id)?;
        // How messages come is the socket's, whichever association it was asked for.
        whom.future |= asked.se_type == SCTP_DATA_IO_EVENT && self.is_one();
        self.subscribe(&whom, |shared| {
            let _ = shared.events.set(asked.se_type, asked.se_on != 0);
        });
        Ok(())
    }

    pub(super) fn get_event(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let mut told: sctp_event = to.asked()?;
        self.options.events.clone().set(told.se_type, true)?;
        let shared = self.shared_of(told.se_assoc_id)?;
        told.se_on = shared.events.has(told.se_type).into();
        to.tell(&told)
    }

    /// Who begins to ask for it is told at once that everything is sent, if it is.
    fn subscribe(&mut self, whom: &Whom, change: impl FnMut(&mut Shared)) {
        let wanted = |core: &Core, id: &AssocT| {
            core.assocs
                .get(id)
                .is_some_and(|a| a.options.events.has(SCTP_SENDER_DRY_EVENT))
        };
        let before: Vec<bool> = whom.these.iter().map(|id| wanted(self, id)).collect();
        self.change(whom, change);
        self.options.data_io = self.options.events.has(SCTP_DATA_IO_EVENT);
        for (id, before) in whom.these.iter().zip(before) {
            let now = wanted(self, id);
            if now == before {
                continue;
            }
            let Some(assoc) = self.assocs.get_mut(id) else {
                continue;
            };
            assoc.body.want_dry(now);
            if now && assoc.state == State::Up && assoc.body.unsent() == 0 {
                let dry = assoc.notice(notice::sender_dry(*id));
                self.notices.push_back(dry);
            }
        }
    }

    /// How many messages were given up, in all or of one stream. EINVAL: no such policy, no such stream.
    pub(super) fn get_abandoned(&self, to: &mut Answer<'_>, of_stream: bool) -> sys::Result<()> {
        let mut told: sctp_prstatus = to.asked()?;
        let policy = told.sprstat_policy;
        let all = policy & SCTP_PR_SCTP_ALL != 0 && !of_stream;
        let known = SCTP_PR_SCTP_MASK | if of_stream { 0 } else { SCTP_PR_SCTP_ALL };
        if policy == 0 || policy & !known != 0 {
            return Err(libc::EINVAL);
        }
        let id = self.one(told.sprstat_assoc_id)?;
        let assoc = self.assocs.get(&id).ok_or(libc::EINVAL)?;
        let stream = of_stream.then_some(told.sprstat_sid);
        if stream.is_some_and(|stream| stream >= assoc.body.streams().0) {
            return Err(libc::EINVAL);
        }
        let by = match policy & SCTP_PR_SCTP_MASK {
            _ if all => None,
            SCTP_PR_SCTP_TTL => Some(Policy::Ttl),
            SCTP_PR_SCTP_RTX => Some(Policy::Rtx),
            _ => Some(Policy::Prio),
        };
        let counts = assoc.body.look(|a| a.sender().abandoned(stream, by));
        // In memory there is nothing to wait for, and none is given up.
        let counts = counts.unwrap_or_default();
        told.sprstat_abandoned_unsent = counts.unsent;
        told.sprstat_abandoned_sent = counts.sent;
        to.tell(&told)
    }
}
