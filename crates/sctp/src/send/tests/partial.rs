//! Partial reliability.

use super::world::{A, Desk, World, config, ms, on_stream};
use super::*;
use crate::wire::{Chunk, Packet, Skipped};

const WIDE: u32 = 1 << 20;

fn send(desk: &mut Desk, stream: u16, len: usize, reliability: Reliability) {
    let message = Outgoing {
        reliability,
        ..on_stream(stream)
    };
    desk.sender
        .enqueue(desk.now, &message, &vec![9; len], false)
        .unwrap();
}

/// The FORWARD-TSN of the next packet.
fn forward(desk: &mut Desk) -> (u32, Vec<Skipped>) {
    let bytes = desk.packet_on(A);
    let packet = Packet::parse(&bytes).unwrap();
    let Some(Ok(Chunk::Forward(forward))) = packet.chunks().next() else {
        panic!("no FORWARD-TSN");
    };
    (forward.cumulative.0, forward.streams().collect())
}

#[test]
fn a_message_that_was_not_sent_in_time_costs_no_tsn() {
    let mut desk = Desk::new(
        SendConfig {
            partial_reliability: false,
            ..config()
        },
        1,
    );
    send(&mut desk, 1, 100, Reliability::Ttl(ms(10)));
    send(&mut desk, 1, 200, Reliability::Full);
    assert_eq!(desk.sender.next_expiry(), Some(desk.now + ms(10)));
    desk.now = desk.now + ms(10);
    desk.sender.expire(desk.now);
    let failed = desk.sender.failed().unwrap();
    assert_eq!((failed.data.len(), failed.sent), (100, false));
    let chunks = desk.packet();
    assert_eq!(
        (
            chunks[0].head.tsn.0,
            chunks[0].head.ssn.0,
            chunks[0].payload.len()
        ),
        (1, 0, 200)
    );
    assert_eq!(desk.sender.next_expiry(), None);
}

#[test]
fn expiry_is_seen_when_it_is_sent_even_before_the_timer() {
    let mut desk = Desk::new(config(), 1);
    send(&mut desk, 1, 100, Reliability::Ttl(ms(10)));
    desk.now = desk.now + ms(20);
    assert!(desk.packet().is_empty());
    assert!(desk.sender.is_idle() && desk.sender.failed().is_some());
}

#[test]
fn a_message_in_flight_is_given_up_and_passed_over() {
    for interleave in [false, true] {
        let mut desk = Desk::new(
            SendConfig {
                interleave,
                ..config()
            },
            1,
        );
        send(&mut desk, 3, 100, Reliability::Ttl(ms(10)));
        send(&mut desk, 3, 100, Reliability::Full);
        desk.flush();
        desk.sack(0, WIDE, &[(2, 2)]).unwrap();
        desk.now = desk.now + ms(10);
        desk.sender.expire(desk.now);
        assert!(desk.sender.failed().unwrap().sent);
        assert_eq!(desk.sender.buffered(), 100);
        assert!(desk.sender.forward_due());
        let (cumulative, skipped) = forward(&mut desk);
        assert_eq!(cumulative, 1);
        assert_eq!((skipped.len(), skipped[0].stream), (1, 3));
        assert!(!desk.sender.forward_due(), "once");
        desk.t3(A);
        assert!(desk.sender.forward_due(), "and again after T3");
        forward(&mut desk);
        let acked = desk.sack(2, WIDE, &[]).unwrap();
        assert!(
            acked.all && acked.advanced && acked.bytes == 0,
            "nothing arrived"
        );
        assert_eq!(desk.timers.get(crate::timer::Timer::T3(A)), None);
    }
}

#[test]
fn retransmissions_are_limited() {
    let mut desk = Desk::new(config(), 1);
    send(&mut desk, 0, 100, Reliability::Rtx(2));
    let mut transmissions = 0;
    while !desk.sender.forward_due() {
        assert_eq!(desk.packet().len(), 1);
        transmissions += 1;
        desk.t3(A);
    }
    assert_eq!(transmissions, 3);
    assert_eq!(forward(&mut desk).0, 1);
    assert!(desk.sack(1, WIDE, &[]).unwrap().all);
}

#[test]
fn the_rest_of_a_message_begun_is_passed_over_by_a_tsn_of_its_own() {
    let mut desk = Desk::new(config(), 1);
    send(&mut desk, 2, 20_000, Reliability::Ttl(ms(10)));
    send(&mut desk, 2, 100, Reliability::Full);
    let sent = desk.flush().concat().len() as u32;
    desk.sack(sent, WIDE, &[]).unwrap();
    desk.now = desk.now + ms(10);
    desk.sender.expire(desk.now);
    assert_eq!(desk.sender.buffered(), 100);
    let (cumulative, skipped) = forward(&mut desk);
    assert_eq!(
        cumulative,
        sent + 1,
        "all that was sent has arrived, and yet it must be told"
    );
    assert_eq!((skipped[0].stream, skipped[0].ssn.0), (2, 0));
    let next = desk.flush().concat();
    assert!(next.is_empty(), "it left with the FORWARD-TSN");
    assert!(desk.sack(sent + 2, WIDE, &[]).unwrap().all);
}

