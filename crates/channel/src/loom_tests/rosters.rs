//! All who slept when something happened are woken, whoever takes the rings of their bell.

use super::*;
use crate::roster::{Entry, Roster};
use crate::sync::{AtomicU32, Ordering, fence};
use crate::waiter::{self, Place};

/// Something happens twice, each time for all.
struct Watched {
    roster: Roster,
    bell: Bell,
    happened: AtomicU32,
}

struct Watcher<'a> {
    watched: &'a Watched,
    /// What has happened so far as it knows.
    seen: u32,
    entry: Option<Entry>,
    was_called: bool,
}

impl Place for Watcher<'_> {
    type Slept = ();

    fn arm(&mut self) {
        self.entry = Some(self.watched.roster.enter());
    }

    fn look(&mut self) -> Option<()> {
        (self.watched.happened.load(Ordering::Acquire) != self.seen).then_some(())
    }

    fn sleep(&mut self) {
        self.watched.bell.wait();
    }

    fn take(&mut self) -> bool {
        self.watched.bell.take()
    }

    fn disarm(&mut self) {
        self.was_called = self.watched.roster.leave(self.entry.unwrap());
    }

    fn settle(&mut self) -> bool {
        let is_due = self.watched.roster.is_due(self.was_called);
        if is_due {
            self.watched.bell.ring();
            // Not to take it again at once.
            thread::yield_now();
        }
        is_due
    }
}

impl Watched {
    /// Waits for both.
    fn watch(&self) {
        let mut seen = 0;
        while seen < 2 {
            let now = self.happened.load(Ordering::Acquire);
            if now != seen {
                seen = now;
                continue;
            }
            waiter::sleep(&mut Watcher {
                watched: self,
                seen,
                entry: None,
                was_called: false,
            });
        }
    }

    fn happen(&self, fenced: bool) {
        self.happened.fetch_add(1, Ordering::Release);
        if fenced {
            fence(Ordering::SeqCst);
        }
        if self.roster.call(0) {
            self.bell.ring();
        }
    }
}

fn two_watchers(fault: impl Into<Option<Fault>>, fenced: bool) {
    with(fault, 3, move || {
        let watched = Arc::new(Watched {
            roster: Roster::default(),
            bell: Bell::new(),
            happened: AtomicU32::new(0),
        });
        let watchers = [(), ()].map(|()| {
            let watched = watched.clone();
            thread::spawn(move || watched.watch())
        });
        watched.happen(fenced);
        watched.happen(fenced);
        for watcher in watchers {
            watcher.join().unwrap();
        }
        assert!(!watched.roster.has_any() && !watched.roster.is_due(false));
    });
}

#[test]
fn all_who_watch_a_bell_are_woken() {
    two_watchers(None, true);
}

#[test]
#[should_panic = "deadlock"]
fn no_watcher_without_the_fence_behind_entering() {
    two_watchers(Fault::NoFence, true);
}

#[test]
#[should_panic = "deadlock"]
fn no_watcher_without_the_fence_behind_what_happened() {
    two_watchers(None, false);
}

#[test]
#[should_panic = "deadlock"]
fn no_watcher_without_the_second_look() {
    two_watchers(Fault::NoSecondLook, true);
}

#[test]
#[should_panic = "deadlock"]
fn one_watcher_takes_the_others_ring() {
    two_watchers(Fault::KeepsRing, true);
}

#[test]
#[should_panic = "deadlock"]
fn one_watcher_takes_the_ring_that_it_passed_on() {
    two_watchers(Fault::SettlesFirst, true);
}
