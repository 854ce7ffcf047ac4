//! A TCP socket of ours: hidden, not blocking, and driven through Fast Sockets where they look after it.

use core::cell::Cell;
use core::time::Duration;

use headwater_host::sync::Ordering;
use headwater_host::table::{self, Handle};
use headwater_host::{board, hidden, sys};
use headwater_ipnet::Address;
use headwater_ipnet::again;
use headwater_sockets::buffers::message;
use headwater_sockets::life::Led;
use headwater_sockets::pins::{self, Entered};
use headwater_sockets::segment::{Tx, View};
use headwater_sockets::{conn, life, options, recv, reset, send};
use libc::iovec;

use crate::provider::Outcome;

/// SO_SNDBUF for large sends within the host: what is on its way then stays in the caches of the CPUs. It is told doubled.
const CACHED: i32 = 512 << 10;
/// Which buffers somebody has sized (Linux 5.15).
const SO_BUF_LOCK: i32 = 72;
const SENDING: i32 = 1;

/// Closed when dropped, as close(2) does it.
pub struct Socket {
    fd: i32,
    /// Fast Sockets have, or had, an entry for it.
    watched: Cell<bool>,
    /// Its send buffer was looked at; it is [bounded](Socket::bound).
    seen: Cell<bool>,
    bounded: Cell<bool>,
}

/// What a call on a socket came to: bytes, or errno.
type Bytes = Result<usize, i32>;

impl Socket {
    pub fn new(v6: bool) -> Outcome<Socket> {
        super::socket(v6, libc::SOCK_STREAM).map(Socket::of)
    }

