//! Calls that wait for readiness.

use core::time::Duration;

use headwater_host::{epoll, poll as polling, process, select as selecting, sys, table};
use headwater_sockets::life;
use headwater_sockets::options::is_carried;
use libc::{
    c_int, c_long, epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval,
};

use crate::{confine, real};

const NOW: timespec = timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

fn from_ms(timeout: c_int) -> Option<u64> {
    (timeout >= 0).then(|| timeout as u64 * 1_000_000)
}

fn address<T>(value: &Option<T>) -> *const T {
    value.as_ref().map_or(core::ptr::null(), |v| v)
}

fn in_ms(timeout: c_int) -> epoll::Timeout {
    epoll::Timeout {
        ns: from_ms(timeout),
        exact: false,
    }
}

fn in_ns(t: Duration) -> u64 {
    t.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// # Safety
/// `t` is null or a time.
pub unsafe fn from_timespec(t: *const timespec) -> Option<u64> {
    // SAFETY: null or a time, by the caller's word.
    unsafe {
        t.as_ref()
            .filter(|t| t.tv_sec >= 0 && t.tv_nsec >= 0)
            .map(|t| in_ns(duration(t)))
    }
}

/// A time that is right.
pub fn duration(t: &timespec) -> Duration {
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// A time that only the kernel is to have, which says EINVAL.
///
/// # Safety
/// `t` is null or a time.
pub unsafe fn is_wrong(t: *const timespec) -> bool {
    // SAFETY: null or a time, by the caller's word.
    unsafe {
        t.as_ref()
            .is_some_and(|t| t.tv_sec < 0 || !(0..1_000_000_000).contains(&t.tv_nsec))
    }
}

unsafe fn ours<'a>(fds: *mut pollfd, n: nfds_t) -> Option<&'a mut [pollfd]> {
    if !table::any_tracked() || fds.is_null() || n == 0 || n > 1 << 20 {
        return None;
    }
    // SAFETY: the program's `n` entries.
    let set = unsafe { core::slice::from_raw_parts_mut(fds, n as usize) };
    (polling::concerns(set) && !confine::is_plain(set)).then_some(set)
}

/// Does poll(2) of these have to be served by us?
///
/// # Safety
/// As poll(2) asks of its caller: `n` entries.
pub unsafe fn concerns(fds: *mut pollfd, n: nfds_t) -> bool {
    // SAFETY: the program's `n` entries.
    unsafe { ours(fds, n).is_some() }
}

/// Is select(2) of these to be said in other words, or served by us?
///
/// # Safety
/// Each set is null or valid for `n` bits.
pub unsafe fn select_concerns(n: c_int, sets: [*const fd_set; 3]) -> bool {
    // SAFETY: sets of the program's, null or valid for `n` bits.
    unsafe {
        let fitting = selecting::fit(n, sets);
        fitting < n || selecting::concerns(fitting, sets)
    }
}

unsafe fn select_is_ours(n: c_int, sets: [*const fd_set; 3]) -> bool {
    // SAFETY: sets of the program's, null or valid for `n` bits.
    unsafe { selecting::concerns(n, sets) && !confine::are_plain(n, sets) }
}

/// # Safety
/// As poll(2) asks of its caller: `n` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the program's `n` entries.
    unsafe {
        match ours(fds, n) {
            Some(set) => confine::poll(set, |fds| real::poll(fds, n, 0)).unwrap_or_else(|| {
                polling::poll(set, from_ms(timeout), None)
                    .unwrap_or_else(|own| poll(fds, n, epoll::milliseconds(own.left)))
            }),
            None => real::poll(fds, n, timeout),
        }
    }
}

/// # Safety
/// As ppoll(2) asks of its caller: `n` entries, and a time and a mask or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ppoll(
    fds: *mut pollfd,
    n: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's `n` entries, its time and its mask.
    unsafe {
        match ours(fds, n) {
            Some(set) if !is_wrong(timeout) => {
                confine::poll(set, |fds| real::ppoll(fds, n, &NOW, mask)).unwrap_or_else(|| {
                    let told = polling::poll(set, from_timespec(timeout), mask.as_ref());
                    told.unwrap_or_else(|own| {
                        let left = own.left.map(sys::timespec);
                        ppoll(fds, n, address(&left), mask)
                    })
                })
            }
            _ => real::ppoll(fds, n, timeout, mask),
        }
    }
}

