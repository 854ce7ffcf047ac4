//! Calls that receive: read, recv and their families.

use core::cell::Cell;

use headwater_host::sync::Ordering;
use headwater_host::table::{self, Handle};
use headwater_host::{next, sys};
use headwater_sockets::recv::Own;
use headwater_sockets::{conn, recv as receiving};
use libc::{
    c_int, c_uint, c_void, iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec,
};

use super::{ended, is_socket, keeping, told};
use crate::vectors::{
    MSG_CMSG_COMPAT, bytes_of, dontwait, is_negative, is_readv, many, one, something,
};
use crate::{calls, foreign, real, refuse, result, wait};

one_way! {
    take, take_kept by receiving::recv_as: readv, preadv2, recv of *mut c_void
}

#[inline(never)]
pub unsafe fn read(h: Handle, fd: c_int, buf: *mut c_void, n: size_t) -> ssize_t {
    // SAFETY: the program's room.
    unsafe {
        // Unlike recv(2) of nothing, read(2) of nothing never waits.
        if n == 0 {
            return real::read(fd, buf, n);
        }
        let own: Own<'_> = &|fd, v| real::read(fd, v[0].iov_base, v[0].iov_len);
        take(h, fd, &one(buf, n), 0, own, || calls::read(fd, buf, n))
    }
}

#[inline(never)]
pub unsafe fn recvfrom(
    h: Handle,
    fd: c_int,
    buf: *mut c_void,
    n: size_t,
    flags: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the program's room for bytes and an address.
    unsafe {
        let flags = flags & !MSG_CMSG_COMPAT;
        let by_kernel = Cell::new(false);
        let own: Own<'_> = &|fd, v| {
            let r = real::recvfrom(fd, v[0].iov_base, v[0].iov_len, flags, from, len);
            by_kernel.set(by_kernel.get() || r >= 0);
            r
        };
        let r = take(h, fd, &one(buf, n), flags, own, || {
            by_kernel.set(true);
            calls::recvfrom(fd, buf, n, flags, from, len)
        });
        // A connected stream names no sender.
        if r >= 0 && !by_kernel.get() && !from.is_null() && !len.is_null() {
            if is_negative(from, *len) {
                return refuse(libc::EINVAL);
            }
            *len = 0;
        }
        r
    }
}

#[inline(never)]
pub unsafe fn recvmsg(h: Handle, fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's message, and the room that it tells of.
    unsafe {
        if msg.is_null() || flags & MSG_CMSG_COMPAT != 0 {
            return real::recvmsg(fd, msg, flags);
        }
        recvmsg_by(fd, msg, flags, |v, own, anew| {
            take(h, fd, v, flags, own, || {
                anew.set(true);
                calls::recvmsg(fd, msg, flags)
            })
        })
    }
}

#[inline(never)]
pub unsafe fn recvmmsg(
    h: Handle,
    fd: c_int,
    msgs: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the program's `n` messages, and its time or null.
    unsafe {
        if n == 0 || flags & MSG_CMSG_COMPAT != 0 {
            return foreign::recvmmsg(fd, msgs, n, flags, timeout);
        }
        if let Some(c) = conn::get(h) {
            let call = || real::recvmmsg(fd, msgs, n, flags, timeout) as ssize_t;
            if let Some(received) = receiving::counted(c, fd, call, |n| bytes_of(msgs, n)) {
                return received as c_int;
            }
            if wait::is_wrong(timeout) {
                return refuse(libc::EINVAL);
            }
            if c.rest().is_some() {
                return receive_rest(c, fd, msgs, n, flags, timeout);
            }
            // Unlike recv(2), which gives what came before it first.
            let asks_for_errors = flags & libc::MSG_ERRQUEUE != 0;
            if !asks_for_errors && let Some(e) = headwater_sockets::look::take_error(c) {
                return refuse(e);
            }
        }
        let r = keeping(h, |kept| receive_each(kept, fd, msgs, n, flags, timeout));
        let again = || calls::recvmmsg(fd, msgs, n, flags, timeout) as ssize_t;
        let own = || real::recvmmsg(fd, msgs, n, flags, timeout) as ssize_t;
        ended(told(r as ssize_t), fd, h, again, own) as c_int
    }
}

