//! The C library's own definitions of what we export.

use libc::{
    c_char, c_int, c_void, epoll_event, fd_set, nfds_t, off_t, pid_t, pollfd, sigset_t, size_t,
    sockaddr, socklen_t, ssize_t, timespec, timeval, wchar_t,
};

use crate::file::{FilePtr, Held};
use crate::given::{Given, Handler, Opaque, Place, Text, Texts, WideText};

pub use looked_up::*;

mod looked_up {
    pub use super::in_handlers::*;
    pub use crate::prototypes::*;
}

/// Of those, the ones that take nothing but numbers.
macro_rules! of_numbers {
    ($(fn $name:ident($($arg:ident),*) -> $ret:ty;)*) => {$(
        #[inline(always)]
        pub fn $name($($arg: c_int),*) -> $ret {
            // SAFETY: without a pointer there is nothing that the caller could get wrong but what the kernel refuses.
            unsafe { looked_up::$name($($arg),*) }
        }
    )*};
}

of_numbers! {
    fn listen(fd, backlog) -> c_int;
    fn shutdown(fd, how) -> c_int;
}

headwater_host::next_fns! {
    fn __recvfrom_chk(fd: c_int, buf: *mut c_void, n: size_t, size: size_t, flags: c_int, from: *mut sockaddr, len: *mut socklen_t) -> ssize_t;
    fn pidfd_getfd(of: c_int, fd: c_int, flags: libc::c_uint) -> c_int;
    fn freopen(path: *const c_char, mode: *const c_char, file: *mut c_void) -> *mut c_void;
    fn freopen64(path: *const c_char, mode: *const c_char, file: *mut c_void) -> *mut c_void;
    fn fread(to: *mut c_void, size: size_t, n: size_t, file: *mut c_void) -> size_t;
    fn fread_unlocked(to: *mut c_void, size: size_t, n: size_t, file: *mut c_void) -> size_t;
    fn __fread_chk(to: *mut c_void, room: size_t, size: size_t, n: size_t, file: *mut c_void) -> size_t;
    fn __fread_unlocked_chk(to: *mut c_void, room: size_t, size: size_t, n: size_t, file: *mut c_void) -> size_t;
    fn fgetws(to: *mut wchar_t, n: c_int, file: *mut c_void) -> *mut wchar_t;
    fn fgetws_unlocked(to: *mut wchar_t, n: c_int, file: *mut c_void) -> *mut wchar_t;
    fn __fgetws_chk(to: *mut wchar_t, size: size_t, n: c_int, file: *mut c_void) -> *mut wchar_t;
    fn __fgetws_unlocked_chk(to: *mut wchar_t, size: size_t, n: c_int, file: *mut c_void) -> *mut wchar_t;
    fn vfwprintf(file: *mut c_void, format: *const wchar_t, args: *mut c_void) -> c_int;
    fn __vfwprintf_chk(file: *mut c_void, flag: c_int, format: *const wchar_t, args: *mut c_void) -> c_int;
    fn vfwscanf(file: *mut c_void, format: *const wchar_t, args: *mut c_void) -> c_int;
    fn __isoc99_vfwscanf(file: *mut c_void, format: *const wchar_t, args: *mut c_void) -> c_int;
    fn __isoc23_vfwscanf(file: *mut c_void, format: *const wchar_t, args: *mut c_void) -> c_int;
    fn opendir(path: *const c_char) -> *mut c_void;
    fn dirfd(folder: *mut c_void) -> c_int;
    fn __poll_chk(fds: *mut pollfd, n: nfds_t, timeout: c_int, size: size_t) -> c_int;
    fn __ppoll_chk(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t, size: size_t) -> c_int;
    fn epoll_pwait(ep: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t) -> c_int;
    fn epoll_pwait2(ep: c_int, events: *mut epoll_event, max: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    fn lio_listio(mode: c_int, list: *const Opaque, n: c_int, event: *mut c_void) -> c_int;
    fn lio_listio64(mode: c_int, list: *const Opaque, n: c_int, event: *mut c_void) -> c_int;
    fn prctl(option: c_int, a: libc::c_ulong, b: libc::c_ulong, c: libc::c_ulong, d: libc::c_ulong) -> c_int;
    fn vdprintf(fd: c_int, format: *const c_char, args: *mut c_void) -> c_int;
    fn close_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint) -> c_int;
    fn posix_spawn_file_actions_addclosefrom_np(actions: Opaque, from: c_int) -> c_int;
    fn posix_spawn_file_actions_destroy(actions: Opaque) -> c_int;
    fn sendfile(out: c_int, from: c_int, offset: *mut off_t, n: size_t) -> ssize_t;
    fn splice(from: c_int, off_from: *mut i64, to: c_int, off_to: *mut i64, n: size_t, flags: libc::c_uint) -> ssize_t;
    safe:
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, fds: Place<[c_int; 2]>) -> c_int;
    fn sigtimedwait(set: Given<sigset_t>, info: Place<libc::siginfo_t>, limit: Given<timespec>) -> c_int;
    fn sigwaitinfo(set: Given<sigset_t>, info: Place<libc::siginfo_t>) -> c_int;
    fn openpty(main: Place<c_int>, terminal: Place<c_int>, name: Opaque, settings: Opaque, size: Opaque) -> c_int;
    fn forkpty(main: Place<c_int>, name: Opaque, settings: Opaque, size: Opaque) -> pid_t;
    fn login_tty(fd: c_int) -> c_int;
    fn daemon(same_folder: c_int, same_descriptors: c_int) -> c_int;
    fn pipe2(fds: Place<[c_int; 2]>, flags: c_int) -> c_int;
    fn __open_2(path: Text, flags: c_int) -> c_int;
    fn __open64_2(path: Text, flags: c_int) -> c_int;
    fn __openat_2(dir: c_int, path: Text, flags: c_int) -> c_int;
    fn epoll_create(size: c_int) -> c_int;
    fn epoll_create1(flags: c_int) -> c_int;
    fn aio_read(request: Opaque) -> c_int;
    fn aio_read64(request: Opaque) -> c_int;
    fn aio_write(request: Opaque) -> c_int;
    fn aio_write64(request: Opaque) -> c_int;
    fn execvpe(file: Text, argv: Texts, envp: Texts) -> c_int;
    fn fexecve(fd: c_int, argv: Texts, envp: Texts) -> c_int;
    fn execveat(dir: c_int, path: Text, argv: Texts, envp: Texts, flags: c_int) -> c_int;
    fn posix_spawn(pid: Place<pid_t>, path: Text, actions: Opaque, attr: Opaque, argv: Texts, envp: Texts) -> c_int;
    fn posix_spawnp(pid: Place<pid_t>, file: Text, actions: Opaque, attr: Opaque, argv: Texts, envp: Texts) -> c_int;
    fn posix_spawn_file_actions_adddup2(actions: Opaque, fd: c_int, to: c_int) -> c_int;
    fn system(command: Text) -> c_int;
    fn popen(command: Text, mode: Text) -> *mut c_void;
    fn sigset(signal: c_int, handler: Handler) -> Handler;
    fn fopen(path: Text, mode: Text) -> FilePtr<'static>;
    fn fopen64(path: Text, mode: Text) -> FilePtr<'static>;
    fn tmpfile() -> FilePtr<'static>;
    fn tmpfile64() -> FilePtr<'static>;
    fn setmntent(path: Text, mode: Text) -> FilePtr<'static>;
    fn fdopen(fd: c_int, mode: Text) -> FilePtr<'static>;
    fn fputws(text: WideText, file: FilePtr) -> c_int;
    fn fputws_unlocked(text: WideText, file: Held) -> c_int;
    fn fwide(file: FilePtr, mode: c_int) -> c_int;
    fn fgetwc(file: FilePtr) -> c_int;
    fn fputwc(c: wchar_t, file: FilePtr) -> c_int;
    fn ungetwc(c: c_int, file: FilePtr) -> c_int;
    fn fgetwc_unlocked(file: Held) -> c_int;
    fn fputwc_unlocked(c: wchar_t, file: Held) -> c_int;
}

