//! The error queue of a socket (IP_RECVERR, ip(7)): what the network said about packets that left through it. That of a raw
//! socket holds what concerns any sender of its protocol on this host, whatever filter is attached.

use headwater_host::sys;
use libc::sock_extended_err;

use super::icmp::{self, Trouble};
use crate::Address;
use crate::again;
use crate::control::{Control, controls};

/// A packet has not arrived.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Where it was to go. A raw socket knows no port.
    pub to: Address,
    pub errno: i32,
    /// `None`: this host's own kernel could not send it, for another reason than its length.
    pub trouble: Option<Trouble>,
    /// Bytes of the packet, from the transport header on, that were put into the buffer given.
    pub quoted: usize,
}

/// Takes the oldest. Never waits.
pub fn next(fd: i32, quote: &mut [u8]) -> Option<Failure> {
    let (mut to, mut message): (libc::sockaddr_storage, libc::msghdr) =
        (sys::zeroed(), sys::zeroed());
    let mut control = Control([0; 128]);
    let mut part = sys::buffer(quote.as_mut_ptr(), quote.len());
    message.msg_name = &raw mut to as *mut _;
    message.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr() as *mut _;
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the message's parts are valid.
    let quoted = again(|| unsafe {
        sys::recvmsg(fd, &mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    })
    .ok()?;
    let said = extended(control.0.get(..message.msg_controllen)?);
    Some(Failure {
        to: Address::of_storage(&to)?,
        errno: said.map_or(libc::ECONNREFUSED, |e| e.ee_errno as i32),
        trouble: said.and_then(trouble),
        quoted,
    })
}

fn extended(control: &[u8]) -> Option<sock_extended_err> {
    let is_error = |&(level, name, _): &(i32, i32, &[u8])| {
        (level, name) == (libc::IPPROTO_IP, libc::IP_RECVERR)
            || (level, name) == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
    };
    let (_, _, value) = controls(control).find(is_error)?;
    let whole = value.first_chunk::<{ size_of::<sock_extended_err>() }>()?;
    // SAFETY: as many bytes as it has, which may be any; unaligned.
    Some(unsafe { whole.as_ptr().cast::<sock_extended_err>().read_unaligned() })
}

fn trouble(e: sock_extended_err) -> Option<Trouble> {
    let too_big = e.ee_errno as i32 == libc::EMSGSIZE;
    match e.ee_origin {
        libc::SO_EE_ORIGIN_LOCAL if too_big => Some(Trouble::TooBig(e.ee_info)),
        libc::SO_EE_ORIGIN_ICMP => icmp::trouble(e.ee_type, e.ee_code, e.ee_info),
        libc::SO_EE_ORIGIN_ICMP6 => icmp::trouble_v6(e.ee_type, e.ee_code, e.ee_info),
        _ => None,
    }
}
