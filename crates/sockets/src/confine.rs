//! A process confines itself (seccomp(2)): it may make few system calls from here on, and not ours.
//!
//! Before it does, every connection goes back to the kernel for good. What our end's rings hold comes first: if nobody shares
//! the end it is taken into private memory, the *rest*, which the program is given before it asks the kernel; else the peer
//! is asked to send it by the kernel. From then on each of the program's calls is its own.

use headwater_channel::bell;
use headwater_host::counters::Reason;
use headwater_host::sync::{AtomicI32, AtomicUsize, Ordering};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{epoll, process, sys};
use libc::{EINTR, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, iovec};

use crate::buffers::{Buffers, ROOM};
use crate::conn::{self, Conn, Phase};
use crate::keeper::Then;
use crate::recv::{self, Own, Step, partial};
use crate::segment::View;
use crate::{keeper, lend, life, switch, takeover};

/// Bytes that one look takes out of a ring, or out of the kernel before it.
const PIECE: usize = 64 << 10;
/// How long kernel bytes are waited for that stand before those of the ring: they are on the loopback device. And how long a
/// peer has that wants what we have sent by the kernel, and reads nothing.
const PATIENCE: u64 = 1_000_000_000;

/// What is left of the rings of one connection, and the error that came after it (0: none).
pub struct Rest {
    bytes: Vec<u8>,
    at: AtomicUsize,
    pub error: AtomicI32,
}

/// Every connection goes back to the kernel, and out of the program's epoll sets.
pub fn leave_rings() {
    for (fd, _) in table::entries() {
        if let Some(c) = table::socket(fd).and_then(conn::get) {
            connection(c, fd);
        }
    }
    epoll::surrender(has_rest);
}

/// What the program has is foreign from here on, but for what has a rest. Streams, endpoints and SCTP sockets stay what they
/// are: the kernel has nothing to serve them with.
pub fn forget() {
    process::confine();
    let stays = |kind| matches!(kind, Kind::Stream | Kind::Endpoint | Kind::Sctp);
    let more = table::entries().any(|(_, h)| stays(h.kind()));
    for (fd, h) in table::entries() {
        let gone = match h.kind() {
            Kind::Socket => !has_rest(h),
            Kind::Epoll | Kind::Hidden | Kind::Inherited => !more,
            Kind::Stream | Kind::Endpoint | Kind::Sctp => false,
        };
        if gone {
            table::clear(fd);
        }
    }
}

/// Whoever sleeps at a connection's bell comes back, and goes on by the program's own call.
pub fn wake_all() {
    for v in conn::all().filter_map(Conn::view) {
        bell::ring(v.own_bell());
    }
}

fn connection(c: &'static Conn, fd: i32) {
    match c.phase() {
        Phase::Listener => life::unlist(c, fd),
        Phase::Tracked | Phase::Carried => {
            life::decline_surely(c, fd, Reason::Confined);
            if let Some(v) = c.view() {
                leave_ring(c, &v);
            }
        }
        // Another number of it came first.
        Phase::Free | Phase::Rest => {}
    }
}

fn leave_ring(c: &'static Conn, v: &View<'static>) {
    c.falls_back(Reason::Confined);
    // Later writes go round us, and should not overtake it.
    if !switch::finish_withdrawal(c, v, c.fd(), PATIENCE) {
        keeper::leave(c, v, c.fd(), Then::Close);
    }
    switch::tcp_only(v);
    switch::unswitch(v);
    let mut rest = Rest {
        bytes: Vec::new(),
        at: AtomicUsize::new(0),
        error: AtomicI32::new(0),
    };
    let holders = [&c.record().holders, &v.own().holders];
    let shared = holders.iter().any(|n| n.load(Ordering::Acquire) > 1);
    if !shared && !lend::is_out(c.record()) {
        drain(c, v, &mut rest);
    }
    let end = sys::now() + PATIENCE;
    while !switch::pin(c, v) {
        // Bytes of the kernel stand behind some of the ring, or the peer has closed and sends no more.
        drain(c, v, &mut rest);
        if !switch::behind(v) && v.in_ring().is_empty() || sys::now() > end {
            break;
        }
        std::thread::yield_now();
    }
    takeover::count_kernel(c);
    c.count_traffic();
    if !rest.bytes.is_empty() || rest.error.load(Ordering::Relaxed) != 0 {
        c.keep_rest(Box::leak(Box::new(rest)));
    }
}

