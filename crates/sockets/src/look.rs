//! Looking at the shadow: end of stream, reset, a peer that is gone.

use headwater_host::sync::{AtomicI32, AtomicU64, Ordering};
use headwater_host::sys;

use crate::conn::Conn;
use crate::outcome::Step;
use crate::segment::View;

/// A killed peer raises no flag, so the shadow is looked at this often when nothing else asks for it.
const EVERY_MS: u64 = 100;

/// Is the shadow to be looked at now? The peer has just closed something, the kernel reported something, or it is time.
pub fn due(c: &Conn, v: &View<'_>) -> bool {
    let look = v.peer().look.load(Ordering::Acquire);
    if c.look_seen.swap(look, Ordering::Relaxed) != look {
        c.look_now.store(0, Ordering::Relaxed);
        return true;
    }
    if c.look_now.swap(0, Ordering::AcqRel) != 0 {
        return true;
    }
    let now = coarse_ms();
    if now.wrapping_sub(c.looked_at.load(Ordering::Relaxed)) < EVERY_MS {
        return false;
    }
    c.looked_at.store(now, Ordering::Relaxed);
    true
}

/// Is it time for a sender to see whether its peer still takes anything? Much cheaper than [`due`], and as sure: the
/// ring's head, which the peer moves with every message, is left alone meanwhile.
#[inline]
pub fn overdue(c: &Conn, v: &View<'_>) -> bool {
    v.peer().look.load(Ordering::Acquire) != c.look_seen.load(Ordering::Relaxed)
        || c.look_now.load(Ordering::Relaxed) != 0
        || coarse_ms().wrapping_sub(c.looked_at.load(Ordering::Relaxed)) >= EVERY_MS
}

/// Has nothing been heard of the peer's end since a look that was not long ago?
pub fn is_fresh(c: &Conn, v: &View<'_>) -> bool {
    v.peer().look.load(Ordering::Acquire) == c.look_seen.load(Ordering::Relaxed)
        && c.look_now.load(Ordering::Relaxed) == 0
        && coarse_ms().wrapping_sub(c.looked_at.load(Ordering::Relaxed)) < 5 * EVERY_MS
}

/// The peer was just seen to live.
pub fn put_off(c: &Conn) {
    c.looked_at.store(coarse_ms(), Ordering::Relaxed);
}

/// Has the peer ever said that it shut or closed something?
pub fn peer_was_here(v: &View<'_>) -> bool {
    v.peer().look.load(Ordering::Relaxed) != 0
}

/// Has this end?
pub fn has_shut(v: &View<'_>) -> bool {
    v.own().look.load(Ordering::Relaxed) != 0
}

/// What the kernel shows of a direction whose data comes by the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    Nothing,
    /// The peer's stream has ended, in this way.
    End(Step),
    /// Bytes: somebody sent them round the library, if the sender is on the ring still.
    Bytes,
}

/// Has the kernel seen the end of the peer's stream, or bytes that nobody announced? Takes nothing out of the shadow.
pub fn shown(c: &Conn) -> Shown {
    match c.record().error.load(Ordering::Relaxed) {
        0 => {}
        e => return Shown::End(Step::Error(e)),
    }
    let Some(shadow) = c.shadow() else {
        return Shown::Nothing;
    };
    let events = poll(shadow.fd(), libc::POLLIN | libc::POLLRDHUP);
    if events == 0 && !(c.record().waits_for_more() && has_bytes(shadow.fd())) {
        return Shown::Nothing;
    }
    // It stays to be seen by later calls, and an end by senders.
    c.look_now.store(1, Ordering::Relaxed);
    if events & !libc::POLLIN != 0 {
        c.gone.store(1, Ordering::Relaxed);
    }
    let mut byte = [0u8];
    match sys::recv_bytes(shadow.fd(), &mut byte, libc::MSG_DONTWAIT | libc::MSG_PEEK) {
        Ok(0) => Shown::End(Step::Eof),
        Ok(_) => Shown::Bytes,
        Err(libc::EAGAIN) => Shown::Nothing,
        Err(e) => {
            // Looking takes the error out of the shadow; it is told once the ring is drained.
            c.record().error.store(e, Ordering::Relaxed);
            Shown::End(Step::Error(e))
        }
    }
}

/// Where the error is that a look has taken out of the kernel, until the program is told.
pub fn kept(c: &Conn) -> &AtomicI32 {
    c.rest().map_or(&c.record().error, |rest| &rest.error)
}

/// Takes the error that the kernel keeps for the next call, or that a look has found there.
pub fn take_error(c: &Conn) -> Option<i32> {
    let known = match c.record().error.swap(0, Ordering::Relaxed) {
        0 if events(c) & libc::POLLERR != 0 => {
            let shadow = c.shadow()?;
            sys::sockopt::<i32>(shadow.fd(), libc::SOL_SOCKET, libc::SO_ERROR).unwrap_or(0)
        }
        e => e,
    };
    (known != 0).then_some(known)
}

/// Takes the error that is not in the kernel any more, where nothing is left to read there: its own call would tell an end.
pub fn left_error(c: &Conn) -> Option<i32> {
    let error = &c.record().error;
    let is_left = |own: i32| has_bytes(own) || sys::is_at_mark(own);
    if error.load(Ordering::Relaxed) == 0 || c.shadow().is_some_and(|own| is_left(own.fd())) {
        return None;
    }
    Some(error.swap(0, Ordering::Relaxed)).filter(|&e| e != 0)
}

/// Is nobody left to read what this end sends? Then only the kernel can say so as TCP does.
pub fn peer_gone(c: &Conn) -> bool {
    let gone = events(c) != 0;
    if gone {
        c.gone.store(1, Ordering::Relaxed);
        c.look_now.store(1, Ordering::Relaxed);
    }
    gone
}

/// What the kernel reports of the end of the peer's stream: RDHUP, HUP, ERR.
pub fn events(c: &Conn) -> i16 {
    c.shadow().map_or(0, |shadow| events_of(shadow.fd()))
}

/// Which of these events the kernel reports, and HUP and ERR.
pub fn told(c: &Conn, events: u32) -> u32 {
    c.shadow()
        .map_or(0, |shadow| poll(shadow.fd(), events as i16) as u16 as u32)
}

/// The same of a descriptor.
pub fn events_of(fd: i32) -> i16 {
    poll(fd, libc::POLLRDHUP)
}

/// Have both directions of this socket ended? It leaves the error where it is.
pub fn is_over(shadow: i32) -> bool {
    poll(shadow, 0) & libc::POLLHUP != 0
}

/// Has the kernel bytes to read, though they be fewer than SO_RCVLOWAT asks for, of which poll(2) says nothing?
pub fn has_bytes(fd: i32) -> bool {
    sys::ioctl_int(fd, libc::FIONREAD).is_ok_and(|n| n > 0)
}

/// poll(2) of one descriptor, without waiting.
pub fn poll(fd: i32, events: i16) -> i16 {
    sys::poll_for(fd, events, 0)
}

/// Is it time for what is done once in an interval? True for one thread, for which the `next` time then comes an interval later.
pub fn is_due(next: &AtomicU64, interval: u64) -> bool {
    let (now, due) = (sys::now_roughly(), next.load(Ordering::Relaxed));
    now >= due
        && next
            .compare_exchange(due, now + interval, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
}

/// A clock good to a few milliseconds, and cheap.
#[inline]
pub fn coarse_ms() -> u64 {
    sys::now_roughly() / 1_000_000
}
