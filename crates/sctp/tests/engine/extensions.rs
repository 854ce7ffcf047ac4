//! What RFCs beside 9260 add: interleaving, resets of streams, addresses that come and go, authentication, no checksum.

use std::time::Duration;

use headwater_sctp::auth::KeyError;
use headwater_sctp::event::{Event, Outcome, PathChange};
use headwater_sctp::send::{Outgoing, Reliability};

use crate::sim;
use crate::sim::chance::{Chance, for_seeds};
use crate::sim::{Pair, Setup, craft};

const LONG: Duration = Duration::from_secs(4 * 3600);

/// With interleaving, a short message on another stream passes a long one; without, it waits (RFC 8260).
#[test]
fn a_short_message_passes_a_long_one_when_interleaved() {
    use headwater_sctp::sched::SchedulerKind;
    let position = |interleave: bool| {
        let mut pair = Setup::new(9)
            .faults(|faults| faults.rate = Some(1_000_000))
            .each(|config| {
                config.interleave = interleave;
                config.scheduler = SchedulerKind::RoundRobin;
            })
            .together();
        assert_eq!(
            pair.ends[0]
                .endpoint
                .association(pair.id(0))
                .expect("open")
                .features()
                .interleave,
            interleave
        );
        pair.send_all(0, 0, false, 400_000, Reliability::Full);
        pair.run_for(Duration::from_millis(30));
        pair.send_all(0, 1, false, 100, Reliability::Full);
        let short = pair.now;
        pair.run_until(LONG, |pair| pair.ends[0].ledger.came(1));
        let took = pair.now.since(short);
        pair.until_delivered(LONG);
        (took, pair.now.since(short))
    };
    let (interleaved, all) = position(true);
    assert!(interleaved < all / 2, "{interleaved:?} of {all:?}");
    let (waits, all) = position(false);
    assert!(waits > all / 2, "{waits:?} of {all:?}");
}

#[test]
fn streams_are_reset_and_begin_anew() {
    for_seeds(960, |seed| {
        let mut chance = Chance::new(seed);
        let (loss, interleave) = (chance.pick(&[0, 50]), chance.coin());
        let mut pair = Setup::new(seed)
            .faults(|faults| faults.loss = loss)
            .each(|config| config.interleave = interleave)
            .together();
        for _ in 0..4 {
            for _ in 0..chance.below(10) {
                pair.send_all(
                    0,
                    chance.below(4) as u16,
                    false,
                    1 + chance.below(4000),
                    Reliability::Full,
                );
            }
            let streams = chance.pick(&[&[1_u16][..], &[0, 2], &[]]);
            let resets = pair.ends[1]
                .events
                .iter()
                .filter(|e| is_reset(e, true))
                .count();
            assert!(pair.reset_streams(0, streams), "a reset is refused");
            for _ in 0..chance.below(10) {
                pair.send_all(
                    0,
                    chance.below(4) as u16,
                    false,
                    1 + chance.below(4000),
                    Reliability::Full,
                );
            }
            let done = |pair: &Pair| {
                pair.ends[1]
                    .events
                    .iter()
                    .filter(|e| is_reset(e, true))
                    .count()
                    > resets
            };
            assert!(
                pair.run_until(LONG, done),
                "{:?} {:?}",
                pair.ends[0].events,
                pair.ends[1].events
            );
            let told = |pair: &Pair| pair.saw(0, |e| is_reset(e, false));
            assert!(pair.run_until(LONG, told), "{:?}", pair.ends[0].events);
        }
        pair.until_delivered(LONG);
        pair.until_shut_down(0);
    });
}

fn is_reset(event: &Event, wanted: bool) -> bool {
    matches!(event, Event::StreamsReset { incoming, outcome: Outcome::Done, .. } if *incoming == wanted)
}

#[test]
fn streams_are_added() {
    for_seeds(480, |seed| {
        let mut pair = Setup::new(seed)
            .faults(|faults| faults.loss = 50)
            .together();
        assert!(
            !pair.send(0, 12, false, 10, Reliability::Full),
            "stream 12 of 10"
        );
        assert!(pair.add_streams(0, 5));
        let added = |pair: &Pair| {
            pair.saw(0, |e| {
                matches!(
                    e,
                    Event::StreamsAdded {
                        outcome: Outcome::Done,
                        ..
                    }
                )
            })
        };
        assert!(pair.run_until(LONG, added), "{:?}", pair.ends[0].events);
        pair.send_all(0, 12, false, 5000, Reliability::Full);
        pair.until_delivered(LONG);
        pair.until_shut_down(1);
    });
}

