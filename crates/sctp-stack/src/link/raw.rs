//! SCTP as it stands in RFC 9260, straight on IP, by raw sockets (CAP_NET_RAW). There is no daemon: the kernel gives each
//! process a copy of every packet, and a filter keeps those for the process's own ports.
//!
//! Somebody has to answer packets for ports that nobody has: whoever holds an abstract UNIX name, which the kernel keeps apart by
//! network namespace and frees when its holder ends. Only the holder sees packets for other ports, and before it answers
//! one it looks whether another process has reserved the port (see [`registry`](crate::registry)).

use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;

use headwater_host::log::{self, Level};
use headwater_host::sync::{AtomicI32, AtomicU64, Ordering};
use headwater_host::{hidden, sys};
use headwater_ipnet::batch::{self, Inbox};
use headwater_ipnet::{self as ip, Program, RawSocket, icmp};
use headwater_providers::loopback::listening::is_lack;
use headwater_sctp::Arrived;
use headwater_sctp::endpoint::Unreachable;

use super::{Link, Returned, Routes, Run, failures, watch_all};
use crate::Guarded;
use crate::registry::DYNAMIC;

mod out_of_the_blue;
use out_of_the_blue::{Holder, Taken};

/// Packets taken in a call at most.
const BATCH: usize = 32;
/// Between two attempts to become the holder, in nanoseconds.
const RETRY: u64 = Duration::from_secs(1).as_nanos() as u64;
/// Ports from [`DYNAMIC`] on are reserved in blocks of 256 (see registry.rs), and filtered by block.
const BLOCK: u16 = 0xff00;
/// Where a chunk's type stands in the first chunk, and that of SACK.
const FIRST_CHUNK: u32 = 12;
const SACK: u16 = 3;
/// Marks our packets for nft and ip rule, so that those of the kernel's own SCTP can be told from them (docs/rawip.md).
const MARK: i32 = 0x5c70;
/// The largest packet of IP.
const LARGEST: usize = 65_535;

/// Why there can be no raw link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unusable {
    /// No CAP_NET_RAW.
    Privilege,
    /// The kernel has SCTP of its own, which would end our associations: it answers ABORT to what it does not know.
    Kernel,
    /// errno
    System(i32),
}

impl Unusable {
    /// Says it in the log, with what would help.
    pub fn explain(self, level: Level) {
        let why = match self {
            Unusable::Privilege => {
                "raw packets need CAP_NET_RAW: run as root, or with AmbientCapabilities=CAP_NET_RAW in the systemd unit; \
                 HEADWATER_SCTP_LINK=udp needs none"
            }
            Unusable::Kernel => {
                "the kernel's own SCTP is loaded and would abort our associations: unload it (modprobe -r sctp, and \
                 blacklist it), use HEADWATER_SCTP_LINK=udp, or drop its answers (docs/rawip.md) and set \
                 HEADWATER_SCTP_BESIDE_KERNEL=1"
            }
            Unusable::System(errno) => &format!("no raw socket: errno {errno}"),
        };
        log::write(level, format_args!("sctp: {why}"));
    }
}

pub struct Raw {
    v4: RawSocket,
    /// `None`: this host has no IPv6.
    v6: Option<RawSocket>,
    /// Both of them.
    epoll: i32,
    ports: Guarded<Ports>,
    holder: Holder,
    taken: Taken,
    listeners: AtomicU64,
    retry: AtomicU64,
    arriving: Guarded<[Inbox; 2]>,
    routes: Routes,
}

/// Our ports, and how often each was opened; dynamic ones by their block.
type Ports = BTreeMap<u16, usize>;

/// May raw packets be used here and now? Opens nothing that stays.
pub fn is_usable() -> bool {
    !kernel_has_sctp() && RawSocket::is_permitted()
}

/// The module makes a folder for each network namespace. (A socket of it would load the module.)
fn kernel_has_sctp() -> bool {
    let insists =
        headwater_host::env::var("HEADWATER_SCTP_BESIDE_KERNEL").is_some_and(|v| v == "1");
    !insists && std::path::Path::new("/proc/thread-self/net/sctp").exists()
}

impl Raw {
    pub fn open() -> Result<Raw, Unusable> {
        if kernel_has_sctp() {
            return Err(Unusable::Kernel);
        }
        let open = |v6| {
            let socket = RawSocket::open(v6, ip::SCTP)?;
            socket.attach(&Program::nothing())?;
            socket.never_fragment();
            ip::socket::set(socket.fd(), libc::SOL_SOCKET, libc::SO_MARK, MARK);
            Ok(socket)
        };
        let v4 = open(false).map_err(|errno| match errno {
            libc::EPERM | libc::EACCES => Unusable::Privilege,
            errno => Unusable::System(errno),
        })?;
        let v6 = match open(true) {
            Ok(v6) => Some(v6),
            Err(errno) if is_lack(errno) => return Err(Unusable::System(errno)),
            Err(_) => None,
        };
        let epoll = watch_all(core::iter::once(v4.fd()).chain(v6.as_ref().map(RawSocket::fd)))
            .map_err(Unusable::System)?;
        Ok(Raw {
            v4,
            v6,
            epoll,
            ports: Guarded::new(Ports::new()),
            holder: Holder::new(),
            taken: Taken::new(),
            listeners: AtomicU64::new(0),
            retry: AtomicU64::new(u64::MAX),
            arriving: Guarded::new([Inbox::new(false, BATCH), Inbox::new(true, BATCH)]),
            routes: Routes::new(),
        })
    }

