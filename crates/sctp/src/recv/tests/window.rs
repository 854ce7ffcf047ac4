//! Acknowledgements, and the window: which chunks are taken while there is little room.

use super::*;

#[test]
fn a_sack_is_owed_for_every_second_packet_and_once_for_a_batch() {
    let mut receiver = receiver(false);
    assert_eq!(receiver.sack_wanted(), SackWanted::No);
    take(&mut receiver, &data(0, 0, 0, "BE", b"a"));
    take(&mut receiver, &data(1, 0, 1, "BE", b"b"));
    receiver.end_of_packet();
    assert_eq!(receiver.sack_wanted(), SackWanted::Delayed);
    take(&mut receiver, &data(2, 0, 2, "BE", b"c"));
    receiver.end_of_packet();
    receiver.end_of_packet();
    assert_eq!(receiver.sack_wanted(), SackWanted::Now);
    assert_eq!(sack(&mut receiver).0, FIRST.plus(2));
    assert_eq!(receiver.sack_wanted(), SackWanted::No);
    receiver.end_of_packet();
    assert_eq!(
        receiver.sack_wanted(),
        SackWanted::No,
        "no data in that packet"
    );
}

#[test]
fn gaps_duplicates_and_the_i_bit_are_answered_at_once() {
    let mut receiver = receiver(false);
    let mut immediate = data(0, 0, 0, "BE", b"a");
    immediate.head.immediate = true;
    take(&mut receiver, &immediate);
    receiver.end_of_packet();
    assert_eq!(receiver.sack_wanted(), SackWanted::Now);
    sack(&mut receiver);

    for (nth, ssn) in [(2, 2), (3, 3), (6, 6), (4, 4)] {
        take(&mut receiver, &data(nth, 0, ssn, "BE", b"x"));
    }
    receiver.end_of_packet();
    assert_eq!(receiver.sack_wanted(), SackWanted::Now);
    assert_eq!(
        take(&mut receiver, &data(3, 0, 3, "BE", b"x")),
        Placed::Duplicate
    );
    assert_eq!(
        take(&mut receiver, &data(0, 0, 0, "BE", b"x")),
        Placed::Duplicate
    );
    let (cumulative, window, gaps, duplicates) = sack(&mut receiver);
    assert_eq!(
        (cumulative, gaps, duplicates),
        (FIRST, vec![(2, 4), (6, 6)], 2)
    );
    assert_eq!(window, (1 << 16) - 5 * (1 + OVERHEAD as u32));
    assert_eq!(sack(&mut receiver).3, 0, "duplicates are reported once");
}

#[test]
fn the_window_counts_what_is_not_whole_and_opens_again_only_by_much() {
    let mut receiver = with(|config| config.partial_delivery_point = usize::MAX);
    let kilobyte = [0; 1024];
    for nth in 0..50 {
        take(&mut receiver, &data(nth, 0, nth as u16, "BE", &kilobyte));
    }
    let (_, window, ..) = sack(&mut receiver);
    assert_eq!(window as usize, (1 << 16) - 50 * (1024 + OVERHEAD));
    let mut buffer = [0; 2048];
    let mut updates = 0;
    while receiver.read(&mut buffer).is_some() {
        if receiver.window_update_due() {
            updates += 1;
            sack(&mut receiver);
        }
    }
    assert!((1..=4).contains(&updates), "{updates}");
    take(&mut receiver, &data(60, 0, 60, "B", &kilobyte));
    assert_eq!(receiver.window() as usize, (1 << 16) - 1024 - OVERHEAD);
}

#[test]
fn a_window_is_none_rather_than_silly() {
    let mut receiver = receiver(false);
    let kilobyte = [0; 1024];
    let mut nth = 0;
    while receiver.window() > 0 {
        take(&mut receiver, &data(nth, 0, nth as u16, "BE", &kilobyte));
        nth += 1;
        assert!(receiver.window() == 0 || receiver.window() as usize >= SILLY);
    }
    sack(&mut receiver);
    let mut buffer = [0; 1024];
    receiver.read(&mut buffer[..8]);
    assert!(!receiver.window_update_due());
    receiver.read(&mut buffer);
    assert!(receiver.window_update_due(), "two packets' worth");
}

