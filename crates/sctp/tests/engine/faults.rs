//! Enemies: packets that are forged, out of place, damaged or meant to exhaust. None is trusted, none does harm.

use std::time::Duration;

use headwater_sctp::association::State;
use headwater_sctp::config::AssocConfig;
use headwater_sctp::endpoint::AssocId;
use headwater_sctp::event::{Down, Event};
use headwater_sctp::path::PathState;
use headwater_sctp::send::{Outgoing, Reliability};

use crate::sim;
use crate::sim::chance::{Chance, for_seeds};
use crate::sim::craft::{self, Opening, Puppet};
use crate::sim::{Pair, Setup};

const LONG: Duration = Duration::from_secs(4 * 3600);
const FORWARD_SUPPORTED: u16 = 0xc000;
const SUPPORTED_EXTENSIONS: u16 = 0x8008;

/// A puppet whose association is open.
fn opened(opening: Opening, change: impl FnOnce(&mut AssocConfig)) -> (Puppet, AssocId) {
    let mut config = AssocConfig::default();
    change(&mut config);
    let (here, there) = (sim::address(0, 0), sim::address(1, 0));
    let mut endpoint = sim::endpoint(1, &config, &[there], [7; 32]);
    endpoint.listen(16);
    let mut puppet = Puppet::new(endpoint, there, here, opening);
    puppet.open();
    let id = puppet.endpoint.accept().expect("an association");
    while puppet.endpoint.event().is_some() {}
    puppet.pass(Duration::from_millis(300));
    puppet.hear();
    (puppet, id)
}

fn events(puppet: &mut Puppet) -> Vec<Event> {
    std::iter::from_fn(|| puppet.endpoint.event())
        .map(|(_, event)| event)
        .collect()
}

fn state(puppet: &Puppet, id: AssocId) -> Option<State> {
    puppet
        .endpoint
        .association(id)
        .map(|association| association.state())
}

fn is_open(puppet: &mut Puppet, id: AssocId) -> bool {
    puppet.pass(Duration::from_millis(1));
    state(puppet, id) == Some(State::Established)
}

/// Queues a message on the engine's side.
fn queue(puppet: &mut Puppet, id: AssocId, bytes: &[u8]) {
    let message = Outgoing {
        stream: 0,
        ppid: 0,
        unordered: false,
        sack_now: true,
        reliability: Reliability::Full,
        context: 0,
        to: None,
        key: None,
    };
    puppet
        .endpoint
        .send(puppet.now, id, &message, bytes, false)
        .expect("room");
}

/// One chunk of each kind, as well-formed as can be.
fn every_chunk(puppet: &Puppet) -> Vec<Vec<u8>> {
    use craft::*;
    let (mine, theirs) = (puppet.opening.tsn, puppet.their_tsn);
    let re_config = param(13, &[[0, 0, 0, 1], [0; 4], [0; 4]].concat());
    vec![
        data(mine, 0, 0, 3, b"forged"),
        sack(theirs.wrapping_add(5), 0, &[]),
        sack(theirs, 0, &[(2, 3)]),
        chunk(HEARTBEAT, 0, &param(1, b"12345678")),
        chunk(HEARTBEAT_ACK, 0, &param(1, b"12345678")),
        chunk(ABORT, 0, &[]),
        chunk(ABORT, 1, &[]),
        chunk(SHUTDOWN, 0, &theirs.wrapping_sub(1).to_be_bytes()),
        chunk(SHUTDOWN_ACK, 0, &[]),
        chunk(SHUTDOWN_COMPLETE, 0, &[]),
        chunk(SHUTDOWN_COMPLETE, 1, &[]),
        chunk(ERROR, 0, &param(3, &[0; 4])),
        chunk(ERROR, 0, &param(12, b"bye")),
        chunk(COOKIE_ECHO, 0, &[5; 200]),
        chunk(COOKIE_ACK, 0, &[]),
        forward(mine.wrapping_add(100)),
        chunk(RE_CONFIG, 0, &re_config),
        chunk(ASCONF, 0, &[0, 0, 0, 1, 0, 5, 0, 8, 10, 0, 0, 1]),
        chunk(ASCONF_ACK, 0, &[0, 0, 0, 1]),
        chunk(AUTH, 0, &[[0, 0, 0, 1].as_slice(), &[0; 20]].concat()),
        puppet.opening.chunk(INIT_ACK),
        puppet.opening.chunk(INIT),
        chunk(PAD, 0, &[0; 8]),
        chunk(0x3f, 0, b"what?"),
        chunk(0x7f, 0, b"what?"),
        chunk(0xbf, 0, b"what?"),
        chunk(0xff, 0, b"what?"),
    ]
}

