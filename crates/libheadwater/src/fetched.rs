//! pidfd_getfd(2): a copy of a descriptor of some process. What this process has too, as its own or by fork, is a duplicate here.

use headwater_host::next::keep_errno;
use headwater_host::{process, sys, table};
use libc::c_int;

use crate::files;

/// The kernel has given out `new`, a copy of what has the number `fd` in some process.
pub fn fetched(fd: c_int, new: c_int) -> c_int {
    files::fresh(new);
    if new >= 0 && table::any() && process::present() {
        keep_errno(|| {
            if let Some(own) = own_number(fd, new) {
                files::note_dup(own, new);
            }
        });
    }
    new
}

/// Of this process, for the same open file as `new`.
fn own_number(fd: c_int, new: c_int) -> Option<c_int> {
    let is_known = |fd| table::lookup(fd).is_some_and(|h| !files::is_hidden(h));
    let is_own = |&fd: &c_int| fd != new && is_known(fd) && is_same(fd, new);
    if is_own(&fd) {
        return Some(fd);
    }
    if !may_stand_for_one(new) {
        return None;
    }
    table::entries().map(|(fd, _)| fd).find(is_own)
}

/// Sockets, and what has no name, stand for all that we know.
fn may_stand_for_one(fd: c_int) -> bool {
    sys::fstat(fd).is_ok_and(|st| matches!(st.st_mode & libc::S_IFMT, 0 | libc::S_IFSOCK))
}

/// Do the numbers stand for one open file? Where nobody may ask, only of sockets it can be told.
fn is_same(a: c_int, b: c_int) -> bool {
    sys::is_same_file(a, b).unwrap_or_else(|_| {
        let socket = |fd| {
            let st = sys::fstat(fd).ok()?;
            (st.st_mode & libc::S_IFMT == libc::S_IFSOCK).then_some((st.st_dev, st.st_ino))
        };
        socket(a).is_some_and(|a| socket(b) == Some(a))
    })
}
