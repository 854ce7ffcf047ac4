//! freopen(3) of a FILE that we serve, or whose descriptor we look after: the C library closes and opens it by ways of its own.

use headwater_host::{process, table};
use libc::c_int;

use crate::file::{FilePtr, Held};
use crate::given::Text;
use crate::real::seldom;
use crate::stdio::{self, Served};
use crate::{dup, files, real};

macro_rules! reopeners {
    ($($name:ident),*) => {$(
        /// # Safety
        /// As freopen(3) asks of its caller: a FILE that may be closed.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            path: Text,
            mode: Text,
            file: FilePtr<'static>,
        ) -> FilePtr<'static> {
            reopen(file, path, mode, |file| {
                // SAFETY: the program's strings and its FILE, which nobody uses any more if it is closed.
                let file = unsafe { FilePtr::new(real::$name(path.as_ptr(), mode.as_ptr(), file.as_ptr())) };
                // Its number was closed, and most often it has got it again.
                if let Some(fd) = file.number() {
                    files::fresh(fd);
                }
                file
            })
        }
    )*};
}

reopeners!(freopen, freopen64);

fn reopen(
    file: FilePtr<'static>,
    path: Text,
    mode: Text,
    real: impl Fn(FilePtr<'static>) -> FilePtr<'static>,
) -> FilePtr<'static> {
    let Some(fd) = file.number() else {
        return real(file);
    };
    let served = stdio::served(file);
    if served.is_none() && table::lookup(fd).is_none() {
        return real(file);
    }
    seldom::fflush(file);
    // SAFETY: nobody else uses a FILE that is being reopened.
    let mut held = unsafe { Held::new(file) };
    if let Some(served) = served
        && path.is_null()
        && table::stream(fd).is_some()
        && stdio::obey(fd, mode)
    {
        again(served, mode, &mut held);
        return file;
    }
    let file_there = stdio::behind(fd, file);
    empty(fd);
    let Some(served) = served.filter(|_| file_there == file) else {
        return real(file_there);
    };
    seldom::__fpurge(held.again());
    served.retire();
    stdio::give_room(&mut held);
    let reopened = real(file);
    served.leave();
    reopened
}

/// A stream can't be opened by its number: this is the same open.
fn again(served: &Served, mode: Text, file: &mut Held) {
    seldom::__fpurge(file.again());
    stdio::set_mode(file, mode);
    // SAFETY: its own, as it was found by.
    unsafe { served.renew(file) };
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
    if stand_in < 0 || dup::dup3(stand_in, fd, libc::O_CLOEXEC) < 0 {
        files::close(fd);
    }
    if stand_in >= 0 {
        real::close(stand_in);
    }
    stdio::follow(fd);
}
