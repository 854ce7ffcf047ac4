//! Calls that make and shape connections.

use headwater_host::counters::Reason;
use headwater_host::next::{self, keep_errno};
use headwater_host::sync::{AtomicBool, Ordering};
use headwater_host::{board, counters, epoll, process, table};
use headwater_sockets::life::Led;
use headwater_sockets::modes::Effect;
use headwater_sockets::{life, modes, options};
use libc::{c_int, c_void, sockaddr, socklen_t};

use crate::files::fresh;
use crate::{real, refuse, result, sctp, start};

#[unsafe(no_mangle)]
pub extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    if protocol == libc::IPPROTO_SCTP
        && let Some(fd) = sctp::socket(domain, kind)
    {
        return fd;
    }
    let fd = fresh(real::socket(domain, kind, protocol));
    if fd >= 0 && kind & 0xff == libc::SOCK_STREAM && domain != libc::AF_UNIX {
        note_unconnected();
    }
    fd
}

/// The program has made a socket that it may connect after it has made a FILE of it.
static MAY_CONNECT: AtomicBool = AtomicBool::new(false);

fn note_unconnected() {
    if !MAY_CONNECT.load(Ordering::Relaxed) {
        MAY_CONNECT.store(true, Ordering::Relaxed);
    }
}

pub fn may_connect() -> bool {
    MAY_CONNECT.load(Ordering::Relaxed)
}

/// # Safety
/// As getsockopt(2) asks of its caller: `value` has room for `len` bytes.
pub unsafe fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the program's length, and as much room for a value; after success both are there.
    unsafe {
        if level == libc::IPPROTO_TCP
            && name == libc::TCP_ZEROCOPY_RECEIVE
            && let Some(h) = table::socket(fd)
        {
            if !options::is_carried(h) {
                life::needs_kernel(fd);
            }
            if options::is_carried(h) {
                return result(options::map_nothing(h, fd, value, len).map(|()| 0)) as c_int;
            }
        }
        let r = real::getsockopt(fd, level, name, value, len);
        if r == 0
            && level == libc::SOL_SOCKET
            && name == libc::SO_ERROR
            && let Some(h) = table::socket(fd)
            && let Some(e) = options::kept_error(h)
        {
            let n = (*len as usize).min(size_of::<c_int>());
            core::ptr::copy_nonoverlapping((&raw const e).cast::<u8>(), value.cast::<u8>(), n);
        }
        r
    }
}

pub fn listen(fd: c_int, backlog: c_int) -> c_int {
    // What takes long comes first: clients may be there as soon as the kernel listens.
    let mut ours = start::wants_sockets() && life::is_tcp(fd) && start::sockets();
    if ours && process::is_barred() {
        counters::note(Reason::Uring);
        ours = false;
    }
    if ours {
        life::before_listening(fd);
    }
    let r = real::listen(fd, backlog);
    if r == 0 && ours {
        life::listening(fd);
    }
    r
}

/// # Safety
/// As accept(2) asks of its caller: `addr` is null or has room for `len` bytes.
pub unsafe fn accept(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the program's room for an address.
    accepted(fd, unsafe { real::accept(fd, addr, len) })
}

#[inline]
fn accepted(fd: c_int, new: c_int) -> c_int {
    fresh(new);
    if new >= 0
        && let Some(h) = table::socket(fd)
    {
        life::accepted(h, fd, new);
    }
    new
}

/// # Safety
/// As accept4(2) asks of its caller: `addr` is null or has room for `len` bytes.
pub unsafe fn accept4(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: the program's room for an address.
    accepted(fd, unsafe { real::accept4(fd, addr, len, flags) })
}

/// # Safety
/// As connect(2) asks of its caller: `addr` has `len` bytes.
pub unsafe fn connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the program's address of `len` bytes.
    unsafe {
        if !addr.is_null()
            && len >= 2
            && let Some(h) = table::socket(fd)
            && (*addr).sa_family == libc::AF_UNSPEC as libc::sa_family_t
        {
            let r = real::connect(fd, addr, len);
            if r == 0 {
                life::disconnected(fd, h);
            }
            return r;
        }
        let led = if start::wants_sockets() {
            leads_to(fd, addr, len)
        } else {
            Led::Nowhere
        };
        let r = real::connect(fd, addr, len);
        if led != Led::Nowhere && (r == 0 || next::errno() == libc::EINPROGRESS) {
            keep_errno(|| {
                if life::connected(fd, led) {
                    epoll::adopted(fd);
                }
            });
        }
        r
    }
}

/// Is a connection to this address worth looking after?
unsafe fn leads_to(fd: c_int, addr: *const sockaddr, len: socklen_t) -> Led {
    if addr.is_null() || len < 16 {
        return Led::Nowhere;
    }
    let n = (len as usize).min(size_of::<libc::sockaddr_storage>());
    // SAFETY: all zeroes is a valid one; the program's address has `len` bytes, of which no more are copied than there is room for.
    let to = unsafe {
        let mut to: libc::sockaddr_storage = core::mem::zeroed();
        core::ptr::copy_nonoverlapping(addr as *const u8, &mut to as *mut _ as *mut u8, n);
        to
    };
    let Some(to) = board::addr_of(&to) else {
        return Led::Nowhere;
    };
    // UDP and the like are no reason to begin.
    if start::has_sockets() || life::is_tcp(fd) && start::sockets() {
        match life::connecting(fd, to) {
            Led::Here if process::is_barred() => life::elsewhere(fd, Reason::Uring),
            led => led,
        }
    } else {
        Led::Nowhere
    }
}

pub fn shutdown(fd: c_int, how: c_int) -> c_int {
    let known = matches!(how, libc::SHUT_RD | libc::SHUT_WR | libc::SHUT_RDWR);
    let Some(h) = table::socket(fd).filter(|_| known) else {
        return real::shutdown(fd, how);
    };
    let r = life::shutting(h, how).map_or(0, |how| real::shutdown(fd, how));
    keep_errno(|| life::shut(h, how, r == 0));
    r
}

/// # Safety
/// As setsockopt(2) asks of its caller: `value` has `len` bytes.
pub unsafe fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: the program's value of `len` bytes.
    unsafe {
        if let Some(h) = table::socket(fd)
            && options::is_connection(h)
            && !value.is_null()
        {
            let number = (len >= 4).then(|| (value as *const i32).read_unaligned());
            match modes::effect(level, name, number) {
                Effect::None => {}
                Effect::Segments => _ = life::option_needs_kernel(fd),
                Effect::Kernel if life::option_needs_kernel(fd) => {}
                Effect::Kernel => return refuse(libc::EOPNOTSUPP),
                Effect::Unknown => return refuse(libc::ENOENT),
            }
        }
        let r = real::setsockopt(fd, level, name, value, len);
        if r == 0 && level == libc::SOL_SOCKET && !value.is_null() && process::present() {
            options::note_limit(fd, name, value, len);
            if let Some(h) = table::socket(fd) {
                options::set_option(h, fd, name, value, len);
            }
        }
        r
    }
}
