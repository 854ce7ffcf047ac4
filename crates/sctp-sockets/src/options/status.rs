//! What is told of associations and their paths.

use headwater_host::sys;
use headwater_sctp::PathState;
use headwater_sctp_stack::Status;
use headwater_sctp_stack::option::status::Path;

use super::parameters::EXPOSE_OFF;
use super::*;
use crate::{AssocT, Body};

/// User data of a usual packet, to make chunks of bytes.
const CHUNK: u32 = 1424;

impl Core {
    pub(super) fn get_status(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        // Only the number is looked at: programs pass nothing behind it.
        let id = self.one(to.asked()?)?;
        let status = self.status_of(id)?;
        let primary = status.paths.iter().find(|path| path.primary);
        to.tell(&sctp_status {
            sstat_assoc_id: id,
            sstat_state: status.state as i32 + SCTP_CLOSED,
            sstat_rwnd: status.peer_window,
            sstat_unackdata: chunks(status.unsent.saturating_add(status.unacked)),
            sstat_penddata: chunks(status.unread),
            sstat_instrms: status.istreams as u16,
            sstat_outstrms: status.ostreams as u16,
            sstat_fragmentation_point: self.fragment(id),
            sstat_primary: primary.map_or_else(Default::default, |path| self.told_path(id, path)),
        })
    }

    /// EACCES: the path is potentially failed, and the user does not want to know of that.
    pub(super) fn get_path_info(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let asked: sctp_paddrinfo = to.asked()?;
        let (id, address) = (asked.spinfo_assoc_id, &asked.spinfo_address);
        let path = self.path_to(id, address, libc::EINVAL)?;
        let (id, host) = path.ok_or(libc::EINVAL)?;
        let status = self.status_of(id)?;
        let path = status.paths.iter().find(|path| path.host == host);
        let path = path.ok_or(libc::EINVAL)?;
        if path.state == PathState::PotentiallyFailed
            && self.shared(Some(id)).exposure == EXPOSE_OFF
        {
            return Err(libc::EACCES);
        }
        to.tell(&sctp_paddrinfo {
            spinfo_address: *address,
            ..self.told_path(id, path)
        })
    }

    fn told_path(&self, id: AssocT, path: &Path) -> sctp_paddrinfo {
        sctp_paddrinfo {
            spinfo_assoc_id: id,
            spinfo_address: self.told_address(path.host, path.port),
            spinfo_state: match path.state {
                PathState::Inactive => SCTP_INACTIVE,
                PathState::Active => SCTP_ACTIVE,
                PathState::PotentiallyFailed => SCTP_PF,
                PathState::Unconfirmed => SCTP_UNCONFIRMED,
            },
            spinfo_cwnd: path.cwnd,
            spinfo_srtt: path.srtt / 1000,
            // Where there is nothing to wait for, nothing is waited for longer than it would be.
            spinfo_rto: match path.rto {
                0 => self.shared(Some(id)).config.rto.min.as_millis() as u32,
                rto => rto,
            },
            spinfo_mtu: path.mtu,
        }
    }

    fn status_of(&self, id: AssocT) -> sys::Result<Status> {
        let assoc = self.assocs.get(&id).ok_or(libc::EINVAL)?;
        Ok(assoc.body.status())
    }

    /// As much of the struct as there is room for, but the number at least.
    pub(super) fn get_stats(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let id = self.one(to.asked()?)?;
        let status = self.status_of(id)?;
        let mut told = sctp_assoc_stats {
            sas_assoc_id: id,
            sas_rtxchunks: status.retransmissions.into(),
            ..Default::default()
        };
        if let Some(primary) = status.paths.iter().max_by_key(|path| path.rto) {
            told.sas_obs_rto_ipaddr = self.told_address(primary.host, primary.port);
            told.sas_maxrto = primary.rto.into();
        }
        if let Some(assoc) = self.assocs.get(&id) {
            count(&assoc.body, &mut told);
        }
        let len = to.room.min(size_of::<sctp_assoc_stats>());
        to.tell_bytes(&told.bytes()[..len])
    }
}

/// What is counted of packets.
fn count(body: &Body, told: &mut sctp_assoc_stats) {
    let Some((stats, sent)) = body.look(|a| (a.stats(), a.sender().counts())) else {
        return;
    };
    told.sas_ipackets = stats.packets_in;
    told.sas_opackets = stats.packets_out;
    told.sas_isacks = stats.sacks_in;
    told.sas_osacks = stats.sacks_out;
    told.sas_gapcnt = stats.gaps_in;
    told.sas_rtxchunks = sent.again;
    told.sas_idupchunks = stats.duplicates_in;
    told.sas_iodchunks = stats.ordered_in;
    told.sas_iuodchunks = stats.unordered_in;
    told.sas_oodchunks = sent.ordered;
    told.sas_ouodchunks = sent.unordered;
    told.sas_ictrlchunks = stats.control_in;
    told.sas_octrlchunks = stats.control_out;
}

/// About how many chunks so many bytes are; none only if there is nothing.
fn chunks(bytes: u32) -> u16 {
    u16::try_from(bytes.div_ceil(CHUNK)).unwrap_or(u16::MAX)
}
