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
    let to = Address::of_ip(to, PORT);
    let fd = sys::socket(to.family(), libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0).ok()?;
    let mtu = sys::connect(fd, &to).and_then(|()| sys::sockopt::<i32>(fd, level, name));
    let _ = sys::close(fd);
    usize::try_from(mtu.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_takes_packets_of_ipv6s_least_size() {
        assert!(mtu("127.0.0.1".parse().unwrap()).unwrap() >= 1280);
    }
}
