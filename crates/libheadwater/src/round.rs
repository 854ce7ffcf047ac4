//! syscall(2): a call by number takes the way of the function of its name, if it concerns what we look after. All others are
//! made as they are: the C library's functions make other calls than their names say.
//!
//! Why a number is not here stands in `not-by-number.txt`; a test (symbols) goes through all that there are.

#![expect(
    non_upper_case_globals,
    reason = "the numbers' names are the C library's"
)]

use core::ffi::{c_int, c_long, c_ulong, c_void};
use core::time::Duration;

use headwater_host::lifecycle::End;
use headwater_host::table::{self, Kind};
use headwater_host::{process, sys};
use headwater_sockets::life;
use libc::*;

use crate::calls::Arguments;
use crate::fetched::fetched;
use crate::given::{Place, Text, Texts};
use crate::{
    calls, confine, data, dup, files, makers, presence, process as ending, real, sockets, start,
    streams, uring, wait,
};

/// As the C library's: a variadic function takes its arguments like this one.
///
/// # Safety
/// As the call of that number asks of its caller.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: the program's arguments, as the call of that number takes them.
    unsafe {
        if process::present() || table::any_tracked() {
            let arguments = Arguments([a, b, c, d, e, f]);
            let served = calls::by_number(number, &arguments)
                .or_else(|| moves_data(number, &arguments))
                .or_else(|| waits(number, &arguments))
                .or_else(|| changes(number, &arguments))
                .or_else(|| asks(number, &arguments))
                .or_else(|| makes(number, &arguments))
                .or_else(|| ends(number, &arguments));
            if let Some(result) = served {
                return result;
            }
        }
        real::syscall(number, a, b, c, d, e, f)
    }
}

impl Arguments {
    /// The call itself.
    unsafe fn call(&self, number: c_long) -> c_long {
        let [a, b, c, d, e, f] = self.0;
        // SAFETY: the program's arguments, as the call of that number takes them.
        unsafe { real::syscall(number, a, b, c, d, e, f) }
    }
}

/// Data from one descriptor to another.
unsafe fn moves_data(number: c_long, a: &Arguments) -> Option<c_long> {
    // SAFETY: the program's arguments, as the call of that number takes them.
    unsafe {
        let r = match number {
            SYS_sendfile if a.is_known(0) || a.is_known(1) => {
                data::sendfile(a.of(0), a.of(1), a.of(2), a.of(3))
            }
            SYS_splice if a.is_known(0) || a.is_known(2) => {
                data::splice(a.of(0), a.of(1), a.of(2), a.of(3), a.of(4), a.of(5))
            }
            SYS_io_submit => {
                submitted(a.0[1], a.of(2));
                return None;
            }
            _ => return None,
        };
        Some(r as c_long)
    }
}

/// io_submit(2): its requests are served by the kernel alone.
unsafe fn submitted(n: c_long, list: *const *const u8) {
    // SAFETY: the program's list of `n` requests, null or struct iocb.
    unsafe {
        /// Where struct iocb of `<linux/aio_abi.h>` has its descriptor.
        const DESCRIPTOR: usize = 20;
        if list.is_null() {
            return;
        }
        for i in 0..n.max(0) as usize {
            let request = *list.add(i);
            if !request.is_null() {
                life::needs_kernel(request.add(DESCRIPTOR).cast::<c_int>().read_unaligned());
            }
        }
    }
}

/// libaio's. Made here as it makes it: older ones do so without syscall(2), and ours may be the only one in sight, where a
/// module has libaio to itself.
///
/// # Safety
/// As io_submit(2) asks of its caller: the list has `n` requests.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn io_submit(
    context: *mut c_void,
    n: c_long,
    list: *const *const u8,
) -> c_int {
    if table::any_tracked() {
        // SAFETY: the program's list.
        unsafe { submitted(n, list) };
    }
    // SAFETY: the program's arguments.
    match unsafe { sys::io_submit(context, n, list) } {
        Ok(n) => n,
        Err(e) => -e,
    }
}

