//! Parameters of the protocol, and which extensions are offered.

use core::time::Duration;

use headwater_host::sys;
use headwater_sctp::Features;

use super::values::HEADERS;
use super::whom::Whom;
use super::*;
use crate::{AssocT, Style};

/// What Linux takes for SCTP_MAXSEG: a packet of 512 bytes with IP's header, and the longest chunk.
const LEAST_PACKET: u32 = 512;
const LONGEST_CHUNK: u32 = 65_535;
const IPV4: u32 = 20;
const IPV6: u32 = 40;
/// The most that a SACK may be put off (RFC 9260 6.2), in milliseconds.
pub(super) const MOST_SACK_DELAY: u32 = 500;
/// net.sctp.max_autoclose, in seconds.
const MOST_AUTOCLOSE: u32 = i32::MAX as u32 / 1000;
/// Values of SCTP_EXPOSE_POTENTIALLY_FAILED_STATE: unset, off, on.
pub(super) const EXPOSE_OFF: u32 = 1;
pub(crate) const EXPOSE_ON: u32 = 2;

fn ms(n: u32) -> Duration {
    Duration::from_millis(n.into())
}

fn in_ms(d: Duration) -> u32 {
    u32::try_from(d.as_millis()).unwrap_or(u32::MAX)
}

impl Core {
    /// 0 leaves a value as it is. EINVAL: the least is above the most.
    pub(super) fn set_rto(&mut self, asked: &sctp_rtoinfo) -> sys::Result<()> {
        let whom = self.whom_or_future(asked.srto_assoc_id)?;
        let now = self.shared(whom.these.first().copied()).config.rto;
        let or = |n: u32, now: Duration| if n == 0 { now } else { ms(n) };
        let min = or(asked.srto_min, now.min);
        let max = or(asked.srto_max, now.max);
        let initial = or(asked.srto_initial, now.initial);
        if min > max {
            return Err(libc::EINVAL);
        }
        self.tune(&whom, |shared| {
            let rto = &mut shared.config.rto;
            (rto.initial, rto.min, rto.max) = (initial, min, max);
        });
        Ok(())
    }

    pub(super) fn get_rto(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let mut told: sctp_rtoinfo = to.asked()?;
        let rto = self.shared_of(told.srto_assoc_id)?.config.rto;
        told.srto_initial = in_ms(rto.initial);
        told.srto_min = in_ms(rto.min);
        told.srto_max = in_ms(rto.max);
        to.tell(&told)
    }

    /// EINVAL: more errors than all paths may have, where there are several.
    pub(super) fn set_association(&mut self, asked: &sctp_assocparams) -> sys::Result<()> {
        let whom = self.whom_or_future(asked.sasoc_assoc_id)?;
        let most = u32::from(asked.sasoc_asocmaxrxt);
        if let Some(assoc) = whom.these.first().and_then(|id| self.assocs.get(id)) {
            let (hosts, _) = assoc.body.peer();
            let each = hosts.iter().map(|&host| assoc.options.path_to(host));
            let all: u32 = each.map(|path| u32::from(path.most_errors)).sum();
            if hosts.len() > 1 && most > all {
                return Err(libc::EINVAL);
            }
        }
        let life = asked.sasoc_cookie_life;
        self.tune(&whom, |shared| {
            if most > 0 {
                shared.config.association_retransmissions = most;
            }
            if life > 0 {
                shared.cookie_life = ms(life);
            }
        });
        Ok(())
    }

    pub(super) fn get_association(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let asked: sctp_assocparams = to.asked()?;
        let of = self.one_or_future(asked.sasoc_assoc_id)?;
        let shared = self.shared(of);
        let mut told = sctp_assocparams {
            sasoc_asocmaxrxt: shared.config.association_retransmissions as u16,
            sasoc_number_peer_destinations: 0,
            sasoc_peer_rwnd: 0,
            sasoc_local_rwnd: 0,
            sasoc_cookie_life: in_ms(shared.cookie_life),
            ..asked
        };
        if let Some(assoc) = of.and_then(|id| self.assocs.get(&id)) {
            let status = assoc.body.status();
            told.sasoc_number_peer_destinations = status.paths.len() as u16;
            told.sasoc_peer_rwnd = status.peer_window;
            let window = shared
                .config
                .receive_window
                .saturating_sub(status.unread as usize);
            told.sasoc_local_rwnd = window as u32;
        }
        to.tell(&told)
    }

    pub(super) fn set_init(&mut self, asked: &sctp_initmsg) -> sys::Result<()> {
        self.options.apply_init(asked);
        self.tell_port();
        Ok(())
    }

    pub(super) fn get_init(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let shared = self.shared(None);
        to.tell(&sctp_initmsg {
            sinit_num_ostreams: shared.config.outbound,
            sinit_max_instreams: shared.config.inbound,
            sinit_max_attempts: shared.config.init_retransmissions as u16,
            sinit_max_init_timeo: shared.init_timeout,
        })
    }

