//! Waiting: spin, then timed yields, then let the caller sleep.
//!
//! Spinning pays only while the peer runs on another CPU, yielding only while nobody else wants this one, and both only
//! while the peer answers soon. So each waiter learns its budget, and the process remembers when the machine was found
//! to be busy: a yield that took long (somebody else had the CPU), or a gap in a spin (somebody else took it), bans that
//! kind of waiting for several times as long, up to a hundred times when it keeps happening.

use core::time::Duration;

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys;

/// Longest spin, in nanoseconds, while it pays: about what a wake-up costs.
pub const DEFAULT_BUDGET: u32 = 50_000;
/// A yield or a gap at least this long means that another process wants the CPU.
const FOREIGN: u64 = Duration::from_micros(150).as_nanos() as u64;
/// A ban lasts this many times the gap: little for the first one, more when the next follows soon, for then the machine is
/// busy rather than disturbed.
const FIRST_FACTOR: u64 = 4;
const FACTOR_LIMIT: u64 = 100;
const LONGEST_BAN: u64 = Duration::from_secs(1).as_nanos() as u64;
/// Yields that return at once and bring nothing: nobody else is runnable here, the peer sleeps.
const EMPTY_YIELDS: u32 = 3;
const EMPTY_YIELD: u64 = 1_500;
/// Looks before asking for the time.
const LOOKS: u32 = 80;
/// Smallest budget that is still tried, and how often it is tried again after that.
const FLOOR: u32 = 1_000;
const PROBE_EVERY: u32 = 32;

/// Spinning, yielding.
static BANS: [Ban; 2] = [const { Ban::new() }; 2];
static LIMIT: AtomicU32 = AtomicU32::new(DEFAULT_BUDGET);

/// When a kind of active waiting is banned until, and how that came about.
struct Ban {
    until: AtomicU64,
    factor: AtomicU64,
    count: AtomicU64,
}

impl Ban {
    const fn new() -> Ban {
        Ban {
            until: AtomicU64::new(0),
            factor: AtomicU64::new(FIRST_FACTOR),
            count: AtomicU64::new(0),
        }
    }

    fn holds(&self, now: u64) -> bool {
        now < self.until.load(Ordering::Relaxed)
    }

