//! Plain UDP by a program that sends and receives many datagrams in a call (sendmmsg, recvmmsg), each its own in the kernel.

use std::io;
use std::mem;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use crate::xtiperf::batched::{internet, renumber};

/// Datagrams of a call, and bytes of all of them.
pub const MESSAGES: usize = 64;
const BYTES: usize = 256 * 1024;

pub struct Sender {
    socket: UdpSocket,
    targets: Vec<libc::sockaddr_in>,
    /// Where each datagram of a call lies.
    laid: Vec<Vec<u8>>,
    /// The target of each that is held, and the bytes of all.
    held: Vec<usize>,
    bytes: usize,
}

impl Sender {
    pub fn new(targets: Vec<SocketAddrV4>) -> io::Result<Sender> {
        Ok(Sender {
            socket: UdpSocket::bind("127.0.0.1:0")?,
            targets: targets.into_iter().map(internet).collect(),
            laid: vec![Vec::new(); MESSAGES],
            held: Vec::with_capacity(MESSAGES),
            bytes: 0,
        })
    }

    /// Messages of one size differ in their number alone, so one that lies there already is only given its number.
    #[inline]
    pub fn send(&mut self, target: usize, bytes: &[u8]) -> io::Result<()> {
        if self.held.len() == MESSAGES || self.bytes + bytes.len() > BYTES {
            self.flush()?;
        }
        let laid = &mut self.laid[self.held.len()];
        match laid.len() == bytes.len() {
            true => renumber(laid, bytes),
            false => bytes.clone_into(laid),
        }
        self.held.push(target);
        self.bytes += bytes.len();
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        // SAFETY: zeroes are valid; targets, parts and what is laid out outlive the call.
        unsafe {
            let mut messages: [libc::mmsghdr; MESSAGES] = mem::zeroed();
            let mut parts: [libc::iovec; MESSAGES] = mem::zeroed();
            for (i, &target) in self.held.iter().enumerate() {
                parts[i] = libc::iovec {
                    iov_base: self.laid[i].as_mut_ptr().cast(),
                    iov_len: self.laid[i].len(),
                };
                let header = &mut messages[i].msg_hdr;
                header.msg_name = (&raw mut self.targets[target]).cast();
                header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as u32;
                header.msg_iov = &mut parts[i];
                header.msg_iovlen = 1;
            }
            let mut left = &mut messages[..self.held.len()];
            while !left.is_empty() {
                let fd = self.socket.as_raw_fd();
                let sent = libc::sendmmsg(fd, left.as_mut_ptr(), left.len() as u32, 0);
                if sent < 0 {
                    return Err(io::Error::last_os_error());
                }
                left = &mut left[sent as usize..];
            }
        }
        self.held.clear();
        self.bytes = 0;
        Ok(())
    }
}
