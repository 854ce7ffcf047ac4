//! Calls that send: write, send and their families.

use core::ptr::null;

use headwater_host::table::{self, Handle, Kind};
use headwater_host::{next, process, signal};
use headwater_sockets::recv::Own;
use headwater_sockets::{conn, send as sending};
use libc::{c_int, c_uint, c_void, iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};

use super::{
    MSG_CMSG_COMPAT, RWF_HIPRI, RWF_NOWAIT, bytes_of, dontwait, ended, is_negative, is_socket,
    keeping, length, many, one, refuse, something, told,
};
use crate::passed::Passed;
use crate::process::each_passed;
use crate::{real, result, sctp, streams};

/// # Safety
/// `iov` are buffers that can be read.
pub(super) unsafe fn give_kept(
    c: &'static conn::Conn,
    fd: c_int,
    iov: &[iovec],
    flags: c_int,
    own: Own<'_>,
) -> ssize_t {
    // SAFETY: the caller's buffers.
    match unsafe { sending::send_as(c, fd, iov, flags, own) } {
        Some(r) => result(r),
        None => own(c.fd(), iov),
    }
}

#[inline(never)]
unsafe fn give(
    fd: c_int,
    iov: &[iovec],
    flags: c_int,
    own: Own<'_>,
    again: impl FnOnce() -> ssize_t,
) -> ssize_t {
    match table::socket(fd) {
        // SAFETY: the program's buffers.
        Some(h) => unsafe { give_of(h, fd, iov, flags, own, again) },
        None => own(fd, iov),
    }
}

/// As [`give`], of a socket.
#[inline]
unsafe fn give_of(
    h: Handle,
    fd: c_int,
    iov: &[iovec],
    flags: c_int,
    own: Own<'_>,
    again: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // SAFETY: the program's buffers.
    let told = conn::get(h).and_then(|c| unsafe { sending::send_as(c, fd, iov, flags, own) });
    ended(told, fd, h, again, || own(fd, iov))
}

unless_foreign! {
    fn write(fd: c_int, buf: *const c_void, n: size_t) -> ssize_t where h is a socket {
        let own: Own<'_> = &|fd, v| real::write(fd, v[0].iov_base, v[0].iov_len);
        give_of(h, fd, &one(buf, n), 0, own, || write(fd, buf, n))
    } or a stream {
        streams::write(h, buf, n)
    } else {
        if let Some(h) = streams::at(fd) {
            return streams::write(h, buf, n);
        }
        if let Some(h) = sctp::at(fd) {
            return sctp::sendv(h, one(buf, n).as_ptr(), 1, 0);
        }
    }
}

unless_foreign! {
    fn writev(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t {
        if let Some(h) = streams::at(fd) {
            return streams::writev(h, iov, n);
        }
        if let Some(h) = sctp::at(fd) {
            return sctp::sendv(h, iov, n as usize, 0);
        }
        match something(iov, n as usize) {
            Some(v) => {
                let own: Own<'_> = &|fd, v| real::writev(fd, v.as_ptr(), v.len() as c_int);
                give(fd, v, 0, own, || writev(fd, iov, n))
            }
            None => real::writev(fd, iov, n),
        }
    }
}

unless_foreign! {
    fn pwritev2(
        fd: c_int,
        iov: *const iovec,
        n: c_int,
        at: off_t,
        flags: c_int) -> ssize_t {
        if at != -1 || flags & !(RWF_NOWAIT | RWF_HIPRI) != 0 {
            return real::pwritev2(fd, iov, n, at, flags);
        }
        if let Some(h) = streams::at(fd) {
            return streams::writev(h, iov, n);
        }
        if let Some(h) = sctp::at(fd) {
            return sctp::sendv(h, iov, n as usize, dontwait(flags));
        }
        match something(iov, n as usize) {
            Some(v) => {
                let own: Own<'_> =
                    &|fd, v| real::pwritev2(fd, v.as_ptr(), v.len() as c_int, -1, flags);
                let again = || pwritev2(fd, iov, n, at, flags);
                give(fd, v, dontwait(flags), own, again)
            }
            None => real::pwritev2(fd, iov, n, at, flags),
        }
    }
}

unless_foreign! {
    fn send(
        fd: c_int,
        buf: *const c_void,
        n: size_t,
        flags: c_int) -> ssize_t where h is a socket {
        let flags = flags & !MSG_CMSG_COMPAT;
        let own: Own<'_> = &|fd, v| real::send(fd, v[0].iov_base, v[0].iov_len, flags);
        give_of(h, fd, &one(buf, n), flags, own, || {
            send(fd, buf, n, flags)
        })
    } else {
        no_stream!(fd);
        let flags = flags & !MSG_CMSG_COMPAT;
        if let Some(h) = sctp::at(fd) {
            return sctp::sendto(h, &one(buf, n), flags, null(), 0);
        }
    }
}

unless_foreign! {
    fn sendto(
        fd: c_int,
        buf: *const c_void,
        n: size_t,
        flags: c_int,
        to: *const sockaddr,
        len: socklen_t) -> ssize_t {
        no_stream!(fd);
        let flags = flags & !MSG_CMSG_COMPAT;
        if let Some(h) = sctp::at(fd) {
            return sctp::sendto(h, &one(buf, n), flags, to, len);
        }
        if !to.is_null() && len as usize > size_of::<libc::sockaddr_storage>() && is_socket(fd) {
            return refuse(libc::EINVAL);
        }
        let own: Own<'_> =
            &|fd, v| real::sendto(fd, v[0].iov_base, v[0].iov_len, flags, to, len);
        give(fd, &one(buf, n), flags, own, || {
            sendto(fd, buf, n, flags, to, len)
        })
    }
}

/// # Safety
/// As sendmsg(2) asks of its caller: a message, and what it points to.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's message, and what it points to.
    unsafe {
        if !table::any_tracked() || msg.is_null() || flags & MSG_CMSG_COMPAT != 0 {
            return real::sendmsg(fd, msg, flags);
        }
        no_stream!(fd);
        if let Some(h) = sctp::at(fd) {
            return sctp::sendmsg(h, msg, flags);
        }
        if (*msg).msg_controllen > 0 {
            if sctp::refuses_passing(msg) {
                return -1;
            }
            if table::socket(fd).is_some() {
                // What a control message asks of TCP (time stamps, zero-copy) only the kernel can do.
                headwater_sockets::life::passing_on(fd);
            }
            return pass(fd, msg, flags);
        }
        if table::socket(fd).is_none() {
            return real::sendmsg(fd, msg, flags);
        }
        sendmsg_by(fd, msg, flags, |v, own| {
            give(fd, v, flags, own, || sendmsg(fd, msg, flags))
        })
    }
}