    pub(super) fn set_nodelay(&mut self, on: bool) -> sys::Result<()> {
        self.tune(&self.everybody(), |shared| shared.config.nagle = !on);
        Ok(())
    }

    /// Seconds; 0: off. EOPNOTSUPP: one-to-one.
    pub(super) fn set_autoclose(&mut self, value: &[u8]) -> sys::Result<()> {
        self.be_of(Style::Many)?;
        let seconds = exactly::<u32>(value)?.min(MOST_AUTOCLOSE);
        let after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
        self.tune(&Whom::future(), |shared| shared.config.autoclose = after);
        Ok(())
    }

    pub(super) fn get_autoclose(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        self.be_of(Style::Many)?;
        let after = self.options.config.autoclose;
        to.tell(&after.map_or(0, |after| after.as_secs() as u32))
    }

    pub(super) fn set_adaptation(&mut self, code: u32) -> sys::Result<()> {
        self.tune(&Whom::future(), |shared| {
            shared.config.adaptation = (code != 0).then_some(code);
        });
        Ok(())
    }

    /// 0: what fits a packet.
    pub(super) fn set_maxseg(&mut self, value: &[u8]) -> sys::Result<()> {
        let (asked, _) = value_or_int(value)?;
        let whom = self.whom_or_future(asked.assoc_id)?;
        let most = asked.assoc_value;
        let ip = if self.v6 { IPV6 } else { IPV4 };
        let legal = LEAST_PACKET - ip - HEADERS..=LONGEST_CHUNK - (HEADERS - 12);
        if most != 0 && !legal.contains(&most) {
            return Err(libc::EINVAL);
        }
        self.tune(&whom, |shared| shared.maxseg = most);
        Ok(())
    }

    pub(super) fn get_maxseg(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let (asked, is_int) = value_or_int(to.value)?;
        let most = match self.one_or_future(asked.assoc_id)? {
            Some(id) => self.fragment(id),
            None => self.options.maxseg,
        };
        to.tell_value(asked, is_int, most)
    }

    /// The most user data of one chunk.
    pub(crate) fn fragment(&self, id: AssocT) -> u32 {
        let Some(assoc) = self.assocs.get(&id) else {
            return 0;
        };
        if let Some(told) = assoc.body.look(|a| a.fragmentation_point()) {
            return told as u32;
        }
        let status = assoc.body.status();
        let primary = status.paths.first();
        let fits = primary.map_or(0, |path| path.mtu.saturating_sub(HEADERS));
        match assoc.options.maxseg {
            0 => fits,
            most => most.min(fits),
        }
    }

    /// A delay or frequency of 0 stays as it is; a frequency of 1 ends delays. EINVAL: too long.
    pub(super) fn set_delayed_sack(&mut self, value: &[u8]) -> sys::Result<()> {
        let asked = if value.len() == size_of::<sctp_assoc_value>() {
            let old: sctp_assoc_value = read(value)?;
            sctp_sack_info {
                sack_assoc_id: old.assoc_id,
                sack_delay: old.assoc_value,
                sack_freq: u32::from(old.assoc_value == 0),
            }
        } else {
            exactly(value)?
        };
        if asked.sack_delay > MOST_SACK_DELAY {
            return Err(libc::EINVAL);
        }
        let whom = self.whom(asked.sack_assoc_id)?;
        let change = |path: &mut PathValues| {
            if asked.sack_delay > 0 {
                path.sack_delay = asked.sack_delay;
                path.delays_sack = true;
            }
            match asked.sack_freq {
                0 => {}
                freq => path.delays_sack = freq > 1,
            }
        };
        self.change_paths(&whom, change);
        self.tune(&whom, |shared| {
            change(&mut shared.path);
            if asked.sack_freq > 1 {
                shared.sack_every = asked.sack_freq;
            }
        });
        Ok(())
    }

    pub(super) fn get_delayed_sack(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let id = to.asked::<AssocT>()?;
        let shared = self.shared_of(id)?;
        let (delay, freq) = if shared.path.delays_sack {
            (shared.path.sack_delay, shared.sack_every)
        } else {
            (0, 1)
        };
        if to.room == size_of::<sctp_assoc_value>() {
            return to.tell(&sctp_assoc_value {
                assoc_id: id,
                assoc_value: delay,
            });
        }
        to.tell(&sctp_sack_info {
            sack_assoc_id: id,
            sack_delay: delay,
            sack_freq: freq,
        })
    }

    pub(super) fn get_max_burst(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let (asked, is_int) = value_or_int(to.value)?;
        let burst = self.shared_of(asked.assoc_id)?.config.max_burst;
        to.tell_value(asked, is_int, burst)
    }

