//! Connections that are left to the kernel: for an option, or because somebody else gets the descriptor.

use headwater_host::counters::Reason;
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{epoll, process};

use crate::conn::{self, Conn, Phase};
use crate::record::{APART, BARRED, PASSED};
use crate::relay::{self, Relay};
use crate::{freeze, pins, takeover};

/// The program asks for something that rings can't do.
pub fn needs_kernel(fd: i32) {
    to_kernel(fd, Reason::Option);
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
    let looks = pins::entered();
    c.view(&looks)
        .is_none_or(|v| freeze::if_read(c, &v, Reason::Option))
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
    let looks = pins::entered();
    match c.view(&looks) {
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
    let looks = pins::entered();
    if let Some(v) = c.view(&looks) {
        freeze::for_good(c, &v, process::is_borrowed().then_some(fd), reason);
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
