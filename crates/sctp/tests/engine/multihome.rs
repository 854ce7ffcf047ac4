//! Several paths: found at the beginning, confirmed by heartbeats, left when they fail, taken again when they are mended.

use std::time::Duration;

use headwater_sctp::event::{Down, Event, PathChange};
use headwater_sctp::path::PathState;
use headwater_sctp::send::{Outgoing, Reliability};

use crate::sim;
use crate::sim::chance::{Chance, for_seeds};
use crate::sim::{Pair, Setup};

const LONG: Duration = Duration::from_secs(4 * 3600);

fn states(pair: &Pair, side: usize) -> Vec<PathState> {
    let association = pair.ends[side]
        .endpoint
        .association(pair.id(side))
        .expect("it is open");
    association
        .paths()
        .iter()
        .map(|(_, path)| path.state)
        .collect()
}

#[test]
fn all_paths_are_confirmed() {
    for_seeds(300, |seed| {
        let mut pair = Setup::new(seed)
            .paths(3)
            .faults(|faults| faults.loss = 50)
            .together();
        let all = |pair: &Pair| (0..2).all(|side| states(pair, side) == [PathState::Active; 3]);
        assert!(
            pair.run_until(Duration::from_secs(600), all),
            "{:?} {:?}",
            states(&pair, 0),
            states(&pair, 1)
        );
    });
}

#[test]
fn data_goes_on_when_a_path_is_cut_and_comes_back_when_it_is_mended() {
    for_seeds(900, |seed| {
        let mut chance = Chance::new(seed);
        let loss = chance.pick(&[0, 20]);
        let potentially_failed = chance.pick(&[0, 1, 5]);
        let mut pair = Setup::new(seed)
            .paths(2)
            .faults(|faults| faults.loss = loss)
            .each(|config| {
                config.potentially_failed = potentially_failed;
                config.association_retransmissions = 30;
            })
            .together();
        pair.run_for(Duration::from_secs(90));
        let cut = (chance.below(2), chance.below(2));
        let address = pair.ends[cut.0].addresses[cut.1];
        let at = chance.below(60);
        for n in 0..60 {
            if n == at {
                pair.net.cut(address);
            }
            pair.send_all(
                chance.below(2),
                chance.below(3) as u16,
                false,
                1 + chance.below(5000),
                Reliability::Full,
            );
            pair.run_for(Duration::from_millis(chance.below(200) as u64));
        }
        pair.until_delivered(LONG);
        pair.net.mend(address);
        let all = |pair: &Pair| (0..2).all(|side| states(pair, side) == [PathState::Active; 2]);
        assert!(
            pair.run_until(LONG, all),
            "{:?} {:?}",
            states(&pair, 0),
            states(&pair, 1)
        );
        pair.send_all(0, 0, false, 5000, Reliability::Full);
        pair.until_delivered(LONG);
        pair.until_shut_down(chance.below(2));
    });
}

#[test]
fn paths_that_fail_in_turn_lose_nothing() {
    for_seeds(360, |seed| {
        let mut chance = Chance::new(seed);
        let mut pair = Setup::new(seed)
            .paths(3)
            .each(|config| {
                config.association_retransmissions = 200;
                config.path_retransmissions = 2;
                config.heartbeat_interval = Duration::from_secs(2);
            })
            .together();
        for _ in 0..20 {
            let path = chance.below(3);
            let address = pair.ends[1].addresses[path];
            if chance.coin() {
                pair.net.cut(address);
            } else {
                pair.net.mend(address);
            }
            for _ in 0..3 {
                pair.send_all(
                    chance.below(2),
                    0,
                    false,
                    1 + chance.below(3000),
                    Reliability::Full,
                );
            }
            pair.run_for(Duration::from_secs(chance.below(20) as u64));
        }
        (0..3).for_each(|path| pair.net.mend(sim::address(1, path)));
        pair.until_delivered(LONG);
        pair.until_shut_down(0);
    });
}

#[test]
fn a_failed_path_is_told_and_the_last_one_ends_the_association() {
    let mut pair = Setup::new(5).paths(2).together();
    pair.run_for(Duration::from_secs(60));
    let (first, second) = (sim::address(1, 0), sim::address(1, 1));
    pair.net.cut(first);
    pair.send_all(0, 0, false, 5000, Reliability::Full);
    pair.until_delivered(LONG);
    let failed = |pair: &Pair| {
        pair.saw(0, |event| {
            matches!(event, Event::Path { addr, change: PathChange::State(PathState::Inactive) } if *addr == first)
        })
    };
    assert!(pair.run_until(LONG, failed), "{:?}", pair.ends[0].events);
    assert!(pair.down(0).is_none());
    pair.net.cut(second);
    pair.send_all(0, 0, false, 5000, Reliability::Full);
    assert!(pair.run_until(LONG, |pair| pair.down(0).is_some()));
    assert_eq!(pair.down(0), Some(Down::Unreachable));
}

