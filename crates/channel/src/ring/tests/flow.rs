//! Marks and hysteresis.

use super::*;

const LIMIT: usize = 1000;
const LOW: usize = 300;

/// Pushes until the ring says that it is full.
fn fill_up(ring: Ring<'_>) -> usize {
    let mut count = 0;
    while ring.may_send(56, LIMIT, LOW) {
        assert_eq!(ring.push(&[7; 56], plain()), Ok(56));
        count += 1;
    }
    count
}

#[test]
fn a_full_ring_takes_nothing_until_the_low_water_mark() {
    let bench = Bench::new();
    let ring = bench.ring();
    for _ in 0..20 {
        assert!(!ring.is_full_hint(LIMIT, LOW));
        assert_eq!(fill_up(ring), LIMIT / 64);
        while ring.fill() as usize > LOW {
            assert!(!ring.may_send(0, LIMIT, LOW) && ring.is_full_hint(LIMIT, LOW));
            ring.pop(&mut [0; 56]).unwrap();
        }
        assert!(!ring.is_full_hint(LIMIT, LOW));
        assert!(ring.may_send(56, LIMIT, LOW));
        pop_all(ring);
    }
}

#[test]
fn an_empty_ring_takes_a_frame_beyond_the_limit_but_only_one() {
    let bench = Bench::new();
    let ring = bench.ring();
    assert!(ring.may_send(2000, LIMIT, LOW));
    ring.push(&[1; 2000], plain()).unwrap();
    assert!(!ring.may_send(1, LIMIT, LOW));
    pop_all(ring);
    assert!(ring.may_send(2000, LIMIT, LOW));
}

#[test]
fn what_may_be_sent_has_its_place() {
    for needed in 0..200 {
        let bench = Bench::new();
        let ring = bench.ring();
        while ring.may_send(needed, usize::MAX, 0) {
            let sent = ring.push_special(&[1; 200][..needed], &[], plain());
            assert_eq!(sent, Ok(true));
        }
        assert!(ring.fill() as usize + needed + 64 > CAPACITY);
    }
}

#[test]
fn a_sleeping_writer_is_rung_at_the_mark_that_was_set() {
    let bench = Bench::new();
    let ring = bench.ring();
    assert_eq!(ring.low_water() as usize, CAPACITY / 2);
    for low in [LOW, 0] {
        ring.set_low_water(low);
        fill_up(ring);
        ring.writer_sleeps();
        let mut rings = 0;
        while !ring.is_empty() {
            assert_eq!(rings, 0);
            ring.pop(&mut [0; 56]).unwrap();
            rings += ring.wakes_writer() as u32;
            assert_eq!(rings > 0, ring.fill() as usize <= low);
            if rings > 0 {
                pop_all(ring);
            }
        }
        assert!(!ring.writer_wakes());
    }
    ring.reset();
    assert_eq!(ring.low_water() as usize, CAPACITY / 2);
}
