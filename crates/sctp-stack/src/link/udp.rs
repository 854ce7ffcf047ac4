//! UDP encapsulation (RFC 6951): one socket for all associations of the process, IPv4 and IPv6. Runs of packets leave in one call
//! and arrive in one (UDP_SEGMENT, UDP_GRO); nothing is ever fragmented, since SCTP looks for the paths' MTUs itself.
//!
//! The first process to come has the well-known port, and forwards what comes there for ports of others (see
//! [`registry`](crate::registry)). Those send from a port that the kernel chooses, where answers reach them at once; when
//! the holder of the well-known port is gone, one that listens takes it over, or whoever notices first.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use std::sync::Arc;

use headwater_host::sync::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use headwater_host::{hidden, sys};
use headwater_ipnet::Address;
use headwater_ipnet::batch::put_source;
use headwater_ipnet::control::{Control, controls, put_control};
use headwater_ipnet::incoming::Incoming;
use headwater_ipnet::outgoing::send_all;
use headwater_ipnet::socket::{fragment, fragmenting};
use headwater_ipnet::{errors, icmp};
use headwater_providers::loopback::listening::is_lack;
use headwater_sctp::Arrived;
use headwater_sctp::endpoint::Unreachable;
use libc::{iovec, mmsghdr};

use super::{Link, Returned, Routes, Run, failures, watch, watch_all};
use crate::Guarded;
use crate::here::is_here;
use crate::registry::Registry;

/// What one message carries at most: as the kernel takes it.
const SEGMENTS: usize = 64;
const CAPACITY: usize = 65_000;
/// Messages in one sendmmsg.
const MESSAGES: usize = 16;
/// Asked of the kernel, which may give less.
const BUFFER: i32 = 8 << 20;
/// Between two looks whether the well-known port is free, in nanoseconds.
const RETRY: u64 = Duration::from_millis(400).as_nanos() as u64;
/// IPv4 and UDP headers; the largest datagram of UDP.
const HEADERS: usize = 28;
const HEADERS_V6: usize = 48;
const LARGEST: usize = 65_504;

pub struct Udp {
    /// All packets leave here.
    fd: i32,
    v6: bool,
    /// The well-known port.
    port: u16,
    /// Where it was taken over later; -1.
    late: AtomicI32,
    holds: AtomicBool,
    /// Holds all that may be readable, unless it is only `fd`; -1.
    epoll: i32,
    registry: Arc<Registry>,
    listeners: AtomicU64,
    retry: AtomicU64,
    /// The kernel can't cut for this route: no checksums in hardware or software.
    uncut: AtomicBool,
    /// There may be something in the error queue.
    complained: AtomicBool,
    arriving: Guarded<Arriving>,
    /// Too large for the stack of a signal handler. Empty while a thread uses it.
    outgoing: Guarded<Option<Box<Outgoing>>>,
    routes: Routes,
}

struct Arriving {
    incoming: Incoming,
    turn: u32,
}

impl Udp {
    /// Errors: those of socket(2) and bind(2).
    pub fn open(port: u16, registry: Arc<Registry>) -> sys::Result<Udp> {
        let (fd, v6) = socket()?;
        let holds = match bind(fd, v6, port) {
            Ok(()) => true,
            Err(libc::EADDRINUSE | libc::EACCES) => {
                bind(fd, v6, 0).inspect_err(|_| hidden::close(fd))?;
                false
            }
            Err(errno) => {
                hidden::close(fd);
                return Err(errno);
            }
        };
        let epoll = match holds {
            true => -1,
            false => watch_all([fd, registry.descriptor()]).inspect_err(|_| hidden::close(fd))?,
        };
        Ok(Udp {
            fd,
            v6,
            port,
            late: AtomicI32::new(-1),
            holds: AtomicBool::new(holds),
            epoll,
            registry,
            listeners: AtomicU64::new(0),
            retry: AtomicU64::new(u64::MAX),
            uncut: AtomicBool::new(false),
            complained: AtomicBool::new(false),
            arriving: Guarded::new(Arriving {
                incoming: Incoming::default(),
                turn: 0,
            }),
            outgoing: Guarded::new(Some(Outgoing::new())),
            routes: Routes::new(),
        })
    }

    /// The bytes that wait to be received at most, with the kernel's overhead.
    pub fn buffer(&self) -> usize {
        let size = sys::sockopt::<i32>(self.fd, libc::SOL_SOCKET, libc::SO_RCVBUF);
        size.map_or(0, |size| size.max(0) as usize)
    }

