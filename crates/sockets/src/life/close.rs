//! How the numbers of a socket go, and with the last of them its end of the connection.

use headwater_channel::lock::Owner;
use headwater_host::counters::Reason;
use headwater_host::sync::{Ordering, fence};
use headwater_host::table::{self, Kind};
use headwater_host::{epoll, process, sys};

use crate::conn::{self, Closed, Conn, Phase};
use crate::keeper::{self, Then};
use crate::life::local;
use crate::record::{PASSED, Record};
use crate::segment::View;
use crate::{
    boards, comeback, freeze, holders, images, link, look, pins, restart, sets, switch, takeover,
};

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

/// The number `fd` goes; the shadow can be reached by `shadow` still, if that is not negative.
#[unsafe(link_section = ".text.life")]
fn going(fd: i32, shadow: i32) -> Option<AfterClose> {
    // One that the former image looked after, and this one not yet, goes by `inherit`.
    let h = table::lookup(fd).filter(|h| h.kind() == Kind::Socket)?;
    let c = conn::get(h)?;
    restart::going(c, fd);
    let others = c.refs.load(Ordering::Acquire) > 1;
    let is_blocked = c.phase() == Phase::Carried && c.pins.load(Ordering::SeqCst) > 0;
    if !others && shadow == fd {
        leave_registrations(c, fd);
    }
    if others || is_blocked {
        sets::orphaned(c, fd);
    } else {
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
            let looks = pins::entered();
            if let (Ok(_), Some(v)) = (moved, c.view(&looks)) {
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
            // SAFETY: nobody else ends it, and its use of the segment is given back last.
            unsafe { c.view_held() }.map(|v| {
                await_sections(&v);
                last_close(c, v, shadow)
            })
        }
        Phase::Free | Phase::Rest => None,
    }
}

/// The last number of this process goes, while other processes have the connection: the kernel keeps what this one has registered of it,
/// and it alone can tell, by whatever number that was. What was taken out of a set goes from the kernel's too.
#[unsafe(link_section = ".text.life")]
fn leave_registrations(c: &'static Conn, fd: i32) {
    let looks = pins::entered();
    let Some(v) = c.view(&looks) else { return };
    let goes_on = v.own().holders.load(Ordering::Acquire) > 1
        || images::is_out(c.record())
        // It may be under way in a message.
        || c.record().has(PASSED);
    if !goes_on || !sets::know(c, fd) {
        return;
    }
    if sets::were_given(c, fd) {
        freeze::for_good(c, &v, None, Reason::EpollClosed);
    }
    epoll::leave_one(fd, conn::handle(c));
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
    // SAFETY: nobody else ends it, and its use of the segment is given back last.
    if let Some(v) = unsafe { c.view_held() } {
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
pub(super) fn goes_on(v: &View<'_>) -> bool {
    v.is_shared() || images::is_out(v.record)
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
        let by_ring = !images::is_out(v.record) && !switch::is_taken_back(&v);
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
    let looks = pins::entered();
    if let Some(v) = c.view(&looks) {
        recall_sleepers(c, &v);
    }
    drop(looks);
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

/// Before the last close of an end: is there something left to send, for which a keeper stays?
pub(super) fn leaves_keeper(c: &'static Conn, v: &View<'static>, fd: i32) -> bool {
    if images::is_out(v.record) && !switch::must_withdraw(v) {
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
pub(super) fn withdraw_for_others(c: &'static Conn, v: &View<'static>, fd: i32) {
    if switch::must_withdraw(v)
        && !switch::withdraw_to(c, v, fd)
        && !keeper::is_reset_by_close(v, fd)
    {
        keeper::leave(c, v, fd, Then::Close);
    }
}

/// Nothing more is sent by this end: what the peer wants by the kernel goes there first. False: the kernel has no room for
/// all of it now.
pub(super) fn end_sending(c: &Conn, v: &View<'_>, fd: i32) -> bool {
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

/// TCP resets a connection that is closed with unread data.
pub(super) fn reset_if_unread(c: &Conn, v: &View<'static>, fd: i32) {
    if is_last_to_read(c, v) {
        reset(fd);
    }
}

/// Is something unread, and has nobody an image that may read it yet? An image that the connection was lent to may have closed it
/// unused, and tells nobody; nor does one that has the kernel's part of it alone.
pub(super) fn is_last_to_read(c: &Conn, v: &View<'static>) -> bool {
    let inode = c.inode.load(Ordering::Relaxed);
    let is_out = images::is_out(v.record) || comeback::is_out(v.record);
    is_unread(v) && (!is_out || is_left_unread(v, v.record, inode))
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

/// SO_LINGER, on and seconds, of a connection whose close is a reset.
pub(super) const AT_ONCE: [i32; 2] = [1, 0];

/// The close that comes is to be a reset.
pub fn reset(fd: i32) {
    set_linger(fd, AT_ONCE);
}

pub(super) fn linger(fd: i32) -> Option<[i32; 2]> {
    sys::sockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER).ok()
}

pub(super) fn set_linger(fd: i32, to: [i32; 2]) -> bool {
    sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, &to).is_ok()
}