unsafe fn waits(number: c_long, a: &Arguments) -> Option<c_long> {
    // SAFETY: the program's arguments, as the call of that number takes them.
    unsafe {
        let set = |i| table::lookup(a.of(i)).is_some_and(|h| h.kind() == Kind::Epoll);
        let set = |i| set(i) || process::is_confined();
        let r = match number {
            #[cfg(target_arch = "x86_64")]
            SYS_poll if wait::concerns(a.of(0), a.of(1)) => wait::poll(a.of(0), a.of(1), a.of(2)),
            SYS_ppoll
                if wait::concerns(a.of(0), a.of(1))
                    && is_mask(a.of(3), a.of(4))
                    && !wait::is_wrong(a.of(2)) =>
            {
                timed(a.of(2), |timeout| {
                    wait::ppoll(a.of(0), a.of(1), timeout, a.of(3))
                })
            }
            #[cfg(target_arch = "x86_64")]
            SYS_select if wait::select_concerns(a.of(0), [a.of(1), a.of(2), a.of(3)]) => {
                wait::select_by_number(a.of(0), a.of(1), a.of(2), a.of(3), a.of(4))
            }
            SYS_pselect6 if wait::select_concerns(a.of(0), [a.of(1), a.of(2), a.of(3)]) => {
                // The mask and its size are behind a pointer.
                let (mask, size) = a
                    .of::<*const (*const sigset_t, usize)>(5)
                    .as_ref()
                    .copied()
                    .unwrap_or((core::ptr::null(), 0));
                if !is_mask(mask, size) || wait::is_wrong(a.of(4)) {
                    return None;
                }
                timed(a.of(4), |timeout| {
                    wait::pselect(a.of(0), a.of(1), a.of(2), a.of(3), timeout, mask)
                })
            }
            #[cfg(target_arch = "x86_64")]
            SYS_epoll_create => wait::epoll_create(a.of(0)),
            SYS_epoll_create1 => wait::epoll_create1(a.of(0)),
            SYS_epoll_ctl => wait::epoll_ctl(a.of(0), a.of(1), a.of(2), a.of(3)),
            #[cfg(target_arch = "x86_64")]
            SYS_epoll_wait if set(0) => wait::epoll_wait(a.of(0), a.of(1), a.of(2), a.of(3)),
            SYS_epoll_pwait if set(0) && is_mask(a.of(4), a.of(5)) => {
                wait::epoll_pwait(a.of(0), a.of(1), a.of(2), a.of(3), a.of(4))
            }
            SYS_epoll_pwait2 if set(0) && is_mask(a.of(4), a.of(5)) => {
                wait::epoll_pwait2(a.of(0), a.of(1), a.of(2), a.of(3), a.of(4))
            }
            _ => return None,
        };
        Some(r as c_long)
    }
}

/// Does the kernel take a mask of signals of that size? It says EINVAL of others.
fn is_mask(mask: *const sigset_t, size: usize) -> bool {
    mask.is_null() || size == 8
}

/// The kernel leaves the time that was not slept; the C library's functions hide that.
unsafe fn timed(timeout: *mut timespec, call: impl FnOnce(*const timespec) -> c_int) -> c_int {
    // SAFETY: the program's time, which the call by number may change.
    unsafe {
        if timeout.is_null() {
            return call(timeout);
        }
        let begun = sys::now();
        let whole = wait::duration(&*timeout);
        let r = call(timeout);
        let left = whole.saturating_sub(Duration::from_nanos(sys::now() - begun));
        (*timeout).tv_sec = left.as_secs() as _;
        (*timeout).tv_nsec = left.subsec_nanos() as _;
        r
    }
}

