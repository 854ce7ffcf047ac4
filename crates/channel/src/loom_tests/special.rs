//! A special frame overtakes a plain one, and who waits for it alone is woken.

use super::*;
use crate::waiter::{self, Fault, Place, Sleepers};

/// The only sleeper of its kind, until `look` finds something.
struct Alone<'a, L> {
    sleepers: &'a Sleepers,
    bell: &'a Bell,
    look: L,
}

impl<L: Fn() -> bool> Place for Alone<'_, L> {
    type Slept = ();

    fn arm(&mut self) {
        self.sleepers.enter();
    }

    fn look(&mut self) -> Option<()> {
        (self.look)().then_some(())
    }

    fn sleep(&mut self) {
        self.bell.wait();
    }

    fn disarm(&mut self) {
        assert!(!self.sleepers.leave(&self.look));
    }

    fn take(&mut self) -> bool {
        self.bell.take()
    }

    fn settle(&mut self) -> bool {
        self.sleepers.settle(&self.look)
    }
}

impl Shared {
    fn publish_as(&self, value: u64, special: bool, fence: bool) {
        let lock = &self.state.writer.lock;
        lock.lock(ME, |_| false);
        let bytes = value.to_le_bytes();
        let sent = match special {
            true => self.ring().push_special(&bytes, &[], Meta::default()),
            false => self.ring().push_message(&[], &bytes, Meta::default()),
        };
        assert_eq!(sent, Ok(true));
        match fence {
            false => lock.unlock(),
            true => lock.unlock_fenced(),
        }
        if self.ring().wakes_reader() {
            self.bell.ring();
        }
    }

    /// Takes the first special frame, if there is one.
    fn take_special(&self) -> Option<u64> {
        let (ring, lock) = (self.ring(), &self.state.reader.lock);
        if ring.specials() == 0 {
            return None;
        }
        lock.lock(ME, |_| false);
        let frame = ring.find(|frame| frame.special).unwrap();
        let value = frame.map(|frame| {
            let mut bytes = [0; 8];
            ring.copy_frame(&frame, 0, &mut bytes);
            ring.take(&frame);
            u64::from_le_bytes(bytes)
        });
        lock.unlock_fenced();
        value
    }

    /// Waits for a special frame, whatever else there is to read.
    fn receive_special(&self) -> u64 {
        let ring = self.ring();
        loop {
            if let Some(value) = self.take_special() {
                return value;
            }
            waiter::sleep(&mut Alone {
                sleepers: ring.readers(),
                bell: &self.bell,
                look: || ring.specials() > 0 && !matches!(ring.find(|f| f.special), Ok(None)),
            });
        }
    }
}

fn waiting_for_a_special_frame(fault: Option<Fault>, fence: bool) {
    with(fault, 6, move || {
        let shared = Shared::new(128);
        let producer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.publish_as(1, false, fence);
                shared.publish_as(2, true, fence);
            })
        };
        assert_eq!(shared.receive_special(), 2);
        assert_eq!(shared.pop(), Some(1), "published before");
        producer.join().unwrap();
        assert!(shared.ring().is_empty() && shared.ring().specials() == 0);
        assert!(shared.ring().fill() == 0 && shared.ring().unread() == 0);
    });
}

#[test]
fn who_waits_for_a_special_frame_is_woken() {
    waiting_for_a_special_frame(None, true);
}

#[test]
#[should_panic = "deadlock"]
fn not_for_a_special_frame_without_the_fence_behind_arming() {
    waiting_for_a_special_frame(Some(Fault::NoFence), true);
}

#[test]
#[should_panic = "deadlock"]
fn not_for_a_special_frame_without_the_second_look() {
    waiting_for_a_special_frame(Some(Fault::NoSecondLook), true);
}

#[test]
#[should_panic = "deadlock"]
fn not_for_a_special_frame_without_the_fence_behind_publishing() {
    waiting_for_a_special_frame(None, false);
}

/// Special frames are taken out of the midst while the producer goes on over the end of the ring.
#[test]
fn tombstones_are_skipped_beside_a_working_producer() {
    explore(4, || {
        let shared = Shared::new(128);
        shared.ring().begin_at(88);
        shared.publish_as(1, false, true);
        shared.publish_as(2, true, true);
        let producer = {
            let shared = shared.clone();
            thread::spawn(move || {
                for value in 3..=5 {
                    while !shared.push(value) {
                        thread::yield_now();
                    }
                }
            })
        };
        assert_eq!(shared.take_special(), Some(2));
        for expected in [1, 3, 4, 5] {
            let value = loop {
                match shared.pop() {
                    Some(value) => break value,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(value, expected);
        }
        producer.join().unwrap();
        assert!(shared.ring().is_empty() && shared.ring().fill() == 0);
    });
}

/// A frame seen says that the special ones before it are counted.
#[test]
fn a_special_frame_is_counted_before_it_and_what_follows_is_seen() {
    explore(6, || {
        let shared = Shared::new(128);
        shared.ring().begin_at(80);
        let producer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.publish_as(1, true, true);
                shared.publish_as(2, false, true);
            })
        };
        let mut seen = 0;
        let walked = shared.ring().find(|_| {
            seen += 1;
            false
        });
        assert!(walked.is_ok());
        assert!(seen == 0 || shared.ring().specials() == 1);
        producer.join().unwrap();
    });
}

/// A full ring whose writer waits for the low-water mark, and a reader that takes from the midst first.
#[test]
fn a_writer_at_the_low_water_mark_is_woken_though_a_tombstone_was_in_the_way() {
    const LIMIT: usize = 64;
    const LOW: usize = 16;
    explore(6, || {
        let shared = Shared::new(128);
        let ring = shared.ring();
        ring.set_low_water(LOW);
        shared.publish_as(1, false, true);
        shared.publish_as(2, true, true);
        shared.publish_as(3, false, true);
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                assert_eq!(shared.take_special(), Some(2));
                let lock = &shared.state.reader.lock;
                lock.lock(ME, |_| false);
                assert_eq!(shared.pop(), Some(1));
                lock.unlock_fenced();
                if shared.ring().wakes_writer() {
                    shared.bell.ring();
                }
            })
        };
        while !ring.may_send(16, LIMIT, LOW) {
            waiter::sleep(&mut Alone {
                sleepers: ring.writers(),
                bell: &shared.bell,
                look: || !ring.is_full_hint(LIMIT, LOW),
            });
        }
        assert!(ring.fill() <= LOW as u64);
        reader.join().unwrap();
    });
}
