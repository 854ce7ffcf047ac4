//! The C library's own of the calls that do nothing but make a descriptor, and their table.

use libc::{c_char, c_int, c_uint, c_void, mode_t, pid_t, sigset_t};

/// Gives all of them to a macro.
macro_rules! made {
    ($then:ident) => {
        $then! {
            eventfd(count: c_uint, flags: c_int);
            timerfd_create(clock: c_int, flags: c_int);
            inotify_init();
            inotify_init1(flags: c_int);
            fanotify_init(flags: c_uint, of_events: c_uint);
            posix_openpt(flags: c_int);
            getpt();
            pidfd_open(pid: pid_t, flags: c_uint);
            fsmount(fd: c_int, flags: c_uint, attributes: c_uint);
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
            signalfd(fd: c_int, mask: *const sigset_t, flags: c_int);
            // Variadic: without O_CREAT the rest is not there, and not looked at.
            mq_open(name: *const c_char, flags: c_int, mode: mode_t, attributes: *const c_void);
            __mq_open_2(name: *const c_char, flags: c_int);
            open_by_handle_at(mount: c_int, handle: *mut c_void, flags: c_int);
            open_tree(dir: c_int, path: *const c_char, flags: c_uint);
            fsopen(name: *const c_char, flags: c_uint);
            fspick(dir: c_int, path: *const c_char, flags: c_uint);
        }
    };
}
pub(crate) use made;

macro_rules! declare {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        headwater_host::next_fns! {
            $(fn $name($($argument: $kind),*) -> c_int;)*
        }
    };
}

made! { declare }
