//! SCTP as programs for the kernel's use it: one-to-one sockets, one message for each sendmsg and recvmsg.

use std::io;
use std::mem;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, sockaddr_in, socklen_t};

use crate::sys::set_option;
use crate::xtiperf::batched::internet;

const SCTP_NODELAY: c_int = 3;
const ADDRESS_LEN: socklen_t = mem::size_of::<sockaddr_in>() as socklen_t;

pub struct Socket(OwnedFd);

impl Socket {
    /// With the address to go to.
    pub fn listen(at: &str) -> io::Result<(Socket, String)> {
        let socket = Socket::open()?;
        let mut address = encode(at)?;
        let mut len = ADDRESS_LEN;
        let fd = socket.0.as_raw_fd();
        // SAFETY: the addresses are ours, and as long as it is said.
        unsafe {
            checked(libc::bind(fd, (&raw const address).cast(), len))?;
            checked(libc::listen(fd, 8))?;
            checked(libc::getsockname(fd, (&raw mut address).cast(), &mut len))?;
        }
        let ip = u32::from_be(address.sin_addr.s_addr);
        let at = SocketAddrV4::new(ip.into(), u16::from_be(address.sin_port));
        Ok((socket, at.to_string()))
    }

    pub fn accept(&self) -> io::Result<Socket> {
        let (no_address, no_len) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: nobody's address is asked for; the number is a fresh one.
        unsafe {
            let fd = checked(libc::accept(self.0.as_raw_fd(), no_address, no_len))?;
            Ok(Socket(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub fn connect(to: &str) -> io::Result<Socket> {
        let socket = Socket::open()?;
        let address = encode(to)?;
        let fd = socket.0.as_raw_fd();
        // SAFETY: the address is ours, and as long as it is said.
        checked(unsafe { libc::connect(fd, (&raw const address).cast(), ADDRESS_LEN) })?;
        Ok(socket)
    }

    fn open() -> io::Result<Socket> {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the number is a fresh one.
        unsafe {
            let fd = checked(libc::socket(libc::AF_INET, kind, libc::IPPROTO_SCTP))?;
            Ok(Socket(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub fn set_nodelay(&self) -> io::Result<()> {
        set_option(self.0.as_raw_fd(), libc::IPPROTO_SCTP, SCTP_NODELAY, &[1])
    }

    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut data = iovec(bytes.as_ptr().cast_mut(), bytes.len());
        let message = message(&mut data);
        // SAFETY: the message names readable memory of ours.
        let sent = unsafe { libc::sendmsg(self.0.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// No bytes are the end.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut data = iovec(buffer.as_mut_ptr(), buffer.len());
        let mut message = message(&mut data);
        // SAFETY: the message names writable memory of ours.
        let received = unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut message, 0) };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// Nothing more will be sent.
    pub fn finish(&self) -> io::Result<()> {
        // SAFETY: no pointers.
        checked(unsafe { libc::shutdown(self.0.as_raw_fd(), libc::SHUT_WR) }).map(drop)
    }
}

fn encode(address: &str) -> io::Result<sockaddr_in> {
    let wrong = |_| io::Error::other(format!("{address} is no address of IPv4"));
    address.parse().map(internet).map_err(wrong)
}

fn iovec(base: *mut u8, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: base.cast::<c_void>(),
        iov_len: len,
    }
}

/// Data alone.
fn message(data: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: all zeroes is a message without anything.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = data;
    message.msg_iovlen = 1;
    message
}

fn checked(result: c_int) -> io::Result<c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
