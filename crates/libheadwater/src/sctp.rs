//! Calls on SCTP sockets of our own: C's arguments become the socket's verbs, and their results C's again.

use std::sync::Arc;

use headwater_host::config::{self, Sctp};
use headwater_host::sync::Ordering;
use headwater_host::table::{self, Handle};
use headwater_host::{next, sys};
use headwater_sctp_sockets::face::{self, Number, Open};
use headwater_sctp_sockets::{Receiving, Sending, Socket, control};
use libc::{c_int, c_uint, c_ulong, c_void, iovec, mmsghdr, msghdr, sockaddr, socklen_t, timespec};

use crate::{real, refuse, start, wait};

mod file;

/// What a name may be at most: sockaddr_storage.
const LONGEST_NAME: usize = size_of::<libc::sockaddr_storage>();
/// UIO_MAXIOV.
const MOST_PARTS: usize = 1024;
/// Options have a few hundred bytes, lists of addresses some more.
const LARGEST_OPTION: usize = 1 << 20;
const PEELOFF: c_int = 102;
const CONNECTX3: c_int = 111;
const PEELOFF_FLAGS: c_int = 122;

/// -1 and errno; what succeeds leaves errno alone.
fn answer(outcome: sys::Result<usize>, before: c_int) -> isize {
    next::set_errno(before);
    crate::result(outcome)
}

/// Runs a call that may make, end or move associations.
fn on(h: Handle, call: impl FnOnce(&Open) -> sys::Result<usize>) -> isize {
    let before = next::errno();
    answer(with(h, call, Open::called), before)
}

/// Runs `call`, and then what is `done` after it. EBADF: it was closed meanwhile.
#[inline(always)]
fn with<T>(
    h: Handle,
    call: impl FnOnce(&Open) -> sys::Result<usize>,
    done: impl FnOnce(&Open) -> T,
) -> sys::Result<usize> {
    let open = face::get(h).ok_or(libc::EBADF)?;
    let outcome = call(&open);
    done(&open);
    outcome
}

/// socket(2). `None`: it is for the kernel, and its answer is final.
#[cold]
pub fn socket(domain: c_int, kind: c_int) -> Option<c_int> {
    let asked = face::serves(domain, kind).filter(|_| start::sockets() && start::streams())?;
    match config::get().sctp {
        Sctp::Never => return None,
        Sctp::Always => {}
        Sctp::Auto => {
            let before = next::errno();
            let fd = real::socket(domain, kind, libc::IPPROTO_SCTP);
            let none = [
                libc::EPROTONOSUPPORT,
                libc::ESOCKTNOSUPPORT,
                libc::EAFNOSUPPORT,
            ];
            if fd >= 0 || !none.contains(&next::errno()) {
                return Some(fd);
            }
            next::set_errno(before);
        }
    }
    let before = next::errno();
    Some(answer(face::open(asked, kind).map(|fd| fd as usize), before) as c_int)
}

unsafe fn bytes<'a>(at: *const c_void, n: usize) -> sys::Result<&'a [u8]> {
    // SAFETY: as many bytes of the program's, by the caller's word.
    unsafe {
        match n {
            0 => Ok(&[]),
            _ if at.is_null() => Err(libc::EFAULT),
            n => Ok(core::slice::from_raw_parts(at as *const u8, n)),
        }
    }
}

unsafe fn name<'a>(at: *const c_void, n: socklen_t) -> sys::Result<&'a [u8]> {
    if at.is_null() {
        return Ok(&[]);
    }
    if n as usize > LONGEST_NAME {
        return Err(libc::EINVAL);
    }
    // SAFETY: as many bytes of the program's, by the caller's word.
    unsafe { bytes(at, n as usize) }
}

unsafe fn parts<'a>(iov: *const iovec, n: usize) -> sys::Result<&'a [iovec]> {
    // SAFETY: as many of the program's, by the caller's word.
    unsafe {
        match n {
            0 => Ok(&[]),
            _ if n > MOST_PARTS => Err(libc::EMSGSIZE),
            _ if iov.is_null() => Err(libc::EFAULT),
            n => Ok(core::slice::from_raw_parts(iov, n)),
        }
    }
}

