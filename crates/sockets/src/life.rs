//! How sockets come to be looked after and how they go: listen, connect, accept, close, dup, shutdown, fork, exec, exit.

use headwater_channel::lock::Owner;
use headwater_host::board::{self, Addr, Posting};
use headwater_host::counters::{self, Reason};
use headwater_host::log::{self, Level};
use headwater_host::sync::{AtomicU32, AtomicU64, Ordering, fence};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{config, epoll, process, sys, unwinder};

use crate::conn::{self, Closed, Conn, Phase, Role};
use crate::keeper::Then;
use crate::record::{self, APART, BARRED, PASSED, Record, SHUT_WR, Takeover};
use crate::relay::{self, Relay};
use crate::segment::View;
use crate::{
    boards, comeback, holders, inherit, keeper, lend, limits, link, look, restart, sets, switch,
    takeover, truth, worth,
};

// ---- coming ----

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
    lend::sweep();
    if l.account().is_none() {
        l.set_account(account_of(on));
    }
    if process::is_barred() {
        return counters::fallback(Reason::Uring);
    }
    let account = l.account();
    if account.is_some_and(|a| !worth::accepted(a)) {
        return counters::fallback(Reason::NotWorth);
    }
    match conn::adopt(fd, Phase::Tracked, Role::Server) {
        Some(c) => {
            limits::hand_on(on, c);
            c.set_account(account);
            leave_to_waiters(c, fd);
        }
        None => counters::fallback(conn::no_room()),
    }
}

/// Of the listener `fd`, as its clients find it on the board.
fn account_of(fd: i32) -> Option<&'static AtomicU64> {
    boards::board()?.account(local(fd)?)
}

/// What becomes of a connection that is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Led {
    /// It is looked after.
    Here,
    /// The kernel's alone.
    Elsewhere(Reason),
    /// No connection of TCP, or one that is known.
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
        // A second call, for the result of the first.
        Some(_) if counters::is_wanted() && truth::is_begun(fd) => Led::Nowhere,
        Some(reason) => Led::Elsewhere(reason),
        None if is_tcp(fd) => Led::Here,
        None => Led::Nowhere,
    }
}

/// After connect(2) succeeded or is in progress. Is it looked after? A number of the program's may be in its epoll sets already,
/// which are to be told.
pub fn connected(fd: i32, led: Led) -> bool {
    match led {
        Led::Here => {
            lend::sweep();
            let adopted = conn::adopt(fd, Phase::Tracked, Role::Client);
            match adopted {
                Some(c) => {
                    limits::hand_on(fd, c);
                    leave_to_waiters(c, fd);
                }
                None => counters::fallback(conn::no_room()),
            }
            return adopted.is_some();
        }
        // Asked only for who wants to know.
        Led::Elsewhere(reason) if counters::is_wanted() && truth::is_begun(fd) => {
            counters::fallback(reason);
        }
        Led::Elsewhere(_) | Led::Nowhere => {}
    }
    false
}

/// A call that waits in the kernel on the number may go on with the connection that has it now.
fn leave_to_waiters(c: &'static Conn, fd: i32) {
    if restart::is_waited_on(fd) {
        leave_to_others(fd, conn::handle(c), Reason::WaitedOn);
    }
}

