//! How an association begins, and begins anew: handshakes, what they agree on, and the paths that they confirm.

use super::*;

#[test]
fn a_peer_that_finds_every_cookie_stale_is_given_up() {
    let mut pair = Pair::new(1, AssocConfig::default());
    pair.ends[1].config_mut().cookie_lifetime = Duration::ZERO;
    let id = pair.connect();
    for _ in 0..100 {
        pair.step(0);
        // The INIT ACK waits for longer than any cookie lives.
        pair.now = pair.now + Duration::from_secs(100);
        pair.step(1);
    }
    let association = pair.ends[0].association(id).expect("not released");
    assert_eq!(association.state(), State::Closed);
    let refused = false;
    assert!(
        pair.events(0)
            .contains(&Event::Down(Down::SetupFailed { refused }))
    );
}

#[test]
fn an_icmp_message_that_quotes_no_initiate_tag_ends_no_handshake() {
    let mut pair = Pair::new(1, AssocConfig::default());
    let id = pair.connect();
    let mut init = Vec::new();
    pair.ends[0].transmit(START, &mut init, 1).expect("an INIT");
    let to = addr(THERE[0]);
    pair.ends[0].unreachable(START, to, Unreachable::Port, &init[..8]);
    assert_eq!(
        pair.ends[0].association(id).unwrap().state(),
        State::CookieWait
    );
    pair.ends[0].unreachable(START, to, Unreachable::Port, &init[..28]);
    assert_eq!(pair.ends[0].association(id).unwrap().state(), State::Closed);
}

#[test]
fn an_init_that_met_nobody_for_a_moment_goes_again_at_once_but_not_for_ever() {
    let limit = AssocConfig::default().init_retransmissions;
    let mut pair = Pair::new(1, AssocConfig::default());
    let id = pair.connect();
    for _ in 0..=limit {
        let mut init = Vec::new();
        let sent = pair.ends[0].transmit(START, &mut init, 1);
        assert!(sent.is_some(), "an INIT, though no time has passed");
        let to = addr(THERE[0]);
        pair.ends[0].unreachable(START, to, Unreachable::Passing, &init);
        // Of the same one, told twice.
        pair.ends[0].unreachable(START, to, Unreachable::Passing, &init);
    }
    assert_eq!(pair.ends[0].association(id).unwrap().state(), State::Closed);
    let refused = true;
    assert!(
        pair.events(0)
            .contains(&Event::Down(Down::SetupFailed { refused }))
    );
}

#[test]
fn a_restart_with_the_users_shutdown_under_way_is_shut_down_too() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    pair.send(1, b"never acknowledged");
    let id = pair.ids[1];
    pair.ends[1].shutdown(pair.now, id);
    pair.ends[1].release(pair.now, id);
    // The peer has forgotten everything.
    let config = pair.ends[0].config().association.clone();
    let mut own = Config::new(Box::new(RotatingKeys::new([3; 32])));
    own.association = config;
    pair.ends[0] = Endpoint::new(own, 7, vec![addr(HERE[0])], [3; 32]);
    pair.connect();
    pair.wait(Duration::from_secs(5));
    assert!(
        pair.ends[1].association(id).is_none(),
        "nobody would ever end it"
    );
}

#[test]
fn unknown_parameters_are_not_reflected_without_bound() {
    let mut pair = Pair::new(1, AssocConfig::default());
    let head = crate::wire::InitHead {
        tag: 5,
        window: 10_000,
        outbound: 1,
        inbound: 1,
        tsn: Tsn(1),
    };
    pair.forge(1, 0, |packet| {
        packet.init(kind::INIT, &head, |params| {
            let mut whole = vec![0xc1, 0xc1, 0x04, 0x00];
            whole.resize(1024, 0);
            let kind = 0xc1c1;
            params.put(&crate::wire::Param::Unknown {
                kind,
                whole: &whole,
            });
        })
    });
    let mut out = Vec::new();
    pair.ends[1]
        .transmit(START, &mut out, 1)
        .expect("an INIT ACK");
    assert!(out.len() < 600, "{}", out.len());
}

#[test]
fn a_restart_that_names_a_known_address_from_another_one_is_refused() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let head = crate::wire::InitHead {
        tag: 5,
        window: 10_000,
        outbound: 1,
        inbound: 1,
        tsn: Tsn(1),
    };
    let mut bytes = Vec::new();
    let mut packet = PacketBuilder::begin(&mut bytes, 7, 7, 0, 1452);
    packet.init(kind::INIT, &head, |params| {
        params.put(&crate::wire::Param::from(addr(HERE[0])));
    });
    packet.finish(None, true);
    let arrived = Arrived {
        from: addr(HERE[1]),
        to: addr(THERE[0]),
        encap: None,
        packet: &bytes,
    };
    pair.ends[1].handle(pair.now, &arrived);
    let mut out = Vec::new();
    let sent = pair.ends[1]
        .transmit(pair.now, &mut out, 1)
        .expect("an answer");
    assert_eq!((out[12], sent.to), (kind::ABORT, addr(HERE[1])));
}

#[test]
fn a_cookie_is_echoed_to_no_address_that_only_the_peer_has_named() {
    let mut pair = Pair::new(2, AssocConfig::default());
    pair.ends[0].addresses.truncate(1);
    pair.passes = |_, packet| packet.get(12) != Some(&kind::COOKIE_ECHO);
    let id = pair.connect();
    pair.run();
    assert_eq!(pair.association(0).paths().len(), 2);
    for _ in 0..3 {
        pair.now = pair.ends[0].timeout().expect("T1-cookie");
        pair.ends[0].on_timeout(pair.now);
        let sent = pair.ends[0].transmit(pair.now, &mut Vec::new(), 1);
        assert_eq!(sent.expect("a COOKIE ECHO").to, addr(THERE[0]));
    }
    assert_eq!(
        pair.ends[0].association(id).unwrap().state(),
        State::CookieEchoed
    );
}

