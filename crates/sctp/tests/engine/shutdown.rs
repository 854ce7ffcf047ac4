//! How associations end: when all is said, at once, for a dead peer, by force.

use std::time::Duration;

use headwater_sctp::association::SendError;
use headwater_sctp::config::AssocConfig;
use headwater_sctp::event::{Down, Event};
use headwater_sctp::send::{Outgoing, Reliability};

use crate::sim::chance::{Chance, for_seeds};
use crate::sim::network::Faults;
use crate::sim::{Pair, Setup};

const LONG: Duration = Duration::from_secs(4 * 3600);

fn patient(config: &mut AssocConfig) {
    config.association_retransmissions = 100;
    config.path_retransmissions = 100;
    config.init_retransmissions = 100;
}

fn over(pair: &Pair) -> bool {
    (0..2).all(|side| pair.down(side).is_some())
}

/// Everything accepted before a shutdown comes, whoever shuts down and whenever, even both at once.
#[test]
fn what_was_accepted_before_a_shutdown_comes() {
    for_seeds(3200, |seed| {
        let mut chance = Chance::new(seed);
        let mut setup = Setup::new(seed);
        setup.faults = Faults::by(&mut chance);
        let mtu = setup.faults.mtu.min(1452);
        let mut pair = setup
            .each(|config| {
                patient(config);
                config.mtu = mtu;
            })
            .together();
        for _ in 0..chance.below(30) {
            let (side, stream) = (chance.below(2), chance.below(3) as u16);
            pair.send_all(
                side,
                stream,
                false,
                1 + chance.below(4000),
                Reliability::Full,
            );
        }
        for _ in 0..chance.below(20) {
            pair.step();
        }
        pair.shutdown(chance.below(2));
        for _ in 0..chance.below(20) {
            pair.step();
        }
        if chance.coin() && pair.down(0).is_none() && pair.down(1).is_none() {
            pair.shutdown(0);
            pair.shutdown(1);
        }
        assert!(
            pair.run_until(LONG, over),
            "{:?} {:?}",
            pair.ends[0].events,
            pair.ends[1].events
        );
        for side in [0, 1] {
            assert_eq!(pair.down(side), Some(Down::Shutdown), "side {side}");
        }
        pair.settle();
        pair.run_for(Duration::from_secs(1000));
        for end in &mut pair.ends {
            end.endpoint
                .release(pair.now, end.id.expect("an association"));
            assert_eq!(
                end.endpoint.timeout(),
                None,
                "a timer runs when all is over"
            );
        }
    });
}

#[test]
fn a_receiver_that_reads_late_still_gets_all() {
    let mut pair = Setup::new(3).together();
    pair.ends[1].lazy = true;
    for _ in 0..50 {
        pair.send_all(0, 0, false, 1000, Reliability::Full);
    }
    pair.shutdown(0);
    assert!(pair.run_until(LONG, over));
    pair.read(1);
    pair.settle();
}

#[test]
fn nothing_is_sent_after_a_shutdown() {
    let mut pair = Setup::new(3).together();
    pair.shutdown(0);
    let message = Outgoing {
        stream: 0,
        ppid: 0,
        unordered: false,
        sack_now: false,
        reliability: Reliability::Full,
        context: 0,
        to: None,
        key: None,
    };
    let id = pair.id(0);
    let refused = pair.ends[0]
        .endpoint
        .send(pair.now, id, &message, b"late", false);
    assert_eq!(refused, Err(SendError::Closed));
    pair.run_until(LONG, |pair| {
        pair.saw(1, |event| matches!(event, Event::PeerShutdown))
    });
    let id = pair.id(1);
    let refused = pair.ends[1]
        .endpoint
        .send(pair.now, id, &message, b"late", false);
    assert_eq!(refused, Err(SendError::Closed));
}

#[test]
fn an_abort_tells_the_peer_why() {
    let mut pair = Setup::new(3).together();
    pair.send_all(0, 0, false, 100_000, Reliability::Full);
    pair.run_for(Duration::from_millis(7));
    let id = pair.id(1);
    pair.ends[1].endpoint.abort(pair.now, id, b"enough");
    assert!(pair.run_until(LONG, over));
    assert!(
        matches!(pair.down(1), Some(Down::Aborted { by_peer: false, .. })),
        "{:?}",
        pair.down(1)
    );
    let Some(Down::Aborted {
        by_peer: true,
        causes,
    }) = pair.down(0)
    else {
        panic!("{:?}", pair.down(0));
    };
    assert!(
        format!("{causes:?}").contains(&format!("{:?}", b"enough")),
        "{causes:?}"
    );
}

#[test]
fn a_dead_peer_ends_the_association_after_its_retransmissions() {
    for_seeds(400, |seed| {
        let mut chance = Chance::new(seed);
        let retransmissions = chance.pick(&[0, 1, 4, 10]);
        let mut pair = Setup::new(seed)
            .each(|config| {
                config.association_retransmissions = retransmissions;
                config.path_retransmissions = retransmissions;
            })
            .together();
        pair.run_for(Duration::from_secs(1));
        let there = pair.ends[1].addresses[0];
        pair.net.cut(there);
        // With data, in shutdown, or idle, where heartbeats notice.
        match chance.below(3) {
            0 => pair.send_all(0, 0, false, 5000, Reliability::Full),
            1 => pair.shutdown(0),
            _ => {}
        }
        assert!(
            pair.run_until(LONG, |pair| pair.down(0).is_some()),
            "nobody notices"
        );
        assert_eq!(pair.down(0), Some(Down::Unreachable));
        let id = pair.id(0);
        pair.ends[0].endpoint.release(pair.now, id);
        assert_eq!(pair.ends[0].endpoint.timeout(), None);
    });
}

/// RFC 9260 9.2: T5-shutdown-guard is five times RTO.Max.
#[test]
fn a_shutdown_that_nobody_answers_takes_five_times_the_longest_timeout() {
    let mut pair = Setup::new(1)
        .each(|config| {
            config.guard = None;
            config.rto.max = Duration::from_secs(2);
            config.association_retransmissions = 1000;
            config.path_retransmissions = 1000;
        })
        .together();
    pair.net.cut(pair.ends[1].addresses[0]);
    pair.shutdown(0);
    pair.run_for(Duration::from_millis(9_900));
    assert_eq!(pair.down(0), None);
    pair.run_for(Duration::from_millis(200));
    assert!(
        matches!(pair.down(0), Some(Down::Aborted { by_peer: false, .. })),
        "{:?}",
        pair.down(0)
    );
}

#[test]
fn who_lets_go_of_an_open_association_aborts_it() {
    let mut pair = Setup::new(3).together();
    let id = pair.id(0);
    pair.ends[0].endpoint.release(pair.now, id);
    assert!(pair.run_until(LONG, |pair| pair.down(1).is_some()));
    assert!(matches!(
        pair.down(1),
        Some(Down::Aborted { by_peer: true, .. })
    ));
}

#[test]
fn an_association_without_traffic_closes_itself_when_told_to() {
    let mut pair = Setup::new(3)
        .each(|config| config.autoclose = Some(Duration::from_secs(5)))
        .together();
    exchange(&mut pair);
    assert!(
        pair.run_until(Duration::from_secs(60), over),
        "{:?}",
        pair.ends[0].events
    );
}

fn exchange(pair: &mut Pair) {
    pair.send_all(0, 0, false, 100, Reliability::Full);
    pair.until_delivered(LONG);
}
