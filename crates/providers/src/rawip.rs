//! /dev/rawip and /dev/rawip6: a connectionless provider on the kernel's IP itself.
//!
//! An address is a struct sockaddr_in or sockaddr_in6 whose *port is the protocol*. t_bind chooses the protocol; 0, or no
//! address at all, stands for ICMP (ICMPv6). A destination has the same protocol or 0. Data is what a raw socket takes and
//! gives (raw(7)): it leaves from the transport header on, and of IPv4 it arrives with the IP header in front. Protocol 255
//! only sends, and its data begins with the IP header.
//!
//! ```text
//!   raw socket     any protocol, where the process has CAP_NET_RAW
//!   ping           echo requests and replies through a ping socket, where the group may (ping_group_range)
//!   sent           to whom we have sent, so that reports about other programs' packets are not taken for ours
//! ```

mod ping;
mod sent;

use headwater_host::log::{self, Level};
use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_ipnet::control::Control;
use headwater_ipnet::options::PacketOptions;
use headwater_ipnet::{self as ip, Inbox, socket};
use headwater_tpi::error::{TACCES, TBADADDR, TBADDATA, TNOADDR, TNODATA, TOUTSTATE};
use headwater_tpi::{Info, Refusal};
use libc::iovec;
use ping::Ping;
use sent::Sent;

use crate::inet::settings::Chosen;
use crate::inet::undelivered::Undelivered;
use crate::inet::{self, datagrams, hand_out, hidden_copy, length};
use crate::loopback::Owned;
use crate::options::{self, Known};
use crate::provider::{Arrived, Datagram, Event, IN, Outcome, Provider};

const TABLE: [&[Known]; 2] = [&options::GENERIC_CONNECTIONLESS, &options::IP];
/// An IP packet; with the kernel's header less fits, and sendmsg(2) says so.
const LARGEST: usize = 65_535;
/// Packets taken from the kernel in a call at most.
const AHEAD: usize = 8;

/// How packets go.
enum Way {
    /// Not bound: the socket stands only for the descriptor and its options.
    None,
    Raw,
    Ping(Ping),
}

pub struct Rawip {
    fd: Owned,
    v6: bool,
    way: Way,
    /// Once bound. Addresses of this endpoint have it as their port.
    protocol: u8,
    inbox: Inbox,
    /// Bytes of the packet in front that were handed out; `None`: nothing was told of it yet.
    taken: Option<usize>,
    errors: Undelivered,
    sent: Sent,
    chosen: Chosen,
}

impl Rawip {
    pub fn open(v6: bool) -> Outcome<Rawip> {
        let fd = placeholder(v6)?;
        Ok(Rawip::with(fd, v6, Way::None, 0))
    }

    fn with(fd: Owned, v6: bool, way: Way, protocol: u8) -> Rawip {
        Rawip {
            fd,
            v6,
            way,
            protocol,
            inbox: Inbox::new(v6, AHEAD),
            taken: None,
            errors: Undelivered::default(),
            sent: Sent::default(),
            chosen: Chosen::default(),
        }
    }

    pub fn restore(fd: i32, saved: &str) -> Option<Rawip> {
        let ask = |name| sys::sockopt::<i32>(fd, libc::SOL_SOCKET, name).ok();
        let v6 = ask(libc::SO_DOMAIN)? == libc::AF_INET6;
        let protocol = u8::try_from(ask(libc::SO_PROTOCOL)?).ok()?;
        let way = match ask(libc::SO_TYPE)? {
            libc::SOCK_RAW => Way::Raw,
            _ if protocol == icmp(v6) => Way::Ping(Ping::restore(v6, saved)),
            _ => Way::None,
        };
        let fd = Owned(hidden_copy(fd)?);
        Some(Rawip::with(fd, v6, way, protocol))
    }

