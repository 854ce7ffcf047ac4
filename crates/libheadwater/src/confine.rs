//! seccomp(2): the process forbids itself system calls. From then on each of the program's calls makes its own, and no other.

use core::ffi::{c_int, c_ulong};
use core::ptr::null;
use core::time::Duration;

use headwater_host::lifecycle::{self, Moment};
use headwater_host::next::keep_errno;
use headwater_host::poll::only_sockets;
use headwater_host::table::{self, Kind};
use headwater_host::{counters, process, select as selecting, signal, sleeps};
use headwater_sockets::confine;
use libc::{epoll_event, fd_set, pollfd};

use crate::{real, start};

/// # Safety
/// As prctl(2) asks of its caller: the arguments are what the option wants.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        let filter = a == libc::SECCOMP_MODE_FILTER as c_ulong;
        confining(filter, b, false);
    }
    // SAFETY: the program's arguments.
    unsafe { real::prctl(option, a, b, c, d) }
}

/// The arguments of seccomp(2), which has no function.
pub fn seccomp(operation: c_ulong, flags: c_ulong, args: c_ulong) {
    match operation as u32 {
        libc::SECCOMP_SET_MODE_STRICT if flags == 0 && args == 0 => confining(false, 0, false),
        libc::SECCOMP_SET_MODE_FILTER => {
            confining(true, args, flags & libc::SECCOMP_FILTER_FLAG_TSYNC != 0)
        }
        _ => {}
    }
}

/// How long a call of ours may last without a sleep, and how long those are waited for that sleep.
const NO_SLEEP: u64 = Duration::from_millis(1).as_nanos() as u64;
const SLEEPERS: u64 = Duration::from_millis(200).as_nanos() as u64;

/// Before a filter, or strict mode, is set; `for_all`: for all threads, not for this one alone. Without a filter it is but a question
/// what the kernel supports.
fn confining(by_filter: bool, filter: c_ulong, for_all: bool) {
    if by_filter && filter == 0 || !process::present() || process::is_borrowed() {
        return;
    }
    keep_errno(|| {
        confine::leave_rings();
        lifecycle::tell(Moment::Confining);
        lifecycle::tell(Moment::Counting);
        counters::write_line("confined");
        signal::stop_watching();
        counters::reset();
        let any = table::any_tracked();
        let more = confine::forget();
        start::leave_sockets();
        if for_all && any {
            confine::wake_all();
            sleeps::await_none(NO_SLEEP, SLEEPERS);
        }
        if !more {
            signal::give_back();
        }
    });
}

/// Is it a set of which the kernel knows all, in a process that makes no calls of ours?
pub fn is_plain(set: &[pollfd]) -> bool {
    process::is_confined() && only_sockets(set) && set.iter().all(|p| rest(p) == 0)
}

fn rest(p: &pollfd) -> i16 {
    table::socket(p.fd)
        .and_then(|h| Some((h, table::descriptor(h)?)))
        .map_or(0, |(h, d)| d.ready(h, p.events as u16 as u32) as i16)
}

/// poll(2) where a rest may be: `real` is the program's call, without waiting if asked so. `None`: it is none of that.
pub fn poll(set: &mut [pollfd], real: impl FnOnce(*mut pollfd) -> c_int) -> Option<c_int> {
    if !process::is_confined() || !only_sockets(set) {
        return None;
    }
    let told = real(set.as_mut_ptr());
    if told < 0 {
        return Some(told);
    }
    for p in set.iter_mut() {
        p.revents |= rest(p);
    }
    Some(set.iter().filter(|p| p.revents != 0).count() as c_int)
}

/// Are these such sets, of select(2)?
///
/// # Safety
/// Each set is null or valid for `n` bits.
pub unsafe fn are_plain(n: c_int, sets: [*const fd_set; 3]) -> bool {
    // SAFETY: the caller's sets, null or valid for `n` bits; so is one of them alone.
    unsafe {
        process::is_confined()
            && are_sockets(n, sets)
            && !selecting::members(n, [sets[0], null(), null()]).any(has_rest)
    }
}

/// Is there nothing in the sets that the kernel has no idea of?
///
/// # Safety
/// Each set is null or valid for `n` bits.
pub unsafe fn are_sockets(n: c_int, sets: [*const fd_set; 3]) -> bool {
    // SAFETY: the caller's sets, null or valid for `n` bits.
    unsafe {
        let is_kernels = |fd| table::lookup(fd).is_none_or(|h| h.kind() == Kind::Socket);
        selecting::members(n, sets).all(is_kernels)
    }
}

fn has_rest(fd: c_int) -> bool {
    table::socket(fd).is_some_and(confine::has_rest)
}

/// select(2) likewise.
///
/// # Safety
/// `readable` is null or a whole set.
pub unsafe fn select(
    n: c_int,
    readable: *mut fd_set,
    real: impl FnOnce() -> c_int,
) -> Option<c_int> {
    // SAFETY: a whole set, by the caller's word, of which no number beyond its size is looked at.
    unsafe {
        if !process::is_confined() || readable.is_null() {
            return None;
        }
        let asked = *readable;
        let mine = |fd: &c_int| libc::FD_ISSET(*fd, &asked) && has_rest(*fd);
        let members = || (0..n.clamp(0, libc::FD_SETSIZE as c_int)).filter(mine);
        members().next()?;
        let mut told = real();
        if told >= 0 {
            for fd in members() {
                told += !libc::FD_ISSET(fd, readable) as c_int;
                libc::FD_SET(fd, readable);
            }
        }
        Some(told)
    }
}

/// epoll_wait(2) likewise.
///
/// # Safety
/// `events` has room for `max`.
pub unsafe fn epoll(
    ep: c_int,
    events: *mut epoll_event,
    max: c_int,
    real: impl FnOnce() -> c_int,
) -> Option<c_int> {
    // SAFETY: room for `max` events, by the caller's word; `real` has filled as many as it told.
    unsafe {
        use headwater_host::epoll::left;
        if !process::is_confined() || max <= 0 || !left::any_ready(ep) {
            return None;
        }
        let told = real();
        if told < 0 {
            return Some(told);
        }
        let out = core::slice::from_raw_parts_mut(events, max as usize);
        Some(left::complete(ep, out, told as usize) as c_int)
    }
}
