//! The gate of a FIFO with a name: one of the kernel's, which carries no byte. Whoever opens the FIFO opens the gate in the same
//! mode and keeps it open as long as that open lasts. So open(2) waits for the other side, and it is known whether there is one, as
//! the kernel has it, whoever forks, is killed, or closes.

use core::ffi::CStr;
use std::ffi::CString;

use headwater_host::next::{self, seldom};
use headwater_host::sys::Errno;
use headwater_host::{hidden, sys};
use libc::c_int;

use super::unix;
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
        sys::make_fifo(&path, 0o600)?;
        let named = sys::open(&path, NAMING, 0);
        folder::remove(NAME);
        named
    })?;
    hidden::hide_needed(named)
}

const NAMING: c_int = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;

/// Passes the gate as one who opens with `flags`: a hidden descriptor. Waits as open(2) of a FIFO does, and fails as that does:
/// EINTR, ENXIO. `None` where it can't be reached: without /proc, or as another user than made it.
pub fn pass(gate: c_int, flags: c_int) -> Result<Option<c_int>, Errno> {
    let flags = flags & (libc::O_ACCMODE | libc::O_NONBLOCK);
    // The C library's own, a cancellation point: nothing is owned here.
    let opened = with_path(gate, |path| {
        // SAFETY: a C string.
        match unsafe { seldom::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0) } {
            -1 => Err(next::errno()),
            fd => Ok(fd),
        }
    });
    match opened {
        Err(libc::ENOENT | libc::EACCES) => Ok(None),
        Err(e) => Err(e),
        Ok(fd) => hidden::hide_needed(fd).map(Some),
    }
}

/// Has nobody the gate of this name open for writing? For who reads there. Only read(2) tells that before a writer has been there;
/// it is asked by an open of its own, for whoever shares another may have made that one wait.
pub fn lacks_writers(gate: c_int) -> bool {
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let Ok(open) = with_path(gate, |path| sys::open(path, flags, 0)) else {
        return false;
    };
    // Nothing ever comes.
    let read = sys::read_bytes(open, &mut [0]);
    let _ = sys::close(open);
    read == Ok(0)
}

/// Has an open gate no other side any more: no writer, if it is open for reading, no reader, if for writing? As the kernel tells by
/// poll(2), of readers not before the other side has been there.
pub fn hangs_up(open: c_int) -> bool {
    unix::has_hung_up(open)
}

/// A name for the gate that is open as `fd`.
pub fn name(fd: c_int) -> Result<c_int, Errno> {
    let named = with_path(fd, |path| {
        sys::open(path, libc::O_PATH | libc::O_CLOEXEC, 0)
    });
    named.and_then(hidden::hide_needed)
}

/// Opens again what is open as `fd`.
fn with_path(fd: c_int, open: impl FnOnce(&CStr) -> Result<c_int, Errno>) -> Result<c_int, Errno> {
    let mut room = [0; 32];
    let path = sys::c_text(&mut room, format_args!("/proc/self/fd/{fd}"));
    open(path.ok_or(libc::EINVAL)?)
}
