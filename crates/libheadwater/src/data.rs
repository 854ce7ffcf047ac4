//! Calls that move data.

use core::cell::Cell;
use core::ptr::{null, null_mut};

use headwater_host::sync::Ordering;
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{next, process, signal, sys};
use headwater_sockets::recv::Own;
use headwater_sockets::{conn, pins, recv as receiving, send as sending, splice as splicing};
use libc::{
    c_int, c_uint, c_void, iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec,
};

use crate::files::{self, Now, fresh};
use crate::passed::Passed;
use crate::process::each_passed;
use crate::{real, result, sctp, streams, wait};

/// Calls with control messages refuse it before anything else; to the others it says nothing.
const MSG_CMSG_COMPAT: c_int = i32::MIN;

/// Defines a call on a descriptor by what it does for ours; with `where h is a socket`, first for those that most of ours are, then
/// with `or a stream` for those, `else` for those that are neither, unless they become one by their use. A foreign one is passed on first,
/// without the registers that the rest needs, which would cost it more than all else.
macro_rules! unless_foreign {
    ($(#[$m:meta])* fn $name:ident($fd:ident: c_int $(, $arg:ident: $ty:ty)*) -> $ret:ty
        where $h:ident is a socket $of_socket:block $(or a stream $of_stream:block)? else $body:block
    ) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($fd: c_int $(, $arg: $ty)*) -> $ret {
            #[inline(never)]
            $(#[$m])*
            unsafe fn sockets($fd: c_int $(, $arg: $ty)*, $h: Handle) -> $ret $of_socket

            #[inline(never)]
            unsafe fn others($fd: c_int $(, $arg: $ty)*) -> $ret {
                $body
                match table::socket($fd) {
                    Some(h) => sockets($fd $(, $arg)*, h),
                    None => real::$name($fd $(, $arg)*),
                }
            }

            match table::lookup($fd) {
                None => real::$name($fd $(, $arg)*),
                Some(h) if h.kind() == Kind::Socket => sockets($fd $(, $arg)*, h),
                $(Some($h) if $h.kind() == Kind::Stream => $of_stream,)?
                Some(_) => others($fd $(, $arg)*),
            }
        }
    };
    ($(#[$m:meta])* fn $name:ident($fd:ident: c_int $(, $arg:ident: $ty:ty)*) -> $ret:ty $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($fd: c_int $(, $arg: $ty)*) -> $ret {
            #[inline(never)]
            $(#[$m])*
            unsafe extern "C-unwind" fn ours($fd: c_int $(, $arg: $ty)*) -> $ret $body

            if table::lookup($fd).is_none() {
                return real::$name($fd $(, $arg)*);
            }
            ours($fd $(, $arg)*)
        }
    };
}

/// send(2) and its kind are for sockets: what carries a stream is not the program's to use.
macro_rules! no_stream {
    ($fd:expr) => {
        if crate::streams::is_one($fd) {
            next::set_errno(libc::ENOTSOCK);
            return -1;
        }
    };
}

/// `own` is the program's call, for as long as the kernel serves the connection; `again` begins it anew, where a handler or another
/// thread has given its number to something else.
#[inline(never)]
unsafe fn take(
    fd: c_int,
    iov: &[iovec],
    flags: c_int,
    own: Own<'_>,
    again: impl FnOnce() -> ssize_t,
) -> ssize_t {
    match table::socket(fd) {
        Some(h) => take_of(h, fd, iov, flags, own, again),
        None => own(fd, iov),
    }
}

/// As [`take`], of a socket.
#[inline]
unsafe fn take_of(
    h: Handle,
    fd: c_int,
    iov: &[iovec],
    flags: c_int,
    own: Own<'_>,
    again: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let told = conn::get(h).and_then(|c| receiving::recv_as(c, fd, iov, flags, own));
    ended(told, fd, h, again, || own(fd, iov))
}

/// As [`take`], as a step of a call on `fd` that keeps its connection.
unsafe fn take_kept(
    c: &'static conn::Conn,
    fd: c_int,
    iov: &[iovec],
    flags: c_int,
    own: Own<'_>,
) -> ssize_t {
    match receiving::recv_as(c, fd, iov, flags, own) {
        Some(r) => result(r),
        None => own(c.fd(), iov),
    }
}

unsafe fn give_kept(
    c: &'static conn::Conn,
    fd: c_int,
    iov: &[iovec],
    flags: c_int,
    own: Own<'_>,
) -> ssize_t {
    match sending::send_as(c, fd, iov, flags, own) {
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
        Some(h) => give_of(h, fd, iov, flags, own, again),
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
    let told = conn::get(h).and_then(|c| sending::send_as(c, fd, iov, flags, own));
    ended(told, fd, h, again, || own(fd, iov))
}

/// Was a call refused as on what is no socket? Its number may stand for something else by now.
#[inline]
fn is_refused(r: Result<usize, i32>) -> bool {
    matches!(r, Err(libc::ENOTSOCK | libc::EBADF))
}

/// What a call on the socket `h` comes to that was `told` this; where it was told nothing it is `own`. It begins `again` where its
/// number stands for something else by now.
#[inline]
fn ended(
    told: Option<Result<usize, i32>>,
    fd: c_int,
    h: Handle,
    again: impl FnOnce() -> ssize_t,
    own: impl FnOnce() -> ssize_t,
) -> ssize_t {
    match told {
        Some(r) if is_refused(r) => anew(fd, h, again, own).unwrap_or_else(|| result(r)),
        Some(r) => result(r),
        None => own(),
    }
}

/// What a call of several steps was told.
fn told(r: ssize_t) -> Option<Result<usize, i32>> {
    Some(if r < 0 {
        Err(next::errno())
    } else {
        Ok(r as usize)
    })
}

/// A call on the socket `h` that was refused, for what has its number by now: `own` of the kernel's. `None`: `h` has it still.
#[cold]
fn anew(
    fd: c_int,
    h: Handle,
    again: impl FnOnce() -> ssize_t,
    own: impl FnOnce() -> ssize_t,
) -> Option<ssize_t> {
    match files::now(fd, h) {
        Now::Same => None,
        Now::Ours => Some(again()),
        Now::Kernels => Some(own()),
    }
}

fn refuse(errno: c_int) -> ssize_t {
    next::set_errno(errno);
    -1
}

/// The length of an address that is no length.
fn is_negative<T>(name: *const T, len: socklen_t) -> bool {
    !name.is_null() && (len as i32) < 0
}

/// What a call for many messages has moved.
unsafe fn bytes_of(msgs: *const libc::mmsghdr, n: ssize_t) -> usize {
    (0..n as usize)
        .map(|i| (*msgs.add(i)).msg_len as usize)
        .sum()
}

/// What the kernel can't move data of at all?
fn is_ours(fd: c_int) -> bool {
    streams::is_one(fd) || sctp::is_one(fd)
}

fn is_socket(fd: c_int) -> bool {
    table::lookup(fd)
        .is_some_and(|h| matches!(h.kind(), Kind::Socket | Kind::Sctp | Kind::Inherited))
}

fn one(buf: *const c_void, n: size_t) -> [iovec; 1] {
    [iovec {
        iov_base: buf as *mut c_void,
        iov_len: n,
    }]
}

/// A list that the kernel would not refuse before it looked at the descriptor.
unsafe fn many<'a>(iov: *const iovec, n: usize) -> Option<&'a [iovec]> {
    (n > 0 && n <= 1024 && !iov.is_null())
        .then(|| core::slice::from_raw_parts(iov, n))
        .filter(|v| v.iter().all(|v| v.iov_len <= isize::MAX as usize))
}

unless_foreign! {
    fn read(fd: c_int, buf: *mut c_void, n: size_t) -> ssize_t where h is a socket {
        // Unlike recv(2) of nothing, read(2) of nothing never waits.
        if n == 0 {
            return real::read(fd, buf, n);
        }
        let own: Own<'_> = &|fd, v| real::read(fd, v[0].iov_base, v[0].iov_len);
        take_of(h, fd, &one(buf, n), 0, own, || read(fd, buf, n))
    } or a stream {
        streams::read(h, buf, n)
    } else {
        if let Some(h) = streams::at(fd) {
            return streams::read(h, buf, n);
        }
        if let Some(h) = sctp::at(fd) {
            return sctp::readv(h, one(buf, n).as_ptr(), 1);
        }
    }
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

/// [`many`] that hold something: of nothing the kernel asks no socket, and says 0.
unsafe fn something<'a>(iov: *const iovec, n: usize) -> Option<&'a [iovec]> {
    many(iov, n).filter(|v| v.iter().any(|v| v.iov_len > 0))
}

unless_foreign! {
    fn readv(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t {
        if let Some(h) = streams::at(fd) {
            return streams::readv(h, iov, n);
        }
        if let Some(h) = sctp::at(fd) {
            return sctp::readv(h, iov, n as usize);
        }
        match something(iov, n as usize) {
            Some(v) => {
                let own: Own<'_> = &|fd, v| real::readv(fd, v.as_ptr(), v.len() as c_int);
                take(fd, v, 0, own, || readv(fd, iov, n))
            }
            None => real::readv(fd, iov, n),
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
    /// At no position it is readv(2) with flags, which mean nothing to a socket but for RWF_NOWAIT; at one, the kernel refuses it.
    fn preadv2(
        fd: c_int,
        iov: *const iovec,
        n: c_int,
        at: off_t,
        flags: c_int) -> ssize_t {
        if at != -1 || flags & !(RWF_NOWAIT | RWF_HIPRI) != 0 {
            return real::preadv2(fd, iov, n, at, flags);
        }
        if let Some(h) = streams::at(fd) {
            return streams::readv(h, iov, n);
        }
        if let Some(h) = sctp::at(fd) {
            return sctp::readv(h, iov, n as usize);
        }
        match something(iov, n as usize) {
            Some(v) => {
                let own: Own<'_> =
                    &|fd, v| real::preadv2(fd, v.as_ptr(), v.len() as c_int, -1, flags);
                let again = || preadv2(fd, iov, n, at, flags);
                take(fd, v, dontwait(flags), own, again)
            }
            None => real::preadv2(fd, iov, n, at, flags),
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

const RWF_HIPRI: c_int = 1;
const RWF_NOWAIT: c_int = 8;

fn dontwait(flags: c_int) -> c_int {
    if flags & RWF_NOWAIT != 0 {
        libc::MSG_DONTWAIT
    } else {
        0
    }
}

unless_foreign! {
    fn recv(
        fd: c_int,
        buf: *mut c_void,
        n: size_t,
        flags: c_int) -> ssize_t where h is a socket {
        let flags = flags & !MSG_CMSG_COMPAT;
        let own: Own<'_> = &|fd, v| real::recv(fd, v[0].iov_base, v[0].iov_len, flags);
        take_of(h, fd, &one(buf, n), flags, own, || {
            recv(fd, buf, n, flags)
        })
    } else {
        no_stream!(fd);
        let flags = flags & !MSG_CMSG_COMPAT;
        if let Some(h) = sctp::at(fd) {
            return sctp::recvfrom(h, &one(buf, n), flags, null_mut(), null_mut());
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
    fn recvfrom(
        fd: c_int,
        buf: *mut c_void,
        n: size_t,
        flags: c_int,
        from: *mut sockaddr,
        len: *mut socklen_t) -> ssize_t {
        no_stream!(fd);
        let flags = flags & !MSG_CMSG_COMPAT;
        if let Some(h) = sctp::at(fd) {
            return sctp::recvfrom(h, &one(buf, n), flags, from, len);
        }
        let by_kernel = Cell::new(false);
        let own: Own<'_> = &|fd, v| {
            let r = real::recvfrom(fd, v[0].iov_base, v[0].iov_len, flags, from, len);
            by_kernel.set(by_kernel.get() || r >= 0);
            r
        };
        let r = take(fd, &one(buf, n), flags, own, || {
            by_kernel.set(true);
            recvfrom(fd, buf, n, flags, from, len)
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

/// What a foreign socket brings may be descriptors under numbers that we knew.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t {
    if !table::any_tracked() || flags & MSG_CMSG_COMPAT != 0 {
        return real::recvmsg(fd, msg, flags);
    }
    if table::lookup(fd).is_some() {
        return recvmsg_known(fd, msg, flags);
    }
    let r = real::recvmsg(fd, msg, flags);
    received(msg, r >= 0);
    r
}

#[inline(never)]
unsafe fn recvmsg_known(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t {
    no_stream!(fd);
    if let Some(h) = sctp::at(fd) {
        return sctp::recvmsg(h, msg, flags);
    }
    if table::socket(fd).is_none() || msg.is_null() {
        return real::recvmsg(fd, msg, flags);
    }
    recvmsg_by(fd, msg, flags, |v, own, anew| {
        take(fd, v, flags, own, || {
            anew.set(true);
            recvmsg(fd, msg, flags)
        })
    })
}

/// recvmsg(2) by way of `take`, which sets its last argument where it has made another call in place of this one.
unsafe fn recvmsg_by(
    fd: c_int,
    msg: *mut msghdr,
    flags: c_int,
    take: impl Fn(&[iovec], Own<'_>, &Cell<bool>) -> ssize_t,
) -> ssize_t {
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

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
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

/// sendmsg(2) without control messages, by way of `give`.
unsafe fn sendmsg_by(
    fd: c_int,
    msg: *const msghdr,
    flags: c_int,
    give: impl Fn(&[iovec], Own<'_>) -> ssize_t,
) -> ssize_t {
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

/// A message has come round us: descriptors in it are new.
#[inline(always)]
unsafe fn received(msg: *const msghdr, well: bool) {
    if well && table::any_tracked() && !msg.is_null() && (*msg).msg_controllen > 0 {
        each_passed(msg, |fd| {
            fresh(fd);
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    msgs: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    if flags & MSG_CMSG_COMPAT != 0 {
        return real::recvmmsg(fd, msgs, n, flags, timeout);
    }
    if let Some(h) = sctp::at(fd) {
        return sctp::recvmmsg(h, msgs, n, flags, timeout);
    }
    let Some(h) = table::socket(fd).filter(|_| n > 0) else {
        let r = real::recvmmsg(fd, msgs, n, flags, timeout);
        for i in 0..r.max(0) as usize {
            received(&raw const (*msgs.add(i)).msg_hdr, true);
        }
        return r;
    };
    if let Some(c) = conn::get(h) {
        let call = || real::recvmmsg(fd, msgs, n, flags, timeout) as ssize_t;
        if let Some(received) = receiving::counted(c, fd, call, |n| bytes_of(msgs, n)) {
            return received as c_int;
        }
        if wait::is_wrong(timeout) {
            return refuse(libc::EINVAL) as c_int;
        }
        if c.rest().is_some() {
            return receive_rest(c, fd, msgs, n, flags, timeout);
        }
        // Unlike recv(2), which gives what came before it first.
        let asks_for_errors = flags & libc::MSG_ERRQUEUE != 0;
        if !asks_for_errors && let Some(e) = headwater_sockets::look::take_error(c) {
            return refuse(e) as c_int;
        }
    }
    let r = keeping(h, |kept| receive_each(kept, fd, msgs, n, flags, timeout));
    let again = || recvmmsg(fd, msgs, n, flags, timeout) as ssize_t;
    let own = || real::recvmmsg(fd, msgs, n, flags, timeout) as ssize_t;
    ended(told(r as ssize_t), fd, h, again, own) as c_int
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
    let call = |msgs: *mut libc::mmsghdr, n, flags| real::recvmmsg(fd, msgs, n, flags, timeout);
    if msgs.is_null() {
        return call(msgs, n, flags);
    }
    let all = core::slice::from_raw_parts_mut(msgs, n.min(1024) as usize);
    let once = wait::from_timespec(timeout) == Some(0);
    let own = |msgs: &mut [libc::mmsghdr], flags| call(msgs.as_mut_ptr(), msgs.len() as _, flags);
    match headwater_sockets::confine::receive_many(c, all, flags, once, vector, own) {
        Some(told) => result(told) as c_int,
        None => call(msgs, n, flags),
    }
}

/// `None`: the kernel refuses such a message.
unsafe fn vector(msg: &msghdr) -> Option<&[iovec]> {
    match msg.msg_iovlen {
        _ if is_negative(msg.msg_name, msg.msg_namelen) => None,
        0 => Some(&[]),
        n => many(msg.msg_iov, n),
    }
}

/// A call of several steps: whoever closes the number ends none that has begun, and what it means from then on is none of this call's.
unsafe fn keeping<R>(h: Handle, call: impl FnOnce(Option<&'static conn::Conn>) -> R) -> R {
    let here = 0u8;
    let held = conn::get(h).and_then(|c| {
        let pin = pins::pin(c, &c.view()?, (&raw const here).addr())?;
        Some((c, pin))
    });
    let told = call(held.map(|held| held.0));
    if let Some((c, pin)) = held {
        let errno = next::errno();
        pins::unpin(c, pin);
        next::set_errno(errno);
    }
    told
}

unsafe fn receive_each(
    kept: Option<&'static conn::Conn>,
    fd: c_int,
    msgs: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    let end = wait::from_timespec(timeout).map(|ns| sys::now().saturating_add(ns));
    let mut each = flags & !libc::MSG_WAITFORONE;
    let mut done = 0;
    while done < n.min(1024) {
        let m = &mut *msgs.add(done as usize);
        let r = match kept {
            Some(c) => recvmsg_by(c.fd(), &mut m.msg_hdr, each, |v, own, _| {
                take_kept(c, fd, v, each, own)
            }),
            None => recvmsg(fd, &mut m.msg_hdr, each),
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

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    msgs: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
) -> c_int {
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

/// Is a connection among the descriptors in a message?
unsafe fn passes_ours(msg: &msghdr) -> bool {
    let mut found = false;
    if msg.msg_controllen > 0 {
        each_passed(msg, |fd| found |= table::socket(fd).is_some());
    }
    found
}

unsafe fn send_each(
    kept: Option<&'static conn::Conn>,
    fd: c_int,
    msgs: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
) -> c_int {
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

/// Sends a message with control messages.
#[inline(never)]
unsafe fn pass(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
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

/// What a message asks to be sent.
pub unsafe fn length(msg: &msghdr) -> usize {
    many(msg.msg_iov, msg.msg_iovlen).map_or(0, headwater_sockets::buffers::length)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile(
    out: c_int,
    from: c_int,
    offset: *mut off_t,
    n: size_t,
) -> ssize_t {
    if is_ours(out) || is_ours(from) {
        // The caller copies, as with any descriptor that cannot do it.
        next::set_errno(libc::EINVAL);
        return -1;
    }
    let call = || real::sendfile(out, from, offset, n);
    if n == 0 {
        return call();
    }
    if process::is_confined() {
        let rest = |file, mut at, n| real::sendfile(out, file, &mut at, n);
        return by_own_call(from, offset.is_null(), n, rest, call);
    }
    if let Some(h) = table::socket(from) {
        // The kernel refuses a position, and all that is no pipe.
        return if offset.is_null() && is_pipe(out) {
            into_pipe(h, from, out, n, 0, call, || sendfile(out, from, offset, n))
        } else {
            call()
        };
    }
    let Some(h) = table::socket(out) else {
        return call();
    };
    let Some(c) = conn::get(h) else { return call() };
    match sending::counted(c, call, |n| n as usize) {
        Some(sent) => sent,
        // The kernel refuses to.
        None if sys::fcntl(out, libc::F_GETFL, 0).is_ok_and(|f| f & libc::O_APPEND != 0) => call(),
        None => {
            let r = keeping(h, |kept| send_file(kept, out, from, offset, n));
            ended(told(r), out, h, || sendfile(out, from, offset, n), call)
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile64(
    out: c_int,
    from: c_int,
    offset: *mut off_t,
    n: size_t,
) -> ssize_t {
    sendfile(out, from, offset, n)
}

const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// A file through a carried socket: read and sent in pieces, until a short piece. Large pieces go without waiting; where there
/// is no room for one, a small one waits for it, which needs no memory but a little stack.
unsafe fn send_file(
    kept: Option<&'static conn::Conn>,
    out: c_int,
    from: c_int,
    offset: *mut off_t,
    n: size_t,
) -> ssize_t {
    let give = |buf: &[iovec], flags| match kept {
        Some(c) => give_kept(c, out, buf, flags, &|fd, v| {
            real::send(fd, v[0].iov_base, v[0].iov_len, flags)
        }),
        None => send(out, buf[0].iov_base, buf[0].iov_len, flags),
    };
    const LARGE: usize = 32768;
    let mut done = 0;
    while done < n {
        let want = n - done;
        let large = process::without_handlers(|| {
            let mut before = 0;
            next::seldom::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before);
            // Not cleared: that would cost more than a small file.
            let mut room = Box::<[u8]>::new_uninit_slice(want.min(LARGE));
            let piece = send_piece(&give, from, offset, &mut room, libc::MSG_DONTWAIT);
            next::seldom::pthread_setcancelstate(before, null_mut());
            piece
        });
        let (piece, may_be_short) = match large {
            Err(libc::EAGAIN) => {
                let mut room = [core::mem::MaybeUninit::uninit(); 512];
                let small = want.min(room.len());
                let piece = signal::going_on(done > 0, || {
                    send_piece(&give, from, offset, &mut room[..small], 0)
                });
                (piece, false)
            }
            other => (other, true),
        };
        match piece {
            Ok((0, _)) => break,
            Ok((got, sent)) => {
                done += sent;
                if sent < got && !may_be_short {
                    break;
                }
            }
            Err(e) => return result(receiving::partial(done, e)),
        }
    }
    done as ssize_t
}

/// Sends what is next in the file, as much as there is room for in `room`. Returns how much was read, and how much of that sent.
unsafe fn send_piece(
    give: &impl Fn(&[iovec], c_int) -> ssize_t,
    from: c_int,
    offset: *mut off_t,
    room: &mut [core::mem::MaybeUninit<u8>],
    flags: c_int,
) -> Result<(usize, usize), i32> {
    let at = if offset.is_null() {
        // What has no position is no file.
        sys::lseek(from, 0, libc::SEEK_CUR)
            .map_err(|e| if e == libc::ESPIPE { libc::EINVAL } else { e })?
    } else {
        *offset
    };
    if at < 0 {
        return Err(libc::EINVAL);
    }
    let buf = room.as_mut_ptr() as *mut u8;
    let got = headwater_host::sys::pread(from, buf, room.len(), at)?;
    if got == 0 {
        return Ok((0, 0));
    }
    let sent = give(&one(buf as *const c_void, got), flags);
    if sent < 0 {
        return Err(next::errno());
    }
    if offset.is_null() {
        // Sent is sent, whatever is said here.
        let _ = sys::lseek(from, sent as off_t, libc::SEEK_CUR);
    } else {
        *offset += sent as off_t;
    }
    Ok((got, sent as usize))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn splice(
    from: c_int,
    off_from: *mut i64,
    to: c_int,
    off_to: *mut i64,
    n: size_t,
    flags: c_uint,
) -> ssize_t {
    if is_ours(from) || is_ours(to) {
        next::set_errno(libc::EINVAL);
        return -1;
    }
    let call = || real::splice(from, off_from, to, off_to, n, flags);
    if !off_from.is_null() || !off_to.is_null() || n == 0 {
        return call();
    }
    if process::is_confined() {
        let rest = |file, mut at, n| real::splice(file, &mut at, to, off_to, n, flags);
        return by_own_call(from, true, n, rest, call);
    }
    if let Some(h) = table::socket(from)
        && is_pipe(to)
    {
        let again = || splice(from, off_from, to, off_to, n, flags);
        return into_pipe(h, from, to, n, flags, call, again);
    }
    let Some(h) = table::socket(to) else {
        return call();
    };
    match conn::get(h) {
        Some(c) if is_pipe(from) => {
            let r = sending::by_kernel(c, to, n, call, || {
                process::is_confined() || sys::ioctl_int(from, libc::FIONREAD) != Ok(0)
            });
            let again = || splice(from, off_from, to, off_to, n, flags);
            ended(r, to, h, again, call)
        }
        _ => call(),
    }
}

/// In a process that has confined itself: out of what was left for it to receive, by `rest`, as `moves` allows; else by `call`.
fn by_own_call(
    from: c_int,
    moves: bool,
    n: size_t,
    rest: impl FnOnce(c_int, off_t, size_t) -> ssize_t,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let told = table::socket(from)
        .filter(|_| moves)
        .and_then(conn::get)
        .and_then(|c| headwater_sockets::confine::splice(c, n, rest));
    told.map_or_else(call, result)
}

/// What a socket has, into a pipe: splice(2), and sendfile(2) as well. `call` is the program's own; `again` begins anew, in a process
/// that has confined itself meanwhile, or where `from` stands for something else by now.
unsafe fn into_pipe(
    h: Handle,
    from: c_int,
    to: c_int,
    n: size_t,
    flags: c_uint,
    call: impl Fn() -> ssize_t,
    again: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let Some(c) = conn::get(h) else { return call() };
    // The kernel refuses to.
    if n > isize::MAX as usize {
        return call();
    }
    if let Some(n) = receiving::counted(c, from, &call, |n| n as usize) {
        return n;
    }
    match splicing::splice(c, from, to, n, flags) {
        Some(r) if is_refused(r) => anew(from, h, again, call).unwrap_or_else(|| result(r)),
        Some(r) => result(r),
        None if process::is_confined() => again(),
        None => call(),
    }
}

fn is_pipe(fd: c_int) -> bool {
    headwater_host::sys::fstat(fd).is_ok_and(|s| s.st_mode & libc::S_IFMT == libc::S_IFIFO)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(
    fd: c_int,
    buf: *mut c_void,
    n: size_t,
    size: size_t,
) -> ssize_t {
    if n <= size && table::lookup(fd).is_some() {
        return read(fd, buf, n);
    }
    real::__read_chk(fd, buf, n, size)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    buf: *mut c_void,
    n: size_t,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    if n <= size && is_socket(fd) {
        return recv(fd, buf, n, flags);
    }
    real::__recv_chk(fd, buf, n, size, flags)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    buf: *mut c_void,
    n: size_t,
    size: size_t,
    flags: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
) -> ssize_t {
    if n <= size && is_socket(fd) {
        return recvfrom(fd, buf, n, flags, from, len);
    }
    real::__recvfrom_chk(fd, buf, n, size, flags, from, len)
}
