//! What a hostile peer can write into a segment. Reads and writes outside of it would be fatal: see [`Bench`].

use proptest::prelude::*;

use super::*;

/// Words as a hostile peer would choose them: noise, small numbers, headers that nearly make sense.
fn hostile_word() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..10_000u64,
        (0..10_000u64, 0..16u64).prop_map(|(len, bits)| len | bits << 60),
        (0..100u64, 0..16u64).prop_map(|(len, bits)| COMMITTED | len | bits << 60),
        (0..64u64).prop_map(|n| u64::MAX - n),
        Just(0),
    ]
}

/// Uses the ring in every way; any answer will do.
fn use_up(ring: Ring<'_>) {
    let base = ring.data.at(0) as usize;
    let mut buf = [0; 3 * CAPACITY];
    let _ = ring.push(&buf[..100], plain());
    let _ = ring.push_message(&buf[..10], &buf[..100], plain());
    if let Ok(Some(r)) = ring.reserve(usize::MAX, true) {
        let at = r.ptr as usize;
        assert!(base <= at && at + r.len <= base + 2 * CAPACITY);
    }
    if let Ok(Some(r)) = ring.reserve(64, false) {
        ring.commit(r.len, plain());
    }
    let _ = ring.push_special(&buf[..10], &buf[..100], plain());
    let _ = (ring.may_send(100, 2000, 1000), ring.may_send(9, 0, 0));
    for (nth, n) in [(0, 0), (1, 10), (2, 2000), (1, usize::MAX)] {
        let mut seen = 0;
        let chosen = ring.find(|frame| {
            let at = frame.ptr as usize;
            assert!(base <= at && at + frame.len <= base + 2 * CAPACITY);
            seen += 1;
            nth < seen
        });
        if let Ok(Some(frame)) = chosen {
            ring.copy_frame(&frame, 0, &mut buf[..frame.len]);
            ring.take_part(&frame, n);
        }
    }
    for n in [0, 10, usize::MAX] {
        if let Ok(Some(frame)) = ring.peek() {
            let at = frame.ptr as usize;
            assert!(base <= at && at + frame.len <= base + 2 * CAPACITY);
            assert!(frame.control_left() <= frame.len);
            ring.copy_frame(&frame, 0, &mut buf[..frame.len]);
            ring.consume(&frame, n);
        }
    }
    let _ = ring.copy_peek(&mut buf, 5, None);
    let _ = ring.pop_until(&mut buf[..50], Some(1000));
    let _ = ring.pop(&mut buf);
    let _ = (
        ring.unread(),
        ring.fill(),
        ring.is_empty(),
        ring.has_room(9),
    );
    let _ = (ring.specials(), has_special(ring));
    let _ = (ring.is_full_hint(100, 50), ring.below_low_water());
    let _ = (ring.wakes_reader(), ring.wakes_writer());
    let _ = (ring.settle_readers(), ring.settle_writers());
    let _ = (ring.recover_producer(), ring.recover_consumer());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_is_survived(
        words in prop::collection::vec((0..48usize, hostile_word()), 0..6),
        payload in prop::collection::vec((0..CAPACITY / 8, hostile_word()), 0..40),
        fill in prop_oneof![Just(None), hostile_word().prop_map(Some)],
    ) {
        let bench = Bench::new();
        let ring = bench.ring();
        ring.push(&[1; 300], plain()).unwrap();
        ring.push_message(&[2; 30], &[3; 300], plain()).unwrap();
        if let Some(word) = fill {
            for pos in (0..CAPACITY as u64).step_by(8) {
                ring.data.word(pos).store(word, Ordering::Relaxed);
            }
        }
        for (i, word) in payload {
            ring.data.word(i as u64 * 8).store(word, Ordering::Relaxed);
        }
        for (i, word) in words {
            // SAFETY: RingState is 48 words that may take any value.
            unsafe {
                let state: *const RingState = ring.state;
                (*state.cast::<AtomicU64>().add(i)).store(word, Ordering::Relaxed);
            }
        }
        use_up(ring);
        use_up(ring);
    }

    #[test]
    fn a_frame_too_large_for_the_ring_is_corrupt(len in CAPACITY as u64..1 << 32) {
        let bench = Bench::new();
        let ring = bench.ring();
        ring.data.word(0).store(COMMITTED | len, Ordering::Relaxed);
        prop_assert_eq!(ring.peek().err(), Some(Corrupt));
        prop_assert_eq!(ring.pop(&mut [0; 100]), Err(Corrupt));
        prop_assert_eq!(ring.copy_peek(&mut [0; 100], 0, None), Err(Corrupt));
        prop_assert_eq!(ring.recover_producer(), Err(Corrupt));
    }
}
