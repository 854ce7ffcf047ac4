//! Several addresses of one endpoint: an array of sockaddr's, one behind the other, as it stands in a netbuf. They have one
//! port.

use core::net::IpAddr;

use headwater_ipnet::Address;
use headwater_providers::provider::Outcome;
use headwater_tpi::Refusal;
use headwater_tpi::error::TBADADDR;

use super::is_any;

/// Addresses of an endpoint at most.
pub const MOST: usize = 8;

/// One port, at all addresses of the host (of the family, if it is IPv4) or at those named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// The default family.
    pub v6: bool,
    pub port: u16,
    /// Empty: any.
    pub hosts: Vec<IpAddr>,
}

impl Addresses {
    pub fn any(v6: bool, port: u16) -> Addresses {
        Addresses {
            v6,
            port,
            hosts: Vec::new(),
        }
    }

    /// TBADADDR: none, too many, another family, or several ports. What follows and is no address is cut off, as behind one in
    /// a sockaddr_storage.
    pub fn read(given: &[u8]) -> Outcome<Addresses> {
        let bad = || Refusal::new(TBADADDR);
        let first = Address::read(given)?;
        let mut all = Addresses {
            v6: first.is_v6(),
            port: first.port(),
            hosts: Vec::new(),
        };
        let mut rest = given;
        while let Ok(one) = Address::read(rest) {
            let host = one.ip().to_canonical();
            if one.port() != all.port || all.hosts.len() == MOST {
                return Err(bad());
            }
            if !all.hosts.contains(&host) {
                all.hosts.push(host);
            }
            rest = &rest[one.bytes().len()..];
        }
        if all.hosts.iter().any(|&host| is_any(host)) {
            if all.hosts.len() > 1 {
                return Err(bad());
            }
            all.hosts.clear();
        }
        Ok(all)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        if self.hosts.is_empty() {
            return Address::any(self.v6).with_port(self.port).to_vec();
        }
        let each = self.hosts.iter();
        each.flat_map(|&host| Address::of_ip(host, self.port).to_vec())
            .collect()
    }

    /// Whoever calls the host without an address calls this one.
    pub fn be_somewhere(&mut self) {
        if self.hosts.is_empty() {
            let near: IpAddr = if self.v6 {
                core::net::Ipv6Addr::LOCALHOST.into()
            } else {
                core::net::Ipv4Addr::LOCALHOST.into()
            };
            self.hosts.push(near);
        }
    }

    /// From which address it speaks to `host`, as far as that is its own choice.
    pub fn facing(&self, host: IpAddr) -> IpAddr {
        let same = |own: &&IpAddr| own.is_ipv4() == host.to_canonical().is_ipv4();
        let hosts = &self.hosts;
        let own = hosts.iter().find(same).or(hosts.first());
        own.copied().unwrap_or(host.to_canonical())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(all: &[&str]) -> Vec<u8> {
        let each = all
            .iter()
            .map(|a| a.parse::<std::net::SocketAddr>().unwrap());
        each.flat_map(|a| Address::of_ip(a.ip(), a.port()).to_vec())
            .collect()
    }

    #[test]
    fn an_array_of_addresses_has_one_port() {
        let two = bytes(&["10.0.0.1:7", "[fd00::1]:7"]);
        let all = Addresses::read(&two).unwrap();
        assert_eq!((all.hosts.len(), all.port), (2, 7));
        assert_eq!(all.to_bytes(), two);
        assert!(Addresses::read(&bytes(&["10.0.0.1:7", "10.0.0.2:8"])).is_err());
        assert!(Addresses::read(&bytes(&["10.0.0.1:7", "0.0.0.0:7"])).is_err());
        assert!(Addresses::read(&[1, 2]).is_err());
    }

    #[test]
    fn a_storage_is_one_address() {
        let mut storage = bytes(&["10.0.0.1:7"]);
        storage.resize(128, 0);
        let all = Addresses::read(&storage).unwrap();
        assert_eq!(all.to_bytes(), bytes(&["10.0.0.1:7"]));
    }
}
