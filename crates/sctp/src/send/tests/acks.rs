//! What acknowledgements and the peer's window let the sender do, and what it sends again.

use super::*;

#[test]
fn a_window_that_is_shut_is_probed_and_opens_again() {
    let mut desk = Desk::new(config(), 1);
    desk.send(0, 1000);
    desk.flush();
    desk.sack(1, 0, &[]).unwrap();
    desk.send(0, 1000);
    desk.send(0, 1000);
    assert_eq!(tsns(&desk.packet()), [2], "one chunk, whatever the window");
    assert!(!desk.wants());
    // The probe is thrown away each time: T3 repeats it for ever.
    for _ in 0..3 {
        desk.sack(1, 0, &[]).unwrap();
        desk.t3(A);
        assert_eq!(tsns(&desk.packet()), [2]);
        assert!(!desk.wants());
    }
    // A window that opens does not have to wait for T3.
    desk.sack(1, WIDE, &[]).unwrap();
    let after: Vec<u32> = desk
        .flush()
        .iter()
        .flat_map(|chunks| tsns(chunks))
        .collect();
    assert_eq!(after[0], 2);
    assert!(desk.sack(2, 500, &[]).is_ok());
    assert_eq!(
        tsns(&desk.packet()),
        if after.len() > 1 { vec![] } else { vec![3] }
    );
}

#[test]
fn a_window_too_small_for_the_next_message_takes_it_when_nothing_is_in_flight() {
    let mut desk = Desk::new(config(), 1);
    desk.sender.window = 500;
    desk.send(0, 400);
    desk.send(0, 400);
    assert_eq!(desk.flush().concat().len(), 1);
    desk.sack(1, 300, &[]).unwrap();
    assert_eq!(
        desk.flush().concat().len(),
        1,
        "more than the window, as a probe"
    );
}

#[test]
fn sacks_for_what_was_never_sent_change_nothing() {
    let mut desk = Desk::new(config(), 10);
    for _ in 0..3 {
        desk.send(0, 100);
    }
    desk.flush();
    let before = desk.sender.buffered();
    assert_eq!(desk.sack(13, WIDE, &[]), Err(SackError));
    assert_eq!(desk.sack(10, WIDE, &[(2, 3)]), Err(SackError));
    assert_eq!(desk.sack(9, WIDE, &[(2, u16::MAX)]), Err(SackError));
    assert_eq!(desk.sender.buffered(), before);
    assert_eq!(desk.paths[A].flight, 300);
    assert_eq!(desk.sack(11, WIDE, &[]).unwrap().bytes, 200);
    // Older than that: not even its window counts.
    assert_eq!(desk.sack(10, 0, &[]).unwrap(), Acked::default());
    assert!(desk.sender.peer_window() > 0);
    assert_eq!(desk.sack(9, 0, &[(3, 3)]).unwrap(), Acked::default());
}

#[test]
fn senseless_gap_blocks_are_passed_over() {
    let mut desk = Desk::new(config(), 1);
    for _ in 0..6 {
        desk.send(0, 100);
    }
    desk.flush();
    let acked = desk
        .sack(0, WIDE, &[(4, 5), (0, 3), (5, 2), (4, 4), (2, 2)])
        .unwrap();
    assert_eq!(acked.bytes, 300);
    assert_eq!(desk.paths[A].flight, 300);
    desk.sack(0, WIDE, &[(1, 6)]).unwrap();
    assert_eq!(
        desk.paths[A].flight, 100,
        "the first can't be there: T3 goes on running for it"
    );
    assert_eq!(desk.sack(6, WIDE, &[]).unwrap().bytes, 100);
}

