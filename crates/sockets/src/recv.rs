//! Receiving. [`recv`] is what read(2), readv(2), recv(2), recvfrom(2) and recvmsg(2) come down to.
//!
//! A call is a loop of *steps*, which never block and in which a panic is caught, and *waits*, which own nothing that needs
//! dropping, so that a cancelled thread or a siglongjmp may leave them.

mod peek;
mod sink;
mod step;
mod wait;

use headwater_host::counters::{self, Counter};
use headwater_host::sync::{AtomicU64, Ordering};
use headwater_host::{next, process, signal, sleeps};
use libc::{EAGAIN, EBADF, EFAULT, EINTR, MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, iovec};

use crate::buffers::{Buffers, EMPTY, ROOM, length, message};
use crate::conn::{Conn, Phase, rest};
use crate::limits::AT_ONCE;
use crate::pins::{Entered, Pin};
use crate::record::{NONBLOCK, Record, SHUT_RD, SHUT_WR, Ticket};
use crate::segment::{TCPONLY, Tx, View};
use crate::{guard, look, switch, takeover, unseen};

pub use crate::outcome::{Moved, Own, Step, moved, partial};
use peek::Peek;
pub use sink::Sink;
pub(crate) use step::is_at_mark;
pub use step::{step, take_now};
pub use wait::{ANEW, as_often_as_begun, deadline, hold, sleep, wait_for};
use wait::{Limit, pin, wait};

/// Receives into `iov`, as recv(2) does. `None`: make the C library's own call instead.
///
/// # Safety
/// The buffers are valid.
pub unsafe fn recv(c: &'static Conn, fd: i32, iov: &[iovec], flags: i32) -> Option<Moved> {
    // SAFETY: the buffers are the caller's.
    unsafe { recv_as(c, fd, iov, flags, &|fd, iov| kernel_call(fd, iov, flags)) }
}

/// Receives into `iov` in the name of a call that `own` is.
///
/// # Safety
/// The buffers are valid.
pub unsafe fn recv_as(
    c: &'static Conn,
    fd: i32,
    iov: &[iovec],
    flags: i32,
    own: Own<'_>,
) -> Option<Moved> {
    if flags & (libc::MSG_OOB | libc::MSG_ERRQUEUE) != 0 {
        return None;
    }
    match progressed(c, fd) {
        Phase::Carried => carried(c, fd, iov, flags, own),
        Phase::Tracked => tracked(c, fd, iov, flags, own),
        Phase::Rest => rest::receive(c, fd, iov, flags, own),
        Phase::Free | Phase::Listener => None,
    }
}

/// How far it is, after a step towards its takeover if one is due.
#[inline(always)]
pub(crate) fn progressed(c: &Conn, fd: i32) -> Phase {
    match c.phase() {
        Phase::Tracked => {
            takeover::progress(c, fd);
            c.phase()
        }
        known => known,
    }
}

// ---- not (yet) carried: the kernel's own call, counted ----

/// While a call is in the kernel it counts as busy, so nobody takes the connection over under it; the thread that comes
/// back takes the next step with its next call.
fn tracked(c: &'static Conn, fd: i32, iov: &[iovec], flags: i32, own: Own<'_>) -> Option<Moved> {
    let r = c.record();
    let Ok(ticket) = r.enter_settled() else {
        return carried(c, fd, iov, flags, own);
    };
    let told = moved(own(fd, iov));
    if let Ok(n @ 1..) = told
        && flags & MSG_PEEK == 0
    {
        c.operations.fetch_add(1, Ordering::Relaxed);
        counters::add(Counter::KernelMsgsRx, 1);
        r.leave_counted(ticket, &r.received, n);
    } else {
        r.leave(ticket);
    }
    Some(told)
}