/// Descriptors that come, go or are changed.
unsafe fn changes(number: c_long, a: &Arguments) -> Option<c_long> {
    // SAFETY: the program's arguments, as the call of that number takes them.
    unsafe {
        let r = match number {
            SYS_close if a.is_known(0) => files::close(a.of(0)),
            SYS_close_range => files::close_range(a.of(0), a.of(1), a.of(2)),
            SYS_dup => dup::dup(a.of(0)),
            #[cfg(target_arch = "x86_64")]
            SYS_dup2 if a.is_known(0) || a.is_known(1) => dup::dup2(a.of(0), a.of(1)),
            SYS_dup3 if a.is_known(0) || a.is_known(1) => dup::dup3(a.of(0), a.of(1), a.of(2)),
            SYS_fcntl if a.is_known(0) || matches!(a.of(1), F_DUPFD | F_DUPFD_CLOEXEC) => {
                files::fcntl(a.of(0), a.of(1), a.of(2))
            }
            #[cfg(target_arch = "x86_64")]
            SYS_open if process::present() => streams::open(Text::new(a.of(0)), a.of(1), a.of(2)),
            SYS_openat => streams::openat(a.of(0), Text::new(a.of(1)), a.of(2), a.of(3)),
            #[cfg(target_arch = "x86_64")]
            SYS_pipe if process::present() => streams::pipe(Place::new(a.of(0))),
            SYS_pipe2 => streams::pipe2(Place::new(a.of(0)), a.of(1)),
            SYS_socket => sockets::socket(a.of(0), a.of(1), a.of(2)),
            _ => return None,
        };
        Some(r as c_long)
    }
}

/// Questions about a name, which may be one of ours if the system has no such file.
unsafe fn asks(number: c_long, a: &Arguments) -> Option<c_long> {
    // SAFETY: the program's arguments: the path, and room for an answer, are where the call of that number has them.
    unsafe {
        let path = match number {
            #[cfg(target_arch = "x86_64")]
            SYS_access | SYS_stat | SYS_lstat => 0,
            SYS_faccessat | SYS_faccessat2 | SYS_newfstatat | SYS_statx => 1,
            _ => return None,
        };
        let told = a.call(number) as c_int;
        let (path, next) = (Text::new(a.of(path)), path + 1);
        let r = match number {
            #[cfg(target_arch = "x86_64")]
            SYS_access => presence::may(told, path, a.of(next)),
            SYS_faccessat | SYS_faccessat2 => presence::may(told, path, a.of(next)),
            SYS_statx => presence::tell_more(told, path, Place::new(a.of(4))),
            _ => presence::tell(told, path, Place::new(a.of(next))),
        };
        Some(r as c_long)
    }
}

/// Descriptors of other kinds, which may have a number that was one of ours.
unsafe fn makes(number: c_long, a: &Arguments) -> Option<c_long> {
    // SAFETY: the program's arguments; after success there are two numbers where pipe(2) stores them.
    unsafe {
        match number {
            #[cfg(target_arch = "x86_64")]
            // The C library opens by another call, which a confined process may not make.
            SYS_open | SYS_creat | SYS_eventfd | SYS_signalfd | SYS_inotify_init => {}
            SYS_openat2
            | SYS_memfd_create
            | SYS_memfd_secret
            | SYS_eventfd2
            | SYS_timerfd_create
            | SYS_signalfd4
            | SYS_inotify_init1
            | SYS_fanotify_init
            | SYS_userfaultfd
            | SYS_perf_event_open
            | SYS_pidfd_open
            | SYS_open_by_handle_at
            | SYS_open_tree
            | SYS_open_tree_attr
            | SYS_fsopen
            | SYS_fsmount
            | SYS_fspick
            | SYS_mq_open => {}
            SYS_bpf if makes_by_bpf(a.0[0]) => {}
            // With a flag it is a question for a version.
            SYS_landlock_create_ruleset if a.0[2] == 0 => {}
            SYS_pidfd_getfd => {
                let r = a.call(number);
                return Some(fetched(a.of(1), r as c_int) as c_long);
            }
            #[cfg(target_arch = "x86_64")]
            SYS_pipe => {
                let r = real::syscall(number, a.0[0], 0, 0, 0, 0, 0);
                return Some(makers::both(Place::new(a.of(0)), r as c_int).into());
            }
            SYS_socketpair => {
                let r = makers::socketpair(a.of(0), a.of(1), a.of(2), Place::new(a.of(3)));
                return Some(r as c_long);
            }
            _ => return None,
        }
        let r = a.call(number);
        files::fresh(r as c_int);
        Some(r)
    }
}