#[test]
fn data_waits_until_the_only_path_is_confirmed_and_not_for_ever() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let id = pair.ids[0];
    pair.passes = |_, _| false;
    pair.ends[0].change(id, |association| {
        association.path_mut(crate::path::PathId(0)).state = PathState::Unconfirmed;
        association
            .path_mut(crate::path::PathId(0))
            .heartbeat_wanted = true;
    });
    pair.send(0, b"not before");
    let mut out = Vec::new();
    pair.ends[0]
        .transmit(pair.now, &mut out, 1)
        .expect("a HEARTBEAT");
    assert_eq!(out[12], kind::HEARTBEAT);
    assert_eq!(pair.association(0).sender().outstanding(), 0);
    pair.wait(Duration::from_secs(3600));
    assert_eq!(pair.association(0).state(), State::Closed);
}

#[test]
fn zero_checksums_are_taken_from_the_init_ack_on_and_sent_after_the_handshake() {
    let config = AssocConfig {
        zero_checksum: Some(1),
        ..AssocConfig::default()
    };
    let mut pair = Pair::new(1, config);
    let id = pair.connect();
    pair.step(0);
    let mut answer = Vec::new();
    pair.ends[1]
        .transmit(START, &mut answer, 1)
        .expect("an INIT ACK");
    assert_ne!(answer[8..12], [0; 4]);
    answer[8..12].fill(0);
    let arrived = Arrived {
        from: addr(THERE[0]),
        to: addr(HERE[0]),
        encap: None,
        packet: &answer,
    };
    pair.ends[0].handle(START, &arrived);
    let state = |pair: &Pair| pair.ends[0].association(id).unwrap().state();
    assert_eq!(state(&pair), State::CookieEchoed);
    // The peer has no TCB that would take a packet without a checksum.
    pair.ends[0].abort(START, id, b"");
    let mut last = Vec::new();
    pair.ends[0]
        .transmit(START, &mut last, 1)
        .expect("an ABORT");
    assert_eq!(last[12], kind::ABORT);
    assert_ne!(last[8..12], [0; 4]);
}

#[test]
fn a_peer_with_many_addresses_makes_one_heartbeat_leave_at_once() {
    let mut pair = Pair::new(1, AssocConfig::default());
    for net in 1..10 {
        pair.ends[0].addresses.push(IpAddr::from([10, net, 0, 1]));
    }
    pair.connect();
    assert!(pair.step(0) && pair.step(1) && pair.step(0));
    let (mut heartbeats, mut out) = (0, Vec::new());
    while pair.ends[1].transmit(START, &mut out, 1).is_some() {
        heartbeats += u32::from(out[12] == kind::HEARTBEAT);
        out.clear();
    }
    assert_eq!(heartbeats, 1);
}

#[test]
fn partial_reliability_with_interleaving_needs_i_forward_tsn() {
    let config = AssocConfig {
        interleave: true,
        ..AssocConfig::default()
    };
    let agree = |extensions: &'static [u8]| {
        let offer = crate::association::Offer {
            forward: true,
            extensions,
            ..Default::default()
        };
        offer.agree(&config).forward
    };
    assert!(agree(&[kind::I_DATA, kind::I_FORWARD_TSN]) && agree(&[]));
    assert!(!agree(&[kind::I_DATA]));
}

/// The peer still has bytes to come, and is not to take what follows for the same association.
#[test]
fn who_connects_again_waits_for_the_association_before() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let before = pair.ids;
    pair.send(0, b"the last words");
    pair.ends[0].shutdown(pair.now, before[0]);
    pair.ends[0].release(pair.now, before[0]);
    let again = pair.connect();
    let twice = Peer {
        addresses: &[addr(THERE[0])],
        port: 7,
        encap: None,
    };
    let config = AssocConfig::default();
    let refused = pair.ends[0].connect(pair.now, &twice, &config);
    assert_eq!(refused, Err(ConnectError::Connected));
    pair.send(0, b"the first");
    pair.run();
    assert_eq!(pair.association(0).state(), State::Established);
    let next = pair.ends[1].accept().expect("another one");
    assert_ne!(next, before[1]);
    let mut text = [0; 20];
    for (id, sent) in [(before[1], "the last words"), (next, "the first")] {
        let got = pair.ends[1].receive(id, &mut text).expect("it");
        assert_eq!(&text[..got.len], sent.as_bytes());
    }
    assert_eq!(pair.ends[0].associations().count(), 1);
    assert!(again != before[0] && pair.ends[0].held.is_empty());
}

#[test]
fn who_waits_for_an_association_that_never_ends_gives_up() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let before = pair.ids[0];
    pair.passes = |_, _| false;
    pair.send(0, b"nobody hears it");
    pair.ends[0].shutdown(pair.now, before);
    pair.ends[0].release(pair.now, before);
    let again = pair.connect();
    pair.wait(Duration::from_secs(3600));
    let refused = false;
    let events = pair.events(0);
    assert_eq!(events, [Event::Down(Down::SetupFailed { refused })]);
    pair.ends[0].release(pair.now, again);
    assert_eq!(pair.ends[0].associations().count(), 0);
}
