//! How this process's end of a connection ends: with its last number, or with the last call that still waited then.

use headwater_host::sync::{Ordering, fence};
use headwater_host::{hidden, next, process, sys};

use crate::conn::{Closed, Conn};
use crate::keeper::{self, Then};
use crate::reset::{is_reset_by_close, linger, reset_if_unread};
use crate::segment::View;
use crate::{images, link, look, sets, switch, takeover};

/// The last waiting call is over: it ends a connection that the program closed meanwhile.
#[unsafe(link_section = ".text.life")]
pub fn last_pin_gone(c: &'static Conn) {
    if !c.is_left() || !c.close_step(Closed::Left, Closed::Ended) {
        return;
    }
    let errno = next::errno();
    c.await_users();
    sets::ended(c);
    let fd = c.fd();
    // SAFETY: nobody else ends it, and its use of the segment is given back last.
    if let Some(v) = unsafe { c.view_held() } {
        await_sections(&v);
        let after = last_close(c, v, fd);
        hidden::close(fd);
        after.finish();
    }
    next::set_errno(errno);
}

/// The connection has ended for this process: until none of its threads is inside a section that began before. Those that
/// come later see the end.
pub fn await_sections(v: &View<'_>) {
    let me = process::owner();
    fence(Ordering::SeqCst);
    for lock in [&v.record.sending.lock, &v.record.receiving.lock] {
        sys::Turns::while_it_holds(|| lock.owner() == me);
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
pub fn goes_on(v: &View<'_>) -> bool {
    v.is_shared() || images::is_out(v.record)
}

/// This process has the end no more, once what is returned has been done.
pub fn last_close(c: &'static Conn, v: View<'static>, fd: i32) -> AfterClose {
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

/// Before the last close of an end: is there something left to send, for which a keeper stays?
pub fn leaves_keeper(c: &'static Conn, v: &View<'static>, fd: i32) -> bool {
    if images::is_out(v.record) && !switch::must_withdraw(v) {
        // An image that was started may go on with it.
        return false;
    }
    if end_sending(c, v, fd) || is_reset_by_close(v, fd) {
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
pub fn withdraw_for_others(c: &'static Conn, v: &View<'static>, fd: i32) {
    if switch::must_withdraw(v) && !switch::withdraw_to(c, v, fd) && !is_reset_by_close(v, fd) {
        keeper::leave(c, v, fd, Then::Close);
    }
}

/// Nothing more is sent by this end: what the peer wants by the kernel goes there first. False: the kernel has no room for
/// all of it now.
pub fn end_sending(c: &Conn, v: &View<'_>, fd: i32) -> bool {
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
