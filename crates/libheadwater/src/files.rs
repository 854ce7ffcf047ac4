//! Calls on descriptors as such.

use headwater_endpoints::endpoint;
use headwater_endpoints::stream::{TI_CAPABILITY, TI_GETINFO};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{next, process, select, sys};
use headwater_sockets::{inherit, lend, life, options, restart};
use libc::{c_int, c_uint, c_ulong};

use crate::{real, sctp, streams};

#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub extern "C-unwind" fn close(fd: c_int) -> c_int {
    match table::lookup(fd) {
        None => real::close(fd),
        // The program closes numbers that it does not know: ours stay, for the image that a child of vfork becomes too.
        Some(h) if is_hidden(h) => {
            next::set_errno(libc::EBADF);
            -1
        }
        Some(_) if process::is_borrowed() => real::close(fd),
        Some(h) if h.kind() == Kind::Stream => {
            streams::close(fd, h);
            0
        }
        Some(h) if h.kind() == Kind::Sctp => {
            let r = sctp::close(fd, h);
            if (0..=2).contains(&fd) {
                crate::stdio::follow(fd);
            }
            r
        }
        Some(h) if h.kind() == Kind::Endpoint => {
            let e = endpoint::get(h).inspect(|e| e.forget(fd));
            let r = real::close(fd);
            let errno = next::errno();
            // Now that the program's copy is gone, closing the provider's ends the connection.
            if let Some(e) = e {
                e.let_go();
            }
            next::set_errno(errno);
            r
        }
        Some(_) => {
            let after = life::closing(fd);
            let r = real::close(fd);
            let errno = next::errno();
            if let Some(after) = after {
                after.finish();
            }
            next::set_errno(errno);
            r
        }
    }
}

/// Is it the library's own, a transport endpoint's socket included?
pub fn is_hidden(h: Handle) -> bool {
    h.kind() == Kind::Hidden || life::is_ours(h)
}

/// Closes a range around our hidden descriptors.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_uint) -> c_int {
    const UNSHARE: c_uint = 2;
    const CLOEXEC: c_uint = 4;
    let refused = flags & !(UNSHARE | CLOEXEC) != 0 || first > last;
    let foreign = !table::any() || !process::present();
    // SAFETY: numbers alone.
    let close_all = |first, last| unsafe { real::close_range(first, last, flags) };
    if refused || foreign || flags & CLOEXEC != 0 {
        let r = close_all(first, last);
        if r == 0 && flags == 0 && process::is_confined() {
            let gone = table::entries().filter(|(fd, _)| (first..=last).contains(&(*fd as c_uint)));
            gone.for_each(|(fd, h)| forget(fd, h));
        }
        return r;
    }
    // Other threads keep what this one closes in a table of its own.
    let apart = flags & UNSHARE != 0 && !sys::is_single_threaded();
    let borrowed = process::is_borrowed() || apart;
    let mut from = first;
    for (fd, h) in table::entries() {
        let fd = fd as c_uint;
        if fd < first || fd > last {
            continue;
        }
        if is_hidden(h) {
            if from < fd && close_all(from, fd - 1) < 0 {
                return -1;
            }
            from = fd + 1;
        } else if !borrowed {
            close(fd as c_int);
        }
    }
    if from <= last {
        return close_all(from, last);
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn closefrom(first: c_int) {
    close_range(first.max(0) as c_uint, c_uint::MAX, 0);
}

/// The kernel has just given `new` out: what stands in the table under that number was closed round us, by the C library
/// itself or by a bare system call.
#[inline(always)]
pub fn fresh(new: c_int) -> c_int {
    select::made(new);
    if new >= 0
        && let Some(h) = table::lookup(new)
    {
        forget(new, h);
    }
    new
}

/// Whose a number is that stood for a socket.
pub enum Now {
    /// That socket's still.
    Same,
    /// Something else's that we know.
    Ours,
    /// The kernel's, or nobody's.
    Kernels,
}

/// A call on the socket `h` was refused as on something else, or has to begin anew. Whose is its number by now? If it was closed round
/// us, it is foreign from here on.
#[cold]
pub fn now(fd: c_int, h: Handle) -> Now {
    match table::lookup(fd) {
        Some(known) if known != h => return Now::Ours,
        Some(_) if protocol(fd) == Ok(libc::IPPROTO_TCP) => return Now::Same,
        Some(_) => forget(fd, h),
        None => {}
    }
    Now::Kernels
}

fn protocol(fd: c_int) -> Result<c_int, i32> {
    sys::sockopt(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL)
}

/// Lets go of what was known under a number that is gone.
#[cold]
fn forget(fd: c_int, h: Handle) {
    // A child of vfork has numbers of its own, and its parent's memory.
    if process::is_borrowed() {
        return;
    }
    let errno = next::errno();
    match h.kind() {
        Kind::Hidden => {
            table::clear(fd);
        }
        Kind::Socket | Kind::Epoll => life::lost(fd),
        Kind::Inherited => inherit::closing(fd, h),
        Kind::Stream => {
            if let Some(after) = streams::closing(fd, h) {
                after.finish();
            }
        }
        Kind::Endpoint => {
            if let Some(e) = endpoint::get(h) {
                e.forget(fd);
                e.let_go();
            }
        }
        Kind::Sctp => {
            if let Some(closing) = sctp::closing(fd) {
                closing.finish();
            }
        }
    }
    next::set_errno(errno);
}

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
        next::set_errno(libc::EBADF);
        return -1;
    }
    let stream = table::stream(to).map(|h| streams::closing(to, h));
    let endpoint = endpoint::at(to).inspect(|e| e.forget(to));
    let sctp = sctp::closing(to);
    let after = if stream.is_none() && sctp.is_none() {
        life::closing(to)
    } else {
        None
    };
    if known.is_none() && table::socket(fd).is_some() {
        restart::taken(to);
    }
    let new = real();
    let errno = next::errno();
    if let Some(after) = after {
        after.finish();
    }
    if let Some(Some(after)) = stream {
        after.finish();
    }
    if let Some(e) = endpoint {
        e.let_go();
    }
    if let Some(closing) = sctp {
        closing.finish();
    }
    note_dup(fd, new);
    if stream_went(to) {
        crate::stdio::follow(to);
    }
    next::set_errno(errno);
    new
}

