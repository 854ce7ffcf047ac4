//! Calls on descriptors as such.

use headwater_host::next::keep_errno;
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{process, select, sys};
use headwater_sockets::{lend, life};
use libc::{c_int, c_uint};

use crate::descriptor::{Asked, File, Hidden, of_kind};
use crate::real;

#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub extern "C-unwind" fn close(fd: c_int) -> c_int {
    match table::lookup(fd) {
        None => real::close(fd),
        // The program closes numbers that it does not know: ours stay, for the image that a child of vfork becomes too.
        Some(h) if is_hidden(h) => Hidden.close(h, fd),
        Some(_) if process::is_borrowed() => real::close(fd),
        Some(h) => of_kind!(h, close(fd)),
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
    if !process::is_borrowed() {
        keep_errno(|| of_kind!(h, lost(fd)));
    }
}

pub fn note_dup(fd: c_int, new: c_int) {
    if new >= 0
        && let Some(h) = table::lookup(fd)
    {
        if process::is_borrowed() {
            lend::copied(fd, new);
        } else {
            of_kind!(h, copied(new));
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
    // SAFETY: the program's argument, which is what `cmd` wants.
    let call = || unsafe { real::fcntl(fd, cmd, arg) };
    if matches!(cmd, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        let new = fresh(call());
        note_dup(fd, new);
        return new;
    }
    match table::lookup(fd) {
        None => call(),
        Some(h) => of_kind!(h, fcntl(fd, Asked { cmd, arg }, call)),
    }
}

/// Not by a jump, as other second names are: most programs know fcntl by this one.
///
/// # Safety
/// As fcntl(2) asks of its caller: `arg` is what `cmd` wants.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, cmd: c_int, arg: usize) -> c_int {
    // SAFETY: the program's argument, which is what `cmd` wants.
    unsafe { fcntl(fd, cmd, arg) }
}

/// fcntl(2) with F_GETFL.
pub fn flags(fd: c_int) -> c_int {
    // SAFETY: it takes no argument.
    unsafe { fcntl(fd, libc::F_GETFL, 0) }
}

/// fcntl(2) with F_SETFL.
pub fn set_flags(fd: c_int, flags: c_int) -> c_int {
    // SAFETY: it takes a number.
    unsafe { fcntl(fd, libc::F_SETFL, flags as usize) }
}
