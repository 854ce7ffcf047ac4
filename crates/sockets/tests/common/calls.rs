//! Socket calls as a program with the library makes them: by the crate for what it looks after, else by the kernel.

use headwater_host::sync::Ordering;
use headwater_host::table::{self, Handle};
use headwater_host::{board, epoll, poll as polling};
use headwater_sockets::conn::{self, Phase};
use headwater_sockets::life::Led;
use headwater_sockets::segment::{PIN, Tx, View};
use headwater_sockets::{life, options, recv, send, switch};
use libc::{iovec, pollfd};

/// An errno.
pub type Errno = i32;

/// A TCP socket. Not closed on drop.
#[derive(Clone, Copy)]
pub struct Socket {
    pub fd: i32,
    /// Makes bare kernel calls, as an image without the library would.
    pub bare: bool,
}

pub fn errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn checked(n: isize) -> Result<usize, Errno> {
    if n < 0 { Err(errno()) } else { Ok(n as usize) }
}

fn message(iov: &[iovec]) -> libc::msghdr {
    // SAFETY: all zeroes is a valid msghdr.
    let mut msg: libc::msghdr = unsafe { core::mem::zeroed() };
    msg.msg_iov = iov.as_ptr() as *mut iovec;
    msg.msg_iovlen = iov.len() as _;
    msg
}

pub fn piece(buf: &[u8]) -> iovec {
    iovec {
        iov_base: buf.as_ptr() as *mut libc::c_void,
        iov_len: buf.len(),
    }
}

impl Socket {
    fn handle(&self) -> Option<Handle> {
        if self.bare {
            return None;
        }
        table::socket(self.fd)
    }

    pub fn conn(&self) -> Option<&'static conn::Conn> {
        conn::get(self.handle()?)
    }

    /// recvmsg(2). The buffers are writable, or null with MSG_TRUNC.
    pub fn recv(&self, iov: &[iovec], flags: i32) -> Result<usize, Errno> {
        if let Some(c) = self.conn() {
            // SAFETY: the buffers are valid.
            if let Some(result) = unsafe { recv::recv(c, self.fd, iov, flags) } {
                return result;
            }
        }
        // SAFETY: the buffers are valid.
        checked(unsafe { libc::recvmsg(self.fd, &mut message(iov), flags) })
    }

    /// sendmsg(2).
    pub fn send(&self, iov: &[iovec], flags: i32) -> Result<usize, Errno> {
        if let Some(c) = self.conn() {
            // SAFETY: the buffers are valid.
            if let Some(result) = unsafe { send::send(c, self.fd, iov, flags) } {
                return result;
            }
        }
        // SAFETY: the buffers are valid.
        checked(unsafe { libc::sendmsg(self.fd, &message(iov), flags) })
    }

    pub fn read(&self, buf: &mut [u8]) -> Result<usize, Errno> {
        self.recv(&[piece(buf)], 0)
    }

    pub fn write(&self, buf: &[u8]) -> Result<usize, Errno> {
        self.send(&[piece(buf)], 0)
    }

    pub fn write_all(&self, mut buf: &[u8]) -> Result<(), Errno> {
        while !buf.is_empty() {
            let n = self.write(buf)?;
            buf = &buf[n..];
        }
        Ok(())
    }

    pub fn read_exact(&self, mut buf: &mut [u8]) -> Result<(), Errno> {
        while !buf.is_empty() {
            match self.read(buf)? {
                0 => return Err(libc::EPIPE),
                n => buf = &mut buf[n..],
            }
        }
        Ok(())
    }

    pub fn shut_down_writing(&self) {
        let h = self.handle();
        // A keeper may do it later.
        if let Some(how) = h.map_or(Some(libc::SHUT_WR), |h| life::shutting(h, libc::SHUT_WR)) {
            // SAFETY: integers only.
            unsafe { libc::shutdown(self.fd, how) };
        }
        if let Some(h) = h {
            life::shut(h, libc::SHUT_WR, true);
        }
    }

    pub fn close(self) {
        let after = if self.bare {
            None
        } else {
            life::closing(self.fd)
        };
        // SAFETY: our descriptor.
        unsafe { libc::close(self.fd) };
        if let Some(after) = after {
            after.finish();
        }
    }

    pub fn set_nonblocking(&self, on: bool) {
        // SAFETY: integers only.
        unsafe {
            let flags = libc::fcntl(self.fd, libc::F_GETFL);
            let flags = if on {
                flags | libc::O_NONBLOCK
            } else {
                flags & !libc::O_NONBLOCK
            };
            libc::fcntl(self.fd, libc::F_SETFL, flags);
        }
        if let Some(h) = self.handle() {
            options::set_nonblocking(h, on);
        }
    }

    /// The connection's segment, once it is carried.
    pub fn view(&self) -> Option<View<'static>> {
        let c = self.conn()?;
        // SAFETY: nobody else closes the test's sockets.
        (c.phase() == Phase::Carried).then(|| unsafe { c.view_held() })?
    }

    /// Takes the sending direction back to the kernel, as any surprise would.
    pub fn unswitch(&self) {
        if let Some(v) = self.view() {
            switch::unswitch(&v);
        }
    }

    /// Takes the sending direction to the ring, if it can go there now, as any send would.
    pub fn switch(&self) {
        if let (Some(c), Some(v)) = (self.conn(), self.view())
            && switch::may_switch(c)
        {
            switch::try_switch(&v);
        }
    }

    /// Off the rings for good: the descriptor is about to go to an image without the library. False where that can't be
    /// now: unread ring bytes stand before kernel bytes.
    pub fn freeze(&self) -> bool {
        life::passing_on(self.fd);
        self.view().is_none_or(|v| {
            let tx = Tx(v.inn().send.tx.load(Ordering::Relaxed));
            tx.has(PIN)
        })
    }

    /// Waits for poll(2)'s events; 0 after `timeout` milliseconds without any.
    pub fn poll(&self, events: i16, timeout: i32) -> i16 {
        let mut fds = [pollfd {
            fd: self.fd,
            events,
            revents: 0,
        }];
        let n = if self.bare || !polling::concerns(&fds) {
            // SAFETY: one entry.
            unsafe { libc::poll(fds.as_mut_ptr(), 1, timeout) }
        } else {
            let ns = timeout as u64 * 1_000_000;
            polling::poll(&mut fds, Some(ns), None).expect("it is not confined")
        };
        if n > 0 { fds[0].revents } else { 0 }
    }
}

