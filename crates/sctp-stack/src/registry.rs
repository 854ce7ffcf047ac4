//! Who has which SCTP port on this host: names of abstract UNIX datagram sockets (unix(7)), which the kernel keeps apart by
//! network namespace and frees when a process ends. Whoever has a port gets packets for it through that socket too, from the
//! process that holds the well-known UDP port.
//!
//! A port that a program asks for has a name of its own. Ports for outgoing associations are taken in blocks of
//! [`BLOCK`] with one name, so that thousands of them don't need as many descriptors. Whoever wants a port makes sure of both
//! names: takes its own, then looks whether the other exists; so of two at the same time at most one succeeds.

use core::fmt;
use core::net::Ipv6Addr;
use std::io::{IoSliceMut, Write};

use headwater_channel::pass::{self, Wanted};
use headwater_host::peer::Peer;
use headwater_host::{hidden, sys};
use headwater_ipnet::again;
use headwater_sctp::Arrived;
use headwater_streams::attach::unix;

use super::Guarded;
use super::choice::mapped;
use super::link::watch;

/// The dynamic ports (RFC 6335), of which those of outgoing associations are taken.
pub const DYNAMIC: u16 = 49_152;
const BLOCK: u16 = 256;
const BLOCKS: u16 = (65_535 - DYNAMIC) / BLOCK + 1;
/// Where every block is another process's.
const SINGLE: core::ops::Range<u16> = 32_768..DYNAMIC;
/// What a forwarded packet has before it: mark, UDP port, addresses of both ends.
const HEADER: usize = 4 + 2 + 2 + 16 + 16;
const MARK: [u8; 4] = *b"hwS1";
const LARGEST: usize = 64 << 10;

pub struct Registry {
    /// Sends to names, and looks whether they exist.
    probe: i32,
    /// An epoll descriptor: readable when something was forwarded to us.
    epoll: i32,
    known: Guarded<Known>,
}

struct Known {
    blocks: Vec<Block>,
    next: u16,
    buffer: Vec<u8>,
}

struct Block {
    base: u16,
    fd: i32,
    used: [u64; BLOCK as usize / 64],
}

/// A port of ours, until it is given back to [`Registry::free`].
#[derive(Debug)]
pub struct Reservation {
    pub port: u16,
    /// Its own socket; -1: it is of a block.
    fd: i32,
}

impl Registry {
    pub fn new() -> sys::Result<Registry> {
        let probe = socket()?;
        let epoll = sys::epoll_create().and_then(hidden::hide_needed);
        let epoll = epoll.inspect_err(|_| hidden::close(probe))?;
        let start = (sys::now() / 1000) as u16 ^ (sys::getpid() as u16).wrapping_mul(31);
        Ok(Registry {
            probe,
            epoll,
            known: Guarded::new(Known {
                blocks: Vec::new(),
                next: start,
                buffer: Vec::new(),
            }),
        })
    }

    pub fn descriptor(&self) -> i32 {
        self.epoll
    }

    /// This port. EADDRINUSE: somebody has it.
    pub fn reserve(&self, port: u16) -> sys::Result<Reservation> {
        let known = self.known.enter();
        if let Some(block) = known.blocks.iter().find(|b| b.base == base(port))
            && block.has(port)
        {
            return Err(libc::EADDRINUSE);
        }
        let ours = known.blocks.iter().any(|b| b.base == base(port));
        drop(known);
        let fd = self.name(&Name::port(port))?;
        if port >= DYNAMIC && !ours && self.exists(&Name::block(base(port))) {
            hidden::close(fd);
            return Err(libc::EADDRINUSE);
        }
        Ok(Reservation { port, fd })
    }

    /// Any port for an outgoing association. EADDRINUSE: all are taken.
    pub fn ephemeral(&self) -> sys::Result<Reservation> {
        let mut known = self.known.enter();
        for i in 0..known.blocks.len() {
            let from = known.next;
            if let Some(port) = self.take(&mut known.blocks[i], from) {
                known.next = port.wrapping_add(1);
                return Ok(Reservation { port, fd: -1 });
            }
        }
        let first = known.next % BLOCKS;
        for i in 0..BLOCKS {
            let base = DYNAMIC + (first + i) % BLOCKS * BLOCK;
            if known.blocks.iter().any(|b| b.base == base) {
                continue;
            }
            let fd = match self.name(&Name::block(base)) {
                Ok(fd) => fd,
                Err(libc::EADDRINUSE) => continue,
                Err(errno) => return Err(errno),
            };
            let mut block = Block {
                base,
                fd,
                used: [0; BLOCK as usize / 64],
            };
            let from = known.next;
            let port = self.take(&mut block, from);
            known.blocks.push(block);
            if let Some(port) = port {
                known.next = port.wrapping_add(1);
                return Ok(Reservation { port, fd: -1 });
            }
        }
        drop(known);
        SINGLE
            .map(|port| self.reserve(port))
            .find(|r| !matches!(r, Err(libc::EADDRINUSE)))
            .unwrap_or(Err(libc::EADDRINUSE))
    }

