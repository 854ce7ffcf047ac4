//! Connections that were frozen because an image without the library had them, and that come back to the ring when it is gone.
//!
//! Such an image may have read and written bytes that nobody counted. So an end first has all counts that are its own agree
//! with the kernel's, and waits, from call to call, for a moment in which nothing is under way: what one end has sent is what
//! the other has read. Then it lowers the bit that it had set, PIN in what it receives and TCPONLY in what it sends; the
//! sender's next switch finds the counts as after any un-switch. Neither end waits for the other, and the peer need not know.
//!
//! That the image is gone is said by the pipe whose writing end it had (lend.rs). It may have closed that, and kept the
//! connection; so /proc is asked too who has it (holders.rs).

use headwater_host::counters::Reason;
use headwater_host::sync::{AtomicU64, Ordering};
use headwater_host::sys;

use crate::conn::{Conn, Shadow};
use crate::look::coarse_ms;
use crate::record::{IN_STAYS, OUT_STAYS, Record};
use crate::segment::{CLOSING, Direction, PIN, TCPONLY, Tx, View, WITHDRAWS};
use crate::{freeze, holders, images, switch, tcp_counts};

/// Before an image without the library gets the connection. It has the writing end of `family`'s pipe already. `childs`: as of
/// [`freeze::for_good`].
pub fn let_out(c: &'static Conn, v: &View<'static>, childs: Option<i32>, family: u64) {
    let r = v.record;
    let before = r
        .strangers
        .compare_exchange(0, family, Ordering::SeqCst, Ordering::SeqCst);
    if before.is_err_and(|other| other != family) {
        // Nobody could tell of both.
        r.set(OUT_STAYS | IN_STAYS, true);
    }
    // Before the bits: whoever lowers them looks at it under the lock under which they are set.
    r.lettings.fetch_add(1, Ordering::SeqCst);
    freeze::for_now(c, v, childs, Reason::Exec);
}

/// May what this end receives come by the ring again? Its readers then wait for either way.
pub fn may_receive(v: &View<'_>) -> bool {
    v.record.strangers.load(Ordering::SeqCst) != 0 && !v.record.has(IN_STAYS)
}

/// Is it time for another try? A try costs some system calls, so there is one in a tick of the clock.
fn is_time(last: &AtomicU64) -> bool {
    let now = coarse_ms();
    last.swap(now, Ordering::Relaxed) != now
}

/// The letting after which, as is known, nobody has the connection that goes round us.
fn gone(v: &View<'_>, stays: u32) -> Option<u32> {
    let r = v.record;
    if r.has(stays) || r.strangers.load(Ordering::SeqCst) != images::family() {
        return None;
    }
    let letting = r.lettings.load(Ordering::SeqCst);
    let clear = || r.cleared.load(Ordering::SeqCst) == letting;
    if !clear() {
        if images::is_present() {
            return None;
        }
        holders::look();
    }
    clear().then_some(letting)
}

/// Is it time to look at a direction, and has everybody [`gone`]?
fn may_try<'a>(c: &'a Conn, v: &View<'_>, way: usize, stays: u32) -> Option<(u32, Shadow<'a>)> {
    if !is_time(&c.tried[way]) {
        return None;
    }
    Some((gone(v, stays)?, c.shadow()?))
}

/// Has nothing happened since [`gone`] said so that keeps the direction with the kernel? Under the direction's lock.
fn still(r: &Record, letting: u32, stays: u32) -> bool {
    r.lettings.load(Ordering::SeqCst) == letting && !r.has(stays)
}

/// Lets this end send by the ring again, if that can be. True: look again.
#[cold]
pub fn sending(c: &Conn, v: &View<'_>) -> bool {
    let Some((letting, shadow)) = may_try(c, v, 0, OUT_STAYS) else {
        return false;
    };
    let d = v.out();
    let _section = v.lock_out();
    let w = d.tx();
    if w.by_ring() || w.has(CLOSING) || w.generation() != v.generation {
        return false;
    }
    let active = v.end == 0;
    let written = || {
        tcp_counts::counts(shadow.fd(), active)
            .ok()
            .map(|t| t.written)
    };
    let Some(sent) = recount(d, written) else {
        return false;
    };
    let idle = d.receive.krecv.load(Ordering::Acquire) == sent;
    if !idle || !still(v.record, letting, OUT_STAYS) {
        return false;
    }
    d.send.tx.fetch_and(!TCPONLY, Ordering::AcqRel);
    true
}

/// Has `ksent` be what the kernel says. Others may send meanwhile, and add their bytes to it: `None` if one of them could be
/// counted twice, until the next time.
fn recount(d: &Direction, written: impl FnOnce() -> Option<u64>) -> Option<u64> {
    let idle = || Tx(d.send.tx.load(Ordering::SeqCst)).sends() == 0;
    let before = d.send.ksent.load(Ordering::SeqCst);
    let sent = idle().then(written)??;
    d.send
        .ksent
        .compare_exchange(before, sent, Ordering::SeqCst, Ordering::Relaxed)
        .ok()?;
    // Whose bytes the kernel had counted has added them by now, if nobody is in a send.
    (idle() && d.send.ksent.load(Ordering::SeqCst) == sent).then_some(sent)
}

/// Is a sender inside a send? Its bytes may have come, and it has not counted them.
fn is_sent_to(v: &View<'_>) -> bool {
    Tx(v.inn().send.tx.load(Ordering::Relaxed)).sends() != 0
}

/// [`receiving`] after a read.
pub fn after_data(c: &Conn, v: &View<'_>) {
    if !is_sent_to(v) {
        receiving(c, v);
    }
}

/// [`receiving`] before a wait. A peer on the same CPU is interrupted in its send by us whom it wakes, each time: what has come
/// after it was let go on is looked at.
pub fn before_wait(c: &Conn, v: &View<'_>) -> bool {
    if !is_sent_to(v) {
        return receiving(c, v);
    }
    if is_time(&c.tried[1]) {
        sys::sched_yield();
        c.tried[1].store(0, Ordering::Relaxed);
    }
    false
}

/// Lets this end receive by the ring again, if that can be. True: look again.
#[cold]
fn receiving(c: &Conn, v: &View<'_>) -> bool {
    let Some((letting, shadow)) = may_try(c, v, 1, IN_STAYS) else {
        return false;
    };
    let d = v.inn();
    let _section = v.lock_in(|| switch::recover_reader(c, v));
    let w = d.tx();
    if !w.has(PIN) {
        return true;
    }
    if w.has(CLOSING) || w.generation() != v.generation || !switch::follow_withdrawn(v) {
        return false;
    }
    let Ok(t) = tcp_counts::counts(shadow.fd(), v.end == 0) else {
        return false;
    };
    d.receive.krecv.store(t.read, Ordering::Release);
    let idle = d.send.ksent.load(Ordering::Acquire) == t.read;
    if !idle || !still(v.record, letting, IN_STAYS) {
        return false;
    }
    d.send.tx.fetch_and(!(PIN | WITHDRAWS), Ordering::AcqRel);
    true
}