#[test]
fn forged_tags_change_nothing() {
    let (mut puppet, id) = opened(Opening::default(), |_| {});
    queue(&mut puppet, id, &[1; 500]);
    assert!(!puppet.hear().is_empty());
    let deadline = puppet.endpoint.timeout();
    let right = puppet.their_tag;
    for chunk in every_chunk(&puppet) {
        for wrong in [0, 1, right ^ 1, right.swap_bytes(), puppet.opening.tag] {
            puppet.their_tag = wrong;
            puppet.say(std::slice::from_ref(&chunk));
            let answers: Vec<_> = puppet.hear().iter().map(|(kind, ..)| *kind).collect();
            // A T bit that claims the other side's tag is no forgery, but the tag is nothing that only the peer knows.
            let reflected = wrong == puppet.opening.tag && chunk[1] & 1 == 1;
            let init = chunk[0] == craft::INIT && wrong == 0;
            if reflected {
                puppet = opened(Opening::default(), |_| {}).0;
                queue(&mut puppet, id, &[1; 500]);
                puppet.hear();
                continue;
            }
            assert!(
                answers.is_empty()
                    || init && answers == [craft::INIT_ACK]
                    || answers == [craft::ABORT],
                "chunk {} with tag {wrong:x}: {answers:?}",
                chunk[0]
            );
            assert_eq!(
                state(&puppet, id),
                Some(State::Established),
                "chunk {}",
                chunk[0]
            );
            assert_eq!(events(&mut puppet), [], "chunk {}", chunk[0]);
            assert_eq!(
                puppet.endpoint.timeout(),
                deadline,
                "a timer, by chunk {}",
                chunk[0]
            );
        }
    }
    puppet.their_tag = right;
    let sack = craft::sack(puppet.their_tsn, 100_000, &[]);
    puppet.say(&[sack]);
    assert!(events(&mut puppet).contains(&Event::Dry));
}

/// CVE-2021-3772: somebody who knows addresses and ports but no tag ends an association.
#[test]
fn nobody_kills_an_association_blindly() {
    /// A tag and a chunk.
    type Kill = fn(&Puppet) -> (u32, Vec<u8>);
    let kills: [(&str, Kill); 6] = [
        ("INIT without streams", |_| {
            (
                0,
                Opening {
                    outbound: 0,
                    ..Opening::default()
                }
                .chunk(craft::INIT),
            )
        }),
        ("INIT with tag zero", |_| {
            (
                0,
                Opening {
                    tag: 0,
                    ..Opening::default()
                }
                .chunk(craft::INIT),
            )
        }),
        ("INIT with a host name", |_| {
            let params = vec![craft::param(11, b"a\0")];
            (
                0,
                Opening {
                    params,
                    ..Opening::default()
                }
                .chunk(craft::INIT),
            )
        }),
        ("INIT ACK without a cookie", |puppet| {
            (0, puppet.opening.chunk(craft::INIT_ACK))
        }),
        ("ABORT with tag zero", |_| {
            (0, craft::chunk(craft::ABORT, 1, &[]))
        }),
        ("COOKIE ECHO of nothing", |_| {
            (0, craft::chunk(craft::COOKIE_ECHO, 0, &[]))
        }),
    ];
    for (what, kill) in kills {
        let (mut puppet, id) = opened(Opening::default(), |_| {});
        let right = puppet.their_tag;
        let (tag, chunk) = kill(&puppet);
        puppet.their_tag = tag;
        puppet.say(&[chunk]);
        puppet.hear();
        assert!(is_open(&mut puppet, id), "{what}");
        puppet.their_tag = right;
        puppet.say(&[craft::data(1000, 0, 0, 3, b"still here")]);
        assert!(
            puppet
                .endpoint
                .receive(puppet.now, id, &mut [0; 100])
                .is_some(),
            "{what}"
        );
    }
}

