//! The moves of the switch protocol: how a direction changes between kernel and ring. See ARCHITECTURE.md.
//!
//! None of these waits for the peer. Names are the protocol's: `te` is the epoch in `tx` (odd: ring), `re` the epoch that the
//! receiver has followed to, N and M the byte positions at which a ring stretch begins and ends.

use headwater_channel::bell;
use headwater_channel::ring::{Corrupt, Pos};
use headwater_host::counters::{self, Counter, Reason};
use headwater_host::sync::{AtomicU32, Ordering, fence};
use headwater_host::sys;

use crate::conn::{Conn, Role};
use crate::keeper::{self, Then};
use crate::record::{self, DROPPED, IN_STAYS, OUT_STAYS};
use crate::segment::{CLOSING, Direction, KREAD, ONE_INFLIGHT, PIN, TCPONLY, Tx, View, WITHDRAWS};
use crate::{look, truth};

/// Looks at a reader that is in the kernel, each with a pause: as long as its call takes, which is not to block.
const LOOKS: u32 = 64;

/// Tries to move this end's sending direction from the kernel to the ring. Fails rather than waits: one more send by TCP
/// costs nothing. But who answers at once comes just when the peer looks into the kernel for the answer, and would do so
/// each time: that look is over in a moment.
pub fn try_switch(v: &View<'_>) -> bool {
    let d = v.out();
    for _ in 0..LOOKS {
        if !Tx(d.send.tx.load(Ordering::Acquire)).has(KREAD) {
            break;
        }
        core::hint::spin_loop();
    }
    let switched = {
        let _section = v.lock_out();
        let w = Tx(d.send.tx.load(Ordering::Acquire));
        !w.by_ring()
            && w.generation() == v.generation
            && w.idle()
            && w.epoch() == d.receive.re.load(Ordering::Acquire) as u16
            && d.send
                .tx
                .compare_exchange(w.0, w.next_epoch().0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    };
    if switched {
        counters::add(Counter::Switches, 1);
        wake_own_writers(v);
    }
    switched
}

/// Moves the sending direction back to the kernel after everything that is in the ring. Does nothing when it is there
/// already, or when the receiver has pinned itself to the kernel (then [`withdraw`]).
pub fn unswitch(v: &View<'_>) {
    let d = v.out();
    let done = {
        let _section = v.lock_out();
        let mut done = false;
        loop {
            let w = Tx(d.send.tx.load(Ordering::Acquire));
            if !w.by_ring() || w.has(PIN) || w.generation() != v.generation {
                break;
            }
            d.send
                .nat
                .store(d.send.ksent.load(Ordering::Relaxed), Ordering::Relaxed);
            d.send.mat.store(v.out_ring().tail(), Ordering::Release);
            if d.send
                .tx
                .compare_exchange(w.0, w.next_epoch().0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                done = true;
                break;
            }
        }
        done
    };
    if done {
        counters::add(Counter::Unswitches, 1);
        wake_own_writers(v);
        // Kernel bytes wake a sleeping reader, but none may follow for long: let it see the epoch.
        ring_reader(v);
    }
}

/// A writer whose peer has taken nothing for this long goes on by TCP, whose buffers are larger.
pub const STALL: u64 = 200_000_000;

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
fn tcp_only_for_now(v: &View<'_>) {
    let _section = v.lock_out();
    v.out().send.tx.fetch_or(TCPONLY, Ordering::AcqRel);
}

/// Counts a kernel send that is about to start. `false`: the direction is on the ring, look again.
pub fn begin_kernel_send(d: &Direction) -> Result<bool, Corrupt> {
    loop {
        let w = Tx(d.send.tx.load(Ordering::Acquire));
        if w.by_ring() {
            return Ok(false);
        }
        if w.inflight_full() {
            return Err(Corrupt);
        }
        if d.send
            .tx
            .compare_exchange_weak(w.0, w.0 + ONE_INFLIGHT, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
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
    !seen.has(KREAD)
        && d.send
            .tx
            .compare_exchange(seen.0, seen.0 | KREAD, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
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
    if let Ok(read) = truth::read(shadow, d.send.ksent.load(Ordering::Acquire)) {
        d.receive.krecv.store(read, Ordering::Release);
    }
    end_kernel_read(d);
}

/// The kernel's stream has ended. Have all bytes of this stretch, up to `n`, come before? A reset drops those that were on
/// their way, and what the ring holds behind such a gap must not be read.
pub fn kernel_stretch_is_whole(c: &Conn, n: u64) -> bool {
    c.shadow()
        .is_some_and(|shadow| truth::read(shadow.fd(), n).is_ok_and(|read| read >= n))
}

/// The receiver reads only the kernel from here on. False where that is not allowed: ring bytes stand before kernel bytes.
pub fn pin(c: &Conn, v: &View<'_>) -> bool {
    v.record.set(IN_STAYS, true);
    pin_for_now(c, v, None)
}

/// The same until comeback.rs allows the ring.
fn pin_for_now(c: &Conn, v: &View<'_>, childs: Option<i32>) -> bool {
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

/// Acknowledges what the kernel has brought. It puts that off to send it with an answer, which went by the ring; and until then a
/// sender without TCP_NODELAY would not send what it withdraws.
fn acknowledge(shadow: i32) {
    // Already acknowledged where it fails.
    let _ = sys::set_sockopt(shadow, libc::IPPROTO_TCP, libc::TCP_QUICKACK, &1i32);
}

pub fn is_pinned(d: &Direction) -> bool {
    Tx(d.send.tx.load(Ordering::Acquire)).has(PIN)
}

/// Under the reader lock. `events` says what the kernel reports of the stream's end.
fn set_pin(v: &View<'_>, events: impl Fn() -> i16) -> bool {
    let d = v.inn();
    loop {
        let w = Tx(d.send.tx.load(Ordering::Acquire));
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
        if d.send
            .tx
            .compare_exchange(w.0, w.0 | bit, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            return !ended;
        }
    }
}

/// Under the reader lock. False: the sender has begun to act on it, or kernel bytes are to be read first.
fn take_pin_back(d: &Direction) -> bool {
    loop {
        let w = Tx(d.send.tx.load(Ordering::Acquire));
        let re = d.receive.re.load(Ordering::Relaxed) as u16;
        if w.has(WITHDRAWS) || !w.by_ring() || w.epoch() != re {
            return false;
        }
        if d.send
            .tx
            .compare_exchange(w.0, w.0 & !PIN, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
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
        let w = Tx(d.send.tx.load(Ordering::Acquire));
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
        if d.send
            .tx
            .compare_exchange(w.0, back, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
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
    let w = Tx(d.send.tx.load(Ordering::Acquire));
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
    let w = Tx(d.send.tx.load(Ordering::Acquire));
    if w.by_ring() {
        return false;
    }
    let epoch = w.epoch() as u64;
    if d.receive.re.load(Ordering::Relaxed) != epoch {
        if v.in_ring().skip_until(usize::MAX, None).is_err() {
            return false;
        }
        d.receive.re.store(epoch, Ordering::Release);
    }
    true
}

/// Pinned, and the peer has not yet sent by the kernel what was in the ring then?
pub fn behind_pin(v: &View<'_>) -> bool {
    let w = Tx(v.inn().send.tx.load(Ordering::Acquire));
    w.has(PIN) && w.by_ring() && !v.in_ring().is_empty()
}

/// The peer reads only the kernel from here on: send what it has not read by the kernel, then go on there for good. False
/// when the kernel is full for now.
pub fn withdraw(c: &Conn, v: &View<'_>) -> bool {
    c.shadow()
        .is_none_or(|shadow| withdraw_to(c, v, shadow.fd()))
}

/// The same by a number of the caller's.
pub fn withdraw_to(c: &Conn, v: &View<'_>, shadow: i32) -> bool {
    if !must_withdraw(v) {
        return true;
    }
    // Signal handlers may have little stack.
    withdraw_by(c, v, shadow, &mut vec![0u8; 16384])
}

/// The same by way of `buf`.
pub fn withdraw_by(c: &Conn, v: &View<'_>, shadow: i32, buf: &mut [u8]) -> bool {
    let d = v.out();
    let done = {
        let _section = v.lock_out();
        let w = loop {
            let w = Tx(d.send.tx.load(Ordering::Acquire));
            if !(w.by_ring() && w.has(PIN) && w.generation() == v.generation) {
                return true;
            }
            let begun = w.0 | WITHDRAWS;
            if d.send
                .tx
                .compare_exchange(w.0, begun, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                break w;
            }
        };
        let ring = v.out_ring();
        // Out of the peer's reach: it could have the same bytes sent over and over.
        let progress = &v.record.sending;
        let [sending, sent_all] = [1, 2].map(|phase| (w.epoch() as u32) << 16 | phase);
        let phase = progress.withdrawing.load(Ordering::Relaxed);
        if phase == sent_all {
            // Only its count may be missing.
        } else if phase != sending {
            progress.withdrawn.store(0, Ordering::Relaxed);
            progress.withdrawing.store(sending, Ordering::Release);
        } else if let Ok(written) = truth::written(shadow, v.end == 0) {
            // Who began it may have been killed between a send and its count.
            let by_kernel = d.send.ksent.load(Ordering::Relaxed);
            progress
                .withdrawn
                .store(written.wrapping_sub(by_kernel), Ordering::Release);
        }
        let done = phase == sent_all
            || loop {
                let skip = progress.withdrawn.load(Ordering::Relaxed) as usize;
                let Ok(n) = ring.copy_peek(buf, skip, None) else {
                    break true;
                };
                // Where nobody is there to read, the error stays with the kernel: whoever has the descriptor next is told it.
                if n == 0 || look::is_over(shadow) {
                    break true;
                }
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                // SAFETY: buf is readable for n bytes.
                match unsafe { sys::send(shadow, buf.as_ptr(), n, flags) } {
                    Ok(sent) => {
                        progress.withdrawn.fetch_add(sent as u64, Ordering::Release);
                    }
                    Err(libc::EINTR) => {}
                    Err(e) if sys::passes(e) => break false,
                    // Nobody is there since a moment ago: the program's next call learns it from here, since the kernel tells
                    // a reset but once.
                    Err(e) => {
                        if e != libc::EPIPE {
                            c.record().error.store(e, Ordering::Relaxed);
                        }
                        break true;
                    }
                }
            };
        if done {
            // What was sent counts among the kernel's bytes from here on.
            progress.withdrawing.store(sent_all, Ordering::Release);
            if phase != sent_all {
                let sent = progress.withdrawn.load(Ordering::Relaxed);
                d.send.taken_back.fetch_add(sent, Ordering::Release);
                d.send.ksent.fetch_add(sent, Ordering::Release);
            } else if let Ok(written) = truth::written(shadow, v.end == 0) {
                // Who had come so far was killed, before the count or after it.
                d.send.ksent.store(written, Ordering::Release);
            }
            d.send.tx.fetch_add(1, Ordering::AcqRel);
            progress.withdrawing.store(0, Ordering::Release);
            counters::add(Counter::Unswitches, 1);
        }
        done
    };
    wake_own_writers(v);
    done
}

/// May the last sender close? Fails when the receiver pinned itself while ring bytes are unread: withdraw first.
pub fn begin_close(v: &View<'_>) -> bool {
    let d = v.out();
    loop {
        let w = Tx(d.send.tx.load(Ordering::Acquire));
        if w.generation() != v.generation {
            // Spoilt, or another connection's: nothing of ours is left to send.
            return true;
        }
        if w.by_ring() && w.has(PIN) {
            return false;
        }
        if d.send
            .tx
            .compare_exchange(w.0, w.0 | CLOSING, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            return true;
        }
    }
}

/// Has this end left the rings in both directions?
fn is_frozen(v: &View<'_>) -> bool {
    Tx(v.out().send.tx.load(Ordering::Acquire)).has(TCPONLY)
        && Tx(v.inn().send.tx.load(Ordering::Acquire)).has(PIN)
}

/// Has it done so for good?
pub fn is_frozen_for_good(v: &View<'_>) -> bool {
    v.record.has(OUT_STAYS) && v.record.has(IN_STAYS) && is_frozen(v)
}

/// Takes a connection off the rings for good, as far as this end can: before its descriptor is passed on, for example. `childs`: the
/// number of the shadow in a child of vfork, which has numbers of its own.
pub fn freeze(c: &'static Conn, v: &View<'static>, childs: Option<i32>, reason: Reason) {
    if is_frozen_for_good(v) {
        return;
    }
    v.record.set(OUT_STAYS | IN_STAYS, true);
    freeze_for_now(c, v, childs, reason);
}

/// The same until those who go round us are gone (see comeback.rs), unless there is another reason.
pub fn freeze_for_now(c: &'static Conn, v: &View<'static>, childs: Option<i32>, reason: Reason) {
    let withdrawn = match childs {
        Some(fd) => withdraw_to(c, v, fd),
        None => !help_withdraw(c, v),
    };
    let fd = || childs.unwrap_or_else(|| c.fd());
    if !withdrawn {
        keeper::leave(c, v, fd(), Then::Close);
    }
    let frozen = is_frozen(v);
    tcp_only_for_now(v);
    unswitch(v);
    if !pin_for_now(c, v, childs) && v.in_ring().unread() > 0 {
        headwater_host::log::write(
            headwater_host::log::Level::Warn,
            format_args!(
                "descriptor {} is passed on with bytes in its ring: they stay with this process",
                fd()
            ),
        );
    }
    if !frozen {
        c.falls_back(reason);
    }
}

/// As [`freeze`] for good, for what this process itself asks of the kernel. But while something is unread in the ring, that direction
/// stays: its sender may make no call any more, and what comes late may never come. False then.
pub fn freeze_if_read(c: &Conn, v: &View<'_>, reason: Reason) -> bool {
    let frozen = is_frozen(v);
    help_withdraw(c, v);
    tcp_only(v);
    unswitch(v);
    let pinned = pin_if_empty(c, v) == Some(true);
    if !frozen {
        c.falls_back(reason);
    }
    pinned || v.in_ring().is_empty()
}

/// The kernel's connection was undone by this end. What its own ring holds the peer may still read, before the reset; what
/// the other holds is dropped. Whatever the descriptor is connected to later goes by the kernel.
pub fn disconnect(c: &Conn, v: &View<'_>) {
    tcp_only(v);
    // The kernel refuses what a peer that is pinned has not read.
    withdraw(c, v);
    unswitch(v);
    {
        v.record.set(IN_STAYS | DROPPED, true);
        let _section = v.lock_in(|| recover_reader(c, v));
        let d = v.inn();
        let w = Tx(d.send.tx.fetch_or(PIN, Ordering::AcqRel));
        d.receive.re.store(w.epoch() as u64, Ordering::Release);
    }
    c.record().error.store(0, Ordering::Relaxed);
    c.gone.store(0, Ordering::Relaxed);
    v.own().look.fetch_add(1, Ordering::Release);
    bell::ring(v.peer_bell());
    bell::ring(v.own_bell());
}

/// After publishing: rings the peer's readers if they asked for it. The caller's section ended with a fence.
#[inline]
pub fn ring_reader(v: &View<'_>) {
    if v.out_ring().wakes_reader() {
        bell::ring(v.peer_bell());
        counters::add(Counter::Doorbells, 1);
    }
}

/// After consuming: rings the peer's writers if they asked for it and the ring is down to its low-water mark.
#[inline]
pub fn ring_writer(v: &View<'_>) {
    if v.in_ring().wakes_writer() {
        bell::ring(v.peer_bell());
        counters::add(Counter::Doorbells, 1);
    }
}

/// Each change of `te` concerns siblings who sleep on the other criterion.
fn wake_own_writers(v: &View<'_>) {
    fence(Ordering::SeqCst);
    if v.out().ring.sleep.writers_asleep.load(Ordering::Relaxed) > 0 {
        bell::ring(v.own_bell());
    }
}

/// If the peer reads only the kernel from here on, lets it have what it has not read. Asked at every call and at every
/// ring of the bell, since the peer may wait for just these bytes. True while some are left.
#[inline]
pub fn help_withdraw(c: &Conn, v: &View<'_>) -> bool {
    must_withdraw(v) && !withdraw(c, v)
}

#[inline]
pub fn must_withdraw(v: &View<'_>) -> bool {
    let w = Tx(v.out().send.tx.load(Ordering::Acquire));
    w.by_ring() && w.has(PIN)
}

/// The same for as long as `patience` at most: where nobody else can. True when nothing is left.
pub fn finish_withdrawal(c: &Conn, v: &View<'_>, shadow: i32, patience: u64) -> bool {
    let begun = sys::now();
    while must_withdraw(v) && !withdraw_to(c, v, shadow) {
        let left = patience.saturating_sub(sys::now() - begun);
        let mut p = [libc::pollfd {
            fd: shadow,
            events: libc::POLLOUT,
            revents: 0,
        }];
        let _ = sys::ppoll(&mut p, Some(left.min(100_000_000)));
        if p[0].revents & (libc::POLLERR | libc::POLLHUP) != 0 {
            break;
        }
        if left == 0 {
            return false;
        }
    }
    true
}

/// The own bell was consumed by one of several sleepers: arm again for the others, and ring if there is something already.
pub fn settle(c: &Conn, v: &View<'_>) {
    help_withdraw(c, v);
    let (reader, writer) = (&v.inn().ring.sleep, &v.out().ring.sleep);
    let mut again = false;
    if reader.readers_asleep.load(Ordering::SeqCst) > 0 {
        reader.reader_armed.swap(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        again |= readable(v);
    }
    if writer.writers_asleep.load(Ordering::SeqCst) > 0 {
        writer.writer_armed.swap(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        again |= writable(c, v) == Some(true);
    }
    if again {
        bell::ring(v.own_bell());
    }
}

/// A reader no longer sleeps. The last one lowers the flag, so that nobody rings in vain; who arms meanwhile is rung.
pub fn stop_reading(v: &View<'_>) {
    let s = &v.inn().ring.sleep;
    if leave(&s.readers_asleep) {
        s.reader_armed.swap(0, Ordering::SeqCst);
        if s.readers_asleep.load(Ordering::SeqCst) > 0 {
            s.reader_armed.swap(1, Ordering::SeqCst);
            if readable(v) {
                bell::ring(v.own_bell());
            }
        }
    }
}

/// A writer no longer sleeps.
pub fn stop_writing(c: &Conn, v: &View<'_>) {
    let s = &v.out().ring.sleep;
    if leave(&s.writers_asleep) {
        s.writer_armed.swap(0, Ordering::SeqCst);
        if s.writers_asleep.load(Ordering::SeqCst) > 0 {
            s.writer_armed.swap(1, Ordering::SeqCst);
            if writable(c, v) != Some(false) {
                bell::ring(v.own_bell());
            }
        }
    }
}

/// One sleeper fewer; true if that was the last. Sleepers that were cancelled leave the number too high, never too low.
fn leave(count: &AtomicU32) -> bool {
    let before = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    before == Ok(1)
}

/// Is there something to read that does not come by the kernel (or is about to)?
#[inline]
pub fn readable(v: &View<'_>) -> bool {
    let d = v.inn();
    let w = Tx(d.send.tx.load(Ordering::Acquire));
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

/// Does the peer take back what this end has not read, to send it by the kernel?
pub fn is_taken_back(v: &View<'_>) -> bool {
    Tx(v.inn().send.tx.load(Ordering::Acquire)).has(PIN)
}

/// Stands anything of the ring before what the kernel has without bound?
pub fn ring_comes_first(v: &View<'_>) -> bool {
    let w = Tx(v.inn().send.tx.load(Ordering::Acquire));
    !w.has(PIN) && (w.by_ring() || behind(v))
}

/// Has the receiver not yet followed the sender to its epoch? Then there may be more beyond the boundary.
#[inline]
pub fn behind(v: &View<'_>) -> bool {
    let d = v.inn();
    Tx(d.send.tx.load(Ordering::Acquire)).epoch() != d.receive.re.load(Ordering::Acquire) as u16
}

/// Is there room to write? `None` while the kernel decides.
#[inline]
pub fn writable(c: &Conn, v: &View<'_>) -> Option<bool> {
    let w = Tx(v.out().send.tx.load(Ordering::Acquire));
    if !w.by_ring() {
        return None;
    }
    Some(w.has(PIN) || v.out_ring().below_low_water() || c.gone.load(Ordering::Relaxed) != 0)
}

/// A value that changes with every arrival.
pub fn arrival_edge(v: &View<'_>) -> u64 {
    let w = Tx(v.inn().send.tx.load(Ordering::Acquire));
    let tail: Pos = v.in_ring().tail();
    tail << 16 | w.epoch() as u64
}

/// May this end switch: has the other attached?
pub fn may_switch(c: &Conn) -> bool {
    c.role() == Role::Client || c.record().has(record::ATTACHED)
}
