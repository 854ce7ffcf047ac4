//! What a program sets of a socket, as far as it decides whether a connection can be carried, or our own waits obey it.

use headwater_host::sync::Ordering;
use headwater_host::sys;

use crate::conn::Conn;
use crate::limits::{AT_ONCE, limit};
use crate::record::NONBLOCK;

/// What an option that acts on the kernel's own queues and segments means for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    None,
    /// The connection goes to TCP before it acts; it does not act on one that has something unread in its ring.
    Kernel,
    /// It says something of segments: the connection goes to TCP, but for what is unread in its ring.
    Segments,
    /// It is answered as by a kernel that does not have it: the program does the same by itself.
    Unknown,
}

/// Before setsockopt(2). Some of `value` may be missing.
pub fn effect(level: i32, name: i32, value: Option<i32>) -> Effect {
    const PEEK_AT: i32 = libc::SO_PEEK_OFF;
    match (level, name, value) {
        // Encryption in the kernel: what goes by a ring would go in clear.
        (libc::IPPROTO_TCP, libc::TCP_ULP, _) => Effect::Unknown,
        (libc::IPPROTO_TCP, libc::TCP_REPAIR, _) => Effect::Kernel,
        (libc::SOL_SOCKET, PEEK_AT, Some(at)) if at >= 0 => Effect::Kernel,
        (libc::SOL_SOCKET, name, Some(of)) if STAMPS.contains(&name) && of != 0 => Effect::Segments,
        (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER | libc::SO_ATTACH_BPF, _) => Effect::Segments,
        (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, _) => Effect::Segments,
        _ => Effect::None,
    }
}

/// The time comes with what is received, or in the error queue for what was sent.
const STAMPS: [i32; 3] = [
    libc::SO_TIMESTAMP,
    libc::SO_TIMESTAMPNS,
    libc::SO_TIMESTAMPING,
];

/// May a socket be carried, by the modes and options that it came with?
pub fn allow(fd: i32) -> bool {
    let is = |name| {
        let value = sys::sockopt::<i32>(fd, libc::SOL_SOCKET, name).ok();
        effect(libc::SOL_SOCKET, name, value) != Effect::None
    };
    // SIGIO is raised for what the kernel sees.
    let is_told = sys::fcntl(fd, libc::F_GETFL, 0).is_ok_and(|f| f & libc::O_ASYNC != 0);
    !is_told && !is(libc::SO_PEEK_OFF) && !STAMPS.into_iter().any(is)
}

/// Reads from the kernel what the program set before we looked after the socket.
pub fn learn(c: &Conn, fd: i32) {
    let r = c.record();
    if let Ok(flags) = sys::fcntl(fd, libc::F_GETFL, 0) {
        r.set(NONBLOCK, flags & libc::O_NONBLOCK != 0);
    }
    let limits = [
        (libc::SO_RCVTIMEO, &r.receive_timeout),
        (libc::SO_SNDTIMEO, &r.send_timeout),
    ];
    for (name, kept) in limits {
        let [s, us] = sys::sockopt::<[i64; 2]>(fd, libc::SOL_SOCKET, name).unwrap_or([0, 0]);
        // The kernel does not tell that one.
        if (s, us) != (0, 0) || kept.load(Ordering::Relaxed) != AT_ONCE {
            kept.store(limit(s, us), Ordering::Relaxed);
        }
    }
    r.low_water.store(low_water(fd), Ordering::Relaxed);
}

/// SO_RCVLOWAT as the kernel has it.
pub fn low_water(fd: i32) -> u32 {
    let low = sys::sockopt::<i32>(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT).unwrap_or(1);
    low.max(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_encrypts_nothing_that_may_go_by_a_ring() {
        let tls = i32::from_ne_bytes(*b"tls\0");
        assert_eq!(
            effect(libc::IPPROTO_TCP, libc::TCP_ULP, Some(tls)),
            Effect::Unknown
        );
    }

    #[test]
    fn what_ends_at_the_kernels_queues_goes_there_and_nothing_else() {
        let socket = |name, value| effect(libc::SOL_SOCKET, name, Some(value));
        assert_eq!(socket(libc::SO_PEEK_OFF, 0), Effect::Kernel);
        assert_eq!(socket(libc::SO_PEEK_OFF, -1), Effect::None);
        for name in STAMPS {
            assert_eq!(socket(name, 1 << 4), Effect::Segments);
            assert_eq!(socket(name, 0), Effect::None);
        }
        assert_eq!(socket(libc::SO_KEEPALIVE, 1), Effect::None);
        let tcp = |name| effect(libc::IPPROTO_TCP, name, Some(1));
        assert_eq!(tcp(libc::TCP_REPAIR), Effect::Kernel);
        assert_eq!(tcp(libc::TCP_NODELAY), Effect::None);
    }
}