/// Another number for the same open description.
pub fn duplicated(h: Handle, fd: i32) {
    match h.kind() {
        // Another number for what the program must not touch is no concern of ours.
        Kind::Socket if is_ours(h) => {}
        Kind::Socket => {
            if let Some(c) = conn::get(h) {
                c.refs.fetch_add(1, Ordering::AcqRel);
                if !table::set(fd, h) {
                    c.refs.fetch_sub(1, Ordering::AcqRel);
                }
                leave_to_waiters(c, fd);
            }
        }
        Kind::Epoll => epoll::duplicated_set(h, fd),
        Kind::Inherited => inherit::duplicated(h, fd),
        Kind::Hidden | Kind::Stream | Kind::Endpoint | Kind::Sctp => {}
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

// ---- going ----

/// Before the program's close(2) of `fd`, or dup2(2) over it. Returns what must still happen after it.
pub fn closing(fd: i32) -> Option<AfterClose> {
    going(fd, fd)
}

/// `fd` was closed round us, and may be anything by now.
pub fn lost(fd: i32) {
    if let Some(after) = going(fd, -1) {
        after.finish();
    }
}

/// The last number of this process goes, while other processes have the connection: the kernel keeps what this one has registered of it,
/// and it alone can tell. What was taken out of a set goes from the kernel's too.
#[unsafe(link_section = ".text.life")]
fn leave_registrations(c: &'static Conn, fd: i32) {
    let Some(v) = c.view() else { return };
    let goes_on = v.own().holders.load(Ordering::Acquire) > 1
        || lend::is_out(c.record())
        // It may be under way in a message.
        || c.record().has(PASSED);
    if !goes_on || !sets::hold(c, fd) {
        return;
    }
    if sets::were_given(c, fd) {
        switch::freeze(c, &v, None, Reason::EpollClosed);
    }
    epoll::leave_one(fd);
}

/// The number `fd` goes; the shadow can be reached by `shadow` still, if that is not negative.
#[unsafe(link_section = ".text.life")]
fn going(fd: i32, shadow: i32) -> Option<AfterClose> {
    let h = table::lookup(fd)?;
    match h.kind() {
        // Streams have a life of their own.
        Kind::Hidden | Kind::Stream | Kind::Endpoint | Kind::Sctp => return None,
        Kind::Epoll => {
            table::clear(fd);
            epoll::closed_set(h, fd);
            return None;
        }
        Kind::Inherited => {
            inherit::closing(fd, h);
            return None;
        }
        Kind::Socket => {}
    }
    let c = conn::get(h)?;
    restart::going(c, fd);
    let others = c.refs.load(Ordering::Acquire) > 1;
    let is_blocked = c.phase() == Phase::Carried && c.pins.load(Ordering::SeqCst) > 0;
    if others || is_blocked {
        sets::orphaned(c, fd);
    } else {
        if shadow == fd {
            leave_registrations(c, fd);
        }
        sets::closing(c, fd);
    }
    if !table::clear_if(fd, h) {
        // Another thread has closed it, or left it to the kernel.
        return None;
    }
    if c.refs.fetch_sub(1, Ordering::AcqRel) > 1 {
        // Other numbers remain; the shadow must be reached by one of them.
        if c.fd() == fd
            && let Some((other, _)) = table::entries().find(|&(_, x)| x == h)
        {
            let moved =
                c.fd.compare_exchange(fd, other, Ordering::SeqCst, Ordering::Relaxed);
            c.await_users();
            if let (Ok(_), Some(v)) = (moved, c.view()) {
                recall_sleepers(c, &v);
            }
        }
        return None;
    }
    // Calls that want to wait from here on see that it is closed; those that wait already are seen below.
    if !c.begin_close() {
        return None;
    }
    match c.phase() {
        Phase::Listener => {
            unlist(c, shadow);
            c.abandon();
            None
        }
        Phase::Tracked => {
            takeover::count_kernel(c);
            takeover::count_left(c);
            takeover::withdraw_offer(c);
            c.abandon();
            None
        }
        Phase::Carried => {
            if c.pins.load(Ordering::SeqCst) > 0 {
                leave_to_the_blocked(c, shadow);
                return None;
            }
            if is_blocked {
                sets::closing(c, fd);
            }
            c.close_step(Closed::Closing, Closed::Ended);
            c.await_users();
            c.view().map(|v| {
                await_sections(&v);
                last_close(c, v, shadow)
            })
        }
        Phase::Free | Phase::Rest => None,
    }
}

/// Takes a listener off the board, if this process has put it there.
#[unsafe(link_section = ".text.life")]
pub fn unlist(c: &Conn, fd: i32) {
    let posted_by = Owner::from_bits(c.posted_by.load(Ordering::Relaxed));
    // The number first: a child of fork that closes its parent's listeners need not ask the kernel who it is.
    if posted_by.pid() == process::pid() as u32
        && posted_by == process::owner()
        && let Some(addr) = local(fd)
    {
        boards::all().for_each(|board| board.remove_listener(addr));
    }
}

/// The last waiting call is over: it ends a connection that the program closed meanwhile.
#[unsafe(link_section = ".text.life")]
pub fn last_pin_gone(c: &'static Conn) {
    if !c.is_left() || !c.close_step(Closed::Left, Closed::Ended) {
        return;
    }
    let errno = headwater_host::next::errno();
    c.await_users();
    sets::ended(c);
    let fd = c.fd();
    if let Some(v) = c.view() {
        await_sections(&v);
        let after = last_close(c, v, fd);
        headwater_host::hidden::close(fd);
        after.finish();
    }
    headwater_host::next::set_errno(errno);
}

/// The connection has ended for this process: until none of its threads is inside a section that began before. Those that
/// come later see the end.
fn await_sections(v: &View<'_>) {
    let me = process::owner();
    fence(Ordering::SeqCst);
    for lock in [&v.record.sending.lock, &v.record.receiving.lock] {
        let mut turns = sys::Turns::default();
        while lock.owner() == me {
            turns.give_way();
        }
    }
}

/// What is left to do once the kernel has closed the shadow.
pub struct AfterClose {
    conn: &'static Conn,
    view: View<'static>,
    last: bool,
}

impl AfterClose {
    pub fn finish(self) {
        let v = self.view;
        v.own().look.fetch_add(1, Ordering::Release);
        takeover::count_kernel(self.conn);
        self.conn.count_traffic();
        self.conn.count_unused(goes_on(&v));
        takeover::reclaim_unattached(self.conn, &v);
        if self.last {
            takeover::withdraw_offer(self.conn);
        }
        self.conn.abandon();
        link::release(v.mapped, v.end, v.generation, self.last);
    }
}

/// May others use this end yet?
fn goes_on(v: &View<'_>) -> bool {
    v.is_shared() || lend::is_out(v.record)
}

fn last_close(c: &'static Conn, v: View<'static>, fd: i32) -> AfterClose {
    c.settle_account();
    let mut last = v.own().holders.fetch_sub(1, Ordering::AcqRel) <= 1;
    if last {
        last = !leaves_keeper(c, &v, fd);
    } else {
        withdraw_for_others(c, &v, fd);
    }
    if last {
        reset_if_unread(c, &v, fd);
        let by_ring = !lend::is_out(v.record) && !switch::is_taken_back(&v);
        if by_ring && !sys::is_single_threaded() {
            // A thread that came upon the number after we had left it, and before the kernel closes it, must not wait there for
            // what comes by the ring. Where all comes by the kernel, others may have the descriptor in a message.
            let _ = sys::shutdown(fd, libc::SHUT_RD);
        }
    }
    AfterClose {
        conn: c,
        view: v,
        last,
    }
}

/// Calls wait on the shadow's number, which the program is about to give away: they go on with a hidden one.
fn leave_to_the_blocked(c: &'static Conn, fd: i32) {
    let hidden = sys::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3).and_then(headwater_host::hidden::hide);
    // No number left: the blocked calls get EBADF from the kernel.
    c.fd.store(hidden.unwrap_or(-1), Ordering::SeqCst);
    c.await_users();
    c.close_step(Closed::Closing, Closed::Left);
    if let Some(v) = c.view() {
        recall_sleepers(c, &v);
    }
    if c.pins.load(Ordering::SeqCst) == 0 {
        last_pin_gone(c);
    }
}

/// poll(2) looks its numbers up again each time it wakes, so the sleepers must come back for the new one: each takes one
/// ring, and a ring wakes all of them.
fn recall_sleepers(c: &Conn, v: &View<'_>) {
    for _ in 0..4 * c.pins.load(Ordering::SeqCst) {
        headwater_channel::bell::ring(v.own_bell());
        std::thread::yield_now();
    }
}

/// Nothing more is sent by this end: what the peer wants by the kernel goes there first. False: the kernel has no room for
/// all of it now.
fn end_sending(c: &Conn, v: &View<'_>, fd: i32) -> bool {
    // Once, unless the peer asks for it over and over.
    for _ in 0..4 {
        if switch::begin_close(v) {
            break;
        }
        if !switch::withdraw_to(c, v, fd) {
            return false;
        }
        if look::events_of(fd) & (libc::POLLERR | libc::POLLHUP) != 0 {
            break;
        }
    }
    true
}

/// Before the last close of an end: is there something left to send, for which a keeper stays?
fn leaves_keeper(c: &'static Conn, v: &View<'static>, fd: i32) -> bool {
    if lend::is_out(v.record) && !switch::must_withdraw(v) {
        // An image that was started may go on with it.
        return false;
    }
    if end_sending(c, v, fd) || keeper::is_reset_by_close(v, fd) {
        return false;
    }
    match linger(fd) {
        // The program wants no more of it, or to wait itself.
        Some([on, 0]) if on != 0 => return false,
        Some([on, seconds]) if on != 0 => {
            let patience = seconds.max(0) as u64 * 1_000_000_000;
            if switch::finish_withdrawal(c, v, fd, patience) {
                end_sending(c, v, fd);
                return false;
            }
        }
        _ => {}
    }
    keeper::leave(c, v, fd, Then::Close)
}

/// Others are said to hold this end still. They may make no call on it that would send what the peer wants by the kernel, and
/// may have been killed.
fn withdraw_for_others(c: &'static Conn, v: &View<'static>, fd: i32) {
    if switch::must_withdraw(v)
        && !switch::withdraw_to(c, v, fd)
        && !keeper::is_reset_by_close(v, fd)
    {
        keeper::leave(c, v, fd, Then::Close);
    }
}

/// The keeper of an end has sent what there was.
pub fn kept(c: &'static Conn, v: &View<'static>, fd: i32) {
    if v.own().holders.fetch_sub(1, Ordering::AcqRel) <= 1 {
        switch::begin_close(v);
        reset_if_unread(c, v, fd);
    }
    takeover::withdraw_offer(c);
    c.abandon();
    let _ = sys::close(fd);
    v.own().look.fetch_add(1, Ordering::Release);
    headwater_channel::bell::ring(v.peer_bell());
}

/// Is something unread that nobody but this process could read? Others may read it while they are looked for.
pub fn is_left_unread(v: &View<'_>, record: &'static Record, inode: u64) -> bool {
    is_unread(v) && holders::is_ours_alone(record, inode) && is_unread(v)
}

fn is_unread(v: &View<'_>) -> bool {
    // Who was passed the descriptor reads by the kernel what is taken back.
    let is_others = switch::is_taken_back(v) && v.record.has(PASSED);
    !is_others && switch::readable(v) && v.in_ring().unread() > 0
}

/// TCP resets a connection that is closed with unread data.
fn reset_if_unread(c: &Conn, v: &View<'static>, fd: i32) {
    if is_last_to_read(c, v) {
        reset(fd);
    }
}

/// Is something unread, and has nobody an image that may read it yet? An image that the connection was lent to may have closed it
/// unused, and tells nobody; nor does one that has the kernel's part of it alone.
fn is_last_to_read(c: &Conn, v: &View<'static>) -> bool {
    let inode = c.inode.load(Ordering::Relaxed);
    let is_out = lend::is_out(v.record) || comeback::is_out(v.record);
    is_unread(v) && (!is_out || is_left_unread(v, v.record, inode))
}

/// The close that comes is to be a reset.
pub fn reset(fd: i32) {
    set_linger(fd, AT_ONCE);
}

/// Before shutdown(2) on a carried socket: what is left of it for the kernel to do.
pub fn shutting(h: Handle, how: i32) -> Option<i32> {
    let Some(c) = conn::get(h).filter(|_| how != libc::SHUT_RD) else {
        return Some(how);
    };
    let before = c.record().has(SHUT_WR);
    c.record().set(SHUT_WR, true);
    let Some(v) = c.view() else { return Some(how) };
    let left = !end_sending(c, &v, c.fd());
    // Who was publishing then has done so; who comes later goes to the kernel, after the shutdown.
    drop(v.lock_out());
    if left && (before || keeper::leave(c, &v, c.fd(), Then::ShutWrite)) {
        return (how == libc::SHUT_RDWR).then_some(libc::SHUT_RD);
    }
    Some(how)
}

/// After shutdown(2).
pub fn shut(h: Handle) {
    let Some(c) = conn::get(h) else { return };
    c.look_now.store(1, Ordering::Relaxed);
    // The kernel tells edge-triggered sets of it as of room.
    c.note_full();
    c.shuts.fetch_add(1, Ordering::Relaxed);
    if let Some(v) = c.view() {
        switch::take_pin_back_if_shut(c, &v);
        v.own().look.fetch_add(1, Ordering::Release);
        headwater_channel::bell::ring(v.own_bell());
    }
}

/// After connect(2) to AF_UNSPEC: the kernel has ended what the descriptor stood for, and it may begin anew.
pub fn disconnected(fd: i32, h: Handle) {
    let Some(c) = conn::get(h) else { return };
    match c.phase() {
        Phase::Listener => {
            if let Some(after) = closing(fd) {
                after.finish();
            }
        }
        Phase::Tracked => leave_to_others(fd, h, Reason::Option),
        // Other numbers and processes may hold it: all of them go on by the kernel.
        Phase::Carried => {
            if let Some(v) = c.view() {
                switch::disconnect(c, &v);
                c.record().set(SHUT_WR, false);
                c.falls_back(Reason::Option);
            }
        }
        Phase::Free | Phase::Rest => {}
    }
}

// ---- fork, exec, exit ----

/// Does this process listen? Its children then serve.
pub fn listens() -> bool {
    conn::all().any(|c| c.phase() == Phase::Listener)
}

/// Before a fork whose handlers hold what a thread inside an epoll set may wait for: the sets first. A takeover that has begun
/// looks at sets, so it must be over.
pub fn hold_sets() {
    let mut turns = sys::Turns::default();
    loop {
        epoll::before_fork();
        let changing = |c: &Conn| c.record().takeover() == Takeover::Changing;
        if !conn::all().any(changing) {
            return;
        }
        epoll::after_fork();
        turns.give_way();
    }
}

#[unsafe(link_section = ".text.life")]
pub fn before_fork() {
    inherit::before_fork();
    conn::before_fork();
    for c in conn::all() {
        if c.phase() == Phase::Tracked {
            takeover::withdraw_if_offered(c);
            c.record().holders.fetch_add(1, Ordering::SeqCst);
            // A takeover that began before sees its end; a later one sees two holders.
            let mut turns = sys::Turns::default();
            while c.record().takeover() == Takeover::Changing {
                turns.give_way();
            }
            if c.phase() == Phase::Tracked {
                continue;
            }
            c.record().holders.fetch_sub(1, Ordering::AcqRel);
        }
        match c.phase() {
            Phase::Tracked => {}
            Phase::Carried => {
                c.record().holders.fetch_add(1, Ordering::AcqRel);
                if let Some(v) = c.view() {
                    let was_shared = v.is_shared();
                    v.own().holders.fetch_add(1, Ordering::AcqRel);
                    v.header.shared.store(1, Ordering::Release);
                    if !was_shared {
                        // Sleepers learn that their sleeps are bounded from now on.
                        headwater_channel::bell::ring(v.own_bell());
                        headwater_channel::bell::ring(v.peer_bell());
                    }
                }
            }
            Phase::Listener => {
                c.record().holders.fetch_add(1, Ordering::AcqRel);
            }
            Phase::Free | Phase::Rest => {}
        }
    }
    epoll::before_fork();
    link::before_fork();
    record::before_fork();
    lend::before_fork();
    holders::before_fork();
    limits::before_fork();
    // The last: what others make, they may make with any of these in their hands.
    process::before_fork();
}

#[unsafe(link_section = ".text.life")]
fn after_fork() {
    process::after_fork();
    limits::after_fork();
    holders::after_fork();
    lend::after_fork();
    record::after_fork();
    conn::after_fork();
    link::after_fork();
    epoll::after_fork();
    inherit::after_fork();
}

pub fn after_fork_in_parent() {
    after_fork();
}

/// Who the process is was told to [`process`] before.
#[unsafe(link_section = ".text.life")]
pub fn after_fork_in_child() {
    after_fork();
    counters::reset();
    link::in_child();
    lend::in_child();
    epoll::in_child();
    for c in conn::all() {
        c.forget_calls();
        c.restart_counts();
        // Closed in the parent while calls waited there: nobody waits here.
        last_pin_gone(c);
    }
}

/// fork(2) failed after `before_fork`.
pub fn fork_failed() {
    change_holds(-1);
}

/// What [`replaced`] does to a connection that the exec closes. With [`EXEC_RESETS`] stands the SO_LINGER that it had: on in the bit
/// above, and the seconds.
const EXEC_PINS: u32 = 1;
const EXEC_RESETS: u32 = 2;

/// Before an exec of this process.
pub fn replaced() {
    for c in conn::all() {
        let Some(v) = c.view() else { continue };
        if switch::help_withdraw(c, &v) {
            // The image to come knows nothing of it.
            keeper::leave(c, &v, c.fd(), Then::Close);
        }
        if v.own().holders.load(Ordering::Acquire) > 1 || stays_open(c) {
            continue;
        }
        let pins = !switch::is_taken_back(&v) && switch::pin_if_empty(c, &v) == Some(true);
        let change = if pins {
            // The kernel closes it later, and tells senders of the end that we can't.
            EXEC_PINS
        } else if is_last_to_read(c, &v) {
            resets(c.fd())
        } else {
            0
        };
        c.closed_by_exec.store(change, Ordering::Relaxed);
    }
    change_holds(-1);
}

/// The exec failed.
pub fn not_replaced() {
    change_holds(1);
    for c in conn::all() {
        match c.closed_by_exec.swap(0, Ordering::Relaxed) {
            EXEC_PINS => {
                c.view().inspect(|v| switch::unpin(c, v));
            }
            change if change & EXEC_RESETS != 0 && linger(c.fd()) == Some(AT_ONCE) => {
                set_linger(c.fd(), [(change >> 2 & 1) as i32, (change >> 3) as i32]);
            }
            _ => {}
        }
    }
}

/// Has it a number that outlives an exec?
pub fn outlives_exec(h: Handle) -> bool {
    let mut numbers = table::entries().filter(|&(_, x)| x == h);
    numbers.any(|(fd, _)| sys::survives_exec(fd))
}

/// The same, quicker for most.
fn stays_open(c: &Conn) -> bool {
    if sys::survives_exec(c.fd()) {
        return true;
    }
    if c.refs.load(Ordering::Acquire) <= 1 {
        return false;
    }
    outlives_exec(conn::handle(c))
}

/// SO_LINGER, on and seconds, of a connection whose close is a reset.
const AT_ONCE: [i32; 2] = [1, 0];

/// The exec's close is to be a reset: how to take that back. 0: it is one already.
fn resets(fd: i32) -> u32 {
    match linger(fd) {
        None | Some(AT_ONCE) => 0,
        Some(_) if !set_linger(fd, AT_ONCE) => 0,
        Some([on, seconds]) => {
            let seconds = (seconds.max(0) as u32).min(u32::MAX >> 3);
            EXEC_RESETS | u32::from(on != 0) << 2 | seconds << 3
        }
    }
}

fn linger(fd: i32) -> Option<[i32; 2]> {
    sys::sockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER).ok()
}

