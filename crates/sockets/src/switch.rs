//! The moves of the switch protocol: how a direction changes between kernel and ring. See ARCHITECTURE.md.
//!
//! None of these waits for the peer. Names are the protocol's: `te` is the epoch in `tx` (odd: ring), `re` the epoch that the
//! receiver has followed to, N and M the byte positions at which a ring stretch begins and ends.

mod pin;
mod withdraw;

use core::time::Duration;

use headwater_channel::bell;
use headwater_channel::ring::{Corrupt, Pos};
use headwater_host::counters::{self, Counter, Reason};
use headwater_host::sync::{Ordering, fence};
use headwater_host::sys;

use crate::conn::{Conn, Role};
use crate::record::{self, OUT_STAYS, SHUT_WR};
use crate::segment::{CLOSING, Direction, KREAD, ONE_INFLIGHT, PIN, TCPONLY, Tx, View};
use crate::tcp_counts;

pub use pin::{
    behind_pin, follow_withdrawn, is_pinned, is_readable_behind_pin, lift_pin, lower_pin, pin,
    pin_for_now, pin_if_empty, pin_other_end, take_pin_back_at_end, take_pin_back_if_shut, unpin,
};
pub use withdraw::{
    finish_withdrawal, help_withdraw, must_withdraw, withdraw, withdraw_by, withdraw_to,
};

/// Looks at a reader that is in the kernel, each with a pause: as long as its call takes, which is not to block.
const LOOKS: u32 = 64;

/// Tries to move this end's sending direction from the kernel to the ring. Fails rather than waits: one more send by TCP
/// costs nothing. But who answers at once comes just when the peer looks into the kernel for the answer, and would do so
/// each time: that look is over in a moment.
pub fn try_switch(v: &View<'_>) -> bool {
    let d = v.out();
    for _ in 0..LOOKS {
        if !d.tx().has(KREAD) {
            break;
        }
        core::hint::spin_loop();
    }
    let switched = {
        let _section = v.lock_out();
        let w = d.tx();
        !w.by_ring()
            && w.generation() == v.generation
            && w.idle()
            && w.epoch() == d.receive.re.load(Ordering::Acquire) as u16
            && d.change(w, w.next_epoch().0)
    };
    if switched {
        counters::add(Counter::Switches, 1);
        wake_own_writers(v);
    }
    switched
}

/// Moves the sending direction back to the kernel after everything that is in the ring. Does nothing when it is there
/// already, or when the receiver has pinned itself to the kernel (then [`withdraw()`]).
pub fn unswitch(v: &View<'_>) {
    let d = v.out();
    let done = {
        let _section = v.lock_out();
        let mut done = false;
        loop {
            let w = d.tx();
            if !w.by_ring() || w.has(PIN) || w.generation() != v.generation {
                break;
            }
            d.send
                .nat
                .store(d.send.ksent.load(Ordering::Relaxed), Ordering::Relaxed);
            d.send.mat.store(v.out_ring().tail(), Ordering::Release);
            if d.change(w, w.next_epoch().0) {
                done = true;
                break;
            }
        }
        done
    };
    if done {
        counters::add(Counter::Unswitches, 1);
        wake_own_writers(v);
        // Kernel bytes wake a sleeping reader, but none may follow for long: let it see the epoch. Where this end has shut its sending
        // none follow at all, and the reader has been told: a set that holds its by edges would take a ring for an arrival.
        if !v.record.has(SHUT_WR) {
            ring_reader(v);
        }
    }
}

/// A writer whose peer has taken nothing for this long goes on by TCP, whose buffers are larger.
pub const STALL: u64 = Duration::from_millis(200).as_nanos() as u64;

/// A wait for room begins.
pub fn begin_stall(c: &Conn, v: &View<'_>) {
    let head = v.out_ring().head();
    if c.head_asleep.swap(head, Ordering::Relaxed) != head
        || c.full_since.load(Ordering::Relaxed) == 0
    {
        c.full_since.store(sys::now(), Ordering::Relaxed);
    }
}

