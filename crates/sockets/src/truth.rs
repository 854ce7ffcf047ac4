//! What the kernel itself has counted on a TCP connection: right even for calls that went round us.

use headwater_host::sys;

/// Bytes that this end wrote into and read from an established connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truth {
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

const ESTABLISHED: u8 = 1;
/// Offsets in struct tcp_info, see linux/tcp.h.
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;

/// Reads the counts. `active` says that this end connected: its SYN is counted among the acknowledged bytes.
pub fn counts(fd: i32, active: bool) -> Result<Truth, Unknown> {
    let mut before = info(fd)?;
    for _ in 0..4 {
        let unsent = sys::ioctl_int(fd, libc::TIOCOUTQ).map_err(|_| Unknown::NotEstablished)?;
        let unread = sys::ioctl_int(fd, libc::FIONREAD).map_err(|_| Unknown::NotEstablished)?;
        let after = info(fd)?;
        if after == before {
            return Ok(Truth {
                written: (after.0 + unsent as u64).wrapping_sub(active as u64),
                read: after.1.wrapping_sub(unread as u64),
            });
        }
        before = after;
    }
    Err(Unknown::Moving)
}

/// Bytes acknowledged and received, of an established connection.
fn info(fd: i32) -> Result<(u64, u64), Unknown> {
    let mut buf = [0u8; 256];
    let n = sys::sockopt_bytes(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut buf)
        .map_err(|_| Unknown::NotEstablished)?;
    if n < BYTES_RECEIVED + 8 {
        return Err(Unknown::OldKernel);
    }
    if buf[0] != ESTABLISHED {
        return Err(Unknown::NotEstablished);
    }
    let at = |i: usize| u64::from_ne_bytes(buf[i..i + 8].try_into().expect("eight bytes"));
    Ok((at(BYTES_ACKED), at(BYTES_RECEIVED)))
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
        let fresh = Truth {
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
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !closed() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(closed());
    }
}