/// As much as there is room for; `len` becomes the whole length.
unsafe fn give_name(name: &[u8], at: *mut c_void, len: *mut socklen_t) {
    // SAFETY: null or the program's length, and as much room, by the caller's word.
    unsafe {
        if !len.is_null() {
            let room = *len as usize;
            if !at.is_null() {
                core::ptr::copy_nonoverlapping(name.as_ptr(), at as *mut u8, name.len().min(room));
            }
            *len = name.len() as socklen_t;
        }
    }
}

/// # Safety
/// As bind(2) asks of its caller.
pub unsafe fn bind(h: Handle, addr: *const sockaddr, len: socklen_t) -> c_int {
    on(h, |open| {
        // SAFETY: the program's address.
        open.socket.bind(unsafe { name(addr.cast(), len) }?)?;
        Ok(0)
    }) as c_int
}

/// # Safety
/// As connect(2) asks of its caller.
pub unsafe fn connect(h: Handle, addr: *const sockaddr, len: socklen_t) -> c_int {
    on(h, |open| {
        // SAFETY: the program's address.
        open.socket.connect(unsafe { name(addr.cast(), len) }?)?;
        Ok(0)
    }) as c_int
}

pub fn listen(h: Handle, backlog: c_int) -> c_int {
    on(h, |open| open.socket.listen(backlog).map(|()| 0)) as c_int
}

pub fn shutdown(h: Handle, how: c_int) -> c_int {
    on(h, |open| open.socket.shutdown(how).map(|()| 0)) as c_int
}

/// # Safety
/// As accept4(2) asks of its caller.
pub unsafe fn accept(h: Handle, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    on(h, |open| {
        if flags & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) != 0 {
            return Err(libc::EINVAL);
        }
        // The number first: without one nobody is accepted.
        let number = Number::new(flags)?;
        let socket = open.socket.accept()?;
        let peer = socket.peer_name().unwrap_or_default();
        let fd = show(number, socket, flags)?;
        if !addr.is_null() {
            // SAFETY: the program's room for it.
            unsafe { give_name(&peer, addr.cast(), len) };
        }
        Ok(fd)
    }) as c_int
}

fn show(number: Number, socket: Arc<Socket>, flags: c_int) -> sys::Result<usize> {
    let nonblocking = flags & libc::SOCK_NONBLOCK != 0;
    socket.nonblocking.store(nonblocking, Ordering::Relaxed);
    number.stands_for(socket).map(|fd| fd as usize)
}

/// getsockname(2), getpeername(2).
///
/// # Safety
/// As getsockname(2) asks of its caller.
pub unsafe fn names(h: Handle, peer: bool, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
    on(h, |open| {
        if addr.is_null() || len.is_null() {
            return Err(libc::EFAULT);
        }
        let name = match peer {
            true => open.socket.peer_name()?,
            false => open.socket.local_name()?,
        };
        // SAFETY: the program's room for it.
        unsafe { give_name(&name, addr.cast(), len) };
        Ok(0)
    }) as c_int
}

/// # Safety
/// As setsockopt(2) asks of its caller.
pub unsafe fn setsockopt(
    h: Handle,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    on(h, |open| {
        if len as usize > LARGEST_OPTION {
            return Err(libc::EINVAL);
        }
        // SAFETY: the program's value.
        let value = unsafe { bytes(value, len as usize) }?;
        let said = open.socket.set_option(level, name, value)?;
        Ok(said as usize)
    }) as c_int
}

