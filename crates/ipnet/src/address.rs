//! struct sockaddr_in and struct sockaddr_in6, as they stand in a netbuf.

use std::net::IpAddr;

use headwater_host::sys::SocketAddress;
use headwater_tpi::Outcome;
use headwater_tpi::Refusal;
use headwater_tpi::error::TBADADDR;

const V4: usize = size_of::<libc::sockaddr_in>();
const V6: usize = size_of::<libc::sockaddr_in6>();

/// An Internet address with its port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(8))]
pub struct Address {
    /// Zeros behind the first `len`.
    bytes: [u8; V6],
    len: u32,
}

impl Default for Address {
    /// Any of IPv4.
    fn default() -> Address {
        Address::any(false)
    }
}

impl Address {
    /// 0.0.0.0:0 or [::]:0.
    pub fn any(v6: bool) -> Address {
        let (family, len) = if v6 {
            (libc::AF_INET6, V6)
        } else {
            (libc::AF_INET, V4)
        };
        let mut bytes = [0; V6];
        bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        Address {
            bytes,
            len: len as u32,
        }
    }

    /// This host, at this port.
    pub fn of_ip(ip: IpAddr, port: u16) -> Address {
        let mut address = Address::any(ip.is_ipv6()).with_port(port);
        match ip {
            IpAddr::V4(ip) => address.bytes[4..8].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => address.bytes[8..24].copy_from_slice(&ip.octets()),
        }
        address
    }

    pub fn ip(&self) -> IpAddr {
        match *self.host() {
            [a, b, c, d] => IpAddr::from([a, b, c, d]),
            ref host => IpAddr::from(host.first_chunk::<16>().copied().unwrap_or_default()),
        }
    }

    /// The address that a user gave; longer ones are cut (programs pass a sockaddr_storage). TBADADDR.
    #[inline]
    pub fn read(given: &[u8]) -> Outcome<Address> {
        let bad = Refusal::new(TBADADDR);
        let family = u16::from_ne_bytes(*given.first_chunk().ok_or(bad)?);
        // As many bytes as the compiler knows: what is copied piece by piece and read whole stalls each datagram.
        match family.into() {
            libc::AF_INET => {
                let mut bytes = [0; V6];
                bytes[..V4].copy_from_slice(given.first_chunk::<V4>().ok_or(bad)?);
                let len = V4 as u32;
                Ok(Address { bytes, len })
            }
            libc::AF_INET6 => Ok(Address {
                bytes: *given.first_chunk().ok_or(bad)?,
                len: V6 as u32,
            }),
            _ => Err(bad),
        }
    }

    #[inline]
    pub fn of_storage(from: &libc::sockaddr_storage) -> Option<Address> {
        // SAFETY: plain bytes, all initialised.
        let bytes = unsafe { core::slice::from_raw_parts(from as *const _ as *const u8, V6) };
        Address::read(bytes).ok()
    }

    pub fn storage(&self) -> libc::sockaddr_storage {
        let mut to: libc::sockaddr_storage = headwater_host::sys::zeroed();
        // SAFETY: it has room for any address.
        unsafe { (&raw mut to as *mut u8).copy_from_nonoverlapping(self.bytes.as_ptr(), V6) };
        to
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    pub fn to_vec(self) -> Vec<u8> {
        self.bytes().to_vec()
    }

    pub fn is_v6(&self) -> bool {
        self.len as usize == V6
    }

    /// AF_INET or AF_INET6.
    pub fn family(&self) -> i32 {
        u16::from_ne_bytes([self.bytes[0], self.bytes[1]]).into()
    }

    /// One of IPv4 as a socket of IPv6 has it: ::ffff:a.b.c.d.
    pub fn mapped(&self) -> Address {
        match self.ip() {
            IpAddr::V4(ip) => Address::of_ip(ip.to_ipv6_mapped().into(), self.port()),
            IpAddr::V6(_) => *self,
        }
    }

    pub fn is_mapped(&self) -> bool {
        matches!(self.ip(), IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
    }

    pub fn port(&self) -> u16 {
        u16::from_be_bytes([self.bytes[2], self.bytes[3]])
    }

    /// The same host at another port.
    pub fn with_port(mut self, port: u16) -> Address {
        self.bytes[2..4].copy_from_slice(&port.to_be_bytes());
        self
    }

    /// The 4 or 16 bytes of the host's address.
    pub fn host(&self) -> &[u8] {
        if self.is_v6() {
            &self.bytes[8..24]
        } else {
            &self.bytes[4..8]
        }
    }

    pub fn pointer(&self) -> *const libc::sockaddr {
        self.bytes.as_ptr() as *const libc::sockaddr
    }

    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        self.len
    }
}

// SAFETY: `len` of its bytes are the address.
unsafe impl SocketAddress for Address {
    fn address(&self) -> (*const libc::sockaddr, u32) {
        (self.pointer(), self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_foreign_addresses_are_bad() {
        let good = Address::any(false).to_vec();
        assert_eq!(Address::read(&good).unwrap().bytes(), good);
        for bad in [
            &good[..15],
            &good[..1],
            &[],
            &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(Address::read(bad).unwrap_err().tli, TBADADDR);
        }
        assert!(Address::read(&Address::any(true).bytes()[..27]).is_err());
    }
}
