//! One inside at a time, also when the owner has died.

use loom::cell::UnsafeCell;

use super::*;
use crate::lock::{Lock, Taken};

const DEAD: Owner = Owner::from_bits(99);

struct Guarded {
    lock: Lock,
    count: UnsafeCell<u32>,
}

// SAFETY: the count is used inside the lock only; loom reports any other use.
unsafe impl Sync for Guarded {}
// SAFETY: a number and a lock belong to no thread.
unsafe impl Send for Guarded {}

impl Guarded {
    fn new() -> Arc<Guarded> {
        Arc::new(Guarded {
            lock: Lock::new(),
            count: UnsafeCell::new(0),
        })
    }

    /// To be called inside.
    fn increment(&self) {
        // SAFETY: loom checks that nobody else is in here.
        self.count.with_mut(|count| unsafe { *count += 1 });
    }
}

fn contend(release: fn(&Lock)) {
    let shared = Guarded::new();
    let work = |owner: u64| {
        let shared = shared.clone();
        move || {
            let me = Owner::from_bits(owner);
            assert_eq!(shared.lock.lock(me, |_| false), Taken::Free);
            shared.increment();
            release(&shared.lock);
        }
    };
    let others = [thread::spawn(work(1)), thread::spawn(work(2))];
    for other in others {
        other.join().unwrap();
    }
    shared.lock.lock(ME, |_| false);
    // SAFETY: inside the lock.
    shared.count.with(|count| assert_eq!(unsafe { *count }, 2));
}

#[test]
fn one_inside_at_a_time() {
    explore(12, || contend(Lock::unlock));
    explore(12, || contend(Lock::unlock_fenced));
}

/// Two that find a dead owner inside. Exactly one of them must repair what it left.
fn steal(take: fn(&Lock, Owner) -> Taken) {
    let shared = Guarded::new();
    assert!(shared.lock.try_lock(DEAD));
    let work = |owner: u64| {
        let shared = shared.clone();
        move || {
            let taken = take(&shared.lock, Owner::from_bits(owner));
            shared.increment();
            shared.lock.unlock();
            taken
        }
    };
    let other = thread::spawn(work(2));
    let taken = [work(1)(), other.join().unwrap()];
    assert_eq!(taken.iter().filter(|t| **t == Taken::Stolen).count(), 1);
}

#[test]
fn the_lock_of_a_dead_owner_is_stolen_once() {
    explore(12, || {
        steal(|lock, me| lock.lock(me, |owner| owner == DEAD))
    });
}

#[test]
#[should_panic]
fn not_by_releasing_it_for_the_dead_one() {
    explore(12, || {
        steal(|lock, me| {
            let stolen = lock.owner() == DEAD;
            if stolen {
                lock.unlock();
            }
            match lock.lock(me, |_| false) {
                Taken::Free if stolen => Taken::Stolen,
                taken => taken,
            }
        })
    });
}

#[test]
fn who_gives_up_gets_nothing() {
    explore(12, || {
        let shared = Guarded::new();
        assert!(shared.lock.try_lock(DEAD));
        let mut asked = 0;
        let give_up = || {
            asked += 1;
            asked == 2
        };
        assert_eq!(shared.lock.lock_unless(ME, |_| false, give_up), None);
        assert_eq!(shared.lock.owner(), DEAD);
    });
}
