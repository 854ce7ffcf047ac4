//! Packets by somebody who is not the peer: of wrong tags, from elsewhere, without the keys.

use super::*;

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
            puppet.endpoint.receive(id, &mut [0; 100]).is_some(),
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
