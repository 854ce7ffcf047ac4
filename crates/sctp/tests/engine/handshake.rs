//! How associations begin: over bad lines, from both sides at once, again after a peer lost its state, and not at all.

use std::time::Duration;

use headwater_sctp::association::State;
use headwater_sctp::config::AssocConfig;
use headwater_sctp::endpoint::{Arrived, AssocId, Peer};
use headwater_sctp::event::{Down, Event};
use headwater_sctp::send::Reliability;

use crate::sim;
use crate::sim::chance::{Chance, for_seeds};
use crate::sim::craft::{self, Opening, Puppet};
use crate::sim::network::Faults;
use crate::sim::{Pair, Setup};

const LONG: Duration = Duration::from_secs(4 * 3600);

fn exchange(pair: &mut Pair) {
    for side in [0, 1] {
        for stream in 0..3 {
            pair.send_all(side, stream, false, 700, Reliability::Full);
        }
    }
    pair.until_delivered(LONG);
}

#[test]
fn associations_begin_and_end_over_any_line() {
    for_seeds(3200, |seed| {
        let mut chance = Chance::new(seed);
        let mut setup = Setup::new(seed);
        setup.faults = Faults::by(&mut chance);
        setup.faults.loss = chance.pick(&[0, 100, 300]);
        let mtu = setup.faults.mtu.min(1452);
        let mut pair = setup
            .each(|config| {
                config.mtu = mtu;
                config.init_retransmissions = 100;
                config.association_retransmissions = 100;
                config.path_retransmissions = 100;
            })
            .together();
        exchange(&mut pair);
        pair.until_shut_down(chance.below(2));
    });
}

#[test]
fn two_that_connect_at_once_have_one_association() {
    for_seeds(3200, |seed| {
        let mut chance = Chance::new(seed);
        let loss = chance.pick(&[0, 100]);
        let mut pair = Setup::new(seed)
            .faults(|faults| {
                faults.loss = loss;
                faults.jitter = Duration::from_millis(chance.pick(&[0, 10]));
                faults.duplicate = 50;
            })
            .each(|config| config.init_retransmissions = 100)
            .apart();
        let later = chance.pick(&[0, 0, 3, 7, 12, 17]);
        // Who connects first finds somebody who listens, or connects too.
        if later > 0 || chance.coin() {
            pair.ends.iter_mut().for_each(|end| end.endpoint.listen(4));
        }
        let config = AssocConfig {
            init_retransmissions: 100,
            ..sim::patient()
        };
        pair.connect(0, &config);
        // Before, between and after the packets of the first handshake.
        pair.run_for(Duration::from_millis(later));
        if pair.ends[1].id.is_none() {
            pair.connect(1, &config);
        }
        pair.until_up();
        exchange(&mut pair);
        for side in [0, 1] {
            let ups = pair.ends[side]
                .events
                .iter()
                .filter(|e| matches!(e, Event::Up { .. }))
                .count();
            assert_eq!(ups, 1, "{:?}", pair.ends[side].events);
        }
        pair.until_shut_down(0);
    });
}

#[test]
fn a_peer_that_lost_its_state_begins_anew() {
    for_seeds(1600, |seed| {
        let mut chance = Chance::new(seed);
        let loss = chance.pick(&[0, 50]);
        let mut pair = Setup::new(seed)
            .faults(|faults| faults.loss = loss)
            .together();
        pair.send_all(1, 0, false, 5000, Reliability::Full);
        if chance.coin() {
            pair.until_delivered(LONG);
        }
        let config = AssocConfig::default();
        pair.ends[0].endpoint = sim::endpoint(0, &config, &pair.ends[0].addresses, chance.seed());
        pair.ends[0].events.clear();
        pair.ends
            .iter_mut()
            .for_each(|end| end.ledger = sim::ledger::Ledger::after_restart(seed + 77));
        if chance.coin() {
            pair.net.drop_all();
        }
        pair.connect(0, &config);
        let again = pair.run_until(LONG, |pair| {
            pair.saw(1, |e| matches!(e, Event::Restarted))
                && pair.saw(0, |e| matches!(e, Event::Up { .. }))
        });
        assert!(again, "{:?} {:?}", pair.ends[0].events, pair.ends[1].events);
        exchange(&mut pair);
        pair.until_shut_down(1);
    });
}

