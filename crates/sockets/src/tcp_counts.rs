//! What the kernel itself has counted on a TCP connection: right even for calls that went round us.

use headwater_host::sys;

/// Bytes that this end wrote into and read from an established connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpCounts {
    pub written: u64,
    pub read: u64,
}

/// Why the counts are not to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// Not (or no longer) established.
    NotEstablished,
    /// The kernel's TCP_INFO is too short.
    OldKernel,
    /// The counts would not stand still; worth another try later.
    Moving,
}

/// States of a connection, see linux/tcp_states.h.
const ESTABLISHED: u8 = 1;
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;
const CLOSE_WAIT: u8 = 8;
const LAST_ACK: u8 = 9;
const CLOSING: u8 = 11;
/// Offsets in struct tcp_info, see linux/tcp.h.
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;

/// Looks until two agree: for a takeover, which may try again later; and for a repair, whose caller keeps this end's other
/// readers or writers out, so that the counts stand still once the buffers are full.
const TRIES: u32 = 4;
const TRIES_TO_REPAIR: u32 = 10_000;

/// Reads the counts of an established connection. `active` says that this end connected: its SYN is counted among the
/// acknowledged bytes.
pub fn counts(fd: i32, active: bool) -> Result<TcpCounts, Unknown> {
    let s = still(fd, TRIES)?;
    if s.info.state != ESTABLISHED {
        return Err(Unknown::NotEstablished);
    }
    Ok(TcpCounts {
        written: s.written(active),
        read: s.info.received.wrapping_sub(s.unread),
    })
}

/// What has come to this end in its life, read or not; a FIN is one more.
pub fn received(fd: i32) -> Option<u64> {
    info(fd).ok().map(|info| info.received)
}

/// A socket of TCP that neither has a connection nor is making one?
pub fn may_begin(fd: i32) -> bool {
    sys::sockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO) == Ok(CLOSE)
}

/// Bytes that this end has written, whatever the peer has ended meanwhile. Not after this end's own FIN.
pub fn written(fd: i32, active: bool) -> Result<u64, Unknown> {
    Ok(still(fd, TRIES_TO_REPAIR)?.written(active))
}

