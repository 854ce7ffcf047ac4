//! Which addresses are this host's own: a peer there is a process of this host, and nothing between could take less than we send.

use core::net::IpAddr;

use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_providers::loopback::listening::is_lack;

/// Is it an address of this host's own? Peers there have the library, or UDP at least.
pub fn is_here(to: IpAddr) -> bool {
    is_own(to).unwrap_or(false)
}

/// As [`is_here`], where an answer is needed. EMFILE, ENFILE, ENOMEM, ENOBUFS.
pub fn is_own(to: IpAddr) -> sys::Result<bool> {
    Ok(to.is_loopback() || can_bind(to)?)
}

/// One can bind to those. Errors: it can't be told for want of something.
fn can_bind(to: IpAddr) -> sys::Result<bool> {
    let family = if to.is_ipv6() {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    let told = |errno| {
        if is_lack(errno) {
            Err(errno)
        } else {
            Ok(false)
        }
    };
    let fd = match sys::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) {
        Ok(fd) => fd,
        Err(errno) => return told(errno),
    };
    let address = Address::of_ip(to, 0);
    let bound = sys::bind(fd, &address);
    let _ = sys::close(fd);
    bound.map_or_else(told, |()| Ok(true))
}
