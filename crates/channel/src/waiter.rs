//! The one place where a thread arms, looks again, sleeps and settles.
//!
//! ```text
//!   who waits                                who makes happen what it waits for
//!     arm: be counted, raise the flag          publish
//!     fence                                    fence
//!     look again                               is the flag up? lower it, and ring
//!     sleep at the bell
//!     take the ring, if there is one
//!     disarm: be counted no more
//!     settle: pass it on to those asleep yet
//! ```
//!
//! Whatever the order, one of the two sees the other. The flag is lowered for all sleepers of a kind, and one bell serves several
//! kinds: so whoever takes a ring raises the flags of those still asleep, looks for them, and rings its own bell if what they wait
//! for is there. Counts of sleepers are never too low; the death of a sleeper leaves one too high, which costs extra rings.
//!
//! What is slept at and for is a [`Place`]; [`Sleepers`] are the words that most places have in shared memory. loom runs this
//! code, and with each [`Fault`].

use crate::shm::SharedSafe;
use crate::sync::{AtomicU32, Ordering, fence};

/// Where a thread sleeps, and what for. A sleep may be left for good by a siglongjmp(3) or the end of a cancelled thread: a place owns
/// nothing that is to be dropped, and whoever remembers it [abandons](abandon) it then.
pub trait Place {
    /// What came of it.
    type Slept;

    /// Counts the sleeper, and asks for a ring.
    fn arm(&mut self);
    /// The look behind that: what there is, if the thread is not to sleep.
    fn look(&mut self) -> Option<Self::Slept>;
    /// In the kernel, until the bell is rung, or something else has happened.
    fn sleep(&mut self) -> Self::Slept;
    /// Takes the ring that ended the sleep. False: there was none.
    fn take(&mut self) -> bool;
    /// Takes back what [`arm`](Place::arm) did.
    fn disarm(&mut self);
    /// A ring was taken, and the thread is not counted any more: passes it on to others that sleep here. True: they were rung for.
    fn settle(&mut self) -> bool;
    /// It has slept, and passed the ring that it took on to others, or not.
    fn woke(&mut self, _passed_on: bool) {}
    /// Does `part` without a signal handler in the midst of it, which might leave for good with a ring that is for others.
    fn undisturbed<R>(&mut self, part: impl FnOnce(&mut Self) -> R) -> R {
        part(self)
    }
}

/// Sleeps, unless there is something already.
#[inline]
pub fn sleep<P: Place>(place: &mut P) -> P::Slept {
    if planted(Fault::LooksFirst)
        && let Some(found) = place.look()
    {
        return found;
    }
    place.arm();
    if !planted(Fault::NoFence) {
        fence(Ordering::SeqCst);
    }
    let looks = !planted(Fault::NoSecondLook) && !planted(Fault::LooksFirst);
    if looks && let Some(found) = place.look() {
        place.disarm();
        return found;
    }
    let slept = place.sleep();
    if planted(Fault::SettlesFirst) {
        place.disarm();
        place.settle();
        place.take();
        return slept;
    }
    let passed_on = place.undisturbed(|place| {
        let rung = place.take();
        place.disarm();
        rung && !planted(Fault::KeepsRing) && place.settle()
    });
    place.woke(passed_on);
    slept
}

/// A place where no ring is to be passed on: there is one sleeper, or each is told.
pub struct Alone<A, L, S, D> {
    pub arm: A,
    pub look: L,
    pub sleep: S,
    pub disarm: D,
}

impl<A: FnMut(), L: FnMut() -> Option<R>, S: FnMut() -> R, D: FnMut(), R> Place
    for Alone<A, L, S, D>
{
    type Slept = R;

    fn arm(&mut self) {
        (self.arm)();
    }

    fn look(&mut self) -> Option<R> {
        (self.look)()
    }

    fn sleep(&mut self) -> R {
        (self.sleep)()
    }

    fn take(&mut self) -> bool {
        false
    }

    fn disarm(&mut self) {
        (self.disarm)();
    }

    fn settle(&mut self) -> bool {
        false
    }
}

/// Instead of the rest of a [`sleep`] that was left for good, perhaps with a ring in its hands.
pub fn abandon(disarm: impl FnOnce(), settle: impl FnOnce()) {
    if !planted(Fault::LeftCounted) {
        disarm();
    }
    if !planted(Fault::LeftWithRing) {
        settle();
    }
}