    /// Does this process have the well-known port?
    pub fn holds_port(&self) -> bool {
        self.holds.load(Ordering::Relaxed)
    }

    fn take_over(&self) -> sys::Result<()> {
        let (fd, v6) = socket()?;
        bind(fd, v6, self.port).inspect_err(|_| hidden::close(fd))?;
        self.late.store(fd, Ordering::Release);
        self.holds.store(true, Ordering::Release);
        watch(self.epoll, fd)
    }

    /// A packet came to this host's well-known port when one holder had ended, and no other had taken its place. Since that says
    /// nothing of who has which SCTP port, we take the place, so that the packet reaches whom it is for when it is sent again.
    fn was_between_holders(&self, failure: &errors::Failure) -> bool {
        let nobody = matches!(failure.trouble, Some(icmp::Trouble::Port));
        nobody
            && failure.to.port() == self.port
            && is_here(failure.to.ip().to_canonical())
            && (self.holds_port() || matches!(self.take_over(), Ok(()) | Err(libc::EADDRINUSE)))
    }

    /// As many runs, cut as needed, as fit one call: how many runs were taken whole.
    fn send_some(&self, outgoing: &mut Outgoing, runs: &[Run<'_>]) -> sys::Result<usize> {
        outgoing.count = 0;
        let mut ends = [0; MESSAGES];
        for (i, run) in runs.iter().enumerate() {
            let whole = self.pieces(run).count();
            if run.how.fragment && i > 0 {
                break;
            }
            if whole > MESSAGES - outgoing.count && outgoing.count > 0 {
                break;
            }
            for (at, piece) in self.pieces(run).enumerate().take(MESSAGES) {
                ends[outgoing.count] = if at + 1 == whole { i + 1 } else { i };
                outgoing.push(self.v6, run, piece);
            }
        }
        let sent = match runs[0].how.fragment {
            true => fragmenting(self.fd, self.v6, || outgoing.send(self.fd))?,
            false => outgoing.send(self.fd)?,
        };
        // A run of which a part was not taken loses that part, which is as good as lost on the way.
        Ok(match sent {
            0 => 0,
            n => ends[n - 1].max(1),
        })
    }

    /// A run in pieces that one message can carry.
    fn pieces<'a>(&self, run: &Run<'a>) -> core::slice::Chunks<'a, u8> {
        let segment = run.how.segment.max(1);
        let cut = !self.uncut.load(Ordering::Relaxed);
        let count = if cut {
            (CAPACITY / segment).clamp(1, SEGMENTS)
        } else {
            1
        };
        run.bytes.chunks(segment * count)
    }

    /// The front run can't leave as it is: packet by packet then. How many runs were dealt with.
    fn send_singly(&self, outgoing: &mut Outgoing, run: &Run<'_>, errno: i32) -> usize {
        if errno == libc::EIO {
            self.uncut.store(true, Ordering::Relaxed);
        }
        for bytes in run.bytes.chunks(run.how.segment.max(1)) {
            let mut tries = 0;
            loop {
                outgoing.count = 0;
                outgoing.push(self.v6, run, bytes);
                match outgoing.send(self.fd) {
                    Ok(_) => break,
                    Err(libc::EAGAIN) => return 0,
                    // Of an earlier packet: the error queue has it.
                    Err(libc::ECONNREFUSED | libc::EHOSTUNREACH) if tries < 2 => tries += 1,
                    Err(_) => {
                        self.complained.store(true, Ordering::Relaxed);
                        break;
                    }
                }
            }
        }
        1
    }

    fn hand_over(
        &self,
        incoming: &mut Incoming,
        fd: i32,
        each: &mut dyn FnMut(&Arrived<'_>),
    ) -> usize {
        match incoming.fill(fd) {
            Ok(()) => {}
            Err(libc::EAGAIN) => return 0,
            // What an ICMP message has left as the socket's error; its queue tells more.
            Err(_) => {
                self.complained.store(true, Ordering::Relaxed);
                if incoming.fill(fd).is_err() {
                    return 0;
                }
            }
        }
        let mut count = 0;
        let mut to = (core::ptr::null(), None);
        while let Some(front) = incoming.front(0) {
            // Packets that came in one message have one control part.
            if to.0 != front.control.as_ptr() {
                to = (front.control.as_ptr(), destination(front.control));
            }
            if let (Some(from), Some(to)) = (Address::of_storage(front.from), to.1) {
                each(&Arrived {
                    from: from.ip().to_canonical(),
                    to,
                    encap: Some(from.port()),
                    packet: front.data,
                });
            }
            count += 1;
            incoming.pop();
        }
        count
    }

    fn sockets(&self) -> impl Iterator<Item = i32> {
        [self.fd, self.late.load(Ordering::Acquire)]
            .into_iter()
            .filter(|&fd| fd >= 0)
    }
}