/// A restart from addresses that the association does not have would hand it to somebody else (RFC 9260 5.2.2).
#[test]
fn a_restart_that_brings_new_addresses_is_refused() {
    let (mut puppet, id) = opened(Opening::default(), |_| {});
    let stranger = craft::param(5, &[10, 9, 9, 9]);
    let init = Opening {
        tag: 99,
        params: vec![stranger],
        ..Opening::default()
    }
    .chunk(craft::INIT);
    let right = std::mem::take(&mut puppet.their_tag);
    puppet.say(&[init]);
    let heard: Vec<_> = puppet.hear().iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(heard, [craft::ABORT]);
    puppet.their_tag = right;
    assert!(is_open(&mut puppet, id));
}

#[test]
fn a_heartbeat_ack_with_a_wrong_nonce_confirms_nothing() {
    let second = sim::address(0, 1);
    let opening = Opening {
        params: vec![craft::param(5, &[10, 1, 0, 1])],
        ..Opening::default()
    };
    let (mut puppet, id) = opened(opening, |_| {});
    let state_of = |puppet: &Puppet| {
        let paths = puppet.endpoint.association(id).expect("open").paths();
        paths
            .iter()
            .find(|(_, path)| path.addr == second)
            .map(|(_, path)| path.state)
    };
    let mut probes = Vec::new();
    for _ in 0..200 {
        puppet.pass(Duration::from_secs(1));
        probes.extend(
            puppet
                .hear()
                .into_iter()
                .filter(|(kind, ..)| *kind == craft::HEARTBEAT),
        );
        let Some((_, _, value)) = probes.last().cloned() else {
            continue;
        };
        let mut chance = Chance::new(probes.len() as u64);
        for _ in 0..20 {
            let mut forged = value.clone();
            let at = 4 + chance.below(forged.len() - 4);
            forged[at] ^= 1 << chance.below(8);
            puppet.here = second;
            puppet.say(&[craft::chunk(craft::HEARTBEAT_ACK, 0, &forged)]);
            puppet.here = sim::address(0, 0);
        }
        if state(&puppet, id) != Some(State::Established) {
            break;
        }
        assert_ne!(
            state_of(&puppet),
            Some(PathState::Active),
            "confirmed by a forged nonce"
        );
    }
    assert!(!probes.is_empty(), "an unconfirmed path is probed");
}