    /// Goes on with another socket, with the options that the user has set.
    fn replace(&mut self, fd: Owned, v6: bool, way: Way, protocol: u8) {
        self.chosen.renew(fd.number(), v6);
        (self.fd, self.v6, self.way, self.protocol) = (fd, v6, way, protocol);
        self.inbox = Inbox::new(v6, AHEAD);
        self.taken = None;
        self.sent = Sent::default();
        self.errors.clear();
    }

    /// Has the network said something of what was sent?
    fn hears_errors(&mut self) -> bool {
        let concerns = self.sent.concerns(matches!(self.way, Way::Raw));
        self.errors.hears(self.fd.number(), &concerns)
    }

    /// Is there a packet to hand out? May find errors instead.
    fn fill(&mut self) -> bool {
        if !self.inbox.is_empty() {
            return !self.hears_errors();
        }
        if matches!(self.way, Way::None) {
            return false;
        }
        match self.inbox.fill(self.fd.number()) {
            Ok(_) => true,
            Err(libc::EAGAIN) => false,
            Err(_) => {
                let concerns = self.sent.concerns(matches!(self.way, Way::Raw));
                self.errors.read(self.fd.number(), &concerns);
                self.inbox.fill(self.fd.number()).is_ok()
            }
        }
    }

    /// The packet in front as its reader sees it, with its sender.
    fn front(&mut self) -> Option<(Address, &[u8])> {
        let arrival = self.inbox.front()?;
        let from = arrival.from.with_port(self.protocol.into());
        Some(match &mut self.way {
            Way::Ping(ping) => (from, ping.arrived(arrival)),
            _ => (from, arrival.whole),
        })
    }

    fn pop(&mut self) {
        self.taken = None;
        self.inbox.pop();
    }

    /// Nobody else's protocol, and an address of the right kind.
    fn destination(&self, to: &[u8]) -> Outcome<Address> {
        let to = Address::read(to)?;
        let protocol = to.port();
        if to.is_v6() != self.v6 || protocol != 0 && protocol != self.protocol.into() {
            return Err(Refusal::new(TBADADDR));
        }
        Ok(to)
    }
}

fn icmp(v6: bool) -> u8 {
    if v6 { ip::ICMPV6 } else { ip::ICMP }
}

/// A socket that takes options and receives nothing.
fn placeholder(v6: bool) -> Outcome<Owned> {
    inet::socket(v6, libc::SOCK_DGRAM).map(Owned)
}

/// A socket for this protocol. TACCES: the process may not, and the log says what would help. TBADADDR: no such protocol.
fn open(v6: bool, protocol: u8) -> Outcome<(Owned, Way)> {
    let (fd, way) = match socket::open(v6, libc::SOCK_RAW, protocol) {
        Ok(fd) => (fd, Way::Raw),
        Err(libc::EPERM | libc::EACCES) if protocol == icmp(v6) => {
            let fd =
                socket::open(v6, libc::SOCK_DGRAM, protocol).map_err(|e| refused(protocol, e))?;
            (fd, Way::Ping(Ping::new(fd, v6)))
        }
        Err(errno) => return Err(refused(protocol, errno)),
    };
    socket::make_roomy(fd);
    socket::tell_errors(fd, v6);
    Ok((Owned(fd), way))
}

#[cold]
fn refused(protocol: u8, errno: i32) -> Refusal {
    match errno {
        libc::EPERM | libc::EACCES => {}
        libc::EPROTONOSUPPORT | libc::EINVAL => return Refusal::new(TBADADDR),
        errno => return Refusal::system(errno),
    }
    let ping = match protocol {
        ip::ICMP | ip::ICMPV6 => {
            ", or for echo alone let its group use ping sockets: sysctl net.ipv4.ping_group_range='0 2147483647'"
        }
        _ => "",
    };
    log::write(
        Level::Warn,
        format_args!(
            "/dev/rawip: IP protocol {protocol} needs CAP_NET_RAW: run as root, or with AmbientCapabilities=CAP_NET_RAW in \
             the systemd unit{ping}"
        ),
    );
    Refusal::new(TACCES)
}

impl Provider for Rawip {
    fn info(&self) -> Info {
        datagrams(LARGEST)
    }

