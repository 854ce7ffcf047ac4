//! A special frame overtakes a plain one, and who waits for it alone is woken.

use super::*;
use crate::lock::Lock;

/// What is left out.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    SleeperFence,
    SecondLook,
    WakerFence,
}

impl Shared {
    fn publish_as(&self, value: u64, special: bool, without: Without) {
        let lock = &self.state.writer.lock;
        lock.lock(ME, |_| false);
        let bytes = value.to_le_bytes();
        let sent = match special {
            true => self.ring().push_special(&bytes, &[], Meta::default()),
            false => self.ring().push_message(&[], &bytes, Meta::default()),
        };
        assert_eq!(sent, Ok(true));
        release(lock, without);
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
    fn receive_special(&self, without: Without) -> u64 {
        let ring = self.ring();
        loop {
            if let Some(value) = self.take_special() {
                return value;
            }
            match without {
                Without::SleeperFence => ring.reader_arms_unfenced(),
                _ => ring.reader_sleeps(),
            }
            if without == Without::SecondLook || !ring.has_special() {
                self.bell.sleep();
            }
            ring.reader_wakes();
        }
    }
}

fn release(lock: &Lock, without: Without) {
    match without {
        Without::WakerFence => lock.unlock(),
        _ => lock.unlock_fenced(),
    }
}

fn waiting_for_a_special_frame(without: Without) {
    explore(6, move || {
        let shared = Shared::new(128);
        let producer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.publish_as(1, false, without);
                shared.publish_as(2, true, without);
            })
        };
        assert_eq!(shared.receive_special(without), 2);
        assert_eq!(shared.pop(), Some(1), "published before");
        producer.join().unwrap();
        assert!(shared.ring().is_empty() && shared.ring().specials() == 0);
        assert!(shared.ring().fill() == 0 && shared.ring().unread() == 0);
    });
}

#[test]
fn who_waits_for_a_special_frame_is_woken() {
    waiting_for_a_special_frame(Without::Nothing);
}

#[test]
#[should_panic = "deadlock"]
fn not_for_a_special_frame_without_the_fence_behind_arming() {
    waiting_for_a_special_frame(Without::SleeperFence);
}

#[test]
#[should_panic = "deadlock"]
fn not_for_a_special_frame_without_the_second_look() {
    waiting_for_a_special_frame(Without::SecondLook);
}

#[test]
#[should_panic = "deadlock"]
fn not_for_a_special_frame_without_the_fence_behind_publishing() {
    waiting_for_a_special_frame(Without::WakerFence);
}

/// Special frames are taken out of the midst while the producer goes on over the end of the ring.
#[test]
fn tombstones_are_skipped_beside_a_working_producer() {
    explore(4, || {
        let shared = Shared::new(128);
        shared.ring().begin_at(88);
        shared.publish_as(1, false, Without::Nothing);
        shared.publish_as(2, true, Without::Nothing);
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
                shared.publish_as(1, true, Without::Nothing);
                shared.publish_as(2, false, Without::Nothing);
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
        shared.publish_as(1, false, Without::Nothing);
        shared.publish_as(2, true, Without::Nothing);
        shared.publish_as(3, false, Without::Nothing);
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
            ring.writer_sleeps();
            if ring.is_full_hint(LIMIT, LOW) {
                shared.bell.sleep();
            }
            ring.writer_wakes();
        }
        assert!(ring.fill() <= LOW as u64);
        reader.join().unwrap();
    });
}
