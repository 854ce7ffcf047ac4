//! How sockets come to be looked after and how they go: listen, connect, accept, close, dup, shutdown, fork, exec, exit.

mod close;
mod exec;
mod exit;
mod shutdown;
mod to_kernel;

use headwater_host::board::{self, Addr, Posting};
use headwater_host::counters::{self, Reason};
use headwater_host::log::{self, Level};
use headwater_host::sync::{AtomicU32, AtomicU64, Ordering};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{config, process, sys, unwinder};

use crate::conn::{self, Conn, Phase, Role};
use crate::{boards, images, limits, link, restart, takeover, tcp_counts, worth};

pub use close::{closing, lost, unlist};
pub use exec::{fork_failed, not_replaced, outlives_exec, replaced};
pub use exit::{count_open, exiting};
pub use shutdown::{disconnected, shut, shutting};
pub use to_kernel::{
    decline_surely, leave_to_others, needs_kernel, option_needs_kernel, passing, passing_on,
    set_apart, set_apart_unless, starting_with, to_kernel,
};

/// Before listen(2) of a TCP socket.
pub fn before_listening(fd: i32) {
    if local(fd).is_some_and(|at| at.port != 0 && !config::get().port_allowed(at.port)) {
        return;
    }
    // A server gives up its root or its rights later.
    unwinder::load();
    boards::board();
}

/// After a successful listen(2) of a TCP socket: it goes on the board.
pub fn listening(fd: i32) {
    if table::lookup(fd).is_some() {
        return;
    }
    let Some(addr) = local(fd) else { return };
    if !config::get().port_allowed(addr.port) {
        return counters::note(Reason::Denied);
    }
    if !post(addr) {
        return;
    }
    if let Some(c) = conn::adopt(fd, Phase::Listener, Role::Server) {
        c.posted_by
            .store(process::owner().bits(), Ordering::Relaxed);
    }
}

/// Puts a listener on the board, unless it is there.
fn post(addr: Addr) -> bool {
    static SAID: AtomicU32 = AtomicU32::new(0);
    let Some(board) = boards::board() else {
        return false;
    };
    let posting = board.post_listener(addr);
    let (reason, what) = match posting {
        Posting::Done => return true,
        Posting::Full => (Reason::BoardFull, "too many listeners on the board"),
        Posting::NoSeat => (Reason::NoBoard, "no place on the board for this process"),
    };
    counters::note(reason);
    if SAID.swap(1, Ordering::Relaxed) == 0 {
        let port = addr.port;
        log::write(
            Level::Warn,
            format_args!("port {port}: {what}; connections to it stay with the kernel"),
        );
    }
    false
}

/// Puts all listeners of this process on the board that are not there, or not on this one.
#[cold]
fn post_again(me: u64) {
    let ours =
        |c: &&Conn| c.phase() == Phase::Listener && c.posted_by.load(Ordering::Relaxed) == me;
    for c in conn::all().filter(ours) {
        local(c.fd()).map(post);
    }
}

/// Does this process listen? Its children then serve.
pub fn listens() -> bool {
    conn::all().any(|c| c.phase() == Phase::Listener)
}

/// After a successful accept(2) on a listener that is looked after.
pub fn accepted(listener: Handle, on: i32, fd: i32) {
    let Some(l) = conn::get(listener) else { return };
    if l.phase() != Phase::Listener {
        return;
    }
    let me = process::owner().bits();
    if l.posted_by.load(Ordering::Relaxed) != me {
        // Inherited: who posted it may be gone.
        l.posted_by.store(me, Ordering::Relaxed);
        l.set_account(None);
        local(on).map(post);
    }
    if boards::look_again() {
        post_again(me);
    }
    link::tidy();
    images::sweep();
    if l.account().is_none() {
        // As its clients find it on the board.
        l.set_account(boards::board().and_then(|board| board.account(local(on)?)));
    }
    if process::is_barred() {
        return counters::fallback(Reason::Uring);
    }
    let account = l.account();
    if account.is_some_and(|a| !worth::accepted(a)) {
        return counters::fallback(Reason::NotWorth);
    }
    look_after(fd, Role::Server, on, account);
}