#[test]
fn forward_tsn_in_the_wrong_mode_is_a_violation() {
    let forward_supported = || craft::param(FORWARD_SUPPORTED, &[]);
    let plain = || vec![forward_supported()];
    let interleaved = || {
        let kinds = [craft::I_DATA, craft::FORWARD_TSN, craft::I_FORWARD_TSN];
        vec![
            forward_supported(),
            craft::param(SUPPORTED_EXTENSIONS, &kinds),
        ]
    };
    let i_forward = |tsn: u32| craft::chunk(craft::I_FORWARD_TSN, 0, &tsn.to_be_bytes());
    let i_data = || {
        let mut value = 1000_u32.to_be_bytes().to_vec();
        value.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'x']);
        craft::chunk(craft::I_DATA, 3, &value)
    };
    let wrong = [
        (
            "FORWARD-TSN with I-DATA",
            interleaved(),
            craft::forward(1005),
        ),
        (
            "DATA with I-DATA",
            interleaved(),
            craft::data(1000, 0, 0, 3, b"x"),
        ),
        ("I-FORWARD-TSN without I-DATA", plain(), i_forward(1005)),
        ("I-DATA that was not agreed on", plain(), i_data()),
    ];
    for (what, params, chunk) in wrong {
        let (mut puppet, id) = opened(
            Opening {
                params,
                ..Opening::default()
            },
            |config| config.interleave = true,
        );
        puppet.say(&[chunk]);
        let heard: Vec<_> = puppet.hear().iter().map(|(kind, ..)| *kind).collect();
        assert!(
            puppet
                .endpoint
                .receive(puppet.now, id, &mut [0; 10])
                .is_none(),
            "{what}: something was delivered"
        );
        // It ends the association, or it is not known at all: never is it obeyed.
        let unknown = heard.iter().all(|kind| *kind == craft::ERROR)
            && !events(&mut puppet)
                .iter()
                .any(|e| matches!(e, Event::Down(_)));
        assert!(
            heard.contains(&craft::ABORT) || unknown,
            "{what}: {heard:?}"
        );
        if unknown && is_open(&mut puppet, id) {
            puppet.say(&[craft::data(1000, 0, 0, 3, b"next")]);
            assert!(
                puppet
                    .endpoint
                    .receive(puppet.now, id, &mut [0; 10])
                    .is_some(),
                "{what}: a TSN was skipped"
            );
        }
    }
}

#[test]
fn forward_tsn_over_everything_is_survived() {
    for ahead in [0_u32, 1, 100, 70_000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
        let params = vec![craft::param(FORWARD_SUPPORTED, &[])];
        let (mut puppet, id) = opened(
            Opening {
                params,
                ..Opening::default()
            },
            |_| {},
        );
        puppet.say(&[craft::data(1002, 0, 2, 3, b"later")]);
        puppet.say(&[craft::forward(999_u32.wrapping_add(ahead))]);
        puppet.hear();
        puppet.pass(Duration::from_secs(1));
        puppet.hear();
        if state(&puppet, id) == Some(State::Established) && ahead < 2 {
            puppet.say(&[
                craft::data(1000, 0, 0, 3, b"a"),
                craft::data(1001, 0, 1, 3, b"b"),
            ]);
            puppet.hear();
        }
    }
}

/// CVE-2026-23125: AUTH where no keys exist.
#[test]
fn auth_before_there_are_keys_is_dropped() {
    let auths = [
        craft::chunk(craft::AUTH, 0, &[]),
        craft::chunk(craft::AUTH, 0, &[0, 0]),
        craft::chunk(craft::AUTH, 0, &[0, 0, 0, 1]),
        craft::chunk(
            craft::AUTH,
            0,
            &[[0, 9, 0, 3].as_slice(), &[0; 32]].concat(),
        ),
        craft::chunk(
            craft::AUTH,
            0,
            &[[0, 0, 0, 1].as_slice(), &[0; 20]].concat(),
        ),
    ];
    for offered in [false, true] {
        for auth in &auths {
            let change = |config: &mut AssocConfig| config.authentication = offered;
            let (mut puppet, id) = opened(Opening::default(), change);
            puppet.say(&[auth.clone(), craft::data(1000, 0, 0, 3, b"x")]);
            puppet.hear();
            puppet.pass(Duration::from_secs(1));
            let state = state(&puppet, id);
            assert!(
                matches!(state, None | Some(State::Established | State::Closed)),
                "{state:?}"
            );
            // Before an association, and in the middle of its making.
            puppet.port += 1;
            puppet.say(std::slice::from_ref(auth));
            puppet.hear();
            let (here, there) = (sim::address(0, 0), sim::address(1, 0));
            let mut config = AssocConfig::default();
            change(&mut config);
            let mut endpoint = sim::endpoint(1, &config, &[there], [8; 32]);
            let peer = headwater_sctp::endpoint::Peer {
                addresses: &[here],
                port: 7000,
                encap: None,
            };
            let id = endpoint
                .connect(puppet.now, &peer, &config)
                .expect("connect");
            let mut puppet = Puppet::new(endpoint, there, here, Opening::default());
            let init = puppet.packets().remove(0);
            puppet.their_tag = craft::word(&init, 16);
            puppet.say(&[auth.clone(), craft::chunk(craft::COOKIE_ACK, 0, &[])]);
            puppet.say(&[auth.clone(), craft::data(1000, 0, 0, 3, b"x")]);
            puppet.hear();
            assert_eq!(self::state(&puppet, id), Some(State::CookieWait));
        }
    }
}

