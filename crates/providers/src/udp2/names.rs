//! What the ring of a bound address is called, and which rings may be meant by a destination.
//!
//! A name is {kind, port, address}. Names live in the network namespace, as ports do, and belong to one user and one runtime
//! folder.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use headwater_host::sys;
use headwater_ipnet::Address;

/// An IPv4 address; an IPv6 address, of which the unspecified one stands for those of IPv4 too; the same without those.
const V4: u8 = b'4';
const V6: u8 = b'6';
const V6_ONLY: u8 = b'o';

pub type Name = Vec<u8>;

/// Of an endpoint whose socket is `fd`. `None`: bound to an address that needs more than itself to be understood, or that many
/// share.
pub fn of_endpoint(at: &Address, fd: i32) -> Option<Name> {
    let ip = at.ip();
    if at.port() == 0 || ip.is_multicast() || is_link_local(&ip) {
        return None;
    }
    let only = sys::sockopt::<i32>(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
    let kind = match ip {
        IpAddr::V4(_) => V4,
        IpAddr::V6(ip) if ip.is_unspecified() && only.is_ok_and(|on| on != 0) => V6_ONLY,
        IpAddr::V6(_) => V6,
    };
    Some(name(kind, ip, at.port()))
}

/// Those that the kernel would give a datagram for `to` to, the most special first. IPv4 in IPv6 is IPv4.
pub fn of_destination(to: IpAddr, port: u16) -> Vec<Name> {
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    match to {
        IpAddr::V4(ip) => vec![
            name(V4, to, port),
            name(V6, IpAddr::V6(ip.to_ipv6_mapped()), port),
            name(V4, IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
            name(V6, any, port),
        ],
        IpAddr::V6(_) => vec![
            name(V6, to, port),
            name(V6, any, port),
            name(V6_ONLY, any, port),
        ],
    }
}

/// Does the endpoint with this name know addresses of IPv6 only?
pub fn is_v6(name: &[u8]) -> bool {
    name[0] != V4
}

fn name(kind: u8, ip: IpAddr, port: u16) -> Name {
    let mut name = vec![kind];
    name.extend(port.to_be_bytes());
    name.extend(Address::of_ip(ip, port).host());
    name
}

/// Means something together with an interface only.
pub fn is_link_local(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_endpoint_is_found_by_its_own_address_and_by_any_where_it_has_none() {
        let found = |at: &str, to: &str| {
            let name = of_endpoint(&Address::of_ip(ip(at), 7), -1).unwrap();
            of_destination(ip(to), 7).contains(&name)
        };
        assert!(found("127.0.0.1", "127.0.0.1") && found("0.0.0.0", "127.0.0.1"));
        assert!(found("::", "127.0.0.1") && found("::", "::1") && found("::1", "::1"));
        assert!(found("::ffff:127.0.0.1", "127.0.0.1"));
        assert!(!found("127.0.0.2", "127.0.0.1") && !found("0.0.0.0", "::1"));
    }

    #[test]
    fn shared_and_ambiguous_addresses_have_no_name() {
        for at in ["224.0.0.1", "ff02::1", "fe80::1"] {
            assert_eq!(of_endpoint(&Address::of_ip(ip(at), 7), -1), None);
        }
        assert_eq!(of_endpoint(&Address::of_ip(ip("127.0.0.1"), 0), -1), None);
    }
}
