//! The C library's streams over STREAMS descriptors: it would read and write them by ways of its own.

use core::ptr::null_mut;

use headwater_host::table;
use libc::{c_char, c_int, c_void, size_t, ssize_t};

use crate::{data, files};

/// cookie_io_functions_t of `<stdio.h>`.
#[repr(C)]
struct Functions {
    read: unsafe extern "C-unwind" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    /// None: the stream cannot seek.
    seek: *mut c_void,
    close: unsafe extern "C-unwind" fn(*mut c_void) -> c_int,
}

unsafe extern "C-unwind" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut c_void;
    fn vasprintf(text: *mut *mut c_char, format: *const c_char, args: *mut c_void) -> c_int;
}

unsafe extern "C-unwind" fn read(cookie: *mut c_void, buf: *mut c_char, n: size_t) -> ssize_t {
    data::read(cookie.addr() as c_int, buf.cast(), n)
}

/// 0 says that it failed (fopencookie(3)).
unsafe extern "C-unwind" fn write(cookie: *mut c_void, buf: *const c_char, n: size_t) -> ssize_t {
    data::write(cookie.addr() as c_int, buf.cast(), n).max(0)
}

unsafe extern "C-unwind" fn close(cookie: *mut c_void) -> c_int {
    files::close(cookie.addr() as c_int)
}

/// fdopen(3) on a stream; `None`: it is none. fileno(3) does not know such a FILE.
pub unsafe fn fdopen(fd: c_int, mode: *const c_char) -> Option<*mut c_void> {
    table::stream(fd)?;
    let functions = Functions {
        read,
        write,
        seek: null_mut(),
        close,
    };
    let cookie = core::ptr::without_provenance_mut(fd as usize);
    Some(fopencookie(cookie, mode, functions))
}

/// vdprintf(3) on a stream: one write.
pub unsafe fn vdprintf(fd: c_int, format: *const c_char, args: *mut c_void) -> Option<c_int> {
    table::stream(fd)?;
    let mut text = null_mut();
    let n = vasprintf(&mut text, format, args);
    if n < 0 {
        return Some(n);
    }
    let written = data::write(fd, text.cast(), n as size_t);
    libc::free(text.cast());
    Some(written as c_int)
}
