//! ICMP (RFC 792, RFC 1191) and ICMPv6 (RFC 4443): what an error says, and which packet of ours it is about.

use std::net::{IpAddr, Ipv4Addr};

pub const ECHO_REPLY: u8 = 0;
pub const ECHO: u8 = 8;
pub const ECHO_V6: u8 = 128;
pub const ECHO_REPLY_V6: u8 = 129;

const UNREACHABLE: u8 = 3;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;
const UNREACHABLE_V6: u8 = 1;
const TOO_BIG_V6: u8 = 2;
const TIME_EXCEEDED_V6: u8 = 3;
const PARAMETER_PROBLEM_V6: u8 = 4;

/// What has become of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    Net,
    Host,
    /// The host does not know the protocol, or the IPv6 next header.
    Protocol,
    Port,
    /// It does not fit; the largest that does, 0 if the router does not say.
    TooBig(u32),
    /// By order of somebody between.
    Prohibited,
    HopsExceeded,
    ReassemblyExceeded,
    Malformed,
}

impl Trouble {
    /// As a socket reports it (ip(7), ipv6(7)).
    pub fn errno(self) -> i32 {
        match self {
            Trouble::Net => libc::ENETUNREACH,
            Trouble::Host | Trouble::HopsExceeded | Trouble::ReassemblyExceeded => {
                libc::EHOSTUNREACH
            }
            Trouble::Protocol => libc::ENOPROTOOPT,
            Trouble::Port => libc::ECONNREFUSED,
            Trouble::TooBig(_) => libc::EMSGSIZE,
            Trouble::Prohibited => libc::EACCES,
            Trouble::Malformed => libc::EPROTO,
        }
    }
}

/// An ICMP error, and what it quotes of the packet that it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report<'a> {
    pub trouble: Trouble,
    pub protocol: u8,
    /// Of the packet quoted.
    pub from: IpAddr,
    pub to: IpAddr,
    /// The transport's header and what else is there: RFC 792 promises eight bytes, not more.
    pub quoted: &'a [u8],
}

impl Report<'_> {
    /// Source and destination port, where the transport begins with them.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let [a, b, c, d, ..] = *self.quoted else {
            return None;
        };
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }
}

/// What an ICMP message says of a packet that this host has sent; `None`: it is no error, or does not quote enough to tell.
/// The checksum was the kernel's to check.
pub fn report(v6: bool, message: &[u8]) -> Option<Report<'_>> {
    let (head, packet) = message.split_at_checked(8)?;
    let value = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    if v6 {
        quoted_v6(trouble_v6(head[0], head[1], value)?, packet)
    } else {
        quoted(trouble(head[0], head[1], value & 0xffff)?, packet)
    }
}

/// Of ICMP type and code; `mtu` is the low half of the fifth word.
pub fn trouble(kind: u8, code: u8, mtu: u32) -> Option<Trouble> {
    Some(match (kind, code) {
        (UNREACHABLE, 0 | 6 | 11) => Trouble::Net,
        (UNREACHABLE, 2) => Trouble::Protocol,
        (UNREACHABLE, 3) => Trouble::Port,
        (UNREACHABLE, 4) => Trouble::TooBig(mtu),
        (UNREACHABLE, 9 | 10 | 13) => Trouble::Prohibited,
        (UNREACHABLE, _) => Trouble::Host,
        (TIME_EXCEEDED, 0) => Trouble::HopsExceeded,
        (TIME_EXCEEDED, _) => Trouble::ReassemblyExceeded,
        (PARAMETER_PROBLEM, _) => Trouble::Malformed,
        _ => return None,
    })
}

pub fn trouble_v6(kind: u8, code: u8, value: u32) -> Option<Trouble> {
    Some(match (kind, code) {
        (UNREACHABLE_V6, 0) => Trouble::Net,
        (UNREACHABLE_V6, 1 | 5 | 6) => Trouble::Prohibited,
        (UNREACHABLE_V6, 4) => Trouble::Port,
        (UNREACHABLE_V6, _) => Trouble::Host,
        (TOO_BIG_V6, _) => Trouble::TooBig(value),
        (TIME_EXCEEDED_V6, 0) => Trouble::HopsExceeded,
        (TIME_EXCEEDED_V6, _) => Trouble::ReassemblyExceeded,
        (PARAMETER_PROBLEM_V6, 1) => Trouble::Protocol,
        (PARAMETER_PROBLEM_V6, _) => Trouble::Malformed,
        _ => return None,
    })
}