#[test]
fn addresses_come_and_go_while_data_flows() {
    for_seeds(800, |seed| {
        let mut chance = Chance::new(seed);
        let loss = chance.pick(&[0, 30]);
        let mut pair = Setup::new(seed)
            .paths(2)
            .faults(|faults| faults.loss = loss)
            .each(|config| {
                config.authentication = true;
                config.address_reconfiguration = true;
                config.association_retransmissions = 50;
            })
            .together();
        let fresh = sim::address(0, 5);
        pair.send_all(0, 0, false, 20_000, Reliability::Full);
        assert!(pair.add_address(0, fresh));
        let added = |pair: &Pair| {
            pair.saw(
                1,
                |e| matches!(e, Event::Path { addr, change: PathChange::Added } if *addr == fresh),
            )
        };
        assert!(
            pair.run_until(LONG, added),
            "{:?} {:?}",
            pair.ends[0].events,
            pair.ends[1].events
        );
        pair.send_all(1, 0, false, 20_000, Reliability::Full);
        let gone = sim::address(0, 1);
        assert!(pair.remove_address(0, gone));
        let removed = |pair: &Pair| {
            pair.saw(
                1,
                |e| matches!(e, Event::Path { addr, change: PathChange::Removed } if *addr == gone),
            )
        };
        assert!(
            pair.run_until(LONG, removed),
            "{:?} {:?}",
            pair.ends[0].events,
            pair.ends[1].events
        );
        pair.send_all(0, 0, false, 20_000, Reliability::Full);
        pair.until_delivered(LONG);
        pair.until_shut_down(chance.below(2));
    });
}

/// Each message's packets are signed with the key that it names, or else the active one; the peer tells of each change.
#[test]
fn a_message_is_signed_with_its_own_key() {
    let keys = vec![(1, b"first".to_vec()), (2, b"second".to_vec())];
    let mut pair = Setup::new(4)
        .each(|config| {
            config.authentication = true;
            config.authenticated_chunks = vec![craft::DATA];
            config.shared_keys = keys.clone();
            config.active_key = 1;
        })
        .together();
    pair.ends[1].lazy = true;
    pair.ends[1].events.clear();
    let id = pair.id(0);
    let mut send = |key| {
        let message = Outgoing {
            key,
            ..Outgoing::default()
        };
        let end = &mut pair.ends[0];
        let sent = end.endpoint.send(pair.now, id, &message, b"text", false);
        assert_eq!(sent, Ok(()));
    };
    for key in [None, Some(2), Some(2), None, Some(77)] {
        send(key);
    }
    pair.run_for(Duration::from_secs(3));
    let told: Vec<_> = pair.ends[1].events.iter().collect();
    let changes = told.iter().filter_map(|event| match event {
        Event::NewKey(number) => Some(*number),
        _ => None,
    });
    let changes: Vec<_> = changes.collect();
    assert_eq!(changes, [1, 2, 1], "an unknown key is as none");
    let at_peer = pair.ends[1].endpoint.association(pair.id(1));
    assert_eq!(at_peer.map(|a| a.receiver().buffered()), Some(20));
}

#[test]
fn a_key_in_use_can_t_be_deactivated() {
    let mut pair = Setup::new(4)
        .each(|config| {
            config.authentication = true;
            config.shared_keys = vec![(1, b"first".to_vec())];
        })
        .together();
    let id = pair.id(0);
    let end = &mut pair.ends[0].endpoint;
    let mut deactivate = |key| end.change(id, |a| a.deactivate_key(key));
    assert_eq!(deactivate(0), Some(Err(KeyError::InUse)));
    assert_eq!(deactivate(9), Some(Err(KeyError::Unknown)));
    assert_eq!(deactivate(1), Some(Ok(())));
    pair.run_for(Duration::from_secs(1));
    assert!(pair.saw(0, |event| *event == Event::KeyFree(1)));
}