checked! {
    __poll_chk(fds: *mut pollfd, n: nfds_t, timeout: c_int, size: size_t) -> c_int
        = poll(fds, n, timeout), if n as usize * size_of::<pollfd>() <= size && concerns(fds, n);
    __ppoll_chk(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t, size: size_t) -> c_int
        = ppoll(fds, n, timeout, mask), if n as usize * size_of::<pollfd>() <= size && concerns(fds, n);
}

/// # Safety
/// As select(2) asks of its caller: sets for `n` descriptors, and a time, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn select(
    n: c_int,
    r: *mut fd_set,
    w: *mut fd_set,
    e: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the program's sets and its time.
    unsafe {
        let n = selecting::fit(n, [r, w, e]);
        let wrong = !timeout.is_null() && ((*timeout).tv_sec < 0 || (*timeout).tv_usec < 0);
        if wrong || !select_is_ours(n, [r, w, e]) {
            return real::select(n, r, w, e, timeout);
        }
        let mut now: timeval = sys::zeroed();
        if let Some(told) = confine::select(n, r, || real::select(n, r, w, e, &mut now)) {
            return told;
        }
        let within = timeout.as_ref().map(|t| {
            Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
        });
        let begun = sys::now();
        let told = selecting::select(n, [r, w, e], within.map(in_ns), core::ptr::null());
        let result = match told {
            Ok(told) => told,
            Err(own) => {
                let to_timeval = |ns: u64| timeval {
                    tv_sec: (ns / 1_000_000_000) as _,
                    tv_usec: (ns % 1_000_000_000).div_ceil(1000) as _,
                };
                let mut left = own.left.map(to_timeval);
                let at = left.as_mut().map_or(core::ptr::null_mut(), |t| t as *mut _);
                let told = select(n, r, w, e, at);
                if let Some(left) = left {
                    *timeout = left;
                }
                return told;
            }
        };
        if let Some(within) = within {
            // Linux leaves the time that was not slept.
            let left = within.saturating_sub(Duration::from_nanos(sys::now() - begun));
            (*timeout).tv_sec = left.as_secs() as _;
            (*timeout).tv_usec = left.subsec_micros() as _;
        }
        result
    }
}

/// select(2) by syscall(2): the C library's function makes another call, which a confined process may not make.
///
/// # Safety
/// As select(2) asks of its caller: sets for `n` descriptors, and a time, or null.
#[cfg(target_arch = "x86_64")]
pub unsafe fn select_by_number(
    n: c_int,
    r: *mut fd_set,
    w: *mut fd_set,
    e: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the program's sets and its time.
    unsafe {
        let n = selecting::fit(n, [r, w, e]);
        if !process::is_confined() || !confine::are_sockets(n, [r, w, e]) {
            return select(n, r, w, e, timeout);
        }
        let call = |timeout: *mut timeval| {
            let sets = [r, w, e].map(|set| set.expose_provenance() as c_long);
            let within = timeout.expose_provenance() as c_long;
            let [r, w, e] = sets;
            real::syscall(libc::SYS_select, n.into(), r, w, e, within, 0) as c_int
        };
        let mut now: timeval = sys::zeroed();
        confine::select(n, r, || call(&mut now)).unwrap_or_else(|| call(timeout))
    }
}

