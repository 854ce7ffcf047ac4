//! The C library's streams over descriptors that we look after: it would read, write and close them by ways of its own.

use core::ptr::null_mut;

use headwater_host::sync::{AtomicBool, AtomicPtr, Ordering};
use headwater_host::table::{self, Kind};
use headwater_host::{next, process, sys};
use headwater_sockets::life;
use libc::{c_char, c_int, c_void, size_t, ssize_t};

use crate::{data, files, start};

/// cookie_io_functions_t of `<stdio.h>`.
#[repr(C)]
struct Functions {
    read: unsafe extern "C-unwind" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: unsafe extern "C-unwind" fn(*mut c_void, *mut i64, c_int) -> c_int,
    close: unsafe extern "C-unwind" fn(*mut c_void) -> c_int,
}

unsafe extern "C-unwind" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut c_void;
}

unsafe extern "C-unwind" fn read(cookie: *mut c_void, buf: *mut c_char, n: size_t) -> ssize_t {
    data::read(cookie.addr() as c_int, buf.cast(), n)
}

/// Goes on until all is written or a write fails, as the C library's own does: what is less than `n` is a failure (fopencookie(3)).
unsafe extern "C-unwind" fn write(cookie: *mut c_void, buf: *const c_char, n: size_t) -> ssize_t {
    let mut done = 0;
    while done < n {
        match data::write(cookie.addr() as c_int, buf.add(done).cast(), n - done) {
            ..=0 => break,
            written => done += written as size_t,
        }
    }
    done as ssize_t
}

/// As of a pipe or socket.
unsafe extern "C-unwind" fn seek(_: *mut c_void, _: *mut i64, _: c_int) -> c_int {
    next::set_errno(libc::ESPIPE);
    -1
}

unsafe extern "C-unwind" fn close(cookie: *mut c_void) -> c_int {
    files::close(cookie.addr() as c_int)
}

/// Where glibc keeps a FILE's number on LP64 machines: what fileno(3) says. Its ABI has not changed there since 2.1; a FILE of
/// fopencookie(3) does nothing else with it.
const NUMBER: usize = 112;

unsafe fn tell_number(file: *mut c_void, fd: c_int) {
    if !file.is_null() {
        file.byte_add(NUMBER).cast::<c_int>().write(fd);
    }
}

/// Where glibc keeps a FILE's flags, and the one that says that its buffer is the program's.
const FLAGS: usize = 0;
const USER_BUF: c_int = 1;

/// What the C library gives a stream that it knows nothing of.
const BUFSIZ: i64 = 8192;

/// A FILE of fopencookie(3) is given a buffer of BUFSIZ, whatever it stands for. How much goes out at once, and is taken in at
/// once, is to be as with the C library's own FILE, whose buffer is a block of the descriptor's.
unsafe fn give_buffer(file: *mut c_void, fd: c_int) {
    let block = sys::fstat(fd).map_or(0, |st| st.st_blksize);
    if file.is_null() || !(1..BUFSIZ).contains(&block) {
        return;
    }
    let buffer = libc::malloc(block as size_t);
    if buffer.is_null() {
        return;
    }
    next::seldom::setvbuf(file, buffer.cast(), FULLY_BUFFERED, block as size_t);
    // It is freed with the FILE.
    *file.byte_add(FLAGS).cast::<c_int>() &= !USER_BUF;
}

/// A FILE's number, if it has one.
pub unsafe fn number(file: *mut c_void) -> Option<c_int> {
    (!file.is_null()).then(|| file.byte_add(NUMBER).cast::<c_int>().read())
}

/// A stream, an SCTP socket, or one of which something is left that the kernel does not have?
fn is_ours(fd: c_int) -> bool {
    table::lookup(fd).is_some_and(|h| match h.kind() {
        Kind::Stream | Kind::Sctp => true,
        Kind::Socket => headwater_sockets::confine::has_rest(h),
        _ => false,
    })
}

/// The same, or a connection that is looked after?
fn is_known(fd: c_int) -> bool {
    is_ours(fd) || table::socket(fd).is_some_and(|h| !life::is_ours(h))
}

/// The program has made a socket that it may connect after it has made a FILE of it.
static MAY_CONNECT: AtomicBool = AtomicBool::new(false);