/// A wait for room has lasted long: if the peer took nothing meanwhile, go on by TCP, which would have taken more by now.
pub fn end_stall(c: &Conn, v: &View<'_>) {
    let since = c.full_since.load(Ordering::Relaxed);
    if v.out_ring().head() == c.head_asleep.load(Ordering::Relaxed)
        && sys::now().saturating_sub(since) >= STALL
    {
        counters::note(Reason::Stalled);
        unswitch(v);
    }
}

/// Never switch this end's sending direction again.
pub fn tcp_only(v: &View<'_>) {
    v.record.set(OUT_STAYS, true);
    tcp_only_for_now(v);
}

/// Not before comeback.rs allows it. Whoever does so just now holds the lock.
pub fn tcp_only_for_now(v: &View<'_>) {
    let _section = v.lock_out();
    v.out().send.tx.fetch_or(TCPONLY, Ordering::AcqRel);
}

/// Counts a kernel send that is about to start. `false`: the direction is on the ring, look again.
pub fn begin_kernel_send(d: &Direction) -> Result<bool, Corrupt> {
    loop {
        let w = d.tx();
        if w.by_ring() {
            return Ok(false);
        }
        if w.inflight_full() {
            return Err(Corrupt);
        }
        if d.change(w, w.0 + ONE_INFLIGHT) {
            return Ok(true);
        }
    }
}

/// The kernel took `n` bytes. The count comes first: a switch must see it.
pub fn end_kernel_send(d: &Direction, n: usize) {
    d.send.ksent.fetch_add(n as u64, Ordering::AcqRel);
    d.send.tx.fetch_sub(ONE_INFLIGHT, Ordering::AcqRel);
}

/// Counts an unlimited kernel read at epoch `te`; false when the epoch has moved or another such read is on.
pub fn begin_kernel_read(d: &Direction, seen: Tx) -> bool {
    !seen.has(KREAD) && d.change(seen, seen.0 | KREAD)
}

pub fn end_kernel_read(d: &Direction) {
    d.send.tx.fetch_and(!KREAD, Ordering::AcqRel);
}

/// After the death of a reader inside its section: bytes that it took from the kernel are its own.
pub fn recover_reader(c: &Conn, v: &View<'_>) {
    recover_reader_by(c.fd(), v);
}

fn recover_reader_by(shadow: i32, v: &View<'_>) {
    let d = v.inn();
    if let Ok(read) = tcp_counts::read(shadow, d.send.ksent.load(Ordering::Acquire)) {
        d.receive.krecv.store(read, Ordering::Release);
    }
    end_kernel_read(d);
}

/// The kernel's stream has ended. Have all bytes of this stretch, up to `n`, come before? A reset drops those that were on
/// their way, and what the ring holds behind such a gap must not be read.
pub fn kernel_stretch_is_whole(c: &Conn, n: u64) -> bool {
    c.shadow()
        .is_some_and(|shadow| tcp_counts::read(shadow.fd(), n).is_ok_and(|read| read >= n))
}

/// May the last sender close? Fails when the receiver pinned itself while ring bytes are unread: withdraw first.
pub fn begin_close(v: &View<'_>) -> bool {
    let d = v.out();
    loop {
        let w = d.tx();
        if w.generation() != v.generation {
            // Spoilt, or another connection's: nothing of ours is left to send.
            return true;
        }
        if w.by_ring() && w.has(PIN) {
            return false;
        }
        if d.change(w, w.0 | CLOSING) {
            return true;
        }
    }
}

/// After publishing: rings the peer's readers if they asked for it. The caller's section ended with a fence.
#[inline]
pub fn ring_reader(v: &View<'_>) {
    if v.out_ring().wakes_reader() {
        bell::ring(v.peer_bell());
        counters::add(Counter::Doorbells, 1);
    }
}

