//! SCTP sockets as members of poll, select and epoll sets.

use core::time::Duration;

use headwater_host::sync::Ordering;
use headwater_host::table::{self, Descriptor, Handle};

use super::{Open, get};
use crate::{Socket, Source};

const IN: u32 = libc::POLLIN as u32;
const OUT: u32 = libc::POLLOUT as u32;
const RDNORM: u32 = libc::POLLRDNORM as u32;
const WRNORM: u32 = libc::POLLWRNORM as u32;
const ALWAYS: u32 = (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) as u32;

/// Longest sleep where no descriptor was left to wait for, in nanoseconds.
const WITHOUT_BELL: u64 = Duration::from_millis(10).as_nanos() as u64;

/// The shadow is a socket of its own that nobody can reach.
pub struct Sctps;

impl Socket {
    /// Changes with what comes by packets, and with each peer that comes.
    fn own_edges(&self) -> u64 {
        let told = self.sink.signal.changes() as u64 + self.source_changes();
        self.edges.load(Ordering::SeqCst).wrapping_add(told)
    }

    /// Changes with everything that may make the socket ready.
    pub fn edge_count(&self) -> u64 {
        let mut by_memory = 0u64;
        self.sources(&mut |source| {
            if let Source::ByMemory(h, _) = source
                && let Some(d) = table::descriptor(h)
            {
                let (read, write) = d.edges(h);
                by_memory = by_memory.wrapping_add(read).wrapping_add(write);
            }
        });
        self.own_edges().wrapping_add(by_memory)
    }
}

impl Open {
    /// poll(2) events of `want` that hold.
    pub fn ready(&self, want: u32) -> u32 {
        let mut asked = want;
        if want & RDNORM != 0 {
            asked |= IN;
        }
        if want & WRNORM != 0 {
            asked |= OUT;
        }
        let mut holds = self.socket.ready(asked);
        if self.moved() {
            // What came before it was watched nobody tells of.
            holds = self.socket.ready(asked);
        }
        if holds & IN != 0 {
            holds |= RDNORM;
        }
        if holds & OUT != 0 {
            holds |= WRNORM;
        }
        holds & (want | ALWAYS)
    }
}

impl Descriptor for Sctps {
    fn ready(&self, h: Handle, want: u32) -> u32 {
        get(h).map_or(libc::POLLNVAL as u32, |open| open.ready(want))
    }

    fn arm(&self, h: Handle, want: u32) {
        if let Some(open) = get(h) {
            open.watch.arm(&open.socket, want);
        }
    }

    fn disarm(&self, h: Handle, want: u32) {
        if let Some(open) = get(h) {
            open.watch.disarm(&open.socket, want);
        }
    }

    fn bell(&self, h: Handle) -> Option<i32> {
        let open = get(h)?;
        open.watch.bell(&open.socket)
    }

    fn settle(&self, h: Handle) {
        if let Some(open) = get(h) {
            open.watch.pass_on(|| open.socket.ready(IN | OUT));
        }
    }

    fn edges(&self, h: Handle) -> (u64, u64) {
        let Some(open) = get(h) else {
            return (0, 0);
        };
        let own = open.socket.own_edges();
        let mut edges = (own, own);
        open.watch.each_near(|h, d| {
            let (read, write) = d.edges(h);
            edges.0 = edges.0.wrapping_add(read);
            edges.1 = edges.1.wrapping_add(write);
        });
        edges
    }

    fn peer_cpu(&self, h: Handle) -> u32 {
        let mut cpu = u32::MAX;
        if let Some(open) = get(h) {
            open.watch.each_near(|h, d| cpu = cpu.min(d.peer_cpu(h)));
        }
        cpu
    }

    fn slice(&self, h: Handle, want: u32) -> Option<u64> {
        let open = get(h)?;
        if open.watch.bell(&open.socket).is_none() || open.watch.is_blind() {
            return Some(WITHOUT_BELL);
        }
        let mut slice = None;
        open.watch.each_near(|h, d| {
            slice = slice.into_iter().chain(d.slice(h, want)).min();
        });
        slice
    }

    fn slice_over(&self, h: Handle, want: u32) {
        if let Some(open) = get(h) {
            open.watch.each_near(|h, d| d.slice_over(h, want));
        }
    }

    fn take(&self, h: Handle, _: i32) -> bool {
        get(h).is_some_and(|open| open.watch.take())
    }

    fn ring(&self, h: Handle, _: i32) {
        if let Some(open) = get(h) {
            open.watch.ring();
        }
    }

    fn rung(&self, h: Handle) {
        if let Some(open) = get(h) {
            open.watch.take();
            open.watch.pass_on(|| open.socket.ready(IN | OUT));
        }
    }
}