impl Link for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn descriptor(&self) -> i32 {
        if self.epoll >= 0 { self.epoll } else { self.fd }
    }

    fn send(&self, runs: &[Run<'_>]) -> usize {
        let kept = self.outgoing.enter().take();
        let mut outgoing = kept.unwrap_or_else(Outgoing::new);
        let mut done = 0;
        while done < runs.len() {
            let some = match self.send_some(&mut outgoing, &runs[done..]) {
                Err(libc::EAGAIN) => 0,
                Err(errno) => self.send_singly(&mut outgoing, &runs[done], errno),
                Ok(n) => n,
            };
            if some == 0 {
                break;
            }
            done += some;
        }
        *self.outgoing.enter() = Some(outgoing);
        done
    }

    fn receive(&self, each: &mut dyn FnMut(&Arrived<'_>)) -> sys::Result<usize> {
        // Whoever is at it hands everything over.
        let mut arriving = self.arriving.try_enter().ok_or(libc::EAGAIN)?;
        let arriving = &mut *arriving;
        let mut count = self.hand_over(&mut arriving.incoming, self.fd, each);
        arriving.turn = arriving.turn.wrapping_add(1);
        if self.epoll >= 0 && (count == 0 || arriving.turn.is_multiple_of(8)) {
            let late = self.late.load(Ordering::Acquire);
            if late >= 0 {
                count += self.hand_over(&mut arriving.incoming, late, each);
            }
            count += self.registry.receive(each);
        }
        if self.complained.load(Ordering::Relaxed) && self.complained.swap(false, Ordering::Relaxed)
        {
            return Err(libc::ECONNREFUSED);
        }
        if count == 0 {
            Err(libc::EAGAIN)
        } else {
            Ok(count)
        }
    }

    fn troubles(&self, each: &mut dyn FnMut(&Returned<'_>)) {
        for fd in self.sockets() {
            failures(fd, |failure, quoted| {
                let to = failure.to.ip().to_canonical();
                let what = match failure.trouble {
                    _ if self.was_between_holders(failure) => Unreachable::Passing,
                    Some(icmp::Trouble::Port | icmp::Trouble::Protocol) => Unreachable::Port,
                    Some(icmp::Trouble::TooBig(mtu)) => {
                        Unreachable::TooBig((mtu as usize).saturating_sub(headers(to)))
                    }
                    _ => return,
                };
                each(&Returned { to, what, quoted });
            });
        }
    }

    fn reaches(&self, to: IpAddr) -> bool {
        self.v6 || to.to_canonical().is_ipv4()
    }

    fn largest(&self, to: IpAddr) -> usize {
        self.routes.largest(to, headers(to), LARGEST + headers(to))
    }

    fn pass_on(&self, port: u16, packet: &Arrived<'_>) -> bool {
        self.holds_port() && self.registry.forward(port, packet)
    }

    fn deadline(&self) -> u64 {
        self.retry.load(Ordering::Relaxed)
    }

    fn on_deadline(&self, now: u64) {
        let done = self.holds_port()
            || self.listeners.load(Ordering::Relaxed) == 0
            || self.take_over().is_ok();
        self.retry
            .store(if done { u64::MAX } else { now + RETRY }, Ordering::Relaxed);
    }

    /// Somebody waits for associations, which are begun at the well-known port.
    fn listens(&self, on: bool) {
        if on {
            self.listeners.fetch_add(1, Ordering::Relaxed);
            if !self.holds_port() {
                self.retry.store(sys::now() + RETRY, Ordering::Relaxed);
            }
        } else if self.listeners.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.retry.store(u64::MAX, Ordering::Relaxed);
        }
    }

    fn forked(&self) {
        for fd in self.sockets() {
            hidden::close(fd);
        }
        hidden::close(self.epoll);
    }
}

impl Drop for Udp {
    fn drop(&mut self) {
        self.forked();
    }
}

/// Messages for one call.
struct Outgoing {
    count: usize,
    to: [Address; MESSAGES],
    parts: [iovec; MESSAGES],
    controls: [Control; MESSAGES],
    control_lens: [usize; MESSAGES],
    messages: [mmsghdr; MESSAGES],
}

// SAFETY: its pointers are set before each call of the kernel, and mean nothing after it.
unsafe impl Send for Outgoing {}

impl Outgoing {
    fn new() -> Box<Outgoing> {
        // SAFETY: all of it is plain numbers and pointers.
        unsafe { Box::new_zeroed().assume_init() }
    }

    /// The bytes stay where they are until it is sent.
    fn push(&mut self, v6: bool, run: &Run<'_>, bytes: &[u8]) {
        let i = self.count;
        self.to[i] = Address::of_ip(as_socket(v6, run.how.to), run.how.encap.unwrap_or(0));
        self.parts[i] = sys::buffer(bytes.as_ptr() as *mut u8, bytes.len());
        let control = &mut self.controls[i];
        let mut end = 0;
        if let Some(from) = run.how.from.filter(|from| !from.is_unspecified()) {
            end = put_source(control, end, as_socket(v6, from));
        }
        if bytes.len() > run.how.segment {
            let size = (run.how.segment as u16).to_ne_bytes();
            end = put_control(control, end, libc::SOL_UDP, libc::UDP_SEGMENT, &size);
        }
        self.control_lens[i] = end;
        self.count += 1;
    }

    fn send(&mut self, fd: i32) -> sys::Result<usize> {
        for i in 0..self.count {
            let header = &mut self.messages[i].msg_hdr;
            header.msg_name = self.to[i].pointer() as *mut _;
            header.msg_namelen = self.to[i].len();
            header.msg_iov = &mut self.parts[i];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[i].0.as_mut_ptr() as *mut _;
            header.msg_controllen = self.control_lens[i] as _;
        }
        // SAFETY: `count` messages are filled in, and the parts of each are valid.
        unsafe { send_all(fd, &mut self.messages[..self.count]) }
    }
}

/// An address as the socket has it: those of IPv4 stand inside IPv6.
fn as_socket(v6: bool, ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if v6 => ip.to_ipv6_mapped().into(),
        ip => ip,
    }
}

