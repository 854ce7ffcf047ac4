//! UDP made here (RFC 768, RFC 8200 8.1): header, checksum and checks on raw sockets, which need CAP_NET_RAW. The kernel's
//! bound socket only holds the port, and drops what comes to it.

use std::collections::HashMap;
use std::net::IpAddr;

use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_ipnet::batch::{Arrival, put_source};
use headwater_ipnet::checksum::Sum;
use headwater_ipnet::control::Control;
use headwater_ipnet::errors::Failure;
use headwater_ipnet::options::PacketOptions;
use headwater_ipnet::socket::{self, set};
use headwater_ipnet::{Inbox, Program, RawSocket, UDP};
use headwater_tpi::Refusal;
use headwater_tpi::error::TNODATA;
use libc::iovec;

use super::here::Here;
use crate::inet::udp::Udp;
use crate::inet::undelivered::Undelivered;
use crate::inet::{hand_out, hidden_copy};
use crate::provider::{Arrived, Datagram, Event, Outcome, Provider, nothing};

const HEADER: usize = 8;
/// Packets taken from the kernel in one call.
const AT_ONCE: usize = 16;
/// Destinations whose sender's address is remembered.
const MOST_SOURCES: usize = 1024;

pub struct Raw {
    socket: RawSocket,
    at: Address,
    inbox: Inbox,
    /// Bytes of the datagram in front that were handed out; `None`: nothing was told of it yet.
    taken: Option<usize>,
    errors: Undelivered,
    /// Of an endpoint that is bound to no address of its own.
    sources: HashMap<IpAddr, IpAddr>,
    here: Here,
    packet: Vec<u8>,
    /// T_UDP_CHECKSUM, which IPv6 does not ask about.
    checksum: bool,
}

/// Before the port is taken: a raw socket of IPv6 does not get IPv4, which then is none of the endpoint's business.
pub fn prepare(holder: &mut Udp, addr: Option<&[u8]>) -> Outcome<()> {
    let v6 = match addr {
        Some(addr) => Address::read(addr)?.is_v6(),
        None => holder.is_v6(),
    };
    if v6 && RawSocket::is_permitted() {
        if !holder.is_v6() {
            holder.renew(true)?;
        }
        set(
            holder.descriptor(),
            libc::IPPROTO_IPV6,
            libc::IPV6_V6ONLY,
            1,
        );
    }
    Ok(())
}

impl Raw {
    /// For an endpoint whose port `holder` holds. `None` where it is not permitted, or not possible.
    pub fn open(at: &Address, holder: i32) -> Option<Raw> {
        let v6 = at.is_v6();
        let socket = RawSocket::open(v6, UDP).ok()?;
        if !at.ip().is_unspecified() {
            socket.bind(at.ip()).ok()?;
        }
        socket.attach(&Program::to_ports(v6, &[at.port()])).ok()?;
        // From here on what comes is ours; together packets would lose their bounds.
        socket::attach(holder, &Program::nothing()).ok()?;
        set(holder, libc::SOL_UDP, libc::UDP_GRO, 0);
        set(holder, libc::IPPROTO_IP, libc::IP_RECVERR, 0);
        if v6 {
            set(holder, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 0);
        }
        Some(Raw::with(socket, at, holder))
    }

    /// `fd` is a descriptor of the raw socket of an earlier image of this process.
    pub fn restore(at: &Address, holder: i32, fd: i32) -> Option<Raw> {
        let socket = RawSocket::adopt(hidden_copy(fd)?, at.is_v6(), UDP);
        Some(Raw::with(socket, at, holder))
    }

    fn with(socket: RawSocket, at: &Address, holder: i32) -> Raw {
        let mut raw = Raw {
            socket,
            at: *at,
            inbox: Inbox::new(at.is_v6(), AT_ONCE),
            taken: None,
            errors: Undelivered::default(),
            sources: HashMap::new(),
            here: Here::default(),
            packet: Vec::new(),
            checksum: true,
        };
        raw.take_over_options(holder);
        raw
    }

    #[inline]
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// As [`has_errors`](Raw::has_errors), of what was sent last too.
    #[inline]
    pub fn hears_errors(&mut self) -> bool {
        let concerns = sent_from(self.at.port());
        self.errors.hears(self.socket.fd(), &concerns)
    }

