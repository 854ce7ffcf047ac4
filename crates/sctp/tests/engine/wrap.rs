//! TSNs that wrap and begin anew, messages given up halfway, resets and loss, all at once: no step goes on for ever, no
//! association breaks, and what must come does.

use std::time::Duration;

use headwater_sctp::reset::Ask;
use headwater_sctp::send::{Outgoing, Reliability};

use crate::sim;
use crate::sim::chance::{Chance, for_seeds};
use crate::sim::ledger::Ledger;
use crate::sim::{Pair, Setup};

const LONG: Duration = Duration::from_secs(4 * 3600);
const STREAMS: u16 = 4;

fn reliability(chance: &mut Chance) -> Reliability {
    match chance.below(4) {
        0 => Reliability::Full,
        1 => Reliability::Ttl(Duration::from_millis(chance.pick(&[1, 30, 400]))),
        2 => Reliability::Rtx(chance.pick(&[0, 0, 1])),
        _ => Reliability::Prio(chance.pick(&[1, 7])),
    }
}

/// A message, or a part of one of which more is to come.
fn send(pair: &mut Pair, chance: &mut Chance, open: &mut [Option<(u16, bool)>; 2]) {
    let side = chance.below(2);
    let begun = open[side].take();
    let (stream, unordered) =
        begun.unwrap_or_else(|| (chance.below(STREAMS.into()) as u16, chance.coin()));
    let message = Outgoing {
        stream,
        unordered,
        reliability: reliability(chance),
        ..Outgoing::default()
    };
    let more = chance.per_mille(200);
    let most = chance.pick(&[40, 1400, 9000]);
    let bytes = chance.bytes(1 + chance.clone().below(most));
    let (now, id) = (pair.now, pair.id(side));
    let sent = pair.ends[side]
        .endpoint
        .send(now, id, &message, &bytes, more);
    open[side] = match sent {
        Ok(_) => more.then_some((stream, unordered)),
        Err(_) => begun,
    };
}

fn ask(chance: &mut Chance) -> Ask {
    match chance.below(4) {
        0 => Ask::Association,
        1 => Ask::Outgoing(Vec::new()),
        2 => Ask::Outgoing(vec![chance.below(STREAMS.into()) as u16]),
        _ => Ask::Incoming(vec![chance.below(STREAMS.into()) as u16]),
    }
}

#[test]
fn tsns_wrap_and_begin_anew_under_messages_given_up_and_loss() {
    for_seeds(150, |seed| {
        let mut chance = Chance::new(seed);
        let interleave = chance.coin();
        let near = chance.below(60) as u32;
        let initial = chance.pick(&[u32::MAX - near, (1 << 31) - near, near]);
        let window = chance.pick(&[4_000, 30_000, 1 << 20]);
        let mut pair = Setup::new(seed)
            .faults(|faults| {
                faults.loss = chance.pick(&[0, 50, 250]);
                faults.jitter = Duration::from_millis(chance.pick(&[0, 20]));
                faults.duplicate = 20;
            })
            .each(|config| {
                config.outbound = STREAMS;
                config.interleave = interleave;
                // Else, where a message's end comes late, its delivery holds back more others than so small a window lets in, and the
                // peer, which may send but one chunk into a shut window, can't send that end before them.
                config.interleaved_delivery = interleave && window == 4_000;
                config.initial_tsn = Some(initial);
                config.receive_window = window;
                config.association_retransmissions = 1000;
                config.path_retransmissions = 1000;
                config.init_retransmissions = 1000;
            })
            .together();
        // What the parts of a message are, the ledger can't know.
        pair.ends.iter_mut().for_each(|end| end.ledger.forget());
        let mut open = [None; 2];
        for _ in 0..150 {
            match chance.below(20) {
                0 => {
                    let what = ask(&mut chance);
                    pair.change_streams(chance.below(2), what);
                }
                1 => {
                    let side = chance.below(2);
                    pair.ends[side].lazy = chance.coin();
                }
                2..14 => send(&mut pair, &mut chance, &mut open),
                _ => {
                    for _ in 0..chance.below(12) {
                        pair.step();
                    }
                }
            }
        }
        for (side, open) in open.into_iter().enumerate() {
            pair.ends[side].lazy = false;
            finish(&mut pair, side, open);
        }
        pair.run_until(LONG, |pair| pair.ends.iter().all(is_quiet));
        pair.ends
            .iter_mut()
            .for_each(|end| end.ledger = Ledger::after_restart(seed));
        for stream in 0..STREAMS {
            pair.send_all(0, stream, false, 100, Reliability::Full);
            pair.send_all(1, stream, true, 3000, Reliability::Full);
        }
        pair.until_delivered(LONG);
        pair.until_shut_down(chance.below(2));
    });
}

/// The end of the message that was begun.
fn finish(pair: &mut Pair, side: usize, open: Option<(u16, bool)>) {
    let Some((stream, unordered)) = open else {
        return;
    };
    let message = Outgoing {
        stream,
        unordered,
        ..Outgoing::default()
    };
    let (now, id) = (pair.now, pair.id(side));
    while pair.ends[side]
        .endpoint
        .send(now, id, &message, b"end", false)
        .is_err()
    {
        assert!(pair.step(), "no room, and nothing happens");
    }
}

fn is_quiet(end: &sim::End) -> bool {
    let association = end.id.and_then(|id| end.endpoint.association(id));
    association.is_none_or(|one| one.sender().is_idle())
}