/// Acknowledgements of what was never sent, and gaps beyond all bounds.
#[test]
fn impossible_sacks_do_no_harm() {
    for_seeds(1200, |seed| {
        let mut chance = Chance::new(seed);
        let (mut puppet, id) = opened(Opening::default(), |_| {});
        queue(&mut puppet, id, &vec![3; 20_000]);
        puppet.hear();
        for _ in 0..10 {
            let cumulative = puppet.their_tsn.wrapping_add(chance.pick(&[
                0,
                1,
                2,
                1000,
                0x8000_0000,
                0xffff_fff0,
            ]));
            let gaps: Vec<_> = (0..chance.below(6))
                .map(|_| (chance.word() as u16 % 40, chance.word() as u16 % 60))
                .collect();
            puppet.say(&[craft::sack(
                cumulative,
                chance.pick(&[0, 1, 1500, u32::MAX]),
                &gaps,
            )]);
            puppet.hear();
            puppet.pass(Duration::from_millis(chance.below(3000) as u64));
            puppet.hear();
        }
        let state = state(&puppet, id);
        assert!(
            matches!(state, None | Some(State::Established | State::Closed)),
            "{state:?}"
        );
    });
}

#[test]
fn data_that_cannot_be_is_answered_or_dropped() {
    let mut nasty = vec![
        ("no user data", craft::data(1000, 0, 0, 3, &[])),
        ("a stream beyond all", craft::data(1000, 60_000, 0, 3, b"x")),
        (
            "far ahead",
            craft::data(1000_u32.wrapping_add(0x7fff_0000), 0, 0, 3, b"x"),
        ),
        (
            "far behind",
            craft::data(1000_u32.wrapping_sub(0x7fff_0000), 0, 0, 3, b"x"),
        ),
    ];
    let mut short = craft::data(1000, 0, 0, 3, b"1234");
    short[3] = 15;
    nasty.push(("cut in its header", short));
    for (what, chunk) in nasty {
        let (mut puppet, id) = opened(Opening::default(), |_| {});
        puppet.say(&[chunk]);
        puppet.hear();
        puppet.pass(Duration::from_secs(1));
        puppet.hear();
        assert!(
            puppet
                .endpoint
                .receive(puppet.now, id, &mut [0; 10])
                .is_none(),
            "{what}"
        );
    }
}

/// Chunks far apart take room that is counted: the window closes before memory grows.
#[test]
fn the_window_counts_what_waits_to_be_put_together() {
    let (mut puppet, id) = opened(Opening::default(), |config| config.receive_window = 50_000);
    // Every second TSN, beginnings of messages that never end.
    for n in 0..2000_u32 {
        let tsn = 1000 + 2 * n + 1;
        puppet.say(&[craft::data(tsn, 0, n as u16, 2, &[0; 1000])]);
        let heard = puppet.hear();
        if let Some((_, _, sack)) = heard.iter().rfind(|(kind, ..)| *kind == craft::SACK) {
            let window = craft::word(sack, 4);
            assert!(window <= 50_000, "{window}");
            let taken = usize::from(u16::from_be_bytes([sack[8], sack[9]]));
            assert!(
                taken * 1000 <= 60_000,
                "{taken} chunks of 1000 in a window of 50000"
            );
        }
        if state(&puppet, id) != Some(State::Established) {
            return;
        }
    }
}