/// The primary path may be chosen; data goes there.
#[test]
fn data_follows_the_primary_path() {
    let mut pair = Setup::new(5).paths(2).together();
    pair.run_for(Duration::from_secs(60));
    let second = sim::address(1, 1);
    let id = pair.id(0);
    assert_eq!(
        pair.ends[0].endpoint.change(id, |a| a.set_primary(second)),
        Some(true)
    );
    pair.net.tape = Some(Vec::new());
    pair.send_all(0, 0, false, 50_000, Reliability::Full);
    pair.until_delivered(LONG);
    let tape = pair.net.tape.take().expect("a tape");
    let mut data = tape
        .iter()
        .filter(|flight| flight.bytes[12] == sim::craft::DATA && flight.bytes.len() > 1000);
    assert!(data.all(|flight| flight.to == second));
}

/// An address may be chosen before it has answered: data takes the other one until then.
#[test]
fn the_primary_may_be_chosen_before_it_has_answered() {
    let mut pair = Setup::new(5).paths(2).together();
    let (first, second) = (sim::address(1, 0), sim::address(1, 1));
    let id = pair.id(0);
    let confirmed = |pair: &Pair| {
        let path = |event: &Event| matches!(event, Event::Path { addr, change: PathChange::Confirmed } if *addr == second);
        pair.saw(0, path)
    };
    assert!(!confirmed(&pair), "too late for this test");
    pair.net.cut(second);
    assert_eq!(
        pair.ends[0].endpoint.change(id, |a| a.set_primary(second)),
        Some(true)
    );
    let went_to = |pair: &mut Pair| {
        pair.net.tape = Some(Vec::new());
        pair.send_all(0, 0, false, 50_000, Reliability::Full);
        pair.until_delivered(LONG);
        let tape = pair.net.tape.take().expect("a tape");
        let long = tape
            .iter()
            .filter(|flight| flight.bytes[12] == sim::craft::DATA && flight.bytes.len() > 1000);
        let mut to: Vec<_> = long.map(|flight| flight.to).collect();
        to.dedup();
        to
    };
    assert_eq!(went_to(&mut pair), [first]);
    pair.net.mend(second);
    assert!(pair.run_until(LONG, confirmed), "{:?}", pair.ends[0].events);
    assert_eq!(went_to(&mut pair), [second]);
}

/// A message may name the address that it goes to; those before and behind it go where they always do.
#[test]
fn a_message_goes_where_it_wants() {
    let mut pair = Setup::new(5).paths(2).together();
    pair.run_for(Duration::from_secs(60));
    let (usual, other) = (sim::address(1, 0), sim::address(1, 1));
    let id = pair.id(0);
    pair.net.tape = Some(Vec::new());
    for (text, to) in [(b"one", None), (b"two", Some(other)), (b"thr", Some(usual))] {
        let message = Outgoing {
            to,
            ..Default::default()
        };
        let end = &mut pair.ends[0];
        let sent = end.endpoint.send(pair.now, id, &message, text, false);
        assert_eq!(sent, Ok(()));
    }
    pair.ends[1].lazy = true;
    pair.run_for(Duration::from_secs(1));
    let tape = pair.net.tape.take().expect("a tape");
    let went = |text: &[u8]| {
        let has = |bytes: &[u8]| bytes.windows(3).any(|three| three == text);
        let flight = tape.iter().find(|flight| has(&flight.bytes));
        flight.map(|flight| flight.to)
    };
    assert_eq!(went(b"one"), Some(usual));
    assert_eq!(went(b"two"), Some(other));
    assert_eq!(went(b"thr"), Some(usual));
}

#[test]
fn longer_packets_are_found_and_a_path_that_shrinks_is_noticed() {
    let mut pair = Setup::new(5)
        .faults(|faults| faults.mtu = 4000)
        .each(|config| {
            config.mtu = 1200;
            config.most_mtu = 9000;
        })
        .together();
    pair.run_for(Duration::from_secs(120));
    let mtu = |pair: &Pair| {
        let association = pair.ends[0]
            .endpoint
            .association(pair.id(0))
            .expect("it is open");
        association
            .paths()
            .iter()
            .map(|(_, path)| path.mtu)
            .next()
            .expect("a path")
    };
    let found = mtu(&pair);
    assert!((3000..=4000).contains(&found), "{found} of 4000");
    pair.net.faults.mtu = 1300;
    pair.send_all(0, 0, false, 100_000, Reliability::Full);
    pair.until_delivered(LONG);
    assert!(mtu(&pair) <= 1300, "{}", mtu(&pair));
}
