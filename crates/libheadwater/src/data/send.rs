//! Calls that send: write, send and their families.

use headwater_host::table::Handle;
use headwater_sockets::recv::Own;
use headwater_sockets::{conn, send as sending};
use libc::{c_int, c_uint, c_void, iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};

use super::{ended, keeping, told};
use crate::foreign::{pass, passing, send_each};
use crate::vectors::{
    MSG_CMSG_COMPAT, bytes_of, dontwait, is_negative, is_readv, many, one, something,
};
use crate::{calls, real, refuse, result};

one_way! {
    give, give_kept by sending::send_as: writev, pwritev2, send of *const c_void
}

#[inline(never)]
pub unsafe fn write(h: Handle, fd: c_int, buf: *const c_void, n: size_t) -> ssize_t {
    // SAFETY: the program's bytes.
    unsafe {
        let own: Own<'_> = &|fd, v| real::write(fd, v[0].iov_base, v[0].iov_len);
        give(h, fd, &one(buf, n), 0, own, || calls::write(fd, buf, n))
    }
}

#[inline(never)]
pub unsafe fn sendto(
    h: Handle,
    fd: c_int,
    buf: *const c_void,
    n: size_t,
    flags: c_int,
    to: *const sockaddr,
    len: socklen_t,
) -> ssize_t {
    // SAFETY: the program's bytes and address.
    unsafe {
        let flags = flags & !MSG_CMSG_COMPAT;
        if !to.is_null() && len as usize > size_of::<libc::sockaddr_storage>() {
            return refuse(libc::EINVAL);
        }
        let own: Own<'_> = &|fd, v| real::sendto(fd, v[0].iov_base, v[0].iov_len, flags, to, len);
        let again = || calls::sendto(fd, buf, n, flags, to, len);
        give(h, fd, &one(buf, n), flags, own, again)
    }
}

#[inline(never)]
pub unsafe fn sendmsg(h: Handle, fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's message, and what it points to.
    unsafe {
        if msg.is_null() || flags & MSG_CMSG_COMPAT != 0 {
            return real::sendmsg(fd, msg, flags);
        }
        if (*msg).msg_controllen > 0 {
            return pass(fd, msg, flags);
        }
        sendmsg_by(fd, msg, flags, |v, own| {
            give(h, fd, v, flags, own, || calls::sendmsg(fd, msg, flags))
        })
    }
}

#[inline(never)]
pub unsafe fn sendmmsg(
    h: Handle,
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
        let anew = |msg| calls::sendmsg(fd, msg, flags);
        if let Some(told) = passing(msgs, n, anew) {
            return told;
        }
        if let Some(c) = conn::get(h) {
            let call = || real::sendmmsg(fd, msgs, n, flags) as ssize_t;
            if let Some(sent) = sending::counted(c, call, |n| bytes_of(msgs, n)) {
                return sent as c_int;
            }
        }
        let r = keeping(h, |kept| {
            send_each(msgs, n, |msg| match kept {
                Some(c) if (*msg).msg_controllen == 0 => {
                    sendmsg_by(c.fd(), msg, flags, |v, own| give_kept(c, fd, v, flags, own))
                }
                _ => anew(msg),
            })
        });
        let again = || calls::sendmmsg(fd, msgs, n, flags) as ssize_t;
        let own = || real::sendmmsg(fd, msgs, n, flags) as ssize_t;
        ended(told(r as ssize_t), fd, h, again, own) as c_int
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