#[test]
fn chunks_are_no_longer_than_the_user_wants() {
    let mut pair = Setup::new(4)
        .each(|config| config.most_fragment = 500)
        .together();
    pair.net.tape = Some(Vec::new());
    pair.send_all(0, 0, false, 1000, Reliability::Full);
    pair.until_delivered(LONG);
    let tape = pair.net.tape.take().expect("a tape");
    let chunks = tape.iter().flat_map(|flight| craft::chunks(&flight.bytes));
    let data = chunks.filter(|(kind, ..)| *kind == craft::DATA);
    let lengths: Vec<usize> = data.map(|(_, _, value)| value.len() - 12).collect();
    assert_eq!(lengths, [500, 500]);
    let a = pair.ends[0].endpoint.association(pair.id(0)).expect("open");
    assert_eq!(a.fragmentation_point(), 500);
}

#[test]
fn authenticated_chunks_are_signed_and_unsigned_ones_dropped() {
    let mut pair = Setup::new(4)
        .each(|config| {
            config.authentication = true;
            config.authenticated_chunks = vec![craft::DATA, craft::SACK];
        })
        .apart();
    pair.net.tape = Some(Vec::new());
    let config = headwater_sctp::config::AssocConfig {
        authentication: true,
        authenticated_chunks: vec![craft::DATA, craft::SACK],
        ..Default::default()
    };
    pair.ends[1].endpoint.listen(1);
    pair.connect(0, &config);
    pair.until_up();
    for _ in 0..20 {
        pair.send_all(0, 0, false, 3000, Reliability::Full);
    }
    pair.until_delivered(LONG);
    let tape = pair.net.tape.take().expect("a tape");
    let mut signed = 0;
    for flight in &tape {
        let kinds: Vec<_> = craft::chunks(&flight.bytes)
            .iter()
            .map(|(kind, ..)| *kind)
            .collect();
        let wants = kinds
            .iter()
            .position(|kind| [craft::DATA, craft::SACK].contains(kind));
        if let Some(at) = wants {
            assert!(kinds[..at].contains(&craft::AUTH), "{kinds:?}");
            signed += 1;
        }
    }
    assert!(signed > 20);
    // The same data without its signature, and with a damaged one.
    let id = pair.id(1);
    let tag = pair.ends[1]
        .endpoint
        .association(id)
        .expect("open")
        .local_tag();
    let tsn = tape
        .iter()
        .flat_map(|flight| craft::chunks(&flight.bytes))
        .filter(|(kind, ..)| *kind == craft::DATA);
    let last = tsn
        .map(|(_, _, value)| craft::word(&value, 0))
        .max()
        .expect("data");
    let forged = craft::packet(
        sim::PORTS[0],
        sim::PORTS[1],
        tag,
        &[craft::data(last + 1, 0, 99, 7, b"forged")],
    );
    let (from, to) = (sim::address(0, 0), sim::address(1, 0));
    pair.net.inject(pair.now, from, to, forged);
    let mut damaged = tape
        .iter()
        .rfind(|f| f.bytes[12] == craft::AUTH)
        .expect("signed")
        .bytes
        .clone();
    let end = damaged.len() - 1;
    damaged[end] ^= 1;
    craft::seal(&mut damaged);
    pair.net.inject(pair.now, from, to, damaged);
    pair.run_for(Duration::from_secs(1));
    pair.send_all(0, 0, false, 3000, Reliability::Full);
    pair.until_delivered(LONG);
    pair.until_shut_down(0);
}

/// RFC 9653: in each direction by itself, and never for INIT and COOKIE ECHO.
#[test]
fn checksums_are_left_out_where_both_agree() {
    const DTLS: u32 = 1;
    for (both, wanted) in [
        ([Some(DTLS), Some(DTLS)], true),
        ([Some(DTLS), None], false),
        ([None, None], false),
        ([Some(DTLS), Some(2)], false),
    ] {
        let mut setup = Setup::new(4);
        (0..2).for_each(|side| setup.config[side].zero_checksum = both[side]);
        let config = setup.config[0].clone();
        let mut pair = setup.apart();
        pair.net.tape = Some(Vec::new());
        pair.ends[1].endpoint.listen(1);
        pair.connect(0, &config);
        pair.until_up();
        for side in [0, 1] {
            pair.send_all(side, 0, false, 5000, Reliability::Full);
        }
        pair.until_delivered(LONG);
        let tape = pair.net.tape.take().expect("a tape");
        let zero = |bytes: &[u8]| bytes[8..12] == [0; 4];
        for flight in &tape {
            let kind = flight.bytes[12];
            if [craft::INIT, craft::COOKIE_ECHO].contains(&kind) {
                assert!(!zero(&flight.bytes), "chunk {kind} without a checksum");
            }
        }
        assert_eq!(
            tape.iter().any(|flight| zero(&flight.bytes)),
            wanted,
            "{both:?}"
        );
    }
}

