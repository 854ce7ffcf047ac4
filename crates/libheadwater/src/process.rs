//! fork, exec, spawn, end, signals, and descriptors that leave the process.

use core::ffi::CStr;

use headwater_host::image::{self, Image};
use headwater_host::lifecycle::{self, End, Moment};
use headwater_host::next::keep_errno;
use headwater_host::sys::zeroed;
use headwater_host::{env, process, signal, sys, table};
use headwater_sctp_sockets::face;
use headwater_sockets::{inherit, lend, life};
use headwater_streams::head::exec as streams;
use libc::{c_char, c_int, c_void, pid_t};

use crate::file::FilePtr;
use crate::given::{Given, Handler, Opaque, Place, Text, Texts};
use crate::{actions, environment, real, start};

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
    start::ended(End::AtOnce);
    real::_exit(status)
}

#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub extern "C-unwind" fn _Exit(status: c_int) -> ! {
    start::ended(End::AtOnce);
    real::_exit(status)
}

/// What an image that is about to be started has of ours, until it is there or was not started.
struct Handed {
    inheritance: Option<streams::Inheritance>,
    /// Taken back when dropped.
    _lending: lend::Lending,
}

impl Handed {
    fn environment<'a>(&'a self, envp: Texts<'a>) -> Texts<'a> {
        // SAFETY: an environment, which is there as long as this.
        let ours = |i: &streams::Inheritance| unsafe { Texts::new(i.environment()) };
        self.inheritance.as_ref().map_or(envp, ours)
    }
}

/// Before an image is started with the environment `envp`, `here` or in another process. `judge` says what image it is.
fn hand_over(
    envp: Texts,
    here: bool,
    from: c_int,
    copies: &[(c_int, c_int)],
    judge: impl FnOnce() -> Image,
) -> Option<Handed> {
    if !table::any_tracked() || process::is_confined() {
        return None;
    }
    let lending = lend::before_acting(here, from, copies, judge);
    let mut saved = Vec::new();
    lifecycle::tell(Moment::Saving {
        here,
        variables: &mut saved,
    });
    let mut variables: Vec<_> = saved.iter().map(|(name, said)| (*name, &**said)).collect();
    variables.push((inherit::VARIABLE, &*lending.text));
    // SAFETY: an environment.
    let inheritance = unsafe { streams::prepare(envp.as_ptr(), &variables) };
    Some(Handed {
        inheritance,
        _lending: lending,
    })
}

/// The C library starts a shell with the program's own environment.
fn by_shell<T>(start: impl FnOnce() -> T) -> T {
    if !table::any_tracked() || process::is_confined() {
        return start();
    }
    let envp = environment::current();
    let lending = lend::before(false, || image_of(c"/bin/sh", envp));
    face::note_lost(face::lost_by_exec());
    if lending.text.is_empty() {
        return start();
    }
    let variables = [(inherit::VARIABLE, &*lending.text)];
    // SAFETY: the program's environment; what starts a shell reads it, as any thread may.
    unsafe {
        match streams::with_variables(envp.as_ptr(), &variables) {
            Some(theirs) => environment::replaced(theirs, start),
            None => start(),
        }
    }
}

/// Around an exec of this process with the environment `envp`, which comes back only if it failed. `exec` gets the
/// environment to use.
#[unsafe(link_section = ".text.life")]
fn replacing(
    envp: Texts,
    judge: impl FnOnce() -> Image,
    exec: impl FnOnce(Texts) -> c_int,
) -> c_int {
    if process::is_confined() {
        return exec(envp);
    }
    let handed = hand_over(envp, true, c_int::MAX, &[], judge);
    start::ended(End::Exec);
    lifecycle::tell(Moment::Exec);
    let failed = exec(handed.as_ref().map_or(envp, |h| h.environment(envp)));
    keep_errno(|| lifecycle::tell(Moment::Stays));
    keep_errno(move || drop(handed));
    failed
}

fn image_of(path: &CStr, envp: Texts) -> Image {
    // SAFETY: an environment.
    unsafe { image::of(path, envp.as_ptr()) }
}

/// What execve(2) finds; without a path it fails.
fn at(path: Text, envp: Texts) -> Image {
    image_of(path.get().unwrap_or_default(), envp)
}

/// What execvp(3) finds by the name `file`.
fn found(file: Text, envp: Texts) -> Image {
    // SAFETY: an environment, and what getenv(3) finds in the program's.
    unsafe {
        let path = Text::new(env::of_program(c"PATH")).get();
        image::found(file.get().unwrap_or_default(), path, envp.as_ptr())
    }
}

/// What a path below a descriptor, or the descriptor itself, leads to.
fn below(dir: c_int, path: &CStr, envp: Texts) -> Image {
    if dir == libc::AT_FDCWD || path.to_bytes().starts_with(b"/") {
        return image_of(path, envp);
    }
    let mut room = [0u8; 512];
    let mut text = sys::Cursor::new(&mut room[..511]);
    let fits = core::fmt::write(&mut text, format_args!("/proc/self/fd/{dir}")).is_ok()
        && (path.is_empty() || text.push(b"/") && text.push(path.to_bytes()));
    match CStr::from_bytes_until_nul(&room) {
        Ok(path) if fits => image_of(path, envp),
        _ => Image::Stranger,
    }
}

