//! Calls that do nothing but make a descriptor: whatever its number was to us, it is not any more.

use libc::{c_char, c_int, c_uint, sigset_t};

use crate::files::fresh;
use crate::real;

macro_rules! makers {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
            fresh(real::$name($($argument),*))
        }
    )*};
}

makers! {
    creat(path: *const c_char, mode: libc::mode_t);
    creat64(path: *const c_char, mode: libc::mode_t);
    memfd_create(name: *const c_char, flags: c_uint);
    mkstemp(path: *mut c_char);
    mkstemp64(path: *mut c_char);
    eventfd(count: c_uint, flags: c_int);
    timerfd_create(clock: c_int, flags: c_int);
    signalfd(fd: c_int, mask: *const sigset_t, flags: c_int);
    inotify_init1(flags: c_int);
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    fds: *mut c_int,
) -> c_int {
    let r = real::socketpair(domain, kind, protocol, fds);
    if r == 0 {
        fresh(*fds);
        fresh(*fds.add(1));
    }
    r
}
