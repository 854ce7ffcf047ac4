//! The sender by itself, and against a tiny receiver over a network that loses.

mod cost;
mod partial;
mod random;
mod rates;
mod world;

use core::time::Duration;

use super::*;
use crate::recv::{Placed, ReceiveConfig, Receiver};
use crate::timer::Timer;
use world::{A, B, Desk, MTU, World, config, ms, on_stream};

const WIDE: u32 = 1 << 20;

fn sizes(chunks: &[world::Seen]) -> Vec<usize> {
    chunks.iter().map(|seen| seen.payload.len()).collect()
}

fn tsns(chunks: &[world::Seen]) -> Vec<u32> {
    chunks.iter().map(|seen| seen.head.tsn.0).collect()
}

#[test]
fn small_messages_share_packets_and_long_ones_fill_them() {
    let mut desk = Desk::new(config(), 1);
    desk.paths[A]
        .window
        .on_ack(Time(0), 100_000, 100_000, true, false);
    desk.send(0, 600);
    desk.send(0, 600);
    // It fits a packet, though not this one.
    desk.send(1, 1000);
    // It does not, so it fills what is left.
    desk.send(1, 3000);
    let packets = desk.flush();
    let sizes: Vec<_> = packets.iter().map(|chunks| sizes(chunks)).collect();
    assert_eq!(
        sizes,
        [vec![600, 600], vec![1000, 408], vec![1424], vec![1168]]
    );
    let flags: Vec<_> = packets
        .iter()
        .flatten()
        .map(|s| (s.head.begin, s.head.end))
        .collect();
    let whole = (true, true);
    assert_eq!(
        flags,
        [
            whole,
            whole,
            whole,
            (true, false),
            (false, false),
            (false, true)
        ]
    );
    let ssns: Vec<_> = packets.iter().flatten().map(|s| s.head.ssn.0).collect();
    assert_eq!(ssns, [0, 1, 0, 1, 1, 1]);
    assert!(desk.sack(6, WIDE, &[]).unwrap().all);
    assert_eq!(desk.sender.buffered(), 0);
}

#[test]
fn a_batch_of_packets_of_one_size_does_not_cut_messages_that_fit_a_packet() {
    let mut desk = Desk::new(config(), 1);
    desk.send(0, 1400);
    let mut bytes = Vec::new();
    for limit in [1052, 1452] {
        bytes.clear();
        let mut packet = crate::wire::PacketBuilder::begin(&mut bytes, 1, 2, 3, limit);
        let (paths, timers) = (&mut desk.paths, &mut desk.timers);
        let chunks = desk.sender.fill(desk.now, A, paths, timers, &mut packet);
        assert_eq!(chunks, usize::from(limit == 1452));
    }
}

#[test]
fn authenticated_packets_have_less_room() {
    for overhead in [0, 28] {
        let mut desk = Desk::new(config(), 1);
        desk.sender.set_overhead(overhead);
        desk.send(0, 1424);
        let mut sent = 0;
        for _ in 0..4 {
            let mut bytes = Vec::new();
            let mut packet = crate::wire::PacketBuilder::begin(&mut bytes, 1, 2, 3, MTU);
            packet.pad(28);
            let (paths, timers) = (&mut desk.paths, &mut desk.timers);
            sent += desk.sender.fill(desk.now, A, paths, timers, &mut packet);
        }
        assert_eq!(
            sent, 2,
            "cut at once, or after some tries where nobody told"
        );
    }
}

#[test]
fn interleaved_messages_have_their_own_numbers() {
    let mut settings = config();
    settings.interleave = true;
    settings.scheduler = SchedulerKind::RoundRobin;
    let mut desk = Desk::new(settings, 1);
    desk.paths[A]
        .window
        .on_ack(Time(0), 100_000, 100_000, true, false);
    desk.send(1, 2000);
    desk.send(2, 2000);
    let unordered = Outgoing {
        unordered: true,
        ..on_stream(2)
    };
    desk.sender
        .enqueue(desk.now, &unordered, &[1; 10], false)
        .unwrap();
    let seen: Vec<_> = desk.flush().concat();
    let heads: Vec<_> = seen
        .iter()
        .map(|s| (s.head.stream, s.head.mid.0, s.head.fsn, s.head.unordered))
        .collect();
    assert_eq!(
        heads,
        [
            (1, 0, 0, false),
            (2, 0, 0, false),
            (1, 0, 1, false),
            (2, 0, 1, false),
            (2, 0, 0, true)
        ]
    );
}

