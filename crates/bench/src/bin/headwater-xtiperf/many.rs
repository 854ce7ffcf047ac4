//! Plain UDP by a program that sends and receives many datagrams in a call (sendmmsg, recvmmsg), each its own in the kernel.

use std::io;
use std::mem;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use crate::batched::internet;

/// Datagrams of a call, and bytes of all of them.
pub const MESSAGES: usize = 64;
const BYTES: usize = 256 * 1024;

pub struct Sender {
    socket: UdpSocket,
    targets: Vec<libc::sockaddr_in>,
    held: Vec<u8>,
    /// Of each datagram that is held: its target, and how long it is.
    each: Vec<(usize, usize)>,
}

impl Sender {
    pub fn new(targets: Vec<SocketAddrV4>) -> io::Result<Sender> {
        Ok(Sender {
            socket: UdpSocket::bind("127.0.0.1:0")?,
            targets: targets.into_iter().map(internet).collect(),
            held: Vec::with_capacity(BYTES),
            each: Vec::with_capacity(MESSAGES),
        })
    }

    #[inline]
    pub fn send(&mut self, target: usize, bytes: &[u8]) -> io::Result<()> {
        if self.each.len() == MESSAGES || self.held.len() + bytes.len() > BYTES {
            self.flush()?;
        }
        self.held.extend_from_slice(bytes);
        self.each.push((target, bytes.len()));
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        // SAFETY: zeroes are valid; targets, parts and what is held outlive the call.
        unsafe {
            let mut messages: [libc::mmsghdr; MESSAGES] = mem::zeroed();
            let mut parts: [libc::iovec; MESSAGES] = mem::zeroed();
            let mut at = self.held.as_mut_ptr();
            for (i, &(target, len)) in self.each.iter().enumerate() {
                parts[i] = libc::iovec {
                    iov_base: at.cast(),
                    iov_len: len,
                };
                at = at.add(len);
                let header = &mut messages[i].msg_hdr;
                header.msg_name = (&raw mut self.targets[target]).cast();
                header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as u32;
                header.msg_iov = &mut parts[i];
                header.msg_iovlen = 1;
            }
            let mut left = &mut messages[..self.each.len()];
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
        self.each.clear();
        Ok(())
    }
}
