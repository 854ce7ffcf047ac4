//! Waits of a call, and how often it begins.

use core::time::Duration;

use headwater_channel::wait::{Learner, Outcome};
use headwater_host::counters::{self, Counter};
use headwater_host::poll::{SHARED_SLICE, VAIN_SLICE};
use headwater_host::sync::Ordering;
use headwater_host::{next, signal, sleeps, stand_in, sys};
use libc::{EAGAIN, EBADF, EINTR};

use crate::conn::{self, Conn};
use crate::pins::{self, Entered, Pin, Sleep};
use crate::segment::View;
use crate::{link, switch, takeover};

/// What ends an attempt at a call that has done nothing yet, and that a handler with SA_RESTART has begin anew: the kernel's own ERESTARTSYS,
/// which no program sees.
pub const ANEW: i32 = 512;

/// Makes `attempt` at a call on the number `fd`, and once more after each that [`ANEW`] ends: whether it may wait, and how long, is asked
/// anew. What it looks at and pins goes with it. EBADF: the number stands for another connection by now, or for none.
#[inline(always)]
pub fn as_often_as_begun<T>(
    c: &'static Conn,
    fd: i32,
    mut attempt: impl FnMut(&Entered, &mut Option<Pin>) -> Option<Result<T, i32>>,
) -> Option<Result<T, i32>> {
    loop {
        let looks = pins::entered();
        let mut pinned = None;
        let result = attempt(&looks, &mut pinned);
        drop(looks);
        if let Some(pin) = pinned {
            pins::unpin(c, pin);
        }
        match result {
            Some(Err(ANEW)) if conn::is_at(fd, c) => {}
            Some(Err(ANEW)) => return Some(Err(EBADF)),
            other => return other,
        }
    }
}

/// The time limit with which a call began to wait, and when that is over.
#[derive(Default)]
pub struct Limit {
    pub began_with: u64,
    pub end: Option<u64>,
}

/// Before the first wait of a call, which goes on with what it has pinned, and looks at nothing else. False when the program has closed
/// the connection.
pub fn pin(
    c: &'static Conn,
    v: &View<'_>,
    looks: &Entered,
    pinned: &mut Option<Pin>,
    limit: &mut Limit,
) -> bool {
    if pinned.is_none() {
        hold(c, v, looks, pinned);
        limit.began_with = c.record().receive_timeout.load(Ordering::Relaxed);
        limit.end = deadline(limit.began_with);
    }
    pinned.is_some()
}

/// The same without a time limit.
pub fn hold(c: &'static Conn, v: &View<'_>, looks: &Entered, pinned: &mut Option<Pin>) -> bool {
    if pinned.is_none() {
        *pinned = pins::pin(c, v, &raw const *pinned as usize);
        if pinned.is_some() {
            // SAFETY: of the connection alone, which is pinned until the call is over.
            unsafe { looks.rest() };
        }
    }
    pinned.is_some()
}

/// When a wait that begins now is over. No handler has a call with a time limit begun anew, signal(7).
pub fn deadline(timeout: u64) -> Option<u64> {
    if timeout == 0 {
        return None;
    }
    signal::let_any_end();
    Some(sys::now().saturating_add(timeout))
}

/// A sleep beside bytes that are fewer than SO_RCVLOWAT asks for: a splice, or a receive of less, waits for no more.
const FEW_SLICE: u64 = Duration::from_millis(5).as_nanos() as u64;

/// Pauses, a fraction of a microsecond together, for which a reader of a one-way stream leaves the writer alone.
const GATHER: u32 = 16;

/// Waits until there may be something: spin, then arm, look again, sleep.
pub fn wait(c: &'static Conn, v: &View<'static>, deadline: Option<u64>) -> Result<(), i32> {
    wait_for(c, v, libc::POLLIN | libc::POLLRDHUP, deadline)
}