    /// Is there a datagram that was taken from the kernel, and passed all checks?
    #[inline]
    pub fn has_taken(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// What was negotiated was set on the socket that holds the port.
    pub fn take_over_options(&mut self, holder: i32) {
        let off = sys::sockopt::<i32>(holder, libc::SOL_SOCKET, libc::SO_NO_CHECK);
        self.checksum = self.at.is_v6() || off.is_ok_and(|off| off == 0);
        let ip = if self.at.is_v6() {
            [libc::IPV6_TCLASS, libc::IPV6_UNICAST_HOPS].map(|name| (libc::IPPROTO_IPV6, name))
        } else {
            [libc::IP_TOS, libc::IP_TTL].map(|name| (libc::IPPROTO_IP, name))
        };
        let all = [libc::SO_BROADCAST, libc::SO_DONTROUTE].map(|name| (libc::SOL_SOCKET, name));
        for (level, name) in ip.into_iter().chain(all) {
            if let Ok(value) = sys::sockopt::<i32>(holder, level, name) {
                set(self.socket.fd(), level, name, value);
            }
        }
        if !self.at.is_v6() {
            let mut bytes = [0; 40];
            let got = sys::sockopt_bytes(holder, libc::IPPROTO_IP, libc::IP_OPTIONS, &mut bytes);
            if let Ok(n) = got {
                let (fd, bytes) = (self.socket.fd(), &bytes[..n.min(40)]);
                let _ = sys::set_sockopt(fd, libc::IPPROTO_IP, libc::IP_OPTIONS, bytes);
            }
        }
    }

    fn source(&mut self, to: &Address) -> Option<IpAddr> {
        let (own, to) = (self.at.ip(), to.ip());
        if !own.is_unspecified() {
            return Some(own);
        }
        if let Some(&known) = self.sources.get(&to) {
            return Some(known);
        }
        let source = self.here.route(to)?.source?;
        if self.sources.len() >= MOST_SOURCES {
            self.sources.clear();
        }
        self.sources.insert(to, source);
        Some(source)
    }

    /// Header and data as they leave.
    fn make(&mut self, from: IpAddr, to: &Address, data: &[iovec]) {
        let packet = &mut self.packet;
        packet.clear();
        packet.extend(self.at.port().to_be_bytes());
        packet.extend(to.port().to_be_bytes());
        packet.extend([0; 4]);
        for part in data {
            packet.extend_from_slice(crate::loopback::buffers::bytes(part));
        }
        let len = packet.len();
        packet[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        if self.checksum {
            let sum = Sum::pseudo(from, to.ip(), UDP, len).with(packet).finish();
            // Nought means that there is none.
            let sum = if sum == [0, 0] { [0xff, 0xff] } else { sum };
            packet[6..8].copy_from_slice(&sum);
        }
    }

    /// TFLOW, TBADADDR, TBADDATA, TACCES; TLOOK: an earlier datagram has failed, this one did not leave.
    pub fn send(&mut self, to: &Address, options: PacketOptions, data: &[iovec]) -> Outcome<()> {
        let Some(from) = self.source(to) else {
            self.errors.push(*to, libc::ENETUNREACH);
            return Ok(());
        };
        self.make(from, to, data);
        let mut control = Control([0; 128]);
        let end = if self.at.ip().is_unspecified() {
            put_source(&mut control, 0, from)
        } else {
            0
        };
        let end = options.put(self.at.is_v6(), &mut control, end);
        let whole = [sys::buffer(self.packet.as_ptr(), self.packet.len())];
        let concerns = sent_from(self.at.port());
        self.errors.send(
            self.socket.fd(),
            (to, &to.with_port(0)),
            &whole,
            &control.0[..end],
            &concerns,
        )
    }

    /// TNODATA; TLOOK; TBUFOVFLW: the sender's address did not fit, the datagram is gone.
    pub fn receive_from(&mut self, into: &mut Datagram<'_>) -> Outcome<()> {
        (into.addr_len, into.opts_len, into.data_len, into.more) = (0, 0, 0, false);
        if !self.fill() {
            return Err(nothing(self.has_errors()));
        }
        let mut taken = self.taken.take();
        let Some(arrival) = self.inbox.front() else {
            return Err(Refusal::new(TNODATA));
        };
        let Some(data) = datagram(&arrival) else {
            return Err(Refusal::new(TNODATA));
        };
        let rest = &data[taken.unwrap_or(0)..];
        let done = hand_out(&mut taken, || Some(sender(&arrival)), rest, into);
        self.taken = taken;
        if done != Ok(false) {
            self.inbox.pop();
        }
        done.map(drop)
    }

    pub fn peek(&mut self) -> Option<Event> {
        let data = self.errors.is_empty() && self.fill();
        if self.has_errors() {
            return Some(Event::UdErr);
        }
        data.then_some(Event::Data)
    }

    pub fn take(&mut self) -> Option<Arrived> {
        self.peek();
        self.errors.take()
    }

    pub fn descriptor(&self) -> i32 {
        self.socket.fd()
    }

    pub fn forked(&mut self) {
        self.here.forked();
    }

    /// Is there a good datagram in front? Bad ones are dropped, errors collected.
    fn fill(&mut self) -> bool {
        loop {
            while let Some(arrival) = self.inbox.front() {
                if self.taken.is_some() || datagram(&arrival).is_some() {
                    return !self.hears_errors();
                }
                self.inbox.pop();
            }
            match self.inbox.fill(self.socket.fd()) {
                Ok(_) => {}
                Err(libc::EAGAIN) => return false,
                Err(_) => {
                    let concerns = sent_from(self.at.port());
                    self.errors.read(self.socket.fd(), &concerns);
                    if self.inbox.fill(self.socket.fd()).is_err() {
                        return false;
                    }
                }
            }
        }
    }
}

/// Where a datagram from this port went that a report quotes. The error queue holds what concerns others too.
fn sent_from(own: u16) -> impl Fn(&Failure, &[u8]) -> Option<Address> {
    move |failure, quoted| match quoted {
        &[a, b, c, d, ..] if [a, b] == own.to_be_bytes() => {
            Some(failure.to.with_port(u16::from_be_bytes([c, d])))
        }
        _ => None,
    }
}

/// The data of a packet that is UDP in every respect. The kernel's own senders on this host leave the checksum to the
/// hardware that is not there: then the field has the sum of the pseudo header alone.
fn datagram<'a>(arrival: &'a Arrival<'_>) -> Option<&'a [u8]> {
    check(arrival.from.ip(), arrival.to, arrival.payload())
}

/// With the port in its place.
fn sender(arrival: &Arrival<'_>) -> Address {
    let payload = arrival.payload();
    arrival
        .from
        .with_port(u16::from_be_bytes([payload[0], payload[1]]))
}

fn check(from: IpAddr, to: IpAddr, payload: &[u8]) -> Option<&[u8]> {
    let len = usize::from(u16::from_be_bytes([*payload.get(4)?, *payload.get(5)?]));
    if len < HEADER {
        return None;
    }
    let datagram = payload.get(..len)?;
    let field = [datagram[6], datagram[7]];
    let right = if field == [0, 0] {
        // RFC 8200 8.1: not in IPv6.
        from.is_ipv4()
    } else {
        let pseudo = Sum::pseudo(from, to, UDP, len);
        field == pseudo.finish().map(|byte| !byte) || pseudo.with(datagram).is_right()
    };
    right.then(|| &datagram[HEADER..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(from: IpAddr, to: IpAddr, data: &[u8], checksum: bool) -> Vec<u8> {
        let mut packet = [&[0, 7, 0, 9, 0, 0, 0, 0][..], data].concat();
        let len = packet.len();
        packet[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        if checksum {
            let sum = Sum::pseudo(from, to, UDP, len).with(&packet).finish();
            packet[6..8].copy_from_slice(&sum);
        }
        packet
    }

    #[test]
    fn only_what_is_udp_in_every_respect_passes() {
        let v4: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
        let v6: [IpAddr; 2] = [
            "2001:db8::1".parse().unwrap(),
            "2001:db8::2".parse().unwrap(),
        ];
        for [from, to] in [v4, v6] {
            let good = packet(from, to, b"data", true);
            assert_eq!(check(from, to, &good), Some(&b"data"[..]));
            let padded = [&good[..], b"padding"].concat();
            assert_eq!(
                check(from, to, &padded),
                Some(&b"data"[..]),
                "IP may have more"
            );
            let bare = packet(from, to, b"data", false);
            assert_eq!(check(from, to, &bare).is_some(), from.is_ipv4());
            for spoiled in 0..good.len() {
                let mut bad = good.clone();
                bad[spoiled] ^= 0x41;
                assert_eq!(check(from, to, &bad), None, "byte {spoiled}");
            }
            assert_eq!(check(from, to, &good[..good.len() - 1]), None, "cut off");
            assert_eq!(check(from, to, &good[..7]), None, "no header");
            let mut short = good.clone();
            short[4..6].copy_from_slice(&7u16.to_be_bytes());
            assert_eq!(check(from, to, &short), None, "shorter than its header");
        }
    }

    #[test]
    fn a_checksum_left_to_hardware_passes() {
        let (from, to) = ("127.0.0.1".parse().unwrap(), "127.0.0.1".parse().unwrap());
        let mut partial = packet(from, to, b"data", false);
        let sum = Sum::pseudo(from, to, UDP, partial.len()).finish();
        partial[6..8].copy_from_slice(&sum.map(|byte| !byte));
        assert_eq!(check(from, to, &partial), Some(&b"data"[..]));
    }
}
