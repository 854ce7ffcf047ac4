//! Keeps a sender of batches from running over a receiver on this host.
//!
//! UDP drops what finds no room at the receiver, and 64 datagrams at once are sent faster than any program takes them one
//! by one. So the kernel is asked, now and then, how full the receiver's buffer is (sock_diag(7)), and the sender waits for
//! room: never longer than a plain sender would have taken for as many datagrams on a busy machine.

use core::time::Duration;

use headwater_host::netlink::{self, Netlink, SocketId};
use headwater_host::{hidden, sys};
use headwater_ipnet::Address;

/// What a plain sender needs for one datagram, in nanoseconds: from 1500 on an idle machine to this on a busy one.
const PLAIN_SEND: u64 = Duration::from_micros(8).as_nanos() as u64;
/// What the kernel charges a receiver for a datagram beyond its bytes.
const OVERHEAD: usize = 800;
/// Nanoseconds for which an answer that there is nothing to know holds.
const FORGET: u64 = Duration::from_millis(100).as_nanos() as u64;
/// Between two questions while waiting: the first time, and at most.
const ASK_AGAIN: u64 = Duration::from_micros(4).as_nanos() as u64;
const ASK_LATER: u64 = Duration::from_micros(32).as_nanos() as u64;

#[derive(Default)]
pub struct BackPressure {
    netlink: Netlink<{ libc::NETLINK_SOCK_DIAG }>,
    to: Address,
    /// Bytes that the receiver certainly has room for.
    credit: usize,
    /// No question before this: the destination is not here, or nobody knows.
    free_until: u64,
}

impl BackPressure {
    /// Before `count` datagrams of `size` bytes go to `to` at once.
    #[inline]
    pub fn before(&mut self, to: &Address, count: usize, size: usize, now: u64) {
        if *to != self.to {
            let same_host = to.host() == self.to.host();
            self.to = *to;
            self.credit = 0;
            if !same_host {
                self.free_until = if is_here(to) { 0 } else { now + FORGET };
            }
        }
        let charge = count * (OVERHEAD + size.next_multiple_of(256));
        if self.credit >= charge {
            self.credit -= charge;
        } else if now >= self.free_until {
            self.wait(charge, now, now + count as u64 * PLAIN_SEND);
        }
    }

    #[cold]
    fn wait(&mut self, charge: usize, mut now: u64, patience: u64) {
        let mut pause = ASK_AGAIN;
        loop {
            let Some(room) = self.room() else {
                self.free_until = now + FORGET;
                return;
            };
            self.credit = room.saturating_sub(charge);
            if room >= charge || now >= patience {
                return;
            }
            let next = now + pause;
            pause = (pause * 2).min(ASK_LATER);
            while now < next {
                sys::sched_yield();
                now = sys::now();
            }
        }
    }

    /// Room in the receiver's buffer, of which a part is kept free for others.
    fn room(&mut self) -> Option<usize> {
        const SKMEMINFO: u16 = 7;
        let host = self.to.host();
        let mut id = SocketId {
            dport: self.to.port().to_be_bytes(),
            ..SocketId::default()
        };
        id.dst[..host.len()].copy_from_slice(host);
        let kind = (self.to.family() as u8, libc::IPPROTO_UDP);
        let mut answer = [0u8; 512];
        let (_, told) = self
            .netlink
            .ask_of_socket(kind, id, 1 << (SKMEMINFO - 1), &mut answer)?;
        let (_, memory) = netlink::attributes(told).find(|&(kind, _)| kind == SKMEMINFO)?;
        // Bytes charged to the receiver, and the size of its buffer.
        let word = |at: usize| {
            memory
                .get(at..at + 4)?
                .try_into()
                .ok()
                .map(u32::from_ne_bytes)
        };
        let (used, size) = (word(0)? as usize, word(4)? as usize);
        // The kernel gives back what was read only in quarters of the buffer.
        Some((size / 8 * 7).saturating_sub(used))
    }
}

/// Is it an address of this host?
fn is_here(to: &Address) -> bool {
    let Ok(fd) = super::socket(to.is_v6(), libc::SOCK_DGRAM) else {
        return false;
    };
    let here = super::bind(fd, &to.with_port(0)).is_ok();
    hidden::close(fd);
    here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_how_full_a_receiver_here_is() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = receiver.local_addr().unwrap().port();
        let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend([127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut back_pressure = BackPressure {
            to: Address::read(&bytes).unwrap(),
            ..BackPressure::default()
        };
        assert!(is_here(&back_pressure.to));
        // Kernels without sock_diag for UDP can't tell.
        let Some(empty) = back_pressure.room() else {
            return;
        };
        for _ in 0..10 {
            sender.send_to(&[1; 100], ("127.0.0.1", port)).unwrap();
        }
        assert!(back_pressure.room().unwrap() <= empty - 1000);
        drop(receiver);
        assert_eq!(back_pressure.room(), None);
    }
}