/// Packets with the right tag and checksum, but damaged: cut, lengthened, bits flipped, chunks exchanged, in every state.
#[test]
fn mutated_packets_are_survived_in_every_state() {
    for_seeds(3600, |seed| {
        let mut chance = Chance::new(seed);
        let mut setup = Setup::new(seed).paths(chance.pick(&[1, 2]));
        setup.faults.loss = chance.pick(&[0, 50]);
        let (interleave, authentication) = (chance.coin(), chance.coin());
        let mut pair = setup
            .each(|config| {
                config.interleave = interleave;
                config.authentication = authentication;
                config.address_reconfiguration = authentication;
            })
            .apart();
        pair.net.tape = Some(Vec::new());
        pair.ends[1].endpoint.listen(4);
        pair.connect(
            0,
            &AssocConfig {
                interleave,
                authentication,
                ..AssocConfig::default()
            },
        );
        for end in &mut pair.ends {
            end.lazy = true;
            // What is sent here is nobody's business.
            end.ledger.forget();
        }
        for round in 0..60 {
            pair.step();
            if let Some(flight) = pick_flight(&mut pair, &mut chance) {
                let mut bytes = flight.bytes.clone();
                mutate(&mut bytes, &mut chance);
                let at = pair.now + Duration::from_micros(chance.below(3000) as u64);
                pair.net.inject(at, flight.from, flight.to, bytes);
            }
            for side in [0, 1] {
                disturb(&mut pair, side, round, &mut chance);
            }
        }
        pair.run_for(Duration::from_secs(30));
        for side in [0, 1] {
            if let Some(id) = pair.ends[side].id {
                pair.ends[side].endpoint.abort(pair.now, id, b"");
                pair.ends[side].endpoint.release(pair.now, id);
            }
        }
        pair.run_for(Duration::from_secs(3600));
    });
}

fn pick_flight(pair: &mut Pair, chance: &mut Chance) -> Option<sim::network::Flight> {
    let tape = pair.net.tape.as_ref().expect("a tape");
    let recent = tape.len().saturating_sub(12);
    (tape.len() > recent).then(|| tape[recent + chance.below(tape.len() - recent)].clone())
}

/// What users may do at any time. What comes out is not looked at: with the right tag, an enemy may say what he likes.
fn disturb(pair: &mut Pair, side: usize, round: usize, chance: &mut Chance) {
    let Some(id) = pair.ends[side].id else { return };
    let end = &mut pair.ends[side];
    let message = Outgoing {
        stream: chance.below(3) as u16,
        ppid: 0,
        unordered: chance.coin(),
        sack_now: chance.coin(),
        reliability: chance.pick(&[
            Reliability::Full,
            Reliability::Rtx(0),
            Reliability::Ttl(Duration::from_millis(20)),
        ]),
        context: 0,
        to: None,
        key: None,
    };
    let len = 1 + chance.below(3000);
    let _ = end
        .endpoint
        .send(pair.now, id, &message, &vec![0; len], false);
    while chance.coin() && end.endpoint.receive(pair.now, id, &mut [0; 1000]).is_some() {}
    if round == 45 && chance.coin() {
        end.endpoint.shutdown(pair.now, id);
    }
}