fn quoted(trouble: Trouble, packet: &[u8]) -> Option<Report<'_>> {
    let (header, payload) = ipv4(packet)?;
    // Only the first fragment has a transport header.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    let octets = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    (fragment == 0).then(|| Report {
        trouble,
        protocol: header[9],
        from: Ipv4Addr::from(octets(12)).into(),
        to: Ipv4Addr::from(octets(16)).into(),
        quoted: payload,
    })
}

/// An IPv4 packet's header, options included, and what follows.
pub fn ipv4(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = *packet.first()?;
    let len = usize::from(first & 15) * 4;
    if first >> 4 != 4 || len < 20 {
        return None;
    }
    packet.split_at_checked(len)
}

fn quoted_v6(trouble: Trouble, packet: &[u8]) -> Option<Report<'_>> {
    let (header, mut rest) = packet.split_at_checked(40)?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let mut next = header[6];
    // Extension headers: hop-by-hop, routing, fragment, destination options. Each is shorter than what is left, so this ends.
    while let 0 | 43 | 44 | 60 = next {
        let len = match next {
            44 => 8,
            _ => usize::from(*rest.get(1)?) * 8 + 8,
        };
        let (extension, after) = rest.split_at_checked(len)?;
        if next == 44 && u16::from_be_bytes([extension[2], extension[3]]) & 0xfff8 != 0 {
            return None;
        }
        next = extension[0];
        rest = after;
    }
    let address = |at: usize| header[at..].first_chunk::<16>().copied().map(IpAddr::from);
    Some(Report {
        trouble,
        protocol: next,
        from: address(8)?,
        to: address(24)?,
        quoted: rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4_error(kind: u8, code: u8, mtu: u16, protocol: u8, quoted: &[u8]) -> Vec<u8> {
        let mut message = vec![kind, code, 0, 0, 0, 0];
        message.extend(mtu.to_be_bytes());
        let mut header = [0u8; 20];
        header[0] = 0x45;
        header[9] = protocol;
        header[12..16].copy_from_slice(&[10, 0, 0, 1]);
        header[16..20].copy_from_slice(&[10, 0, 0, 2]);
        message.extend(header);
        message.extend(quoted);
        message
    }

    #[test]
    fn a_closed_port_is_named() {
        let message = v4_error(3, 3, 0, 17, &[0x12, 0x34, 0, 53, 0, 8, 0, 0]);
        let report = report(false, &message).unwrap();
        assert_eq!(report.trouble, Trouble::Port);
        assert_eq!((report.protocol, report.ports()), (17, Some((0x1234, 53))));
        assert_eq!(
            (report.from.to_string(), report.to.to_string()),
            ("10.0.0.1".into(), "10.0.0.2".into())
        );
    }

    #[test]
    fn the_mtu_of_the_next_hop_is_told() {
        let message = v4_error(3, 4, 1400, 132, &[0; 8]);
        assert_eq!(
            report(false, &message).unwrap().trouble,
            Trouble::TooBig(1400)
        );
        let mut six = vec![2, 0, 0, 0, 0, 0, 5, 0, 0x60, 0, 0, 0, 0, 8, 0, 64];
        six.extend([0; 32]);
        six[14] = 0;
        // A hop-by-hop header, then SCTP.
        six.extend([132, 0, 1, 4, 0, 0, 0, 0]);
        six.extend([0x13, 0x88, 0x13, 0x89]);
        let said = report(true, &six).unwrap();
        assert_eq!((said.trouble, said.protocol), (Trouble::TooBig(1280), 132));
        assert_eq!(said.ports(), Some((5000, 5001)));
    }

    #[test]
    fn replies_and_rubbish_are_no_reports() {
        assert_eq!(report(false, &v4_error(ECHO_REPLY, 0, 0, 1, &[0; 8])), None);
        let whole = v4_error(3, 1, 0, 1, &[0; 8]);
        for len in 0..28 {
            assert_eq!(report(false, &whole[..len]), None);
        }
        let mut lying = whole.clone();
        lying[8] = 0x4f;
        assert_eq!(
            report(false, &lying),
            None,
            "a header longer than the quote"
        );
        let mut endless = vec![1, 4, 0, 0, 0, 0, 0, 0, 0x60, 0, 0, 0, 0, 8, 0, 64];
        endless.extend([0; 64]);
        assert_eq!(
            report(true, &endless),
            None,
            "extension headers up to the end"
        );
    }
}
