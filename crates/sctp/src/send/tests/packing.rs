//! How messages become chunks, and chunks packets.

use super::*;

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
