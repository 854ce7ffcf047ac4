//! timeout(9F), untimeout(9F), bufcall(9F), and their forms with a queue.
//!
//! A timer's function runs inside the perimeter in which it was set. The clock and the thread that calls [`run_due`] are
//! somebody else's: see [`install`].
//!
//! # Contract
//! Timers of a queue are forgotten before it is freed. Whether a timer still stands is decided inside its perimeter, so
//! after untimeout(9F), called there, the function does not run.

use core::ffi::{c_int, c_long, c_void};
use std::collections::BTreeMap;

use headwater_host::guarded::{Entered, Guarded};

use super::perimeter::Perimeter;
use crate::ddi::queue::Queue;

pub type Callback = unsafe extern "C-unwind" fn(*mut c_void);

/// Ticks of timeout(9F) in a second.
pub const HZ: u64 = 100;
/// Nanoseconds of one.
pub const TICK: u64 = 1_000_000_000 / HZ;

/// What the timers need of the process.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Nanoseconds on the clock that `run_due` is called with.
    pub now: fn() -> u64,
    /// Asks for a call of [`run_due`] at this time. Called inside a perimeter: it enters none, and does not block.
    pub set_alarm: fn(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerId(u32);

impl TimerId {
    pub const fn bits(self) -> c_int {
        self.0 as c_int
    }
}

#[derive(Clone, Copy)]
pub(super) enum Work {
    Call(Callback, *mut c_void),
    /// A module's `timer` procedure, with what it asked to be told.
    Module(unsafe fn(Queue, usize), usize),
}

struct Timer {
    perimeter: &'static Perimeter,
    /// None for timeout(9F).
    queue: Option<Queue>,
    work: Work,
}

/// All timers of the process.
pub struct Timers {
    hooks: Option<Hooks>,
    last_id: u32,
    by_time: BTreeMap<(u64, u32), Timer>,
    times: BTreeMap<u32, u64>,
}

// SAFETY: its pointers are only followed in the perimeter they belong to.
unsafe impl Send for Timers {}

static TIMERS: Guarded<Timers> = Guarded::new(Timers {
    hooks: None,
    last_id: 0,
    by_time: BTreeMap::new(),
    times: BTreeMap::new(),
});

pub(super) type Table = Entered<'static, Timers>;

pub(super) fn hold() -> Table {
    TIMERS.enter()
}

/// Says who tells the time and who calls [`run_due`]. Until then timers stand still.
pub fn install(hooks: Hooks) {
    let mut timers = TIMERS.enter();
    timers.hooks = Some(hooks);
    if let Some((&(deadline, _), _)) = timers.by_time.first_key_value() {
        (hooks.set_alarm)(deadline);
    }
}

/// timeout(9F): calls `func(arg)` after so many ticks of 1/[`HZ`] s. Called inside a perimeter, or there is nothing to call
/// it in: then 0 is returned, which is no timer.
///
/// # Safety
/// `func` may be called with `arg` until the timer is taken back, whoever is inside the perimeter then.
pub unsafe extern "C-unwind" fn timeout(func: Callback, arg: *mut c_void, ticks: c_long) -> c_int {
    let Some(perimeter) = Perimeter::current() else {
        return 0;
    };
    let delay = (ticks.max(0) as u64).saturating_mul(TICK);
    add(perimeter, None, delay, Work::Call(func, arg)).bits()
}

/// untimeout(9F): takes a timer back; the ticks it had left, or -1 if it has run.
pub extern "C-unwind" fn untimeout(id: c_int) -> c_int {
    cancel(TimerId(id as u32)).map_or(-1, |left| left.div_ceil(TICK) as c_int)
}

/// bufcall(9F): calls `func(arg)` when `size` bytes may be had, which is soon. 0 outside of a perimeter.
///
/// # Safety
/// `func` may be called with `arg` until this is taken back.
pub unsafe extern "C-unwind" fn bufcall(
    _size: usize,
    _pri: c_int,
    func: Callback,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the function may be called with its argument, as the caller says.
    unsafe { timeout(func, arg, 1) }
}

/// unbufcall(9F).
pub extern "C-unwind" fn unbufcall(id: c_int) {
    cancel(TimerId(id as u32));
}

/// Calls everything due at `now` (nanoseconds); returns when to call again, `u64::MAX` for never. Not called inside a
/// perimeter.
pub fn run_due(now: u64) -> u64 {
    loop {
        let (key, perimeter) = {
            let timers = TIMERS.enter();
            let Some((&key, timer)) = timers.by_time.first_key_value() else {
                return u64::MAX;
            };
            if key.0 > now {
                return key.0;
            }
            (key, timer.perimeter)
        };
        let _guard = perimeter.enter();
        if let Some(timer) = take_if_there(key, perimeter) {
            // SAFETY: inside its perimeter a timer that stands belongs to a live queue.
            unsafe {
                match (timer.work, timer.queue) {
                    (Work::Call(func, arg), _) => func(arg),
                    (Work::Module(call, token), Some(q)) => call(q, token),
                    (Work::Module(..), None) => {}
                }
            }
        }
    }
}

/// A timer may have been taken back, or moved to another perimeter, while we waited to get in.
fn take_if_there(key: (u64, u32), perimeter: &Perimeter) -> Option<Timer> {
    let mut timers = TIMERS.enter();
    if !core::ptr::eq(timers.by_time.get(&key)?.perimeter, perimeter) {
        return None;
    }
    timers.times.remove(&key.1);
    timers.by_time.remove(&key)
}

pub(super) fn add(
    perimeter: &'static Perimeter,
    queue: Option<Queue>,
    delay: u64,
    work: Work,
) -> TimerId {
    let mut timers = TIMERS.enter();
    let id = timers.unused_id();
    let now = timers.hooks.map_or(0, |h| (h.now)());
    let deadline = now.saturating_add(delay);
    let timer = Timer {
        perimeter,
        queue,
        work,
    };
    timers.by_time.insert((deadline, id), timer);
    timers.times.insert(id, deadline);
    let is_first = timers.by_time.first_key_value().map(|(k, _)| k.1) == Some(id);
    if let Some(hooks) = timers.hooks
        && is_first
    {
        (hooks.set_alarm)(deadline);
    }
    TimerId(id)
}

/// Takes a timer back; the nanoseconds it had left, or `None` if it has run.
pub fn cancel(id: TimerId) -> Option<u64> {
    let mut timers = TIMERS.enter();
    let deadline = timers.times.remove(&id.0)?;
    timers.by_time.remove(&(deadline, id.0));
    let now = timers.hooks.map_or(0, |h| (h.now)());
    Some(deadline.saturating_sub(now))
}

/// A queue goes: so do its timers.
pub(super) fn forget(q: Queue) {
    let mut timers = TIMERS.enter();
    let Timers { by_time, times, .. } = &mut *timers;
    by_time.retain(|key, timer| {
        let keep = timer.queue != Some(q);
        if !keep {
            times.remove(&key.1);
        }
        keep
    });
}

/// A queue has another perimeter from now on.
pub(super) fn moved(q: Queue, to: &'static Perimeter) {
    for timer in TIMERS.enter().by_time.values_mut() {
        if timer.queue == Some(q) {
            timer.perimeter = to;
        }
    }
}

impl Timers {
    fn unused_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id % (i32::MAX as u32) + 1;
            if !self.times.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }
}