#[test]
fn a_port_that_does_not_listen_refuses() {
    let mut pair = Setup::new(1).apart();
    pair.connect(0, &AssocConfig::default());
    pair.run_until(LONG, |pair| pair.down(0).is_some());
    assert!(
        matches!(pair.down(0), Some(Down::Aborted { by_peer: true, .. })),
        "{:?}",
        pair.down(0)
    );
}

#[test]
fn silence_ends_an_attempt_after_its_retransmissions() {
    let mut pair = Setup::new(1).apart();
    let there = pair.ends[1].addresses[0];
    pair.net.cut(there);
    pair.connect(
        0,
        &AssocConfig {
            init_retransmissions: 3,
            ..AssocConfig::default()
        },
    );
    pair.run_until(LONG, |pair| pair.down(0).is_some());
    assert_eq!(pair.down(0), Some(Down::SetupFailed { refused: false }));
    assert_eq!(pair.net.packets, 4, "one INIT and three more");
}

/// Packets of one association that come again, late: nothing may happen for them (a cookie is no ticket for two).
#[test]
fn what_is_replayed_changes_nothing() {
    for_seeds(480, |seed| {
        let mut pair = Setup::new(seed).apart();
        pair.net.tape = Some(Vec::new());
        pair.ends[1].endpoint.listen(4);
        pair.connect(0, &AssocConfig::default());
        pair.until_up();
        exchange(&mut pair);
        let tape = pair.net.tape.take().expect("a tape");
        for flight in &tape {
            let at = pair.now + Duration::from_millis(pair.chance.below(100) as u64);
            pair.net
                .inject(at, flight.from, flight.to, flight.bytes.clone());
        }
        exchange(&mut pair);
        pair.run_for(Duration::from_secs(1));
        pair.until_shut_down(0);
        // The port is free again, and old packets bring nothing back to life but what a cookie of this minute may.
        let at = pair.now + Duration::from_secs(100);
        for flight in &tape {
            pair.net
                .inject(at, flight.from, flight.to, flight.bytes.clone());
        }
        pair.run_for(Duration::from_secs(200));
        assert!(
            pair.ends[1].endpoint.accept().is_none(),
            "an old cookie was taken"
        );
    });
}

/// CVE-2026-52924: data is queued, the cookie has become stale, the handshake begins again.
#[test]
fn a_stale_cookie_loses_no_queued_data() {
    for_seeds(320, |seed| {
        let mut chance = Chance::new(seed);
        let mut pair = Setup::new(seed).apart();
        pair.ends[1].endpoint.listen(4);
        pair.connect(
            0,
            &AssocConfig {
                init_retransmissions: 100,
                ..sim::patient()
            },
        );
        for stream in 0..5 {
            assert!(pair.send(
                0,
                stream,
                chance.coin(),
                1 + chance.below(4000),
                Reliability::Full
            ));
        }
        let id = pair.id(0);
        let echoed = |pair: &Pair| {
            pair.ends[0]
                .endpoint
                .association(id)
                .is_some_and(|a| a.state() == State::CookieEchoed)
        };
        assert!(pair.run_until(LONG, echoed));
        pair.net.drop_all();
        let there = pair.ends[1].addresses[0];
        pair.net.cut(there);
        pair.run_for(Duration::from_secs(61));
        pair.net.mend(there);
        pair.until_up();
        exchange(&mut pair);
        pair.until_shut_down(chance.below(2));
    });
}

#[test]
fn initial_numbers_at_their_ends_wrap() {
    for tsn in [0, 1, 0x7fff_fffe, 0x8000_0000, 0xffff_fffe, 0xffff_ffff] {
        let mut puppet = puppet(
            1,
            Opening {
                tsn,
                ..Opening::default()
            },
        );
        puppet.open();
        let id = puppet.endpoint.accept().expect("an association");
        let mut buffer = [0; 100];
        for n in 0..10_u16 {
            puppet.say(&[craft::data(
                tsn.wrapping_add(u32::from(n)),
                0,
                n,
                3,
                &n.to_be_bytes(),
            )]);
            let piece = puppet.endpoint.receive(id, &mut buffer).expect("a message");
            assert_eq!((piece.len, &buffer[..2]), (2, &n.to_be_bytes()[..]));
        }
        puppet.pass(Duration::from_secs(1));
        let sacks = puppet.hear();
        let (_, _, sack) = sacks
            .iter()
            .rfind(|(kind, ..)| *kind == craft::SACK)
            .expect("a SACK");
        assert_eq!(craft::word(sack, 0), tsn.wrapping_add(9));
    }
}