/// A call of the C library that receives on a tracked connection in its own way; counted like any other. `bytes` says of its
/// result how much that was. `None`: it is carried by now, and the call was not made.
///
/// # Safety
/// `call` receives on the descriptor `fd` of `c`, if it is tracked.
pub unsafe fn counted(
    c: &'static Conn,
    fd: i32,
    call: impl FnOnce() -> isize,
    bytes: impl FnOnce(isize) -> usize,
) -> Option<isize> {
    let r = c.record();
    let ticket = match progressed(c, fd) {
        Phase::Tracked => r.enter_settled().ok()?,
        Phase::Carried | Phase::Rest => return None,
        _ => return Some(call()),
    };
    Some(count(c, r, ticket, &r.received, call, bytes))
}

/// Makes such a call, which has a `ticket` of the record `r`, and adds to the `total` there what it has moved. The entry may be another
/// connection's by the time the call returns.
pub(crate) fn count(
    c: &Conn,
    r: &Record,
    ticket: Ticket,
    total: &AtomicU64,
    call: impl FnOnce() -> isize,
    bytes: impl FnOnce(isize) -> usize,
) -> isize {
    let n = call();
    next::keep_errno(|| {
        let mut moved = 0;
        if n > 0 {
            moved = bytes(n);
            c.operations.fetch_add(1, Ordering::Relaxed);
        }
        r.leave_counted(ticket, total, moved);
    });
    n
}

/// The C library's own receive, which may block and is a cancellation point.
fn kernel_call(fd: i32, iov: &[iovec], flags: i32) -> isize {
    // SAFETY: who calls `recv` has valid buffers, and these are what is left of them.
    unsafe {
        match iov {
            [one] => next::recv(fd, one.iov_base, one.iov_len, flags),
            _ => next::recvmsg(fd, &mut message(iov), flags),
        }
    }
}

// ---- carried ----

fn carried(c: &'static Conn, fd: i32, iov: &[iovec], flags: i32, own: Own<'_>) -> Option<Moved> {
    // SAFETY: a thread that is cancelled here leaves nothing behind that needs dropping.
    unsafe { next::pthread_testcancel() };
    let mut buffers = Buffers::new(iov);
    let result = as_often_as_begun(c, fd, |looks, pinned| {
        let v = c.view(looks)?;
        v.publish_cpu();
        attempt(c, &v, &mut buffers, flags, (fd, own), looks, pinned)
    });
    match result {
        Some(Ok(())) => Some(Ok(buffers.done)),
        Some(Err(e)) => {
            c.ends_with(e);
            Some(partial(buffers.done, e))
        }
        None if buffers.done > 0 => Some(Ok(buffers.done)),
        None => None,
    }
}

