//! Sleepers at the own bell, when one of them has come back.

use headwater_channel::bell;
use headwater_host::sync::{AtomicU32, Ordering, fence};

use crate::conn::Conn;
use crate::segment::View;
use crate::switch::withdraw::help_withdraw;
use crate::switch::{readable, writable};

/// A sleeper for whom `is_ready` says whether there is something has come back: its ring of the own bell is taken, and others get theirs.
pub fn wake(c: &Conn, v: &View<'_>, is_ready: impl FnOnce() -> bool) {
    let rung = bell::take(v.own_bell());
    c.vain.woke(rung, || settle(c, v) && !is_ready());
}

/// The own bell was consumed by one of several sleepers: arm again for the others, and ring if there is something already. True if so.
pub fn settle(c: &Conn, v: &View<'_>) -> bool {
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
    again
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