fn address(v6: bool, port: u16) -> (libc::sockaddr_storage, u32) {
    // SAFETY: all zeroes is a valid sockaddr_storage, which is large enough for both kinds.
    unsafe {
        let mut sa: libc::sockaddr_storage = core::mem::zeroed();
        if v6 {
            let sin6 = &mut *(&mut sa as *mut _ as *mut libc::sockaddr_in6);
            sin6.sin6_family = libc::AF_INET6 as u16;
            sin6.sin6_port = port.to_be();
            sin6.sin6_addr.s6_addr[15] = 1;
            (sa, size_of::<libc::sockaddr_in6>() as u32)
        } else {
            let sin = &mut *(&mut sa as *mut _ as *mut libc::sockaddr_in);
            sin.sin_family = libc::AF_INET as u16;
            sin.sin_port = port.to_be();
            sin.sin_addr.s_addr = u32::from_be_bytes([127, 0, 0, 1]).to_be();
            (sa, size_of::<libc::sockaddr_in>() as u32)
        }
    }
}

fn tcp(v6: bool) -> i32 {
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
    // SAFETY: integers only.
    let fd = unsafe { libc::socket(family, libc::SOCK_STREAM, 0) };
    assert!(fd >= 0, "socket: {}", errno());
    fd
}

fn set_option(fd: i32, level: i32, name: i32, value: i32) {
    // SAFETY: one readable int.
    unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            &value as *const i32 as *const libc::c_void,
            4,
        )
    };
}

/// Without Nagle's delays, so that small pieces do not cost 40 ms each.
fn at_once(fd: i32) {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
}

