//! dup(2) and its kin.

use headwater_host::next::keep_errno;
use headwater_host::{process, select, sys, table};
use headwater_sockets::{lend, restart};
use libc::c_int;

use crate::descriptor::{File, of_kind};
use crate::files::{fresh, is_hidden, note_dup};
use crate::{real, refuse, stdio};

#[unsafe(no_mangle)]
pub extern "C-unwind" fn dup(fd: c_int) -> c_int {
    let new = fresh(real::dup(fd));
    note_dup(fd, new);
    new
}

#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub extern "C-unwind" fn dup2(fd: c_int, to: c_int) -> c_int {
    made(replace(fd, to, || real::dup2(fd, to)))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    if flags & !libc::O_CLOEXEC != 0 {
        return real::dup3(fd, to, flags);
    }
    made(replace(fd, to, || real::dup3(fd, to, flags)))
}

fn made(new: c_int) -> c_int {
    select::made(new);
    new
}

fn replace(fd: c_int, to: c_int, real: impl FnOnce() -> c_int) -> c_int {
    if fd == to || !table::any_tracked() {
        return real();
    }
    if process::is_borrowed() {
        // The copy is for the image that this child of vfork is about to become.
        let new = real();
        if new >= 0 {
            keep_errno(|| lend::copied(fd, to));
        }
        return new;
    }
    if process::is_confined() {
        let new = fresh(real());
        note_dup(fd, new);
        return new;
    }
    // What the kernel would refuse must leave `to` as it is.
    let known = table::lookup(to);
    if known.is_some_and(is_hidden) || known.is_some() && beyond_limit(to) || !sys::is_open(fd) {
        return refuse(libc::EBADF);
    }
    if known.is_none() && table::socket(fd).is_some() {
        restart::taken(to);
    }
    let new = match known {
        None => real(),
        Some(h) => of_kind!(h, goes(to, real)),
    };
    keep_errno(|| {
        note_dup(fd, new);
        stdio::follow(to);
    });
    new
}

/// Is the number one that was given before the program lowered its limit?
fn beyond_limit(fd: c_int) -> bool {
    fd as u64 >= sys::limit(libc::RLIMIT_NOFILE, libc::RLIM_INFINITY)
}