fn destination(control: &[u8]) -> Option<IpAddr> {
    controls(control).find_map(|(level, name, value)| match (level, name) {
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let octets: [u8; 16] = value.get(..16)?.try_into().ok()?;
            Some(Ipv6Addr::from(octets).to_canonical())
        }
        // struct in_pktinfo: interface, ipi_spec_dst, ipi_addr.
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let octets: [u8; 4] = value.get(8..12)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets).into())
        }
        _ => None,
    })
}

fn headers(to: IpAddr) -> usize {
    if to.is_ipv6() { HEADERS_V6 } else { HEADERS }
}

/// A socket of both versions, or of IPv4 where there is no other. Where something has run out there may be another later.
fn socket() -> sys::Result<(i32, bool)> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let (fd, v6) = match sys::socket(libc::AF_INET6, kind, 0) {
        Ok(fd) => (fd, true),
        Err(errno) if is_lack(errno) => return Err(errno),
        Err(_) => (sys::socket(libc::AF_INET, kind, 0)?, false),
    };
    let fd = hidden::hide_needed(fd)?;
    prepare(fd, v6).inspect_err(|_| hidden::close(fd))?;
    Ok((fd, v6))
}

/// Without some options no packet is ever taken, or nothing heard of those that go nowhere: who waits would do so in vain.
fn prepare(fd: i32, v6: bool) -> sys::Result<()> {
    let set = |level, name, value: i32| sys::set_sockopt(fd, level, name, &value);
    if v6 {
        set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0)?;
        set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
    } else {
        set(libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    }
    set(libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
    fragment(fd, v6, false);
    let _ = set(libc::SOL_UDP, libc::UDP_GRO, 1);
    for (force, ask) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        let _ =
            set(libc::SOL_SOCKET, force, BUFFER).or_else(|_| set(libc::SOL_SOCKET, ask, BUFFER));
    }
    Ok(())
}

fn bind(fd: i32, v6: bool, port: u16) -> sys::Result<()> {
    let any = Address::any(v6).with_port(port);
    sys::bind(fd, &any)
}