/// Takes what the ring holds, and what of the kernel stands before it.
fn drain(c: &'static Conn, v: &View<'static>, rest: &mut Rest) {
    while switch::ring_comes_first(v) {
        let before = rest.bytes.len();
        rest.bytes.resize(before + PIECE, 0);
        let iov = [iovec {
            iov_base: rest.bytes[before..].as_mut_ptr().cast(),
            iov_len: PIECE,
        }];
        let step = recv::take_now(c, v, &iov);
        let (n, again) = match step {
            Step::Data(n) => (n, true),
            Step::Error(e) => {
                rest.error.store(e, Ordering::Relaxed);
                (0, false)
            }
            Step::Eof | Step::Again | Step::Kernel => (0, false),
        };
        rest.bytes.truncate(before + n);
        if !again {
            return;
        }
    }
}

/// Receives from the rest, then by the program's own call. `None`: there is none (any more), it is that call's turn.
///
/// # Safety
/// The buffers are valid.
#[cold]
pub unsafe fn receive(
    c: &'static Conn,
    fd: i32,
    iov: &[iovec],
    flags: i32,
    own: Own<'_>,
) -> Option<recv::Outcome1> {
    let rest = c.rest()?;
    let mut buffers = Buffers::new(iov);
    if buffers.left == 0 {
        return None;
    }
    rest.give(&mut buffers, flags);
    if buffers.done == 0 {
        let e = rest.error.swap(0, Ordering::AcqRel);
        leave(c);
        return (e != 0).then_some(Err(e));
    }
    if rest.is_read_out() {
        leave(c);
    }
    // A short read of what does not wait must mean that all was taken.
    let on = flags & MSG_WAITALL != 0 || flags & MSG_DONTWAIT != 0 || c.is_nonblocking();
    if buffers.left > 0 && on && flags & MSG_PEEK == 0 && rest.error.load(Ordering::Acquire) == 0 {
        let mut room = [crate::buffers::EMPTY; ROOM];
        let n = own(fd, buffers.rest(&mut room));
        buffers.advance(n.max(0) as usize);
    }
    Some(partial(buffers.done, EINTR))
}

/// Nothing is left: the connection is foreign from here on.
fn leave(c: &Conn) {
    for (fd, h) in table::entries() {
        if h.kind() == Kind::Socket && conn::get(h).is_some_and(|x| core::ptr::eq(x, c)) {
            table::clear_if(fd, h);
        }
    }
}

/// Bytes of the rest that were not given yet.
pub fn unread(h: Handle) -> usize {
    let rest = conn::get(h).and_then(|c| c.rest());
    rest.map_or(0, |r| r.bytes.len() - r.at.load(Ordering::Acquire))
}

/// Is there something to be read before the kernel is asked?
pub fn has_rest(h: Handle) -> bool {
    conn::get(h).and_then(|c| c.rest()).is_some_and(|r| {
        r.at.load(Ordering::Acquire) < r.bytes.len() || r.error.load(Ordering::Acquire) != 0
    })
}

impl Rest {
    fn is_read_out(&self) -> bool {
        self.at.load(Ordering::Acquire) == self.bytes.len()
            && self.error.load(Ordering::Acquire) == 0
    }

    /// Without a lock: each thread takes a stretch of its own.
    fn give(&self, buffers: &mut Buffers<'_>, flags: i32) {
        let (all, wanted) = (self.bytes.len(), buffers.left);
        let from = if flags & MSG_PEEK != 0 {
            self.at.load(Ordering::Acquire)
        } else {
            let ahead = |at: usize| Some(at + wanted.min(all - at));
            match self
                .at
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, ahead)
            {
                Ok(at) | Err(at) => at,
            }
        };
        let mut bytes = &self.bytes[from..all.min(from + wanted)];
        if flags & (MSG_PEEK | MSG_TRUNC) == MSG_TRUNC {
            return buffers.advance(bytes.len());
        }
        while !bytes.is_empty() {
            let piece = buffers.piece(bytes.len());
            let n = piece.len();
            piece.copy_from_slice(&bytes[..n]);
            buffers.advance(n);
            bytes = &bytes[n..];
        }
    }
}
