//! The thread that sends what is held back and nobody else has sent: it sleeps while nothing is held, ticks while
//! something is, and steps aside for writers that fill their buffers themselves. All signals are blocked in it.
//!
//! Who holds something back says [`hold`], and [`drop_hold`] when it is gone. A tick calls those that were [named](ask): the
//! endpoints, which call `flush` of their providers, and SCTP's stack; and what waits in links of loop-back. In this thread that
//! sends only what is [`due`](tick), and says by [`note`] how it went.

use core::cell::Cell;
use core::time::Duration;

use headwater_host::log::{self, Level};
use headwater_host::sync::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use headwater_host::{stand_in, sys};
use syscalls::{Sysno, syscall};

/// Between two ticks, in nanoseconds; the longest while writers go by themselves, and while the kernel takes nothing.
const TICK: u64 = Duration::from_micros(25).as_nanos() as u64;
const TICK_BUSY: u64 = Duration::from_micros(500).as_nanos() as u64;
const TICK_STUCK: u64 = Duration::from_millis(10).as_nanos() as u64;
/// While there is nothing but what others send too: at first, and while it stays so. Every tick costs the program two switches on a
/// shared CPU.
const TICK_LAZY: u64 = Duration::from_millis(1).as_nanos() as u64;
const TICK_LAZIEST: u64 = Duration::from_millis(8).as_nanos() as u64;
/// Ticks without anything held, after which the thread goes to sleep.
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
/// The process whose thread it is: 0 is none.
static THREAD_OF: AtomicI32 = AtomicI32::new(0);

/// Of those who hold something back, and whom a tick asks.
pub enum Holder {
    Endpoints,
    Sctp,
}

/// What a tick calls, with its time; null until something can be held back. No lock: it may be forked around.
static HOLDERS: [AtomicPtr<fn(u64)>; 2] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 2];

/// Names what a tick calls, with its time: always the same, before something is held back for the first time.
pub fn ask(who: Holder, flush_due: &'static fn(u64)) {
    let flush_due = core::ptr::from_ref(flush_due).cast_mut();
    HOLDERS[who as usize].store(flush_due, Ordering::Release);
}

/// How it went with one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Went {
    Sent,
    /// Too young, or its writer is at it.
    Busy,
    /// The kernel takes nothing.
    Stuck,
}

thread_local! {
    /// In the thread, the time of the tick; 0 elsewhere.
    static NOW: Cell<u64> = const { Cell::new(0) };
    static SENT: Cell<bool> = const { Cell::new(false) };
    static BUSY: Cell<bool> = const { Cell::new(false) };
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

/// As [`hold`], for what others send too, and sooner: a look now and then is enough.
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

/// The time of the tick, if the caller is the thread.
#[inline]
pub fn tick() -> Option<u64> {
    let now = NOW.with(Cell::get);
    (now != 0).then_some(now)
}

/// What the thread learns at an endpoint.
pub fn note(went: Went) {
    match went {
        Went::Sent => SENT.with(|s| s.set(true)),
        Went::Busy => BUSY.with(|b| b.set(true)),
        Went::Stuck => {}
    }
}

/// In the child of a fork: the thread stayed with the parent.
pub fn forked() {
    if THREAD_OF.load(Ordering::Relaxed) != sys::getpid() {
        THREAD_OF.store(0, Ordering::Relaxed);
        STATE.store(ASLEEP, Ordering::SeqCst);
    }
}

/// False: there is no thread, nor can one be started.
#[cold]
fn wake() -> bool {
    let me = sys::getpid();
    let of = THREAD_OF.load(Ordering::Acquire);
    if of != me {
        return start(of, me);
    }
    STATE.store(TICKING, Ordering::SeqCst);
    // SAFETY: the word is static.
    let _ = unsafe {
        syscall!(
            Sysno::futex,
            STATE.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1
        )
    };
    true
}

fn start(of: i32, me: i32) -> bool {
    let first = THREAD_OF.compare_exchange(of, me, Ordering::AcqRel, Ordering::Relaxed);
    if first.is_err() {
        return true;
    }
    STATE.store(TICKING, Ordering::SeqCst);
    let Err(errno) = headwater_host::thread::spawn_in_time(run) else {
        stand_in::no_more(turn_of_a_call);
        return true;
    };
    // Held data then goes with the next call that flushes, or waits.
    THREAD_OF.store(0, Ordering::Release);
    STATE.store(ASLEEP, Ordering::SeqCst);
    if stand_in::instead_of(turn_of_a_call) {
        log::write(
            Level::Warn,
            format_args!("no thread to send held data (errno {errno})"),
        );
    }
    false
}

extern "C" fn run(_: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: a C string of at most 15 bytes; the other asks for timers that are not rounded.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"headwater-flush".as_ptr());
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
    }
    if std::panic::catch_unwind(go_on).is_err() {
        log::write(
            Level::Error,
            format_args!("the flushing thread has failed: held data waits for the next call"),
        );
    }
    core::ptr::null_mut()
}

