//! `<stropts.h>`: getmsg, putmsg and their kind, pipes and attached names; and what read, write, open and ioctl do on a
//! stream. Lengths, flags and NULLs are checked here; the rest is in the streams crate.

use headwater_host::reclaim::enter;
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{config, env, epoll, sys};
use headwater_sockets::buffers::length;
use headwater_streams::attach;
use headwater_streams::drivers::log as logging;
use headwater_streams::head::opening::{self, By};
use headwater_streams::head::{self, Head, control, is_bad, life};
use libc::{c_char, c_int, c_ulong, c_void, iovec, size_t, ssize_t};

use crate::files::fresh;
use crate::given::{Place, Text};
use crate::{makers, names, real, refuse, result, start};

mod file;
mod messages;

const IOV_MAX: c_int = 1024;

/// # Safety
/// As read(2) asks of its caller: `buf` has room for `n` bytes.
#[inline(never)]
pub unsafe fn read(h: Handle, buf: *mut c_void, n: size_t) -> ssize_t {
    result(reading(h, |head| {
        if is_bad(buf) && n > 0 {
            return Err(libc::EFAULT);
        }
        // SAFETY: the program's room for `n` bytes.
        head.read(unsafe { slice_mut(buf, n) })
    }))
}

/// # Safety
/// As write(2) asks of its caller: `buf` has `n` bytes.
#[inline(never)]
pub unsafe fn write(h: Handle, buf: *const c_void, n: size_t) -> ssize_t {
    result(writing(h, |head| {
        if is_bad(buf) && n > 0 {
            return Err(libc::EFAULT);
        }
        // SAFETY: the program's `n` bytes.
        head.write(unsafe { slice(buf, n) })
    }))
}

/// # Safety
/// As readv(2) asks of its caller: `n` buffers.
pub unsafe fn readv(h: Handle, iov: *const iovec, n: c_int) -> ssize_t {
    result(reading(h, |head| {
        // SAFETY: the program's buffers.
        head.read_slowly(unsafe { vector(iov, n) }?)
    }))
}

/// # Safety
/// As writev(2) asks of its caller: `n` buffers.
pub unsafe fn writev(h: Handle, iov: *const iovec, n: c_int) -> ssize_t {
    result(writing(h, |head| {
        // SAFETY: the program's buffers.
        head.write_slowly(unsafe { vector(iov, n) }?)
    }))
}

