//! Nobody sleeps beside what it waits for, by the code that all sleep by: [`waiter`](crate::waiter). A lost wake-up is a deadlock.

use super::*;
use crate::waiter::{self, Fault, Place};

/// A sleeper at the bell of an end.
struct Asleep<'a> {
    end: &'a End,
    kind: Kind,
    /// A ring was taken, which is to be passed on when there has been work: as a channel does.
    hand_off: Option<&'a mut bool>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Reading,
    Writing,
}

/// Two rings, and the bell of the end that reads the first and writes the second.
#[derive(Clone)]
struct End {
    incoming: Arc<Shared>,
    outgoing: Arc<Shared>,
}

impl Place for Asleep<'_> {
    type Slept = ();

    fn arm(&mut self) {
        match self.kind {
            Kind::Reading => self.end.incoming.ring().readers().enter(),
            Kind::Writing => self.end.outgoing.ring().writers().enter(),
        }
    }

    fn look(&mut self) -> Option<()> {
        match self.kind {
            Kind::Reading => !self.end.incoming.ring().is_empty(),
            Kind::Writing => self.end.outgoing.ring().has_room(8),
        }
        .then_some(())
    }

    fn sleep(&mut self) {
        self.end.bell().wait();
    }

    fn disarm(&mut self) {
        self.end.leave(self.kind);
    }

    fn take(&mut self) -> bool {
        self.end.bell().take()
    }

    fn settle(&mut self) -> bool {
        match &mut self.hand_off {
            Some(held) => {
                **held = true;
                false
            }
            None => self.end.settle(),
        }
    }

    fn woke(&mut self, passed_on: bool) {
        if passed_on {
            // Not to take it again at once.
            thread::yield_now();
        }
    }
}

impl End {
    fn new() -> End {
        End {
            incoming: Shared::new(64),
            outgoing: Shared::new(64),
        }
    }

    fn bell(&self) -> &Bell {
        &self.incoming.bell
    }

    fn sleep(&self, kind: Kind, hand_off: Option<&mut bool>) {
        let mut place = Asleep {
            end: self,
            kind,
            hand_off,
        };
        waiter::sleep(&mut place);
    }

    fn leave(&self, kind: Kind) {
        let ring_again = match kind {
            Kind::Reading => self.incoming.ring().reader_wakes(),
            Kind::Writing => self.outgoing.ring().writer_wakes(),
        };
        if ring_again {
            self.bell().ring();
        }
    }

    fn settle(&self) -> bool {
        let reader = self.incoming.ring().settle_readers();
        let writer = self.outgoing.ring().settle_writers();
        if reader || writer {
            self.bell().ring();
        }
        reader || writer
    }

    /// Takes one value, asleep until there is one.
    fn read(&self) -> u64 {
        loop {
            if let Some(value) = self.incoming.take() {
                return value;
            }
            self.sleep(Kind::Reading, None);
        }
    }

    /// The same by a channel, which passes a ring on when its work is done, or before it sleeps again.
    fn read_then_pass_on(&self) -> u64 {
        let mut held = false;
        let value = loop {
            if let Some(value) = self.incoming.take() {
                break value;
            }
            if std::mem::take(&mut held) && self.settle() {
                thread::yield_now();
            }
            self.sleep(Kind::Reading, Some(&mut held));
        };
        if held {
            self.settle();
        }
        value
    }

    fn write(&self, value: u64) {
        while !self.outgoing.push(value) {
            self.sleep(Kind::Writing, None);
        }
    }

    /// Puts a value into what this end reads.
    fn publish(&self, value: u64, fence: bool) {
        let shared = &self.incoming;
        let lock = &shared.state.writer.lock;
        lock.lock(ME, |_| false);
        assert!(shared.push(value));
        release(lock, fence);
        if shared.ring().wakes_reader() {
            self.bell().ring();
        }
    }

    /// Takes a value out of what this end writes.
    fn consume(&self, fence: bool) -> Option<u64> {
        let shared = &self.outgoing;
        let lock = &shared.state.reader.lock;
        lock.lock(ME, |_| false);
        let value = shared.pop();
        release(lock, fence);
        if shared.ring().wakes_writer() {
            self.bell().ring();
        }
        value
    }

