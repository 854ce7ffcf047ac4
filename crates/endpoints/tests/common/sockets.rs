//! Addresses and buffers as providers take them.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::net::SocketAddr;

use headwater_providers::provider::Datagram;
use libc::iovec;

pub fn io(data: &[u8]) -> [iovec; 1] {
    [iovec {
        iov_base: data.as_ptr() as *mut _,
        iov_len: data.len(),
    }]
}

/// struct sockaddr_in or sockaddr_in6.
pub fn bytes(address: SocketAddr) -> Vec<u8> {
    match address {
        SocketAddr::V4(v4) => {
            let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
            bytes.extend(v4.port().to_be_bytes());
            bytes.extend(v4.ip().octets());
            bytes.resize(16, 0);
            bytes
        }
        SocketAddr::V6(v6) => {
            let mut bytes = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
            bytes.extend(v6.port().to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(v6.ip().octets());
            bytes.extend([0; 4]);
            bytes
        }
    }
}

pub fn port_of(address: &[u8]) -> u16 {
    u16::from_be_bytes([address[2], address[3]])
}

/// Room for a datagram without options, and for its sender.
pub fn datagram<'a>(addr: &'a mut [u8], data: &'a [iovec]) -> Datagram<'a> {
    Datagram {
        addr,
        opts: &mut [],
        data,
        addr_len: 0,
        opts_len: 0,
        data_len: 0,
        more: false,
    }
}