/// sendmsg(2) without control messages, by way of `give`.
unsafe fn sendmsg_by(
    fd: c_int,
    msg: *const msghdr,
    flags: c_int,
    give: impl Fn(&[iovec], Own<'_>) -> ssize_t,
) -> ssize_t {
    // SAFETY: the program's message, and what it points to.
    unsafe {
        if is_negative((*msg).msg_name, (*msg).msg_namelen) {
            return refuse(libc::EINVAL);
        }
        match many((*msg).msg_iov, (*msg).msg_iovlen) {
            Some(v) => give(v, &|fd, v| {
                let mut msg = *msg;
                msg.msg_iov = v.as_ptr().cast_mut();
                msg.msg_iovlen = v.len() as _;
                real::sendmsg(fd, &msg, flags)
            }),
            None => real::sendmsg(fd, msg, flags),
        }
    }
}

/// # Safety
/// As sendmmsg(2) asks of its caller: `n` messages, and what they point to.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    msgs: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's `n` messages, and what they point to.
    unsafe {
        if flags & MSG_CMSG_COMPAT != 0 {
            return real::sendmmsg(fd, msgs, n, flags);
        }
        if let Some(h) = sctp::at(fd) {
            return sctp::sendmmsg(h, msgs, n, flags);
        }
        if table::any_tracked() && !msgs.is_null() && n > 0 {
            let all = core::slice::from_raw_parts(msgs, n.min(1024) as usize);
            if all.iter().any(|m| sctp::refuses_passing(&m.msg_hdr)) {
                return -1;
            }
            if process::present() && all.iter().any(|m| passes_ours(&m.msg_hdr)) {
                return send_each(None, fd, msgs, n, flags);
            }
        }
        let Some(h) = table::socket(fd) else {
            return real::sendmmsg(fd, msgs, n, flags);
        };
        if let Some(c) = conn::get(h) {
            let call = || real::sendmmsg(fd, msgs, n, flags) as ssize_t;
            if let Some(sent) = sending::counted(c, call, |n| bytes_of(msgs, n)) {
                return sent as c_int;
            }
        }
        let r = keeping(h, |kept| send_each(kept, fd, msgs, n, flags));
        let again = || sendmmsg(fd, msgs, n, flags) as ssize_t;
        let own = || real::sendmmsg(fd, msgs, n, flags) as ssize_t;
        ended(told(r as ssize_t), fd, h, again, own) as c_int
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

unsafe fn send_each(
    kept: Option<&'static conn::Conn>,
    fd: c_int,
    msgs: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's `n` messages, and what they point to.
    unsafe {
        for i in 0..n.min(1024) as usize {
            let m = msgs.add(i);
            let msg = &raw const (*m).msg_hdr;
            let r = signal::going_on(i > 0, || match kept {
                Some(c) if (*msg).msg_controllen == 0 => {
                    sendmsg_by(c.fd(), msg, flags, |v, own| give_kept(c, fd, v, flags, own))
                }
                _ => sendmsg(fd, msg, flags),
            });
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
#[inline(never)]
unsafe fn pass(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's message, and what it points to.
    unsafe {
        let mut passed = Passed::new(msg);
        if let Err(e) = passed.prepare(msg) {
            return result(Err(e));
        }
        let r = real::sendmsg(fd, passed.message(msg), flags);
        let errno = next::errno();
        if r >= 0 {
            passed.sent();
        }
        next::set_errno(errno);
        r
    }
}