/// # Safety
/// As getsockopt(2) asks of its caller.
pub unsafe fn getsockopt(
    h: Handle,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the program's length, and as much room.
    unsafe {
        on(h, |open| {
            if len.is_null() {
                return Err(libc::EFAULT);
            }
            let room = *len as usize;
            if room > i32::MAX as usize {
                return Err(libc::EINVAL);
            }
            let mut bytes = self::bytes(value, room.min(LARGEST_OPTION))?.to_vec();
            let peels = level == libc::IPPROTO_SCTP && matches!(name, PEELOFF | PEELOFF_FLAGS);
            let flags = bytes.get(8..).and_then(|flags| flags.first_chunk());
            let flags = flags.filter(|_| name == PEELOFF_FLAGS);
            let flags = flags.map_or(0, |&flags| i32::from_ne_bytes(flags));
            let number = peels.then(|| Number::new(flags)).transpose()?;
            let connects = level == libc::IPPROTO_SCTP && name == CONNECTX3;
            if connects {
                append_addresses(&mut bytes)?;
            }
            let peeled = match open.socket.get_option(level, name, &mut bytes, room) {
                // The number of the association is known already.
                Err(libc::EINPROGRESS) if connects && bytes.len() <= room => {
                    core::ptr::copy_nonoverlapping(bytes.as_ptr(), value as *mut u8, bytes.len());
                    return Err(libc::EINPROGRESS);
                }
                done => done?,
            };
            let mut said = 0;
            if let (Some(socket), Some(number)) = (peeled, number) {
                said = show(number, socket, flags)?;
                if let Some(place) = bytes.get_mut(4..8) {
                    place.copy_from_slice(&(said as i32).to_ne_bytes());
                }
            }
            let n = bytes.len().min(room);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), value as *mut u8, n);
            *len = n as socklen_t;
            Ok(said)
        }) as c_int
    }
}

/// The struct of SCTP_SOCKOPT_CONNECTX3 points to its addresses: they come behind it.
unsafe fn append_addresses(bytes: &mut Vec<u8>) -> sys::Result<()> {
    let whole: [u8; 16] = bytes[..].try_into().map_err(|_| libc::EINVAL)?;
    let [_, _, _, _, a, b, c, d, addrs @ ..] = whole;
    let len = i32::from_ne_bytes([a, b, c, d]);
    if len <= 0 || len as usize > LARGEST_OPTION {
        return Err(libc::EINVAL);
    }
    let addrs = u64::from_ne_bytes(addrs) as usize as *const c_void;
    // SAFETY: where the struct says that they are.
    bytes.extend_from_slice(unsafe { self::bytes(addrs, len as usize) }?);
    Ok(())
}

/// To the peer of a connection, with nothing said of it, what can goes at once, and leaves errno alone.
#[inline(always)]
fn send(h: Handle, what: &Sending<'_>) -> isize {
    if what.to.is_empty()
        && what.control.is_empty()
        && let Some(open) = face::get(h)
        && let Some(sent) = open.socket.send_at_once(what.data)
    {
        return sent as isize;
    }
    send_slowly(h, what)
}

/// EPIPE comes with SIGPIPE, unless MSG_NOSIGNAL.
#[inline(never)]
fn send_slowly(h: Handle, what: &Sending<'_>) -> isize {
    let before = next::errno();
    let outcome = with(h, |open| open.socket.send(what), Open::moved);
    if outcome == Err(libc::EPIPE) && what.flags & libc::MSG_NOSIGNAL == 0 {
        sys::raise(libc::SIGPIPE);
    }
    answer(outcome, before)
}

#[inline(always)]
fn plain<'a>(to: &'a [u8], data: &'a [iovec], flags: c_int) -> Sending<'a> {
    Sending {
        to,
        data,
        control: &[],
        flags,
    }
}

/// # Safety
/// As writev(2) asks of its caller.
pub unsafe fn sendv(h: Handle, iov: *const iovec, n: usize, flags: c_int) -> isize {
    // SAFETY: the program's buffers.
    unsafe { parts(iov, n) }.map_or_else(refuse, |data| send(h, &plain(&[], data, flags)))
}

/// # Safety
/// As sendto(2) asks of its caller.
#[inline(always)]
pub unsafe fn sendto(
    h: Handle,
    data: &[iovec],
    flags: c_int,
    to: *const sockaddr,
    len: socklen_t,
) -> isize {
    // SAFETY: the program's address.
    match unsafe { name(to.cast(), len) } {
        Ok(to) => send(h, &plain(to, data, flags)),
        Err(e) => refuse(e),
    }
}