/// An endpoint that listens, and a puppet before it.
fn puppet(seed: u64, opening: Opening) -> Puppet {
    let (here, there) = (sim::address(0, 0), sim::address(1, 0));
    let mut endpoint = sim::endpoint(
        1,
        &AssocConfig::default(),
        &[there],
        Chance::new(seed).seed(),
    );
    endpoint.listen(16);
    Puppet::new(endpoint, there, here, opening)
}

#[test]
fn a_flood_of_inits_leaves_nothing() {
    let mut puppet = puppet(1, Opening::default());
    for n in 0..10_000_u32 {
        puppet.port = 1024 + (n % 60_000) as u16;
        puppet.here = std::net::Ipv4Addr::from(0x0a00_0000 | n << 4 | 9).into();
        puppet.opening.tag = n + 1;
        let init = puppet.opening.chunk(craft::INIT);
        puppet.their_tag = 0;
        puppet.say(&[init]);
        let heard = puppet.hear();
        assert_eq!(
            heard.iter().map(|(kind, ..)| *kind).collect::<Vec<_>>(),
            [craft::INIT_ACK]
        );
    }
    assert_eq!(
        puppet.endpoint.timeout(),
        None,
        "a timer runs for somebody who only sent INIT"
    );
    assert!(puppet.endpoint.event().is_none() && puppet.endpoint.accept().is_none());
}

#[test]
fn more_than_the_backlog_are_turned_away_and_none_is_lost() {
    let mut puppet = puppet(1, Opening::default());
    puppet.endpoint.listen(4);
    let mut open = 0;
    for port in 7000..7020 {
        (puppet.port, puppet.their_tag) = (port, 0);
        puppet.say(&[puppet.opening.chunk(craft::INIT)]);
        let heard = puppet.hear();
        let Some((_, _, value)) = heard.iter().find(|(kind, ..)| *kind == craft::INIT_ACK) else {
            continue;
        };
        puppet.their_tag = craft::word(value, 0);
        puppet.say(&[craft::chunk(craft::COOKIE_ECHO, 0, &craft::cookie(value))]);
        open += usize::from(
            puppet
                .hear()
                .iter()
                .any(|(kind, ..)| *kind == craft::COOKIE_ACK),
        );
    }
    let accepted = std::iter::from_fn(|| puppet.endpoint.accept()).count();
    assert_eq!(accepted, open);
    assert!(
        (4..20).contains(&accepted),
        "{accepted} of 20 in a backlog of 4"
    );
}

/// The causes in the ABORTs among these.
fn aborts(heard: &[(u8, u8, Vec<u8>)]) -> Vec<u16> {
    let aborts = heard.iter().filter(|(kind, ..)| *kind == craft::ABORT);
    let causes = aborts.flat_map(|(_, _, value)| craft::params(value));
    causes.map(|(kind, _)| kind).collect()
}

#[test]
fn malformed_inits_are_refused() {
    const INVALID_MANDATORY: &[u16] = &[7];
    let bad = [
        (
            "a window of 1499 bytes",
            INVALID_MANDATORY,
            Opening {
                window: 1499,
                ..Opening::default()
            },
        ),
        (
            "no streams out",
            INVALID_MANDATORY,
            Opening {
                outbound: 0,
                ..Opening::default()
            },
        ),
        (
            "no streams in",
            INVALID_MANDATORY,
            Opening {
                inbound: 0,
                ..Opening::default()
            },
        ),
        (
            "tag zero",
            &[],
            Opening {
                tag: 0,
                ..Opening::default()
            },
        ),
        (
            "host name",
            &[5],
            Opening {
                params: vec![craft::param(11, b"example.org\0")],
                ..Opening::default()
            },
        ),
    ];
    for (what, causes, mut opening) in bad {
        let mut one = puppet(1, opening.clone());
        let init = one.opening.chunk(craft::INIT);
        one.say(&[init]);
        let heard = one.hear();
        assert_eq!(aborts(&heard), causes, "INIT, {what}");
        assert_eq!(heard.len(), causes.len(), "INIT, {what}: {heard:?}");

        opening.params.push(craft::param(craft::COOKIE_PARAM, b"c"));
        let (mut one, id) = begun(1, opening);
        let heard = one.say_init_ack();
        assert_eq!(aborts(&heard), causes, "INIT ACK, {what}");
        assert_eq!(heard.len(), causes.len(), "INIT ACK, {what}: {heard:?}");
        let state = one.endpoint.association(id).map(|a| a.state());
        assert!(
            matches!(state, None | Some(State::Closed)),
            "INIT ACK, {what}: {state:?}"
        );
    }
    // The least that is enough.
    let mut least = puppet(
        1,
        Opening {
            window: 1500,
            ..Opening::default()
        },
    );
    least.say(&[least.opening.chunk(craft::INIT)]);
    assert_eq!(least.hear()[0].0, craft::INIT_ACK);
    // An INIT is alone in its packet, and its tag is zero.
    let mut puppet = puppet(1, Opening::default());
    let init = puppet.opening.chunk(craft::INIT);
    puppet.say(&[init.clone(), craft::chunk(craft::COOKIE_ACK, 0, &[])]);
    assert!(puppet.hear().iter().all(|(kind, ..)| *kind == craft::ABORT));
    puppet.their_tag = 5;
    puppet.say(&[init]);
    assert!(puppet.hear().iter().all(|(kind, ..)| *kind == craft::ABORT));
    assert_eq!(puppet.endpoint.timeout(), None);
}

