//! What the kernel's routing says of a destination. No packet is sent.

use std::net::IpAddr;

use headwater_host::sys;

use crate::Address;

/// Discard (RFC 863): any port will do.
const PORT: u16 = 9;

/// The largest IP packet towards it. `None`: no route.
pub fn mtu(to: IpAddr) -> Option<usize> {
    let (level, name) = match to {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    ask(to, |fd| {
        let mtu = sys::sockopt::<i32>(fd, level, name).ok()?;
        usize::try_from(mtu).ok()
    })
}

/// The address of this host from which packets leave towards it. `None`: no route.
pub fn source(to: IpAddr) -> Option<IpAddr> {
    ask(to, |fd| {
        Some(Address::of_storage(&sys::sock_name(fd, false).ok()?)?.ip())
    })
}

/// `question` of a socket connected to it.
fn ask<T>(to: IpAddr, question: impl FnOnce(i32) -> Option<T>) -> Option<T> {
    let family = if to.is_ipv6() {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    let fd = sys::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0).ok()?;
    let address = Address::of_ip(to, PORT);
    let connected = sys::connect(fd, &address);
    let answer = connected.ok().and_then(|()| question(fd));
    let _ = sys::close(fd);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_its_own_source() {
        let home: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(source(home), Some(home));
        assert!(mtu(home).unwrap() >= 1280);
    }
}