    /// The next free one of the block.
    fn take(&self, block: &mut Block, from: u16) -> Option<u16> {
        let port = (0..BLOCK)
            .map(|i| block.base + from.wrapping_add(i) % BLOCK)
            .find(|&port| !block.has(port) && !self.exists(&Name::port(port)))?;
        block.set(port, true);
        Some(port)
    }

    pub fn free(&self, reservation: Reservation) {
        if reservation.fd >= 0 {
            hidden::close(reservation.fd);
            return;
        }
        let mut known = self.known.enter();
        let base = base(reservation.port);
        let Some(at) = known.blocks.iter().position(|b| b.base == base) else {
            return;
        };
        known.blocks[at].set(reservation.port, false);
        if known.blocks[at].used.iter().all(|&word| word == 0) {
            let block = known.blocks.swap_remove(at);
            hidden::close(block.fd);
        }
    }

    /// Gives a packet to the process that has its port; false: nobody has.
    pub fn forward(&self, port: u16, packet: &Arrived<'_>) -> bool {
        let mut known = self.known.enter();
        let buffer = &mut known.buffer;
        buffer.clear();
        buffer.extend_from_slice(&MARK);
        buffer.extend_from_slice(&packet.encap.unwrap_or(0).to_ne_bytes());
        buffer.extend_from_slice(&[0; 2]);
        buffer.extend_from_slice(&mapped(packet.from).octets());
        buffer.extend_from_slice(&mapped(packet.to).octets());
        buffer.extend_from_slice(packet.packet);
        let mut names = [Name::port(port), Name::block(base(port))].into_iter();
        names.any(|name| match send_to(self.probe, &name, buffer) {
            // Its queue is full: the packet is lost, but it has a place to go.
            Ok(()) | Err(libc::EAGAIN | libc::ENOBUFS) => true,
            Err(_) => false,
        })
    }

    /// Hands over what others have forwarded to us.
    pub fn receive(&self, each: &mut dyn FnMut(&Arrived<'_>)) -> usize {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
        let ready = sys::epoll_poll(self.epoll, &mut events).unwrap_or(0);
        if ready == 0 {
            return 0;
        }
        let mut buffer = core::mem::take(&mut self.known.enter().buffer);
        buffer.resize(LARGEST + HEADER, 0);
        let mut count = 0;
        for event in &events[..ready] {
            // A few: the others have their turn.
            for _ in 0..8 {
                let Some((len, _)) = receive_trusted(event.u64 as i32, &mut buffer) else {
                    break;
                };
                if let Some(packet) = unwrap(&buffer[..len]) {
                    each(&packet);
                    count += 1;
                }
            }
        }
        self.known.enter().buffer = buffer;
        count
    }

    /// A socket of ours with this name, watched. EADDRINUSE.
    fn name(&self, name: &Name) -> sys::Result<i32> {
        let fd = named(name)?;
        watch(self.epoll, fd).inspect_err(|_| hidden::close(fd))?;
        Ok(fd)
    }

    fn exists(&self, name: &Name) -> bool {
        sys::connect(self.probe, &name.0).is_ok()
    }

    /// In the child of a fork: the names are the parent's alone.
    pub fn forked(&self) {
        hidden::close(self.probe);
        hidden::close(self.epoll);
        let mut known = self.known.enter();
        for block in known.blocks.drain(..) {
            hidden::close(block.fd);
        }
    }

    /// Around a fork: nobody is inside.
    pub fn shut(&self) {
        self.known.shut();
    }

    pub fn reopen(&self) {
        self.known.reopen();
    }
}

impl Reservation {
    /// In the child of a fork.
    pub fn forked(&self) {
        hidden::close(self.fd);
    }
}

impl Block {
    fn has(&self, port: u16) -> bool {
        let i = usize::from(port - self.base);
        self.used[i / 64] & 1 << (i % 64) != 0
    }