#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub extern "C-unwind" fn execve(path: Text, argv: Texts, envp: Texts) -> c_int {
    let exec = |envp: Texts| real::execve(path, argv, envp);
    replacing(envp, || at(path, envp), exec)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn execv(path: Text, argv: Texts) -> c_int {
    execve(path, argv, environment::current())
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn execvp(file: Text, argv: Texts) -> c_int {
    execvpe(file, argv, environment::current())
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn execvpe(file: Text, argv: Texts, envp: Texts) -> c_int {
    let exec = |envp: Texts| real::execvpe(file, argv, envp);
    replacing(envp, || found(file, envp), exec)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn fexecve(fd: c_int, argv: Texts, envp: Texts) -> c_int {
    let exec = |envp: Texts| real::fexecve(fd, argv, envp);
    replacing(envp, || below(fd, c"", envp), exec)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn execveat(
    dir: c_int,
    path: Text,
    argv: Texts,
    envp: Texts,
    flags: c_int,
) -> c_int {
    let exec = |envp: Texts| real::execveat(dir, path, argv, envp, flags);
    let judge = || below(dir, path.get().unwrap_or_default(), envp);
    replacing(envp, judge, exec)
}

/// Starts a program by `spawn`, which gets the environment. `found` says what image `file` is.
fn spawning(
    file: Text,
    actions: Opaque,
    envp: Texts,
    found: impl FnOnce() -> Image,
    spawn: impl FnOnce(Texts) -> c_int,
) -> c_int {
    let judge = || match actions::may_move(file, actions) {
        true => Image::Stranger,
        false => found(),
    };
    let (from, copies) = (actions::closes_from(actions), actions::copies(actions));
    let handed = hand_over(envp, false, from, &copies, judge);
    let failed = spawn(handed.as_ref().map_or(envp, |h| h.environment(envp)));
    keep_errno(|| lifecycle::tell(Moment::Spawned));
    keep_errno(move || drop(handed));
    failed
}

macro_rules! spawns {
    ($($name:ident of what is $found:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name(
            pid: Place<pid_t>,
            file: Text,
            actions: Opaque,
            attr: Opaque,
            argv: Texts,
            envp: Texts,
        ) -> c_int {
            let spawn = |envp: Texts| real::$name(pid, file, actions, attr, argv, envp);
            spawning(file, actions, envp, || $found(file, envp), spawn)
        }
    )*};
}

spawns! {
    posix_spawn of what is at;
    posix_spawnp of what is found;
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn system(command: Text) -> c_int {
    by_shell(|| real::system(command))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn popen(command: Text, mode: Text) -> *mut c_void {
    by_shell(|| real::popen(command, mode))
}

/// The C library's streams reach the kernel by ways of their own.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fdopen(fd: c_int, mode: Text) -> FilePtr<'static> {
    crate::stdio::fdopen(fd, mode).unwrap_or_else(|| real::fdopen(fd, mode))
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

#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub extern "C-unwind" fn sigaction(
    n: c_int,
    new: Given<libc::sigaction>,
    old: Place<libc::sigaction>,
) -> c_int {
    // SAFETY: the program's actions, null or whole, whose handlers do what handlers may.
    let result = unsafe { signal::sigaction(n, new.as_ptr(), old.as_ptr()) };
    if result == 0 {
        start::handler_installed();
    }
    result
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn signal(n: c_int, handler: Handler) -> Handler {
    install(n, handler, libc::SA_RESTART)
}

fn install(n: c_int, handler: Handler, flags: c_int) -> Handler {
    let mut new: libc::sigaction = zeroed();
    let mut old: libc::sigaction = zeroed();
    new.sa_sigaction = handler.address();
    new.sa_flags = flags;
    if sigaction(n, Given::from(&new), Place::from(&mut old)) < 0 {
        return Handler::ERROR;
    }
    // SAFETY: the program's own from before.
    unsafe { Handler::new(old.sa_sigaction) }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn sigtimedwait(
    set: Given<libc::sigset_t>,
    mut info: Place<libc::siginfo_t>,
    limit: Given<libc::timespec>,
) -> c_int {
    signal::show(real::sigtimedwait(set, info.again(), limit), info.get())
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn sigwaitinfo(
    set: Given<libc::sigset_t>,
    mut info: Place<libc::siginfo_t>,
) -> c_int {
    signal::show(real::sigwaitinfo(set, info.again()), info.get())
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn sysv_signal(n: c_int, handler: Handler) -> Handler {
    install(n, handler, libc::SA_RESETHAND | libc::SA_NODEFER)
}

/// sigset(3): SIG_HOLD only blocks; anything else is installed and unblocked.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn sigset(n: c_int, handler: Handler) -> Handler {
    if handler == Handler::HOLD {
        let before = real::sigset(n, handler).address();
        // SAFETY: the program's own from before.
        return unsafe { Handler::new(signal::unwrapped(n, before)) };
    }
    let before = install(n, handler, 0);
    if before == Handler::ERROR {
        return before;
    }
    // What comes now the program wants.
    let masked = sys::mask_signals(libc::SIG_UNBLOCK, sys::signal_bit(n));
    if masked & sys::signal_bit(n) != 0 {
        Handler::HOLD
    } else {
        before
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn siginterrupt(n: c_int, interrupt: c_int) -> c_int {
    let mut action: libc::sigaction = zeroed();
    if sigaction(n, Given::NULL, Place::from(&mut action)) < 0 {
        return -1;
    }
    if interrupt != 0 {
        action.sa_flags &= !libc::SA_RESTART;
    } else {
        action.sa_flags |= libc::SA_RESTART;
    }
    sigaction(n, Given::from(&action), Place::NULL)
}
