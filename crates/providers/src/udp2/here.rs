//! Which addresses are this host's, and from which of them a datagram to one of them comes: asked of the kernel's routing
//! tables, rtnetlink(7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use headwater_host::netlink::{self, Netlink};
use headwater_ipnet::Address;

/// struct rtmsg, struct rtattr.
const ROUTE: usize = 12;
const ATTRIBUTE: usize = 4;

const NEWROUTE: u16 = 24;
const GETROUTE: u16 = 26;
const LOCAL: u8 = 2;
const DST: u16 = 1;
const PREFSRC: u16 = 7;

/// A way to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// It is an address of this host.
    pub ends_here: bool,
    /// What a datagram has as its sender that is bound to no address.
    pub source: Option<IpAddr>,
}

/// Whom to ask.
#[derive(Default)]
pub struct Here {
    netlink: Netlink<{ libc::NETLINK_ROUTE }>,
}

impl Here {
    /// If `to` is an address of this host, the one that a datagram to it comes from.
    pub fn source(&mut self, to: IpAddr) -> Option<IpAddr> {
        self.route(to).filter(|way| way.ends_here)?.source
    }

    /// The way to `to`; `None`: there is none.
    pub fn route(&mut self, to: IpAddr) -> Option<Found> {
        self.ask(to).unwrap_or_else(|| {
            // Nobody to ask: these are always here.
            let loopback = match to {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            };
            to.is_loopback().then_some(Found {
                ends_here: true,
                source: Some(loopback),
            })
        })
    }

    /// Outer `None`: no answer.
    fn ask(&mut self, to: IpAddr) -> Option<Option<Found>> {
        let mut answer = [0u8; 1024];
        let (kind, answer) = self.netlink.ask(GETROUTE, &question(to), &mut answer)?;
        understand(kind, answer, to)
    }

    /// In the child of a fork: the answers on the socket are the parent's.
    pub fn forked(&mut self) {
        *self = Here::default();
    }
}

/// RTM_GETROUTE for one address: struct rtmsg and RTA_DST.
fn question(to: IpAddr) -> Vec<u8> {
    let address = Address::of_ip(to, 0);
    let host = address.host();
    let mut q = vec![0; ROUTE];
    q[0] = address.family() as u8;
    q[1] = host.len() as u8 * 8;
    q.extend(((ATTRIBUTE + host.len()) as u16).to_ne_bytes());
    q.extend(DST.to_ne_bytes());
    q.extend(host);
    q
}

/// Outer `None`: this is no answer; inner: there is no route.
fn understand(kind: u16, answer: &[u8], to: IpAddr) -> Option<Option<Found>> {
    if kind == libc::NLMSG_ERROR as u16 {
        return Some(None);
    }
    if kind != NEWROUTE {
        return None;
    }
    let mut found = Found {
        ends_here: *answer.get(7)? == LOCAL,
        source: None,
    };
    let mut attributes = netlink::attributes(answer.get(ROUTE..)?);
    if let Some((_, source)) = attributes.find(|&(kind, _)| kind == PREFSRC) {
        found.source = address(source);
    }
    if found.ends_here && found.source.is_none() {
        found.source = Some(to);
    }
    Some(Some(found))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_here_and_others_are_not() {
        let mut here = Here::default();
        let source = |here: &mut Here, to: &str| here.source(to.parse().unwrap());
        assert_eq!(source(&mut here, "127.0.0.1"), "127.0.0.1".parse().ok());
        assert!(source(&mut here, "127.4.5.6").is_some_and(|ip| ip.is_loopback()));
        for elsewhere in ["192.0.2.1", "2001:db8::1", "224.0.0.1", "255.255.255.255"] {
            assert_eq!(source(&mut here, elsewhere), None, "{elsewhere}");
        }
    }

    #[test]
    fn what_is_no_answer_says_nothing() {
        let to = "127.0.0.1".parse().unwrap();
        assert_eq!(understand(0, &[], to), None);
        assert_eq!(understand(NEWROUTE, &[], to), None);
        assert_eq!(understand(0, &[0; 24], to), None);
    }
}
