//! Calls that make and shape connections.

use headwater_host::{process, table};
use headwater_sockets::{life, options};
use libc::{c_int, c_void, sockaddr, socklen_t};

use crate::real;

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn listen(fd: c_int, backlog: c_int) -> c_int {
    let r = real::listen(fd, backlog);
    if r == 0 && process::enabled() {
        life::listening(fd);
    }
    r
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept(
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    let new = real::accept(fd, addr, len);
    if new >= 0
        && let Some(h) = table::socket(fd)
    {
        life::accepted(h, fd, new);
    }
    new
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let new = real::accept4(fd, addr, len, flags);
    if new >= 0
        && let Some(h) = table::socket(fd)
    {
        life::accepted(h, fd, new);
    }
    new
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    let to = if process::enabled() && !addr.is_null() && len >= 16 {
        let mut to: libc::sockaddr_storage = core::mem::zeroed();
        let n = (len as usize).min(size_of::<libc::sockaddr_storage>());
        core::ptr::copy_nonoverlapping(addr as *const u8, &mut to as *mut _ as *mut u8, n);
        life::connecting(fd, &to)
    } else {
        None
    };
    let r = real::connect(fd, addr, len);
    if to.is_some() && (r == 0 || headwater_host::next::errno() == libc::EINPROGRESS) {
        let errno = headwater_host::next::errno();
        life::connected(fd);
        headwater_host::next::set_errno(errno);
    }
    r
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shutdown(fd: c_int, how: c_int) -> c_int {
    let Some(h) = table::socket(fd) else {
        return real::shutdown(fd, how);
    };
    life::shutting(h, how);
    let r = real::shutdown(fd, how);
    let errno = headwater_host::next::errno();
    life::shut(h);
    headwater_host::next::set_errno(errno);
    r
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let r = real::setsockopt(fd, level, name, value, len);
    if r == 0
        && level == libc::SOL_SOCKET
        && !value.is_null()
        && let Some(h) = table::socket(fd)
    {
        options::set_option(h, name, value, len);
    }
    r
}
