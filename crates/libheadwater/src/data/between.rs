//! Calls that move data from one descriptor to another: sendfile and splice.

use core::ptr::null_mut;

use headwater_host::table::{self, Handle, Trait};
use headwater_host::{next, process, signal, sys};
use headwater_sockets::{conn, recv as receiving, send as sending, splice as splicing};
use libc::{c_int, c_uint, iovec, off_t, size_t, ssize_t};

use super::send::give_kept;
use super::{anew, ended, is_refused, keeping, told};
use crate::vectors::one;
use crate::{calls, real, refuse, result};

/// What the kernel can't move data of at all?
fn is_ours(fd: c_int) -> bool {
    table::lookup(fd).is_some_and(|h| h.kind().is(Trait::OursAlone))
}

/// # Safety
/// As sendfile(2) asks of its caller: a position, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile(
    out: c_int,
    from: c_int,
    offset: *mut off_t,
    n: size_t,
) -> ssize_t {
    // SAFETY: the program's position, or null.
    unsafe {
        if is_ours(out) || is_ours(from) {
            // The caller copies, as with any descriptor that cannot do it.
            return refuse(libc::EINVAL);
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
            None if sys::fcntl(out, libc::F_GETFL, 0).is_ok_and(|f| f & libc::O_APPEND != 0) => {
                call()
            }
            None => {
                let r = keeping(h, |kept| send_file(kept, out, from, offset, n));
                ended(told(r), out, h, || sendfile(out, from, offset, n), call)
            }
        }
    }
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
    // SAFETY: the program's position, or null; what is sent is in the room here, as much as was read to there.
    unsafe {
        let give = |buf: &[iovec], flags| match kept {
            Some(c) => give_kept(c, out, buf, flags, &|fd, v| {
                real::send(fd, v[0].iov_base, v[0].iov_len, flags)
            }),
            None => calls::send(out, buf[0].iov_base, buf[0].iov_len, flags),
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
}

/// Sends what is next in the file, as much as there is room for in `room`. Returns how much was read, and how much of that sent.
unsafe fn send_piece(
    give: &impl Fn(&[iovec], c_int) -> ssize_t,
    from: c_int,
    offset: *mut off_t,
    room: &mut [core::mem::MaybeUninit<u8>],
    flags: c_int,
) -> Result<(usize, usize), i32> {
    // SAFETY: the program's position, or null; what is sent is in the room, as much as was read to there.
    unsafe {
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
        let got = headwater_host::sys::read_at_into(from, room, at)?;
        if got == 0 {
            return Ok((0, 0));
        }
        let sent = give(&one(room.as_ptr().cast(), got), flags);
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
}

/// # Safety
/// As splice(2) asks of its caller: positions, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn splice(
    from: c_int,
    off_from: *mut i64,
    to: c_int,
    off_to: *mut i64,
    n: size_t,
    flags: c_uint,
) -> ssize_t {
    // SAFETY: the program's positions, or null.
    unsafe {
        if is_ours(from) || is_ours(to) {
            return refuse(libc::EINVAL);
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
fn into_pipe(
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
    // SAFETY: the program's call takes from this descriptor.
    if let Some(n) = unsafe { receiving::counted(c, from, &call, |n| n as usize) } {
        return n;
    }
    // SAFETY: between descriptors, without buffers.
    match unsafe { splicing::splice(c, from, to, n, flags) } {
        Some(r) if is_refused(r) => anew(from, h, again, call).unwrap_or_else(|| result(r)),
        Some(r) => result(r),
        None if process::is_confined() => again(),
        None => call(),
    }
}

fn is_pipe(fd: c_int) -> bool {
    headwater_host::sys::fstat(fd).is_ok_and(|s| s.st_mode & libc::S_IFMT == libc::S_IFIFO)
}