pub fn may_connect() {
    if !MAY_CONNECT.load(Ordering::Relaxed) {
        MAY_CONNECT.store(true, Ordering::Relaxed);
    }
}

/// Is it a TCP socket that is nothing to us yet, and may become a connection?
fn is_to_come(fd: c_int) -> bool {
    MAY_CONNECT.load(Ordering::Relaxed)
        && !process::is_confined()
        && start::wants_sockets()
        && table::lookup(fd).is_none()
        && life::is_tcp(fd)
}

/// fdopen(3) on one of them; `None`: it is none.
pub unsafe fn fdopen(fd: c_int, mode: *const c_char) -> Option<*mut c_void> {
    (is_known(fd) || is_to_come(fd)).then_some(())?;
    if !obey(fd, mode) {
        return Some(null_mut());
    }
    let functions = Functions {
        read,
        write,
        seek,
        close,
    };
    let cookie = core::ptr::without_provenance_mut(fd as usize);
    let file = fopencookie(cookie, mode, functions);
    tell_number(file, fd);
    give_buffer(file, fd);
    Some(file)
}

/// The mode has to go with how the descriptor was opened, which becomes one that appends if the mode says so. False, with errno: it
/// does not.
unsafe fn obey(fd: c_int, mode: *const c_char) -> bool {
    let mode = core::ffi::CStr::from_ptr(mode).to_bytes();
    let flags = files::fcntl(fd, libc::F_GETFL, 0);
    if flags < 0 {
        return false;
    }
    let both = mode.contains(&b'+');
    let (reads, writes) = (
        both || mode.first() == Some(&b'r'),
        both || mode.first() != Some(&b'r'),
    );
    let lacks = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => writes,
        libc::O_WRONLY => reads,
        _ => false,
    };
    if lacks {
        next::set_errno(libc::EINVAL);
        return false;
    }
    let appends = mode.first() == Some(&b'a') && flags & libc::O_APPEND == 0;
    !appends || files::fcntl(fd, libc::F_SETFL, (flags | libc::O_APPEND) as usize) >= 0
}

/// vdprintf(3) on one of them: one write.
pub unsafe fn vdprintf(fd: c_int, format: *const c_char, args: *mut c_void) -> Option<c_int> {
    is_known(fd).then_some(())?;
    let mut text = null_mut();
    let n = next::seldom::vasprintf(&mut text, format, args);
    if n < 0 {
        return Some(n);
    }
    let written = data::write(fd, text.cast(), n as size_t);
    libc::free(text.cast());
    Some(written as c_int)
}

unsafe extern "C" {
    static mut stdin: *mut c_void;
    static mut stdout: *mut c_void;
    static mut stderr: *mut c_void;
}

/// The C library's own, while a stream's stands in its place.
static ORIGINAL: [AtomicPtr<c_void>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];
const FULLY_BUFFERED: c_int = 0;
const UNBUFFERED: c_int = 2;

unsafe fn standard(fd: c_int) -> *mut *mut c_void {
    match fd {
        0 => &raw mut stdin,
        1 => &raw mut stdout,
        _ => &raw mut stderr,
    }
}

unsafe extern "C-unwind" fn stay_open(_: *mut c_void) -> c_int {
    0
}

/// A number from 0 to 2 is now a stream, or no longer: `stdin`, `stdout` or `stderr` follow it. They are variables that a
/// program may set (the C library's manual, Standard Streams).
pub unsafe fn follow(fd: c_int) {
    if !(0..=2).contains(&fd) {
        return;
    }
    let (at, original) = (standard(fd), &ORIGINAL[fd as usize]);
    if !is_ours(fd) {
        let before = original.swap(null_mut(), Ordering::AcqRel);
        if !before.is_null() {
            *at = before;
        }
        return;
    }
    if !original.load(Ordering::Acquire).is_null() {
        return;
    }
    let functions = Functions {
        read,
        write,
        seek,
        close: stay_open,
    };
    let mode = if fd == 0 { c"r" } else { c"w" };
    let cookie = core::ptr::without_provenance_mut(fd as usize);
    let file = fopencookie(cookie, mode.as_ptr(), functions);
    if file.is_null() {
        return;
    }
    tell_number(file, fd);
    if fd == 2 {
        next::seldom::setvbuf(file, null_mut(), UNBUFFERED, 0);
    }
    original.store(*at, Ordering::Release);
    *at = file;
}
