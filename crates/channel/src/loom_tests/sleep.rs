//! Nobody sleeps beside what it waits for. A lost wake-up is a deadlock.

use super::*;
use crate::sync::{Ordering, fence};

/// What is left out.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    /// A plain store arms.
    Exchange,
    SleeperFence,
    SecondLook,
    WakerFence,
    Settling,
}

impl Shared {
    fn publish(&self, value: u64, without: Without) {
        let lock = &self.state.writer.lock;
        lock.lock(ME, |_| false);
        assert!(self.push(value));
        release(lock, without);
        if self.ring().wakes_reader() {
            self.bell.ring();
        }
    }

    /// Takes one value, asleep until there is one.
    fn receive(&self, without: Without) -> u64 {
        let mut hand_off = false;
        let value = loop {
            if !self.ring().is_empty() {
                let lock = &self.state.reader.lock;
                lock.lock(ME, |_| false);
                let value = self.pop();
                release(lock, Without::Nothing);
                if let Some(value) = value {
                    break value;
                }
            }
            if std::mem::take(&mut hand_off) {
                self.settle(without);
            }
            match without {
                Without::Exchange => self.ring().reader_arms_by_store(),
                Without::SleeperFence => self.ring().reader_arms_unfenced(),
                _ => self.ring().reader_sleeps(),
            }
            if without == Without::SecondLook || self.ring().is_empty() {
                self.bell.sleep();
                hand_off = true;
            }
            self.ring().reader_wakes();
        };
        if hand_off {
            self.settle(without);
        }
        value
    }

    fn settle(&self, without: Without) {
        if without != Without::Settling && self.ring().settle_readers() {
            self.bell.ring();
        }
    }
}

fn release(lock: &crate::lock::Lock, without: Without) {
    match without {
        Without::WakerFence => lock.unlock(),
        _ => lock.unlock_fenced(),
    }
}

fn sleeping_reader(without: Without) {
    explore(9, move || {
        let shared = Shared::new(64);
        let producer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.publish(1, without);
                shared.publish(2, without);
            })
        };
        assert_eq!(shared.receive(without), 1);
        assert_eq!(shared.receive(without), 2);
        producer.join().unwrap();
    });
}

#[test]
fn a_sleeping_reader_is_woken() {
    sleeping_reader(Without::Nothing);
}

#[test]
#[should_panic = "deadlock"]
fn not_without_the_fence_behind_arming() {
    sleeping_reader(Without::SleeperFence);
}

#[test]
#[should_panic = "deadlock"]
fn not_without_the_second_look() {
    sleeping_reader(Without::SecondLook);
}

#[test]
#[should_panic = "deadlock"]
fn not_without_the_fence_behind_publishing() {
    sleeping_reader(Without::WakerFence);
}

/// A full ring, whose reader rings at the low-water mark, and its writer with one more.
fn sleeping_writer(without: Without) {
    explore(9, move || {
        let shared = Shared::new(128);
        let mut count = 0;
        while shared.push(count) {
            count += 1;
        }
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                // Down to the mark and a frame beyond; nobody comes later to ring again.
                for i in 0..count / 2 + 1 {
                    let lock = &shared.state.reader.lock;
                    lock.lock(ME, |_| false);
                    assert_eq!(shared.pop(), Some(i));
                    release(lock, without);
                    if shared.ring().wakes_writer() {
                        shared.bell.ring();
                    }
                }
            })
        };
        while !shared.push(count) {
            match without {
                Without::SleeperFence => shared.ring().writer_arms_unfenced(),
                _ => shared.ring().writer_sleeps(),
            }
            if without == Without::SecondLook || !shared.ring().has_room(8) {
                shared.bell.sleep();
            }
            shared.ring().writer_wakes();
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_writer_asleep_beside_a_full_ring_is_woken() {
    sleeping_writer(Without::Nothing);
}

#[test]
#[should_panic = "deadlock"]
fn no_writer_without_the_fence_behind_arming() {
    sleeping_writer(Without::SleeperFence);
}

#[test]
#[should_panic = "deadlock"]
fn no_writer_without_the_second_look() {
    sleeping_writer(Without::SecondLook);
}

#[test]
#[should_panic = "deadlock"]
fn no_writer_without_the_fence_behind_consuming() {
    sleeping_writer(Without::WakerFence);
}

/// Two readers of one end, one value for each.
fn two_readers(without: Without) {
    explore(3, move || {
        let shared = Shared::new(64);
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.receive(without))
        };
        let producer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.publish(1, without);
                shared.publish(2, without);
            })
        };
        let mine = shared.receive(without);
        assert_eq!(mine + other.join().unwrap(), 3);
        producer.join().unwrap();
    });
}

#[test]
fn two_sleeping_readers_are_both_woken() {
    two_readers(Without::Nothing);
}

/// The store may take its place in front of a flag raised and cleared long ago.
#[test]
#[should_panic = "deadlock"]
fn only_one_without_the_exchange_in_arming() {
    two_readers(Without::Exchange);
}

#[test]
#[should_panic = "deadlock"]
fn only_one_without_settling() {
    two_readers(Without::Settling);
}

/// An end with a sleeping reader and a sleeping writer: two rings, and the bell of the first.
#[derive(Clone)]
struct End {
    incoming: Arc<Shared>,
    outgoing: Arc<Shared>,
    without: Without,
}

impl End {
    fn read(&self) {
        let ring = self.incoming.ring();
        while self.incoming.pop().is_none() {
            ring.reader_sleeps();
            let taken = ring.is_empty() && self.sleep();
            ring.reader_wakes();
            self.settle(taken);
        }
    }

    fn write(&self) {
        let ring = self.outgoing.ring();
        while !self.outgoing.push(8) {
            ring.writer_sleeps();
            let taken = !ring.has_room(8) && self.sleep();
            ring.writer_wakes();
            self.settle(taken);
        }
    }

    fn sleep(&self) -> bool {
        self.incoming.bell.sleep();
        true
    }

    fn settle(&self, taken: bool) {
        if !taken || self.without == Without::Settling {
            return;
        }
        let reader = self.incoming.ring().settle_readers();
        let writer = self.outgoing.ring().settle_writers();
        if reader || writer {
            self.incoming.bell.ring();
            // Not to take it again at once.
            thread::yield_now();
        }
    }

    /// What the peer does, once.
    fn serve(&self) {
        assert!(self.incoming.push(1));
        fence(Ordering::SeqCst);
        if self.incoming.ring().wakes_reader() {
            self.incoming.bell.ring();
        }
        assert_eq!(self.outgoing.pop(), Some(7));
        fence(Ordering::SeqCst);
        if self.outgoing.ring().wakes_writer() {
            self.incoming.bell.ring();
        }
    }
}

fn reader_and_writer(without: Without) {
    explore(3, move || {
        let end = End {
            incoming: Shared::new(64),
            outgoing: Shared::new(64),
            without,
        };
        while end.outgoing.push(7) {}
        let (writing, peer) = (end.clone(), end.clone());
        let writer = thread::spawn(move || writing.write());
        let peer = thread::spawn(move || peer.serve());
        end.read();
        writer.join().unwrap();
        peer.join().unwrap();
    });
}

#[test]
fn a_reader_and_a_writer_on_one_bell_are_both_woken() {
    reader_and_writer(Without::Nothing);
}

#[test]
#[should_panic = "deadlock"]
fn one_takes_the_others_ring_without_settling() {
    reader_and_writer(Without::Settling);
}
