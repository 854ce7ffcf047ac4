//! Streams: resets and additions (RFC 6525), and whose turn it is (RFC 8260).

use headwater_host::sys;
use headwater_sctp::SchedulerKind;
use headwater_sctp_stack::Order;

use super::*;
use crate::AssocT;

/// By their numbers: SCTP_SS_FCFS, PRIO, RR, and those that newer kernels have, FC and WFQ.
const SCHEDULERS: [SchedulerKind; 5] = [
    SchedulerKind::Fcfs,
    SchedulerKind::Priority,
    SchedulerKind::RoundRobin,
    SchedulerKind::FairCapacity,
    SchedulerKind::WeightedFair,
];

pub(super) const LAST_SCHEDULER: u32 = SCHEDULERS.len() as u32 - 1;

pub(super) fn set_scheduler(shared: &mut Shared, number: u32) {
    shared.config.scheduler = SCHEDULERS[number as usize];
}

impl Core {
    /// EINVAL: no such stream, neither direction; ENOPROTOOPT: it was not enabled, or the peer can't.
    pub(super) fn reset_streams(&mut self, value: &[u8]) -> sys::Result<()> {
        let asked: sctp_reset_streams = read(value)?;
        let count = usize::from(asked.srs_number_streams);
        let list = list_behind::<sctp_reset_streams>(value, count)?;
        let id = self.may_reconfigure(asked.srs_assoc_id, SCTP_ENABLE_RESET_STREAM_REQ)?;
        let flags = u32::from(asked.srs_flags);
        let outgoing = flags & SCTP_STREAM_RESET_OUTGOING != 0;
        let incoming = flags & SCTP_STREAM_RESET_INCOMING != 0;
        let (out, inbound) = self.streams_of(id)?;
        let most = |streams: u16| list.iter().all(|&stream| stream < streams);
        if !outgoing && !incoming || outgoing && !most(out) || incoming && !most(inbound) {
            return Err(libc::EINVAL);
        }
        if outgoing {
            self.order(id, Order::ResetOutgoing(list.clone()))?;
        }
        if incoming {
            self.order(id, Order::ResetIncoming(list))?;
        }
        Ok(())
    }

    pub(super) fn reset_association(&mut self, id: AssocT) -> sys::Result<()> {
        let id = self.may_reconfigure(id, SCTP_ENABLE_RESET_ASSOC_REQ)?;
        self.order(id, Order::ResetAssociation)
    }

    /// EINVAL: none, or more than there can be.
    pub(super) fn add_streams(&mut self, asked: &sctp_add_streams) -> sys::Result<()> {
        let id = self.may_reconfigure(asked.sas_assoc_id, SCTP_ENABLE_CHANGE_ASSOC_REQ)?;
        let (more_out, more_in) = (asked.sas_outstrms, asked.sas_instrms);
        let (out, inbound) = self.streams_of(id)?;
        let fits = out.checked_add(more_out).is_some() && inbound.checked_add(more_in).is_some();
        if !fits || more_out == 0 && more_in == 0 {
            return Err(libc::EINVAL);
        }
        let order = Order::AddStreams {
            out: more_out,
            inbound: more_in,
        };
        self.order(id, order)
    }

    fn may_reconfigure(&self, id: AssocT, request: u32) -> sys::Result<AssocT> {
        let id = self.one(id)?;
        let enabled = self.shared(Some(id)).stream_reset & request != 0;
        if !enabled || !self.features(Some(id)).reconfiguration {
            return Err(libc::ENOPROTOOPT);
        }
        Ok(id)
    }

    fn streams_of(&self, id: AssocT) -> sys::Result<(u16, u16)> {
        Ok(self.assocs.get(&id).ok_or(libc::EINVAL)?.body.streams())
    }

    fn order(&mut self, id: AssocT, order: Order) -> sys::Result<()> {
        let assoc = self.assocs.get_mut(&id).ok_or(libc::EINVAL)?;
        assoc.body.obey(&order).map_err(|errno| match errno {
            libc::EOPNOTSUPP => libc::ENOPROTOOPT,
            errno => errno,
        })
    }

    pub(super) fn get_scheduler(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        self.get_value(to, |shared| {
            let known = SCHEDULERS
                .iter()
                .position(|&s| s == shared.config.scheduler);
            known.unwrap_or(0) as u32
        })
    }

    /// EINVAL: no such stream. Before there is an association it is for the one to come.
    pub(super) fn set_stream_value(&mut self, asked: &sctp_stream_value) -> sys::Result<()> {
        let order = Order::StreamValue {
            stream: asked.stream_id,
            value: asked.stream_value,
        };
        let whom = self.whom(asked.assoc_id)?;
        if whom.future {
            let kept = &mut self.options.kept;
            kept.retain(|old| !matches!(old, Order::StreamValue { stream, .. } if *stream == asked.stream_id));
            kept.push(order.clone());
        }
        for id in whom.these {
            if asked.stream_id >= self.streams_of(id)?.0 {
                return Err(libc::EINVAL);
            }
            self.order(id, order.clone())?;
            if let Some(assoc) = self.assocs.get_mut(&id) {
                let values = &mut assoc.options.stream_values;
                values.insert(asked.stream_id, asked.stream_value);
            }
        }
        Ok(())
    }

    pub(super) fn get_stream_value(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let mut told: sctp_stream_value = to.asked()?;
        let id = self.one(told.assoc_id)?;
        let assoc = self.assocs.get(&id).ok_or(libc::EINVAL)?;
        if told.stream_id >= assoc.body.streams().0 {
            return Err(libc::EINVAL);
        }
        let value = assoc.options.stream_values.get(&told.stream_id);
        told.stream_value = value.copied().unwrap_or(0);
        to.tell(&told)
    }
}
