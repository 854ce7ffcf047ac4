//! freopen(3) of a FILE that we serve, or whose descriptor we look after: the C library closes and opens it by ways of its own.

use headwater_host::{next, process, table};
use libc::{c_char, c_int, c_void};

use crate::stdio::{self, Served};
use crate::{files, real};

macro_rules! reopeners {
    ($($name:ident),*) => {$(
        /// # Safety
        /// As freopen(3) asks of its caller: a path or null, a mode, and a FILE that may be closed.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            path: *const c_char,
            mode: *const c_char,
            file: *mut c_void,
        ) -> *mut c_void {
            // SAFETY: the program's strings and its FILE.
            unsafe {
                reopen(file, path, mode, |file| {
                    let file = real::$name(path, mode, file);
                    // Its number was closed, and most often it has got it again.
                    if let Some(fd) = stdio::number(file) {
                        files::fresh(fd);
                    }
                    file
                })
            }
        }
    )*};
}

reopeners!(freopen, freopen64);

unsafe fn reopen(
    file: *mut c_void,
    path: *const c_char,
    mode: *const c_char,
    real: impl Fn(*mut c_void) -> *mut c_void,
) -> *mut c_void {
    // SAFETY: the program's FILE and strings; nobody else uses a FILE that is being reopened.
    unsafe {
        let Some(fd) = stdio::number(file) else {
            return real(file);
        };
        let served = stdio::served(file);
        if served.is_none() && table::lookup(fd).is_none() {
            return real(file);
        }
        next::seldom::fflush(file);
        if let Some(served) = served
            && path.is_null()
            && table::stream(fd).is_some()
            && stdio::obey(fd, mode)
        {
            again(served, mode, file);
            return file;
        }
        let file_there = stdio::behind(fd, file);
        empty(fd);
        let Some(served) = served.filter(|_| file_there == file) else {
            return real(file_there);
        };
        next::seldom::__fpurge(file);
        served.retire();
        stdio::give_room(file);
        let reopened = real(file);
        served.leave();
        reopened
    }
}

/// A stream can't be opened by its number: this is the same open.
unsafe fn again(served: &Served, mode: *const c_char, file: *mut c_void) {
    // SAFETY: the program's FILE, which nobody else uses meanwhile.
    unsafe {
        next::seldom::__fpurge(file);
        stdio::set_mode(file, mode);
        served.renew();
    }
}

/// Closes what the number stands for. Until the C library puts something else in its place nobody else gets the number: it is a
/// socket, which like ours can't be opened by its number.
fn empty(fd: c_int) {
    let stand_in = match process::is_confined() {
        true => -1,
        false => files::fresh(real::socket(
            libc::AF_UNIX,
            libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
            0,
        )),
    };
    // The program had closed it.
    if stand_in == fd {
        return;
    }
    if stand_in < 0 || files::dup3(stand_in, fd, libc::O_CLOEXEC) < 0 {
        files::close(fd);
    }
    if stand_in >= 0 {
        real::close(stand_in);
    }
    stdio::follow(fd);
}
