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
    if to.is_loopback() {
        return Ok(true);
    }
    match bind_to(to) {
        Err(errno) if is_lack(errno) => Err(errno),
        bound => Ok(bound.is_ok()),
    }
}

/// Which can be done to those alone.
fn bind_to(to: IpAddr) -> sys::Result<()> {
    let address = Address::of_ip(to, 0);
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    let fd = sys::socket(address.family(), kind, 0)?;
    let bound = sys::bind(fd, &address);
    let _ = sys::close(fd);
    bound
}