/// RFC 7053: the I bit brings the SACK at once.
#[test]
fn a_message_may_ask_for_its_acknowledgement_at_once() {
    let wait = |sack_now: bool| {
        let mut pair = Setup::new(4).together();
        pair.run_for(Duration::from_secs(5));
        let (id, begun) = (pair.id(0), pair.now);
        let message = Outgoing {
            stream: 0,
            ppid: 0,
            unordered: false,
            sack_now,
            reliability: Reliability::Full,
            context: 0,
            to: None,
            key: None,
        };
        pair.ends[0].events.clear();
        pair.ends[1].lazy = true;
        pair.ends[0]
            .endpoint
            .send(pair.now, id, &message, b"now", false)
            .expect("room");
        pair.run_until(LONG, |pair| pair.saw(0, |e| matches!(e, Event::Dry)));
        pair.now.since(begun)
    };
    assert!(wait(true) < Duration::from_millis(50), "{:?}", wait(true));
    assert!(wait(false) > Duration::from_millis(50), "{:?}", wait(false));
}

/// RFC 6525: the peer is asked to reset its streams, to add some, and both to begin everything anew.
#[test]
fn the_peers_streams_are_reset_and_added_on_request() {
    use headwater_sctp::reset::Ask;
    for_seeds(480, |seed| {
        let mut pair = Setup::new(seed)
            .faults(|faults| faults.loss = 30)
            .together();
        let wants = [
            Ask::Incoming(vec![0, 1]),
            Ask::AddIncoming(3),
            Ask::Association,
        ];
        for (n, ask) in wants.into_iter().enumerate() {
            for stream in 0..3 {
                pair.send_all(0, stream, false, 3000, Reliability::Full);
                pair.send_all(1, stream, false, 3000, Reliability::Full);
            }
            if ask == Ask::Association {
                // What the peer still has to send is given up then (RFC 6525 5.2.4).
                pair.until_delivered(LONG);
            }
            assert!(pair.change_streams(0, ask), "request {n}");
            let done = |pair: &Pair| {
                pair.saw(0, |event| match event {
                    Event::StreamsReset { incoming: true, .. } => n == 0,
                    Event::StreamsAdded { incoming, .. } => n == 1 && *incoming > 0,
                    Event::Reset {
                        outcome: Outcome::Done,
                    } => n == 2,
                    _ => false,
                })
            };
            assert!(
                pair.run_until(LONG, done),
                "request {n}: {:?}",
                pair.ends[0].events
            );
            pair.until_delivered(LONG);
        }
        pair.send_all(0, 0, false, 3000, Reliability::Full);
        pair.send_all(1, 0, false, 3000, Reliability::Full);
        pair.until_delivered(LONG);
        pair.until_shut_down(0);
    });
}

/// RFC 5061: where the peer asks for it, data goes to another of its addresses.
#[test]
fn the_peer_chooses_where_data_goes() {
    let mut pair = Setup::new(3)
        .paths(2)
        .each(|config| {
            config.authentication = true;
            config.address_reconfiguration = true;
        })
        .together();
    pair.run_for(Duration::from_secs(60));
    let second = sim::address(0, 1);
    assert!(pair.prefer(0, second));
    pair.run_for(Duration::from_secs(5));
    pair.net.tape = Some(Vec::new());
    pair.send_all(1, 0, false, 50_000, Reliability::Full);
    pair.until_delivered(LONG);
    let tape = pair.net.tape.take().expect("a tape");
    let long = tape
        .iter()
        .filter(|flight| flight.bytes.len() > 1000)
        .collect::<Vec<_>>();
    assert!(!long.is_empty() && long.iter().all(|flight| flight.to == second));
}