/// recvmsg(2) by way of `take`, which sets its last argument where it has made another call in place of this one.
unsafe fn recvmsg_by(
    fd: c_int,
    msg: *mut msghdr,
    flags: c_int,
    take: impl Fn(&[iovec], Own<'_>, &Cell<bool>) -> ssize_t,
) -> ssize_t {
    // SAFETY: the program's message, and the room that it tells of.
    unsafe {
        let v = match (*msg).msg_iovlen {
            0 => &[],
            n => match many((*msg).msg_iov, n) {
                Some(v) => v,
                None => return real::recvmsg(fd, msg, flags),
            },
        };
        if is_negative((*msg).msg_name, (*msg).msg_namelen) {
            return refuse(libc::EINVAL);
        }
        let by_kernel = Cell::new(false);
        // By the kernel come control messages too, unless it only ends what the ring has begun.
        let own: Own<'_> = &|fd, v| {
            let mut own = *msg;
            (own.msg_iov, own.msg_iovlen) = (v.as_ptr() as *mut iovec, v.len() as _);
            let r = real::recvmsg(fd, &mut own, flags);
            if r >= 0 {
                by_kernel.set(true);
                (*msg).msg_namelen = own.msg_namelen;
                (*msg).msg_controllen = own.msg_controllen;
                (*msg).msg_flags = own.msg_flags;
            }
            r
        };
        let r = take(v, own, &by_kernel);
        if r >= 0 && !by_kernel.get() {
            (*msg).msg_namelen = 0;
            (*msg).msg_controllen = 0;
            (*msg).msg_flags = flags & libc::MSG_CMSG_CLOEXEC;
        }
        r
    }
}

/// recvmmsg(2) of a confined process, where a rest may be.
#[cold]
unsafe fn receive_rest(
    c: &'static conn::Conn,
    fd: c_int,
    msgs: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the program's `n` messages, and its time or null.
    unsafe {
        let call = |msgs: *mut libc::mmsghdr, n, flags| real::recvmmsg(fd, msgs, n, flags, timeout);
        if msgs.is_null() {
            return call(msgs, n, flags);
        }
        let all = core::slice::from_raw_parts_mut(msgs, n.min(1024) as usize);
        let once = wait::from_timespec(timeout) == Some(0);
        let own =
            |msgs: &mut [libc::mmsghdr], flags| call(msgs.as_mut_ptr(), msgs.len() as _, flags);
        match headwater_sockets::confine::receive_many(c, all, flags, once, vector, own) {
            Some(told) => result(told) as c_int,
            None => call(msgs, n, flags),
        }
    }
}

/// `None`: the kernel refuses such a message.
unsafe fn vector(msg: &msghdr) -> Option<&[iovec]> {
    match msg.msg_iovlen {
        _ if is_negative(msg.msg_name, msg.msg_namelen) => None,
        0 => Some(&[]),
        // SAFETY: as many as the program's message says.
        n => unsafe { many(msg.msg_iov, n) },
    }
}

unsafe fn receive_each(
    kept: Option<&'static conn::Conn>,
    fd: c_int,
    msgs: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the program's `n` messages, and its time or null.
    unsafe {
        let end = wait::from_timespec(timeout).map(|ns| sys::now().saturating_add(ns));
        let mut each = flags & !libc::MSG_WAITFORONE;
        let mut done = 0;
        while done < n.min(1024) {
            let m = &mut *msgs.add(done as usize);
            let r = match kept {
                Some(c) => recvmsg_by(c.fd(), &mut m.msg_hdr, each, |v, own, _| {
                    take_kept(c, fd, v, each, own)
                }),
                None => calls::recvmsg(fd, &mut m.msg_hdr, each),
            };
            if r < 0 {
                let e = next::errno();
                if done == 0 {
                    return -1;
                }
                // The next call tells it.
                if let (Some(c), false) = (kept, matches!(e, libc::EAGAIN | libc::EINTR)) {
                    c.record().error.store(e, Ordering::Relaxed);
                }
                break;
            }
            m.msg_len = r as c_uint;
            done += 1;
            if flags & libc::MSG_WAITFORONE != 0 {
                each |= libc::MSG_DONTWAIT;
            }
            // The time is looked at between messages alone, as the kernel does.
            if let Some(end) = end {
                let left = end.saturating_sub(sys::now());
                *timeout = sys::timespec(left);
                if left == 0 {
                    break;
                }
            }
            // Urgent data is told at once.
            if m.msg_hdr.msg_flags & libc::MSG_OOB != 0 {
                break;
            }
        }
        done as c_int
    }
}

checked! {
    __read_chk(fd: c_int, buf: *mut c_void, n: size_t, size: size_t) -> ssize_t
        = calls::read(fd, buf, n), if n <= size && table::lookup(fd).is_some();
    __recv_chk(fd: c_int, buf: *mut c_void, n: size_t, size: size_t, flags: c_int) -> ssize_t
        = calls::recv(fd, buf, n, flags), if n <= size && is_socket(fd);
    __recvfrom_chk(fd: c_int, buf: *mut c_void, n: size_t, size: size_t, flags: c_int, from: *mut sockaddr, len: *mut socklen_t) -> ssize_t
        = calls::recvfrom(fd, buf, n, flags, from, len), if n <= size && is_socket(fd);
}