    fn set(&mut self, port: u16, on: bool) {
        let i = usize::from(port - self.base);
        if on {
            self.used[i / 64] |= 1 << (i % 64);
        } else {
            self.used[i / 64] &= !(1 << (i % 64));
        }
    }
}

fn base(port: u16) -> u16 {
    port / BLOCK * BLOCK
}

fn unwrap(bytes: &[u8]) -> Option<Arrived<'_>> {
    let (header, packet) = bytes.split_at_checked(HEADER)?;
    if header[..4] != MARK {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().unwrap_or([0; 16]);
        Ipv6Addr::from(octets).to_canonical()
    };
    let encap = u16::from_ne_bytes([header[4], header[5]]);
    Some(Arrived {
        from: address(8),
        to: address(24),
        encap: (encap != 0).then_some(encap),
        packet,
    })
}

/// A datagram from a process of this user or of root, and its name. Those of others are dropped, and give length 0.
pub fn receive_trusted(fd: i32, buffer: &mut [u8]) -> Option<(usize, Name)> {
    receive_from(fd, buffer, sys::getuid())
}

/// The same of another user.
pub fn receive_from(fd: i32, buffer: &mut [u8], user: u32) -> Option<(usize, Name)> {
    let wanted = Wanted {
        descriptors: 0,
        credentials: true,
    };
    let parts = &mut [IoSliceMut::new(buffer)];
    let (came, from) = pass::receive_from(fd, parts, wanted, libc::MSG_DONTWAIT).ok()?;
    let is_trusted = |sender| Peer::from(sender).speaks_for(user);
    let from = Name((from.address, from.len));
    let len = if came.sender.is_some_and(is_trusted) {
        came.len
    } else {
        0
    };
    Some((len, from))
}

/// Sends a datagram to a name. EAGAIN, ECONNREFUSED ...
pub fn send_to(fd: i32, name: &Name, bytes: &[u8]) -> sys::Result<()> {
    let data = sys::buffer(bytes.as_ptr(), bytes.len());
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: readable bytes.
    again(|| unsafe { sys::sendto(fd, &data, flags, &name.0) }).map(drop)
}

fn socket() -> sys::Result<i32> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    sys::socket(libc::AF_UNIX, kind, 0).and_then(hidden::hide_needed)
}

/// A hidden datagram socket with a name. EADDRINUSE.
pub fn named(name: &Name) -> sys::Result<i32> {
    let fd = socket()?;
    let _ = sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_PASSCRED, &1i32);
    sys::bind(fd, &name.0).inspect_err(|_| hidden::close(fd))?;
    Ok(fd)
}

/// An abstract name, as an address and its length.
pub struct Name((libc::sockaddr_un, u32));

impl Name {
    pub fn port(port: u16) -> Name {
        Name::new(sys::getuid(), "port", u32::from(port))
    }

    fn block(base: u16) -> Name {
        Name::new(sys::getuid(), "ports", u32::from(base))
    }

    /// Where a process tells of its associations.
    pub fn stat(uid: u32, pid: u32) -> Name {
        Name::new(uid, "stat", pid)
    }

    /// User and process, from a name of [`Name::stat`] as /proc/net/unix shows it.
    pub fn parse_stat(shown: &str) -> Option<(u32, u32)> {
        let (uid, pid) = shown
            .strip_prefix("@headwater-sctp/")?
            .split_once("/stat/")?;
        Some((uid.parse().ok()?, pid.parse().ok()?))
    }

    /// Whatever name the kernel chooses.
    pub fn anonymous() -> Name {
        let mut name = Name::new(0, "", 0);
        name.0.1 = size_of::<libc::sa_family_t>() as u32;
        name
    }

    /// Whoever has it answers for ports that nobody has: one for all users of a network namespace.
    pub fn raw() -> Name {
        Name::of(format_args!("raw"))
    }

    fn new(uid: u32, what: &str, number: u32) -> Name {
        Name::of(format_args!("{uid}/{what}/{number}"))
    }

    fn of(what: fmt::Arguments<'_>) -> Name {
        let mut text = [0u8; 64];
        let mut rest = &mut text[..];
        let _ = write!(rest, "headwater-sctp/{what}");
        let used = 64 - rest.len();
        Name(unix::named(&text[..used]))
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use super::*;

    #[test]
    fn descriptors_that_come_with_a_datagram_are_closed() {
        let name = Name::stat(sys::getuid(), std::process::id());
        let fd = named(&name).unwrap();
        let peer = socket().unwrap();
        sys::connect(peer, &name.0).unwrap();
        let numbers = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        // Other tests of the process may have some open for a moment.
        let before = numbers();
        for _ in 0..100 {
            let parts = [IoSlice::new(b"packet")];
            pass::send(peer, &parts, &[peer; 8], None, 0).unwrap();
            let mut buffer = [0; 16];
            let (len, _) = receive_trusted(fd, &mut buffer).unwrap();
            assert_eq!(&buffer[..len], b"packet");
        }
        assert!(numbers() < before + 50);
        hidden::close(peer);
        hidden::close(fd);
    }
}
