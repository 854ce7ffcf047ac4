//! How the packets of an association leave: HEADWATER_SCTP_LINK, by destination.
//!
//! The variable is a list of rules, `10.0.0.0/8=raw,*=udp:9899`; the first whose destination matches counts, and a link
//! alone stands for `*=link`. Without a rule it is `auto`.

use core::net::{IpAddr, Ipv6Addr};
use std::sync::OnceLock;

use headwater_host::log::{self, Level};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Link {
    /// Shared memory where the peer is a process of this host with the library; raw packets where they are possible; else UDP.
    #[default]
    Auto,
    /// Nothing but shared memory: who is not reached by it, is not reached.
    Shm,
    /// Encapsulated, to this UDP port (RFC 6951).
    Udp(u16),
    Raw,
}

/// The port of RFC 6951.
pub const UDP_PORT: u16 = 9899;

impl Link {
    /// May two processes of a host meet without packets?
    pub fn allows_shm(self) -> bool {
        matches!(self, Link::Auto | Link::Shm)
    }

    pub fn allows_packets(self) -> bool {
        self != Link::Shm
    }

    fn parse(text: &str) -> Option<Link> {
        Some(match text {
            "auto" => Link::Auto,
            "shm" => Link::Shm,
            "raw" => Link::Raw,
            "udp" => Link::Udp(UDP_PORT),
            _ => Link::Udp(
                text.strip_prefix("udp:")?
                    .parse()
                    .ok()
                    .filter(|&p| p != 0)?,
            ),
        })
    }
}

/// Addresses with a common prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Net {
    base: u128,
    bits: u32,
}

impl Net {
    const ALL: Net = Net { base: 0, bits: 0 };

    fn parse(text: &str) -> Option<Net> {
        if text == "*" {
            return Some(Net::ALL);
        }
        let (host, bits) = match text.split_once('/') {
            Some((host, bits)) => (host, Some(bits.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let host: IpAddr = host.trim_matches(['[', ']']).parse().ok()?;
        let most = if host.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then(|| Net {
            base: mapped(host).to_bits(),
            bits: bits + 128 - most,
        })
    }

    fn has(self, addr: IpAddr) -> bool {
        let differs = mapped(addr).to_bits() ^ self.base;
        self.bits == 0 || differs.leading_zeros() >= self.bits
    }
}

/// IPv4 addresses as IPv6 has them, ::ffff:a.b.c.d.
pub fn mapped(addr: IpAddr) -> Ipv6Addr {
    match addr {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// The rules in their order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules(Vec<(Net, Link)>);

impl Rules {
    /// The rule that makes no sense, as the error.
    pub fn parse(text: &str) -> Result<Rules, &str> {
        let rules = text.split(',').map(str::trim).filter(|r| !r.is_empty());
        let parsed = rules.map(|rule| {
            let (net, link) = rule.rsplit_once('=').unwrap_or(("*", rule));
            Net::parse(net.trim())
                .zip(Link::parse(link.trim()))
                .ok_or(rule)
        });
        parsed.collect::<Result<_, _>>().map(Rules)
    }

    pub fn link_to(&self, destination: IpAddr) -> Link {
        let destination = destination.to_canonical();
        let found = self.0.iter().find(|(net, _)| net.has(destination));
        found.map_or(Link::Auto, |&(_, link)| link)
    }

    /// May any destination get packets, or be met in shared memory?
    pub fn any(&self, f: impl Fn(Link) -> bool) -> bool {
        let all = self.0.iter().any(|(net, _)| *net == Net::ALL);
        self.0.iter().any(|&(_, link)| f(link)) || !all && f(Link::Auto)
    }
}

/// Those of HEADWATER_SCTP_LINK. What can't be read is told once and counts as `auto`.
pub fn rules() -> &'static Rules {
    static RULES: OnceLock<Rules> = OnceLock::new();
    RULES.get_or_init(|| {
        let text = headwater_host::env::var("HEADWATER_SCTP_LINK").unwrap_or_default();
        Rules::parse(&text).unwrap_or_else(|rule| {
            let wanted = "want [DESTINATION=]auto, shm, udp[:PORT] or raw";
            log::write(
                Level::Warn,
                format_args!("HEADWATER_SCTP_LINK: {rule}: {wanted}"),
            );
            Rules::default()
        })
    })
}

pub fn link_to(destination: IpAddr) -> Link {
    rules().link_to(destination)
}

/// The address of nobody in particular.
pub fn is_any(addr: IpAddr) -> bool {
    addr.to_canonical().is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(rules: &str, addr: &str) -> Link {
        Rules::parse(rules).unwrap().link_to(addr.parse().unwrap())
    }

    #[test]
    fn a_link_alone_is_for_everybody() {
        assert_eq!(to("", "10.1.2.3"), Link::Auto);
        assert_eq!(to("raw", "10.1.2.3"), Link::Raw);
        assert_eq!(to("udp", "::1"), Link::Udp(9899));
        assert_eq!(to("udp:4000", "::1"), Link::Udp(4000));
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let rules = "10.0.0.0/8=raw, fd00::/8=shm, 10.9.9.9=shm, *=udp:9000";
        assert_eq!(to(rules, "10.9.9.9"), Link::Raw);
        assert_eq!(to(rules, "11.9.9.9"), Link::Udp(9000));
        assert_eq!(to(rules, "fd12::1"), Link::Shm);
        assert_eq!(to(rules, "fe80::1"), Link::Udp(9000));
        assert_eq!(to(rules, "::ffff:10.1.1.1"), Link::Raw);
    }

    #[test]
    fn nonsense_is_told() {
        for bad in [
            "tcp",
            "10.0.0.0/33=raw",
            "x=raw",
            "udp:0",
            "udp:70000",
            "=raw",
        ] {
            assert_eq!(Rules::parse(bad), Err(bad));
        }
    }

    #[test]
    fn what_no_rule_says_is_automatic() {
        let only_some = Rules::parse("10.0.0.0/8=shm").unwrap();
        assert!(only_some.any(Link::allows_packets));
        let none = Rules::parse("*=shm").unwrap();
        assert!(!none.any(Link::allows_packets));
        assert!(!Rules::parse("raw").unwrap().any(Link::allows_shm));
    }
}