/// # Safety
/// As pselect(2) asks of its caller: sets for `n` descriptors, a time and a mask, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pselect(
    n: c_int,
    r: *mut fd_set,
    w: *mut fd_set,
    e: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's sets, its time and its mask.
    unsafe {
        let n = selecting::fit(n, [r, w, e]);
        if is_wrong(timeout) || !select_is_ours(n, [r, w, e]) {
            return real::pselect(n, r, w, e, timeout, mask);
        }
        confine::select(n, r, || real::pselect(n, r, w, e, &NOW, mask)).unwrap_or_else(|| {
            let told = selecting::select(n, [r, w, e], from_timespec(timeout), mask);
            told.unwrap_or_else(|own| {
                let left = own.left.map(sys::timespec);
                pselect(n, r, w, e, address(&left), mask)
            })
        })
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn epoll_create(size: c_int) -> c_int {
    known(crate::files::fresh(real::epoll_create(size)))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn epoll_create1(flags: c_int) -> c_int {
    known(crate::files::fresh(real::epoll_create1(flags)))
}

/// epoll_wait(2) and its like. Where the library has nothing to wait for it is the program's own call: `now` without waiting, or `own`
/// for what is left of the time.
///
/// # Safety
/// As epoll_pwait(2) asks of its caller: `events` has room for `max`; a mask or null.
#[inline(always)]
unsafe fn wait_in(
    ep: c_int,
    events: *mut epoll_event,
    max: c_int,
    within: epoll::Timeout,
    mask: *const sigset_t,
    now: impl FnOnce() -> c_int,
    own: impl FnOnce(Option<u64>) -> c_int,
) -> c_int {
    // SAFETY: the caller's room for `max` events, and its mask.
    unsafe {
        epoll::wait(ep, events, max, within, mask).unwrap_or_else(|left| {
            confine::epoll(ep, events, max, now).unwrap_or_else(|| own(left.left))
        })
    }
}

fn known(ep: c_int) -> c_int {
    if ep >= 0 && process::present() {
        epoll::created(ep);
    }
    ep
}

/// # Safety
/// As epoll_ctl(2) asks of its caller: `event` is one, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_ctl(
    ep: c_int,
    op: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: the program's event, or null.
    unsafe {
        if !process::present() {
            let r = real::epoll_ctl(ep, op, fd, event);
            if r == 0 && process::is_confined() {
                epoll::left::changed(ep, op, fd, event);
            }
            return r;
        }
        if epoll::is_the_kernels(ep) {
            life::set_apart_unless(fd, || {
                // What is not carried yet loses nothing, and what the set has may be much to read: most connections come into their set so.
                let matters =
                    op != libc::EPOLL_CTL_ADD || table::socket(fd).is_some_and(is_carried);
                matters && epoll::would_fail(ep, op, fd)
            });
        }
        epoll::ctl(ep, op, fd, event)
    }
}

/// # Safety
/// As epoll_wait(2) asks of its caller: `events` has room for `max`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_wait(
    ep: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the program's room for `max` events.
    unsafe {
        let call = |timeout| real::epoll_wait(ep, events, max, timeout);
        let own = |left| call(epoll::milliseconds(left));
        let mask = core::ptr::null();
        wait_in(ep, events, max, in_ms(timeout), mask, || call(0), own)
    }
}

/// # Safety
/// As epoll_pwait(2) asks of its caller: `events` has room for `max`; a mask or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait(
    ep: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's room for `max` events, and its mask.
    unsafe {
        let call = |timeout| real::epoll_pwait(ep, events, max, timeout, mask);
        let own = |left| call(epoll::milliseconds(left));
        wait_in(ep, events, max, in_ms(timeout), mask, || call(0), own)
    }
}

/// # Safety
/// As epoll_pwait2(2) asks of its caller: `events` has room for `max`; a time and a mask, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait2(
    ep: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's room for `max` events, its time and its mask.
    unsafe {
        let within = epoll::Timeout {
            ns: from_timespec(timeout),
            exact: true,
        };
        if is_wrong(timeout) {
            return real::epoll_pwait2(ep, events, max, timeout, mask);
        }
        let call = |timeout| real::epoll_pwait2(ep, events, max, timeout, mask);
        let own = |left: Option<u64>| call(address(&left.map(sys::timespec)));
        wait_in(ep, events, max, within, mask, || call(&NOW), own)
    }
}