/// Bytes that this end has read, in any state. `sent`: what the peer says it has sent.
pub fn read(fd: i32, sent: u64) -> Result<u64, Unknown> {
    let s = still(fd, TRIES_TO_REPAIR)?;
    // A FIN counts as a byte received.
    let ended = match s.info.state {
        CLOSE_WAIT | LAST_ACK | CLOSING | TIME_WAIT => true,
        // By FINs, or by a reset, before which nothing but bytes has come.
        CLOSE => s.info.received > sent,
        _ => false,
    };
    let bytes = s.info.received.wrapping_sub(ended as u64);
    Ok(bytes.wrapping_sub(s.unread))
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Info {
    state: u8,
    acked: u64,
    received: u64,
}

/// All counts at one moment.
struct Still {
    info: Info,
    unsent: u64,
    unread: u64,
}

impl Still {
    fn written(&self, active: bool) -> u64 {
        (self.info.acked + self.unsent).wrapping_sub(active as u64)
    }
}

fn still(fd: i32, tries: u32) -> Result<Still, Unknown> {
    let mut before = info(fd)?;
    for _ in 0..tries {
        let count = |name| sys::ioctl_int(fd, name).map_err(|_| Unknown::NotEstablished);
        let (unsent, unread) = (count(libc::TIOCOUTQ)?, count(libc::FIONREAD)?);
        let info = info(fd)?;
        if info == before {
            return Ok(Still {
                info,
                unsent: unsent as u64,
                unread: unread as u64,
            });
        }
        before = info;
    }
    Err(Unknown::Moving)
}

fn info(fd: i32) -> Result<Info, Unknown> {
    let mut buf = [0u8; 256];
    let n = sys::sockopt_bytes(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut buf)
        .map_err(|_| Unknown::NotEstablished)?;
    if n < BYTES_RECEIVED + 8 {
        return Err(Unknown::OldKernel);
    }
    let at = |i: usize| u64::from_ne_bytes(buf[i..i + 8].try_into().expect("eight bytes"));
    Ok(Info {
        state: buf[0],
        acked: at(BYTES_ACKED),
        received: at(BYTES_RECEIVED),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn counts_are_what_was_written_and_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut b, _) = listener.accept().unwrap();
        let fresh = TcpCounts {
            written: 0,
            read: 0,
        };
        assert_eq!(counts(a.as_raw_fd(), true), Ok(fresh));
        assert_eq!(counts(b.as_raw_fd(), false), Ok(fresh));
        a.write_all(&[7; 1000]).unwrap();
        b.read_exact(&mut [0; 400]).unwrap();
        b.write_all(&[1; 70]).unwrap();
        let (ta, tb) = (counts(a.as_raw_fd(), true), counts(b.as_raw_fd(), false));
        assert_eq!((ta.unwrap().written, ta.unwrap().read), (1000, 0));
        assert_eq!((tb.unwrap().written, tb.unwrap().read), (70, 400));
        drop(b);
        let closed = || counts(a.as_raw_fd(), true) == Err(Unknown::NotEstablished);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !closed() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(closed());
    }

    /// A connection: its two ends, the first the one that connected.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (a, listener.accept().unwrap().0)
    }

    /// Waits until the end of the peer's stream has come.
    fn await_end(s: &TcpStream) {
        let mut p = [sys::entry(s.as_raw_fd(), libc::POLLRDHUP)];
        assert_eq!(sys::ppoll(&mut p, Some(20_000_000_000)), Ok(1));
    }

    #[test]
    fn what_was_read_is_known_after_either_end_and_both() {
        use std::net::Shutdown;
        for order in [[0, 1], [1, 0]] {
            let (a, b) = pair();
            (&a).write_all(&[7; 1000]).unwrap();
            for end in order {
                [&a, &b][end].shutdown(Shutdown::Write).unwrap();
                if end == 0 {
                    await_end(&b);
                    assert_eq!(read(b.as_raw_fd(), 1000), Ok(0));
                    (&b).read_exact(&mut [0; 400]).unwrap();
                    assert_eq!(read(b.as_raw_fd(), 1000), Ok(400));
                    assert_eq!((&b).read(&mut [0; 1000]).unwrap(), 600);
                } else {
                    await_end(&a);
                }
            }
            assert_eq!(read(b.as_raw_fd(), 1000), Ok(1000));
            assert_eq!((&b).read(&mut [0; 10]).unwrap(), 0);
            assert_eq!(read(b.as_raw_fd(), 1000), Ok(1000));
        }
    }

    #[test]
    fn a_reset_leaves_the_count_of_what_had_come() {
        let (a, b) = pair();
        (&a).write_all(&[7; 1000]).unwrap();
        (&b).read_exact(&mut [0; 400]).unwrap();
        let at_once = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        sys::set_sockopt(a.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &at_once).unwrap();
        drop(a);
        await_end(&b);
        assert_eq!(read(b.as_raw_fd(), 1_500), Ok(400));
        assert_eq!((&b).read(&mut [0; 1000]).unwrap(), 600);
        assert_eq!(read(b.as_raw_fd(), 1_500), Ok(1000));
    }

    #[test]
    fn what_was_written_is_known_after_the_end_of_the_peer() {
        let (a, b) = pair();
        (&a).write_all(&[7; 1000]).unwrap();
        b.shutdown(std::net::Shutdown::Write).unwrap();
        await_end(&a);
        assert_eq!(counts(a.as_raw_fd(), true), Err(Unknown::NotEstablished));
        assert_eq!(written(a.as_raw_fd(), true), Ok(1000));
    }
}
