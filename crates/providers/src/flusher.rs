//! Sends what is held back and nobody else has sent, in the [background](worker): it rests while nothing is held, ticks while
//! something is, and steps aside for writers that fill their buffers themselves.
//!
//! Who holds something back says [`hold`], and [`drop_hold`] when it is gone. A tick calls those that were [named](ask): the
//! endpoints, which call `flush` of their providers, and SCTP's stack; and what waits in links of loop-back. In a tick that
//! sends only what is [`due`](tick), and says by [`note`] how it went.

use core::cell::Cell;
use core::time::Duration;

use headwater_host::lifecycle::{self, Part};
use headwater_host::sync::{AtomicPtr, AtomicU32, Ordering};
use headwater_host::sys;
use headwater_host::worker::{self, Client, Rest};

/// Between two ticks, in nanoseconds; the longest while writers go by themselves, and while the kernel takes nothing.
const TICK: u64 = Duration::from_micros(25).as_nanos() as u64;
const TICK_BUSY: u64 = Duration::from_micros(500).as_nanos() as u64;
const TICK_STUCK: u64 = Duration::from_millis(10).as_nanos() as u64;
/// While there is nothing but what the kernel sends too, though late: at first, and while it stays so. Every tick costs the
/// program two switches on a shared CPU.
const TICK_LAZY: u64 = Duration::from_millis(1).as_nanos() as u64;
const TICK_LAZIEST: u64 = Duration::from_millis(4).as_nanos() as u64;
/// Ticks without anything held, after which there are none.
const QUIET: u32 = 6;

const ASLEEP: u32 = 0;
const TICKING: u32 = 1;
/// Far between: a new hold wakes it.
const SLOW: u32 = 2;

/// Buffers that hold something.
static HELD: AtomicU32 = AtomicU32::new(0);
/// Those of them for which there is no hurry.
static LAZY: AtomicU32 = AtomicU32::new(0);
static STATE: AtomicU32 = AtomicU32::new(ASLEEP);

/// Of those who hold something back, and whom a tick asks.
pub enum Holder {
    Endpoints,
    Sctp,
    /// What goes to a loop-back link that was full.
    Outboxes,
}

/// What a tick calls, with its time; null until something can be held back. No lock: it may be forked around.
static HOLDERS: [AtomicPtr<fn(u64)>; 3] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 3];

/// Names what a tick calls, with its time: always the same, before something is held back for the first time.
pub fn ask(who: Holder, flush_due: &'static fn(u64)) {
    let flush_due = core::ptr::from_ref(flush_due).cast_mut();
    HOLDERS[who as usize].store(flush_due, Ordering::Release);
}

/// How it went with one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Went {
    /// The kernel takes nothing.
    Stuck,
    /// Too young, or its writer is at it.
    Busy,
    Sent,
}

thread_local! {
    /// The time of the tick that the thread is in; 0: in none.
    static NOW: Cell<u64> = const { Cell::new(0) };
    /// The best that the tick has learnt.
    static BEST: Cell<Went> = const { Cell::new(Went::Stuck) };
    static RHYTHM: Cell<Rhythm> = const { Cell::new(Rhythm::ASLEEP) };
}

/// Of the ticks.
#[derive(Clone, Copy)]
struct Rhythm {
    asleep: bool,
    pause: u64,
    /// So many ticks had nothing to send.
    quiet: u32,
    before: Went,
    lazy: bool,
}

impl Rhythm {
    const ASLEEP: Rhythm = Rhythm {
        asleep: true,
        pause: TICK,
        quiet: 0,
        before: Went::Sent,
        lazy: false,
    };
}

/// A buffer begins to hold something back.
#[inline]
pub fn hold() {
    HELD.fetch_add(1, Ordering::SeqCst);
    if STATE.load(Ordering::SeqCst) != TICKING {
        wake();
    }
}

/// It holds nothing any more.
#[inline]
pub fn drop_hold() {
    HELD.fetch_sub(1, Ordering::SeqCst);
}

/// Is there a thread that will send what is held back? Asked where something need not be held.
#[inline]
pub fn is_there() -> bool {
    STATE.load(Ordering::SeqCst) != ASLEEP || wake()
}

/// As [`hold`], for what the next send or the kernel sends too: a look now and then is enough.
pub fn hold_lazily() {
    HELD.fetch_add(1, Ordering::SeqCst);
    LAZY.fetch_add(1, Ordering::SeqCst);
    if STATE.load(Ordering::SeqCst) == ASLEEP {
        wake();
    }
}

pub fn drop_lazy_hold() {
    LAZY.fetch_sub(1, Ordering::SeqCst);
    HELD.fetch_sub(1, Ordering::SeqCst);
}

