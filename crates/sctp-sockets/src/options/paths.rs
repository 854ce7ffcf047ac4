//! Paths: which addresses of the peer, and how they are looked after.

use core::net::IpAddr;
use core::time::Duration;

use headwater_host::sys;
use headwater_sctp::asconf::Change;
use headwater_sctp::{Association as Engine, Time};
use headwater_sctp_stack::option::status::Path;
use headwater_sctp_stack::{Order, is_any};

use super::parameters::MOST_SACK_DELAY;
use super::whom::Whom;
use super::*;
use crate::{AssocT, Body};

/// struct sctp_paddrparams before it had a flow label.
const OLD_PARAMETERS: usize = 152;
/// spp_pathmtu at least.
const LEAST_MTU: u32 = 512;
/// spi_interval at least, but 0.
const LEAST_PROBE: u32 = 5000;
const BOTH: [u32; 3] = [SPP_HB, SPP_PMTUD, SPP_SACKDELAY];

/// What an option about paths means: one address, an association with all of its paths, or those to come.
struct Ways {
    whom: Whom,
    one: Option<(AssocT, IpAddr)>,
}

impl Core {
    /// The path to an address, where one was named. `none`: there is no such path.
    pub(super) fn path_to(
        &self,
        id: AssocT,
        address: &Storage,
        none: i32,
    ) -> sys::Result<Option<(AssocT, IpAddr)>> {
        let family = u16::from_ne_bytes([address[0], address[1]]);
        let Some((host, port)) = of_storage(address) else {
            let unspecified = i32::from(family) == libc::AF_UNSPEC;
            return if unspecified { Ok(None) } else { Err(none) };
        };
        if is_any(host) {
            return Ok(None);
        }
        let has = |id: &AssocT| {
            let Some(assoc) = self.assocs.get(id) else {
                return false;
            };
            let (hosts, peer) = assoc.body.peer();
            hosts.contains(&host) && (port == peer || port == 0)
        };
        let found = match self.meant(id) {
            Some(id) => Some(id).filter(has),
            None if self.is_one() => None,
            None => match self.peers.get(&(host, port)) {
                Some(&id) => Some(id),
                None => self.live().into_iter().find(|id| has(id)),
            },
        };
        found.map(|id| Some((id, host))).ok_or(none)
    }

    fn ways(&self, id: AssocT, address: &Storage, none: i32) -> sys::Result<Ways> {
        let one = self.path_to(id, address, none)?;
        let whom = match one {
            Some(_) => Whom::default(),
            None => self.whom_or_future(id)?,
        };
        Ok(Ways { whom, one })
    }

    /// The values of a path, of an association's, or of those to come.
    fn values(&self, id: AssocT, address: &Storage, none: i32) -> sys::Result<PathValues> {
        if let Some((id, host)) = self.path_to(id, address, none)? {
            let assoc = self.assocs.get(&id).ok_or(none)?;
            return Ok(*assoc.options.path_to(host));
        }
        Ok(self.shared_of(id)?.path)
    }

    fn change_ways(&mut self, ways: &Ways, change: impl Fn(&mut PathValues)) {
        self.change_paths(&ways.whom, &change);
        self.tune(&ways.whom, |shared| change(&mut shared.path));
        if let Some((id, host)) = ways.one
            && let Some(assoc) = self.assocs.get_mut(&id)
        {
            let mut values = *assoc.options.path_to(host);
            change(&mut values);
            assoc.options.paths.insert(host, values);
            apply(&mut assoc.body, host, &values);
        }
    }

    /// Changes the paths that have values of their own.
    pub(super) fn change_paths(&mut self, whom: &Whom, change: impl Fn(&mut PathValues)) {
        for id in &whom.these {
            let Some(assoc) = self.assocs.get_mut(id) else {
                continue;
            };
            for (host, values) in &mut assoc.options.paths {
                change(values);
                apply(&mut assoc.body, *host, values);
            }
        }
    }

