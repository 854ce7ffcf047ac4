//! Addresses of a transport: as the bytes of a netbuf, and as universal addresses (RFC 5665; loop-back ones as System V
//! writes them).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// nc_protofmly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    Inet,
    Inet6,
    Loopback,
}

impl Family {
    pub fn named(name: &[u8]) -> Option<Family> {
        match name {
            b"inet" => Some(Family::Inet),
            b"inet6" => Some(Family::Inet6),
            b"loopback" => Some(Family::Loopback),
            _ => None,
        }
    }
}

/// sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6).
const INET: usize = 16;
const INET6: usize = 28;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Inet(SocketAddr),
    Loopback(Vec<u8>),
}

impl Address {
    /// The address in a netbuf.
    pub fn decode(family: Family, bytes: &[u8]) -> Option<Address> {
        let of_family = |af: i32| bytes.get(..2) == Some(&(af as u16).to_ne_bytes());
        let port = || Some(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?));
        match family {
            Family::Inet if bytes.len() >= INET && of_family(libc::AF_INET) => {
                let host: [u8; 4] = *bytes[4..].first_chunk()?;
                Some(Address::Inet((host, port()?).into()))
            }
            Family::Inet6 if bytes.len() >= INET6 && of_family(libc::AF_INET6) => {
                let host = Ipv6Addr::from(*bytes[8..].first_chunk::<16>()?);
                let flow = u32::from_ne_bytes(*bytes[4..].first_chunk()?);
                let scope = u32::from_ne_bytes(*bytes[24..].first_chunk()?);
                let v6 = SocketAddrV6::new(host, port()?, flow, scope);
                Some(Address::Inet(v6.into()))
            }
            Family::Loopback if !bytes.is_empty() => Some(Address::Loopback(bytes.to_vec())),
            _ => None,
        }
    }

    /// For a netbuf: struct sockaddr_in, struct sockaddr_in6, or the loop-back bytes themselves.
    pub fn encode(&self) -> Vec<u8> {
        let inet = match self {
            Address::Loopback(bytes) => return bytes.clone(),
            Address::Inet(inet) => inet,
        };
        let port = inet.port().to_be_bytes();
        match inet {
            SocketAddr::V4(v4) => [
                &(libc::AF_INET as u16).to_ne_bytes()[..],
                &port,
                &v4.ip().octets(),
                &[0; 8],
            ]
            .concat(),
            SocketAddr::V6(v6) => [
                &(libc::AF_INET6 as u16).to_ne_bytes()[..],
                &port,
                &v6.flowinfo().to_ne_bytes(),
                &v6.ip().octets(),
                &v6.scope_id().to_ne_bytes(),
            ]
            .concat(),
        }
    }

    /// "h1.h2.h3.h4.p1.p2", "IPv6.p1.p2"; a loop-back byte that is not printable, and the backslash, as \ooo.
    pub fn to_universal(&self) -> String {
        match self {
            Address::Inet(inet) => {
                let [high, low] = inet.port().to_be_bytes();
                format!("{}.{high}.{low}", inet.ip())
            }
            Address::Loopback(bytes) => bytes
                .iter()
                .map(|&b| match b {
                    b'\\' => "\\134".into(),
                    b'!'..=b'~' => char::from(b).to_string(),
                    _ => format!("\\{b:03o}"),
                })
                .collect(),
        }
    }

    pub fn from_universal(family: Family, text: &[u8]) -> Option<Address> {
        if family == Family::Loopback {
            return Some(Address::Loopback(unescaped(text)?)).filter(|_| !text.is_empty());
        }
        let mut parts = str::from_utf8(text).ok()?.rsplitn(3, '.');
        let low = parts.next()?.parse::<u8>().ok()?;
        let high = parts.next()?.parse::<u8>().ok()?;
        let host = parts.next()?;
        let port = u16::from_be_bytes([high, low]);
        let inet: SocketAddr = match family {
            Family::Inet => SocketAddrV4::new(host.parse::<Ipv4Addr>().ok()?, port).into(),
            _ => SocketAddrV6::new(host.parse().ok()?, port, 0, 0).into(),
        };
        Some(Address::Inet(inet))
    }

    /// INADDR_ANY and its like.
    pub fn is_any_host(&self) -> bool {
        matches!(self, Address::Inet(inet) if inet.ip().is_unspecified())
    }

    pub fn port(&self) -> Option<u16> {
        match self {
            Address::Inet(inet) => Some(inet.port()),
            Address::Loopback(_) => None,
        }
    }

    pub fn set_port(&mut self, port: u16) {
        if let Address::Inet(inet) = self {
            inet.set_port(port);
        }
    }

    pub fn set_host(&mut self, host: IpAddr) {
        if let Address::Inet(inet) = self {
            inet.set_ip(host);
        }
    }
}

/// Up to three octal digits behind a backslash are a byte; anything else behind one is itself.
fn unescaped(mut text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        text = rest;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let digits = text
            .iter()
            .take(3)
            .take_while(|c| (b'0'..=b'7').contains(c));
        let (n, value) = digits.fold((0, 0u32), |(n, v), c| (n + 1, v * 8 + u32::from(c - b'0')));
        if n == 0 {
            let (literal, rest) = text.split_first()?;
            bytes.push(*literal);
            text = rest;
        } else {
            bytes.push(u8::try_from(value).ok()?);
            text = &text[n..];
        }
    }
    Some(bytes)
}
