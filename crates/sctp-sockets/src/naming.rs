//! Addresses: those that programs name, and those that they are told.

use core::net::IpAddr;

use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_sctp_stack::{Addresses, here, is_any, names};

use super::abi::seen;
use super::opening::{MOST_REQUESTS, refused};
use super::{Assoc, AssocT, Core, Socket, State, Style};

impl Socket {
    pub fn local_name(&self) -> sys::Result<Vec<u8>> {
        elsewhere!(self.local_name());
        let mut core = self.core.enter();
        let all = core.local_addresses(0).unwrap_or_default();
        let first = all.first().copied();
        Ok(first.unwrap_or(Address::any(self.v6)).to_vec())
    }

    pub fn peer_name(&self) -> sys::Result<Vec<u8>> {
        elsewhere!(self.peer_name());
        let mut core = self.core.enter();
        if core.style == Style::Many {
            return Err(libc::ENOTCONN);
        }
        core.gather();
        match core.only() {
            Some(assoc) if assoc.state == State::Up => {}
            _ => return Err(libc::ENOTCONN),
        }
        let all = core.peer_addresses(0).map_err(|_| libc::ENOTCONN)?;
        all.first().map(|a| a.to_vec()).ok_or(libc::ENOTCONN)
    }

    /// One address, or several one behind the other.
    pub(super) fn addresses(&self, given: &[u8], several: bool) -> sys::Result<Addresses> {
        let family = given.get(..2).ok_or(libc::EINVAL)?;
        match u16::from_ne_bytes([family[0], family[1]]) as i32 {
            libc::AF_INET => {}
            libc::AF_INET6 if self.v6 => {}
            libc::AF_INET6 => return Err(libc::EAFNOSUPPORT),
            _ => return Err(libc::EINVAL),
        }
        let first = Address::read(given).map_err(|_| libc::EINVAL)?;
        let given = if several {
            given
        } else {
            &given[..first.bytes().len()]
        };
        let mut all = Addresses::read(given).map_err(|_| libc::EINVAL)?;
        all.v6 = self.v6;
        // An array that ends with something else than an address.
        if several && !all.hosts.is_empty() && !reads_whole(given) {
            return Err(libc::EINVAL);
        }
        Ok(all)
    }
}

impl Core {
    pub(super) fn add_addresses(&mut self, wanted: &Addresses) -> sys::Result<()> {
        let Some(local) = &mut self.local else {
            return self.bind(wanted);
        };
        if wanted.port != 0 && wanted.port != local.port {
            return Err(libc::EINVAL);
        }
        if !wanted.hosts.iter().all(|&host| here::is_here(host)) {
            return Err(libc::EADDRNOTAVAIL);
        }
        let known = |host: &IpAddr| local.hosts.contains(host) || local.hosts.is_empty();
        if wanted.hosts.is_empty() || wanted.hosts.iter().any(known) {
            return Err(libc::EINVAL);
        }
        let more = Addresses {
            port: local.port,
            ..wanted.clone()
        };
        let (_, names) = names::claim(&more, false).map_err(refused)?;
        for name in &names {
            if let Some(by_memory) = &self.memory_listener {
                sys::listen(name.number(), MOST_REQUESTS as i32)?;
                by_memory
                    .watch_too(name.number())
                    .map_err(|_| libc::ENOMEM)?;
            }
        }
        self.names.extend(names);
        local.hosts.extend(&wanted.hosts);
        if let Some(port) = &self.port {
            wanted
                .hosts
                .iter()
                .try_for_each(|&host| port.add_address(host))?;
        }
        Ok(())
    }

    pub(super) fn remove_addresses(&mut self, unwanted: &Addresses) -> sys::Result<()> {
        let local = self.local.as_mut().ok_or(libc::EINVAL)?;
        if unwanted.hosts.is_empty() || unwanted.port != 0 && unwanted.port != local.port {
            return Err(libc::EINVAL);
        }
        if !unwanted.hosts.iter().all(|host| local.hosts.contains(host)) {
            return Err(libc::EADDRNOTAVAIL);
        }
        if local.hosts.len() <= unwanted.hosts.len() {
            // The last one stays.
            return Err(libc::EBUSY);
        }
        for host in &unwanted.hosts {
            let at = local.hosts.iter().position(|known| known == host);
            let at = at.ok_or(libc::EADDRNOTAVAIL)?;
            local.hosts.remove(at);
            if at < self.names.len() {
                self.names.remove(at);
            }
            if let Some(port) = &self.port {
                port.remove_address(*host)?;
            }
        }
        Ok(())
    }

    /// As a sockaddr of this socket's family.
    pub(super) fn address(&self, host: IpAddr, port: u16) -> Address {
        Address::of_ip(
            seen(host.to_canonical(), self.v6, self.options.v4mapped),
            port,
        )
    }

    fn told(&self, hosts: &[IpAddr], port: u16) -> Vec<Address> {
        hosts.iter().map(|&host| self.address(host, port)).collect()
    }

    fn assoc_of(&mut self, id: AssocT) -> sys::Result<&mut Assoc> {
        match self.style {
            Style::One => self.only(),
            Style::Many => self.assocs.get_mut(&id).map(|assoc| &mut **assoc),
        }
        .ok_or(libc::EINVAL)
    }

    pub(super) fn peer_addresses(&mut self, id: AssocT) -> sys::Result<Vec<Address>> {
        let (hosts, port) = self.assoc_of(id)?.body.peer();
        Ok(self.told(&hosts, port))
    }

    /// Those of an association; 0: those of the socket.
    pub(super) fn local_addresses(&mut self, id: AssocT) -> sys::Result<Vec<Address>> {
        let one = self.style == Style::One;
        if id != 0 || one && self.only().is_some() {
            let (hosts, port) = self.assoc_of(id)?.body.local();
            let hosts: Vec<_> = hosts.into_iter().filter(|host| !is_any(*host)).collect();
            if !hosts.is_empty() {
                return Ok(self.told(&hosts, port));
            }
        }
        let Some(local) = &self.local else {
            return Ok(vec![Address::any(self.v6)]);
        };
        if local.hosts.is_empty() {
            return Ok(vec![Address::any(self.v6).with_port(local.port)]);
        }
        Ok(self.told(&local.hosts, local.port))
    }
}

fn reads_whole(mut given: &[u8]) -> bool {
    while let Ok(one) = Address::read(given) {
        given = &given[one.bytes().len()..];
    }
    given.is_empty()
}
