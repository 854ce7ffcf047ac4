//! A peer's own packets that make no sense: impossible, in the wrong mode, or more than there is room for.

use super::*;

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
            puppet.endpoint.receive(id, &mut [0; 10]).is_none(),
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
                puppet.endpoint.receive(id, &mut [0; 10]).is_some(),
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
            puppet.endpoint.receive(id, &mut [0; 10]).is_none(),
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
