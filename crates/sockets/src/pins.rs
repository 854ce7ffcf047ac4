//! Calls that wait. A call pins its connection before its first wait, and the last pin ends a connection that the program
//! closed meanwhile, as the kernel keeps a socket for a blocked call.
//!
//! A wait may be left without a way back: by siglongjmp(3) out of a signal handler, or by the end of a cancelled thread.
//! Each thread therefore remembers the pins it has, with the place of the call on its stack, and gives up those it has left.

mod sleepers;

use std::cell::Cell;

use headwater_channel::waiter;
pub use headwater_host::reclaim::{Entered, enter as entered};
use headwater_host::sync::Ordering;
use headwater_host::thread_end::ThreadEnd;
use headwater_host::{process, signal, sleeps};

use crate::conn::Conn;
use crate::ending;
use crate::segment::View;

pub use sleepers::{settle, sleep, stop_reading, stop_writing};

/// Waits inside handlers inside waits ...: beyond this many, a pin is not remembered.
const DEPTH: usize = 8;

#[derive(Clone, Copy)]
struct Held {
    conn: Option<&'static Conn>,
    /// An address in the stack frame of the call.
    frame: usize,
    sleep: Option<(Sleep, View<'static>)>,
}

/// What a call sleeps for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    Reading,
    Writing,
}

/// A call's pin.
#[derive(Clone, Copy)]
pub struct Pin {
    /// Its place among those of the thread; beyond them it is not remembered.
    place: usize,
}

struct Pins {
    count: Cell<usize>,
    held: [Cell<Held>; DEPTH],
}

const NOTHING: Held = Held {
    conn: None,
    frame: 0,
    sleep: None,
};

thread_local! {
    static PINS: Pins = const { Pins { count: Cell::new(0), held: [const { Cell::new(NOTHING) }; DEPTH] } };
    static ENDS_WITH_US: Cell<bool> = const { Cell::new(false) };
}

/// Before the first wait of a call, which goes on [at rest](Entered::rest) with what it has pinned. `None` when the program has closed the connection.
pub fn pin(c: &'static Conn, v: &View<'_>, frame: usize) -> Option<Pin> {
    signal::begin_wait();
    process::without_handlers(|| {
        see_thread_end();
        c.pins.fetch_add(1, Ordering::SeqCst);
        // A close that did not see this pin is seen here, unless this is a step of a call that has one.
        if !c.is_open(v) && !has(c) {
            take_back(c);
            return None;
        }
        let place = PINS.with(|p| {
            let place = p.count.get();
            if let Some(held) = p.held.get(place) {
                held.set(Held {
                    conn: Some(c),
                    frame,
                    sleep: None,
                });
                p.count.set(place + 1);
            }
            place
        });
        Some(Pin { place })
    })
}

/// Has a call of this thread pinned it already?
fn has(c: &Conn) -> bool {
    PINS.with(|p| {
        let held = p.held.iter().take(p.count.get());
        held.filter_map(|h| h.get().conn)
            .any(|x| core::ptr::eq(x, c))
    })
}

/// The call is over.
pub fn unpin(c: &'static Conn, pin: Pin) {
    sleeps::end();
    process::without_handlers(|| {
        let mine = PINS.with(|p| {
            if pin.place >= DEPTH {
                return true;
            }
            let stands = p.count.get() > pin.place
                && p.held[pin.place]
                    .get()
                    .conn
                    .is_some_and(|x| core::ptr::eq(x, c));
            if stands {
                p.count.set(pin.place);
            }
            stands
        });
        // Else it was given up already.
        if mine {
            take_back(c);
        }
    });
}

/// Counts and arms a sleeper, and remembers that for the case that it never comes back.
pub fn fall_asleep(v: &View<'static>, sleep: Sleep) {
    process::without_handlers(|| {
        match sleep {
            Sleep::Reading => v.in_ring().reader_sleeps(),
            Sleep::Writing => v.out_ring().writer_sleeps(),
        }
        note_sleep(Some((sleep, *v)));
    });
}

pub fn wake_up(c: &Conn, v: &View<'_>, sleep: Sleep) {
    process::without_handlers(|| {
        note_sleep(None);
        stop(c, v, sleep);
    });
}

fn note_sleep(sleep: Option<(Sleep, View<'static>)>) {
    PINS.with(|p| {
        if let Some(held) = p.count.get().checked_sub(1).and_then(|i| p.held.get(i)) {
            held.set(Held {
                sleep,
                ..held.get()
            });
        }
    });
}

fn stop(c: &Conn, v: &View<'_>, sleep: Sleep) {
    match sleep {
        Sleep::Reading => stop_reading(v),
        Sleep::Writing => stop_writing(c, v),
    }
}

/// Has this thread pins that it has not given up?
#[inline]
pub fn any() -> bool {
    PINS.with(|p| p.count.get() > 0)
}

/// Control goes to a frame at `target` for good: calls below it will not return.
pub fn unwound_to(target: usize) {
    sleeps::end();
    process::without_handlers(|| {
        let last = |p: &Pins| {
            let place = p.count.get().checked_sub(1)?;
            let held = p.held[place].get();
            (held.frame < target).then(|| p.count.set(place))?;
            Some(held)
        };
        while let Some(held) = PINS.with(last) {
            let Some(c) = held.conn else { continue };
            if let Some((sleep, v)) = held.sleep {
                let disarm = || stop(c, &v, sleep);
                let settle = || {
                    settle(c, &v);
                };
                waiter::abandon(disarm, settle);
            }
            take_back(c);
        }
    });
}

fn take_back(c: &'static Conn) {
    // After fork the child's count begins anew.
    let before = c
        .pins
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    if before == Ok(1) {
        ending::last_pin_gone(c);
    }
}

unsafe extern "C" fn ended(_: *mut libc::c_void) {
    unwound_to(usize::MAX);
}

static END: ThreadEnd = ThreadEnd::new(ended);

/// At start.
pub fn prepare() {
    END.prepare();
    headwater_host::reclaim::prepare();
}

/// Has the pins of this thread given up when it ends, however it ends.
fn see_thread_end() {
    if !ENDS_WITH_US.with(|e| e.replace(true)) {
        END.ask();
    }
}
