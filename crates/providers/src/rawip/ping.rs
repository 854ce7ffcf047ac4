//! ICMP echo through a ping socket (icmp(7)): no privilege, but the kernel chooses the identifier, passes only replies to
//! our own requests, and shows no IP header. What the user sees is as with a raw socket: its own identifier, and a header.

use std::net::IpAddr;

use headwater_host::log::{self, Level};
use headwater_ipnet::batch::Arrival;
use headwater_ipnet::checksum::{Sum, updated};
use headwater_ipnet::{self as ip, icmp, socket};
use headwater_tpi::Refusal;
use headwater_tpi::error::{TACCES, TBADDATA};
use libc::iovec;

use crate::inet::length;
use crate::loopback::buffers::Source;
use crate::provider::Outcome;

/// Type, code, checksum, identifier, sequence number.
const HEADER: usize = 8;
const IP_HEADER: usize = 20;

pub struct Ping {
    v6: bool,
    /// What the user's last request had.
    id: [u8; 2],
    /// A packet as its reader sees it.
    packet: Vec<u8>,
    complained: bool,
}

impl Ping {
    pub fn new(fd: i32, v6: bool) -> Ping {
        if !v6 {
            for name in [libc::IP_PKTINFO, libc::IP_RECVTTL, libc::IP_RECVTOS] {
                socket::set(fd, libc::IPPROTO_IP, name, 1);
            }
        }
        Ping::restore(v6, "")
    }

    /// What [`save`](Ping::save) has given. The socket has kept its options.
    pub fn restore(v6: bool, saved: &str) -> Ping {
        let id = saved.parse::<u16>().unwrap_or(0).to_be_bytes();
        Ping {
            v6,
            id,
            packet: Vec::new(),
            complained: false,
        }
    }

    pub fn save(&self) -> String {
        u16::from_be_bytes(self.id).to_string()
    }

    /// May this leave? Remembers the identifier of an echo request. TACCES: another message; TBADDATA: none at all.
    pub fn allows(&mut self, data: &[iovec]) -> Outcome<()> {
        let mut head = [0; HEADER];
        if length(data) < HEADER {
            return Err(Refusal::new(TBADDATA));
        }
        gather(data, &mut head);
        let echo = if self.v6 { icmp::ECHO_V6 } else { icmp::ECHO };
        if head[..2] != [echo, 0] {
            self.complain(head[0]);
            return Err(Refusal::new(TACCES));
        }
        self.id = [head[4], head[5]];
        Ok(())
    }

    #[cold]
    fn complain(&mut self, kind: u8) {
        if !core::mem::replace(&mut self.complained, true) {
            log::write(
                Level::Warn,
                format_args!(
                    "/dev/rawip: without CAP_NET_RAW only ICMP echo requests leave, not type {kind}"
                ),
            );
        }
    }

    /// A reply, as a raw socket would give it. Of the IP header identification and fragment fields are unknown, and 0.
    pub fn arrived(&mut self, arrival: Arrival<'_>) -> &[u8] {
        self.packet.clear();
        if !self.v6 {
            self.packet.extend_from_slice(&ip_header(&arrival));
        }
        let begin = self.packet.len();
        self.packet.extend_from_slice(arrival.whole);
        if let Some(message) = self.packet.get_mut(begin..).filter(|m| m.len() >= HEADER) {
            let sum = updated([message[2], message[3]], [message[4], message[5]], self.id);
            message[2..4].copy_from_slice(&sum);
            message[4..6].copy_from_slice(&self.id);
        }
        &self.packet
    }
}

/// RFC 791, without options.
fn ip_header(arrival: &Arrival<'_>) -> [u8; IP_HEADER] {
    let mut header = [0; IP_HEADER];
    header[0] = 0x45;
    header[1] = arrival.tos.unwrap_or(0);
    let len = (IP_HEADER + arrival.whole.len()).min(65_535) as u16;
    header[2..4].copy_from_slice(&len.to_be_bytes());
    header[8] = arrival.ttl.unwrap_or(0);
    header[9] = ip::ICMP;
    for (at, ip) in [(12, arrival.from.ip()), (16, arrival.to)] {
        if let IpAddr::V4(ip) = ip {
            header[at..at + 4].copy_from_slice(&ip.octets());
        }
    }
    let sum = Sum::default().with(&header).finish();
    header[10..12].copy_from_slice(&sum);
    header
}

/// The beginning of what the user sends; how much there was of it.
pub fn gather(data: &[iovec], into: &mut [u8]) -> usize {
    let n = length(data).min(into.len());
    Source::new(data).take(&mut into[..n]);
    n
}