    fn is_quiet(&self) -> bool {
        !self.incoming.ring().readers().any()
    }
}

impl Shared {
    fn take(&self) -> Option<u64> {
        if self.ring().is_empty() {
            return None;
        }
        let lock = &self.state.reader.lock;
        lock.lock(ME, |_| false);
        let value = self.pop();
        release(lock, true);
        value
    }
}

fn release(lock: &crate::lock::Lock, fence: bool) {
    match fence {
        false => lock.unlock(),
        true => lock.unlock_fenced(),
    }
}

fn sleeping_reader(fault: Option<Fault>, fence: bool) {
    with(fault, 9, move || {
        let end = End::new();
        let producer = {
            let end = end.clone();
            thread::spawn(move || {
                end.publish(1, fence);
                end.publish(2, fence);
            })
        };
        assert_eq!((end.read(), end.read()), (1, 2));
        producer.join().unwrap();
        assert!(end.is_quiet() && !end.incoming.ring().readers().are_armed());
    });
}

#[test]
fn a_sleeping_reader_is_woken() {
    sleeping_reader(None, true);
}

#[test]
#[should_panic = "deadlock"]
fn not_without_the_fence_behind_arming() {
    sleeping_reader(Some(Fault::NoFence), true);
}

#[test]
#[should_panic = "deadlock"]
fn not_without_the_second_look() {
    sleeping_reader(Some(Fault::NoSecondLook), true);
}

#[test]
#[should_panic = "deadlock"]
fn not_if_it_looks_before_it_arms() {
    sleeping_reader(Some(Fault::LooksFirst), true);
}

#[test]
#[should_panic = "deadlock"]
fn not_without_the_fence_behind_publishing() {
    sleeping_reader(None, false);
}

/// A full ring, whose reader rings at the low-water mark, and its writer with one more.
fn sleeping_writer(fault: Option<Fault>, fence: bool) {
    with(fault, 9, move || {
        let end = End {
            incoming: Shared::new(64),
            outgoing: Shared::new(128),
        };
        let mut count = 0;
        while end.outgoing.push(count) {
            count += 1;
        }
        let reader = {
            let end = end.clone();
            thread::spawn(move || {
                // Down to the mark and a frame beyond; nobody comes later to ring again.
                for i in 0..count / 2 + 1 {
                    assert_eq!(end.consume(fence), Some(i));
                }
            })
        };
        end.write(count);
        reader.join().unwrap();
    });
}

#[test]
fn a_writer_asleep_beside_a_full_ring_is_woken() {
    sleeping_writer(None, true);
}

#[test]
#[should_panic = "deadlock"]
fn no_writer_without_the_fence_behind_arming() {
    sleeping_writer(Some(Fault::NoFence), true);
}

#[test]
#[should_panic = "deadlock"]
fn no_writer_without_the_second_look() {
    sleeping_writer(Some(Fault::NoSecondLook), true);
}

#[test]
#[should_panic = "deadlock"]
fn no_writer_without_the_fence_behind_consuming() {
    sleeping_writer(None, false);
}

/// Two readers of one end, one value for each.
fn two_readers(fault: impl Into<Option<Fault>>, read: fn(&End) -> u64) {
    with(fault, 3, move || {
        let end = End::new();
        let other = {
            let end = end.clone();
            thread::spawn(move || read(&end))
        };
        let producer = {
            let end = end.clone();
            thread::spawn(move || {
                end.publish(1, true);
                end.publish(2, true);
            })
        };
        let mine = read(&end);
        assert_eq!(mine + other.join().unwrap(), 3);
        producer.join().unwrap();
        assert!(end.is_quiet());
    });
}

#[test]
fn two_sleeping_readers_are_both_woken() {
    two_readers(None, End::read);
}

#[test]
fn two_sleeping_readers_of_a_channel_are_both_woken() {
    two_readers(None, End::read_then_pass_on);
}