    /// EINVAL: both of on and off, a number out of its range, a heartbeat on demand to nobody.
    pub(super) fn set_path_parameters(&mut self, value: &[u8]) -> sys::Result<()> {
        let asked: sctp_paddrparams = match value.len() {
            OLD_PARAMETERS => sctp_paddrparams::read_short(value),
            _ => exactly(value)?,
        };
        let (flags, mtu) = (asked.spp_flags, asked.spp_pathmtu);
        let legal = BOTH.iter().all(|&both| flags & both != both)
            && asked.spp_sackdelay <= MOST_SACK_DELAY
            && (mtu == 0 || mtu >= LEAST_MTU);
        if !legal {
            return Err(libc::EINVAL);
        }
        let ways = self.ways(asked.spp_assoc_id, &asked.spp_address, libc::EINVAL)?;
        if flags & SPP_HB_DEMAND != 0 {
            self.each_path(&ways, |a, _, host, _| {
                a.request_heartbeat(host);
            })?;
        }
        self.change_ways(&ways, |path| adjust(path, &asked));
        if flags & SPP_PMTUD != 0 {
            let _ = self.settle_mtu(&ways);
        }
        Ok(())
    }

    pub(super) fn get_path_parameters(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let len = match to.value.len() {
            OLD_PARAMETERS => OLD_PARAMETERS,
            _ => size_of::<sctp_paddrparams>(),
        };
        if to.value.len() < len {
            return Err(libc::EINVAL);
        }
        let mut told = sctp_paddrparams::read_short(&to.value[..len]);
        let path = self.values(told.spp_assoc_id, &told.spp_address, libc::EINVAL)?;
        let either = |on: bool, yes: u32, no: u32| if on { yes } else { no };
        told.spp_hbinterval = path.interval;
        told.spp_pathmaxrxt = path.most_errors;
        told.spp_pathmtu = path.mtu;
        told.spp_sackdelay = path.sack_delay;
        told.spp_flags = either(path.heartbeats, SPP_HB_ENABLE, SPP_HB_DISABLE)
            | either(path.discovers_mtu, SPP_PMTUD_ENABLE, SPP_PMTUD_DISABLE)
            | either(
                path.delays_sack,
                SPP_SACKDELAY_ENABLE,
                SPP_SACKDELAY_DISABLE,
            )
            | either(path.flow_label.is_some(), SPP_IPV6_FLOWLABEL, 0)
            | either(path.dscp.is_some(), SPP_DSCP, 0);
        told.spp_ipv6_flowlabel = path.flow_label.unwrap_or(0);
        told.spp_dscp = path.dscp.unwrap_or(0);
        if path.fixed_mtu().is_none()
            && let Some(used) = self.used_path(told.spp_assoc_id, &told.spp_address)
        {
            told.spp_pathmtu = used.mtu;
        }
        to.tell_bytes(&told.bytes()[..len])
    }

    /// Of a path, or of an association's primary one.
    fn used_path(&self, id: AssocT, address: &Storage) -> Option<Path> {
        let one = self.path_to(id, address, libc::EINVAL).ok()?;
        let id = one.map(|(id, _)| id).or_else(|| self.meant(id))?;
        let status = self.assocs.get(&id)?.body.status();
        status.paths.into_iter().find(|path| match one {
            Some((_, host)) => path.host == host,
            None => path.primary,
        })
    }

    /// Lets packets have the size that was set, or find their own.
    fn settle_mtu(&self, ways: &Ways) -> sys::Result<()> {
        self.each_path(ways, |a, now, host, options| {
            let (values, most) = (options.path_to(host), options.config.most_mtu);
            a.set_path(now, host, |path| {
                let mtu = path.mtu;
                match values.fixed_mtu() {
                    Some(fixed) => path.fix_mtu(fixed),
                    None if values.discovers_mtu => path.search_mtu(mtu, most.max(mtu)),
                    None => path.fix_mtu(mtu),
                }
            });
        })
    }

