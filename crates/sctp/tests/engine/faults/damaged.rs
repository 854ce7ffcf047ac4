//! Packets that the network has damaged, or lost for good.

use super::*;

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
    while chance.coin() && end.endpoint.receive(id, &mut [0; 1000]).is_some() {}
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
    assert!(puppet.endpoint.receive(id, &mut [0; 10]).is_none());
    puppet.raw(&good);
    assert!(puppet.endpoint.receive(id, &mut [0; 10]).is_some());
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
