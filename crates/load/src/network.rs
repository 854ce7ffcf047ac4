//! What sockets of a thread's network are told, and what its loop-back device tells.

use std::os::fd::RawFd;
use std::{fs, io};

use crate::sys;

/// Makes cubic a socket's congestion control. To others than root the kernel grants only what the machine allows them (tcp(7)).
pub fn choose_cubic(socket: RawFd) -> io::Result<()> {
    sys::set_option(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"cubic")
}

/// Bytes that this thread's loop-back device has sent. /sys would show the namespace in which it was mounted.
pub fn loopback_bytes() -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    table
        .lines()
        .find_map(|line| line.trim().strip_prefix("lo:"))
        .and_then(|counters| counters.split_whitespace().nth(8)?.parse().ok())
        .unwrap_or(0)
}
