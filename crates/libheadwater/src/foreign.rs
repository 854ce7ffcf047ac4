//! Calls that move data, on sockets that are none of ours: descriptors of ours may be in a message on any.

use headwater_host::next::keep_errno;
use headwater_host::{process, signal, table};
use libc::{c_int, c_uint, mmsghdr, msghdr, ssize_t, timespec};

use crate::files::fresh;
use crate::passed::{Passed, each_passed};
use crate::vectors::{MSG_CMSG_COMPAT, length};
use crate::{real, refuse, sctp};

/// What a foreign socket brings may be descriptors under numbers that we knew.
///
/// # Safety
/// As recvmsg(2) asks of its caller.
#[inline(always)]
pub unsafe fn recvmsg(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's message, and the room that it tells of.
    unsafe {
        let r = real::recvmsg(fd, msg, flags);
        received(msg, r >= 0);
        r
    }
}

/// # Safety
/// As recvmmsg(2) asks of its caller.
pub unsafe fn recvmmsg(
    fd: c_int,
    msgs: *mut mmsghdr,
    n: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the program's `n` messages, and its time or null.
    unsafe {
        let r = real::recvmmsg(fd, msgs, n, flags, timeout);
        for i in 0..r.max(0) as usize {
            received(&raw const (*msgs.add(i)).msg_hdr, true);
        }
        r
    }
}

/// A message has come round us: descriptors in it are new.
#[inline(always)]
unsafe fn received(msg: *const msghdr, well: bool) {
    // SAFETY: null or the program's message, by the caller's word.
    unsafe {
        if well && table::any_tracked() && !msg.is_null() && (*msg).msg_controllen > 0 {
            each_passed(msg, |fd| {
                fresh(fd);
            });
        }
    }
}

/// Descriptors of ours may go in a message on any socket.
///
/// # Safety
/// As sendmsg(2) asks of its caller.
#[inline(always)]
pub unsafe fn sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's message, and what it points to.
    unsafe {
        if !table::any_tracked()
            || msg.is_null()
            || flags & MSG_CMSG_COMPAT != 0
            || (*msg).msg_controllen == 0
        {
            return real::sendmsg(fd, msg, flags);
        }
        pass(fd, msg, flags)
    }
}

/// `send` sends one message, as [`sendmsg`] or on what has its number by now.
///
/// # Safety
/// As sendmmsg(2) asks of its caller.
pub unsafe fn sendmmsg(
    fd: c_int,
    msgs: *mut mmsghdr,
    n: c_uint,
    flags: c_int,
    send: impl Fn(*const msghdr) -> ssize_t,
) -> c_int {
    // SAFETY: the program's `n` messages, and what they point to.
    unsafe {
        if flags & MSG_CMSG_COMPAT == 0
            && let Some(told) = passing(msgs, n, send)
        {
            return told;
        }
        real::sendmmsg(fd, msgs, n, flags)
    }
}

/// sendmmsg(2) by `send`, if descriptors of ours are in the messages.
///
/// # Safety
/// As sendmmsg(2) asks of its caller.
pub unsafe fn passing(
    msgs: *mut mmsghdr,
    n: c_uint,
    send: impl Fn(*const msghdr) -> ssize_t,
) -> Option<c_int> {
    if !table::any_tracked() || msgs.is_null() || n == 0 {
        return None;
    }
    // SAFETY: the program's `n` messages, and what they point to.
    unsafe {
        let all = core::slice::from_raw_parts(msgs, n.min(1024) as usize);
        if all.iter().any(|m| sctp::refuses_passing(&m.msg_hdr)) {
            return Some(-1);
        }
        let passes = process::present() && all.iter().any(|m| passes_ours(&m.msg_hdr));
        passes.then(|| send_each(msgs, n, send))
    }
}

/// Is a connection among the descriptors in a message?
unsafe fn passes_ours(msg: &msghdr) -> bool {
    // SAFETY: the program's message, and what it points to.
    unsafe {
        let mut found = false;
        if msg.msg_controllen > 0 {
            each_passed(msg, |fd| found |= table::socket(fd).is_some());
        }
        found
    }
}

/// sendmmsg(2), one message after the other by `send`.
///
/// # Safety
/// As sendmmsg(2) asks of its caller.
pub unsafe fn send_each(
    msgs: *mut mmsghdr,
    n: c_uint,
    send: impl Fn(*const msghdr) -> ssize_t,
) -> c_int {
    // SAFETY: the program's `n` messages, and what they point to.
    unsafe {
        for i in 0..n.min(1024) as usize {
            let m = msgs.add(i);
            let r = signal::going_on(i > 0, || send(&raw const (*m).msg_hdr));
            if r < 0 {
                return if i > 0 { i as c_int } else { -1 };
            }
            (*m).msg_len = r as c_uint;
            // The rest of a short message comes before the next one: it is the caller's to send.
            if (r as usize) < length(&(*m).msg_hdr) {
                return i as c_int + 1;
            }
        }
        n.min(1024) as c_int
    }
}

/// Sends a message with control messages.
///
/// # Safety
/// As sendmsg(2) asks of its caller.
#[inline(never)]
pub unsafe fn pass(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's message, and what it points to.
    unsafe {
        if sctp::refuses_passing(msg) {
            return -1;
        }
        if table::socket(fd).is_some() {
            // What a control message asks of TCP (time stamps, zero-copy) only the kernel can do.
            headwater_sockets::life::passing_on(fd);
        }
        let mut passed = Passed::new(msg);
        if let Err(e) = passed.prepare(msg) {
            return refuse(e);
        }
        let r = real::sendmsg(fd, passed.message(msg), flags);
        if r >= 0 {
            keep_errno(|| passed.sent());
        }
        r
    }
}