    /// A hidden descriptor that is a TCP socket; with TCP_NODELAY, as what is held back is held back by us, and the kernel is
    /// not to wait for acknowledgements on top of it.
    pub fn of(fd: i32) -> Socket {
        let _ = sys::set_sockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32);
        Socket {
            fd,
            watched: Cell::new(false),
            seen: Cell::new(false),
            bounded: Cell::new(false),
        }
    }

    pub fn fd(&self) -> i32 {
        self.fd
    }

    /// TCP_CORK: the kernel puts sends together to whole segments; off, what it has goes.
    pub fn gather(&self, on: bool) {
        let _ = sys::set_sockopt(self.fd, libc::IPPROTO_TCP, libc::TCP_CORK, &(on as i32));
    }

    /// Large sends follow each other: bounds the send buffer of a connection within the host, which the kernel would let grow,
    /// unless the user has sized it, or the kernel gives less.
    pub fn bound(&self) {
        if self.seen.replace(true) {
            return;
        }
        let end = |peer| Address::of_storage(&sys::sock_name(self.fd, peer).ok()?);
        let ends = end(false).zip(end(true));
        let is_within = ends.is_some_and(|(own, peer)| own.host() == peer.host());
        let is_ours = self.int(SO_BUF_LOCK) & SENDING == 0;
        if is_within && is_ours && self.int(libc::SO_SNDBUF) > 2 * CACHED {
            let _ = sys::set_sockopt(self.fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &CACHED);
            self.bounded.set(true);
            if self.int(libc::SO_SNDBUF) < 2 * CACHED {
                self.unbound();
            }
        }
    }

    /// The kernel sizes it again.
    fn unbound(&self) {
        if self.bounded.take() {
            let others = self.int(SO_BUF_LOCK) & !SENDING;
            let _ = sys::set_sockopt(self.fd, libc::SOL_SOCKET, SO_BUF_LOCK, &others);
        }
    }

    /// 1 where the kernel does not tell: a buffer that is small, and that somebody has sized.
    fn int(&self, name: i32) -> i32 {
        sys::sockopt(self.fd, libc::SOL_SOCKET, name).unwrap_or(SENDING)
    }

    /// Do Fast Sockets have a say in what is sent?
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watched.get()
    }

    /// Its entry at Fast Sockets.
    #[inline]
    pub fn handle(&self) -> Option<Handle> {
        if !self.watched.get() {
            return None;
        }
        let h = table::socket(self.fd);
        if h.is_none() {
            // They left it to the kernel, and with that to nobody.
            table::set_hidden(self.fd);
            self.watched.set(false);
        }
        h
    }

    /// Does its data go through shared memory?
    #[inline]
    pub fn is_carried(&self) -> bool {
        self.handle().is_some_and(options::is_carried)
    }

    fn carried(&self, looks: &Entered) -> Option<View<'static>> {
        self.handle().and_then(conn::get)?.view(looks)
    }

    /// May the kernel have an urgent byte? Not while the peer sends by the ring.
    #[inline]
    pub fn may_have_urgent(&self) -> bool {
        let looks = pins::entered();
        let view = self.carried(&looks);
        view.is_none_or(|v| !Tx(v.inn().send.tx.load(Ordering::Acquire)).by_ring())
    }

    /// Bytes in shared memory that are still to be read.
    pub fn unread_by_ring(&self) -> usize {
        self.handle().map_or(0, options::unread)
    }

    /// Bytes before the urgent one; where there is none, all that are unread.
    pub fn before_mark(&self) -> usize {
        let kernel = sys::ioctl_int(self.fd, libc::FIONREAD).unwrap_or(0);
        self.unread_by_ring() + kernel as usize
    }

    /// Is the place of an urgent byte, taken or not, the next one?
    pub fn is_at_mark(&self) -> bool {
        self.unread_by_ring() == 0 && sys::is_at_mark(self.fd)
    }

    /// Something that only the kernel can do is about to happen.
    pub fn leave_to_kernel(&self) {
        if self.handle().is_some() {
            life::passing_on(self.fd);
            self.handle();
        }
    }

    /// Lets Fast Sockets decide whether they look after it: they take only what is nobody's.
    fn offer(&self, to: impl FnOnce(i32)) {
        if !headwater_sockets::started() || self.watched.get() {
            return;
        }
        table::clear(self.fd);
        to(self.fd);
        self.watched.set(true);
        if let Some(c) = self.handle().and_then(conn::get) {
            c.make_ours();
        }
    }

    pub fn reusable(&self, on: bool) {
        let _ = sys::set_sockopt(self.fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, &(on as i32));
    }

    pub fn is_reusable(&self) -> bool {
        super::is_reusable(self.fd)
    }

    pub fn listen(&self, backlog: i32) -> sys::Result<()> {
        sys::listen(self.fd, backlog)?;
        self.offer(life::listening);
        Ok(())
    }

    /// The listening socket that an earlier image left.
    pub fn listens(&self) {
        self.offer(life::listening);
    }

    pub fn accept(&self) -> sys::Result<Socket> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let fd = again(|| sys::accept(self.fd, flags)).and_then(hidden::hide_or_keep)?;
        let socket = Socket::of(fd);
        if let Some(h) = self.handle() {
            socket.offer(|fd| life::accepted(h, self.fd, fd));
        }
        Ok(socket)
    }

    /// Begins a connection: Ok when it stands or is under way.
    pub fn connect(&self, to: &Address) -> sys::Result<()> {
        let mut began = Ok(());
        let begin = || match again(|| sys::connect(self.fd, to)) {
            Err(libc::EINPROGRESS) => Ok(()),
            result => result,
        };
        if !headwater_sockets::started() {
            return begin();
        }
        self.offer(|fd| {
            let to = board::addr_of(&to.storage());
            let led = to.map_or(Led::Nowhere, |to| life::connecting(fd, to));
            began = begin();
            if began.is_ok() {
                life::connected(fd, led);
            }
        });
        began
    }

    /// Back to an unconnected socket; the peer of a connection gets a reset at once, whoever else has the descriptor.
    pub fn abort(&self) -> sys::Result<()> {
        let after = self.handle().and_then(|_| life::closing(self.fd));
        let none: libc::sockaddr = sys::zeroed();
        let result = sys::connect(self.fd, &none);
        if let Some(after) = after {
            after.finish();
        }
        table::clear(self.fd);
        table::set_hidden(self.fd);
        self.watched.set(false);
        self.unbound();
        self.seen.set(false);
        self.take_error();
        result
    }

    /// close(2) shall reset the connection.
    pub fn reset_on_close(&self) {
        reset::reset(self.fd);
    }

    /// How long close(2) may wait for what is unsent, by SO_LINGER; no time is a reset. `None`: it does not wait.
    pub fn lingers(&self) -> Option<Duration> {
        let [on, seconds] = reset::linger(self.fd)?;
        (on != 0).then(|| Duration::from_secs(seconds.max(0) as u64))
    }

    /// ENOTCONN: the connection is over.
    pub fn shut_writing(&self) -> sys::Result<()> {
        let h = self.handle();
        // A keeper may do it later.
        let how = h.map_or(Some(libc::SHUT_WR), |h| life::shutting(h, libc::SHUT_WR));
        let done = how.map_or(Ok(()), |how| sys::shutdown(self.fd, how));
        if let Some(h) = h {
            life::shut(h, libc::SHUT_WR, true);
        }
        done
    }

    /// SO_ERROR, which is taken out of the socket.
    pub fn take_error(&self) -> Option<i32> {
        sys::sockopt::<i32>(self.fd, libc::SOL_SOCKET, libc::SO_ERROR)
            .ok()
            .filter(|&errno| errno != 0)
    }

    /// poll(2), of a carried connection too. An error or an end is ready for anything.
    pub fn is_ready(&self, events: i16) -> bool {
        let mut set = [sys::entry(self.fd, events)];
        headwater_host::poll::wait(&mut set, Some(0)) > 0
    }

    /// SO_RCVLOWAT was set.
    pub fn note_receive_mark(&self) {
        if let Some(h) = self.handle() {
            // SAFETY: the value is the kernel's.
            unsafe {
                options::set_option(h, self.fd, libc::SO_RCVLOWAT, core::ptr::null(), 0);
            }
        }
    }

    /// As much has to leave the full send buffer, or the ring, before there is said to be room; `None`: as they have it.
    pub fn set_send_mark(&self, room: Option<u32>) {
        let looks = pins::entered();
        if let Some(v) = self.carried(&looks) {
            let ring = v.out_ring();
            let left = ring.capacity().saturating_sub(room.unwrap_or(0) as usize);
            ring.set_low_water(left.min(ring.capacity() / 2));
        }
        if self.is_carried() && room.is_some() {
            return;
        }
        let mark = room.map_or(0, |room| {
            let full = sys::ioctl_int(self.fd, libc::TIOCOUTQ).unwrap_or(0);
            (full as u32).saturating_sub(room).max(1)
        });
        let _ = sys::set_sockopt(self.fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &mark);
    }

    /// Sends without waiting.
    #[inline]
    pub fn send(&self, data: &[iovec], flags: i32) -> Bytes {
        let flags = flags | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        if let Some(c) = self.handle().and_then(conn::get) {
            // SAFETY: the user's buffers.
            let sent = again(|| unsafe { send::send(c, self.fd, data, flags) }.transpose());
            if let Some(result) = sent.transpose() {
                return result;
            }
        }
        self.send_plainly(data, flags)
    }

    /// As [`send`](Socket::send) of a socket that is not [watched](Socket::is_watched).
    #[inline]
    pub fn send_by_kernel(&self, data: &[iovec]) -> Bytes {
        self.send_plainly(data, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    }

    #[inline]
    fn send_plainly(&self, data: &[iovec], flags: i32) -> Bytes {
        // SAFETY: the user's buffers.
        again(|| unsafe {
            match data {
                [one] => sys::send(self.fd, one.iov_base as *const u8, one.iov_len, flags),
                _ => sys::sendmsg(self.fd, &message(data), flags),
            }
        })
    }

    /// Receives without waiting.
    #[inline]
    pub fn receive(&self, into: &[iovec], flags: i32) -> Bytes {
        let flags = flags | libc::MSG_DONTWAIT;
        if let Some(c) = self.handle().and_then(conn::get) {
            // SAFETY: the user's buffers.
            let got = again(|| unsafe { recv::recv(c, self.fd, into, flags) }.transpose());
            if let Some(result) = got.transpose() {
                return result;
            }
        }
        // SAFETY: the user's buffers.
        again(|| unsafe {
            match into {
                [one] => sys::recv(self.fd, one.iov_base as *mut u8, one.iov_len, flags),
                _ => sys::recvmsg(self.fd, &mut message(into), flags),
            }
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let after = self.handle().and_then(|_| life::closing(self.fd));
        hidden::close(self.fd);
        if let Some(after) = after {
            after.finish();
        }
    }
}
