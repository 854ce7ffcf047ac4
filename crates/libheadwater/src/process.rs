//! fork, exec, spawn, end, signals, and descriptors that leave the process.

use headwater_host::{process, signal, table};
use headwater_sockets::life;
use headwater_streams::head::exec as streams;
use headwater_transport::sctp::socket::{face, remote};
use libc::{c_char, c_int, c_void, msghdr, pid_t};

use crate::{real, start};

/// Descriptors in a control message are about to go to somebody else.
///
/// # Safety
/// `msg` is a valid message header.
pub unsafe fn before_passing(msg: *const msghdr) {
    each_passed(msg, life::passing_on);
}

/// The descriptors in a control message.
///
/// # Safety
/// `msg` is a valid message header.
pub unsafe fn each_passed(msg: *const msghdr, mut f: impl FnMut(c_int)) {
    let mut c = libc::CMSG_FIRSTHDR(msg);
    while !c.is_null() {
        if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_RIGHTS {
            let bytes = ((*c).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            let fds = libc::CMSG_DATA(c) as *const c_int;
            for i in 0..bytes / 4 {
                f(core::ptr::read_unaligned(fds.add(i)));
            }
        }
        c = libc::CMSG_NXTHDR(msg as *mut msghdr, c);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fork() -> pid_t {
    let pid = real::fork();
    if pid < 0 && process::present() {
        life::fork_failed();
    }
    pid
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _exit(status: c_int) -> ! {
    start::ended("_exit");
    real::_exit(status)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _Exit(status: c_int) -> ! {
    start::ended("_exit");
    real::_exit(status)
}

/// The image is about to be replaced, or a copy of our descriptors to be given to another image.
fn before_exec() {
    if headwater_sockets::started() && table::any_tracked() && !process::is_confined() {
        life::before_exec();
    }
}

/// The C library starts it, with the program's own environment.
fn before_shell() {
    if table::any_tracked() && !process::is_confined() {
        face::note_lost(face::lost_by_exec());
    }
    before_exec();
}

/// Around an exec of this process with the environment `envp`, which comes back only if it failed. `exec` gets the
/// environment to use.
unsafe fn replacing(
    envp: *const *const c_char,
    exec: impl FnOnce(*const *const c_char) -> c_int,
) -> c_int {
    if process::is_confined() {
        return exec(envp);
    }
    before_exec();
    let inheritance = inheritance(envp, true);
    let envp = inheritance.as_ref().map_or(envp, |i| i.environment());
    start::ended("exec");
    let ours = headwater_sockets::started() && !process::is_borrowed();
    if ours {
        life::change_holds(-1);
    }
    let failed = exec(envp);
    keeps_errno(remote::stays);
    if ours {
        keeps_errno(|| life::change_holds(1));
    }
    failed
}

fn keeps_errno(does: fn()) {
    let errno = headwater_host::next::errno();
    does();
    headwater_host::next::set_errno(errno);
}

/// What the new image is to have: `here`, in this process.
unsafe fn inheritance(envp: *const *const c_char, here: bool) -> Option<streams::Inheritance> {
    if !table::any_tracked() || process::is_confined() {
        return None;
    }
    let sockets = remote::save(here);
    if sockets.is_empty() {
        face::note_lost(face::lost_by_exec());
    }
    let endpoints = headwater_transport::endpoint::save();
    streams::prepare(
        envp,
        &[
            (headwater_transport::endpoint::VARIABLE, endpoints),
            (remote::VARIABLE, sockets),
        ],
    )
}

/// The program's environment, for the calls that take none.
unsafe fn environment() -> *const *const c_char {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    environ
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execve(
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    replacing(envp, |envp| real::execve(path, argv, envp))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execv(path: *const c_char, argv: *const *const c_char) -> c_int {
    replacing(environment(), |envp| real::execve(path, argv, envp))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvp(file: *const c_char, argv: *const *const c_char) -> c_int {
    replacing(environment(), |envp| real::execvpe(file, argv, envp))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvpe(
    file: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    replacing(envp, |envp| real::execvpe(file, argv, envp))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fexecve(
    fd: c_int,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    replacing(envp, |envp| real::fexecve(fd, argv, envp))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execveat(
    dir: c_int,
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    flags: c_int,
) -> c_int {
    replacing(envp, |envp| real::execveat(dir, path, argv, envp, flags))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attr: *const c_void,
    argv: *const *mut c_char,
    envp: *const *mut c_char,
) -> c_int {
    before_exec();
    let inheritance = inheritance(envp.cast(), false);
    let envp = inheritance
        .as_ref()
        .map_or(envp, |i| i.environment().cast());
    let failed = real::posix_spawn(pid, path, actions, attr, argv, envp);
    keeps_errno(remote::spawned);
    failed
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attr: *const c_void,
    argv: *const *mut c_char,
    envp: *const *mut c_char,
) -> c_int {
    before_exec();
    let inheritance = inheritance(envp.cast(), false);
    let envp = inheritance
        .as_ref()
        .map_or(envp, |i| i.environment().cast());
    let failed = real::posix_spawnp(pid, file, actions, attr, argv, envp);
    keeps_errno(remote::spawned);
    failed
}

/// The new image gets a copy whatever the descriptor's own close-on-exec flag says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_adddup2(
    actions: *mut c_void,
    fd: c_int,
    to: c_int,
) -> c_int {
    life::passing_on(fd);
    real::posix_spawn_file_actions_adddup2(actions, fd, to)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn system(command: *const c_char) -> c_int {
    before_shell();
    real::system(command)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
    before_shell();
    real::popen(command, mode)
}

/// The C library's streams reach the kernel by ways of their own.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut c_void {
    if let Some(file) = crate::stdio::fdopen(fd, mode) {
        return file;
    }
    real::fdopen(fd, mode)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vdprintf(
    fd: c_int,
    format: *const c_char,
    args: *mut c_void,
) -> c_int {
    if let Some(n) = crate::stdio::vdprintf(fd, format, args) {
        return n;
    }
    real::vdprintf(fd, format, args)
}

unsafe extern "C" fn real_sigaction(
    n: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    static NEXT: headwater_host::next::Next = headwater_host::next::Next::new(c"sigaction");
    let f: unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int =
        core::mem::transmute(NEXT.address());
    f(n, new, old)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigaction(
    n: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    signal::sigaction(real_sigaction, n, new, old)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn signal(n: c_int, handler: usize) -> usize {
    install(n, handler, libc::SA_RESTART)
}

unsafe fn install(n: c_int, handler: usize, flags: c_int) -> usize {
    let mut new: libc::sigaction = core::mem::zeroed();
    let mut old: libc::sigaction = core::mem::zeroed();
    new.sa_sigaction = handler;
    new.sa_flags = flags;
    if sigaction(n, &new, &mut old) < 0 {
        return libc::SIG_ERR;
    }
    old.sa_sigaction
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bsd_signal(n: c_int, handler: usize) -> usize {
    install(n, handler, libc::SA_RESTART)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ssignal(n: c_int, handler: usize) -> usize {
    install(n, handler, libc::SA_RESTART)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sysv_signal(n: c_int, handler: usize) -> usize {
    install(n, handler, libc::SA_RESETHAND | libc::SA_NODEFER)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __sysv_signal(n: c_int, handler: usize) -> usize {
    install(n, handler, libc::SA_RESETHAND | libc::SA_NODEFER)
}

/// sigset(3): SIG_HOLD only blocks; anything else is installed and unblocked.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigset(n: c_int, handler: usize) -> usize {
    const SIG_HOLD: usize = 2;
    if handler == SIG_HOLD {
        return signal::unwrapped(n, real::sigset(n, handler));
    }
    let before = install(n, handler, 0);
    if before == libc::SIG_ERR {
        return before;
    }
    let mut set: libc::sigset_t = core::mem::zeroed();
    let mut masked: libc::sigset_t = core::mem::zeroed();
    libc::sigaddset(&mut set, n);
    libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, &mut masked);
    if libc::sigismember(&masked, n) == 1 {
        SIG_HOLD
    } else {
        before
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn siginterrupt(n: c_int, interrupt: c_int) -> c_int {
    let mut action: libc::sigaction = core::mem::zeroed();
    if sigaction(n, core::ptr::null(), &mut action) < 0 {
        return -1;
    }
    if interrupt != 0 {
        action.sa_flags &= !libc::SA_RESTART;
    } else {
        action.sa_flags |= libc::SA_RESTART;
    }
    sigaction(n, &action, core::ptr::null_mut())
}
