//! The receiver pins itself to the kernel: its sender is to take back what it has not read, and to send it there.

use headwater_channel::bell;
use headwater_host::sync::{Ordering, fence};
use headwater_host::{reclaim, sys};

use crate::conn::{self, Conn};
use crate::look;
use crate::record::{DROPPED, IN_STAYS};
use crate::segment::{CLOSING, Direction, PIN, View, WITHDRAWS};
use crate::switch::{kernel_stretch_is_whole, recover_reader, recover_reader_by};

/// The receiver reads only the kernel from here on. False where that is not allowed: ring bytes stand before kernel bytes.
pub fn pin(c: &Conn, v: &View<'_>) -> bool {
    v.record.set(IN_STAYS, true);
    pin_for_now(c, v, None)
}

/// The same until comeback.rs allows the ring.
pub fn pin_for_now(c: &Conn, v: &View<'_>, childs: Option<i32>) -> bool {
    let shadow = || childs.unwrap_or_else(|| c.fd());
    let (pinned, new) = {
        let _section = v.lock_in(|| recover_reader_by(shadow(), v));
        let new = !is_pinned(v.inn());
        let events = || childs.map_or_else(|| look::events(c), look::events_of);
        let pinned = set_pin(v, events);
        (pinned, pinned && new)
    };
    if new {
        acknowledge(shadow());
    }
    if pinned {
        bell::ring(v.peer_bell());
        bell::ring(v.own_bell());
    }
    pinned
}

/// As [`pin`], unless the ring holds what the next call reads: a sender that published it before it could see the pin may make no
/// call any more. `None`: there is something.
pub fn pin_if_empty(c: &Conn, v: &View<'_>) -> Option<bool> {
    let d = v.inn();
    let pinned = {
        let _section = v.lock_in(|| recover_reader(c, v));
        let mine = !is_pinned(d);
        let pinned = set_pin(v, || look::events(c));
        // Senders publish, fence, look.
        fence(Ordering::SeqCst);
        if pinned && mine && !v.in_ring().is_empty() && take_pin_back(d) {
            None
        } else {
            if pinned {
                v.record.set(IN_STAYS, true);
            }
            Some(pinned)
        }
    };
    if pinned == Some(true) {
        acknowledge(c.fd());
        bell::ring(v.peer_bell());
    }
    if pinned != Some(false) {
        // Others who wait for this end may have seen a pin that is gone again.
        bell::ring(v.own_bell());
    }
    pinned
}

/// Takes the pin of [`pin_if_empty`] back, if the sender has not begun to act on it.
pub fn unpin(c: &Conn, v: &View<'_>) {
    let unpinned = {
        let _section = v.lock_in(|| recover_reader(c, v));
        let d = v.inn();
        let unpinned = is_pinned(d) && take_pin_back(d);
        if unpinned {
            v.record.set(IN_STAYS, false);
        }
        unpinned
    };
    if unpinned {
        bell::ring(v.own_bell());
    }
}

/// Pins the direction that this end sends, if its receiver is an end of this process too, whose readers' lock is in its reach: what is
/// unread in the ring is to be withdrawn. True if it is sent by the ring, and pinned.
pub fn pin_other_end(v: &View<'_>) -> bool {
    let d = v.out();
    let by_ring = || d.tx().by_ring();
    if !by_ring() {
        return false;
    }
    let looks = reclaim::enter();
    let Some((other, its)) = conn::other_end(v, &looks) else {
        return false;
    };
    // Held, so that nobody else's file gets its number meanwhile.
    other
        .shadow()
        .is_some_and(|_held| pin_for_now(other, &its, None))
        && by_ring()
}

/// Acknowledges what the kernel has brought. It puts that off to send it with an answer, which went by the ring; and until then a
/// sender without TCP_NODELAY would not send what it withdraws.
fn acknowledge(shadow: i32) {
    // Already acknowledged where it fails.
    let _ = sys::set_sockopt(shadow, libc::IPPROTO_TCP, libc::TCP_QUICKACK, &1i32);
}

pub fn is_pinned(d: &Direction) -> bool {
    d.tx().has(PIN)
}