/// Two upper bits of a parameter's type say what to do with one that nobody knows (RFC 9260 3.2.1).
#[test]
fn unknown_parameters_are_treated_by_their_upper_bits() {
    for (kind, reported, stops) in [
        (0x3abc, false, true),
        (0x7abc, true, true),
        (0xbabc, false, false),
        (0xfabc, true, false),
    ] {
        let after = craft::param(0xfabd, b"after");
        let opening = Opening {
            params: vec![craft::param(kind, b"what?"), after],
            ..Opening::default()
        };
        let mut puppet = puppet(1, opening);
        puppet.say(&[puppet.opening.chunk(craft::INIT)]);
        let heard = puppet.hear();
        let (_, _, value) = heard
            .iter()
            .find(|(kind, ..)| *kind == craft::INIT_ACK)
            .expect("an INIT ACK");
        let contains = |kind: u16| {
            value
                .windows(4)
                .any(|w| w == [(kind >> 8) as u8, kind as u8, 0, 9])
        };
        assert_eq!(contains(kind), reported, "{kind:x}");
        assert_eq!(contains(0xfabd), !stops, "what follows {kind:x}");
    }
}

#[test]
fn a_forged_cookie_is_no_cookie() {
    for_seeds(800, |seed| {
        let mut chance = Chance::new(seed);
        let mut puppet = puppet(seed, Opening::default());
        puppet.say(&[puppet.opening.chunk(craft::INIT)]);
        let heard = puppet.hear();
        let (_, _, value) = heard
            .iter()
            .find(|(kind, ..)| *kind == craft::INIT_ACK)
            .expect("an INIT ACK");
        puppet.their_tag = craft::word(value, 0);
        let mut cookie = craft::cookie(value);
        match seed % 3 {
            0 => cookie.truncate(chance.below(cookie.len())),
            1 => cookie.extend(chance.bytes(4)),
            _ => {
                let at = chance.below(cookie.len());
                cookie[at] ^= 1 << chance.below(8);
            }
        }
        puppet.say(&[craft::chunk(craft::COOKIE_ECHO, 0, &cookie)]);
        assert!(
            puppet.hear().iter().all(|(kind, ..)| *kind == craft::ABORT),
            "seed {seed}"
        );
        assert!(puppet.endpoint.accept().is_none());
        assert_eq!(puppet.endpoint.timeout(), None);
    });
}

