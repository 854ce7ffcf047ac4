//! Ways by which packets leave and arrive. The stack asks a link for all it has and hands it what the endpoints want to send; links
//! know nothing of associations.

use core::net::IpAddr;
use std::collections::HashMap;

use headwater_host::{hidden, sys};
use headwater_ipnet::{errors, route};
use headwater_sctp::Arrived;
pub use headwater_sctp::endpoint::{Transmit, Unreachable};

use super::Guarded;

pub mod raw;
pub mod udp;

/// Packets to one place; a link cuts what is too much for one call. Complete from the SCTP header on, checksum included. Links without
/// encapsulation get those that have no UDP port. What is not to be fragmented never is, and if it is too long for the kernel that is no
/// error: it may be a probe.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub bytes: &'a [u8],
    pub how: &'a Transmit,
}

impl<'a> Run<'a> {
    /// What was appended to `bytes` at this place.
    pub fn of(bytes: &'a [u8], at: usize, how: &'a Transmit) -> Run<'a> {
        let bytes = &bytes[at..at + how.len];
        Run { bytes, how }
    }
}

/// What the network (or the kernel) said of a packet that left earlier.
#[derive(Clone, Copy, Debug)]
pub struct Returned<'a> {
    pub to: IpAddr,
    pub what: Unreachable,
    /// The beginning of the packet from its SCTP header on; empty if it is not told.
    pub quoted: &'a [u8],
}

/// All calls may come from several threads at once; none of them waits.
pub trait Link: Send + Sync {
    /// `udp`, `raw`.
    fn name(&self) -> &'static str;

    /// Readable when packets have come; an error condition when [`Link::troubles`] has something. Hidden.
    fn descriptor(&self) -> i32;

    /// Sends runs, in order and in as few system calls as possible; how many the kernel has taken or will never take. Fewer
    /// than all: there is no room now, and the rest may be offered again.
    fn send(&self, runs: &[Run<'_>]) -> usize;

    /// Hands over what has come, at most one batch, from each packet's SCTP header on and unchecked; the number of packets. EAGAIN
    /// when there is nothing; another error when there are [`Link::troubles`] too.
    fn receive(&self, each: &mut dyn FnMut(&Arrived<'_>)) -> sys::Result<usize>;

    /// Hands over the errors that are queued.
    fn troubles(&self, each: &mut dyn FnMut(&Returned<'_>));

    /// Has it a socket of the address's version of IP?
    fn reaches(&self, to: IpAddr) -> bool;

    /// The largest SCTP packet that leaves here towards `to` (as the kernel knows its route), headers below it subtracted.
    fn largest(&self, to: IpAddr) -> usize;

    /// Packets for this SCTP port are wanted from now on. Errors: those of the system calls, EACCES, EADDRINUSE.
    fn open_port(&self, _port: u16) -> sys::Result<()> {
        Ok(())
    }

    fn close_port(&self, _port: u16) {}

    /// A packet for a port that nobody here has: gives it to the process of this host that has it. False: there is none.
    fn pass_on(&self, _port: u16, _packet: &Arrived<'_>) -> bool {
        false
    }

    /// Is it for this process to answer packets for ports that nobody has?
    fn answers_strangers(&self) -> bool {
        true
    }

    /// One more association endpoint listens here, or one less.
    fn listens(&self, _on: bool) {}

    /// When [`Link::on_deadline`] wants to run (CLOCK_MONOTONIC, nanoseconds); `u64::MAX`: never.
    fn deadline(&self) -> u64 {
        u64::MAX
    }

    fn on_deadline(&self, _now: u64) {}

    /// In the child of a fork, which has no use for the descriptors: closes its copies. The link is not used any more.
    fn forked(&self);
}

/// Of a socket at a time.
const MOST_TROUBLES: usize = 64;

/// What a socket's error queue holds, and what it quotes of the packet.
fn failures(fd: i32, mut each: impl FnMut(&errors::Failure, &[u8])) {
    let mut quote = [0; 1024];
    for _ in 0..MOST_TROUBLES {
        let Some(failure) = errors::next(fd, &mut quote) else {
            break;
        };
        each(&failure, &quote[..failure.quoted]);
    }
    // The last of them is the socket's error too.
    let _ = sys::sockopt::<i32>(fd, libc::SOL_SOCKET, libc::SO_ERROR);
}

/// The largest SCTP packets of the routes that were asked for.
struct Routes(Guarded<HashMap<IpAddr, usize>>);

/// Routes that are known at most.
const MOST_ROUTES: usize = 4096;

impl Routes {
    fn new() -> Routes {
        Routes(Guarded::new(HashMap::new()))
    }

    /// As [`Link::largest`], of a link whose packets have so many bytes of headers below them and `most` in all.
    fn largest(&self, to: IpAddr, headers: usize, most: usize) -> usize {
        if let Some(&known) = self.0.enter().get(&to) {
            return known;
        }
        let found = route::mtu(to).unwrap_or(1500).min(most);
        let largest = found.saturating_sub(headers) & !3;
        let mut routes = self.0.enter();
        if routes.len() >= MOST_ROUTES {
            routes.clear();
        }
        routes.insert(to, largest);
        largest
    }

    fn forget(&self, to: IpAddr) {
        self.0.enter().remove(&to);
    }
}

/// A hidden epoll set, readable when one of these is.
fn watch_all(fds: impl IntoIterator<Item = i32>) -> sys::Result<i32> {
    let epoll = sys::epoll_create().and_then(hidden::hide_needed)?;
    for fd in fds {
        watch(epoll, fd).inspect_err(|_| hidden::close(epoll))?;
    }
    Ok(epoll)
}

pub(crate) fn watch(epoll: i32, fd: i32) -> sys::Result<()> {
    let event = sys::event(libc::EPOLLIN as u32, fd as u64);
    sys::epoll_set(epoll, libc::EPOLL_CTL_ADD, fd, event)
}