    /// Does it to each path that is meant. EINVAL: those to come are meant.
    fn each_path(
        &self,
        ways: &Ways,
        act: impl Fn(&mut Engine, Time, IpAddr, &AssocOptions),
    ) -> sys::Result<()> {
        let one = ways.one.map(|(id, _)| id);
        let id = one.or(ways.whom.these.first().copied());
        let assoc = id.and_then(|id| self.assocs.get(&id)).ok_or(libc::EINVAL)?;
        let one = ways.one.map(|(_, host)| vec![host]);
        let hosts = one.unwrap_or_else(|| assoc.body.peer().0);
        assoc.body.change(|a, now| {
            for host in hosts {
                act(a, now, host, &assoc.options);
            }
        });
        Ok(())
    }

    /// EINVAL (of version 2): the primary would change before it is potentially failed; ENOENT: no such path.
    pub(super) fn set_thresholds(&mut self, value: &[u8], second: bool) -> sys::Result<()> {
        let asked: sctp_paddrthlds_v2 = read(value)?;
        if second && asked.spt_pathpfthld > asked.spt_pathcpthld {
            return Err(libc::EINVAL);
        }
        let ways = self.ways(asked.spt_assoc_id, &asked.spt_address, libc::ENOENT)?;
        self.change_ways(&ways, |path| {
            if asked.spt_pathmaxrxt > 0 {
                path.most_errors = asked.spt_pathmaxrxt;
            }
            path.potentially_failed = asked.spt_pathpfthld;
            if second {
                path.change_primary = asked.spt_pathcpthld;
            }
        });
        Ok(())
    }

    pub(super) fn get_thresholds(&self, to: &mut Answer<'_>, second: bool) -> sys::Result<()> {
        let mut told: sctp_paddrthlds_v2 = to.asked()?;
        let path = self.values(told.spt_assoc_id, &told.spt_address, libc::ENOENT)?;
        told.spt_pathmaxrxt = path.most_errors;
        told.spt_pathpfthld = path.potentially_failed;
        if second {
            told.spt_pathcpthld = path.change_primary;
        }
        to.tell(&told)
    }

    /// The port stands in the network's byte order; 0: none. ENOENT: no such path.
    pub(super) fn set_encapsulation(&mut self, asked: &sctp_udpencaps) -> sys::Result<()> {
        let ways = self.ways(asked.sue_assoc_id, &asked.sue_address, libc::ENOENT)?;
        let port = u16::from_be(asked.sue_port);
        self.change_ways(&ways, |path| path.encap = port);
        if port > 0 {
            // An association's packets go there from now on.
            let _ = self.each_path(&ways, |a, now, host, _| {
                a.set_path(now, host, |path| path.encap = Some(port));
            });
        }
        Ok(())
    }

    pub(super) fn get_encapsulation(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let mut told: sctp_udpencaps = to.asked()?;
        let (id, address) = (told.sue_assoc_id, &told.sue_address);
        let set = self.values(id, address, libc::ENOENT)?.encap;
        let used = || {
            self.used_path(id, address)
                .map_or(0, |path| path.encap as u16)
        };
        let port = if set == 0 { used() } else { set };
        told.sue_port = port.to_be();
        to.tell(&told)
    }

    /// EINVAL: too often; ENOENT: no such path.
    pub(super) fn set_probe_interval(&mut self, asked: &sctp_probeinterval) -> sys::Result<()> {
        let interval = asked.spi_interval;
        if interval > 0 && interval < LEAST_PROBE {
            return Err(libc::EINVAL);
        }
        let ways = self.ways(asked.spi_assoc_id, &asked.spi_address, libc::ENOENT)?;
        self.change_ways(&ways, |path| path.probe_interval = interval);
        Ok(())
    }

    pub(super) fn get_probe_interval(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let mut told: sctp_probeinterval = to.asked()?;
        let path = self.values(told.spi_assoc_id, &told.spi_address, libc::ENOENT)?;
        told.spi_interval = path.probe_interval;
        to.tell(&told)
    }

