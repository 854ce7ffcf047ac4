//! Addresses and buffers as providers take them.

use std::net::SocketAddr;

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