fn go_on() {
    let mut pause = TICK;
    let mut quiet = 0;
    let mut before = Went::Sent;
    let mut lazy = false;
    loop {
        if is_anything_held() {
            let was = core::mem::replace(&mut lazy, is_only_lazy());
            pause = match (was, lazy) {
                (true, true) => (pause * 2).min(TICK_LAZIEST),
                (false, true) => TICK_LAZY,
                (true, false) => TICK,
                (false, false) => pause,
            };
        }
        let state = if pause > TICK_BUSY || lazy {
            SLOW
        } else {
            TICKING
        };
        if state == SLOW {
            STATE.store(SLOW, Ordering::SeqCst);
            if lazy && !is_only_lazy() {
                continue;
            }
        }
        sleep(state, Some(pause));
        STATE.store(TICKING, Ordering::SeqCst);
        if !is_anything_held() {
            quiet += 1;
            if quiet >= QUIET {
                rest();
                (quiet, pause, lazy) = (0, TICK, false);
            }
            continue;
        }
        quiet = 0;
        let went = turn();
        // Once is not yet a habit.
        pause = match went {
            _ if lazy => pause,
            Went::Sent => TICK,
            _ if went != before => pause,
            Went::Busy => (pause * 2).min(TICK_BUSY),
            Went::Stuck => (pause * 2).min(TICK_STUCK),
        };
        before = went;
    }
}

fn turn() -> Went {
    let now = sys::now();
    NOW.with(|n| n.set(now));
    SENT.with(|s| s.set(false));
    BUSY.with(|b| b.set(false));
    for holder in &HOLDERS {
        // SAFETY: null, or what `ask` was given for as long as the process lives.
        if let Some(flush_due) = unsafe { holder.load(Ordering::Acquire).as_ref() } {
            flush_due(now);
        }
    }
    crate::loopback::link::outbox::flush_due();
    if SENT.with(Cell::get) {
        Went::Sent
    } else if BUSY.with(Cell::get) {
        Went::Busy
    } else {
        Went::Stuck
    }
}

/// Where there is no thread, a call that waits sends what is due.
fn turn_of_a_call() -> u64 {
    if !is_anything_held() {
        return u64::MAX;
    }
    turn();
    NOW.with(|n| n.set(0));
    TICK_BUSY
}

/// Until something is held again.
fn rest() {
    STATE.store(ASLEEP, Ordering::SeqCst);
    while !is_anything_held() && STATE.load(Ordering::SeqCst) == ASLEEP {
        sleep(ASLEEP, None);
    }
    STATE.store(TICKING, Ordering::SeqCst);
}

/// Until the time is up, or the state is no longer this.
fn sleep(state: u32, ns: Option<u64>) {
    let ts = ns.map(sys::timespec);
    let ts = ts
        .as_ref()
        .map_or(core::ptr::null(), |t| t as *const libc::timespec);
    let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is static, the time null or valid.
    let _ = unsafe { syscall!(Sysno::futex, STATE.as_ptr(), wait, state, ts) };
}