#[test]
fn without_interleaving_a_long_message_is_not_interrupted() {
    let mut settings = config();
    settings.scheduler = SchedulerKind::RoundRobin;
    let mut desk = Desk::new(settings, 1);
    desk.send(1, 3000);
    desk.send(2, 100);
    desk.send(1, 100);
    let streams: Vec<_> = desk
        .flush()
        .concat()
        .iter()
        .map(|s| s.head.stream)
        .collect();
    assert_eq!(streams, [1, 1, 1, 2, 1]);
}

#[test]
fn refuses_what_it_can_not_take() {
    let mut settings = config();
    settings.buffer = 1000;
    let mut desk = Desk::new(settings, 1);
    let mut send = |stream, len| {
        desk.sender
            .enqueue(Time(0), &on_stream(stream), &vec![0; len], false)
    };
    assert_eq!(send(8, 10), Err(SendRefused::BadStream));
    assert_eq!(send(0, 0), Err(SendRefused::TooBig));
    assert_eq!(send(0, 1001), Err(SendRefused::TooBig));
    assert_eq!(send(7, 999), Ok(()));
    assert_eq!(send(7, 2), Err(SendRefused::NoRoom));
    desk.sender.close();
    assert_eq!(
        desk.sender.enqueue(Time(0), &on_stream(0), &[1], false),
        Err(SendRefused::Closed)
    );
}

#[test]
fn parts_of_a_message_leave_before_its_end_is_known() {
    for interleave in [false, true] {
        let mut desk = Desk::new(
            SendConfig {
                interleave,
                ..config()
            },
            1,
        );
        let part = |desk: &mut Desk, more| {
            desk.sender
                .enqueue(desk.now, &on_stream(1), &[3; 100], more)
                .unwrap();
        };
        part(&mut desk, true);
        desk.send(2, 50);
        let first = desk.flush().concat();
        // Without interleaving, the other stream has to wait.
        assert_eq!(first.len(), if interleave { 2 } else { 1 });
        part(&mut desk, true);
        part(&mut desk, false);
        part(&mut desk, false);
        let all = [first, desk.flush().concat()].concat();
        let mine: Vec<_> = all
            .iter()
            .filter(|s| s.head.stream == 1)
            .map(|s| s.head)
            .collect();
        let flags: Vec<_> = mine.iter().map(|h| (h.begin, h.end)).collect();
        assert_eq!(
            flags,
            [(true, false), (false, false), (false, true), (true, true)]
        );
        if interleave {
            let numbers: Vec<_> = mine.iter().map(|h| (h.mid.0, h.fsn)).collect();
            assert_eq!(numbers, [(0, 0), (0, 1), (0, 2), (1, 0)]);
        } else {
            let numbers: Vec<_> = mine.iter().map(|h| (h.tsn.0, h.ssn.0)).collect();
            assert_eq!(numbers[..3], [(1, 0), (2, 0), (3, 0)]);
        }
    }
}

#[test]
fn the_message_that_others_wait_for_gets_room() {
    let mut desk = Desk::new(
        SendConfig {
            buffer: 1000,
            ..config()
        },
        1,
    );
    desk.sender
        .enqueue(desk.now, &on_stream(1), &[1; 100], true)
        .unwrap();
    desk.flush();
    desk.send(2, 900);
    desk.sender
        .enqueue(desk.now, &on_stream(1), &[1; 500], false)
        .unwrap();
    assert_eq!(desk.flush().concat().len(), 2);
}

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
    desk.sender.set_peer_window(500);
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
    desk.sender.set_max_burst(0);
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
    desk.sender.set_max_burst(0);
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
fn nagle_waits_for_a_packet_or_for_silence() {
    let mut desk = Desk::new(
        SendConfig {
            nagle: true,
            ..config()
        },
        1,
    );
    desk.send(0, 100);
    assert_eq!(desk.flush().len(), 1, "nothing is in flight");
    desk.send(0, 100);
    assert!(!desk.wants());
    for _ in 0..12 {
        desk.send(0, 100);
    }
    assert_eq!(desk.flush().len(), 1, "a packet is full");
    desk.send(0, 100);
    desk.flush();
    desk.sender.close();
    desk.flush();
    assert_eq!(desk.sender.unsent(), 0, "nothing more comes");
}