/// # Safety
/// As sendmsg(2) asks of its caller.
pub unsafe fn sendmsg(h: Handle, msg: *const msghdr, flags: c_int) -> isize {
    if msg.is_null() {
        return refuse(libc::EFAULT);
    }
    // SAFETY: the program's message, and what it points to.
    let sending = || unsafe {
        let m = &*msg;
        Ok(Sending {
            to: name(m.msg_name, m.msg_namelen)?,
            data: parts(m.msg_iov, m.msg_iovlen)?,
            control: bytes(m.msg_control, m.msg_controllen)?,
            flags,
        })
    };
    sending().map_or_else(refuse, |what| send(h, &what))
}

/// A message that is there, from the peer of a connection, and the flags that go with it. Leaves errno alone.
#[inline(always)]
fn receive_at_once(h: Handle, iov: &[iovec], flags: c_int) -> Option<(usize, c_int)> {
    if flags & !(libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) != 0 {
        return None;
    }
    face::get(h)?.socket.receive_at_once(iov)
}

#[inline(never)]
fn receive(h: Handle, what: &mut Receiving<'_>) -> isize {
    let before = next::errno();
    answer(
        with(h, |open| open.socket.receive(what), Open::moved),
        before,
    )
}

fn into(iov: &[iovec], flags: c_int, wants_from: bool, wants_control: bool) -> Receiving<'_> {
    Receiving {
        into: iov,
        flags,
        wants_control,
        wants_from,
        from: Vec::new(),
        control: Vec::new(),
        out_flags: 0,
    }
}

/// read(2) and readv(2): of nothing, it never waits.
///
/// # Safety
/// As readv(2) asks of its caller.
pub unsafe fn readv(h: Handle, iov: *const iovec, n: usize) -> isize {
    // SAFETY: the program's buffers.
    match unsafe { parts(iov, n) } {
        Ok(iov) if iov.iter().all(|part| part.iov_len == 0) => 0,
        Ok(iov) if let Some((n, _)) = receive_at_once(h, iov, 0) => n as isize,
        Ok(iov) => receive(h, &mut into(iov, 0, false, false)),
        Err(e) => refuse(e),
    }
}

/// # Safety
/// As recvfrom(2) asks of its caller.
#[inline(always)]
pub unsafe fn recvfrom(
    h: Handle,
    iov: &[iovec],
    flags: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
) -> isize {
    if from.is_null()
        && let Some((n, _)) = receive_at_once(h, iov, flags)
    {
        return n as isize;
    }
    // SAFETY: the caller's room.
    unsafe { recvfrom_slowly(h, iov, flags, from, len) }
}

/// # Safety
/// As recvfrom(2) asks of its caller.
#[inline(never)]
unsafe fn recvfrom_slowly(
    h: Handle,
    iov: &[iovec],
    flags: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
) -> isize {
    let mut what = into(iov, flags, !from.is_null(), false);
    let n = receive(h, &mut what);
    if n >= 0 && !from.is_null() {
        // SAFETY: the program's room for it.
        unsafe { give_name(&what.from, from.cast(), len) };
    }
    n
}

/// # Safety
/// As recvmsg(2) asks of its caller.
pub unsafe fn recvmsg(h: Handle, msg: *mut msghdr, flags: c_int) -> isize {
    // SAFETY: the program's message, and the room that it tells of.
    unsafe {
        if msg.is_null() {
            return refuse(libc::EFAULT);
        }
        let m = &mut *msg;
        let iov = match parts(m.msg_iov, m.msg_iovlen) {
            Ok(iov) => iov,
            Err(e) => return refuse(e),
        };
        let room = if m.msg_control.is_null() {
            0
        } else {
            m.msg_controllen
        };
        if room == 0
            && m.msg_name.is_null()
            && let Some((n, said)) = receive_at_once(h, iov, flags)
        {
            m.msg_namelen = 0;
            m.msg_controllen = 0;
            m.msg_flags = said | flags & libc::MSG_CMSG_CLOEXEC;
            return n as isize;
        }
        let mut what = into(iov, flags, !m.msg_name.is_null(), room > 0);
        let n = receive(h, &mut what);
        if n < 0 {
            return n;
        }
        if m.msg_name.is_null() {
            m.msg_namelen = 0;
        } else {
            give_name(&what.from, m.msg_name, &mut m.msg_namelen);
        }
        let cut = if control::fit(&mut what.control, room) {
            libc::MSG_CTRUNC
        } else {
            0
        };
        if !what.control.is_empty() {
            let at = m.msg_control as *mut u8;
            core::ptr::copy_nonoverlapping(what.control.as_ptr(), at, what.control.len());
        }
        m.msg_controllen = what.control.len();
        m.msg_flags = what.out_flags | cut | flags & libc::MSG_CMSG_CLOEXEC;
        n
    }
}

