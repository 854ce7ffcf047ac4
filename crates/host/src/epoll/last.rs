//! What the program was told of a registration last.

use crate::table::{Descriptor, Ends, Handle, Kind};

/// What speaks of room.
pub const OUT: u32 = (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
/// What speaks of bytes.
pub const IN: u32 = (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;
pub const ERR: u32 = libc::EPOLLERR as u32;
pub const HUP: u32 = libc::EPOLLHUP as u32;
pub const RDHUP: u32 = libc::EPOLLRDHUP as u32;
/// What speaks of an end.
pub const ENDS: u32 = ERR | HUP | RDHUP;

/// What there was when the program was told last.
#[derive(Clone, Copy)]
pub struct Last {
    /// The edges of shared memory; `u64::MAX`: it was told of none.
    pub edges: (u64, u64),
    /// What had come by the kernel.
    pub by_kernel: u64,
    /// When it was told last that there are bytes in shared memory: how many had come there, and by the kernel.
    pub bytes: (u64, u64),
    /// What of them the kernel had been given by the time of its last report.
    pub taken_back: u64,
    /// What the kernel had reported, whether the program asked for it or not.
    pub seen: u32,
    /// How often something had ended by then.
    pub ends: Ends,
    /// What the kernel has told of the shadow.
    pub told: u32,
    /// The kernel was made to say again what holds, though nothing may have come.
    pub posted: bool,
}

impl Last {
    /// Made by code: as a constant it would stand on a page that a child of fork touches for nothing else.
    pub fn nothing() -> Last {
        let none = core::hint::black_box(u64::MAX);
        Last {
            edges: (none, none),
            by_kernel: none,
            bytes: (none, none),
            taken_back: 0,
            seen: 0,
            ends: Ends { shut: 0, reset: 0 },
            told: 0,
            posted: false,
        }
    }

    /// Of a connection by whose shared memory nothing has come yet, of which the kernel had told all that there was: that `events` hold.
    pub fn by_kernel(d: &dyn Descriptor, h: Handle, events: u32) -> Last {
        let arrivals = d.kernel_arrivals(h);
        let mut last = Last::nothing();
        last.edges = (0, d.edges(h).1);
        last.by_kernel = arrivals.count;
        last.taken_back = arrivals.taken_back;
        if events & IN != 0 {
            last.bytes = (0, arrivals.count);
        }
        (last.seen, last.told, last.ends) = (events, events, d.ends(h));
        last
    }
}

pub fn is_socket(h: Handle) -> bool {
    h.kind() == Kind::Socket
}
