//! A process confines itself (seccomp(2)): it may make few system calls from here on, and not ours.
//!
//! Before it does, every connection goes back to the kernel for good. What our end's rings hold comes first: if nobody shares
//! the end it is taken into private memory, the *rest*, which the program is given before it asks the kernel; else the peer
//! is asked to send it by the kernel. From then on each of the program's calls is its own.

use core::time::Duration;

use headwater_channel::bell;
use headwater_host::counters::Reason;
use headwater_host::sync::Ordering;
use headwater_host::table::{self, Kind, Trait};
use headwater_host::{epoll, process, sys};

pub use crate::conn::rest::{Rest, has_rest, receive_many, splice};
use crate::conn::{self, Conn, Phase};
use crate::keeper::Then;
use crate::recv::{self, Step};
use crate::segment::View;
use crate::{images, keeper, life, pins, switch, takeover};

/// Bytes that one look takes out of a ring, or out of the kernel before it.
const PIECE: usize = 64 << 10;
/// How long kernel bytes are waited for that stand before those of the ring: they are on the loopback device. And how long a
/// peer has that wants what we have sent by the kernel, and reads nothing.
const LEAVE_TIMEOUT: u64 = Duration::from_secs(1).as_nanos() as u64;

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
/// are: the kernel has nothing to serve them with. Are there such?
pub fn forget() -> bool {
    process::confine();
    let more = table::entries().any(|(_, h)| h.kind().is(Trait::OursAlone));
    let files: Vec<i32> = conn::all().filter_map(Conn::rest).map(|r| r.file).collect();
    for (fd, h) in table::entries() {
        let gone = match h.kind() {
            Kind::Socket => !has_rest(h),
            Kind::Hidden if files.contains(&fd) => false,
            Kind::Epoll => !more || epoll::is_plain(fd),
            kind => !more && !kind.is(Trait::OursAlone),
        };
        if gone {
            table::clear(fd);
        }
    }
    more
}

/// Whoever sleeps at a connection's bell comes back, and goes on by the program's own call.
pub fn wake_all() {
    let looks = pins::entered();
    for v in conn::all().filter_map(|c| c.view(&looks)) {
        bell::ring(v.own_bell());
    }
}

fn connection(c: &'static Conn, fd: i32) {
    match c.phase() {
        Phase::Listener => life::unlist(c, fd),
        Phase::Tracked | Phase::Carried => {
            life::decline_surely(c, fd, Reason::Confined);
            let looks = pins::entered();
            if let Some(v) = c.view(&looks) {
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
    if !switch::finish_withdrawal(c, v, c.fd(), LEAVE_TIMEOUT) {
        keeper::leave(c, v, c.fd(), Then::Close);
    }
    switch::tcp_only(v);
    switch::unswitch(v);
    let mut rest = Rest::new();
    let holders = [&c.record().holders, &v.own().holders];
    let shared = holders.iter().any(|n| n.load(Ordering::Acquire) > 1);
    if !shared && !images::is_out(c.record()) {
        drain(c, v, &mut rest);
    }
    let end = sys::now() + LEAVE_TIMEOUT;
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
    if rest.unread() > 0 || rest.fails() {
        rest.write_file();
        c.keep_rest(Box::leak(Box::new(rest)));
    }
}

/// Takes what the ring holds, and what of the kernel stands before it.
fn drain(c: &'static Conn, v: &View<'static>, rest: &mut Rest) {
    while switch::ring_comes_first(v) {
        let before = rest.bytes.len();
        rest.bytes.resize(before + PIECE, 0);
        let iov = [sys::buffer(rest.bytes[before..].as_mut_ptr(), PIECE)];
        let step = recv::take_now(c, v, &iov);
        if let Step::Error(e) = step {
            rest.error.store(e, Ordering::Relaxed);
        }
        let Step::Data(n) = step else {
            return rest.bytes.truncate(before);
        };
        rest.bytes.truncate(before + n);
    }
}
