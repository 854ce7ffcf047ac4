//! What a chunk costs does not grow with what waits here, whatever the peer sends: sixteen times as many cost no more each.

use super::*;
use crate::work::assert_linear;

const MANY: u32 = 400;

fn taken(receiver: &mut Receiver, chunk: &Data) {
    receiver.on_data(chunk).expect("a right chunk");
    receiver.end_of_packet();
}

/// A window that about half of so many chunks of 16 bytes fill.
fn narrow(interleave: bool, count: u32) -> Receiver {
    with(|config| {
        config.interleave = interleave;
        config.window = count as usize * 20;
    })
}

#[test]
fn small_messages_that_wait_behind_a_gap() {
    assert_linear(MANY, |count| {
        let mut receiver = with(|config| config.window = 1 << 24);
        for nth in 1..count {
            taken(&mut receiver, &data(nth, 0, nth as u16, "BE", &[1; 16]));
        }
        taken(&mut receiver, &data(0, 0, 0, "BE", &[1; 16]));
        assert_eq!(receiver.ready.len(), count as usize);
    });
}

#[test]
fn chunks_that_push_out_the_highest() {
    for interleave in [false, true] {
        // Whole messages out of turn, beginnings, and what has no beginning.
        for parts in ["BE", "B", ""] {
            assert_linear(MANY, |count| {
                let mut receiver = narrow(interleave, count);
                // From the highest down: each one is lower than what waits.
                for nth in (1..count).rev() {
                    let fragment = u32::from(!parts.contains('B'));
                    let chunk = match interleave {
                        false => data(nth, 0, nth as u16, parts, &[1; 16]),
                        true => idata(nth, 0, nth, fragment, parts, &[1; 16]),
                    };
                    taken(&mut receiver, &chunk);
                }
                assert!(receiver.used() > receiver.config.window);
            });
        }
    }
}

#[test]
fn growing_messages_whose_turn_has_not_come() {
    for interleave in [false, true] {
        assert_linear(MANY, |count| {
            let mut receiver = with(|config| {
                config.interleave = interleave;
                config.window = count as usize * 80;
                config.partial_delivery_point = 1;
            });
            for nth in 1..count / 3 {
                let chunk = match interleave {
                    false => data(3 * nth, 0, nth as u16, "B", &[1; 16]),
                    true => idata(3 * nth, 0, nth, 0, "B", &[1; 16]),
                };
                taken(&mut receiver, &chunk);
            }
            for nth in 1..count / 3 {
                let chunk = match interleave {
                    false => data(3 * nth + 1, 0, nth as u16, "", &[1; 16]),
                    true => idata(3 * nth + 1, 0, nth, 1, "", &[1; 16]),
                };
                taken(&mut receiver, &chunk);
            }
        });
    }
}

#[test]
fn forward_tsns_and_resets_that_skip_nothing() {
    for interleave in [false, true] {
        assert_linear(MANY, |count| {
            let mut receiver = with(|config| {
                config.interleave = interleave;
                config.window = 1 << 24;
            });
            for nth in 0..count / 2 {
                // Of each kind one that waits: for its turn, and for its beginning.
                let (number, at) = (10 + nth, count + 2 * nth);
                let (whole, rest) = match interleave {
                    false => (
                        data(at, 0, number as u16, "BE", b"x"),
                        data(at + 1, 0, number as u16, "", b"x"),
                    ),
                    true => (
                        idata(at, 0, 2 * number, 0, "BE", b"x"),
                        idata(at + 1, 0, 2 * number + 1, 3, "", b"x"),
                    ),
                };
                taken(&mut receiver, &whole);
                if interleave || nth % 2 == 0 {
                    taken(&mut receiver, &rest);
                }
            }
            for nth in 0..count / 2 {
                let streams = [skipped(0, 1, false), skipped(1, nth, false)];
                receiver.skip(FIRST.plus(nth), streams.into_iter());
                receiver.reset_streams(&[1, 2, 3]);
            }
        });
    }
}

#[test]
fn small_parts_of_a_message_that_is_delivered_early() {
    assert_linear(MANY, |count| {
        let mut receiver = with(|config| {
            config.window = 1 << 24;
            config.partial_delivery_point = 1;
        });
        for nth in 0..count {
            let parts = if nth == 0 { "B" } else { "" };
            taken(&mut receiver, &data(nth, 0, 0, parts, b"x"));
            assert_eq!(receiver.front().expect("a part").len, nth as usize + 1);
        }
    });
}

#[test]
fn sacks_of_many_gaps_in_packets_of_any_length() {
    assert_linear(MANY, |count| {
        let mut receiver = with(|config| config.window = 1 << 24);
        let mut bytes = Vec::new();
        for nth in 1..count {
            taken(&mut receiver, &data(2 * nth, 0, 0, "BEU", &[1; 16]));
            bytes.clear();
            let mut packet = crate::wire::PacketBuilder::begin(&mut bytes, 1, 2, 3, 65_000);
            assert!(receiver.write_sack(&mut packet));
            packet.finish(None, false);
        }
        // As many as a packet of an ordinary length would have had.
        assert!(bytes.len() > 1300 && bytes.len() < 1500);
    });
}

#[test]
fn resets_of_all_streams_where_unordered_fragments_wait() {
    assert_linear(MANY, |count| {
        let mut receiver = with(|config| {
            config.interleave = true;
            config.window = 1 << 24;
        });
        for nth in 1..count {
            taken(&mut receiver, &idata(nth, 0, nth, 1, "U", b"x"));
        }
        for _ in 1..count {
            receiver.reset_streams(&[]);
        }
        assert_eq!(receiver.pieces.len(), count as usize - 1);
    });
}
