//! Who sleeps at a bell that several watch, and for whom it is to be rung again.
//!
//! A ring wakes all who sleep in poll(2), but whoever gets the CPU first takes it, and the others, who find the bell silent then,
//! sleep on. So who takes a ring passes it on while it is due to somebody: to each who was [entered](Roster::enter) at the
//! [call](Roster::call), until he has left, however often others take it meanwhile. Those who are only [counted](Roster::count),
//! since nobody sees when they have looked, get as many rings as there are of them.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Bits of a number of sleepers; the rest of the word counts calls.
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;

/// One place in a [`Roster`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry(u64);

/// What has been entered since the last call, what before it, and how many calls there were.
#[derive(Clone, Copy)]
struct Word {
    fresh: u64,
    called: u64,
    calls: u64,
}

#[derive(Default)]
pub struct Roster {
    word: AtomicU64,
    /// Those who are counted only.
    others: AtomicU32,
    /// Rings that are for them yet.
    relays: AtomicU32,
}

impl Word {
    fn of(bits: u64) -> Word {
        Word {
            fresh: bits & MASK,
            called: bits >> BITS & MASK,
            calls: bits >> (2 * BITS),
        }
    }

    fn bits(self) -> u64 {
        self.fresh | self.called << BITS | self.calls << (2 * BITS)
    }
}

impl Roster {
    /// A thread that is about to sleep. It looks once more, sleeps, and [leaves](Roster::leave).
    pub fn enter(&self) -> Entry {
        Entry(Word::of(self.word.fetch_add(1, Ordering::SeqCst)).calls)
    }

    /// It does not sleep any more. True: there was a call since it entered.
    pub fn leave(&self, entry: Entry) -> bool {
        let left = |bits| {
            let mut word = Word::of(bits);
            // A child of fork has begun to count anew.
            let place = match word.calls == entry.0 {
                true => &mut word.fresh,
                false => &mut word.called,
            };
            *place = place.saturating_sub(1);
            Some(word.bits())
        };
        let before = self
            .word
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        before.is_ok_and(|bits| Word::of(bits).calls != entry.0)
    }

    /// Somebody who is seen neither to sleep nor to look: a member of a set.
    pub fn count(&self) {
        self.others.fetch_add(1, Ordering::SeqCst);
    }

    pub fn discount(&self) {
        let fewer = |n: u32| n.checked_sub(1);
        let _ = self
            .others
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
    }

    /// Does anybody sleep, or count as asleep?
    pub fn has_any(&self) -> bool {
        self.has_sleepers() || self.others.load(Ordering::SeqCst) > 0
    }

    /// Does a thread sleep?
    #[inline]
    pub fn has_sleepers(&self) -> bool {
        let word = Word::of(self.word.load(Ordering::SeqCst));
        word.fresh + word.called > 0
    }

    /// Something has happened that all are to see. True: the bell is to be rung. `more` who are not even counted get a ring too.
    pub fn call(&self, more: u32) -> bool {
        let called = |bits| {
            let word = Word::of(bits);
            (word.fresh + word.called > 0).then(|| {
                let (fresh, called) = (0, word.called + word.fresh);
                let calls = word.calls + 1;
                Word {
                    fresh,
                    called,
                    calls,
                }
                .bits()
            })
        };
        let sleepers = self
            .word
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, called)
            .is_ok();
        let others = self.others.load(Ordering::SeqCst) + more;
        if sleepers || others > 0 {
            self.relays.store(others, Ordering::SeqCst);
        }
        sleepers || others > 0
    }

    /// A ring was taken, by a thread that has left the roster: `was_called`, as [`leave`](Roster::leave) said; else by one of the
    /// others. True: the bell is to be rung again.
    pub fn is_due(&self, was_called: bool) -> bool {
        let mut relays = self.relays.load(Ordering::SeqCst);
        if !was_called {
            let fewer = |n: u32| n.checked_sub(1);
            let before = self
                .relays
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
            relays = before.map_or(0, |before| before - 1);
        }
        relays > 0 || Word::of(self.word.load(Ordering::SeqCst)).called > 0
    }

    /// Nobody sleeps: in a child of fork, or where what is slept at is used again.
    pub fn clear(&self) {
        let emptied = |bits| {
            let (fresh, called) = (0, 0);
            let calls = Word::of(bits).calls + 1;
            Some(
                Word {
                    fresh,
                    called,
                    calls,
                }
                .bits(),
            )
        };
        let _ = self
            .word
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, emptied);
        self.others.store(0, Ordering::SeqCst);
        self.relays.store(0, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_rung_for_where_nobody_sleeps() {
        let r = Roster::default();
        assert!(!r.call(0) && !r.has_any() && !r.is_due(false));
        let a = r.enter();
        assert!(r.has_any());
        assert!(!r.leave(a) && !r.has_any() && !r.call(0));
    }

    #[test]
    fn a_ring_is_passed_on_until_each_sleeper_has_left_whoever_takes_it() {
        let r = Roster::default();
        let (a, b) = (r.enter(), r.enter());
        assert!(r.call(0));
        // The first wakes, finds nothing and sleeps again, time after time, before the second gets the CPU.
        assert!(r.leave(a));
        assert!(r.is_due(true));
        for _ in 0..100 {
            let again = r.enter();
            assert!(!r.leave(again));
            assert!(r.is_due(false), "the second sleeper was not rung for");
        }
        // And so does somebody who never was on the roster.
        assert!(r.is_due(false));
        let late = r.enter();
        assert!(r.leave(b));
        assert!(!r.is_due(true), "the late one has seen all");
        assert!(!r.leave(late) && !r.is_due(false));
    }

    #[test]
    fn two_calls_are_one_for_who_slept_through_both() {
        let r = Roster::default();
        let a = r.enter();
        assert!(r.call(0));
        let b = r.enter();
        assert!(r.call(0));
        assert!(r.leave(b) && r.is_due(true));
        assert!(r.leave(a) && !r.is_due(true));
    }

    #[test]
    fn those_who_are_only_counted_get_a_ring_each() {
        let r = Roster::default();
        r.count();
        r.count();
        assert!(r.call(0));
        assert!(r.is_due(false) && !r.is_due(false));
        // A sleeper's own ring is not one of theirs.
        let a = r.enter();
        assert!(r.call(1));
        assert!(r.leave(a));
        assert!(r.is_due(true));
        assert!(r.is_due(false) && r.is_due(false) && !r.is_due(false));
        r.discount();
        r.discount();
        assert!(!r.has_any());
    }

    #[test]
    fn a_cleared_roster_forgives_who_leaves_it_late() {
        let r = Roster::default();
        let a = r.enter();
        r.clear();
        assert!(!r.has_any() && !r.is_due(false));
        r.leave(a);
        assert!(!r.has_any() && !r.call(0));
    }

    #[test]
    fn calls_wrap_around() {
        let r = Roster::default();
        let a = r.enter();
        let last = Word {
            fresh: 1,
            called: 0,
            calls: (1 << (64 - 2 * BITS)) - 1,
        };
        r.word.store(last.bits(), Ordering::SeqCst);
        assert!(r.call(0));
        assert_eq!(Word::of(r.word.load(Ordering::SeqCst)).calls, 0);
        let _ = a;
        assert!(r.leave(Entry(last.calls)) && !r.has_any());
    }
}