#[test]
fn three_missing_reports_retransmit_at_once_and_only_once() {
    let mut desk = Desk::new(config(), u32::MAX - 1);
    let first = u32::MAX - 1;
    desk.paths[A]
        .window
        .on_ack(Time(0), 100_000, 100_000, true, false);
    for _ in 0..10 {
        desk.send(0, 1400);
    }
    desk.sender.config.max_burst = 0;
    assert_eq!(desk.flush().len(), 10);
    let window = desk.paths[A].window.window();
    let before = first.wrapping_sub(1);
    desk.sack(before, WIDE, &[(2, 2)]).unwrap();
    desk.sack(before, WIDE, &[(2, 3)]).unwrap();
    // Nothing new: no report.
    desk.sack(before, WIDE, &[(2, 3)]).unwrap();
    assert!(!desk.wants());
    desk.now = desk.now + ms(10);
    desk.sack(before, WIDE, &[(2, 4)]).unwrap();
    assert_eq!(desk.paths[A].window.window(), window / 2);
    assert_eq!(desk.sender.lost_on(), None);
    assert_eq!(tsns(&desk.packet()), [first]);
    let due = desk.timers.get(Timer::T3(A)).unwrap();
    assert_eq!(
        due,
        desk.now + desk.paths[A].rto.current(),
        "T3 starts anew with the first chunk"
    );
    for last in 5..=10 {
        desk.sack(before, WIDE, &[(2, last)]).unwrap();
    }
    assert_eq!(desk.sender.lost(), 0, "not a second time before T3");
    assert_eq!(
        desk.paths[A].window.window(),
        window / 2,
        "one reduction per window"
    );
    desk.t3(A);
    assert_eq!(desk.sender.lost_on(), Some(A));
    assert_eq!(tsns(&desk.packet()), [first]);
    assert!(desk.sack(before.wrapping_add(10), WIDE, &[]).unwrap().all);
    assert_eq!(desk.timers.get(Timer::T3(A)), None);
}

#[test]
fn in_fast_recovery_a_cumulative_advance_counts_for_all_holes() {
    let mut desk = Desk::new(config(), 1);
    desk.sender.config.max_burst = 0;
    desk.paths[A]
        .window
        .on_ack(Time(0), 100_000, 100_000, true, false);
    for _ in 0..12 {
        desk.send(0, 1400);
    }
    desk.flush();
    for last in 3..=5 {
        desk.sack(0, WIDE, &[(2, last)]).unwrap();
    }
    assert_eq!(tsns(&desk.packet()), [1]);
    // 6 is lost too; what comes after it comes slowly.
    desk.sack(0, WIDE, &[(2, 5), (7, 7)]).unwrap();
    desk.sack(5, WIDE, &[(2, 2)]).unwrap();
    assert_eq!(desk.sender.lost(), 0);
    desk.sack(5, WIDE, &[(2, 3)]).unwrap();
    assert_eq!(tsns(&desk.packet()), [6]);
    desk.sack(12, WIDE, &[]).unwrap();
    assert_eq!(desk.sender.recovery, None);
}

#[test]
fn what_is_reneged_is_in_flight_again() {
    let mut desk = Desk::new(config(), 1);
    for _ in 0..4 {
        desk.send(0, 500);
    }
    desk.flush();
    assert_eq!(desk.sack(0, WIDE, &[(2, 4)]).unwrap().bytes, 1500);
    assert_eq!(desk.paths[A].flight, 500);
    assert_eq!(desk.sack(1, WIDE, &[]).unwrap().bytes, 500);
    assert_eq!(desk.paths[A].flight, 1500);
    desk.t3(A);
    assert_eq!(tsns(&desk.packet()), [2, 3]);
    assert!(desk.sack(4, WIDE, &[]).unwrap().all);
}

#[test]
fn only_first_transmissions_time_the_round_trip_one_at_a_time() {
    let mut desk = Desk::new(config(), 1);
    desk.send(0, 1400);
    desk.send(0, 1400);
    desk.packet();
    desk.now = desk.now + ms(3);
    desk.packet();
    desk.now = desk.now + ms(7);
    assert_eq!(desk.sack(1, WIDE, &[]).unwrap().rtt, Some((A, ms(10))));
    assert_eq!(
        desk.sack(2, WIDE, &[]).unwrap().rtt,
        None,
        "was not the one that timed it"
    );
    desk.send(0, 1400);
    desk.packet();
    desk.t3(A);
    assert_eq!(tsns(&desk.packet()), [3]);
    assert_eq!(
        desk.sack(3, WIDE, &[]).unwrap().rtt,
        None,
        "was retransmitted"
    );
    desk.send(0, 100);
    desk.packet();
    desk.now = desk.now + ms(4);
    assert_eq!(desk.sack(4, WIDE, &[]).unwrap().rtt, Some((A, ms(4))));
}

