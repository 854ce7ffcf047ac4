//! fork, exec, spawn, end, signals, and descriptors that leave the process.

use core::ffi::CStr;

use headwater_host::image::{self, Image};
use headwater_host::{env, process, signal, sys, table};
use headwater_sctp_sockets::{face, remote};
use headwater_sockets::{inherit, lend, life};
use headwater_streams::head::exec as streams;
use libc::{c_char, c_int, c_void, msghdr, pid_t};

use crate::{actions, environment, real, start};

/// Descriptors in a control message are about to go to somebody else.
///
/// # Safety
/// `msg` is a valid message header.
pub unsafe fn before_passing(msg: *const msghdr) {
    // SAFETY: a message header, by the caller's word.
    unsafe {
        each_passed(msg, life::passing_on);
    }
}

/// The descriptors in a control message.
///
/// # Safety
/// `msg` is a valid message header.
pub unsafe fn each_passed(msg: *const msghdr, mut f: impl FnMut(c_int)) {
    // SAFETY: a message header, by the caller's word. Where a descriptor stands, one can be read.
    unsafe {
        each_place(msg, |at| f(at.read_unaligned()));
    }
}

/// Where they stand.
///
/// # Safety
/// `msg` is a valid message header.
pub unsafe fn each_place(msg: *const msghdr, mut f: impl FnMut(*mut c_int)) {
    // SAFETY: a message header, by the caller's word. The macros stay within its control messages.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(msg);
        while !c.is_null() {
            if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_RIGHTS {
                let bytes = ((*c).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let fds = libc::CMSG_DATA(c) as *mut c_int;
                for i in 0..bytes / 4 {
                    f(fds.add(i));
                }
            }
            c = libc::CMSG_NXTHDR(msg as *mut msghdr, c);
        }
    }
}

#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub extern "C-unwind" fn fork() -> pid_t {
    // What nearly every child calls is looked up here: each of them would do it again, over pages that it does not have yet.
    real::in_handlers::nexts::execve.address();
    real::in_handlers::nexts::_exit.address();
    let pid = real::fork();
    if pid < 0 && headwater_sockets::started() {
        life::fork_failed();
    }
    pid
}

#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub extern "C-unwind" fn _exit(status: c_int) -> ! {
    start::ended(start::End::AtOnce);
    real::_exit(status)
}

#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub extern "C-unwind" fn _Exit(status: c_int) -> ! {
    start::ended(start::End::AtOnce);
    real::_exit(status)
}

/// What an image that is about to be started has of ours, until it is there or was not started.
struct Handed {
    inheritance: Option<streams::Inheritance>,
    /// Taken back when dropped.
    _lending: lend::Lending,
}

impl Handed {
    fn environment(&self, envp: *const *const c_char) -> *const *const c_char {
        self.inheritance.as_ref().map_or(envp, |i| i.environment())
    }
}

/// Before an image is started with the environment `envp`, `here` or in another process. `judge` says what image it is.
unsafe fn hand_over(
    envp: *const *const c_char,
    here: bool,
    from: c_int,
    copies: &[(c_int, c_int)],
    judge: impl FnOnce() -> Image,
) -> Option<Handed> {
    if !table::any_tracked() || process::is_confined() {
        return None;
    }
    let lending = lend::before_acting(here, from, copies, judge);
    let sockets = remote::save(here);
    if sockets.is_empty() {
        face::note_lost(face::lost_by_exec());
    }
    let endpoints = headwater_endpoints::endpoint::save();
    let variables = [
        (headwater_endpoints::endpoint::VARIABLE, &*endpoints),
        (remote::VARIABLE, &*sockets),
        (inherit::VARIABLE, &*lending.text),
    ];
    // SAFETY: an environment, by the caller's word.
    let inheritance = unsafe { streams::prepare(envp, &variables) };
    Some(Handed {
        inheritance,
        _lending: lending,
    })
}