    fn sockets(&self) -> impl Iterator<Item = &RawSocket> {
        core::iter::once(&self.v4).chain(&self.v6)
    }

    /// Puts the filters right.
    fn filter(&self, ports: &Ports) -> sys::Result<()> {
        let out_of_the_blue = self.holder.is_ours();
        for socket in self.sockets() {
            socket.attach(&program(socket.is_v6(), ports, out_of_the_blue))?;
        }
        Ok(())
    }

    fn try_to_hold(&self) {
        if !self.holder.is_ours() && self.holder.try_to_become() {
            let _ = self.filter(&self.ports.enter());
        }
    }

    /// Sends packets of one version of IP; how many the kernel has taken or never will.
    fn send_packets(&self, packets: &[batch::Packet<'_>], fragment: bool) -> usize {
        let v6 = packets.first().is_some_and(|p| p.to.is_ipv6());
        let socket = match &self.v6 {
            Some(socket) if v6 => socket,
            _ if v6 => return packets.len(),
            _ => &self.v4,
        };
        let (mut done, mut tries) = (0, 0);
        while done < packets.len() {
            let left = &packets[done..];
            let sent = match fragment {
                true => socket.fragmenting(|| socket.send(left)),
                false => socket.send(left),
            };
            match sent {
                Ok(n) => (done, tries) = (done + n, 0),
                Err(libc::EAGAIN) => break,
                // Perhaps what an ICMP message has said of an earlier packet.
                Err(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENOPROTOOPT | libc::EPROTO)
                    if tries < 2 =>
                {
                    tries += 1
                }
                Err(_) => (done, tries) = (done + 1, 0),
            }
        }
        done
    }

    fn is_ours(&self, port: u16) -> bool {
        self.ports.enter().contains_key(&key(port))
    }
}

/// A port, or the block that it is filtered by.
fn key(port: u16) -> u16 {
    if port >= DYNAMIC { port & BLOCK } else { port }
}

/// Packets for our ports; with `out_of_the_blue` (RFC 9260, 8.4) those for others too, but for those that only acknowledge: whoever sends nothing
/// else learns soon enough.
fn program(v6: bool, ports: &Ports, out_of_the_blue: bool) -> Program {
    let (blocks, single): (Vec<u16>, Vec<u16>) = ports.keys().partition(|&&port| port >= DYNAMIC);
    let program = Program::new(v6)
        .load_half(2)
        .accept_any(&single)
        .mask(BLOCK)
        .accept_any(&blocks);
    let program = match out_of_the_blue {
        true => program.load_byte(FIRST_CHUNK).refuse(SACK).accept_rest(),
        false => program.drop_rest(),
    };
    if program.fits() {
        program
    } else {
        Program::everything()
    }
}

fn hand_over(socket: &RawSocket, inbox: &mut Inbox, each: &mut dyn FnMut(&Arrived<'_>)) -> usize {
    // An error may be what an ICMP message has left; its queue tells more.
    let count = match inbox.fill(socket.fd()) {
        Ok(count) => count,
        Err(libc::EAGAIN) => 0,
        Err(_) => inbox.fill(socket.fd()).unwrap_or(0),
    };
    inbox.drain(|arrival| {
        each(&Arrived {
            from: arrival.from.ip(),
            to: arrival.to,
            encap: None,
            packet: arrival.payload(),
        });
    });
    count
}

fn headers(to: IpAddr) -> usize {
    if to.is_ipv6() { 40 } else { 20 }
}

impl Link for Raw {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn descriptor(&self) -> i32 {
        self.epoll
    }

    fn send(&self, runs: &[Run<'_>]) -> usize {
        const NOTHING: batch::Packet<'static> = batch::Packet {
            from: None,
            to: IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
            data: &[],
        };
        let mut packets = [NOTHING; batch::MOST];
        // Of each: how many runs are done with once it has left.
        let mut ends = [0; batch::MOST];
        let mut count = 0;
        let mut finished = 0;
        // The run that the first of the packets is of.
        let mut begun = 0;
        for (i, run) in runs.iter().enumerate() {
            let pieces = run.bytes.chunks(run.how.segment.max(1));
            let last = pieces.len();
            for (at, data) in pieces.enumerate() {
                let from = run.how.from.filter(|from| !from.is_unspecified());
                let other = |first: &Run<'_>| {
                    first.how.to.is_ipv6() != run.how.to.is_ipv6()
                        || first.how.fragment != run.how.fragment
                };
                if count == batch::MOST || count > 0 && other(&runs[begun]) {
                    let sent = self.send_packets(&packets[..count], runs[begun].how.fragment);
                    finished = ends[..sent].last().copied().unwrap_or(finished);
                    if sent < count {
                        return finished;
                    }
                    count = 0;
                }
                if count == 0 {
                    begun = i;
                }
                packets[count] = batch::Packet {
                    from,
                    to: run.how.to,
                    data,
                };
                ends[count] = if at + 1 == last { i + 1 } else { i };
                count += 1;
            }
        }
        let sent = self.send_packets(
            &packets[..count],
            runs.get(begun).is_some_and(|r| r.how.fragment),
        );
        if sent == count {
            runs.len()
        } else {
            ends[..sent].last().copied().unwrap_or(finished)
        }
    }

    fn receive(&self, each: &mut dyn FnMut(&Arrived<'_>)) -> sys::Result<usize> {
        // Whoever is at it hands everything over.
        let mut arriving = self.arriving.try_enter().ok_or(libc::EAGAIN)?;
        let count: usize = self
            .sockets()
            .zip(arriving.iter_mut())
            .map(|(socket, inbox)| hand_over(socket, inbox, each))
            .sum();
        if count == 0 {
            Err(libc::EAGAIN)
        } else {
            Ok(count)
        }
    }

    fn troubles(&self, each: &mut dyn FnMut(&Returned<'_>)) {
        for socket in self.sockets() {
            failures(socket.fd(), |failure, quoted| {
                // What other processes have sent is told here too.
                let ours = match *quoted {
                    [a, b, ..] => self.is_ours(u16::from_be_bytes([a, b])),
                    _ => true,
                };
                let to = failure.to.ip();
                let what = match failure.trouble {
                    Some(icmp::Trouble::Protocol) if ours => Unreachable::Port,
                    Some(icmp::Trouble::TooBig(mtu)) if ours => {
                        self.routes.forget(to);
                        Unreachable::TooBig((mtu as usize).saturating_sub(headers(to)))
                    }
                    _ => return,
                };
                each(&Returned { to, what, quoted });
            });
        }
    }

    fn reaches(&self, to: IpAddr) -> bool {
        self.v6.is_some() || to.to_canonical().is_ipv4()
    }

    fn largest(&self, to: IpAddr) -> usize {
        self.routes.largest(to, headers(to), LARGEST)
    }

    fn open_port(&self, port: u16) -> sys::Result<()> {
        let mut ports = self.ports.enter();
        let times = ports.entry(key(port)).or_default();
        *times += 1;
        if *times == 1
            && let Err(errno) = self.filter(&ports)
        {
            ports.remove(&key(port));
            return Err(errno);
        }
        drop(ports);
        self.try_to_hold();
        Ok(())
    }

    fn close_port(&self, port: u16) {
        let mut ports = self.ports.enter();
        let Some(times) = ports.get_mut(&key(port)) else {
            return;
        };
        *times -= 1;
        if *times == 0 {
            ports.remove(&key(port));
            let _ = self.filter(&ports);
        }
    }

    /// Another process gets its own copy.
    fn pass_on(&self, port: u16, _packet: &Arrived<'_>) -> bool {
        self.taken.has(port)
    }

    fn answers_strangers(&self) -> bool {
        self.holder.is_ours()
    }

    fn listens(&self, on: bool) {
        if !on {
            if self.listeners.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.retry.store(u64::MAX, Ordering::Relaxed);
            }
        } else if self.listeners.fetch_add(1, Ordering::Relaxed) == 0 && !self.holder.is_ours() {
            self.retry.store(sys::now() + RETRY, Ordering::Relaxed);
        }
    }

    fn deadline(&self) -> u64 {
        self.retry.load(Ordering::Relaxed)
    }

    fn on_deadline(&self, now: u64) {
        self.try_to_hold();
        let goes_on = !self.holder.is_ours() && self.listeners.load(Ordering::Relaxed) > 0;
        self.retry.store(
            if goes_on { now + RETRY } else { u64::MAX },
            Ordering::Relaxed,
        );
    }

    fn forked(&self) {
        for socket in self.sockets() {
            hidden::close(socket.fd());
        }
        hidden::close(self.epoll);
        self.holder.close();
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        hidden::close(self.epoll);
        self.holder.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(list: &[u16]) -> Ports {
        list.iter().map(|&port| (key(port), 1)).collect()
    }

    #[test]
    fn dynamic_ports_are_filtered_by_their_block() {
        assert_eq!(
            (key(7), key(49_151), key(49_152), key(0xc1ff)),
            (7, 49_151, 0xc000, 0xc100)
        );
        let many: Vec<u16> = (DYNAMIC..=u16::MAX).collect();
        let one_per_block = program(true, &ports(&many), false);
        assert!(one_per_block.fits() && one_per_block.instructions().len() > 2 * 63);
    }

    #[test]
    fn too_many_ports_for_a_filter_let_everything_through() {
        let many: Vec<u16> = (1..4000).collect();
        assert_eq!(program(false, &ports(&many), false).instructions().len(), 1);
    }
}
