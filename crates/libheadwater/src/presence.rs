//! access(2) and stat(2) of the names that open(2) makes streams of: configure scripts and libraries ask before they open. What
//! the system has is the system's to say; only where it has no such file, ours is looked for.

use core::ffi::CStr;

use headwater_host::next;
use headwater_streams::head::control::is_bad;
use libc::{c_char, c_int, c_uint};

use crate::names::{self, Name};
use crate::real;

/// What anybody may do with a name of ours.
const MODE: libc::mode_t = 0o666;
const BLOCK: i32 = 4096;

/// # Safety
/// As access(2) asks of its caller: `path` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the program's string.
    unsafe { may(real::access(path, mode), path, mode) }
}

/// # Safety
/// As euidaccess(3) asks of its caller: `path` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn euidaccess(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the program's string.
    unsafe { may(real::euidaccess(path, mode), path, mode) }
}

/// # Safety
/// As faccessat(2) asks of its caller: `path` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn faccessat(
    dir: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's string.
    unsafe { may(real::faccessat(dir, path, mode, flags), path, mode) }
}

macro_rules! stats {
    ($($name:ident($($arg:ident: $ty:ty),*; $path:ident, $to:ident $(, $flags:ident)?);)*) => {$(
        /// # Safety
        #[doc = concat!("As ", stringify!($name), " asks of its caller: `path` is a string, and `to` has room for what is told.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty,)* $path: *const c_char, $to: *mut libc::stat $(, $flags: c_int)?) -> c_int {
            // SAFETY: the program's string and its room.
            unsafe { tell(real::$name($($arg,)* $path, $to $(, $flags)?), $path, $to) }
        }
    )*};
}

stats! {
    stat(; path, to);
    lstat(; path, to);
    fstatat(dir: c_int; path, to, flags);
    __xstat(version: c_int; path, to);
    __lxstat(version: c_int; path, to);
    __fxstatat(version: c_int, dir: c_int; path, to, flags);
}

/// # Safety
/// As statx(2) asks of its caller: `path` is a string, and `to` has room for what is told.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn statx(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    to: *mut libc::statx,
) -> c_int {
    // SAFETY: the program's string and its room.
    unsafe { tell_more(real::statx(dir, path, flags, mask, to), path, to) }
}

/// What access(2) says, which the system has told.
///
/// # Safety
/// `path` is what the call had.
#[inline(always)]
pub unsafe fn may(told: c_int, path: *const c_char, mode: c_int) -> c_int {
    if told == 0 {
        return told;
    }
    // SAFETY: the path of the call.
    match unsafe { ours(path) } {
        Some(_) if mode & libc::X_OK == 0 => 0,
        Some(_) => {
            next::set_errno(libc::EACCES);
            told
        }
        None => told,
    }
}

/// As [`may`], of stat(2).
///
/// # Safety
/// `path` and `to` are what the call had.
#[inline(always)]
pub unsafe fn tell(told: c_int, path: *const c_char, to: *mut libc::stat) -> c_int {
    // SAFETY: what the call had; all zeroes is a valid struct stat.
    unsafe {
        if told == 0 {
            return told;
        }
        given(path, to, |name| {
            let mut st: libc::stat = core::mem::zeroed();
            st.st_blksize = BLOCK as _;
            st.st_nlink = 1;
            st.st_mode = name.kind | MODE;
            st.st_ino = name.inode;
            st.st_rdev = name.number;
            st
        })
    }
}

/// As [`may`], of statx(2).
///
/// # Safety
/// `path` and `to` are what the call had.
#[inline(always)]
pub unsafe fn tell_more(told: c_int, path: *const c_char, to: *mut libc::statx) -> c_int {
    // SAFETY: what the call had; all zeroes is a valid struct statx.
    unsafe {
        if told == 0 {
            return told;
        }
        given(path, to, |name| {
            let mut st: libc::statx = core::mem::zeroed();
            st.stx_mask = libc::STATX_BASIC_STATS;
            st.stx_blksize = BLOCK as u32;
            st.stx_nlink = 1;
            st.stx_mode = (name.kind | MODE) as u16;
            st.stx_ino = name.inode;
            st.stx_rdev_major = libc::major(name.number);
            st.stx_rdev_minor = libc::minor(name.number);
            st
        })
    }
}

/// Answers for a name of ours; -1: it is none.
#[cold]
unsafe fn given<T>(path: *const c_char, to: *mut T, answer: impl FnOnce(Name) -> T) -> c_int {
    // SAFETY: the path of the call.
    let Some(name) = (unsafe { ours(path) }) else {
        return -1;
    };
    if is_bad(to) {
        next::set_errno(libc::EFAULT);
        return -1;
    }
    // SAFETY: the program's room for an answer.
    unsafe { *to = answer(name) };
    0
}

/// The system has said that it has no such file: have we?
#[cold]
unsafe fn ours(path: *const c_char) -> Option<Name> {
    if !matches!(next::errno(), libc::ENOENT | libc::ENOTDIR) || is_bad(path) {
        return None;
    }
    // SAFETY: the system has read the string.
    names::find(unsafe { CStr::from_ptr(path) })
}