fn mutate(bytes: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..1 + chance.below(3) {
        let len = bytes.len();
        match chance.below(8) {
            0 => bytes.truncate(chance.below(len + 1)),
            1 => bytes.extend(chance.bytes(1 + chance.clone().below(40))),
            2 if len > 16 => {
                // A chunk's or a parameter's length.
                let at = 12 + chance.below((len - 14) / 2) * 2;
                let value = chance.pick(&[0_u16, 1, 3, 4, 5, 8, 0xff, 0xffff]);
                bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
            }
            3 if len > 16 => {
                // The kind of the first chunk.
                bytes[12] = chance.pick(&[
                    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 64, 128, 130, 132, 192, 193, 194,
                    0x3f, 0xff,
                ]);
            }
            4 if len > 12 => bytes[13 % len] = chance.word() as u8,
            5 if len > 20 => {
                let tail = bytes[12..].to_vec();
                bytes.resize(len.next_multiple_of(4), 0);
                bytes.extend(tail);
            }
            _ if len > 12 => {
                let at = 12 + chance.below(len - 12);
                bytes[at] = chance.pick(&[0, 1, 0x7f, 0x80, 0xff, chance.clone().word() as u8]);
            }
            _ => {}
        }
    }
    craft::seal(bytes);
}

/// The same damage with a wrong tag: what goes on between the two does not notice.
#[test]
fn damaged_packets_with_a_wrong_tag_are_not_noticed() {
    for_seeds(600, |seed| {
        let mut chance = Chance::new(seed);
        let mut pair = Setup::new(seed)
            .faults(|faults| faults.loss = 20)
            .together();
        pair.net.tape = Some(Vec::new());
        for _ in 0..40 {
            pair.send_all(
                chance.below(2),
                chance.below(3) as u16,
                false,
                1 + chance.below(3000),
                Reliability::Full,
            );
            pair.step();
            if let Some(flight) = pick_flight(&mut pair, &mut chance) {
                let mut bytes = flight.bytes.clone();
                mutate(&mut bytes, &mut chance);
                if bytes.len() >= 12 && bytes.get(12) != Some(&craft::INIT) {
                    bytes[4..8]
                        .copy_from_slice(&(craft::tag(&flight.bytes) ^ 0x0100_0001).to_be_bytes());
                    craft::seal(&mut bytes);
                }
                pair.net.inject(pair.now, flight.from, flight.to, bytes);
            }
        }
        pair.until_delivered(LONG);
        pair.until_shut_down(0);
    });
}

/// A packet with a wrong checksum is dropped, however right the rest is.
#[test]
fn a_wrong_checksum_is_never_accepted() {
    let (mut puppet, id) = opened(Opening::default(), |_| {});
    let good = craft::packet(
        puppet.port,
        puppet.their_port,
        puppet.their_tag,
        &[craft::data(1000, 0, 0, 3, b"x")],
    );
    for bit in 0..32 {
        let mut bad = good.clone();
        bad[8 + bit / 8] ^= 1 << (bit % 8);
        puppet.raw(&bad);
    }
    let mut zero = good.clone();
    zero[8..12].fill(0);
    puppet.raw(&zero);
    assert!(
        puppet
            .endpoint
            .receive(puppet.now, id, &mut [0; 10])
            .is_none()
    );
    puppet.raw(&good);
    assert!(
        puppet
            .endpoint
            .receive(puppet.now, id, &mut [0; 10])
            .is_some()
    );
}

/// Data outstanding, and the peer falls silent in the middle: T3 runs, and the association ends with an error.
#[test]
fn a_silent_peer_is_given_up_at_every_point() {
    for_seeds(360, |seed| {
        let mut chance = Chance::new(seed);
        let mut pair = Setup::new(seed)
            .faults(|faults| faults.loss = 30)
            .together();
        for _ in 0..30 {
            pair.send_all(0, 0, false, 1 + chance.below(5000), Reliability::Full);
        }
        for _ in 0..chance.below(60) {
            pair.step();
        }
        pair.net.cut(sim::address(1, 0));
        pair.send_all(0, 0, false, 1000, Reliability::Full);
        assert!(pair.run_until(LONG, |pair| pair.down(0).is_some()));
        assert_eq!(pair.down(0), Some(Down::Unreachable));
    });
}