#[test]
fn messages_without_bounds_are_joined_to_full_chunks() {
    let mut desk = Desk::new(
        SendConfig {
            nagle: true,
            joins: true,
            ..config()
        },
        1,
    );
    let put = |desk: &mut Desk, about: &Outgoing, from: u8| {
        let bytes: Vec<u8> = (0..100).map(|i| from.wrapping_add(i)).collect();
        desk.sender.enqueue(desk.now, about, &bytes, false).unwrap();
        bytes
    };
    let mut all = put(&mut desk, &on_stream(0), 0);
    let mut seen = desk.flush().concat();
    assert_eq!(
        sizes(&seen),
        [100],
        "nothing is in flight: it waits for nothing"
    );
    for from in 0..30 {
        all.extend(put(&mut desk, &on_stream(0), from));
    }
    seen.extend(desk.flush().concat());
    assert_eq!(
        sizes(&seen),
        [100, 1424, 1424],
        "the rest waits, as Nagle has it"
    );
    desk.sack(3, WIDE, &[]).unwrap();
    seen.extend(desk.flush().concat());
    assert_eq!(sizes(&seen), [100, 1424, 1424, 152]);
    assert!(seen.iter().all(|s| s.head.begin && s.head.end));
    let came: Vec<u8> = seen.iter().flat_map(|s| s.payload.clone()).collect();
    assert!(came == all, "in their order");
    assert!(desk.sack(4, WIDE, &[]).unwrap().all);
    assert_eq!(desk.sender.buffered(), 0);
}

