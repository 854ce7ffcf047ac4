//! What an open association does: its data, its windows, its events, and what it keeps.

use super::*;

#[test]
fn chunks_of_every_kind_that_a_peer_wants_authenticated_are() {
    for interleave in [false, true] {
        let config = AssocConfig {
            interleave,
            authentication: true,
            authenticated_chunks: vec![
                kind::COOKIE_ECHO,
                kind::COOKIE_ACK,
                kind::I_DATA,
                kind::I_FORWARD_TSN,
                kind::HEARTBEAT,
            ],
            ..AssocConfig::default()
        };
        let mut pair = Pair::connected(1, config);
        pair.send(0, b"hello");
        pair.run();
        assert!(pair.ends[1].readable(pair.ids[1]));
        let peer = addr(THERE[0]);
        let id = pair.ids[0];
        pair.ends[0].change(id, |association| association.request_heartbeat(peer));
        pair.run();
        assert!(
            pair.association(0)
                .paths()
                .iter()
                .all(|(_, p)| p.heartbeat.is_none())
        );
    }
}

#[test]
fn a_shut_window_is_no_error_of_the_path() {
    let config = AssocConfig {
        receive_window: 4000,
        heartbeats: false,
        ..AssocConfig::default()
    };
    let mut pair = Pair::connected(1, config);
    for _ in 0..10 {
        pair.send(0, &[1; 1000]);
    }
    pair.wait(Duration::from_secs(600));
    let (_, path) = pair.association(0).paths().iter().next().expect("a path");
    assert_eq!(pair.association(0).state(), State::Established);
    assert_eq!((path.state, path.mtu), (PathState::Active, 1452));
}

#[test]
fn full_packets_that_are_lost_while_small_ones_pass_are_made_smaller_once() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    pair.passes = |_, packet| packet.len() <= 1300;
    pair.send(0, &[1; 1400]);
    pair.wait(Duration::from_secs(100));
    let (_, path) = pair.association(0).paths().iter().next().expect("a path");
    assert!(path.mtu < 1300, "{}", path.mtu);
    // Where nothing passes at all it is not the size.
    let mut pair = Pair::connected(1, AssocConfig::default());
    pair.passes = |_, _| false;
    pair.send(0, &[1; 1400]);
    pair.wait(Duration::from_secs(60));
    let (_, path) = pair.association(0).paths().iter().next().expect("a path");
    assert_eq!(path.mtu, 1452);
}

#[test]
fn events_that_nobody_takes_do_not_pile_up() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let tag = pair.association(0).local_tag();
    for _ in 0..10_000 {
        pair.forge(0, tag, |packet| {
            packet.error(|causes| {
                causes.put(&crate::wire::Cause::OutOfResource);
            })
        });
        pair.send(0, b"x");
        pair.run();
        while pair.ends[1].receive(pair.ids[1], &mut [0; 8]).is_some() {}
    }
    let id = pair.ids[0];
    pair.ends[0].abort(pair.now, id, b"");
    assert!(pair.ends[0].events.len() <= MOST_EVENTS);
    let events = pair.events(0);
    assert!(events.len() < 3 * MOST_EVENTS, "{}", events.len());
    assert!(
        matches!(events.last(), Some(Event::Down(_))),
        "and the end is told"
    );
}

#[test]
fn data_from_an_address_that_is_not_confirmed_is_not_answered_there() {
    let mut pair = Pair::new(2, AssocConfig::default());
    // No HEARTBEAT is answered.
    pair.passes = |_, packet| packet.get(12) != Some(&kind::HEARTBEAT);
    pair.connect();
    pair.run();
    pair.ids[1] = pair.ends[1].accept().expect("an association");
    let tag = pair.association(1).local_tag();
    let tsn = pair.association(1).receiver().cumulative().next();
    let mut bytes = Vec::new();
    let mut packet = PacketBuilder::begin(&mut bytes, 7, 7, tag, 1452);
    let head = crate::wire::DataHead {
        tsn,
        begin: true,
        end: true,
        immediate: true,
        ..Default::default()
    };
    packet.data(&head, b"data");
    packet.finish(None, true);
    let arrived = Arrived {
        from: addr(HERE[1]),
        to: addr(THERE[1]),
        encap: None,
        packet: &bytes,
    };
    pair.ends[1].handle(pair.now, &arrived);
    let mut out = Vec::new();
    let sent = pair.ends[1]
        .transmit(pair.now, &mut out, 1)
        .expect("a SACK");
    assert_eq!((out[12], sent.to), (kind::SACK, addr(HERE[0])));
}

/// Pages of this process that are in memory, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages = pages
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

