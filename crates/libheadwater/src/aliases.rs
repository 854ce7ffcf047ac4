//! Other names for the same functions, but for those of the table in `calls`, and calls that reach a descriptor by ways that we don't
//! see.

use core::ffi::{c_char, c_int, c_void};

use headwater_host::sys;
use headwater_sockets::life;

use crate::given::Opaque;
use crate::variadic::jumps;
use crate::{
    calls, data, dup, files, fread, makers, presence, process, real, sockets, streams, wait, wide,
};

jumps! {
    __close = files::close,
    __dup2 = dup::dup2,
    __fcntl = files::fcntl,
    __libc_fcntl64 = files::fcntl,
    hw_close = files::close,
    __socket = sockets::socket,
    __poll = wait::poll,
    hw_poll = wait::poll,
    __select = wait::select,
    __open = streams::open,
    __open64 = streams::open64,
    __openat64_2 = streams::__openat_2,
    sendfile64 = data::sendfile,
    eaccess = presence::euidaccess,
    stat64 = presence::stat,
    lstat64 = presence::lstat,
    fstatat64 = presence::fstatat,
    __xstat64 = presence::__xstat,
    __lxstat64 = presence::__lxstat,
    __fxstatat64 = presence::__fxstatat,
    __pipe = streams::pipe,
    __fork = process::fork,
    __libc_fork = process::fork,
    __libc_system = process::system,
    __sigaction = process::sigaction,
    __sigtimedwait = process::sigtimedwait,
    __sysv_signal = process::sysv_signal,
    bsd_signal = process::signal,
    ssignal = process::signal,
    _IO_popen = process::popen,
    _IO_fdopen = process::fdopen,
    _IO_fopen = makers::fopen,
    __setmntent = makers::setmntent,
    _IO_fread = fread::fread,
    getwc = wide::fgetwc,
    getwc_unlocked = wide::fgetwc_unlocked,
    putwc = wide::fputwc,
    putwc_unlocked = wide::fputwc_unlocked,
}

/// # Safety
/// As vdprintf(3) asks of its caller: the format goes with the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __vdprintf_chk(
    fd: c_int,
    _flag: c_int,
    format: *const c_char,
    args: *mut c_void,
) -> c_int {
    // SAFETY: the program's format and arguments.
    unsafe { process::vdprintf(fd, format, args) }
}

/// The C library's own makes its request where nobody sees it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn sockatmark(fd: c_int) -> c_int {
    let mut is_there: c_int = 0;
    // SAFETY: the request stores a number, for which there is room.
    match unsafe { calls::ioctl(fd, sys::SIOCATMARK, (&raw mut is_there).expose_provenance()) } {
        -1 => -1,
        _ => is_there,
    }
}

/// POSIX aio has threads of its own, whose calls don't pass through us.
fn before_aio(request: Opaque) {
    /// Where struct aiocb has its descriptor (aio(7)), as the C library defines it for all machines.
    const DESCRIPTOR: usize = 0;
    if !request.is_null() {
        // SAFETY: a struct aiocb, by the program's word.
        life::needs_kernel(unsafe { request.as_ptr().byte_add(DESCRIPTOR).cast::<c_int>().read() });
    }
}

macro_rules! aio {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name(request: Opaque) -> c_int {
            before_aio(request);
            real::$name(request)
        }
    )*};
}

aio!(aio_read, aio_read64, aio_write, aio_write64);

macro_rules! lio {
    ($($name:ident),*) => {$(
        /// # Safety
        /// As lio_listio(3) asks of its caller: the list has `n` requests.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            mode: c_int,
            list: *const Opaque,
            n: c_int,
            event: *mut c_void,
        ) -> c_int {
            // SAFETY: the program's list of `n` requests.
            unsafe {
                if !list.is_null() {
                    for i in 0..n.max(0) as usize {
                        before_aio(*list.add(i));
                    }
                }
                real::$name(mode, list, n, event)
            }
        }
    )*};
}

lio!(lio_listio, lio_listio64);
