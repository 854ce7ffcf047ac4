//! How processes of a host find each other's SCTP ports without packets: names as loop-back addresses have them, per user
//! and network namespace. `9000*4` is port 9000 at every IPv4 address, `9000@10.0.0.1` at one.

use core::net::{IpAddr, Ipv6Addr};

use headwater_host::next::seldom;
use headwater_host::{process, sys};
use headwater_ipnet::Address;
use headwater_providers::loopback::link::{End, Link};
use headwater_providers::loopback::request::Call;
use headwater_providers::loopback::{Owned, Space, name};
use headwater_providers::provider::Outcome;
use headwater_tpi::Refusal;
use headwater_tpi::error::TADDRBUSY;

use super::{Addresses, here};

/// Ports for who asks for none (RFC 6335, 6).
const EPHEMERAL: core::ops::Range<u32> = 49152..65536;

/// As the only host: any, but of IPv6.
pub const IPV6_ONLY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Takes the names of a port, a free one if that is 0, for as long as they are held. With `listening` others may connect by
/// them. TADDRBUSY.
pub fn claim(wanted: &Addresses, listening: bool) -> Outcome<(u16, Vec<Owned>)> {
    if wanted.port != 0 {
        // Held for a moment, so that nobody who asks at the same time gets past.
        let _others = claim_others(wanted)?;
        let names = names_of(wanted, wanted.port);
        return Ok((wanted.port, claim_names(&names, listening)?));
    }
    let count = EPHEMERAL.len() as u32;
    let first = (sys::now() as u32 >> 10) ^ process::pid() as u32;
    for i in 0..count {
        let port = (EPHEMERAL.start + first.wrapping_add(i * 7919) % count) as u16;
        match claim_names(&names_of(wanted, port), listening) {
            Err(Refusal { tli: TADDRBUSY, .. }) => {}
            result => return result.map(|names| (port, names)),
        }
    }
    Err(Refusal::new(TADDRBUSY))
}

fn claim_names(names: &[String], listening: bool) -> Outcome<Vec<Owned>> {
    let claimed = names.iter().map(|name| {
        name::claim(Space::Sctp, name.as_bytes(), listening).map_err(|errno| match errno {
            libc::EADDRINUSE => Refusal::new(TADDRBUSY),
            errno => Refusal::system(errno),
        })
    });
    claimed.collect()
}

/// The names that others of this port would have: somebody is everywhere or at an address, not both.
fn claim_others(wanted: &Addresses) -> Outcome<Vec<Owned>> {
    let others = if wanted.hosts.is_empty() {
        let hosts = own_addresses().into_iter();
        hosts.filter(|host| host.is_ipv4() || wanted.v6).collect()
    } else {
        Vec::new()
    };
    let at = |host: &IpAddr| format!("{}@{host}", wanted.port);
    let mut names: Vec<String> = others.iter().map(at).collect();
    for (family, of) in [
        (b'4', IpAddr::is_ipv4 as fn(&IpAddr) -> bool),
        (b'6', IpAddr::is_ipv6),
    ] {
        if wanted.hosts.iter().any(of) {
            names.push(everywhere(wanted.port, family));
        }
    }
    claim_names(&names, false)
}

/// Those that this host's interfaces have.
fn own_addresses() -> Vec<IpAddr> {
    let mut all: *mut libc::ifaddrs = core::ptr::null_mut();
    // SAFETY: the list is read as getifaddrs(3) says, and freed once.
    unsafe {
        if seldom::getifaddrs(&mut all) != 0 {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut at = all;
        while let Some(one) = at.as_ref() {
            at = one.ifa_next;
            let Some(addr) = one.ifa_addr.as_ref() else {
                continue;
            };
            let len = match addr.sa_family as i32 {
                libc::AF_INET => size_of::<libc::sockaddr_in>(),
                libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
                _ => continue,
            };
            let bytes = core::slice::from_raw_parts(one.ifa_addr as *const u8, len);
            if let Ok(addr) = Address::read(bytes) {
                found.push(addr.ip().to_canonical());
            }
        }
        seldom::freeifaddrs(all);
        found
    }
}

fn names_of(at: &Addresses, port: u16) -> Vec<String> {
    if at.hosts == [IPV6_ONLY] {
        return vec![everywhere(port, b'6')];
    }
    if at.hosts.is_empty() {
        let families: &[u8] = if at.v6 { b"46" } else { b"4" };
        return families.iter().map(|&f| everywhere(port, f)).collect();
    }
    at.hosts
        .iter()
        .map(|host| format!("{port}@{host}"))
        .collect()
}

fn everywhere(port: u16, family: u8) -> String {
    format!("{port}*{}", family as char)
}

/// What a caller says of itself.
pub struct Caller<'a> {
    pub from: &'a [u8],
    pub greeting: &'a [u8],
}

/// Asks whoever has `port` at `host` for an association, if that is a process of this host with the library. `None`: nobody
/// here has it.
pub fn call(host: IpAddr, port: u16, caller: &Caller<'_>) -> Outcome<Option<Link>> {
    let host = host.to_canonical();
    if !here::is_own(host).map_err(Refusal::system)? {
        return Ok(None);
    }
    let family = if host.is_ipv4() { b'4' } else { b'6' };
    for name in [format!("{port}@{host}"), everywhere(port, family)] {
        let call = Call {
            ring: headwater_streams::pipe::RING,
            space: Space::Sctp,
            from: caller.from,
            to: name.as_bytes(),
            opts: caller.greeting,
            data: &[],
        };
        match Link::call(&call)? {
            Ok(link) => return Ok(Some(link)),
            Err(End {
                reason: libc::ECONNREFUSED,
                ..
            }) => {}
            Err(End { reason, .. }) => return Err(Refusal::system(reason)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_held_once_and_found_again_when_it_is_free() {
        let any = Addresses::any(true, 0);
        let (port, held) = claim(&any, false).unwrap();
        assert_eq!(held.len(), 2);
        let again = Addresses::any(false, port);
        assert_eq!(claim(&again, false).unwrap_err().tli, TADDRBUSY);
        drop(held);
        assert_eq!(claim(&again, false).unwrap().0, port);
    }

    #[test]
    fn other_hosts_are_not_local() {
        assert!(here::is_here("127.0.0.5".parse().unwrap()));
        assert!(!here::is_here("192.0.2.1".parse().unwrap()));
    }
}