    pub(super) fn set_primary(&mut self, asked: &sctp_prim) -> sys::Result<()> {
        let path = self.path_to(asked.ssp_assoc_id, &asked.ssp_addr, libc::EINVAL)?;
        let (id, host) = path.ok_or(libc::EINVAL)?;
        let assoc = self.assocs.get_mut(&id).ok_or(libc::EINVAL)?;
        assoc.body.obey(&Order::Primary(host))
    }

    pub(super) fn get_primary(&self, to: &mut Answer<'_>) -> sys::Result<()> {
        let mut told: sctp_prim = to.asked()?;
        let id = self.one(told.ssp_assoc_id)?;
        let assoc = self.assocs.get(&id).ok_or(libc::EINVAL)?;
        let (hosts, port) = assoc.body.peer();
        let &host = hosts.first().ok_or(libc::ENOTCONN)?;
        told.ssp_addr = self.told_address(host, port);
        to.tell(&told)
    }

    /// EPERM: the ends have not agreed on changes of addresses; EADDRNOTAVAIL: it is none of ours.
    pub(super) fn set_peer_primary(&mut self, asked: &sctp_setpeerprim) -> sys::Result<()> {
        let id = self.one(asked.sspp_assoc_id)?;
        if !self.features(Some(id)).addresses {
            return Err(libc::EPERM);
        }
        let (host, _) = of_storage(&asked.sspp_addr).ok_or(libc::EINVAL)?;
        let assoc = self.assocs.get_mut(&id).ok_or(libc::EINVAL)?;
        let (local, _) = assoc.body.local();
        if !local.is_empty() && !local.contains(&host) {
            return Err(libc::EADDRNOTAVAIL);
        }
        assoc.body.obey(&Order::Addresses(Change::SetPrimary(host)))
    }

    /// As the program wants to see an address.
    pub(super) fn told_address(&self, host: IpAddr, port: u16) -> Storage {
        storage(seen(host, self.v6, self.options.v4mapped), port)
    }
}

/// As spp_flags and the numbers that are not 0 say.
fn adjust(path: &mut PathValues, asked: &sctp_paddrparams) {
    let has = |flag: u32| asked.spp_flags & flag != 0;
    if has(SPP_HB) {
        path.heartbeats = has(SPP_HB_ENABLE);
    }
    if has(SPP_HB_ENABLE) {
        if has(SPP_HB_TIME_IS_ZERO) {
            path.interval = 0;
        } else if asked.spp_hbinterval > 0 {
            path.interval = asked.spp_hbinterval;
        }
    }
    if has(SPP_PMTUD) {
        path.discovers_mtu = has(SPP_PMTUD_ENABLE);
    }
    if has(SPP_PMTUD_DISABLE) && asked.spp_pathmtu > 0 {
        path.mtu = asked.spp_pathmtu;
    }
    if has(SPP_SACKDELAY) {
        path.delays_sack = has(SPP_SACKDELAY_ENABLE);
    }
    if has(SPP_SACKDELAY_ENABLE) && asked.spp_sackdelay > 0 {
        path.sack_delay = asked.spp_sackdelay;
    }
    if asked.spp_pathmaxrxt > 0 {
        path.most_errors = asked.spp_pathmaxrxt;
    }
    if has(SPP_IPV6_FLOWLABEL) {
        path.flow_label = Some(asked.spp_ipv6_flowlabel);
    }
    if has(SPP_DSCP) {
        path.dscp = Some(asked.spp_dscp);
    }
}

/// A path's own values, where there are packets.
fn apply(body: &mut Body, host: IpAddr, values: &PathValues) {
    body.change(|a, now| {
        a.set_path(now, host, |path| {
            path.heartbeats = values.heartbeats;
            path.heartbeat_interval = Some(Duration::from_millis(values.interval.into()));
            path.most_errors = Some(values.most_errors.into());
            path.potentially_failed = Some(values.potentially_failed.into());
        });
    });
}
