//! Calls that do nothing but make a descriptor: whatever its number was to us, it is not any more.

use headwater_host::next;
use libc::{c_char, c_int, c_uint, c_void, mode_t, pid_t, sigset_t};

use crate::fetched::fetched;
use crate::files::fresh;
use crate::{real, stdio};

macro_rules! makers {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
            if is_missing(&real::nexts::$name) {
                return -1;
            }
            fresh(real::$name($($argument),*))
        }
    )*};
}

/// A C library that is older than the function: who looks for it by dlsym(3) finds ours.
fn is_missing(function: &next::Next) -> bool {
    let missing = function.address() == 0;
    if missing {
        next::set_errno(libc::ENOSYS);
    }
    missing
}

makers! {
    creat(path: *const c_char, mode: mode_t);
    creat64(path: *const c_char, mode: mode_t);
    memfd_create(name: *const c_char, flags: c_uint);
    shm_open(name: *const c_char, flags: c_int, mode: mode_t);
    mkstemp(path: *mut c_char);
    mkstemp64(path: *mut c_char);
    mkstemps(path: *mut c_char, tail: c_int);
    mkstemps64(path: *mut c_char, tail: c_int);
    mkostemp(path: *mut c_char, flags: c_int);
    mkostemp64(path: *mut c_char, flags: c_int);
    mkostemps(path: *mut c_char, tail: c_int, flags: c_int);
    mkostemps64(path: *mut c_char, tail: c_int, flags: c_int);
    eventfd(count: c_uint, flags: c_int);
    timerfd_create(clock: c_int, flags: c_int);
    signalfd(fd: c_int, mask: *const sigset_t, flags: c_int);
    inotify_init();
    inotify_init1(flags: c_int);
    fanotify_init(flags: c_uint, of_events: c_uint);
    // Variadic: without O_CREAT the rest is not there, and not looked at.
    mq_open(name: *const c_char, flags: c_int, mode: mode_t, attributes: *const c_void);
    __mq_open_2(name: *const c_char, flags: c_int);
    posix_openpt(flags: c_int);
    getpt();
    pidfd_open(pid: pid_t, flags: c_uint);
    open_by_handle_at(mount: c_int, handle: *mut c_void, flags: c_int);
    open_tree(dir: c_int, path: *const c_char, flags: c_uint);
    fsopen(name: *const c_char, flags: c_uint);
    fsmount(fd: c_int, flags: c_uint, attributes: c_uint);
    fspick(dir: c_int, path: *const c_char, flags: c_uint);
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pidfd_getfd(of: c_int, fd: c_int, flags: c_uint) -> c_int {
    if is_missing(&real::nexts::pidfd_getfd) {
        return -1;
    }
    fetched(fd, real::pidfd_getfd(of, fd, flags))
}

/// stdio's.
macro_rules! files {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> *mut c_void {
            let file = real::$name($($argument),*);
            if let Some(fd) = stdio::number(file) {
                fresh(fd);
            }
            file
        }
    )*};
}

files! {
    fopen(path: *const c_char, mode: *const c_char);
    fopen64(path: *const c_char, mode: *const c_char);
    tmpfile();
    tmpfile64();
    setmntent(path: *const c_char, mode: *const c_char);
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn opendir(path: *const c_char) -> *mut c_void {
    let folder = real::opendir(path);
    if !folder.is_null() {
        fresh(real::dirfd(folder));
    }
    folder
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

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn openpty(
    main: *mut c_int,
    terminal: *mut c_int,
    name: *mut c_char,
    settings: *const c_void,
    size: *const c_void,
) -> c_int {
    let r = real::openpty(main, terminal, name, settings, size);
    if r == 0 {
        fresh(*main);
        fresh(*terminal);
    }
    r
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn forkpty(
    main: *mut c_int,
    name: *mut c_char,
    settings: *const c_void,
    size: *const c_void,
) -> pid_t {
    let r = real::forkpty(main, name, settings, size);
    if r == 0 {
        standard();
    }
    if r > 0 {
        fresh(*main);
    }
    r
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn login_tty(fd: c_int) -> c_int {
    let r = real::login_tty(fd);
    if r == 0 {
        standard();
    }
    r
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn daemon(same_folder: c_int, same_descriptors: c_int) -> c_int {
    let r = real::daemon(same_folder, same_descriptors);
    if r == 0 && same_descriptors == 0 {
        standard();
    }
    r
}

/// The C library has put something else in the standard numbers' place.
fn standard() {
    for fd in 0..=2 {
        fresh(fd);
        // SAFETY: the program's own call has changed the number.
        unsafe { stdio::follow(fd) };
    }
}