#[test]
fn small_messages_do_not_outrun_what_the_peer_can_hold() {
    const WINDOW: u32 = 1 << 16;
    let config = SendConfig {
        max_burst: 0,
        ..config()
    };
    let mut desk = Desk::new(config.clone(), 1);
    desk.sender = Sender::new(config, Tsn(1), 8, WINDOW);
    desk.paths[A]
        .window
        .on_ack(Time(0), 1 << 20, 1 << 20, true, false);
    let mut peer = Receiver::new(
        ReceiveConfig {
            window: WINDOW as usize,
            ..ReceiveConfig::default()
        },
        Tsn(1),
        8,
    );
    for _ in 0..10_000 {
        desk.send(0, 1);
    }
    let mut came = 0;
    while came < 10_000 {
        let packets = desk.flush();
        assert!(!packets.is_empty());
        for seen in packets.concat() {
            let taken = peer.on_data(&seen.as_data());
            assert_eq!(taken, Ok(Placed::New), "thrown away after {came}");
            came += 1;
        }
        // Its user reads when everything has come.
        let mut byte = [0];
        while peer.read(&mut byte).is_some() {}
        desk.sack(peer.cumulative().0, peer.window(), &[]).unwrap();
    }
    assert!(desk.sender.all_acknowledged());
}

#[test]
fn bursts_follow_what_was_acknowledged() {
    let mut desk = Desk::new(config(), 1);
    desk.paths[A]
        .window
        .on_ack(Time(0), 1 << 20, 1 << 20, true, false);
    for _ in 0..60 {
        desk.send(0, 1400);
    }
    assert_eq!(
        desk.flush().len(),
        5,
        "four packets, and the one that crosses the limit"
    );
    desk.sack(5, WIDE, &[]).unwrap();
    assert_eq!(
        desk.flush().len(),
        10,
        "as many as were acknowledged, and a burst"
    );
    desk.sack(15, WIDE, &[]).unwrap();
    assert!(desk.flush().len() > 13);
}

#[test]
fn a_second_timeout_lets_chunks_be_fast_retransmitted_again() {
    let mut settings = config();
    settings.max_burst = 0;
    let mut desk = Desk::new(settings, 1);
    desk.paths[A]
        .window
        .on_ack(Time(0), 1 << 20, 1 << 20, true, false);
    for _ in 0..8 {
        desk.send(0, 1000);
    }
    desk.flush();
    // Each time it is reported missing by three SACKs.
    for last in [2, 3, 4] {
        desk.sack(0, WIDE, &[(2, last)]).unwrap();
    }
    assert_eq!(desk.sender.lost(), 1);
    assert_eq!(tsns(&world::data_of(&desk.packet_on(A))), [1]);
    desk.t3(A);
    assert_eq!(tsns(&world::data_of(&desk.packet_on(A))), [1]);
    for last in [5, 6, 7] {
        desk.sack(0, WIDE, &[(2, last)]).unwrap();
    }
    assert_eq!(tsns(&world::data_of(&desk.packet_on(A))), [1]);
}

#[test]
fn a_late_sack_of_before_the_tsns_began_anew_is_ignored() {
    let mut desk = Desk::new(config(), 10);
    let last = desk.sender.next_tsn().previous();
    desk.sender.reset_tsn(last.next().plus(1 << 31));
    assert!(desk.sack(last.0, WIDE, &[]).is_ok());
    let next = desk.sender.next_tsn();
    assert_eq!(desk.sack(next.0, WIDE, &[]), Err(SackError));
}
