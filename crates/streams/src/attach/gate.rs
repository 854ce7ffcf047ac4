//! The gate of a FIFO with a name: one of the kernel's, which carries no byte. Whoever opens the FIFO opens the gate in the same
//! mode and keeps it open as long as that open lasts. So open(2) waits for the other side, or says that there is none, as the
//! kernel does, whoever forks, is killed, or closes.

use core::ffi::CStr;
use core::fmt::Write;
use std::ffi::CString;

use headwater_host::sys::Errno;
use headwater_host::{hidden, sys};
use libc::c_int;
use syscalls::{Sysno, syscall};

use crate::board::folder;

const LOCK: &str = "fifo.lock";
const NAME: &str = "fifo";

/// A new gate: a hidden descriptor that names it and opens nothing. It has no other name.
pub fn make() -> Result<c_int, Errno> {
    let path = CString::new(format!("{}/{NAME}", headwater_host::board::folder()))
        .map_err(|_| libc::EINVAL)?;
    let named = folder::locked(LOCK, || {
        // Left by somebody who was killed here.
        folder::remove(NAME);
        make_node(&path)?;
        let named = sys::open(&path, NAMING, 0);
        folder::remove(NAME);
        named
    })?;
    hidden::hide_needed(named)
}

const NAMING: c_int = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;

fn make_node(path: &CStr) -> Result<(), Errno> {
    let mode = libc::S_IFIFO | 0o600;
    // SAFETY: a C string.
    unsafe { syscall!(Sysno::mknodat, libc::AT_FDCWD, path.as_ptr(), mode, 0) }
        .map(drop)
        .map_err(|e| e.into_raw())
}

/// Passes the gate as one who opens with `flags`: a hidden descriptor. Waits as open(2) of a FIFO does, and fails as that does:
/// EINTR, ENXIO. `None` where there is no /proc to reach it by.
pub fn pass(gate: c_int, flags: c_int) -> Result<Option<c_int>, Errno> {
    let flags = flags & (libc::O_ACCMODE | libc::O_NONBLOCK);
    match reopen(gate, flags) {
        Err(libc::ENOENT) => Ok(None),
        Err(e) => Err(e),
        Ok(fd) => hidden::hide_needed(fd).map(Some),
    }
}

/// A name for the gate that is open as `fd`.
pub fn name(fd: c_int) -> Result<c_int, Errno> {
    reopen(fd, libc::O_PATH).and_then(hidden::hide_needed)
}

fn reopen(fd: c_int, flags: c_int) -> Result<c_int, Errno> {
    let mut path = [0; 32];
    let mut text = sys::Cursor {
        buf: &mut path[..31],
        len: 0,
    };
    let _ = write!(text, "/proc/self/fd/{fd}");
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| libc::EINVAL)?;
    sys::open(path, flags | libc::O_CLOEXEC, 0)
}
