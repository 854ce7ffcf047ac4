//! Whoever has found a frame finds it behind it in the position too, and never again ahead.

use super::*;

fn told_once(position: fn(&Ring<'_>) -> u64) {
    explore(5, move || {
        let shared = Shared::new(64);
        let producer = {
            let shared = shared.clone();
            thread::spawn(move || assert!(shared.push(1) && shared.push(2)))
        };
        let ring = shared.ring();
        let before = position(&ring);
        for taken in 0..2 {
            let is_there = !ring.is_empty();
            let at = position(&ring);
            assert!(at >= before && at % 16 == 0);
            if !is_there {
                break;
            }
            assert!(at >= 16 * (taken + 1), "found, and not counted");
            assert_eq!(shared.pop(), Some(taken + 1));
        }
        producer.join().unwrap();
        assert_eq!(position(&ring), 32);
    });
}

#[test]
fn what_is_found_is_counted() {
    told_once(|ring| ring.tail());
}

#[test]
#[should_panic(expected = "found, and not counted")]
fn not_by_what_the_producer_moves_afterwards() {
    told_once(|ring| ring.tail_moved());
}