fn is_only_lazy() -> bool {
    HELD.load(Ordering::SeqCst) <= LAZY.load(Ordering::SeqCst)
}

/// Is anything held back in this process?
#[inline]
pub fn is_anything_held() -> bool {
    HELD.load(Ordering::Acquire) > 0
}

/// The time of the tick, if the caller is in one.
#[inline]
pub fn tick() -> Option<u64> {
    let now = NOW.with(Cell::get);
    (now != 0).then_some(now)
}

/// What a tick learns at an endpoint.
pub fn note(went: Went) {
    BEST.set(went.max(BEST.get()));
}

/// The ticks are the parent's.
fn after_fork(in_child: bool) {
    if in_child {
        STATE.store(ASLEEP, Ordering::SeqCst);
    }
}

/// False: there is no thread, nor can one be started.
#[cold]
fn wake() -> bool {
    lifecycle::add_first(Part::Flusher, || true, after_fork);
    STATE.store(TICKING, Ordering::SeqCst);
    let turns = worker::begin_in_time(Client::Flusher, turn_of_thread, Some(turn_of_a_call));
    if turns.is_err() {
        // Held data then goes with the next call that flushes, or waits.
        STATE.store(ASLEEP, Ordering::SeqCst);
    }
    turns.is_ok()
}

fn turn_of_thread(rest: &mut Rest) {
    let mut rhythm = RHYTHM.get();
    let woken = core::mem::replace(&mut rhythm.asleep, false);
    STATE.store(TICKING, Ordering::SeqCst);
    if !woken {
        rhythm.tick();
    }
    if rhythm.quiet >= QUIET {
        rhythm = Rhythm::ASLEEP;
        STATE.store(ASLEEP, Ordering::SeqCst);
        if !is_anything_held() {
            return RHYTHM.set(rhythm);
        }
        rhythm.asleep = false;
        STATE.store(TICKING, Ordering::SeqCst);
    }
    loop {
        rhythm.choose_pause();
        if rhythm.pause <= TICK_BUSY && !rhythm.lazy {
            break;
        }
        STATE.store(SLOW, Ordering::SeqCst);
        // Else somebody held something who thought that the next tick is soon.
        if !rhythm.lazy || is_only_lazy() {
            break;
        }
        STATE.store(TICKING, Ordering::SeqCst);
    }
    RHYTHM.set(rhythm);
    rest.until(sys::now() + rhythm.pause);
}

impl Rhythm {
    fn tick(&mut self) {
        if !is_anything_held() {
            self.quiet += 1;
            return;
        }
        self.quiet = 0;
        let went = turn();
        // Once is not yet a habit.
        self.pause = match went {
            _ if self.lazy => self.pause,
            Went::Sent => TICK,
            _ if went != self.before => self.pause,
            Went::Busy => (self.pause * 2).min(TICK_BUSY),
            Went::Stuck => (self.pause * 2).min(TICK_STUCK),
        };
        self.before = went;
    }

    fn choose_pause(&mut self) {
        if is_anything_held() {
            let was = core::mem::replace(&mut self.lazy, is_only_lazy());
            self.pause = match (was, self.lazy) {
                (true, true) => (self.pause * 2).min(TICK_LAZIEST),
                (false, true) => TICK_LAZY,
                (true, false) => TICK,
                (false, false) => self.pause,
            };
        }
    }
}

/// While it is there this thread is in a tick; also one that panics ends.
struct Tick;

impl Drop for Tick {
    fn drop(&mut self) {
        NOW.set(0);
    }
}

fn turn() -> Went {
    let now = sys::now();
    let _tick = Tick;
    NOW.set(now);
    BEST.set(Went::Stuck);
    for holder in &HOLDERS {
        // SAFETY: null, or what `ask` was given for as long as the process lives.
        if let Some(flush_due) = unsafe { holder.load(Ordering::Acquire).as_ref() } {
            flush_due(now);
        }
    }
    BEST.get()
}

/// Where there is no thread, a call that waits sends what is due.
fn turn_of_a_call() -> u64 {
    if !is_anything_held() {
        return u64::MAX;
    }
    turn();
    TICK_BUSY
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static FAILS: Cell<bool> = const { Cell::new(false) };
    }

    fn flush_due(_: u64) {
        assert!(!FAILS.get(), "as it is asked to");
    }

    /// Others have turns in the same thread, and would send nothing but what was due then.
    #[test]
    fn a_tick_that_fails_is_over() {
        static FLUSH_DUE: fn(u64) = flush_due;
        FAILS.set(true);
        ask(Holder::Sctp, &FLUSH_DUE);
        assert!(std::panic::catch_unwind(turn).is_err());
        FAILS.set(false);
        assert_eq!(tick(), None);
        turn();
        assert_eq!(tick(), None);
    }
}