/// The same, for these events where the kernel tells of them.
pub fn wait_for(
    c: &'static Conn,
    v: &View<'static>,
    events: i16,
    deadline: Option<u64>,
) -> Result<(), i32> {
    // Only a ring can be watched by spinning, and no reader that the kernel serves sees what its peer has shut or closed.
    if v.inn().receive.re.load(Ordering::Relaxed) & 1 == 1 && !switch::is_pinned(v.inn()) {
        let peer = &v.peer().cpu;
        let look = &v.peer().look;
        let seen = c.look_seen.load(Ordering::Relaxed);
        if c.only_receives() && peer.load(Ordering::Relaxed) != v.own().cpu.load(Ordering::Relaxed)
        {
            // Looking at each message as it is written would take the line from the writer each time.
            for _ in 0..GATHER {
                core::hint::spin_loop();
            }
        }
        let spun = c.reading.wait(
            None,
            || peer.load(Ordering::Relaxed),
            || switch::readable(v) || look.load(Ordering::Relaxed) != seen || signal::interrupted(),
        );
        if signal::interrupted() {
            return Err(EINTR);
        }
        if spun == Outcome::Ready {
            counters::add(Counter::Spins, 1);
            return Ok(());
        }
    }
    takeover::publish_totals(c, v);
    let is_readable = || switch::readable(v);
    pins::sleep(c, v, Sleep::Reading, is_readable, || {
        sleep(c, v, events, deadline, &c.reading)
    })
}

/// The kernel wait on shadow and own bell that readers and writers share. It ends at once where the program has made the
/// connection non-blocking by a call that nobody saw. [`ANEW`]: so it is with the call.
pub fn sleep(
    c: &'static Conn,
    v: &View<'_>,
    events: i16,
    deadline: Option<u64>,
    learner: &Learner,
) -> Result<(), i32> {
    let rest = if switch::must_withdraw(v) {
        libc::POLLOUT
    } else {
        0
    };
    let mut fds = [
        sys::entry(c.fd(), events | rest),
        sys::entry(v.own_bell(), libc::POLLIN),
    ];
    link::tidy();
    let begun = sys::now();
    if c.stopped_blocking(begun) {
        return Ok(());
    }
    let bound = stand_in::turn(left(deadline));
    let (heard, slice) = match c.vain.leaves_bell() {
        true => (&mut fds[..1], Some(VAIN_SLICE)),
        false => (&mut fds[..], v.is_shared().then_some(SHARED_SLICE)),
    };
    // poll(2) says nothing of bytes that the kernel has, but too few of.
    let unseen = v.record.waits_for_more().then_some(FEW_SLICE);
    let bound = [bound, slice, unseen].into_iter().flatten().min();
    if !sleeps::begin() {
        return Ok(());
    }
    let ts = bound.map(sys::timespec);
    let tsp = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
    if !signal::begin_nap(signal::ring, v.own_bell() as usize) {
        return Err(EINTR);
    }
    if signal::begins_anew() {
        signal::end_nap();
        return Err(ANEW);
    }
    // SAFETY: a time or none; it may be left by a cancellation or a siglongjmp, and owns nothing.
    let polled = unsafe { next::ppoll_aside(heard, tsp) };
    signal::end_nap();
    counters::add(Counter::Sleeps, 1);
    learner.slept(sys::now() - begun);
    if fds[0].revents != 0 {
        c.look_now.store(1, Ordering::Relaxed);
    }
    if let Err(errno) = polled
        && (errno != EINTR || signal::interrupted() || deadline.is_some())
    {
        return Err(errno);
    }
    // With its time over before, the call has looked once more: the bell rings for others.
    let is_over = |d| fds[0].revents == 0 && (polled == Ok(0) || begun >= d) && sys::now() >= d;
    if deadline.is_some_and(is_over) {
        return Err(EAGAIN);
    }
    Ok(())
}

fn left(deadline: Option<u64>) -> Option<u64> {
    deadline.map(|d| d.saturating_sub(sys::now()))
}