/// Those that a signal handler may call, and more of the kind (signal-safety(7)): looked up before. The calls of the table in
/// `prototypes` are such, and declared there.
pub mod in_handlers {
    use super::*;

    headwater_host::next_fns! {
        fn __read_chk(fd: c_int, buf: *mut c_void, n: size_t, size: size_t) -> ssize_t;
        fn __recv_chk(fd: c_int, buf: *mut c_void, n: size_t, size: size_t, flags: c_int) -> ssize_t;
        fn fcntl(fd: c_int, cmd: c_int, arg: usize) -> c_int;
        fn poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int;
        fn ppoll(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int;
        fn select(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *mut timeval) -> c_int;
        fn pselect(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int;
        fn epoll_wait(ep: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int;
        fn syscall(number: libc::c_long, a: libc::c_long, b: libc::c_long, c: libc::c_long, d: libc::c_long, e: libc::c_long, f: libc::c_long) -> libc::c_long;
        fn longjmp(env: *mut c_void, value: c_int) -> !;
        fn _longjmp(env: *mut c_void, value: c_int) -> !;
        fn siglongjmp(env: *mut c_void, value: c_int) -> !;
        fn __longjmp_chk(env: *mut c_void, value: c_int) -> !;
        fn epoll_ctl(ep: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
        safe:
        fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
        fn pipe(fds: Place<[c_int; 2]>) -> c_int;
        fn open(path: Text, flags: c_int, mode: libc::mode_t) -> c_int;
        fn open64(path: Text, flags: c_int, mode: libc::mode_t) -> c_int;
        fn openat(dir: c_int, path: Text, flags: c_int, mode: libc::mode_t) -> c_int;
        fn openat64(dir: c_int, path: Text, flags: c_int, mode: libc::mode_t) -> c_int;
        fn access(path: Text, mode: c_int) -> c_int;
        fn euidaccess(path: Text, mode: c_int) -> c_int;
        fn faccessat(dir: c_int, path: Text, mode: c_int, flags: c_int) -> c_int;
        fn stat(path: Text, to: Place<libc::stat>) -> c_int;
        fn lstat(path: Text, to: Place<libc::stat>) -> c_int;
        fn fstatat(dir: c_int, path: Text, to: Place<libc::stat>, flags: c_int) -> c_int;
        fn statx(dir: c_int, path: Text, flags: c_int, mask: libc::c_uint, to: Place<libc::statx>) -> c_int;
        fn __xstat(version: c_int, path: Text, to: Place<libc::stat>) -> c_int;
        fn __lxstat(version: c_int, path: Text, to: Place<libc::stat>) -> c_int;
        fn __fxstatat(version: c_int, dir: c_int, path: Text, to: Place<libc::stat>, flags: c_int) -> c_int;
        fn close(fd: c_int) -> c_int;
        fn dup(fd: c_int) -> c_int;
        fn dup2(fd: c_int, to: c_int) -> c_int;
        fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
        fn fork() -> pid_t;
        fn _exit(status: c_int) -> !;
        fn execve(path: Text, argv: Texts, envp: Texts) -> c_int;
    }
}

/// Not interposed, and few processes call them: they are looked up when they are called.
pub mod seldom {
    use super::*;

    /// More than a character of any locale has.
    pub const LONGEST: usize = 16;

    /// How far a character has been converted: mbstate_t.
    pub type Progress = [u64; 2];

    headwater_host::next_fns! {
        fn vasprintf(text: *mut *mut c_char, format: *const c_char, args: *mut c_void) -> c_int;
        fn setvbuf(file: *mut c_void, buf: *mut c_char, mode: c_int, size: usize) -> c_int;
        fn fclose(file: *mut c_void) -> c_int;
        fn flockfile(file: *mut c_void);
        fn funlockfile(file: *mut c_void);
        fn fwrite_unlocked(from: *const c_void, size: usize, n: usize, file: *mut c_void) -> usize;
        fn open_wmemstream(to: *mut *mut wchar_t, n: *mut usize) -> *mut c_void;
        fn mbrtowc(to: *mut wchar_t, from: *const c_char, n: usize, state: *mut c_void) -> usize;
        fn nl_langinfo(item: libc::nl_item) -> *const c_char;
        fn iconv_open(to: *const c_char, from: *const c_char) -> isize;
        fn iconv(with: isize, from: *mut *const c_char, n: *mut usize, to: *mut *mut c_char, room: *mut usize) -> usize;
        fn iconv_close(with: isize) -> c_int;
        fn getnameinfo(addr: *const sockaddr, len: socklen_t, host: *mut c_char, host_size: socklen_t, serv: *mut c_char, serv_size: socklen_t, flags: c_int) -> c_int;
        fn strerror(errno: c_int) -> *const c_char;
        fn _pthread_cleanup_push(entry: *mut c_void, does: usize, with: *mut c_void);
        fn _pthread_cleanup_pop(entry: *mut c_void, does: c_int);
        safe:
        fn fflush(file: FilePtr) -> c_int;
        fn __fpurge(file: Held);
        fn getc_unlocked(file: Held) -> c_int;
        fn ungetc(c: c_int, file: Held) -> c_int;
        fn ferror(file: Held) -> c_int;
        fn wcrtomb(to: &mut [u8; LONGEST], c: wchar_t, state: &mut Progress) -> usize;
        fn iswspace(c: wchar_t) -> c_int;
    }
}