/// The C library starts a shell with the program's own environment.
unsafe fn by_shell<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: the program's environment; what starts a shell reads it, as any thread may.
    unsafe {
        if !table::any_tracked() || process::is_confined() {
            return start();
        }
        let envp = environment::current();
        let lending = lend::before(false, || image::of(c"/bin/sh", envp));
        face::note_lost(face::lost_by_exec());
        if lending.text.is_empty() {
            return start();
        }
        match streams::with_variables(envp, &[(inherit::VARIABLE, &lending.text)]) {
            Some(theirs) => environment::replaced(theirs, start),
            None => start(),
        }
    }
}

/// Around an exec of this process with the environment `envp`, which comes back only if it failed. `exec` gets the
/// environment to use.
#[unsafe(link_section = ".text.life")]
unsafe fn replacing(
    envp: *const *const c_char,
    judge: impl FnOnce() -> Image,
    exec: impl FnOnce(*const *const c_char) -> c_int,
) -> c_int {
    if process::is_confined() {
        return exec(envp);
    }
    // SAFETY: an environment, by the caller's word.
    let handed = unsafe { hand_over(envp, true, c_int::MAX, &[], judge) };
    let envp = handed.as_ref().map_or(envp, |h| h.environment(envp));
    start::ended(start::End::Exec);
    if !process::is_borrowed() {
        inherit::use_closing();
    }
    let ours = headwater_sockets::started() && !process::is_borrowed();
    if ours {
        life::replaced();
    }
    let failed = exec(envp);
    keeps_errno(remote::stays);
    if ours {
        keeps_errno(life::not_replaced);
    }
    keeps_errno(move || drop(handed));
    failed
}

/// What execvp(3) finds by the name `file`.
unsafe fn found(file: *const c_char, envp: *const *const c_char) -> Image {
    // SAFETY: strings, an environment, and what getenv(3) finds in the program's.
    unsafe {
        let path = env::of_program(c"PATH");
        let path = (!path.is_null()).then(|| CStr::from_ptr(path));
        image::found(CStr::from_ptr(file), path, envp)
    }
}

/// What a path below a descriptor, or the descriptor itself, leads to.
unsafe fn below(dir: c_int, path: &CStr, envp: *const *const c_char) -> Image {
    // SAFETY: an environment, by the caller's word.
    let of = |path: &CStr| unsafe { image::of(path, envp) };
    if dir == libc::AT_FDCWD || path.to_bytes().starts_with(b"/") {
        return of(path);
    }
    let mut room = [0u8; 512];
    let mut text = sys::Cursor {
        buf: &mut room[..511],
        len: 0,
    };
    let fits = core::fmt::write(&mut text, format_args!("/proc/self/fd/{dir}")).is_ok()
        && (path.is_empty() || text.push(b"/") && text.push(path.to_bytes()));
    match CStr::from_bytes_until_nul(&room) {
        Ok(path) if fits => of(path),
        _ => Image::Stranger,
    }
}

fn keeps_errno(does: impl FnOnce()) {
    let errno = headwater_host::next::errno();
    does();
    headwater_host::next::set_errno(errno);
}

/// # Safety
/// As execve(2) asks of its caller: `path` is a string, and the arrays of strings end with a null.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub unsafe extern "C-unwind" fn execve(
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    // SAFETY: the program's strings, and null-terminated arrays of them.
    unsafe {
        let judge = || image::of(CStr::from_ptr(path), envp);
        replacing(envp, judge, |envp| real::execve(path, argv, envp))
    }
}

/// # Safety
/// As execv(3) asks of its caller: `path` is a string, and the arrays of strings end with a null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execv(path: *const c_char, argv: *const *const c_char) -> c_int {
    // SAFETY: the program's strings, and null-terminated arrays of them.
    unsafe { execve(path, argv, environment::current()) }
}

/// # Safety
/// As execvp(3) asks of its caller: `file` is a string, and the arrays of strings end with a null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvp(file: *const c_char, argv: *const *const c_char) -> c_int {
    // SAFETY: the program's strings, and null-terminated arrays of them.
    unsafe { execvpe(file, argv, environment::current()) }
}