    /// Anything else than the levels of RFC 6458 8.1.20 is 1, as any but 0 is for Linux.
    pub(super) fn set_interleave(&mut self, level: i32) -> sys::Result<()> {
        self.options.interleave = match level {
            0 => 0,
            2 => 2,
            _ => 1,
        };
        self.tune(&self.everybody(), |shared| {
            shared.config.interleaved_delivery = level == 2;
            shared.config.interleave &= level != 0;
        });
        Ok(())
    }

    /// EINVAL: more than half of what can be kept for the user.
    pub(super) fn set_delivery_point(&mut self, bytes: u32) -> sys::Result<()> {
        if bytes > self.options.rcvbuf / 2 {
            return Err(libc::EINVAL);
        }
        self.options.delivery_point = bytes;
        self.tune_delivery();
        Ok(())
    }

    /// EOPNOTSUPP: one-to-many.
    pub(super) fn set_byte_stream(&mut self, on: bool) -> sys::Result<()> {
        self.be_of(Style::One)?;
        self.options.byte_stream = on;
        // The rest of a message is what comes next in any case.
        self.current = None;
        self.tune_delivery();
        Ok(())
    }

    fn tune_delivery(&mut self) {
        let (joins, point) = self.options.delivery();
        self.tune(&self.everybody(), |shared| {
            shared.config.joins = joins;
            shared.config.partial_delivery_point = point;
        });
    }

    /// What INIT offers. EPERM: interleaved messages without SCTP_FRAGMENT_INTERLEAVE.
    pub(super) fn set_supported(&mut self, name: i32, asked: &sctp_assoc_value) -> sys::Result<()> {
        self.one_or_future(asked.assoc_id)?;
        if name == SCTP_INTERLEAVING_SUPPORTED && self.options.interleave == 0 {
            return Err(libc::EPERM);
        }
        let on = asked.assoc_value != 0;
        self.tune(&Whom::future(), |shared| {
            let config = &mut shared.config;
            match name {
                SCTP_PR_SUPPORTED => config.partial_reliability = on,
                SCTP_RECONFIG_SUPPORTED => config.reconfiguration = on,
                SCTP_ASCONF_SUPPORTED => config.address_reconfiguration = on,
                SCTP_AUTH_SUPPORTED => config.authentication = on,
                SCTP_INTERLEAVING_SUPPORTED => config.interleave = on,
                _ => {}
            }
        });
        Ok(())
    }

    pub(super) fn get_supported(&self, name: i32, to: &mut Answer<'_>) -> sys::Result<()> {
        let mut told: sctp_assoc_value = to.asked()?;
        let features = self.features(self.one_or_future(told.assoc_id)?);
        let on = match name {
            SCTP_PR_SUPPORTED => features.forward,
            SCTP_RECONFIG_SUPPORTED => features.reconfiguration,
            SCTP_ASCONF_SUPPORTED => features.addresses,
            SCTP_AUTH_SUPPORTED => features.auth,
            SCTP_INTERLEAVING_SUPPORTED => features.interleave,
            _ => false,
        };
        told.assoc_value = on.into();
        to.tell(&told)
    }

    /// What an association's ends have agreed on, or what is offered.
    pub(super) fn features(&self, of: Option<AssocT>) -> Features {
        if let Some(assoc) = of.and_then(|id| self.assocs.get(&id))
            && let Some(features) = assoc.body.look(|a| a.features())
        {
            return features;
        }
        let config = &self.shared(of).config;
        Features {
            forward: config.partial_reliability,
            interleave: config.interleave,
            reconfiguration: config.reconfiguration,
            addresses: config.address_reconfiguration,
            auth: config.authentication || config.address_reconfiguration,
            ..Features::default()
        }
    }

    /// EINVAL: not all addresses are ours.
    pub(super) fn set_auto_asconf(&mut self, on: bool) -> sys::Result<()> {
        let hosts = self.local.as_ref().map(|local| &local.hosts);
        if on && hosts.is_some_and(|hosts| !hosts.is_empty()) {
            return Err(libc::EINVAL);
        }
        self.options.auto_asconf = on;
        Ok(())
    }

    /// EOPNOTSUPP: one-to-many; EFAULT: it is bound.
    pub(super) fn set_reuse_port(&mut self, value: &[u8]) -> sys::Result<()> {
        self.be_of(Style::One)?;
        if self.local.is_some() {
            return Err(libc::EFAULT);
        }
        self.options.reuse_port = flag(value)?;
        Ok(())
    }

    pub(super) fn set_exposure(&mut self, asked: &sctp_assoc_value) -> sys::Result<()> {
        if asked.assoc_value > EXPOSE_ON {
            return Err(libc::EINVAL);
        }
        let whom = self.whom_or_future(asked.assoc_id)?;
        self.change(&whom, |shared| shared.exposure = asked.assoc_value);
        Ok(())
    }
}