/// By hand: `--ignored --nocapture`.
#[test]
#[ignore = "a measurement, not exact beside other tests"]
#[cfg(target_os = "linux")]
fn an_idle_association_is_small() {
    const MANY: usize = 5000;
    let mut pair = Pair::new(1, AssocConfig::default());
    pair.ends[1].listen(MANY);
    let before = resident();
    let mut clients = Vec::new();
    for seed in 0..MANY as u32 {
        let mut all = [0; 32];
        all[..4].copy_from_slice(&seed.to_be_bytes());
        let own = Config::new(Box::new(RotatingKeys::new(all)));
        let port = 1000 + seed as u16;
        pair.ends[0] = Endpoint::new(own, port, vec![addr(HERE[0])], all);
        pair.connect();
        pair.run();
        pair.send(0, b"hello");
        pair.run();
        pair.ids[1] = pair.ends[1].accept().expect("an association");
        assert!(pair.ends[1].receive(pair.ids[1], &mut [0; 8]).is_some());
        clients.push(pair.ends[0].table.take(pair.ids[0]));
        while pair.ends[1].event().is_some() {}
    }
    let each = (resident() - before) / (2 * MANY);
    println!("{each} bytes, {} of them itself", size_of::<Association>());
    assert!(each < 8192, "{each}");
}

/// What end 1 has received on stream 0, as (unordered, bytes).
fn received(pair: &mut Pair) -> Vec<(bool, Vec<u8>)> {
    let mut all: Vec<(bool, Vec<u8>)> = Vec::new();
    let mut whole = true;
    let mut buffer = [0; 8192];
    while let Some(got) = pair.ends[1].receive(pair.ids[1], &mut buffer) {
        if whole {
            all.push((got.unordered, Vec::new()));
        }
        all.last_mut()
            .expect("one")
            .1
            .extend_from_slice(&buffer[..got.len]);
        whole = got.end;
    }
    all
}

#[test]
fn an_unordered_message_and_an_ordered_one_of_a_stream_may_be_unfinished_at_once() {
    let kinds = [(false, false), (false, true), (true, false), (true, true)];
    for (interleave, first) in kinds {
        let config = AssocConfig {
            interleave,
            nagle: false,
            ..AssocConfig::default()
        };
        let mut pair = Pair::connected(1, config);
        let parts: [(bool, &[u8], bool); 9] = [
            (first, b"one ", true),
            (!first, b"two ", true),
            (first, b"goes on ", true),
            (!first, b"goes on ", true),
            (first, b"and ends", false),
            (first, b"three", false),
            (!first, b"and ends", false),
            (!first, b"four", false),
            (first, b"five", false),
        ];
        for (unordered, text, more) in parts {
            let message = Outgoing {
                unordered,
                ..Outgoing::default()
            };
            let id = pair.ids[0];
            pair.ends[0]
                .send(pair.now, id, &message, text, more)
                .expect("room");
            pair.run();
        }
        pair.wait(Duration::from_secs(1));
        let mut got = received(&mut pair);
        got.sort();
        let mut expected: Vec<(bool, Vec<u8>)> = vec![
            (first, b"one goes on and ends".to_vec()),
            (!first, b"two goes on and ends".to_vec()),
            (first, b"three".to_vec()),
            (!first, b"four".to_vec()),
            (first, b"five".to_vec()),
        ];
        expected.sort();
        assert_eq!(got, expected);
        assert!(pair.association(0).sender().is_idle());
    }
}

#[test]
fn what_waits_for_the_end_of_a_message_that_is_given_up_goes_on() {
    let config = AssocConfig {
        nagle: false,
        ..AssocConfig::default()
    };
    let mut pair = Pair::connected(1, config);
    let id = pair.ids[0];
    let about = Outgoing {
        reliability: crate::send::Reliability::Ttl(Duration::from_secs(2)),
        ..Outgoing::default()
    };
    pair.passes = |_, _| false;
    pair.ends[0]
        .send(pair.now, id, &about, b"late", true)
        .expect("room");
    let other = Outgoing {
        unordered: true,
        ..Outgoing::default()
    };
    pair.ends[0]
        .send(pair.now, id, &other, b"other", false)
        .expect("room");
    pair.wait(Duration::from_secs(3));
    pair.passes = |_, _| true;
    pair.wait(Duration::from_secs(20));
    assert_eq!(received(&mut pair), [(true, b"other".to_vec())]);
}

#[test]
fn a_sack_is_delayed_by_no_more_than_half_a_second() {
    let config = AssocConfig {
        sack_delay: Duration::from_secs(60),
        ..AssocConfig::default()
    };
    let mut pair = Pair::connected(1, config);
    pair.send(0, b"one");
    pair.wait(Duration::from_millis(600));
    assert!(pair.association(0).sender().is_idle());
}