/// # Safety
/// As execvpe(3) asks of its caller: `file` is a string, and the arrays of strings end with a null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvpe(
    file: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    // SAFETY: the program's strings, and null-terminated arrays of them.
    unsafe {
        replacing(
            envp,
            || found(file, envp),
            |envp| real::execvpe(file, argv, envp),
        )
    }
}

/// # Safety
/// As fexecve(3) asks of its caller: the arrays of strings end with a null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fexecve(
    fd: c_int,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    // SAFETY: the program's strings, and null-terminated arrays of them.
    unsafe {
        let judge = || below(fd, c"", envp);
        replacing(envp, judge, |envp| real::fexecve(fd, argv, envp))
    }
}

/// # Safety
/// As execveat(2) asks of its caller: `path` is a string, and the arrays of strings end with a null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execveat(
    dir: c_int,
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's strings, and null-terminated arrays of them.
    unsafe {
        let judge = || below(dir, CStr::from_ptr(path), envp);
        replacing(envp, judge, |envp| {
            real::execveat(dir, path, argv, envp, flags)
        })
    }
}

/// Starts a program by `spawn`, which gets the environment. `found` says what image `file` is.
unsafe fn spawning(
    file: *const c_char,
    actions: *const c_void,
    envp: *const *mut c_char,
    found: impl FnOnce() -> Image,
    spawn: impl FnOnce(*const *mut c_char) -> c_int,
) -> c_int {
    // SAFETY: the program's string, its actions, and its environment.
    unsafe {
        let judge = || match actions::may_move(file, actions) {
            true => Image::Stranger,
            false => found(),
        };
        let (from, copies) = (actions::closes_from(actions), actions::copies(actions));
        let handed = hand_over(envp.cast(), false, from, &copies, judge);
        let envp = handed
            .as_ref()
            .map_or(envp, |h| h.environment(envp.cast()).cast());
        let failed = spawn(envp);
        keeps_errno(remote::spawned);
        keeps_errno(move || drop(handed));
        failed
    }
}

/// # Safety
/// As posix_spawn(3) asks of its caller: strings, arrays of them that end with a null, and what its own functions have made.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attr: *const c_void,
    argv: *const *mut c_char,
    envp: *const *mut c_char,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let found = || image::of(CStr::from_ptr(path), envp.cast());
        spawning(path, actions, envp, found, |envp| {
            real::posix_spawn(pid, path, actions, attr, argv, envp)
        })
    }
}

/// # Safety
/// As posix_spawnp(3) asks of its caller: strings, arrays of them that end with a null, and what its own functions have made.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attr: *const c_void,
    argv: *const *mut c_char,
    envp: *const *mut c_char,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let found = || found(file, envp.cast());
        spawning(file, actions, envp, found, |envp| {
            real::posix_spawnp(pid, file, actions, attr, argv, envp)
        })
    }
}

/// # Safety
/// As system(3) asks of its caller: `command` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn system(command: *const c_char) -> c_int {
    // SAFETY: the program's string.
    unsafe { by_shell(|| real::system(command)) }
}

/// # Safety
/// As popen(3) asks of its caller: both are strings.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
    // SAFETY: the program's strings.
    unsafe { by_shell(|| real::popen(command, mode)) }
}

/// The C library's streams reach the kernel by ways of their own.
///
/// # Safety
/// As fdopen(3) asks of its caller: `mode` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut c_void {
    // SAFETY: the program's string.
    unsafe {
        if let Some(file) = crate::stdio::fdopen(fd, mode) {
            return file;
        }
        real::fdopen(fd, mode)
    }
}

/// # Safety
/// As vdprintf(3) asks of its caller: the format goes with the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vdprintf(
    fd: c_int,
    format: *const c_char,
    args: *mut c_void,
) -> c_int {
    // SAFETY: the program's format and arguments.
    unsafe {
        if let Some(n) = crate::stdio::vdprintf(fd, format, args) {
            return n;
        }
        real::vdprintf(fd, format, args)
    }
}

