//! Plain UDP by a program that takes pains: runs of datagrams of one size leave in one call, cut by the kernel (UDP_SEGMENT),
//! and arrive in few (UDP_GRO, recvmmsg).

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use crate::sys::set_option;

/// A datagram that has room for it begins with its number.
pub const NUMBER: usize = 4;

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
    layouts: Vec<Layout>,
    /// The layout and the target of what is held, and how many datagrams that is.
    layout: usize,
    target: usize,
    held: usize,
}

/// As many datagrams of one size as a call takes, one after the other.
struct Layout {
    size: usize,
    room: usize,
    bytes: Vec<u8>,
}

impl Layout {
    fn of(message: &[u8]) -> Layout {
        let size = message.len();
        let room = (BYTES / size.max(1)).clamp(1, SEGMENTS);
        Layout {
            size,
            room,
            bytes: message.repeat(room),
        }
    }
}

impl Sender {
    pub fn new(targets: Vec<SocketAddrV4>) -> io::Result<Sender> {
        Ok(Sender {
            socket: UdpSocket::bind("127.0.0.1:0")?,
            targets,
            layouts: Vec::new(),
            layout: 0,
            target: 0,
            held: 0,
        })
    }

    /// Messages of one size differ in their number alone, so they are laid out once.
    #[inline]
    pub fn send(&mut self, target: usize, bytes: &[u8]) -> io::Result<()> {
        let layout = self.laid_out(bytes);
        if layout != self.layout || target != self.target {
            self.flush()?;
            (self.layout, self.target) = (layout, target);
        }
        let Layout {
            size,
            room,
            bytes: laid,
        } = &mut self.layouts[layout];
        renumber(&mut laid[self.held * *size..], bytes);
        self.held += 1;
        match self.held == *room {
            true => self.flush(),
            false => Ok(()),
        }
    }

    #[inline]
    fn laid_out(&mut self, bytes: &[u8]) -> usize {
        let size = bytes.len();
        let known = self.layouts.iter().position(|layout| layout.size == size);
        known.unwrap_or_else(|| {
            self.layouts.push(Layout::of(bytes));
            self.layouts.len() - 1
        })
    }

    pub fn flush(&mut self) -> io::Result<()> {
        if self.held == 0 {
            return Ok(());
        }
        let mut name = internet(self.targets[self.target]);
        let Layout { size, bytes, .. } = &mut self.layouts[self.layout];
        // SAFETY: zeroes are valid for all of them; every pointer is to a value that outlives the call.
        let sent = unsafe {
            let mut part = libc::iovec {
                iov_base: bytes.as_mut_ptr().cast(),
                iov_len: self.held * *size,
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
                .write_unaligned(*size as u16);
            libc::sendmsg(self.socket.as_raw_fd(), &message, 0)
        };
        self.held = 0;
        match sent {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Puts the number of a message over that of the one that lies there.
#[inline]
pub fn renumber(laid: &mut [u8], message: &[u8]) {
    let number = message.len().min(NUMBER);
    laid[..number].copy_from_slice(&message[..number]);
}

/// Takes so many messages in a call.
pub struct Receiver<const MESSAGES: usize> {
    socket: UdpSocket,
    rooms: Vec<Box<[u8]>>,
    headers: Headers<MESSAGES>,
    /// What has arrived and was not handed out: room, first byte, length.
    arrived: VecDeque<(usize, usize, usize)>,
}

/// What the kernel is told of the rooms; it is the same at each call.
struct Headers<const MESSAGES: usize> {
    messages: Box<[libc::mmsghdr; MESSAGES]>,
    _parts: Box<[libc::iovec; MESSAGES]>,
    _controls: Box<[Control; MESSAGES]>,
}

// SAFETY: its pointers are into boxes of its own, and into those of the receiver that it is part of.
unsafe impl<const MESSAGES: usize> Send for Headers<MESSAGES> {}

impl<const MESSAGES: usize> Headers<MESSAGES> {
    fn of(rooms: &mut [Box<[u8]>]) -> Self {
        // SAFETY: zeroes are valid for both.
        let (mut messages, mut parts): (
            Box<[libc::mmsghdr; MESSAGES]>,
            Box<[libc::iovec; MESSAGES]>,
        ) = unsafe { (Box::new(mem::zeroed()), Box::new(mem::zeroed())) };
        let mut controls = Box::new([Control([0; 64]); MESSAGES]);
        for (i, room) in rooms.iter_mut().enumerate() {
            parts[i].iov_base = room.as_mut_ptr().cast();
            parts[i].iov_len = room.len();
            let header = &mut messages[i].msg_hdr;
            header.msg_iov = &mut parts[i];
            header.msg_iovlen = 1;
            header.msg_control = controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = mem::size_of::<Control>() as _;
        }
        Headers {
            messages,
            _parts: parts,
            _controls: controls,
        }
    }
}

impl<const MESSAGES: usize> Receiver<MESSAGES> {
    /// With UDP_GRO, or with a message for each datagram.
    pub fn bind(name: &str, offload: bool) -> io::Result<(Self, String)> {
        let socket = UdpSocket::bind(name)?;
        let on = i32::from(offload);
        set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, &[on])?;
        let at = socket.local_addr()?.to_string();
        let mut rooms = vec![vec![0; ROOM].into_boxed_slice(); MESSAGES];
        let receiver = Receiver {
            socket,
            headers: Headers::of(&mut rooms),
            rooms,
            arrived: VecDeque::new(),
        };
        Ok((receiver, at))
    }

    /// The next datagram, where it has arrived.
    #[inline]
    pub fn receive(&mut self) -> io::Result<&[u8]> {
        loop {
            if let Some((room, at, len)) = self.arrived.pop_front() {
                return Ok(&self.rooms[room][at..at + len]);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let messages = &mut self.headers.messages;
        // SAFETY: what the headers point to lives as long as they do, and the kernel stays inside its lengths.
        let got = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                MESSAGES as u32,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        for (room, message) in messages[..got as usize].iter_mut().enumerate() {
            let len = message.msg_len as usize;
            let size = segment(&message.msg_hdr).unwrap_or(len).max(1);
            for at in (0..len.max(1)).step_by(size) {
                self.arrived.push_back((room, at, size.min(len - at)));
            }
            // The kernel left there what it used.
            message.msg_hdr.msg_controllen = mem::size_of::<Control>() as _;
        }
        Ok(())
    }
}

/// The size of the datagrams that the kernel has put together in a message that it has just filled.
fn segment(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel has written the headers, whole and within the length that it left.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_UDP && (*header).cmsg_type == libc::UDP_GRO {
                let size = libc::CMSG_DATA(header).cast::<i32>().read_unaligned();
                return Some(size as usize);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}