#[test]
fn packets_out_of_the_blue_are_answered_as_they_must() {
    use headwater_sctp::endpoint::out_of_the_blue;
    let (here, there) = (sim::address(0, 0), sim::address(1, 0));
    let answer = |chunks: &[Vec<u8>], tag: u32| {
        let packet = craft::packet(7000, 9, tag, chunks);
        let mut out = Vec::new();
        let arrived = Arrived {
            from: here,
            to: there,
            encap: None,
            packet: &packet,
        };
        out_of_the_blue(&arrived, &mut out).map(|transmit| {
            assert_eq!((transmit.to, transmit.len), (here, out.len()));
            let (kind, flags, _) = craft::chunks(&out)[0];
            (kind, flags & 1, craft::tag(&out))
        })
    };
    let init = Opening {
        tag: 77,
        ..Opening::default()
    }
    .chunk(craft::INIT);
    assert_eq!(answer(&[init], 0), Some((craft::ABORT, 0, 77)));
    assert_eq!(
        answer(&[craft::data(1, 0, 0, 3, b"x")], 5),
        Some((craft::ABORT, 1, 5))
    );
    assert_eq!(
        answer(&[craft::chunk(craft::SHUTDOWN_ACK, 0, &[])], 5),
        Some((craft::SHUTDOWN_COMPLETE, 1, 5))
    );
    for silent in [craft::ABORT, craft::SHUTDOWN_COMPLETE] {
        assert_eq!(answer(&[craft::chunk(silent, 0, &[])], 5), None, "{silent}");
    }
    // A stale cookie that somebody reports, or an acknowledgement of a cookie: nothing to abort.
    assert_eq!(
        answer(
            &[craft::chunk(craft::ERROR, 0, &craft::param(3, &[0; 4]))],
            5
        ),
        None
    );
    assert_eq!(answer(&[craft::chunk(craft::COOKIE_ACK, 0, &[])], 5), None);
}

/// RFC 9260 6: no INIT and no INIT ACK offers a window below 1500 bytes, whatever was asked for.
#[test]
fn no_window_below_the_least_is_offered() {
    let small = AssocConfig {
        receive_window: 1,
        ..AssocConfig::default()
    };
    let (here, there) = (sim::address(0, 0), sim::address(1, 0));
    let endpoint = sim::endpoint(1, &small, &[there], [8; 32]);
    let mut one = Puppet::new(endpoint, there, here, Opening::default());
    one.endpoint.listen(1);
    one.say(&[one.opening.chunk(craft::INIT)]);
    let (kind, _, answer) = &one.hear()[0];
    assert_eq!((*kind, craft::word(answer, 4)), (craft::INIT_ACK, 1500));

    let peer = Peer {
        addresses: &[here],
        port: 7000,
        encap: None,
    };
    let now = one.now;
    let asked = one.endpoint.connect(now, &peer, &small);
    asked.expect("an association");
    let (kind, _, init) = &one.hear()[0];
    assert_eq!((*kind, craft::word(init, 4)), (craft::INIT, 1500));
}

/// An endpoint that has begun an association with a puppet, which has not heard of it yet.
fn begun(seed: u64, opening: Opening) -> (Puppet, AssocId) {
    let mut puppet = puppet(seed, opening);
    let peer = Peer {
        addresses: &[puppet.here],
        port: puppet.port,
        encap: None,
    };
    let id = puppet
        .endpoint
        .connect(puppet.now, &peer, &AssocConfig::default());
    (puppet, id.expect("an association"))
}

/// RFC 9260 3.3.3.1: the value of "unrecognized parameter" is the parameter as it came, so there is one for each; 3.2.1: no length
/// counts padding.
#[test]
fn each_unknown_parameter_is_reported_by_itself() {
    let opening = || Opening {
        params: vec![craft::param(0xfabc, b"what?"), craft::param(0xfabd, b"")],
        ..Opening::default()
    };
    let whole: [&[u8]; 2] = [b"\xfa\xbc\0\x09what?", b"\xfa\xbd\0\x04"];
    let mut puppet = puppet(1, opening());
    puppet.say(&[puppet.opening.chunk(craft::INIT)]);
    let heard = puppet.hear();
    let (_, _, value) = &heard[0];
    let reported: Vec<Vec<u8>> = craft::params(&value[16..])
        .into_iter()
        .filter_map(|(kind, value)| (kind == 8).then_some(value))
        .collect();
    assert_eq!(reported, whole);

    let (mut puppet, _) = begun(1, opening());
    let heard = puppet.answer();
    let (_, _, value) = heard
        .iter()
        .find(|(kind, ..)| *kind == craft::ERROR)
        .expect("an ERROR with the COOKIE ECHO");
    let reported = craft::params(value);
    assert_eq!(reported, whole.map(|whole| (8, whole.to_vec())));
}