#[test]
fn a_full_window_takes_what_fills_a_gap_and_drops_the_highest() {
    let mut receiver = receiver(false);
    let kilobyte = [0; 1024];
    let mut nth = 1;
    while take(&mut receiver, &data(nth, 0, nth as u16, "BE", &kilobyte)) == Placed::New {
        nth += 1;
    }
    assert_eq!(receiver.window(), 0);
    assert_eq!(receiver.sack_wanted(), SackWanted::Now);
    let highest = sack(&mut receiver).2[0].1;
    assert_eq!(
        take(&mut receiver, &data(0, 0, 0, "BE", &kilobyte)),
        Placed::New
    );
    assert_eq!(
        receiver.cumulative(),
        FIRST.plus(u32::from(highest) - 2),
        "the highest was dropped"
    );
    assert_eq!(all(&mut receiver).len(), usize::from(highest) - 1);
    assert_eq!(receiver.window(), 1 << 16);
}

#[test]
fn a_full_window_still_takes_the_chunk_that_completes_the_only_message() {
    for interleave in [false, true] {
        let mut receiver = with(|config| {
            config.interleave = interleave;
            config.window = 4096;
        });
        let half = [0; 2048];
        // Not the turn of this message's stream, so that it can't be delivered in parts.
        let chunk = |nth: u32, parts| {
            if interleave {
                idata(nth, 0, 1, nth, parts, &half)
            } else {
                data(nth, 0, 1, parts, &half)
            }
        };
        take(&mut receiver, &chunk(0, "B"));
        take(&mut receiver, &chunk(1, ""));
        assert!(!receiver.readable());
        assert_eq!(receiver.window(), 0);
        assert_eq!(take(&mut receiver, &chunk(3, "E")), Placed::NoRoom);
        assert_eq!(take(&mut receiver, &chunk(2, "E")), Placed::New);
    }
}

#[test]
fn chunks_far_ahead_are_not_taken() {
    let mut receiver = receiver(false);
    assert_eq!(
        take(&mut receiver, &data(REACH_PLUS, 0, 0, "BEU", b"x")),
        Placed::NoRoom
    );
    assert_eq!(
        take(&mut receiver, &data(REACH_PLUS - 1, 0, 0, "BEU", b"x")),
        Placed::New
    );
    for nth in 1..10_000 {
        receiver
            .on_data(&data(2 * nth, 0, 0, "BEU", b"x"))
            .expect("right chunks");
        all(&mut receiver);
    }
    assert!(sack(&mut receiver).2.len() <= 1452 / 4);
    receiver.check();
}

const REACH_PLUS: u32 = map::REACH as u32;

#[test]
fn what_a_message_that_is_being_delivered_waits_for_is_taken_however_much_is_held_back() {
    let mut receiver = with(|config| {
        config.interleave = true;
        config.window = 4000;
        config.partial_delivery_point = 1;
    });
    let mut buffer = [0; 1000];
    take(&mut receiver, &idata(0, 0, 0, 0, "B", b"begun"));
    let begun = receiver.read(&mut buffer).expect("a part");
    assert!(!begun.end && !receiver.readable());
    let mut nth = 1;
    while receiver.on_data(&idata(nth, 1, nth - 1, 0, "BE", &[1; 500])) == Ok(Placed::New) {
        assert!(!receiver.readable() && nth < 100);
        nth += 1;
    }
    // Another message's end is not, nor another message.
    let refused = [
        idata(nth + 1, 2, 0, 1, "E", b"end"),
        idata(nth + 1, 0, 1, 0, "BE", b"whole"),
    ];
    for chunk in refused {
        assert_eq!(receiver.on_data(&chunk), Ok(Placed::NoRoom));
    }
    take(&mut receiver, &idata(nth + 1, 0, 0, 1, "E", b"end"));
    let mut read = 0;
    while let Some(part) = receiver.read(&mut buffer) {
        assert!(part.end);
        read += 1;
    }
    assert_eq!(read, nth);
    take(&mut receiver, &idata(nth, 1, nth - 1, 0, "BE", &[1; 500]));
    receiver.check();
}