/// The connection, with the limits of `like`, is looked after from here on: true. Else, which is counted, there is no room.
fn look_after(fd: i32, role: Role, like: i32, account: Option<&'static AtomicU64>) -> bool {
    let Some(c) = conn::adopt(fd, Phase::Tracked, role) else {
        counters::fallback(conn::no_room());
        return false;
    };
    limits::hand_on(like, c);
    c.set_account(account);
    leave_to_waiters(c, fd);
    true
}

/// What becomes of a connection that is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Led {
    /// It is looked after.
    Here,
    /// The kernel's alone.
    Elsewhere(Reason),
    /// No connection of TCP, one that is known, or one that nobody counts.
    Nowhere,
}

/// Before connect(2): is the connection worth looking after?
pub fn connecting(fd: i32, to: Addr) -> Led {
    boards::look_again();
    link::tidy();
    process::learn_netns(fd);
    if table::lookup(fd).is_some() {
        return Led::Nowhere;
    }
    match takeover::why_not_offer(to) {
        Some(reason) => elsewhere(fd, reason),
        None if is_tcp(fd) => Led::Here,
        None => Led::Nowhere,
    }
}

/// What stays with the kernel is asked about only for who wants to know; a second call, for the result of the first, is nothing new.
pub fn elsewhere(fd: i32, reason: Reason) -> Led {
    match counters::is_wanted() && tcp_counts::may_begin(fd) {
        true => Led::Elsewhere(reason),
        false => Led::Nowhere,
    }
}

/// After connect(2) succeeded or is in progress. Is it looked after? A number of the program's may be in its epoll sets already,
/// which are to be told.
pub fn connected(fd: i32, led: Led) -> bool {
    match led {
        Led::Here => {
            images::sweep();
            return look_after(fd, Role::Client, fd, None);
        }
        Led::Elsewhere(reason) => counters::fallback(reason),
        Led::Nowhere => {}
    }
    false
}

/// A call that waits in the kernel on the number may go on with the connection that has it now.
fn leave_to_waiters(c: &'static Conn, fd: i32) {
    if restart::is_waited_on(fd) {
        leave_to_others(fd, conn::handle(c), Reason::WaitedOn);
    }
}

/// Another number for the same open description. For one that the program must not touch it is no concern of ours.
pub fn duplicated(h: Handle, fd: i32) {
    if let Some(c) = conn::get(h).filter(|c| !c.is_ours()) {
        c.refs.fetch_add(1, Ordering::AcqRel);
        if !table::set(fd, h) {
            c.refs.fetch_sub(1, Ordering::AcqRel);
        }
        leave_to_waiters(c, fd);
    }
}

/// Is it a socket of the library's own, whose number the program must not touch?
pub fn is_ours(h: Handle) -> bool {
    h.kind() == Kind::Socket && conn::get(h).is_some_and(Conn::is_ours)
}

pub fn is_tcp(fd: i32) -> bool {
    is_of_tcp(fd).unwrap_or_else(|_| {
        counters::note(Reason::NoMemory);
        false
    })
}

/// Is it seen to be anything but a TCP socket?
pub fn is_other(fd: i32) -> bool {
    is_of_tcp(fd) == Ok(false)
}

/// Errors: the kernel does not tell.
fn is_of_tcp(fd: i32) -> sys::Result<bool> {
    match sys::sockopt::<i32>(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL) {
        Err(libc::EBADF | libc::ENOTSOCK) => Ok(false),
        told => told.map(|protocol| protocol == libc::IPPROTO_TCP),
    }
}

fn local(fd: i32) -> Option<Addr> {
    process::learn_netns(fd);
    let name = sys::sock_name(fd, false);
    let name = name
        .inspect_err(|_| counters::note(Reason::NoMemory))
        .ok()?;
    board::addr_of(&name)
}
