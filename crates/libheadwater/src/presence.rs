//! access(2) and stat(2) of the names that open(2) makes streams of: configure scripts and libraries ask before they open. What
//! the system has is the system's to say; only where it has no such file, ours is looked for.

use headwater_host::next;
use headwater_host::sys::zeroed;
use libc::{c_int, c_uint};

use crate::given::{Place, Text};
use crate::names::{self, Name};
use crate::{real, refuse};

/// What anybody may do with a name of ours.
const MODE: libc::mode_t = 0o666;
const BLOCK: i32 = 4096;

#[unsafe(no_mangle)]
pub extern "C-unwind" fn access(path: Text, mode: c_int) -> c_int {
    may(real::access(path, mode), path, mode)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn euidaccess(path: Text, mode: c_int) -> c_int {
    may(real::euidaccess(path, mode), path, mode)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn faccessat(dir: c_int, path: Text, mode: c_int, flags: c_int) -> c_int {
    may(real::faccessat(dir, path, mode, flags), path, mode)
}

macro_rules! stats {
    ($($name:ident($($arg:ident: $ty:ty),*; $path:ident, $to:ident $(, $flags:ident)?);)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name($($arg: $ty,)* $path: Text, mut $to: Place<libc::stat> $(, $flags: c_int)?) -> c_int {
            tell(real::$name($($arg,)* $path, $to.again() $(, $flags)?), $path, $to)
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

#[unsafe(no_mangle)]
pub extern "C-unwind" fn statx(
    dir: c_int,
    path: Text,
    flags: c_int,
    mask: c_uint,
    mut to: Place<libc::statx>,
) -> c_int {
    tell_more(real::statx(dir, path, flags, mask, to.again()), path, to)
}

/// What access(2) says, which the system has told.
#[inline(always)]
pub fn may(told: c_int, path: Text, mode: c_int) -> c_int {
    if told == 0 {
        return told;
    }
    match ours(path) {
        Some(_) if mode & libc::X_OK == 0 => 0,
        Some(_) => refuse(libc::EACCES),
        None => told,
    }
}

/// As [`may`], of stat(2).
#[inline(always)]
pub fn tell(told: c_int, path: Text, to: Place<libc::stat>) -> c_int {
    if told == 0 {
        return told;
    }
    given(path, to, |name| {
        let mut st: libc::stat = zeroed();
        st.st_blksize = BLOCK as _;
        st.st_nlink = 1;
        st.st_mode = name.kind | MODE;
        st.st_ino = name.inode;
        st.st_rdev = name.number;
        st
    })
}

/// As [`may`], of statx(2).
#[inline(always)]
pub fn tell_more(told: c_int, path: Text, to: Place<libc::statx>) -> c_int {
    if told == 0 {
        return told;
    }
    given(path, to, |name| {
        let mut st: libc::statx = zeroed();
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

/// Answers for a name of ours; -1: it is none.
#[cold]
fn given<T>(path: Text, to: Place<T>, answer: impl FnOnce(Name) -> T) -> c_int {
    let Some(name) = ours(path) else {
        return -1;
    };
    let Some(to) = to.get() else {
        return refuse(libc::EFAULT);
    };
    *to = answer(name);
    0
}

/// The system has said that it has no such file: have we?
#[cold]
fn ours(path: Text) -> Option<Name> {
    if !matches!(next::errno(), libc::ENOENT | libc::ENOTDIR) {
        return None;
    }
    names::find(path.get()?)
}
