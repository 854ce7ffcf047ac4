//! The protocols of the channel under every interleaving and every reordering that the memory model allows, up to loom's
//! bounds. Each is also run with one of its parts left out, and must fail then: else the model would show nothing.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p headwater-channel --release --lib
//! ```

mod arrivals;
mod comeback;
mod epochs;
mod locks;
mod rosters;
mod sleep;
mod special;

// Not loom's Arc: its drop in the unwinding of a failed model would abort.
use std::sync::Arc;

use loom::model::Builder;
use loom::sync::{Condvar, Mutex};
use loom::thread;

use crate::lock::Owner;
use crate::ring::{Data, Meta, Ring, RingState};
use crate::sync::AtomicU64;
use crate::waiter::Fault;
use crate::waiter::models::plant;

const ME: Owner = Owner::from_bits(1);

/// A ring and the bell of the end that sleeps on it.
struct Shared {
    state: RingState,
    words: Vec<AtomicU64>,
    bell: Bell,
}

impl Shared {
    fn new(capacity: usize) -> Arc<Shared> {
        Arc::new(Shared {
            state: RingState::default(),
            words: (0..capacity / 8).map(|_| AtomicU64::new(0)).collect(),
            bell: Bell::new(),
        })
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(&self.state, Data::new(&self.words))
    }

    fn push(&self, value: u64) -> bool {
        let bytes = value.to_le_bytes();
        self.ring()
            .push_message(&[], &bytes, Meta::default())
            .unwrap()
    }

    fn pop(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        match self.ring().pop(&mut bytes).unwrap() {
            0 => None,
            8 => Some(u64::from_le_bytes(bytes)),
            n => panic!("{n} bytes"),
        }
    }
}

/// An eventfd: level-triggered, reset by whoever takes the count.
struct Bell(Mutex<bool>, Condvar);

impl Bell {
    fn new() -> Bell {
        Bell(Mutex::new(false), Condvar::new())
    }

    fn ring(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    /// poll(2). Who never returns is a deadlock, which loom reports.
    fn wait(&self) {
        let mut rung = self.0.lock().unwrap();
        while !*rung {
            rung = self.1.wait(rung).unwrap();
        }
    }

    /// read(2), before which somebody else may have taken the ring.
    fn take(&self) -> bool {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Explores up to a number of preemptions per run, or as many as LOOM_MAX_PREEMPTIONS says.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// The same with a fault of the [`waiter`](crate::waiter)'s, or none.
fn with(
    fault: impl Into<Option<Fault>>,
    preemptions: usize,
    model: impl Fn() + Sync + Send + 'static,
) {
    plant(fault.into());
    explore(preemptions, model);
}

/// Frames arrive whole and in order, over the end of the ring, with a producer that has to wait for room.
fn frames(push: fn(&Shared, u64) -> bool) {
    let shared = Shared::new(64);
    shared.ring().begin_at(40);
    let producer = {
        let shared = shared.clone();
        thread::spawn(move || {
            for value in 1..=4 {
                while !push(&shared, value) {
                    thread::yield_now();
                }
            }
        })
    };
    for expected in 1..=4 {
        let value = loop {
            match shared.pop() {
                Some(value) => break value,
                None => thread::yield_now(),
            }
        };
        assert_eq!(value, expected);
    }
    producer.join().unwrap();
    assert!(shared.ring().is_empty() && shared.ring().unread() == 0);
}

#[test]
fn frames_arrive_whole_and_in_order() {
    explore(6, || frames(Shared::push));
}

#[test]
#[should_panic = "assertion"]
fn frames_published_without_release_do_not() {
    explore(6, || {
        frames(|shared, value| {
            let room = shared.ring().room(8).unwrap() >= 8;
            if room {
                shared.ring().push_unordered(value);
            }
            room
        })
    });
}

#[test]
fn a_consumer_can_recount_beside_a_working_producer() {
    explore(6, || {
        let shared = Shared::new(128);
        assert!(shared.push(1) && shared.push(2));
        assert_eq!(shared.pop(), Some(1));
        shared.ring().spoil_count();
        let producer = {
            let shared = shared.clone();
            thread::spawn(move || assert!(shared.push(3) && shared.push(4)))
        };
        shared.ring().recover_consumer().unwrap();
        producer.join().unwrap();
        assert_eq!(shared.ring().unread(), 24);
    });
}
