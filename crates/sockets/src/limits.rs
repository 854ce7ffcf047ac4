//! Time limits of calls as they are kept. Of those of less than none, by which calls end at once, the kernel tells
//! nothing: what a program sets before its connection is looked after is remembered here by the socket, a client's own
//! and its listener's, whose the connections have too that are accepted there.

use headwater_channel::lock::Lock;
use headwater_host::handed::identity;
use headwater_host::process;
use headwater_host::sync::{AtomicU64, Ordering};

use crate::conn::Conn;

pub const RECEIVING: u64 = 1;
pub const SENDING: u64 = 2;
const BITS: u32 = 2;

/// A time limit of a socket as it is kept, in nanoseconds: 0 is none, as in the kernel. Less than none is kept as the shortest
/// there is, for which the kernel says 0 too when it is asked.
pub fn limit(seconds: i64, microseconds: i64) -> u64 {
    match seconds {
        ..0 => AT_ONCE,
        _ => (seconds as u64)
            .checked_mul(1_000_000_000)
            .and_then(|ns| ns.checked_add(microseconds as u64 * 1000))
            .unwrap_or(0),
    }
}

/// Waits with this limit end before they begin.
pub const AT_ONCE: u64 = 1;

/// Sockets that are known at a time; beyond them the one that was first is forgotten.
const MOST: usize = 64;

/// Inode and bits of each; 0: free.
static KNOWN: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
/// How many there ever were.
static EVER: AtomicU64 = AtomicU64::new(0);
// Every fork touches it: see process.rs.
#[unsafe(link_section = ".data")]
pub static LOCK: Lock = Lock::new();

fn find(inode: u64) -> Option<&'static AtomicU64> {
    let is_it = |known: &&AtomicU64| known.load(Ordering::Relaxed) >> BITS == inode;
    KNOWN.iter().find(is_it).filter(|_| inode != 0)
}

/// The program has set a limit: of less than none, or another one.
pub fn set(fd: i32, which: u64, below_none: bool) {
    if !below_none && EVER.load(Ordering::Relaxed) == 0 {
        return;
    }
    let inode = identity(fd);
    let _section = process::lock_own(&LOCK);
    let known = match find(inode) {
        Some(known) => known,
        None if !below_none || inode == 0 => return,
        None => {
            let next = EVER.fetch_add(1, Ordering::Relaxed);
            let known = &KNOWN[next as usize % MOST];
            known.store(inode << BITS, Ordering::Relaxed);
            known
        }
    };
    let bits = known.load(Ordering::Relaxed);
    let bits = if below_none {
        bits | which
    } else {
        bits & !which
    };
    known.store(bits, Ordering::Relaxed);
}

/// The limits of a connection that begins to be looked after are those of `fd`.
pub fn hand_on(fd: i32, to: &Conn) {
    if EVER.load(Ordering::Relaxed) == 0 {
        return;
    }
    let bits = find(identity(fd)).map_or(0, |known| known.load(Ordering::Relaxed));
    let r = to.record();
    for (which, limit) in [(RECEIVING, &r.receive_timeout), (SENDING, &r.send_timeout)] {
        if bits & which != 0 {
            limit.store(AT_ONCE, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_socket_is_known_by_any_of_its_numbers_until_another_limit_is_set() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = socket.try_clone().unwrap();
        let inode = identity(other.as_raw_fd());
        let bits = || find(inode).map_or(0, |known| known.load(Ordering::Relaxed) & 3);
        set(socket.as_raw_fd(), RECEIVING, true);
        assert_eq!(bits(), RECEIVING);
        set(other.as_raw_fd(), SENDING, true);
        assert_eq!(bits(), RECEIVING | SENDING);
        set(socket.as_raw_fd(), RECEIVING, false);
        assert_eq!(bits(), SENDING);
    }
}