/// Under the reader lock. `events` says what the kernel reports of the stream's end.
fn set_pin(v: &View<'_>, events: impl Fn() -> i16) -> bool {
    let d = v.inn();
    loop {
        let w = d.tx();
        if w.has(PIN) {
            return true;
        }
        let re = d.receive.re.load(Ordering::Relaxed) as u16;
        if w.has(CLOSING) || !w.by_ring() && w.epoch() != re {
            return false;
        }
        // Who has ended the stream, and said so to the kernel alone, sends by it no more.
        let ended = w.by_ring() && !v.in_ring().is_empty() && events() != 0;
        let bit = if ended { CLOSING } else { PIN };
        if d.change(w, w.0 | bit) {
            return !ended;
        }
    }
}

/// Under the reader lock. False: the sender has begun to act on it, or kernel bytes are to be read first.
fn take_pin_back(d: &Direction) -> bool {
    loop {
        let w = d.tx();
        let re = d.receive.re.load(Ordering::Relaxed) as u16;
        if w.has(WITHDRAWS) || !w.by_ring() || w.epoch() != re {
            return false;
        }
        if d.change(w, w.0 & !PIN) {
            return true;
        }
    }
}

/// The kernel's stream has ended behind the own pin. A sender that was killed before it saw the pin left in the ring what it had sent,
/// as did one that was wrong in taking its close for not the last: that is to be read there. True: look again.
pub fn take_pin_back_at_end(c: &Conn, v: &View<'_>) -> bool {
    let drained = |shadow: i32| {
        look::events_of(shadow) != 0 && sys::ioctl_int(shadow, libc::FIONREAD) == Ok(0)
    };
    if !behind_pin(v) || !c.shadow().is_some_and(|s| drained(s.fd())) {
        return false;
    }
    c.look_now.store(1, Ordering::Relaxed);
    let d = v.inn();
    let _section = v.lock_in(|| recover_reader(c, v));
    loop {
        let w = d.tx();
        if !w.has(PIN) {
            return true;
        }
        // Some of it has gone by the kernel, or all.
        if w.has(WITHDRAWS) || !w.by_ring() {
            return false;
        }
        let sent = d.send.ksent.load(Ordering::Acquire);
        if !kernel_stretch_is_whole(c, sent) {
            return false;
        }
        let back = w.0 & !PIN | CLOSING;
        if d.change(w, back) {
            d.receive.krecv.store(sent, Ordering::Release);
            d.receive.re.store(w.epoch() as u64, Ordering::Release);
            return true;
        }
    }
}

/// This end has shut both directions: the kernel refuses what comes from here on, and with it what a sender takes back. That stays where
/// it is, and is read there.
pub fn take_pin_back_if_shut(c: &Conn, v: &View<'_>) {
    if behind_pin(v) && c.shadow().is_some_and(|s| look::is_over(s.fd())) {
        take_pin_back_at_end(c, v);
    }
}

/// Pinned, with something in the ring that the sender has not begun to take back?
pub fn is_readable_behind_pin(v: &View<'_>) -> bool {
    let d = v.inn();
    let w = d.tx();
    let re = d.receive.re.load(Ordering::Relaxed) as u16;
    let goes_on = w.has(PIN) && !w.has(WITHDRAWS) && w.by_ring() && w.epoch() == re;
    goes_on && !v.in_ring().is_empty() && !v.record.has(DROPPED)
}

/// For one look at the ring the own pin is off. False: there is nothing to be read so. Under the reader lock, as is
/// [`lower_pin`].
pub fn lift_pin(v: &View<'_>) -> bool {
    is_readable_behind_pin(v) && take_pin_back(v.inn())
}

pub fn lower_pin(c: &Conn, v: &View<'_>) {
    set_pin(v, || look::events(c));
}

/// The own readers, pinned, follow the sender to the kernel: what it withdrew is not read from the ring. False: it has not done
/// so yet. Under the reader lock.
pub fn follow_withdrawn(v: &View<'_>) -> bool {
    let d = v.inn();
    let w = d.tx();
    if w.by_ring() {
        return false;
    }
    let epoch = w.epoch() as u64;
    if d.receive.re.load(Ordering::Relaxed) != epoch {
        if v.in_ring().give_up_unread().is_err() {
            return false;
        }
        d.receive.re.store(epoch, Ordering::Release);
    }
    true
}

/// Pinned, and the peer has not yet sent by the kernel what was in the ring then?
pub fn behind_pin(v: &View<'_>) -> bool {
    let w = v.inn().tx();
    w.has(PIN) && w.by_ring() && !v.in_ring().is_empty()
}