/// Each message by itself; after the first an error only ends the row.
///
/// # Safety
/// As sendmmsg(2) asks of its caller.
pub unsafe fn sendmmsg(h: Handle, msgs: *mut mmsghdr, n: c_uint, flags: c_int) -> c_int {
    // SAFETY: `n` messages of the program's.
    unsafe {
        let before = next::errno();
        for i in 0..(n as usize).min(MOST_PARTS) {
            let m = &mut *msgs.add(i);
            let sent = sendmsg(h, &m.msg_hdr, flags);
            if sent < 0 {
                return ended(i, before);
            }
            m.msg_len = sent as c_uint;
            // The rest of a short one comes before the next.
            if (sent as usize) < crate::vectors::length(&m.msg_hdr) {
                return ended(i + 1, before);
            }
        }
        n.min(MOST_PARTS as c_uint) as c_int
    }
}

/// # Safety
/// As recvmmsg(2) asks of its caller.
pub unsafe fn recvmmsg(
    h: Handle,
    msgs: *mut mmsghdr,
    n: c_uint,
    mut flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: `n` messages of the program's, and its time or null.
    unsafe {
        let before = next::errno();
        if wait::is_wrong(timeout) {
            return refuse(libc::EINVAL);
        }
        let within = wait::from_timespec(timeout);
        let until = within.map_or(u64::MAX, |ns| sys::now().saturating_add(ns));
        let n = (n as usize).min(MOST_PARTS);
        for i in 0..n {
            let m = &mut *msgs.add(i);
            let got = recvmsg(h, &mut m.msg_hdr, flags & !libc::MSG_WAITFORONE);
            if got < 0 {
                return ended(i, before);
            }
            m.msg_len = got as c_uint;
            if flags & libc::MSG_WAITFORONE != 0 {
                flags |= libc::MSG_DONTWAIT;
            }
            // The end, or the time that recvmmsg(2) looks at after each message.
            if got == 0 || sys::now() >= until {
                return i as c_int + 1;
            }
        }
        n as c_int
    }
}

fn ended(done: usize, errno_before: c_int) -> c_int {
    if done == 0 {
        return -1;
    }
    next::set_errno(errno_before);
    done as c_int
}

/// After fcntl(F_SETFL) and ioctl(FIONBIO).
pub fn set_nonblocking(h: Handle, on: bool) {
    if let Some(open) = face::get(h) {
        open.socket.nonblocking.store(on, Ordering::Relaxed);
    }
}

/// ioctl(2); `None`: the kernel knows.
///
/// # Safety
/// As ioctl(2) asks of its caller.
pub unsafe fn ioctl(h: Handle, request: c_ulong, arg: usize) -> Option<c_int> {
    if !matches!(request, libc::FIONREAD | libc::TIOCOUTQ) {
        return None;
    }
    if arg == 0 {
        return Some(refuse(libc::EFAULT));
    }
    Some(on(h, |open| {
        let bytes = match request {
            libc::FIONREAD if !open.socket.takes_data() => return Err(libc::EINVAL),
            libc::FIONREAD => open.socket.unread(),
            _ => open.socket.unsent(),
        };
        // SAFETY: the program's room for a number.
        unsafe { (arg as *mut c_int).write_unaligned(bytes.min(i32::MAX as usize) as c_int) };
        Ok(0)
    }) as c_int)
}

/// Descriptors that a control message would send; EOPNOTSUPP, and -1, when one is an SCTP socket.
///
/// # Safety
/// `msg` is a valid message header.
pub unsafe fn refuses_passing(msg: *const msghdr) -> bool {
    let mut refused = false;
    // SAFETY: a message header, by the caller's word.
    unsafe { crate::passed::each_passed(msg, |fd| refused |= table::sctp(fd).is_some()) };
    if refused {
        next::set_errno(face::refuse_passing());
    }
    refused
}
