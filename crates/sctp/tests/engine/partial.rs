//! Partial reliability: what is given up may be missing, never damaged, and holds nothing else up.

use std::time::Duration;

use headwater_sctp::event::Event;
use headwater_sctp::send::{Policy, Reliability};

use crate::sim::Setup;
use crate::sim::chance::{Chance, for_seeds};

const LONG: Duration = Duration::from_secs(4 * 3600);

#[test]
fn given_up_messages_hold_nothing_up() {
    for_seeds(2000, |seed| {
        let mut chance = Chance::new(seed);
        let interleave = chance.coin();
        let mut pair = Setup::new(seed)
            .faults(|faults| {
                faults.loss = chance.pick(&[0, 50, 200]);
                faults.jitter = Duration::from_millis(chance.pick(&[0, 20]));
                faults.duplicate = 20;
            })
            .each(|config| {
                config.interleave = interleave;
                config.association_retransmissions = 100;
                config.path_retransmissions = 100;
                config.init_retransmissions = 100;
            })
            .together();
        for _ in 0..120 {
            let reliability = match chance.below(4) {
                0 => Reliability::Full,
                1 => Reliability::Ttl(Duration::from_millis(chance.pick(&[1, 30, 1500]))),
                2 => Reliability::Rtx(chance.pick(&[0, 1, 3])),
                _ => Reliability::Prio(chance.pick(&[1, 7])),
            };
            let largest = chance.pick(&[100, 4000]);
            let len = 1 + chance.below(largest);
            pair.send_all(
                chance.below(2),
                chance.below(4) as u16,
                chance.per_mille(300),
                len,
                reliability,
            );
            if chance.per_mille(200) {
                pair.step();
            }
        }
        pair.run_until(LONG, |pair| {
            pair.ends.iter().all(|end| end.ledger.all_reliable_came())
        });
        pair.until_shut_down(chance.below(2));
        pair.settle_partial();
    });
}

#[test]
fn nothing_is_given_up_on_a_good_line() {
    let mut pair = Setup::new(1).together();
    for _ in 0..200 {
        pair.send_all(0, 0, false, 2000, Reliability::Rtx(0));
    }
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.ends[0].ledger.delivered, 200);
    assert!(!pair.saw(0, |event| matches!(event, Event::SendFailed(_))));
}

#[test]
fn an_expired_message_is_reported() {
    let mut pair = Setup::new(1).together();
    let there = pair.ends[1].addresses[0];
    pair.net.cut(there);
    pair.send_all(
        0,
        0,
        false,
        2000,
        Reliability::Ttl(Duration::from_millis(50)),
    );
    pair.run_for(Duration::from_secs(20));
    assert!(pair.saw(0, |event| matches!(event, Event::SendFailed(_))));
    let association = pair.ends[0].endpoint.association(pair.id(0));
    let sender = association.expect("open").sender();
    let counted = |stream, policy| {
        let given_up = sender.abandoned(stream, policy);
        (given_up.unsent, given_up.sent)
    };
    assert_eq!(counted(None, None), (0, 1));
    assert_eq!(counted(Some(0), Some(Policy::Ttl)), (0, 1));
    assert_eq!(counted(Some(0), Some(Policy::Rtx)), (0, 0));
    assert_eq!(counted(Some(1), None), (0, 0));
    pair.net.mend(there);
    pair.send_all(0, 0, false, 2000, Reliability::Full);
    pair.run_until(LONG, |pair| pair.ends[0].ledger.all_reliable_came());
    pair.until_shut_down(0);
    pair.settle_partial();
}