#[test]
fn messages_that_differ_in_more_than_their_bytes_are_not_joined() {
    let mut desk = Desk::new(
        SendConfig {
            joins: true,
            ..config()
        },
        1,
    );
    let dear = Outgoing {
        reliability: Reliability::Rtx(1),
        ..on_stream(0)
    };
    let other = Outgoing {
        ppid: 7,
        ..on_stream(0)
    };
    for about in [
        on_stream(0),
        on_stream(0),
        other,
        on_stream(1),
        on_stream(0),
        dear,
        dear,
    ] {
        desk.sender
            .enqueue(desk.now, &about, &[1; 10], false)
            .unwrap();
    }
    // The parts of a message stay its own.
    for more in [true, false] {
        desk.sender
            .enqueue(desk.now, &dear, &[1; 10], more)
            .unwrap();
    }
    let seen = desk.flush().concat();
    assert_eq!(sizes(&seen), [20, 10, 10, 10, 10, 10, 10, 10]);
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
            let taken = peer.on_data(desk.now, &seen.as_data());
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
fn t3_moves_what_is_lost_to_another_path() {
    let mut desk = Desk::new(config(), 1);
    for _ in 0..3 {
        desk.send(0, 1000);
    }
    desk.flush();
    desk.t3(A);
    assert_eq!((desk.paths[A].flight, desk.sender.lost_on()), (0, Some(A)));
    let packet = world::data_of(&desk.packet_on(B));
    assert_eq!(tsns(&packet), [1]);
    assert_eq!(
        (
            desk.paths[B].flight,
            desk.timers.get(Timer::T3(B)).is_some()
        ),
        (1000, true)
    );
    let acked = desk.sack(1, WIDE, &[]).unwrap();
    assert_eq!(acked.paths, 1 << B.0);
    assert_eq!(desk.timers.get(Timer::T3(B)), None);
}

#[test]
fn a_path_that_goes_leaves_its_chunks_to_another() {
    let mut desk = Desk::new(config(), 1);
    for _ in 0..3 {
        desk.send(0, 1000);
    }
    desk.flush();
    desk.sack(0, WIDE, &[(2, 2)]).unwrap();
    desk.sender
        .remove_path(desk.now, A, &mut desk.paths, &mut desk.timers);
    desk.paths.remove(A);
    desk.check();
    assert_eq!(tsns(&world::data_of(&desk.packet_on(B))), [1]);
    // What was acknowledged by a gap block on the old path is thrown away by the peer now.
    desk.sack(1, WIDE, &[]).unwrap();
    assert_eq!(desk.paths[B].flight, 1000);
    desk.t3(B);
    while !desk.packet_on(B).is_empty() {}
    assert!(desk.sack(3, WIDE, &[]).unwrap().all);
}

#[test]
fn what_was_sent_on_a_path_that_is_gone_says_nothing_of_another_of_its_number() {
    let mut desk = Desk::new(config(), 1);
    for _ in 0..3 {
        desk.send(0, 1000);
    }
    desk.flush();
    desk.t3(A);
    assert_eq!(desk.sender.lost_on(), Some(A));
    desk.sender
        .remove_path(desk.now, A, &mut desk.paths, &mut desk.timers);
    assert_eq!((desk.sender.lost_on(), desk.sender.lost()), (None, 3));
    // It had arrived all the same.
    let acked = desk.sack(2, WIDE, &[]).unwrap();
    assert_eq!((acked.bytes, acked.paths), (2000, 0));
    assert_eq!(tsns(&world::data_of(&desk.packet_on(B))), [3]);
    assert_eq!(desk.sack(3, WIDE, &[]).unwrap().paths, 1 << B.0);
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
fn a_stream_is_held_reset_and_goes_on_with_zero() {
    let mut desk = Desk::new(config(), 1);
    desk.send(1, 100);
    desk.send(1, 100);
    desk.sender.hold_streams(&[1]);
    desk.send(1, 100);
    desk.send(2, 100);
    assert_eq!(
        desk.flush().concat().len(),
        3,
        "what came before it was held, and other streams"
    );
    assert!(!desk.sender.stream_is_idle(1));
    desk.sack(3, WIDE, &[]).unwrap();
    assert!(desk.sender.stream_is_idle(1) && !desk.sender.is_idle());
    desk.sender.reset_streams(&[1]);
    let heads: Vec<_> = desk
        .flush()
        .concat()
        .iter()
        .map(|s| (s.head.stream, s.head.ssn.0))
        .collect();
    assert_eq!(heads, [(1, 0)]);
    assert_eq!(
        desk.sender.enqueue(desk.now, &on_stream(8), &[1], false),
        Err(SendRefused::BadStream)
    );
    desk.sender.add_streams(1);
    desk.send(8, 10);
    assert_eq!(desk.sender.streams(), 9);
    desk.flush();
    desk.sack(5, WIDE, &[]).unwrap();
    desk.sender.reset_tsn(Tsn(77));
    desk.send(0, 10);
    assert_eq!(tsns(&desk.packet()), [77]);
}

#[test]
fn everything_fails_when_the_association_is_over() {
    let mut desk = Desk::new(config(), 1);
    let message = Outgoing {
        context: 5,
        ..on_stream(0)
    };
    desk.sender
        .enqueue(desk.now, &message, &[1; 10], false)
        .unwrap();
    desk.flush();
    desk.sender
        .enqueue(desk.now, &message, &[2; 3000], false)
        .unwrap();
    desk.send(3, 4);
    desk.sender.fail_all();
    let mut failed: Vec<_> = core::iter::from_fn(|| desk.sender.failed()).collect();
    failed.sort_by_key(|f| f.data.len());
    let failed: Vec<_> = failed
        .iter()
        .map(|f| (f.data.len(), f.sent, f.message.context))
        .collect();
    assert_eq!(failed, [(4, false, 0), (10, true, 5), (3000, false, 5)]);
    assert!(desk.sender.is_idle());
    assert_eq!(desk.sender.buffered(), 0);
}

#[test]
fn messages_for_streams_that_the_peer_does_not_have_fail() {
    let mut desk = Desk::new(config(), 1);
    desk.send(1, 10);
    desk.send(5, 10);
    desk.sender.open(1000, 3, true, false);
    assert_eq!(desk.sender.failed().unwrap().message.stream, 5);
    assert!(
        desk.flush()
            .concat()
            .iter()
            .all(|s| s.head.interleaved && s.head.stream == 1)
    );
    assert_eq!(desk.sender.streams(), 3);
}

#[test]
fn a_thousand_packets_over_a_lossy_path_need_few_timeouts() {
    let mut world = World::new(config(), 5, 1 << 20, 99);
    world.loss = 10;
    for _ in 0..1000 {
        world.desk.send(0, 1400);
        world.step();
    }
    world.finish();
    assert_eq!(world.receiver.messages()[&(0, false)].len(), 1000);
    assert!(world.timeouts <= 4, "{} timeouts", world.timeouts);
    assert!(world.packets < 1100, "{} packets", world.packets);
}

#[test]
fn data_gets_through_when_one_path_is_cut() {
    let mut world = World::new(config(), u32::MAX - 3, 1 << 20, 7);
    for _ in 0..20 {
        world.desk.send(0, 1400);
    }
    world.cut = true;
    world.finish();
    assert_eq!(world.receiver.messages()[&(0, false)].len(), 20);
}

#[test]
fn an_idle_path_begins_again_with_a_small_window() {
    let mut desk = Desk::new(config(), 1);
    desk.sender.set_max_burst(0);
    desk.paths[A]
        .window
        .on_ack(Time(0), 1 << 20, 1 << 20, true, false);
    desk.send(0, 100);
    desk.flush();
    desk.sack(1, WIDE, &[]).unwrap();
    desk.now = desk.now + Duration::from_secs(3600);
    for _ in 0..20 {
        desk.send(0, 1400);
    }
    assert!(desk.flush().len() <= 5);
}

#[test]
fn a_chunk_too_long_for_a_path_that_has_shrunk_goes_alone() {
    let mut desk = Desk::new(config(), 1);
    desk.send(0, 400);
    desk.send(0, 800);
    desk.flush();
    desk.paths[A].mtu = 600;
    desk.t3(A);
    assert_eq!(tsns(&desk.packet()), [1]);
    desk.sack(1, WIDE, &[]).unwrap();
    assert_eq!(tsns(&desk.packet()), [2]);
    desk.send(0, 800);
    desk.sack(2, WIDE, &[]).unwrap();
    assert_eq!(sizes(&desk.packet()), [572], "new ones are cut to fit");
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