/// Is the number one that was given before the program lowered its limit?
fn beyond_limit(fd: c_int) -> bool {
    fd as u64 >= sys::limit(libc::RLIMIT_NOFILE, libc::RLIM_INFINITY)
}

pub fn keep_errno(does: impl FnOnce()) {
    let errno = next::errno();
    does();
    next::set_errno(errno);
}

/// Has a standard number just become something else than a stream?
fn stream_went(to: c_int) -> bool {
    (0..=2).contains(&to) && table::stream(to).is_none() && !sctp::is_one(to)
}

pub fn note_dup(fd: c_int, new: c_int) {
    if new >= 0
        && let Some(h) = table::lookup(fd)
    {
        if process::is_borrowed() {
            lend::copied(fd, new);
        } else if h.kind() == Kind::Stream {
            streams::duplicated(h, new);
            crate::stdio::follow(new);
        } else if h.kind() == Kind::Sctp {
            headwater_sctp_sockets::face::duplicated(h, new);
            crate::stdio::follow(new);
        } else if let Some(e) = endpoint::at(fd) {
            e.duplicated(new);
        } else {
            life::duplicated(h, new);
            if (0..=2).contains(&new) && h.kind() != Kind::Epoll {
                // The C library's streams, and those of other languages, use these numbers by ways of their own.
                life::passing_on(new);
            }
        }
    } else if new >= 0 && lend::may_copy() {
        // Of a copy.
        lend::copied(fd, new);
    }
}

