//! A raw socket of one protocol and one version of IP.

use std::net::IpAddr;

use headwater_host::{hidden, sys};
use libc::{sock_filter, sock_fprog};

use super::batch::{self, Packet};
use super::filter::Program;
use crate::Address;

/// Asked of the kernel, which gives at most net.core.rmem_max to those without CAP_NET_ADMIN.
const RECEIVE_BUFFER: i32 = 4 << 20;

/// Closed when dropped.
#[derive(Debug)]
pub struct RawSocket {
    fd: i32,
    v6: bool,
    protocol: u8,
}

impl RawSocket {
    /// EPERM: the process has no CAP_NET_RAW. EMFILE, ENFILE, EAFNOSUPPORT.
    pub fn open(v6: bool, protocol: u8) -> sys::Result<RawSocket> {
        let socket = RawSocket {
            fd: open(v6, libc::SOCK_RAW, protocol)?,
            v6,
            protocol,
        };
        make_roomy(socket.fd);
        tell_errors(socket.fd, v6);
        if v6 {
            // Of IPv4 the header tells. Without it no packet is taken.
            sys::set_sockopt(socket.fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &1i32)?;
        }
        Ok(socket)
    }

    /// Takes over a hidden copy of one that an earlier image of this process has opened.
    pub fn adopt(fd: i32, v6: bool, protocol: u8) -> RawSocket {
        RawSocket { fd, v6, protocol }
    }

    /// May this process open raw sockets in its network namespace?
    pub fn is_permitted() -> bool {
        RawSocket::open(false, super::RAW).is_ok()
    }

    pub fn fd(&self) -> i32 {
        self.fd
    }

    pub fn is_v6(&self) -> bool {
        self.v6
    }

    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// From now on the kernel keeps only what the program takes. What is queued already stays.
    pub fn attach(&self, program: &Program) -> sys::Result<()> {
        attach(self.fd, program)
    }

    /// Only packets to this address of the host. EADDRNOTAVAIL: it has no such.
    pub fn bind(&self, to: IpAddr) -> sys::Result<()> {
        let to = Address::of_ip(to, 0);
        sys::bind(self.fd, &to)
    }

    /// Packets leave with DF set, up to what the interface takes, whatever the kernel believes of the path: for protocols
    /// that search the path's MTU themselves (RFC 8899).
    pub fn never_fragment(&self) {
        fragment(self.fd, self.v6, false);
    }

    /// Does `f` while packets that are too long are cut up by IP.
    pub fn fragmenting<T>(&self, f: impl FnOnce() -> T) -> T {
        fragmenting(self.fd, self.v6, f)
    }

    /// Sends as many of the packets as the kernel takes, and says how many. An error is that of the first packet, of which
    /// nothing has left: EAGAIN (ENOBUFS counts as that), EMSGSIZE, ENETUNREACH ..., or one that an ICMP message has left.
    pub fn send(&self, packets: &[Packet<'_>]) -> sys::Result<usize> {
        batch::send(self.fd, self.v6, packets)
    }
}

impl Drop for RawSocket {
    fn drop(&mut self) {
        hidden::close(self.fd);
    }
}

/// A hidden socket of IP that neither blocks nor survives exec. EPERM or EACCES where it is not permitted.
pub fn open(v6: bool, kind: i32, protocol: u8) -> sys::Result<i32> {
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
    let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    sys::socket(family, kind, protocol.into()).and_then(hidden::hide_needed)
}

pub fn attach(fd: i32, program: &Program) -> sys::Result<()> {
    let instructions = program.instructions();
    let program = sock_fprog {
        len: instructions.len() as u16,
        filter: instructions.as_ptr() as *mut sock_filter,
    };
    sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Room for what arrives while nobody looks.
pub fn make_roomy(fd: i32) {
    let forced = sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER);
    if forced.is_err() {
        set(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER);
    }
}

/// ICMP errors come to the error queue (see errors.rs).
pub fn tell_errors(fd: i32, v6: bool) {
    if v6 {
        set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1);
    } else {
        set(fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1);
    }
}

/// Options without which all goes on, only less well.
pub fn set(fd: i32, level: i32, name: i32, value: i32) {
    let _ = sys::set_sockopt(fd, level, name, &value);
}

/// Does `f` while packets of the socket that are too long are cut up by IP; before and after that none is.
pub fn fragmenting<T>(fd: i32, v6: bool, f: impl FnOnce() -> T) -> T {
    fragment(fd, v6, true);
    let done = f();
    fragment(fd, v6, false);
    done
}

/// May IP cut up packets that are too long? If not they leave with DF set, whatever the kernel believes of the path.
pub fn fragment(fd: i32, v6: bool, may: bool) {
    // The numbers are those of both versions.
    let how = if may {
        libc::IP_PMTUDISC_DONT
    } else {
        libc::IP_PMTUDISC_PROBE
    };
    if v6 {
        set(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, how);
    }
    // A socket of IPv6 may send to IPv4 too.
    set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how);
}