/// Steps and waits until enough is there. `None`: the kernel alone decides.
fn attempt(
    c: &'static Conn,
    v: &View<'static>,
    buffers: &mut Buffers<'_>,
    flags: i32,
    (fd, own): (i32, Own<'_>),
    looks: &Entered,
    pinned: &mut Option<Pin>,
) -> Option<Result<(), i32>> {
    let r = v.record;
    // As the call begins, whatever is set meanwhile.
    let at_once = flags & MSG_DONTWAIT != 0 || r.has(NONBLOCK);
    let mut limit = Limit::default();
    // A receive of nothing has done its work with its wait, whatever ended that.
    let nothing = buffers.left == 0;
    let mut waited = false;
    let shuts = || {
        (
            c.shuts.load(Ordering::Relaxed),
            r.has(SHUT_WR),
            r.has(SHUT_RD),
        )
    };
    let shut = nothing.then(shuts);
    // The kernel wakes its sleepers at a shutdown of either direction.
    let is_shut = || shut.is_some_and(|shut| shuts() != shut);
    let peeks = flags & MSG_PEEK != 0;
    let mut peek = Peek::default();
    loop {
        let wants_more = || flags & MSG_WAITALL != 0 || r.waits_for_more();
        if peeks && !at_once && wants_more() {
            peek.looks(c, v, buffers);
        }
        // Written in place: to copy it as a whole would wait for its parts.
        let mut came_to = Step::Again;
        if let Err(e) = guard(c, || came_to = step(c, v, buffers, flags)) {
            came_to = Step::Error(e);
        }
        match came_to {
            // A short read must mean that all was taken: edge-triggered programs rely on it.
            Step::Data(_)
                if buffers.left > 0 && switch::behind(v) && !peeks && !is_at_mark(c, v) => {}
            Step::Data(_) => {
                if buffers.done >= target(c, buffers, flags) || at_once || c.found_nonblocking() {
                    return Some(Ok(()));
                }
                if ends_at_mark(c, v, flags) {
                    return Some(Ok(()));
                }
                if peeks {
                    if !pin(c, v, looks, pinned, &mut limit) {
                        return Some(Err(EBADF));
                    }
                    if !peek.waits(c, v, buffers, flags, limit.end) {
                        return Some(Ok(()));
                    }
                }
            }
            Step::Eof => {
                peek.count(buffers);
                return Some(Ok(()));
            }
            Step::Error(EFAULT) => {
                // What was taken before it came to the wrong pointer.
                if let Some(mark) = buffers.mark.take() {
                    let taken = v.in_ring().consumed().0.wrapping_sub(mark) as usize;
                    buffers.advance(taken.min(buffers.left));
                }
                return Some(Err(EFAULT));
            }
            Step::Error(e) => {
                if nothing && waited {
                    c.record().error.store(e, Ordering::Relaxed);
                    return Some(Ok(()));
                }
                peek.count(buffers);
                if buffers.done > 0 {
                    // Told by the next call.
                    c.record().error.store(e, Ordering::Relaxed);
                }
                return Some(Err(e));
            }
            Step::Again
                if buffers.done > 0
                    && flags & MSG_WAITALL == 0
                    && buffers.done >= target(c, buffers, flags) =>
            {
                return Some(Ok(()));
            }
            Step::Kernel
                if buffers.done > 0
                    && !peek.others_took
                    && (peeks || at_once || buffers.done >= target(c, buffers, flags)) =>
            {
                return Some(Ok(()));
            }
            Step::Kernel => {
                let is_first = pinned.is_none();
                if !pin(c, v, looks, pinned, &mut limit) {
                    return Some(Err(EBADF));
                }
                // The kernel's own would wait as long as the time limit says by now, from now on, be begun anew on the number that it
                // is made by, and not count what came before towards SO_RCVLOWAT.
                let few = buffers.done > 0 && !peeks && flags & MSG_WAITALL == 0;
                let is_other = r.receive_timeout.load(Ordering::Relaxed) != limit.began_with;
                let another = is_other || c.fd() != fd || limit.end.is_some() && !nothing;
                let aside = few || !is_first && another;
                if aside && process::is_confined() {
                    return by_own(c, buffers, own);
                }
                // By the shadow's own number once it has waited: the program's may be gone by now.
                let by = if is_first { fd } else { c.fd() };
                let mut room = [EMPTY; ROOM];
                let rest = if buffers.done == 0 {
                    buffers.whole()
                } else {
                    buffers.rest(&mut room)
                };
                let asked = length(rest);
                sleeps::end();
                // O_NONBLOCK was set after the call began.
                let is_late = || !at_once && (aside || r.has(NONBLOCK));
                let was_late = is_late();
                let n = match aside {
                    true => kernel_call(c.fd(), rest, flags | MSG_DONTWAIT),
                    false => own(by, rest),
                };
                let errno = next::errno();
                if n < 0 && errno == EAGAIN && is_late() && !c.found_nonblocking() {
                    if process::is_confined() {
                        return by_own(c, buffers, own);
                    }
                    waited = true;
                    if nothing || buffers.done > 0 || peek.seen > 0 {
                        signal::let_any_end();
                    }
                    match wait(c, v, limit.end) {
                        Ok(()) if !is_shut() => continue,
                        Ok(()) => return Some(Ok(())),
                        Err(_) if nothing => return Some(Ok(())),
                        Err(e) => {
                            peek.count(buffers);
                            return Some(Err(e));
                        }
                    }
                }
                let saw_more = peek.seen > buffers.done && n < peek.seen as isize;
                if saw_more {
                    peek.count(buffers);
                    if n == 0 || n > 0 && !was_late {
                        return Some(Ok(()));
                    }
                }
                if n < 0 && (buffers.done > 0 || nothing && waited) {
                    if !matches!(errno, EAGAIN | EINTR | EBADF | EFAULT | libc::ENOMEM) {
                        // The connection's own is told by the next call.
                        r.error.store(errno, Ordering::Relaxed);
                    }
                    return Some(Ok(()));
                }
                if n < 0 {
                    return Some(Err(errno));
                }
                if n == 0 && switch::behind_pin(v) {
                    continue;
                }
                if !saw_more {
                    buffers.advance((n as usize).min(buffers.left));
                }
                let goes_on = was_late
                    && n > 0
                    && buffers.done < target(c, buffers, flags)
                    && !c.found_nonblocking()
                    && !ends_at_mark(c, v, flags);
                if buffers.left == 0 || (n as usize) < asked && !goes_on {
                    return Some(Ok(()));
                }
                if peeks && goes_on && !peek.waits(c, v, buffers, flags, limit.end) {
                    return Some(Ok(()));
                }
            }
            Step::Again => {
                if at_once || c.found_nonblocking() {
                    // A look by the way is not followed by a wait.
                    if !peeks && !unseen::nothing_to_read(c, v) {
                        continue;
                    }
                    return Some(Err(EAGAIN));
                }
                c.see_blocking(unseen::IN);
                if !pin(c, v, looks, pinned, &mut limit) {
                    return Some(Err(EBADF));
                }
                // Who has something has that, whatever the handler's SA_RESTART.
                if nothing || buffers.done > 0 || peek.seen > 0 {
                    signal::let_any_end();
                }
                if process::is_confined() {
                    return by_own(c, buffers, own);
                }
                if let Err(e) = wait(c, v, limit.end) {
                    // Where there was no wait at all, it has not.
                    let had_none = limit.began_with == AT_ONCE;
                    peek.count(buffers);
                    return Some(if nothing && !had_none { Ok(()) } else { Err(e) });
                }
                waited = true;
                if is_shut() {
                    return Some(Ok(()));
                }
            }
        }
    }
}

/// The process has confined itself while this call waited: the program's own call goes on, on what the kernel has.
#[cold]
fn by_own(c: &Conn, buffers: &mut Buffers<'_>, own: Own<'_>) -> Option<Result<(), i32>> {
    sleeps::end();
    let mut room = [EMPTY; ROOM];
    let n = own(c.fd(), buffers.rest(&mut room));
    if n < 0 && buffers.done == 0 {
        return Some(Err(next::errno()));
    }
    buffers.advance((n.max(0) as usize).min(buffers.left));
    Some(Ok(()))
}

/// How much it waits for.
fn target(c: &Conn, buffers: &Buffers<'_>, flags: i32) -> usize {
    let all = buffers.left + buffers.done;
    match flags & MSG_WAITALL {
        0 => all.min(c.record().low_water.load(Ordering::Relaxed) as usize),
        _ => all,
    }
}

/// Has a receive that has got something, and wants more, come to the mark? It ends there, though it was to wait for all.
fn ends_at_mark(c: &Conn, v: &View<'_>, flags: i32) -> bool {
    if flags & MSG_PEEK == 0 {
        return is_at_mark(c, v);
    }
    // A peek moves nothing: where it begins at the mark it goes beyond, and else it has stopped there.
    Tx(v.inn().send.tx.load(Ordering::Relaxed)).has(TCPONLY)
        && match is_at_mark(c, v) {
            true => v.in_ring().unread() > 0,
            false => look::told(c, libc::POLLPRI as u32) & libc::POLLPRI as u32 != 0,
        }
}