/// After consuming: rings the peer's writers if they asked for it and the ring is down to its low-water mark. Back at the kernel, or
/// with their sending shut, they wait for no room in it, and who did that wakes them: a set that holds theirs by edges would take a
/// ring for an arrival.
#[inline]
pub fn ring_writer(v: &View<'_>) {
    let sends = |w: Tx| w.by_ring() && !w.has(CLOSING);
    if v.in_ring().wakes_writer() && sends(v.inn().tx()) {
        bell::ring(v.peer_bell());
        counters::add(Counter::Doorbells, 1);
    }
}

/// Each change of `te` concerns siblings who sleep on the other criterion.
fn wake_own_writers(v: &View<'_>) {
    fence(Ordering::SeqCst);
    if v.out().ring.sleep.writers.any() {
        bell::ring(v.own_bell());
    }
}

/// Is there something to read that does not come by the kernel (or is about to)?
#[inline]
pub fn readable(v: &View<'_>) -> bool {
    let d = v.inn();
    let w = d.tx();
    if w.has(PIN) {
        return is_readable_behind_pin(v);
    }
    let re = d.receive.re.load(Ordering::Acquire) as u16;
    let ahead = w.epoch().wrapping_sub(re);
    if re & 1 == 1 {
        return !v.in_ring().is_empty();
    }
    // Kernel bytes are the shadow's own to report; the ring counts once they are taken.
    let at = match ahead {
        1 => &d.send.ksent,
        2 => &d.send.nat,
        _ => return false,
    };
    d.receive.krecv.load(Ordering::Acquire) == at.load(Ordering::Acquire) && !v.in_ring().is_empty()
}

/// Of what is not [`readable`]: is there something in the ring, behind what the kernel has still?
#[inline]
pub fn is_behind_kernel(v: &View<'_>) -> bool {
    let re = v.inn().receive.re.load(Ordering::Acquire);
    re & 1 == 0 && ring_comes_first(v) && !v.in_ring().is_empty()
}

/// Does the peer take back what this end has not read, to send it by the kernel?
pub fn is_taken_back(v: &View<'_>) -> bool {
    v.inn().tx().has(PIN)
}

/// Stands anything of the ring before what the kernel has without bound?
pub fn ring_comes_first(v: &View<'_>) -> bool {
    let w = v.inn().tx();
    !w.has(PIN) && (w.by_ring() || behind(v))
}

/// Has the receiver not yet followed the sender to its epoch? Then there may be more beyond the boundary.
#[inline]
pub fn behind(v: &View<'_>) -> bool {
    is_behind(v.inn())
}

#[inline]
fn is_behind(d: &Direction) -> bool {
    d.tx().epoch() != d.receive.re.load(Ordering::Acquire) as u16
}

/// Is there room to write? `None` while the kernel decides.
#[inline]
pub fn writable(c: &Conn, v: &View<'_>) -> Option<bool> {
    let w = v.out().tx();
    if !w.by_ring() {
        return None;
    }
    // Whose sending is shut is never held up.
    let now = w.has(PIN) || w.has(CLOSING);
    Some(now || v.out_ring().below_low_water() || c.gone.load(Ordering::Relaxed) != 0)
}

/// Has this end sent by the ring, and gone back to the kernel since, what the peer has not read yet?
pub fn is_ring_unread(v: &View<'_>) -> bool {
    let d = v.out();
    let w = d.tx();
    !w.by_ring() && !w.has(PIN) && is_behind(d) && !v.out_ring().is_empty()
}

/// A value that changes with every arrival.
pub fn arrival_edge(v: &View<'_>) -> u64 {
    let w = v.inn().tx();
    let tail: Pos = v.in_ring().tail();
    tail << 16 | w.epoch() as u64
}

/// May this end switch: has the other attached?
pub fn may_switch(c: &Conn) -> bool {
    c.role() == Role::Client || c.record().has(record::ATTACHED)
}