#[inline(always)]
fn on(h: Handle, f: impl FnOnce(&'static Head) -> sys::Result<usize>) -> sys::Result<usize> {
    let looks = enter();
    let head = head::get(h, &looks).ok_or(libc::EBADF)?;
    let _by = opening::is_own(h).then(|| By::begin(h, head));
    f(head)
}

/// A call that reads.
#[inline(always)]
fn reading(h: Handle, f: impl FnOnce(&'static Head) -> sys::Result<usize>) -> sys::Result<usize> {
    if !opening::may_read(h) {
        return Err(libc::EBADF);
    }
    on(h, f)
}

/// A call that writes.
#[inline(always)]
fn writing(h: Handle, f: impl FnOnce(&'static Head) -> sys::Result<usize>) -> sys::Result<usize> {
    if !opening::may_write(h) {
        return Err(libc::EBADF);
    }
    if opening::is_own(h) && opening::is_left(h) {
        return Err(headwater_streams::head::write::with_signal(libc::EPIPE));
    }
    on(h, f)
}

unsafe fn vector<'a>(iov: *const iovec, n: c_int) -> sys::Result<&'a [iovec]> {
    if !(1..=IOV_MAX).contains(&n) {
        return Err(libc::EINVAL);
    }
    if is_bad(iov) {
        return Err(libc::EFAULT);
    }
    // SAFETY: as many of the program's, by the caller's word.
    let vector = unsafe { core::slice::from_raw_parts(iov, n as usize) };
    if length(vector) > isize::MAX as usize {
        return Err(libc::EINVAL);
    }
    Ok(vector)
}

unsafe fn slice<'a>(buf: *const c_void, n: usize) -> &'a [u8] {
    if n == 0 {
        return &[];
    }
    // SAFETY: `n` bytes of the program's, by the caller's word.
    unsafe { core::slice::from_raw_parts(buf as *const u8, n) }
}

unsafe fn slice_mut<'a>(buf: *mut c_void, n: usize) -> &'a mut [u8] {
    if n == 0 {
        return &mut [];
    }
    // SAFETY: room for `n` bytes, by the caller's word.
    unsafe { core::slice::from_raw_parts_mut(buf as *mut u8, n) }
}

/// Is it a stream or a transport endpoint?
pub fn is_one(fd: c_int) -> bool {
    table::lookup(fd).is_some_and(|h| matches!(h.kind(), Kind::Stream | Kind::Endpoint))
}

/// The stream behind a descriptor. A transport endpoint becomes one: what it is asked from now on goes by messages.
#[inline]
pub fn at(fd: c_int) -> Option<Handle> {
    let h = table::lookup(fd)?;
    match h.kind() {
        Kind::Stream => Some(h),
        Kind::Endpoint => became_stream(fd),
        _ => None,
    }
}

#[cold]
fn became_stream(fd: c_int) -> Option<Handle> {
    headwater_endpoints::stream::convert(fd).ok()?;
    for standard in 0..=2 {
        crate::stdio::follow(standard);
    }
    table::stream(fd)
}

/// The stream behind a descriptor: EBADF if it is closed, ENOSTR if it is no stream.
pub fn stream(fd: c_int) -> sys::Result<Handle> {
    match at(fd).filter(|&h| head::get(h, &enter()).is_some()) {
        Some(stream) => Ok(stream),
        None if !sys::is_open(fd) => Err(libc::EBADF),
        None => Err(libc::ENOSTR),
    }
}

fn status(r: sys::Result<()>) -> c_int {
    result(r.map(|()| 0)) as c_int
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn isastream(fd: c_int) -> c_int {
    if is_one(fd) {
        return 1;
    }
    match stream(fd) {
        Ok(_) => 1,
        Err(libc::ENOSTR) => 0,
        Err(e) => refuse(e),
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn streams_pipe(fds: Place<[c_int; 2]>) -> c_int {
    make_pipe(fds, 0)
}

fn make_pipe(fds: Place<[c_int; 2]>, flags: c_int) -> c_int {
    let Some(fds) = fds.get() else {
        return refuse(libc::EFAULT);
    };
    if !start::streams() {
        return refuse(libc::ENOSYS);
    }
    status(life::pipe(flags).map(|pair| *fds = pair))
}

/// HEADWATER_PIPE=streams
fn makes_streams() -> bool {
    env::is_set("HEADWATER_PIPE", &[]) && config::get().stream_pipes && start::streams()
}

/// The kernel's, unless HEADWATER_PIPE=streams.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pipe(mut fds: Place<[c_int; 2]>) -> c_int {
    if makes_streams() {
        return make_pipe(fds, 0);
    }
    let r = real::pipe(fds.again());
    makers::both(fds, r)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn pipe2(mut fds: Place<[c_int; 2]>, flags: c_int) -> c_int {
    const KNOWN: c_int = libc::O_CLOEXEC | libc::O_NONBLOCK;
    if flags & !KNOWN == 0 && makes_streams() {
        return make_pipe(fds, flags);
    }
    let r = real::pipe2(fds.again(), flags);
    makers::both(fds, r)
}

/// ioctl(2) on a stream: its own requests, and those of the kernel that make sense on any descriptor.
///
/// # Safety
/// As ioctl(2) asks of its caller: `arg` is what the request wants.
pub unsafe fn ioctl(fd: c_int, h: Handle, request: c_ulong, arg: usize) -> c_int {
    // SAFETY: the program's argument, which is what the request wants.
    unsafe {
        if request as c_int == control::I_SENDFD {
            // A carried connection goes back to the kernel before somebody else has it.
            headwater_sockets::life::passing_on(arg as c_int);
            if table::sctp(arg as c_int).is_some() {
                return refuse(headwater_sctp_sockets::face::refuse_passing());
            }
        }
        let outcome = on(h, |head| {
            control::ioctl(head, request as u32, arg).map(|n| n as usize)
        });
        match outcome {
            Err(control::KERNEL) if request == libc::FIONBIO && owns_flags(h) => {
                if is_bad(arg as *const c_int) {
                    return refuse(libc::EFAULT);
                }
                life::set_nonblocking(h, *(arg as *const c_int) != 0);
                0
            }
            Err(control::KERNEL) => {
                let r = real::ioctl(fd, request, arg);
                if r == 0 && request == libc::FIONBIO && arg != 0 {
                    life::set_nonblocking(h, *(arg as *const c_int) != 0);
                }
                r
            }
            other => result(other) as c_int,
        }
    }
}

pub fn closing(fd: c_int, h: Handle) -> Option<life::After> {
    if head::get(h, &enter()).is_some_and(Head::has_other_descriptors) {
        epoll::orphaned(fd);
    } else {
        epoll::closing(fd);
    }
    life::closing(fd, h)
}

/// Of what F_GETFL says, that which is not the kernel's to say.
pub fn flags(h: Handle, said: c_int) -> c_int {
    let blocking = match opening::nonblocking(h) {
        Some(on) => said & !libc::O_NONBLOCK | if on { libc::O_NONBLOCK } else { 0 },
        None => said,
    };
    blocking & !libc::O_ACCMODE | access_mode(h)
}

/// F_SETFL of a stream whose flags are its open's own: the kernel would change them for all.
pub fn owns_flags(h: Handle) -> bool {
    opening::nonblocking(h).is_some()
}

fn access_mode(h: Handle) -> c_int {
    match (opening::may_read(h), opening::may_write(h)) {
        (false, _) => libc::O_WRONLY,
        (_, false) => libc::O_RDONLY,
        _ => head::get(h, &enter()).map_or(libc::O_RDWR, Head::access_mode),
    }
}

/// After F_SETFL; what it gives.
pub fn set_flags(h: Handle, flags: c_int) -> c_int {
    life::set_nonblocking(h, flags & libc::O_NONBLOCK != 0);
    let (looks, on) = (enter(), flags & libc::O_ASYNC != 0);
    status(head::get(h, &looks).map_or(Ok(()), |head| head::signals::set_async(head, on)))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn fattach(fd: c_int, path: Text) -> c_int {
    let attach = || {
        let h = stream(fd).map_err(|e| if e == libc::ENOSTR { libc::EINVAL } else { e })?;
        let held = life::held(h).ok_or(libc::EBADF)?;
        attach::fattach(held.head(), fd, path.get().ok_or(libc::EFAULT)?)
    };
    status(attach())
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn fdetach(path: Text) -> c_int {
    status(path.get().ok_or(libc::EFAULT).and_then(attach::fdetach))
}

/// `None`: the kernel's to open.
fn open_ours(path: Text, flags: c_int) -> Option<c_int> {
    let opened = names::open(path.get()?, flags)?;
    Some(result(opened.map(|fd| fd as usize)) as c_int)
}

/// As [`open_ours`], of openat(2): of a path below `dir` the kernel knows alone.
fn open_at(dir: c_int, path: Text, flags: c_int) -> Option<c_int> {
    let ours = dir == libc::AT_FDCWD || path.bytes().starts_with(b"/");
    ours.then(|| open_ours(path, flags)).flatten()
}

macro_rules! opens {
    ($($by:ident $name:ident($([$dir:ident])? path $(, $mode:ident)?);)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name($($dir: c_int,)? path: Text, flags: c_int $(, $mode: libc::mode_t)?) -> c_int {
            $by($($dir,)? path, flags).unwrap_or_else(|| fresh(real::$name($($dir,)? path, flags $(, $mode)?)))
        }
    )*};
}

opens! {
    open_ours open(path, mode);
    open_ours open64(path, mode);
    open_ours __open_2(path);
    open_ours __open64_2(path);
    open_at openat([dir] path, mode);
    open_at openat64([dir] path, mode);
    open_at __openat_2([dir] path);
}

/// strlog(9F), its text formatted by variadic.c.
pub extern "C" fn log(mid: i16, sid: i16, level: c_char, flags: u16, text: Text) -> c_int {
    start::streams();
    logging::submit(mid, sid, level, flags, text.bytes());
    1
}

/// For libraries that link us, where the C library's `read` comes first. No jump: the compiler puts it where `read` is.
///
/// # Safety
/// As read(2) asks of its caller: `buf` has room for `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_read(fd: c_int, buf: *mut c_void, n: size_t) -> ssize_t {
    // SAFETY: the program's room for `n` bytes.
    unsafe { crate::calls::read(fd, buf, n) }
}

/// # Safety
/// As write(2) asks of its caller: `buf` has `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_write(fd: c_int, buf: *const c_void, n: size_t) -> ssize_t {
    // SAFETY: the program's `n` bytes.
    unsafe { crate::calls::write(fd, buf, n) }
}