/// Sleepers of one kind, in memory that they share with whoever rings for them.
#[derive(SharedSafe)]
#[repr(C)]
pub struct Sleepers {
    /// "Ring!"; cleared by the ringer.
    pub armed: AtomicU32,
    pub asleep: AtomicU32,
}

impl Sleepers {
    /// For a [`Place`] to [arm](Place::arm).
    pub fn enter(&self) {
        self.asleep.fetch_add(1, Ordering::Relaxed);
        self.raise();
    }

    /// The same, and a fence, for who arms and does not sleep itself.
    pub fn arm(&self) {
        self.enter();
        fence(Ordering::SeqCst);
    }

    /// One fewer, for whatever reason. The last one lowers the flag, so that nobody rings in vain. True: somebody has armed meanwhile
    /// for whom `is_there` says that there is something, and the bell is to be rung.
    pub fn leave(&self, is_there: impl FnOnce() -> bool) -> bool {
        let before = self
            .asleep
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| n.checked_sub(1));
        if before != Ok(1) && !planted(Fault::LowersForAll) {
            return false;
        }
        // Whoever's flag this was is counted.
        self.armed.swap(0, Ordering::Acquire);
        !planted(Fault::LowersBlindly) && !planted(Fault::LowersForAll) && self.settle(is_there)
    }

    /// For who has published and fenced: is the bell to be rung?
    #[inline]
    pub fn call(&self) -> bool {
        self.are_armed() && self.armed.swap(0, Ordering::Acquire) != 0
    }

    /// Does anybody ask for a ring?
    #[inline]
    pub fn are_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed) != 0
    }

    /// Does anybody sleep?
    pub fn any(&self) -> bool {
        self.asleep.load(Ordering::SeqCst) > 0
    }

    /// For who took a ring: arms again for those still asleep, if any. True: there is something for them, as `is_there` says, and the
    /// bell is to be rung again.
    pub fn settle(&self, is_there: impl FnOnce() -> bool) -> bool {
        // With a sleeper that is just being counted: it is seen here, or it sees what the ring was about.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) == 0 {
            return false;
        }
        if !planted(Fault::SettlesUnarmed) {
            self.raise();
            fence(Ordering::SeqCst);
        }
        !planted(Fault::SettlesBlindly) && is_there() && self.call()
    }

    /// The exchange takes its place behind all that were raised before; whoever clears it has seen them counted. A plain store could
    /// slip in front of a flag that has been cleared already, its sleeper not yet counted.
    fn raise(&self) {
        match planted(Fault::RaisesByStore) {
            false => self.armed.swap(1, Ordering::Release),
            true => {
                self.armed.store(1, Ordering::Relaxed);
                0
            }
        };
    }
}

/// What a model has wrong, to show that it would be found; in a library nothing is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing keeps the second look behind the arming.
    NoFence,
    NoSecondLook,
    /// The second look comes before the arming.
    LooksFirst,
    /// A plain store raises the flag.
    RaisesByStore,
    /// A ring that was taken is passed on to nobody.
    KeepsRing,
    /// It is taken when it has been passed on.
    SettlesFirst,
    /// The others are looked for, and not armed.
    SettlesUnarmed,
    /// They are armed, and not looked for.
    SettlesBlindly,
    /// The last one lowers the flag, and does not see who has raised it meanwhile.
    LowersBlindly,
    /// One that is not the last lowers it.
    LowersForAll,
    /// A sleep that was left for good stays counted.
    LeftCounted,
    /// It takes a ring with it.
    LeftWithRing,
}

#[cfg(not(loom))]
#[inline(always)]
const fn planted(_: Fault) -> bool {
    false
}

#[cfg(loom)]
use models::planted;

#[cfg(loom)]
pub mod models {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Has the models that this thread runs from here on be wrong.
    pub fn plant(fault: Option<Fault>) {
        PLANTED.set(fault);
    }

    pub(super) fn planted(fault: Fault) -> bool {
        PLANTED.get() == Some(fault)
    }

    impl Default for Sleepers {
        fn default() -> Sleepers {
            Sleepers {
                armed: AtomicU32::new(0),
                asleep: AtomicU32::new(0),
            }
        }
    }
}