/// Not in every C library's headers yet.
const SYS_open_tree_attr: c_long = 467;

/// The commands of enum bpf_cmd, `<linux/bpf.h>`, that make a descriptor: maps, programs, links and the like, new or by their ids.
fn makes_by_bpf(command: c_long) -> bool {
    matches!(
        command,
        0 | 5 | 7 | 13 | 14 | 17 | 18 | 19 | 28 | 30 | 32 | 33 | 36
    )
}

/// Calls that end or copy the process, change its image or bind it.
unsafe fn ends(number: c_long, a: &Arguments) -> Option<c_long> {
    // SAFETY: the program's arguments, as the call of that number takes them.
    unsafe {
        let r = match number {
            SYS_execve => {
                ending::execve(Text::new(a.of(0)), Texts::new(a.of(1)), Texts::new(a.of(2)))
            }
            SYS_execveat => {
                let (argv, envp) = (Texts::new(a.of(2)), Texts::new(a.of(3)));
                ending::execveat(a.of(0), Text::new(a.of(1)), argv, envp, a.of(4))
            }
            SYS_exit_group => ending::_exit(a.of(0)),
            SYS_exit => {
                if sys::is_single_threaded() {
                    start::ended(End::AtOnce);
                }
                return None;
            }
            #[cfg(target_arch = "x86_64")]
            SYS_fork => return Some(start::forking(|| real::syscall(number, 0, 0, 0, 0, 0, 0))),
            // Without memory in common it is a fork.
            SYS_clone if is_fork(a.0[0] as u64) && !process::is_borrowed() => {
                return Some(forked(number, a, a.0[0] as u64, a.of(2)));
            }
            SYS_clone3 if !a.of::<*const u64>(0).is_null() && is_fork(*a.of::<*const u64>(0)) => {
                // Flags, and the place of a descriptor of the child's: struct clone_args of `<linux/sched.h>`.
                let [flags, place] = a.of::<*const [u64; 2]>(0).read_unaligned();
                let place = core::ptr::with_exposed_provenance(place as usize);
                return Some(forked(number, a, flags, place));
            }
            SYS_seccomp => {
                confine::seccomp(a.of(0), a.of(1), a.of(2));
                return None;
            }
            SYS_prctl => {
                let [a, b, c, d, e, _] = a.0.map(|x| x as c_ulong);
                confine::prctl(a as c_int, b, c, d, e)
            }
            SYS_io_uring_setup => {
                let params = a.of(1);
                let r = uring::setting_up()
                    .unwrap_or_else(|| real::syscall(number, a.0[0], a.0[1], 0, 0, 0, 0));
                uring::set_up(r, params);
                return Some(r);
            }
            SYS_io_uring_register => {
                uring::registering(a.0[1]);
                return None;
            }
            SYS_io_uring_enter => {
                uring::entering(a.of(0), a.of(1), a.of(3));
                return None;
            }
            _ => return None,
        };
        Some(r as c_long)
    }
}

/// A child by clone, and with it a descriptor that stands for it, if `flags` ask for one.
unsafe fn forked(number: c_long, a: &Arguments, flags: u64, place: *const c_int) -> c_long {
    // SAFETY: the program's arguments; with a descriptor asked for there is one at its place.
    unsafe {
        let pid = start::forking(|| a.call(number));
        if pid > 0 && flags & CLONE_PIDFD as u64 != 0 {
            files::fresh(*place);
        }
        pid
    }
}

fn is_fork(flags: u64) -> bool {
    flags & (CLONE_VM | CLONE_THREAD | CLONE_FILES) as u64 == 0
}
