//! How the numbers of a socket go.

use headwater_channel::lock::Owner;
use headwater_host::counters::Reason;
use headwater_host::sync::Ordering;
use headwater_host::table::{self, Kind};
use headwater_host::{epoll, process, sys};

use crate::conn::{self, Closed, Conn, Phase};
use crate::ending::{AfterClose, await_sections, last_close, last_pin_gone};
use crate::life::local;
use crate::record::PASSED;
use crate::segment::View;
use crate::{boards, freeze, images, pins, restart, sets, takeover};

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
            && let Some(other) = table::numbers(h).next()
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
