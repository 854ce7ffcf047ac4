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
        (libc::IPPROTO_TCP, TCP_TX_DELAY, _) => Effect::Segments,
        _ => Effect::None,
    }
}

/// The time comes with what is received, or in the error queue for what was sent. Each has a number of its own for times of 64 bits.
const STAMPS: [i32; 6] = [
    libc::SO_TIMESTAMP,
    libc::SO_TIMESTAMPNS,
    libc::SO_TIMESTAMPING,
    SO_TIMESTAMP_NEW,
    SO_TIMESTAMPNS_NEW,
    SO_TIMESTAMPING_NEW,
];
const SO_TIMESTAMP_NEW: i32 = 63;
const SO_TIMESTAMPNS_NEW: i32 = 64;
const SO_TIMESTAMPING_NEW: i32 = 65;
/// tcp(7) does not have it; `<linux/tcp.h>` does.
const TCP_TX_DELAY: i32 = 37;

/// May a socket be carried, by the modes and options that it came with? Some it has from its listener.
pub fn allow(fd: i32) -> bool {
    let value = |level, name| sys::sockopt::<i32>(fd, level, name).ok();
    let is = |name| effect(libc::SOL_SOCKET, name, value(libc::SOL_SOCKET, name)) != Effect::None;
    // SIGIO is raised for what the kernel sees.
    let is_told = sys::fcntl(fd, libc::F_GETFL, 0).is_ok_and(|f| f & libc::O_ASYNC != 0);
    let is_paced = value(libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE).is_some_and(|rate| rate != -1);
    let is_late = value(libc::IPPROTO_TCP, TCP_TX_DELAY).is_some_and(|delay| delay != 0);
    !is_told
        && !is(libc::SO_PEEK_OFF)
        && !STAMPS.into_iter().any(is)
        && !is_paced
        && !is_late
        && !is_filtered(fd)
}

/// Does a program of BPF look at each segment? Of one that came as such, and not as a list of instructions, the kernel says that it can't
/// be had.
fn is_filtered(fd: i32) -> bool {
    match sys::sockopt_bytes(fd, libc::SOL_SOCKET, libc::SO_GET_FILTER, &mut []) {
        Ok(instructions) => instructions > 0,
        Err(errno) => errno == libc::EACCES,
    }
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
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, OwnedFd};

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
        assert_eq!(tcp(TCP_TX_DELAY), Effect::Segments);
    }

    /// Lets all pass.
    const PASS: libc::sock_filter = libc::sock_filter {
        code: 6,
        jt: 0,
        jf: 0,
        k: u32::MAX,
    };

    fn set<T>(fd: &impl AsRawFd, level: i32, name: i32, value: &T) {
        let len = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value is readable for its length, and what it leads to lives as long.
        let set = unsafe {
            libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const *value).cast(), len)
        };
        assert_eq!(set, 0, "{name}: {}", std::io::Error::last_os_error());
    }

    #[test]
    fn what_was_set_before_the_connection_or_on_its_listener_counts() {
        let mut pass = [PASS];
        let filter = libc::sock_fprog {
            len: 1,
            filter: pass.as_mut_ptr(),
        };
        let stamps = STAMPS.map(|name| (libc::SOL_SOCKET, name, Some(1 << 4)));
        let others = [
            (
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                Some(100_000_000),
            ),
            (libc::IPPROTO_TCP, TCP_TX_DELAY, Some(1000)),
            (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, None),
        ];
        for (level, name, number) in stamps.into_iter().chain(others) {
            let sets = |fd: &OwnedFd| match number {
                Some(number) => set(fd, level, name, &number),
                None => set(fd, level, name, &filter),
            };
            let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
            let plain = TcpStream::connect(listener.local_addr().expect("its address"));
            let plain = OwnedFd::from(plain.expect("a connection"));
            let (first, _) = listener.accept().expect("accepted");
            assert!(allow(plain.as_raw_fd()) && allow(first.as_raw_fd()));
            sets(&plain);
            assert!(!allow(plain.as_raw_fd()), "option {name} of a client");
            let at = listener.local_addr().expect("its address");
            let listener = OwnedFd::from(listener);
            sets(&listener);
            let listener = TcpListener::from(listener);
            let _client = TcpStream::connect(at).expect("a connection");
            let (accepted, _) = listener.accept().expect("accepted");
            assert!(!allow(accepted.as_raw_fd()), "option {name} of a listener");
        }
    }
}
