//! T_INET_IP options that go with one packet.

use headwater_tpi::Outcome;
use headwater_tpi::Refusal;
use headwater_tpi::error::TBADOPT;
use headwater_tpi::option::{self as opt, INET_IP, T_IP_TOS, T_IP_TTL};

use crate::control::{Control, put_control};

/// What a packet's IP header is to say; `None`: as the socket has it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PacketOptions {
    /// Type of service, or traffic class.
    pub tos: Option<u8>,
    /// Time to live, or hop limit.
    pub ttl: Option<u8>,
}

impl PacketOptions {
    /// From an option list; options of other levels don't matter here. TBADOPT.
    pub fn read(list: &[u8]) -> Outcome<PacketOptions> {
        let mut wanted = PacketOptions::default();
        for option in opt::Options::all(list)? {
            let field = match (option.level, option.name) {
                (INET_IP, T_IP_TOS) => &mut wanted.tos,
                (INET_IP, T_IP_TTL) => &mut wanted.ttl,
                _ => continue,
            };
            let value = option.number().and_then(|n| u8::try_from(n).ok());
            *field = Some(value.ok_or(Refusal::new(TBADOPT))?);
        }
        Ok(wanted)
    }

    /// As control messages of sendmsg(2), from `at` on; gives where they end.
    pub fn put(&self, v6: bool, control: &mut Control, at: usize) -> usize {
        let (level, tos, ttl) = if v6 {
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::IPV6_HOPLIMIT)
        } else {
            (libc::IPPROTO_IP, libc::IP_TOS, libc::IP_TTL)
        };
        let mut end = at;
        for (name, value) in [(tos, self.tos), (ttl, self.ttl)] {
            if let Some(value) = value {
                end = put_control(control, end, level, name, &i32::from(value).to_ne_bytes());
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_two_counts_and_bad_ones_are_refused() {
        let mut list = opt::List::new();
        list.push_number(INET_IP, T_IP_TTL, 0, 3);
        list.push_number(opt::XTI_GENERIC, opt::XTI_SNDBUF, 0, 1000);
        list.push(INET_IP, T_IP_TTL, 0, &[7]);
        let read = PacketOptions::read(list.bytes()).unwrap();
        assert_eq!(
            read,
            PacketOptions {
                tos: None,
                ttl: Some(7)
            }
        );
        list.push_number(INET_IP, T_IP_TOS, 0, 256);
        assert_eq!(PacketOptions::read(list.bytes()).unwrap_err().tli, TBADOPT);
    }
}
