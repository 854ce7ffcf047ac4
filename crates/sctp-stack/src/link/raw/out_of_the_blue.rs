//! Who answers packets for ports that nobody has, and which ports somebody has.

use core::time::Duration;
use std::collections::HashSet;

use headwater_host::sync::Exchange;
use headwater_host::{hidden, sys};

use super::{AtomicI32, DYNAMIC, Guarded, Ordering, key};
use crate::registry::{Name, named};

/// For how long what was read holds where it says that a port is taken, in nanoseconds.
const FRESH: u64 = Duration::from_secs(1).as_nanos() as u64;
/// Between two readings at least: a flood of packets for other ports must not become one of readings.
const PAUSE: u64 = Duration::from_millis(20).as_nanos() as u64;

/// The election.
pub struct Holder(AtomicI32);

impl Holder {
    pub fn new() -> Holder {
        Holder(AtomicI32::new(-1))
    }

    pub fn is_ours(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 0
    }

    /// False: somebody else is.
    pub fn try_to_become(&self) -> bool {
        let Ok(fd) = named(&Name::raw()) else {
            return false;
        };
        let first = self.0.exchange(-1, fd);
        if !first {
            hidden::close(fd);
        }
        first
    }

    pub fn close(&self) {
        hidden::close(self.0.swap(-1, Ordering::AcqRel));
    }
}

/// The ports that processes of this host have reserved, of whichever user.
pub struct Taken(Guarded<Read>);

struct Read {
    at: u64,
    /// Ports, and the first ports of blocks.
    keys: HashSet<u16>,
}

impl Taken {
    pub fn new() -> Taken {
        Taken(Guarded::new(Read {
            at: 0,
            keys: HashSet::new(),
        }))
    }

    /// Has a process of this host the port? Says yes too when it must not look so soon: then the packet is lost, and will be
    /// answered when it comes again.
    pub fn has(&self, port: u16) -> bool {
        let mut read = self.0.enter();
        let age = sys::now().saturating_sub(read.at);
        if age < FRESH && read.has(port) {
            return true;
        }
        if age < PAUSE {
            return true;
        }
        let text = std::fs::read_to_string("/proc/thread-self/net/unix");
        *read = Read {
            at: sys::now(),
            keys: reserved(&text.unwrap_or_default()),
        };
        read.has(port)
    }
}

impl Read {
    fn has(&self, port: u16) -> bool {
        self.keys.contains(&port) || port >= DYNAMIC && self.keys.contains(&key(port))
    }
}

/// Names as the registry makes them: @headwater-sctp/UID/port/NUMBER for a port, .../ports/NUMBER for a block.
fn reserved(table: &str) -> HashSet<u16> {
    let names = table
        .lines()
        .filter_map(|line| line.rsplit_once("@headwater-sctp/"));
    names
        .filter_map(|(_, name)| {
            let mut words = name.split('/').skip(1);
            match (
                words.next()?,
                words.next()?.trim_end_matches('@').parse().ok()?,
            ) {
                ("port" | "ports", number) => Some(number),
                _ => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ports_are_read_from_the_table_of_names() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0: 2 0 0 2 1 10 @headwater-sctp/1000/port/5000\n\
            0: 2 0 0 2 1 11 @headwater-sctp/0/ports/49408\n\
            0: 2 0 0 2 1 12 @headwater-sctp/raw\n\
            0: 2 0 0 2 1 13 @headwater-sctp/0/stat/77\n\
            0: 2 0 0 2 1 14 /run/dbus\n";
        let read = Read {
            at: 0,
            keys: reserved(table),
        };
        assert!(read.has(5000) && read.has(49408) && read.has(49663));
        assert!(!read.has(77) && !read.has(49664) && !read.has(5001));
    }
}