/// Kernel buffers of `bytes` each, for what is connected or accepted by `fd` from here on; 0: the usual ones.
fn limit_buffers(fd: i32, bytes: i32) {
    for name in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        if bytes > 0 {
            set_option(fd, libc::SOL_SOCKET, name, bytes);
        }
    }
}

/// A listening socket on the loop-back address, and its port.
pub fn listen(v6: bool, buffers: i32) -> (i32, u16) {
    let fd = tcp(v6);
    limit_buffers(fd, buffers);
    let (mut sa, mut len) = address(v6, 0);
    let at = &mut sa as *mut _ as *mut libc::sockaddr;
    // SAFETY: the address is valid for its length.
    let ok = unsafe {
        libc::bind(fd, at, len) == 0
            && libc::listen(fd, 64) == 0
            && libc::getsockname(fd, at, &mut len) == 0
    };
    assert!(ok, "listen: {}", errno());
    life::listening(fd);
    let port = board::addr_of(&sa).expect("an internet address").port;
    (fd, port)
}

pub fn accept(listener: i32) -> Socket {
    // SAFETY: no address is asked for.
    let fd = unsafe { libc::accept(listener, core::ptr::null_mut(), core::ptr::null_mut()) };
    assert!(fd >= 0, "accept: {}", errno());
    at_once(fd);
    if let Some(h) = table::socket(listener) {
        life::accepted(h, listener, fd);
    }
    Socket { fd, bare: false }
}

pub fn connect(v6: bool, port: u16, buffers: i32) -> Socket {
    connect_with(v6, port, buffers).unwrap_or_else(|e| panic!("connect: {e}"))
}

/// `None`: nobody listens there (any more).
pub fn try_connect(port: u16) -> Option<Socket> {
    connect_with(false, port, 0).ok()
}

fn connect_with(v6: bool, port: u16, buffers: i32) -> Result<Socket, Errno> {
    let fd = tcp(v6);
    limit_buffers(fd, buffers);
    let (sa, len) = address(v6, port);
    let to = headwater_host::board::addr_of(&sa);
    let led = to.map_or(Led::Nowhere, |to| life::connecting(fd, to));
    // SAFETY: the address is valid for its length, and fd is ours.
    unsafe {
        if libc::connect(fd, &sa as *const _ as *const libc::sockaddr, len) != 0 {
            let e = errno();
            libc::close(fd);
            return Err(e);
        }
    }
    at_once(fd);
    if life::connected(fd, led) {
        epoll::adopted(fd);
    }
    Ok(Socket { fd, bare: false })
}

/// A few words back and forth, within which the connection is taken over.
pub fn talk(socket: Socket, client: bool) {
    let mut byte = [0u8];
    for _ in 0..8 {
        if client {
            socket.write_all(b"?").expect("a question");
            socket.read_exact(&mut byte).expect("an answer");
        } else {
            socket.read_exact(&mut byte).expect("a question");
            socket.write_all(b"!").expect("an answer");
        }
    }
    assert!(socket.view().is_some(), "carried");
}

/// What both ends wrote into a segment, for a report of a hang.
pub fn describe(v: &View<'_>) -> String {
    use Ordering::Relaxed;
    let mut text = format!("end {}:", v.end);
    for (i, d) in v.header.directions.iter().enumerate() {
        let (s, ring) = (
            &d.send,
            if i == v.end {
                v.out_ring()
            } else {
                v.in_ring()
            },
        );
        text += &format!(
            " [{i} tx {:x} re {} ksent {} krecv {} nat {} mat {} head {} tail {} armed {}/{} asleep {}/{} withdrawn {}]",
            s.tx.load(Relaxed),
            d.receive.re.load(Relaxed),
            s.ksent.load(Relaxed),
            d.receive.krecv.load(Relaxed),
            s.nat.load(Relaxed),
            s.mat.load(Relaxed),
            ring.head(),
            ring.tail(),
            d.ring.sleep.readers.armed.load(Relaxed),
            d.ring.sleep.writers.armed.load(Relaxed),
            d.ring.sleep.readers.asleep.load(Relaxed),
            d.ring.sleep.writers.asleep.load(Relaxed),
            v.record.sending.withdrawn.load(Relaxed),
        );
    }
    text
}