/// # Safety
/// As fcntl(2) asks of its caller: `arg` is what `cmd` wants.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, cmd: c_int, arg: usize) -> c_int {
    if cmd == libc::F_SETFL
        && let Some(h) = table::stream(fd).filter(|&h| streams::owns_flags(h))
    {
        return streams::set_flags(h, arg as c_int);
    }
    if let Some(e) = endpoint::at(fd) {
        match cmd {
            // The provider's own descriptor, of which this is a copy, does not wait.
            libc::F_SETFL => {
                e.set_nonblocking(arg as c_int & libc::O_NONBLOCK != 0);
                return 0;
            }
            libc::F_GETFL => {
                let nonblock = if e.is_nonblocking() {
                    libc::O_NONBLOCK
                } else {
                    0
                };
                return libc::O_RDWR | nonblock;
            }
            _ => {}
        }
    }
    // SAFETY: the program's argument, which is what `cmd` wants.
    let r = unsafe { real::fcntl(fd, cmd, arg) };
    if r < 0 {
        return r;
    }
    if matches!(cmd, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        note_dup(fd, fresh(r));
        return r;
    }
    if let Some(h) = table::lookup(fd) {
        match cmd {
            libc::F_GETFL if h.kind() == Kind::Stream => {
                return streams::flags(h, r);
            }
            libc::F_SETFL if h.kind() == Kind::Stream => {
                return streams::set_flags(h, arg as c_int);
            }
            libc::F_SETFL if h.kind() == Kind::Sctp => {
                sctp::set_nonblocking(h, arg as c_int & libc::O_NONBLOCK != 0);
            }
            libc::F_SETFL => {
                let Some(h) = table::used(fd) else { return r };
                options::set_nonblocking(h, arg as c_int & libc::O_NONBLOCK != 0);
                if arg as c_int & libc::O_ASYNC != 0 {
                    // SIGIO is raised for what the kernel sees.
                    life::needs_kernel(fd);
                }
            }
            _ => {}
        }
    }
    r
}

/// # Safety
/// As fcntl(2) asks of its caller: `arg` is what `cmd` wants.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, cmd: c_int, arg: usize) -> c_int {
    // SAFETY: the program's argument, which is what `cmd` wants.
    unsafe { fcntl(fd, cmd, arg) }
}

/// The C library's own makes its request where nobody sees it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn sockatmark(fd: c_int) -> c_int {
    let mut is_there: c_int = 0;
    // SAFETY: the request stores a number, for which there is room.
    match unsafe { ioctl(fd, sys::SIOCATMARK, (&raw mut is_there).expose_provenance()) } {
        -1 => -1,
        _ => is_there,
    }
}

/// # Safety
/// As ioctl(2) asks of its caller: `arg` is what the request wants.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: c_ulong, arg: usize) -> c_int {
    // SAFETY: the program's argument; for each request that is looked at here it points to a number, which the program has for itself.
    unsafe {
        if let Some(e) = endpoint::at(fd) {
            if request == libc::FIONBIO && arg != 0 {
                e.set_nonblocking(*(arg as *const c_int) != 0);
                return 0;
            }
            if is_streamio(request) {
                streams::at(fd);
            }
        }
        if let Some(h) = table::stream(fd) {
            return streams::ioctl(fd, h, request, arg);
        }
        if let Some(h) = sctp::at(fd)
            && let Some(r) = sctp::ioctl(h, request, arg)
        {
            return r;
        }
        let r = real::ioctl(fd, request, arg);
        if r < 0 || arg == 0 {
            return r;
        }
        if let Some(h) = sctp::at(fd)
            && request == libc::FIONBIO
        {
            sctp::set_nonblocking(h, *(arg as *const c_int) != 0);
        }
        if let Some(h) = table::socket(fd) {
            let value = arg as *mut c_int;
            match request {
                libc::FIONBIO => options::set_nonblocking(h, *value != 0),
                libc::FIOASYNC if *value != 0 => life::needs_kernel(fd),
                libc::FIONREAD => *value += options::unread(h) as c_int,
                // The mark is behind what was sent before it.
                sys::SIOCATMARK if options::unread(h) > 0 => *value = 0,
                libc::TIOCOUTQ => *value += options::unsent(h) as c_int,
                _ => {}
            }
        }
        r
    }
}

/// A request of streamio(7I), or of the timod(7M) that an endpoint seems to have on it?
fn is_streamio(request: c_ulong) -> bool {
    let timods = TI_GETINFO as c_ulong..=TI_CAPABILITY as c_ulong;
    request >> 8 == b'S' as c_ulong || timods.contains(&request)
}
