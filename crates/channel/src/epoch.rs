//! When what was taken out of reach may be freed: once nobody can be looking at it any more.
//!
//! A thread that *looks* at something it does not hold announces the epoch in a word of its own. Who has taken something out of reach
//! advances the epoch, and may free it when each announced word is of a later one.
//!
//! ```text
//!   who looks                          who frees
//!     word = epoch    (plain store)      take it out of reach
//!     light                              retired = epoch, epoch += 1
//!     find it, look at it                heavy
//!     word = 0                           free if no word is announced that is <= retired
//! ```
//!
//! Either the announcement comes before the heavy barrier, and is seen; or the look comes behind it, and finds nothing. Nothing but
//! the order of the compiler is asked of who looks, so a look costs no fence: the heavy barrier is membarrier(2), which makes each running
//! thread of the process pass a fence somewhere. loom has no such thing, and runs this code with the fence where a thread that
//! is interrupted at the worst place has it, behind its announcement.

use crate::sync::{AtomicU64, Ordering};

/// Of a process: what its announcements say.
pub struct Epoch(AtomicU64);

/// Of a thread: the epoch in which it began to look; 0: it does not.
pub struct Word(AtomicU64);

#[cfg(not(loom))]
impl Epoch {
    #[expect(clippy::new_without_default, reason = "there is one for all")]
    pub const fn new() -> Epoch {
        Epoch(AtomicU64::new(1))
    }
}

#[cfg(not(loom))]
impl Word {
    #[expect(clippy::new_without_default, reason = "it belongs to a thread")]
    pub const fn new() -> Word {
        Word(AtomicU64::new(0))
    }
}

impl Epoch {
    /// Something was taken out of reach just now: the epoch of that.
    pub fn retire(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel)
    }

    /// Of now.
    #[inline(always)]
    fn now(&self) -> u64 {
        // Who reads an epoch sees what had been taken out of reach before it began.
        self.0.load(Ordering::Acquire)
    }
}

impl Word {
    /// Begins to look. False: this thread does so already, in a call that a handler has interrupted, and goes on with that.
    #[inline(always)]
    pub fn enter(&self, epoch: &Epoch) -> bool {
        if self.0.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.announce(epoch);
        true
    }

    /// As [`enter`](Word::enter), for who has seen that this thread does not look.
    #[inline(always)]
    pub fn announce(&self, epoch: &Epoch) {
        // Who reads this announcement sees that the look before it, whose end it has not read, is over.
        self.0.store(epoch.now(), Ordering::Release);
        light();
    }

    /// Ends a look, for who began it.
    #[inline(always)]
    pub fn leave(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Since which epoch it looks, for others; 0: not at all.
    #[inline(always)]
    pub fn announced(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What was retired in an epoch before this one may be freed. `heavy` is the barrier, and `words` are looked at behind it; what is
/// asked about was retired before the call.
pub fn free_before(heavy: impl FnOnce(), words: impl Iterator<Item = u64>) -> u64 {
    heavy();
    words.filter(|&word| word != 0).min().unwrap_or(u64::MAX)
}

#[cfg(not(loom))]
#[inline(always)]
fn light() {
    crate::sync::compiler_fence(Ordering::SeqCst);
}

#[cfg(loom)]
fn light() {
    crate::sync::fence(Ordering::SeqCst);
}

/// For the models: loom's atomics are made anew in each run, and what is left out must be seen to be missed.
#[cfg(loom)]
mod models {
    use super::*;

    impl Epoch {
        pub fn new() -> Epoch {
            Epoch(AtomicU64::new(1))
        }
    }

    impl Word {
        pub fn new() -> Word {
            Word(AtomicU64::new(0))
        }

        /// As [`enter`](Word::enter), without anything that keeps the look behind it.
        pub fn enter_without_light(&self, epoch: &Epoch) -> bool {
            self.0.store(epoch.now(), Ordering::Release);
            true
        }

        /// As [`enter`](Word::enter), without a word of the look before.
        pub fn enter_without_release(&self, epoch: &Epoch) -> bool {
            self.0.store(epoch.now(), Ordering::Relaxed);
            light();
            true
        }

        /// As [`leave`](Word::leave), but what was looked at may be looked at later yet.
        pub fn leave_unordered(&self) {
            self.0.store(0, Ordering::Relaxed);
        }
    }
}