    /// Somebody else had the CPU for `gap`.
    fn extend(&self, now: u64, gap: u64) {
        let factor = self.factor.load(Ordering::Relaxed);
        let free_for = now.saturating_sub(self.until.load(Ordering::Relaxed));
        let factor = if free_for < gap * factor {
            (factor * 4).min(FACTOR_LIMIT)
        } else {
            FIRST_FACTOR
        };
        self.factor.store(factor, Ordering::Relaxed);
        self.until
            .store(now + (gap * factor).min(LONGEST_BAN), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// How often this process banned spinning and yielding.
pub fn bans() -> [u64; 2] {
    [0, 1].map(|i| BANS[i].count.load(Ordering::Relaxed))
}

/// Sets the process's upper bound for one spin, in nanoseconds; 0 never spins nor yields.
pub fn set_limit(ns: u32) {
    LIMIT.store(ns, Ordering::Relaxed);
}

/// What one end has learnt about waiting for its peer. Only hints: torn or stale values cost time, never correctness.
#[derive(Default)]
pub struct Learner {
    /// Doublings of the budget taken back; 0 is the full budget.
    shift: AtomicU32,
    /// Waits skipped since the last probe.
    skipped: AtomicU32,
}

/// How a wait went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The condition holds.
    Ready,
    /// Not yet: arm and sleep.
    Sleep,
}

impl Learner {
    pub const fn new() -> Learner {
        Learner {
            shift: AtomicU32::new(0),
            skipped: AtomicU32::new(0),
        }
    }

    /// Waits actively for `ready`. `begun`: when the caller looked last, if it knows; where a yield comes next, the time is taken from
    /// there. `peer_cpu` is where the peer last ran, `u32::MAX` when unknown.
    #[inline]
    pub fn wait(
        &self,
        mut begun: Option<u64>,
        peer_cpu: impl Fn() -> u32,
        mut ready: impl FnMut() -> bool,
    ) -> Outcome {
        // The answer is often on its way: a few looks before asking for the time.
        if peer_cpu() != sys::cpu() {
            begun = None;
            for look in 0..LOOKS {
                if ready() {
                    return Outcome::Ready;
                }
                // A pause each time would be felt in the answer, none at all by a neighbour on the same core.
                if look % 4 == 3 {
                    core::hint::spin_loop();
                }
            }
        }
        self.wait_long(begun, peer_cpu, ready)
    }

    #[inline(never)]
    fn wait_long(
        &self,
        begun: Option<u64>,
        peer_cpu: impl Fn() -> u32,
        mut ready: impl FnMut() -> bool,
    ) -> Outcome {
        let budget = self.budget();
        if budget == 0 {
            return Outcome::Sleep;
        }
        let start = begun.unwrap_or_else(sys::now);
        let mut last = start;
        let mut empty = 0;
        loop {
            let same_cpu = peer_cpu() == sys::cpu();
            let ban = &BANS[same_cpu as usize];
            if ban.holds(last) {
                return Outcome::Sleep;
            }
            if same_cpu {
                sys::sched_yield();
            } else {
                for _ in 0..30 {
                    if ready() {
                        self.paid();
                        return Outcome::Ready;
                    }
                    core::hint::spin_loop();
                }
            }
            let now = sys::now();
            let took = now - last;
            last = now;
            if took > FOREIGN {
                ban.extend(now, took);
            }
            if ready() {
                self.paid();
                return Outcome::Ready;
            }
            if same_cpu {
                empty = if took < EMPTY_YIELD { empty + 1 } else { 0 };
                if empty >= EMPTY_YIELDS {
                    return Outcome::Sleep;
                }
            }
            if now - start > budget as u64 {
                self.wasted();
                return Outcome::Sleep;
            }
        }
    }

    /// As [`Learner::wait`], where each look is a system call and nobody knows where the peer runs: yields let it go on if that is
    /// here, and cost little if it is not.
    pub fn wait_dearly(&self, mut ready: impl FnMut() -> bool) -> Outcome {
        let budget = self.budget();
        if budget == 0 {
            return Outcome::Sleep;
        }
        let start = sys::now();
        let mut last = start;
        let yields = &BANS[1];
        while !yields.holds(last) {
            if ready() {
                self.paid();
                return Outcome::Ready;
            }
            sys::sched_yield();
            let now = sys::now();
            if now - last > FOREIGN {
                yields.extend(now, now - last);
            }
            last = now;
            if now - start > budget as u64 {
                self.wasted();
                return Outcome::Sleep;
            }
        }
        Outcome::Sleep
    }

    /// Tells how long the sleep lasted that followed a wait in vain: a short one would have been worth a spin.
    pub fn slept(&self, ns: u64) {
        if ns < LIMIT.load(Ordering::Relaxed) as u64 {
            self.paid();
        }
    }

    fn budget(&self) -> u32 {
        let limit = LIMIT.load(Ordering::Relaxed);
        let budget = limit >> self.shift.load(Ordering::Relaxed).min(31);
        if limit == 0 || budget >= FLOOR {
            return budget;
        }
        let skipped = self.skipped.load(Ordering::Relaxed);
        if skipped >= PROBE_EVERY {
            self.skipped.store(0, Ordering::Relaxed);
            return limit / 2;
        }
        self.skipped.store(skipped + 1, Ordering::Relaxed);
        0
    }

    fn paid(&self) {
        if self.shift.load(Ordering::Relaxed) != 0 {
            self.shift.store(0, Ordering::Relaxed);
        }
    }

    fn wasted(&self) {
        let shift = self.shift.load(Ordering::Relaxed);
        self.shift.store((shift + 1).min(16), Ordering::Relaxed);
    }
}
