//! Nothing is freed that somebody looks at. A look at what was freed is a conflict that loom reports.

use loom::cell::UnsafeCell;

use super::*;
use crate::epoch::{Epoch, Word, free_before};
use crate::sync::{AtomicU32, Ordering, fence};

/// What is wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    /// Whoever frees takes no barrier.
    NoBarrier,
    /// The compiler may put the look before the announcement.
    NoLight,
    /// What was retired in the epoch of an announcement counts as older.
    EpochTooEarly,
    /// A handler's look ends that of the call it interrupted.
    InnerEndsOuter,
    /// The words are read before it was taken out of reach.
    WordsFirst,
    /// The epoch is advanced before it was taken out of reach.
    AdvanceFirst,
    /// A second announcement says nothing of the look before it.
    EnterRelaxed,
    /// The look may end before its last read.
    LeaveUnordered,
}

/// Two things, one of which can be found, and two threads' words.
struct World {
    epoch: Epoch,
    words: [Word; 2],
    /// Which thing is found: its place and one, or 0.
    found: AtomicU32,
    things: [UnsafeCell<u32>; 2],
}

const ALIVE: u32 = 1;
const FREED: u32 = 0;

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            epoch: Epoch::new(),
            words: [Word::new(), Word::new()],
            found: AtomicU32::new(1),
            things: [UnsafeCell::new(ALIVE), UnsafeCell::new(ALIVE)],
        })
    }

    /// One look at what there is; in the middle of it a handler looks, too, if `nested`.
    fn look(&self, me: usize, nested: bool, fault: Fault) {
        let word = &self.words[me];
        let began = match fault {
            Fault::NoLight => word.enter_without_light(&self.epoch),
            Fault::EnterRelaxed => word.enter_without_release(&self.epoch),
            _ => word.enter(&self.epoch),
        };
        assert!(began);
        let place = self.found.load(Ordering::Acquire) as usize;
        if nested {
            let began = word.enter(&self.epoch);
            if began || fault == Fault::InnerEndsOuter {
                word.leave();
            }
        }
        if let Some(thing) = place.checked_sub(1) {
            // SAFETY: loom checks that nobody writes meanwhile.
            self.things[thing].with(|at| assert_eq!(unsafe { *at }, ALIVE, "freed"));
        }
        match fault {
            Fault::LeaveUnordered => word.leave_unordered(),
            _ => word.leave(),
        }
    }

    fn announced(&self) -> impl Iterator<Item = u64> {
        self.words.iter().map(Word::announced)
    }

    /// Takes a thing out of reach, puts `next` there, and frees it if it may be freed now.
    fn replace(&self, thing: usize, next: u32, fault: Fault) {
        let heavy = || {
            if fault != Fault::NoBarrier {
                fence(Ordering::SeqCst);
            }
        };
        let early = (fault == Fault::WordsFirst).then(|| free_before(heavy, self.announced()));
        let advanced = (fault == Fault::AdvanceFirst).then(|| self.epoch.retire());
        self.found.store(next, Ordering::Release);
        let retired = advanced.unwrap_or_else(|| self.epoch.retire());
        let before = early.unwrap_or_else(|| free_before(heavy, self.announced()));
        let free = match fault {
            Fault::EpochTooEarly => retired <= before,
            _ => retired < before,
        };
        if free {
            // SAFETY: loom checks that nobody reads meanwhile.
            self.things[thing].with_mut(|at| unsafe { *at = FREED });
        }
    }
}

fn looked_at_and_freed(fault: Fault) {
    explore(4, move || {
        let world = World::new();
        let looker = {
            let world = world.clone();
            thread::spawn(move || {
                world.look(0, fault == Fault::InnerEndsOuter, fault);
                world.look(0, false, fault);
            })
        };
        world.replace(0, 2, fault);
        world.replace(1, 0, fault);
        looker.join().unwrap();
    });
}

#[test]
fn nothing_is_freed_that_is_looked_at() {
    looked_at_and_freed(Fault::Nothing);
}

/// Two threads look, one of them in a handler, too.
#[test]
fn nothing_is_freed_that_either_of_two_looks_at() {
    explore(3, || {
        let world = World::new();
        let lookers = [0, 1].map(|me| {
            let world = world.clone();
            thread::spawn(move || world.look(me, me == 0, Fault::Nothing))
        });
        world.replace(0, 2, Fault::Nothing);
        for looker in lookers {
            looker.join().unwrap();
        }
    });
}

/// What nobody looks at is freed, at once.
#[test]
fn what_nobody_looks_at_is_freed() {
    explore(3, || {
        let world = World::new();
        let looker = {
            let world = world.clone();
            thread::spawn(move || world.look(0, true, Fault::Nothing))
        };
        looker.join().unwrap();
        world.replace(0, 2, Fault::Nothing);
        // SAFETY: loom checks that nobody writes meanwhile.
        world.things[0].with(|at| assert_eq!(unsafe { *at }, FREED));
    });
}

#[test]
#[should_panic = "Causality violation"]
fn something_is_without_the_barrier() {
    looked_at_and_freed(Fault::NoBarrier);
}

#[test]
#[should_panic = "Causality violation"]
fn something_is_without_order_behind_the_announcement() {
    looked_at_and_freed(Fault::NoLight);
}

#[test]
#[should_panic = "Causality violation"]
fn something_is_an_epoch_too_early() {
    looked_at_and_freed(Fault::EpochTooEarly);
}

#[test]
#[should_panic = "Causality violation"]
fn something_is_where_an_inner_look_ends_the_outer() {
    looked_at_and_freed(Fault::InnerEndsOuter);
}

#[test]
#[should_panic = "Causality violation"]
fn something_is_where_words_are_read_before_it_is_out_of_reach() {
    looked_at_and_freed(Fault::WordsFirst);
}

#[test]
#[should_panic = "Causality violation"]
fn something_is_where_the_epoch_is_advanced_first() {
    looked_at_and_freed(Fault::AdvanceFirst);
}

#[test]
#[should_panic = "Causality violation"]
fn something_is_where_a_second_look_hides_that_the_first_is_over() {
    looked_at_and_freed(Fault::EnterRelaxed);
}

#[test]
#[should_panic = "Causality violation"]
fn something_is_where_a_look_ends_in_no_order() {
    looked_at_and_freed(Fault::LeaveUnordered);
}