fn set_linger(fd: i32, to: [i32; 2]) -> bool {
    sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, &to).is_ok()
}

/// This process gives up its holds of all ends (before an exec), or takes them back (when the exec failed).
pub fn change_holds(change: i32) {
    for c in conn::all() {
        let own = c.view().map(|v| &v.own().holders);
        for count in [Some(&c.record().holders), own].into_iter().flatten() {
            if change < 0 {
                count.fetch_sub(1, Ordering::AcqRel);
            } else {
                count.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}

/// The program asks for something that rings can't do.
pub fn needs_kernel(fd: i32) {
    if let Some(h) = table::socket(fd) {
        leave_to_others(fd, h, Reason::Option);
    }
}

/// The program changes what is asked of it in an epoll set of which the kernel alone can tell.
pub fn set_apart(fd: i32) {
    set_apart_unless(fd, || false);
}

/// The same, unless it turns out that nothing is changed.
pub fn set_apart_unless(fd: i32, unchanged: impl FnOnce() -> bool) {
    if let Some(h) = table::socket(fd)
        && let Some(c) = conn::get(h)
        && c.phase() != Phase::Listener
        && (c.record().has(APART) || !unchanged())
    {
        c.record().set(APART, true);
        leave_to_others(fd, h, Reason::Option);
    }
}

/// The same for an option, whose connection stays with this process. False: what is unread in its ring comes from there, and so does what
/// follows.
pub fn option_needs_kernel(fd: i32) -> bool {
    let Some(c) = table::socket(fd).and_then(conn::get) else {
        return true;
    };
    decline_surely(c, fd, Reason::Option);
    c.view()
        .is_none_or(|v| switch::freeze_if_read(c, &v, Reason::Option))
}

/// The kernel alone serves it from here on, for this reason.
pub fn to_kernel(fd: i32, reason: Reason) {
    if let Some(h) = table::socket(fd) {
        leave_to_others(fd, h, reason);
    }
}

/// Before a descriptor goes to somebody else in a message: what is to go in its place, if it can't go itself. ENOBUFS: nothing can.
pub fn passing(fd: i32) -> Result<Option<Relay>, i32> {
    passing_set(fd);
    let Some(c) = table::socket(fd).and_then(conn::get) else {
        return Ok(None);
    };
    c.record().set(PASSED, true);
    match c.view() {
        Some(v) => relay::prepare(c, v, Reason::PassedOn),
        None => {
            to_kernel(fd, Reason::PassedOn);
            Ok(None)
        }
    }
}

/// Before a descriptor goes to somebody else, whom we do not know.
pub fn passing_on(fd: i32) {
    if let Some(c) = table::socket(fd).and_then(conn::get) {
        c.record().set(PASSED, true);
    }
    starting_with(fd);
}

/// The same of an image that is started with it.
pub fn starting_with(fd: i32) {
    passing_set(fd);
    to_kernel(fd, Reason::PassedOn);
}

/// The same for an epoll set: who gets it knows nothing of what is in it.
fn passing_set(fd: i32) {
    if table::lookup(fd).is_some_and(|h| h.kind() == Kind::Epoll) {
        epoll::leave_to_others(fd, set_apart);
    }
}

/// Somebody who goes round us may have the descriptor from here on.
pub fn leave_to_others(fd: i32, h: Handle, reason: Reason) {
    let Some(c) = conn::get(h) else { return };
    decline_surely(c, fd, reason);
    if let Some(v) = c.view() {
        switch::freeze(c, &v, process::is_borrowed().then_some(fd), reason);
    }
}

/// A connection that is not carried yet is left to the kernel; afterwards it is that, or carried.
pub fn decline_surely(c: &Conn, fd: i32, reason: Reason) {
    if c.phase() == Phase::Tracked {
        c.take_step_surely(|| {
            // Another thread may have taken it over just now.
            if c.phase() == Phase::Tracked {
                c.record().set(BARRED, true);
                takeover::decline(c, fd, reason);
            }
        });
    }
}

/// Adds what is still open to the counters, before they are written.
#[unsafe(link_section = ".text.life")]
pub fn count_open() {
    for c in conn::all() {
        match c.phase() {
            Phase::Tracked => {
                takeover::count_kernel(c);
                takeover::count_left(c);
            }
            Phase::Carried => {
                c.settle_account();
                takeover::count_kernel(c);
                c.count_traffic();
                if let Some(v) = c.view() {
                    c.count_unused(goes_on(&v));
                }
            }
            _ => {}
        }
    }
}

/// The process ends: peers are told, as the kernel tells theirs.
#[unsafe(link_section = ".text.life")]
pub fn exiting() {
    inherit::exiting();
    for c in conn::all() {
        if c.phase() == Phase::Tracked {
            takeover::withdraw_if_offered(c);
        }
        c.record().holders.fetch_sub(1, Ordering::AcqRel);
        if let Some(v) = c.view() {
            if v.own().holders.fetch_sub(1, Ordering::AcqRel) <= 1 {
                if !leaves_keeper(c, &v, c.fd()) {
                    reset_if_unread(c, &v, c.fd());
                }
                takeover::withdraw_offer(c);
            } else {
                withdraw_for_others(c, &v, c.fd());
            }
            v.own().look.fetch_add(1, Ordering::Release);
        }
    }
}