#[test]
fn the_parts_to_come_of_a_message_given_up_are_thrown_away() {
    let mut desk = Desk::new(config(), 1);
    let message = Outgoing {
        reliability: Reliability::Ttl(ms(10)),
        ..on_stream(1)
    };
    desk.sender
        .enqueue(desk.now, &message, &[1; 100], true)
        .unwrap();
    desk.flush();
    desk.sender
        .enqueue(desk.now, &message, &[1; 100], true)
        .unwrap();
    desk.now = desk.now + ms(10);
    desk.sender.expire(desk.now);
    desk.sender
        .enqueue(desk.now, &message, &[1; 100], false)
        .unwrap();
    assert_eq!(core::iter::from_fn(|| desk.sender.failed()).count(), 3);
    assert_eq!(forward(&mut desk).0, 2);
    desk.send(1, 10);
    let next = desk.packet();
    assert_eq!((next[0].head.tsn.0, next[0].head.ssn.0), (3, 1));
    desk.sack(3, WIDE, &[]).unwrap();
    assert!(desk.sender.is_idle());
}

#[test]
fn messages_of_less_worth_make_room() {
    let mut desk = Desk::new(
        SendConfig {
            buffer: 1000,
            ..config()
        },
        1,
    );
    for priority in [5, 9, 1] {
        send(&mut desk, 0, 300, Reliability::Prio(priority));
    }
    desk.packet();
    let low = Outgoing {
        reliability: Reliability::Prio(9),
        ..on_stream(0)
    };
    assert_eq!(
        desk.sender.enqueue(desk.now, &low, &[0; 300], false),
        Err(SendError::NoRoom)
    );
    send(&mut desk, 0, 300, Reliability::Prio(5));
    assert_eq!(
        desk.sender.failed().unwrap().message.reliability,
        Reliability::Prio(9)
    );
    desk.send(1, 700);
    let gone: Vec<_> = core::iter::from_fn(|| desk.sender.failed())
        .map(|f| f.message.reliability)
        .collect();
    assert_eq!(gone, [Reliability::Prio(5), Reliability::Prio(5)]);
    desk.check();
}

#[test]
fn a_long_list_of_streams_is_told_in_parts() {
    let mut settings = config();
    settings.interleave = true;
    let mut desk = Desk::new(settings, 1);
    desk.sender.add_streams(400);
    for stream in 0..300 {
        send(&mut desk, stream, 4, Reliability::Ttl(ms(5)));
    }
    desk.flush();
    desk.now = desk.now + ms(5);
    desk.sender.expire(desk.now);
    let (first, skipped) = forward(&mut desk);
    assert!(first < 300 && skipped.len() as u32 == first);
    assert!(!desk.sender.forward_due(), "one at a time");
    desk.sack(first, WIDE, &[]).unwrap();
    assert_eq!(forward(&mut desk).0, 300);
    assert!(desk.sack(300, WIDE, &[]).unwrap().all);
}

#[test]
fn what_was_given_up_counts_until_it_is_lost() {
    let mut desk = Desk::new(config(), 1);
    send(&mut desk, 0, 1000, Reliability::Ttl(ms(1)));
    desk.flush();
    desk.now = desk.now + ms(1);
    desk.sender.expire(desk.now);
    assert_eq!(desk.paths[A].flight, 1000);
    desk.sender
        .remove_path(desk.now, A, &mut desk.paths, &mut desk.timers);
    assert_eq!(desk.paths[A].flight, 0);
    assert!(desk.sender.forward_due());
}

#[test]
fn of_messages_with_a_lifetime_each_arrives_or_fails() {
    for seed in 1..60 {
        let mut settings = config();
        settings.interleave = seed % 2 == 0;
        let mut world = World::new(settings, u32::MAX - 20, 1 << 16, seed);
        world.loss = 150;
        world.jitter = ms(seed % 4);
        let mut sent = 0;
        for n in 0..120_u64 {
            let reliability = match n % 4 {
                0 => Reliability::Full,
                1 => Reliability::Ttl(ms(world.random(60))),
                2 => Reliability::Rtx(world.random(3) as u32),
                _ => Reliability::Ttl(ms(0)),
            };
            let message = Outgoing {
                reliability,
                unordered: n % 7 == 0,
                context: n as u32,
                ..on_stream((n % 3) as u16)
            };
            let len = world.random(4000) as usize + 1;
            let now = world.desk.now;
            world
                .desk
                .sender
                .enqueue(now, &message, &vec![n as u8; len], false)
                .unwrap();
            sent += 1;
            world.step();
        }
        world.finish();
        let failed: Vec<_> = core::iter::from_fn(|| world.desk.sender.failed()).collect();
        assert!(
            failed
                .iter()
                .all(|f| f.message.reliability != Reliability::Full),
            "seed {seed}"
        );
        let arrived: usize = world.receiver.messages().values().map(Vec::len).sum();
        assert!(
            arrived + failed.len() >= sent,
            "seed {seed}: {arrived} and {} of {sent}",
            failed.len()
        );
    }
}

#[test]
fn a_message_that_was_half_sent_before_tsns_began_anew_is_given_up_all_the_same() {
    for (initial, anew) in [(u32::MAX, 9), (0xc000_0000, 0x4000_0001), (7, u32::MAX)] {
        let mut desk = Desk::new(config(), initial);
        send(&mut desk, 1, 3000, Reliability::Rtx(0));
        assert_eq!(desk.packet().len(), 1);
        desk.sack(initial, WIDE, &[]).unwrap();
        desk.sender.reset_tsn(Tsn(anew));
        assert_eq!(tsns(&desk.packet()), [anew]);
        desk.t3(A);
        assert_eq!(desk.sender.lost(), 0, "its chance is gone");
        let (cumulative, skipped) = forward(&mut desk);
        assert_eq!((cumulative, skipped[0].stream), (anew.wrapping_add(1), 1));
        desk.sack(anew.wrapping_add(1), WIDE, &[]).unwrap();
        assert!(desk.sender.is_idle());
    }
}