    fn descriptor(&self) -> i32 {
        self.fd.number()
    }

    fn bind(&mut self, addr: Option<&[u8]>, _qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        let to = addr.map_or(Ok(Address::any(self.v6)), Address::read)?;
        let v6 = to.is_v6();
        let protocol = match to.port() {
            0 => icmp(v6),
            n => u8::try_from(n).map_err(|_| Refusal::new(TBADADDR))?,
        };
        let (fd, way) = open(v6, protocol)?;
        inet::bind(fd.number(), &to.with_port(0))?;
        self.replace(fd, v6, way, protocol);
        let got = self.local().ok_or(Refusal::new(TNOADDR))?;
        Ok((got, 0))
    }

    fn unbind(&mut self) -> Outcome<()> {
        let fd = placeholder(self.v6)?;
        self.replace(fd, self.v6, Way::None, 0);
        Ok(())
    }

    fn local(&self) -> Option<Vec<u8>> {
        if matches!(self.way, Way::None) {
            return None;
        }
        let address = inet::local(self.fd.number())?;
        Some(address.with_port(self.protocol.into()).to_vec())
    }

    fn peek(&mut self) -> Option<Event> {
        let data = self.errors.is_empty() && self.fill();
        if !self.errors.is_empty() {
            return Some(Event::UdErr);
        }
        data.then_some(Event::Data)
    }

    fn take(&mut self) -> Option<Arrived> {
        self.peek();
        // The kernel knows no port of a raw socket's destination.
        let protocol = self.protocol.into();
        self.errors.take_as(|to| to.with_port(protocol))
    }

    fn check_destination(&self, to: &[u8]) -> Outcome<()> {
        self.destination(to).map(drop)
    }

    fn send_to(&mut self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        let to = self.destination(to)?;
        if length(data) > LARGEST {
            return Err(Refusal::new(TBADDATA));
        }
        self.errors.check()?;
        let mut control = Control([0; 128]);
        let n = PacketOptions::read(opts)?.put(self.v6, &mut control, 0);
        match &mut self.way {
            Way::None => return Err(Refusal::new(TOUTSTATE)),
            Way::Raw => {}
            Way::Ping(ping) => ping.allows(data)?,
        }
        // The kernel takes no port but 0 from senders of IPv6.
        let to = to.with_port(0);
        self.sent.note(&to, self.protocol, data);
        let concerns = self.sent.concerns(matches!(self.way, Way::Raw));
        self.errors.send(
            self.fd.number(),
            (&to, &to),
            data,
            &control.0[..n],
            &concerns,
        )
    }

    fn receive_from(&mut self, into: &mut Datagram<'_>) -> Outcome<()> {
        (into.addr_len, into.opts_len, into.data_len, into.more) = (0, 0, 0, false);
        let there = self.errors.is_empty() && self.fill();
        self.errors.check()?;
        if !there {
            return Err(Refusal::new(TNODATA));
        }
        let mut taken = self.taken;
        let Some((from, data)) = self.front() else {
            self.pop();
            return Err(Refusal::new(TNODATA));
        };
        let begin = taken.unwrap_or(0).min(data.len());
        let done = hand_out(&mut taken, || Some(from), &data[begin..], into);
        self.taken = taken;
        if done != Ok(false) {
            self.pop();
        }
        done.map(drop)
    }

    fn negotiate(&mut self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        let mut settings = self.chosen.on(self.fd.number(), self.v6);
        options::negotiate(&TABLE, &mut settings, flags, opts)
    }

    fn ready(&mut self, want: u32) -> u32 {
        let any = !self.inbox.is_empty() || !self.errors.is_empty();
        if any { want & IN } else { 0 }
    }

    /// An error is something to be taken.
    fn kernel_means(&self, events: u32) -> u32 {
        inet::error_is_readable(events)
    }

    fn save(&mut self) -> Option<String> {
        Some(match &self.way {
            Way::Ping(ping) => ping.save(),
            _ => String::new(),
        })
    }
}