/// The store may take its place in front of a flag raised and cleared long ago.
#[test]
#[should_panic = "deadlock"]
fn only_one_without_the_exchange_in_arming() {
    two_readers(Fault::RaisesByStore, End::read);
}

#[test]
#[should_panic = "deadlock"]
fn only_one_if_the_ring_is_not_passed_on() {
    two_readers(Fault::KeepsRing, End::read);
}

#[test]
#[should_panic = "deadlock"]
fn only_one_if_the_ring_is_passed_on_before_it_is_taken() {
    two_readers(Fault::SettlesFirst, End::read);
}

#[test]
#[should_panic = "deadlock"]
fn only_one_if_who_settles_does_not_arm() {
    two_readers(Fault::SettlesUnarmed, End::read);
}

#[test]
#[should_panic = "deadlock"]
fn only_one_if_who_settles_does_not_look() {
    two_readers(Fault::SettlesBlindly, End::read);
}

/// A reader comes to wait while another one has waited long enough.
fn one_leaves(fault: impl Into<Option<Fault>>) {
    with(fault, 4, move || {
        let end = End::new();
        let leaver = {
            let end = end.clone();
            thread::spawn(move || {
                end.incoming.ring().readers().arm();
                end.leave(Kind::Reading);
            })
        };
        let producer = {
            let end = end.clone();
            thread::spawn(move || end.publish(1, true))
        };
        assert_eq!(end.read(), 1);
        leaver.join().unwrap();
        producer.join().unwrap();
        assert!(end.is_quiet());
    });
}

#[test]
fn who_comes_while_another_leaves_is_woken() {
    one_leaves(None);
}

#[test]
#[should_panic = "deadlock"]
fn not_if_the_last_lowers_a_flag_raised_meanwhile() {
    one_leaves(Fault::LowersBlindly);
}

#[test]
#[should_panic = "deadlock"]
fn not_if_any_lowers_the_flag() {
    one_leaves(Fault::LowersForAll);
}

/// A reader is left for good with a ring in its hands, and another one waits for what that was about.
fn left_for_good(fault: impl Into<Option<Fault>>) {
    with(fault, 3, move || {
        let end = End::new();
        let left = {
            let end = end.clone();
            thread::spawn(move || {
                end.incoming.ring().readers().arm();
                if end.incoming.ring().is_empty() {
                    end.bell().wait();
                    end.bell().take();
                }
                let settle = || {
                    end.settle();
                };
                waiter::abandon(|| end.leave(Kind::Reading), settle);
            })
        };
        let producer = {
            let end = end.clone();
            thread::spawn(move || end.publish(1, true))
        };
        assert_eq!(end.read(), 1);
        // Whoever has not slept yet is not to sleep for ever.
        end.bell().ring();
        left.join().unwrap();
        producer.join().unwrap();
        assert!(end.is_quiet(), "somebody is still counted");
    });
}

#[test]
fn a_sleep_that_was_left_for_good_loses_nothing() {
    left_for_good(None);
}

#[test]
#[should_panic = "deadlock"]
fn a_ring_goes_with_a_sleep_that_was_left() {
    left_for_good(Fault::LeftWithRing);
}

#[test]
#[should_panic = "still counted"]
fn a_sleep_that_was_left_stays_counted() {
    left_for_good(Fault::LeftCounted);
}

/// A sleeping reader and a sleeping writer.
fn reader_and_writer(fault: impl Into<Option<Fault>>) {
    with(fault, 3, move || {
        let end = End::new();
        while end.outgoing.push(7) {}
        let (writing, peer) = (end.clone(), end.clone());
        let writer = thread::spawn(move || writing.write(8));
        let peer = thread::spawn(move || {
            peer.publish(1, true);
            assert_eq!(peer.consume(true), Some(7));
        });
        assert_eq!(end.read(), 1);
        writer.join().unwrap();
        peer.join().unwrap();
    });
}

#[test]
fn a_reader_and_a_writer_on_one_bell_are_both_woken() {
    reader_and_writer(None);
}

#[test]
#[should_panic = "deadlock"]
fn one_takes_the_others_ring_without_settling() {
    reader_and_writer(Fault::KeepsRing);
}