/// RFC 9260 6.10: INIT ACK and SHUTDOWN COMPLETE are alone in their packets.
#[test]
fn what_may_not_be_bundled_is_not_acted_on_in_company() {
    let company = craft::chunk(craft::PAD, 0, &[0; 4]);
    let (mut one, id) = begun(1, Opening::default());
    let state = |puppet: &Puppet| puppet.endpoint.association(id).map(|a| a.state());
    let init = one.packets().pop().expect("an INIT");
    one.their_tag = craft::word(&init, 16);
    let cookie = craft::param(craft::COOKIE_PARAM, b"the puppet's own");
    one.opening.params.push(cookie);
    let init_ack = one.opening.chunk(craft::INIT_ACK);
    for chunks in [
        [init_ack.clone(), company.clone()],
        [company.clone(), init_ack.clone()],
    ] {
        one.say(&chunks);
        assert_eq!(state(&one), Some(State::CookieWait));
        assert_eq!(one.hear(), []);
    }
    one.say(&[init_ack]);
    assert_eq!(state(&one), Some(State::CookieEchoed));

    let mut one = puppet(1, Opening::default());
    one.open();
    let id = one.endpoint.accept().expect("an association");
    let state = |puppet: &Puppet| puppet.endpoint.association(id).map(|a| a.state());
    let last = one.their_tsn.wrapping_sub(1).to_be_bytes();
    one.say(&[craft::chunk(craft::SHUTDOWN, 0, &last)]);
    assert_eq!(state(&one), Some(State::ShutdownAckSent));
    for reflected in [0, 1] {
        let complete = craft::chunk(craft::SHUTDOWN_COMPLETE, reflected, &[]);
        let right = one.their_tag;
        if reflected == 1 {
            one.their_tag = one.opening.tag;
        }
        one.say(&[complete.clone(), company.clone()]);
        one.say(&[company.clone(), complete]);
        assert_eq!(state(&one), Some(State::ShutdownAckSent));
        one.their_tag = right;
    }
    one.say(&[craft::chunk(craft::SHUTDOWN_COMPLETE, 0, &[])]);
    assert_eq!(state(&one), Some(State::Closed));
}

/// RFC 9260 8.5.1 E: while an association begins, a SHUTDOWN ACK is one out of the blue, whatever its tag.
#[test]
fn a_shutdown_ack_for_an_association_that_begins_is_out_of_the_blue() {
    for echoed in [false, true] {
        for right in [false, true] {
            let (mut puppet, id) = begun(1, Opening::default());
            let waits = match echoed {
                true => State::CookieEchoed,
                false => State::CookieWait,
            };
            if echoed {
                puppet.answer_init();
            } else {
                let init = puppet.packets().pop().expect("an INIT");
                puppet.their_tag = craft::word(&init, 16);
            }
            let tag = puppet.their_tag ^ u32::from(!right);
            let ack = craft::chunk(craft::SHUTDOWN_ACK, 0, &[]);
            let packet = craft::packet(puppet.port, puppet.their_port, tag, &[ack]);
            puppet.raw(&packet);
            let packets = puppet.packets();
            let answers: Vec<_> = packets
                .iter()
                .map(|packet| (packet[12], packet[13] & 1, craft::tag(packet)))
                .collect();
            assert_eq!(answers, [(craft::SHUTDOWN_COMPLETE, 1, tag)]);
            let state = puppet.endpoint.association(id).map(|a| a.state());
            assert_eq!(state, Some(waits));
        }
    }
}

/// RFC 9260 5.1: DATA may come with the COOKIE ECHO.
#[test]
fn data_that_comes_with_the_cookie_is_received() {
    let mut puppet = puppet(1, Opening::default());
    puppet.say(&[puppet.opening.chunk(craft::INIT)]);
    let heard = puppet.hear();
    let (_, _, value) = &heard[0];
    puppet.their_tag = craft::word(value, 0);
    let cookie = craft::chunk(craft::COOKIE_ECHO, 0, &craft::cookie(value));
    let data = craft::data(puppet.opening.tsn, 0, 0, 3, b"early");
    for _ in 0..2 {
        // The second time the COOKIE ACK and the SACK were lost.
        puppet.say(&[cookie.clone(), data.clone()]);
        let kinds: Vec<u8> = puppet.hear().iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(kinds[0], craft::COOKIE_ACK);
    }
    let id = puppet.endpoint.accept().expect("an association");
    let mut into = [0; 16];
    let received = puppet.endpoint.receive(id, &mut into);
    assert_eq!(received.map(|r| r.len), Some(5));
    assert_eq!(&into[..5], b"early");
    assert!(puppet.endpoint.receive(id, &mut into).is_none());
}
