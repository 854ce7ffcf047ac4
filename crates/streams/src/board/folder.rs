//! Small files in the user's runtime folder: made, read, replaced. By raw system calls, since this runs inside programs whose
//! calls are ours. None is mapped: whoever may write to a file could truncate it.

use std::ffi::CString;

use headwater_host::shared::{self, folder};
use headwater_host::sys::{self, Errno};

/// Opens a file of the folder, which is made when `flags` have O_CREAT. EPERM: the folder is not this user's alone.
pub fn open(name: &str, flags: i32) -> Result<i32, Errno> {
    shared::enter_own(flags & libc::O_CREAT != 0)?;
    sys::open(
        &path(name)?,
        flags | libc::O_NOFOLLOW | libc::O_CLOEXEC,
        0o600,
    )
}

fn path(name: &str) -> Result<CString, Errno> {
    CString::new(format!("{}/{name}", folder())).map_err(|_| libc::EINVAL)
}

/// All of a file.
pub fn read(name: &str) -> Result<Vec<u8>, Errno> {
    let fd = open(name, libc::O_RDONLY)?;
    let mut all = Vec::new();
    let mut part = vec![0; 4096];
    let done = loop {
        match sys::read_bytes(fd, &mut part) {
            Ok(0) => break Ok(all),
            Ok(n) => all.extend_from_slice(&part[..n]),
            Err(libc::EINTR) => {}
            Err(e) => break Err(e),
        }
    };
    let _ = sys::close(fd);
    done
}

/// Puts a file in the place of the old one at once.
pub fn replace(name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let fresh = format!("{name}.{}", sys::getpid());
    let fd = open(&fresh, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC)?;
    sys::write_all(fd, bytes);
    let whole = sys::fstat(fd).is_ok_and(|st| st.st_size as usize == bytes.len());
    let _ = sys::close(fd);
    let (from, to) = (path(&fresh)?, path(name)?);
    let moved = if whole {
        sys::rename(&from, &to)
    } else {
        Err(libc::ENOSPC)
    };
    if moved.is_err() {
        remove(&fresh);
    }
    moved
}

pub fn remove(name: &str) {
    if let Ok(path) = path(name) {
        let _ = sys::unlink(&path);
    }
}

/// Runs `f` while no other process does so with this name.
pub fn locked<T>(name: &str, f: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let fd = open(name, libc::O_RDWR | libc::O_CREAT)?;
    let done = sys::flock(fd, libc::LOCK_EX).and_then(|()| f());
    let _ = sys::close(fd);
    done
}
