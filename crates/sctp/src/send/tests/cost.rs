//! What a SACK, a message or a request costs does not grow with what is outstanding, queued or lost: sixteen times as many cost no
//! more each.

use super::*;
use crate::send::MOST_TAKEN_BACK;
use crate::work::assert_linear;

/// More than the checks of a debug build look at.
const MANY: u32 = 600;

/// A sender of so many streams whose windows take everything.
fn wide(streams: u16, interleave: bool) -> Desk {
    let mut settings = config();
    settings.max_burst = 0;
    settings.interleave = interleave;
    let mut desk = Desk::new(settings.clone(), 1);
    desk.sender = Sender::new(settings, Tsn(1), streams, 1 << 24);
    desk.paths[A]
        .window
        .on_ack(Time(0), 1 << 20, 1 << 20, true, false);
    desk
}

/// All that may leave now.
fn flush(desk: &mut Desk) {
    let mut bytes = Vec::new();
    while desk.sender.wants(desk.now, A, &desk.paths) {
        bytes.clear();
        let mut packet = crate::wire::PacketBuilder::begin(&mut bytes, 1, 2, 3, MTU);
        let (paths, timers) = (&mut desk.paths, &mut desk.timers);
        if desk.sender.fill(desk.now, A, paths, timers, &mut packet) == 0 {
            return;
        }
    }
}

fn sack(desk: &mut Desk, cumulative: u32, gaps: &[(u16, u16)]) {
    let mut bytes = Vec::new();
    let mut packet = crate::wire::PacketBuilder::begin(&mut bytes, 2, 1, 3, MTU);
    packet.sack(Tsn(cumulative), 1 << 24, gaps, &[]);
    packet.finish(None, false);
    let packet = crate::wire::Packet::parse(&bytes).unwrap();
    let Some(Ok(crate::wire::Chunk::Sack(sack))) = packet.chunks().next() else {
        panic!("no SACK");
    };
    let (paths, timers) = (&mut desk.paths, &mut desk.timers);
    desk.sender.on_sack(desk.now, &sack, paths, timers).unwrap();
}

#[test]
fn sacks_beyond_a_large_hole() {
    // Left lost, and sent again at once.
    for again in [false, true] {
        assert_linear(MANY, |count| {
            let mut desk = wide(1, false);
            (0..count).for_each(|_| desk.send(0, 4));
            flush(&mut desk);
            let half = (count / 2) as u16;
            for nth in 1..half {
                sack(&mut desk, 0, &[(half, half + nth)]);
                if again {
                    flush(&mut desk);
                }
            }
            assert!(desk.sender.lost() > 0 || again);
            desk.check();
        });
    }
}

#[test]
fn retransmissions_that_arrive_one_by_one_from_behind() {
    assert_linear(MANY, |count| {
        let mut desk = wide(1, false);
        (0..count).for_each(|_| desk.send(0, 4));
        flush(&mut desk);
        for nth in (2..count as u16).rev() {
            sack(&mut desk, 0, &[(nth, count as u16)]);
            flush(&mut desk);
        }
        desk.check();
    });
}

#[test]
fn messages_in_parts_that_are_given_up() {
    for sent in [false, true] {
        assert_linear(MANY, |count| {
            let mut desk = wide(count as u16, true);
            let ttl = Reliability::Ttl(ms(5));
            for stream in 0..count as u16 {
                let message = Outgoing {
                    reliability: ttl,
                    ..on_stream(stream % 2)
                };
                let message = match sent {
                    true => Outgoing { stream, ..message },
                    false => message,
                };
                for more in [true, false] {
                    desk.sender
                        .enqueue(desk.now, &message, b"part", more)
                        .unwrap();
                    if sent && more {
                        flush(&mut desk);
                    }
                }
            }
            desk.now = desk.now + ms(10);
            desk.sender.expire(desk.now);
            assert_eq!(desk.sender.unsent(), 0);
            desk.check();
        });
    }
}

#[test]
fn parts_of_messages_that_are_held_back() {
    assert_linear(MANY, |count| {
        let mut desk = wide(1, true);
        // All wait for the end of this one.
        desk.sender
            .enqueue(desk.now, &on_stream(0), b"begun", true)
            .unwrap();
        let unordered = Outgoing {
            unordered: true,
            ..on_stream(0)
        };
        for nth in 0..count {
            let more = nth % 3 > 0;
            desk.sender
                .enqueue(desk.now, &unordered, b"part", more)
                .unwrap();
            assert!(!desk.sender.stream_is_idle(0));
        }
        desk.sender
            .enqueue(desk.now, &on_stream(0), b"end", false)
            .unwrap();
        flush(&mut desk);
        desk.check();
    });
}

#[test]
fn timeouts_and_lost_paths_where_much_is_outstanding() {
    for goes in [false, true] {
        assert_linear(MANY, |count| {
            let mut desk = wide(1, false);
            (0..count).for_each(|_| desk.send(0, 4));
            flush(&mut desk);
            for _ in 0..count {
                let (paths, timers) = (&mut desk.paths, &mut desk.timers);
                match goes {
                    true => desk.sender.remove_path(desk.now, A, paths, timers),
                    false => desk.sender.on_t3(desk.now, A, paths, timers),
                }
            }
            assert_eq!(desk.sender.lost(), count as usize);
            desk.check();
        });
    }
}

#[test]
fn streams_that_are_all_held_and_reset_again_and_again() {
    assert_linear(4000, |count| {
        let mut desk = wide(count as u16, false);
        for _ in 0..count {
            desk.sender.hold_streams(&[]);
            desk.sender.hold_streams(&[]);
            assert!(desk.sender.all_streams_are_idle());
            desk.sender.reset_streams(&[]);
        }
    });
}

#[test]
fn forward_tsns_that_are_not_answered() {
    assert_linear(MANY, |count| {
        let mut desk = wide(1, false);
        let message = Outgoing {
            reliability: Reliability::Ttl(ms(5)),
            ..on_stream(0)
        };
        for _ in 0..count {
            desk.sender
                .enqueue(desk.now, &message, b"text", false)
                .unwrap();
        }
        flush(&mut desk);
        desk.now = desk.now + ms(10);
        desk.sender.expire(desk.now);
        for _ in 0..count {
            let plan = desk.sender.forward_plan(10).expect("to be told");
            assert_eq!(plan.cumulative, Tsn(count));
        }
    });
}

#[test]
fn a_peer_that_takes_back_over_and_over_is_believed_no_more() {
    let count = 500;
    let mut desk = wide(1, false);
    (0..count).for_each(|_| desk.send(0, 4));
    flush(&mut desk);
    let whole = desk.sender.outstanding();
    for _ in 0..=MOST_TAKEN_BACK / 499 {
        // The first one may be lost meanwhile, and wait to be sent again.
        sack(&mut desk, 0, &[(2, count)]);
        assert!(desk.sender.outstanding() <= 4);
        sack(&mut desk, 0, &[]);
        assert!(desk.sender.outstanding() >= whole - 4);
    }
    sack(&mut desk, 0, &[(2, count)]);
    assert!(desk.sender.outstanding() >= whole - 4);
    // What it has for good counts, and lets it be believed again.
    sack(&mut desk, u32::from(count), &[]);
    assert!(desk.sender.is_idle());
    (0..count).for_each(|_| desk.send(0, 4));
    flush(&mut desk);
    sack(&mut desk, u32::from(count), &[(2, count)]);
    assert_eq!(desk.sender.outstanding(), 4);
}
