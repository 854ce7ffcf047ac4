//! Plain UDP by a program that takes pains: runs of datagrams of one size leave in one call, cut by the kernel (UDP_SEGMENT),
//! and arrive in few (UDP_GRO, recvmmsg).

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

/// What the kernel cuts of one call: datagrams, and bytes with their headers.
const SEGMENTS: usize = 64;
const BYTES: usize = 64_000;
/// Messages that one call takes where each may be several datagrams.
pub const MESSAGES: usize = 8;
const ROOM: usize = 65_536;

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// The kernel's form of an address.
pub fn internet(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(address.ip().octets()),
        },
        sin_zero: [0; 8],
    }
}

pub struct Sender {
    socket: UdpSocket,
    targets: Vec<SocketAddrV4>,
    held: Vec<u8>,
    size: usize,
    target: usize,
}

impl Sender {
    pub fn new(targets: Vec<SocketAddrV4>) -> io::Result<Sender> {
        Ok(Sender {
            socket: UdpSocket::bind("127.0.0.1:0")?,
            targets,
            held: Vec::with_capacity(BYTES),
            size: 0,
            target: 0,
        })
    }

    #[inline]
    pub fn send(&mut self, target: usize, bytes: &[u8]) -> io::Result<()> {
        let full =
            self.held.len() + bytes.len() > BYTES || self.held.len() >= SEGMENTS * self.size.max(1);
        if full || bytes.len() != self.size || target != self.target {
            self.flush()?;
            (self.size, self.target) = (bytes.len(), target);
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let mut name = internet(self.targets[self.target]);
        // SAFETY: zeroes are valid for all of them; every pointer is to a value that outlives the call.
        let sent = unsafe {
            let mut part = libc::iovec {
                iov_base: self.held.as_mut_ptr().cast(),
                iov_len: self.held.len(),
            };
            let mut control = Control([0; 64]);
            let mut message: libc::msghdr = mem::zeroed();
            message.msg_name = (&raw mut name).cast();
            message.msg_namelen = mem::size_of_val(&name) as u32;
            message.msg_iov = &mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(2) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_UDP;
            (*header).cmsg_type = libc::UDP_SEGMENT;
            (*header).cmsg_len = libc::CMSG_LEN(2) as _;
            libc::CMSG_DATA(header)
                .cast::<u16>()
                .write_unaligned(self.size as u16);
            libc::sendmsg(self.socket.as_raw_fd(), &message, 0)
        };
        self.held.clear();
        match sent {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Takes so many messages in a call.
pub struct Receiver<const MESSAGES: usize> {
    socket: UdpSocket,
    rooms: Vec<Box<[u8]>>,
    controls: Vec<Control>,
    /// What has arrived and was not handed out: room, first byte, length.
    arrived: VecDeque<(usize, usize, usize)>,
}

impl<const MESSAGES: usize> Receiver<MESSAGES> {
    /// With UDP_GRO, or with a message for each datagram.
    pub fn bind(name: &str, offload: bool) -> io::Result<(Self, String)> {
        let socket = UdpSocket::bind(name)?;
        let on = i32::from(offload);
        // SAFETY: an int with its length.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_UDP,
                libc::UDP_GRO,
                (&raw const on).cast(),
                mem::size_of_val(&on) as u32,
            )
        };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        let at = match socket.local_addr()? {
            SocketAddr::V4(at) => at.to_string(),
            SocketAddr::V6(at) => at.to_string(),
        };
        let receiver = Receiver {
            socket,
            rooms: vec![vec![0; ROOM].into_boxed_slice(); MESSAGES],
            controls: vec![Control([0; 64]); MESSAGES],
            arrived: VecDeque::new(),
        };
        Ok((receiver, at))
    }

    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some((room, at, len)) = self.arrived.pop_front() {
                buffer[..len].copy_from_slice(&self.rooms[room][at..at + len]);
                return Ok(len);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        // SAFETY: zeroes are valid; rooms and controls outlive the call, and the kernel stays inside their lengths.
        unsafe {
            let mut messages: [libc::mmsghdr; MESSAGES] = mem::zeroed();
            let mut parts: [libc::iovec; MESSAGES] = mem::zeroed();
            for (i, message) in messages.iter_mut().enumerate() {
                parts[i] = libc::iovec {
                    iov_base: self.rooms[i].as_mut_ptr().cast(),
                    iov_len: ROOM,
                };
                message.msg_hdr.msg_iov = &mut parts[i];
                message.msg_hdr.msg_iovlen = 1;
                message.msg_hdr.msg_control = self.controls[i].0.as_mut_ptr().cast();
                message.msg_hdr.msg_controllen = mem::size_of::<Control>() as _;
            }
            let got = libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                MESSAGES as u32,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            );
            if got < 0 {
                return Err(io::Error::last_os_error());
            }
            for (room, message) in messages[..got as usize].iter().enumerate() {
                let len = message.msg_len as usize;
                let size = segment(&message.msg_hdr).unwrap_or(len).max(1);
                for at in (0..len.max(1)).step_by(size) {
                    self.arrived.push_back((room, at, size.min(len - at)));
                }
            }
        }
        Ok(())
    }
}

/// The size of the datagrams that the kernel has put together.
///
/// # Safety
/// The kernel has filled the message.
unsafe fn segment(message: &libc::msghdr) -> Option<usize> {
    let mut header = libc::CMSG_FIRSTHDR(message);
    while !header.is_null() {
        if (*header).cmsg_level == libc::SOL_UDP && (*header).cmsg_type == libc::UDP_GRO {
            let size = libc::CMSG_DATA(header).cast::<i32>().read_unaligned();
            return Some(size as usize);
        }
        header = libc::CMSG_NXTHDR(message, header);
    }
    None
}