unsafe extern "C" fn real_sigaction(
    n: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the C library's function of the name, with the caller's arguments.
    unsafe {
        static NEXT: headwater_host::next::Next = headwater_host::next::Next::new(c"sigaction");
        let f: unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int =
            core::mem::transmute(NEXT.address());
        f(n, new, old)
    }
}

/// # Safety
/// As sigaction(2) asks of its caller: actions are null or whole, and a handler does what handlers may.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub unsafe extern "C-unwind" fn sigaction(
    n: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the program's actions, null or whole.
    let result = unsafe { signal::sigaction(real_sigaction, n, new, old) };
    if result == 0 {
        start::handler_installed();
    }
    result
}

/// # Safety
/// As signal(2) asks of its caller: the handler does what handlers may.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn signal(n: c_int, handler: usize) -> usize {
    // SAFETY: the program's handler.
    unsafe { install(n, handler, libc::SA_RESTART) }
}

unsafe fn install(n: c_int, handler: usize, flags: c_int) -> usize {
    // SAFETY: all zeroes is a valid action, and the handler is the program's.
    unsafe {
        let mut new: libc::sigaction = core::mem::zeroed();
        let mut old: libc::sigaction = core::mem::zeroed();
        new.sa_sigaction = handler;
        new.sa_flags = flags;
        if sigaction(n, &new, &mut old) < 0 {
            return libc::SIG_ERR;
        }
        old.sa_sigaction
    }
}

/// # Safety
/// As signal(2) asks of its caller: the handler does what handlers may.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bsd_signal(n: c_int, handler: usize) -> usize {
    // SAFETY: the program's handler.
    unsafe { install(n, handler, libc::SA_RESTART) }
}

/// # Safety
/// As sigtimedwait(2) asks of its caller: a set, a time or null, and room for what is told or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigtimedwait(
    set: *const libc::sigset_t,
    info: *mut libc::siginfo_t,
    limit: *const libc::timespec,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { signal::show(real::sigtimedwait(set, info, limit), info) }
}

/// # Safety
/// As sigwaitinfo(2) asks of its caller: a set, and room for what is told or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigwaitinfo(
    set: *const libc::sigset_t,
    info: *mut libc::siginfo_t,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { signal::show(real::sigwaitinfo(set, info), info) }
}

/// # Safety
/// As signal(2) asks of its caller: the handler does what handlers may.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ssignal(n: c_int, handler: usize) -> usize {
    // SAFETY: the program's handler.
    unsafe { install(n, handler, libc::SA_RESTART) }
}

/// # Safety
/// As signal(2) asks of its caller: the handler does what handlers may.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sysv_signal(n: c_int, handler: usize) -> usize {
    // SAFETY: the program's handler.
    unsafe { install(n, handler, libc::SA_RESETHAND | libc::SA_NODEFER) }
}

/// sigset(3): SIG_HOLD only blocks; anything else is installed and unblocked.
///
/// # Safety
/// As sigset(3) asks of its caller: the handler does what handlers may.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigset(n: c_int, handler: usize) -> usize {
    // SAFETY: the program's handler; all zeroes is a valid set.
    unsafe {
        const SIG_HOLD: usize = 2;
        if handler == SIG_HOLD {
            return signal::unwrapped(n, real::sigset(n, handler));
        }
        let before = install(n, handler, 0);
        if before == libc::SIG_ERR {
            return before;
        }
        let set = sys::signal_set(sys::signal_bit(n));
        let mut masked: libc::sigset_t = core::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, &mut masked);
        if sys::signals(&masked) & sys::signal_bit(n) != 0 {
            SIG_HOLD
        } else {
            before
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn siginterrupt(n: c_int, interrupt: c_int) -> c_int {
    // SAFETY: all zeroes is a valid action; the one that is set is the program's own, but for a flag.
    unsafe {
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
}
