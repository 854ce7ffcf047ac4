use proptest::prelude::*;

use super::*;

/// Searches on a path that carries `limit`; counts the probes.
fn search(pmtu: &mut Pmtu, limit: usize, now: Time) -> u32 {
    let mut probes = 0;
    while let Some(size) = pmtu.probe(now) {
        assert!(size > pmtu.mtu() && size % 4 == 0);
        assert_eq!(pmtu.probe(now), None, "one probe at a time");
        probes += 1;
        if size <= limit {
            pmtu.on_ack(size)
        } else {
            pmtu.on_timeout(now)
        }
        assert!(probes < 200);
    }
    probes
}

#[test]
fn the_largest_is_tried_first_and_ends_the_search() {
    let mut pmtu = Pmtu::new(1200, 1452);
    assert_eq!(search(&mut pmtu, 9000, Time(0)), 1);
    assert_eq!((pmtu.mtu(), pmtu.next()), (1452, None));
}

#[test]
fn nothing_is_probed_where_there_is_nothing_to_gain() {
    assert_eq!(Pmtu::new(1452, 1452).probe(Time(0)), None);
    assert_eq!(Pmtu::new(1452, 1200).next(), None);
}

#[test]
fn a_fixed_size_stays_whatever_passes() {
    for blow in [|p: &mut Pmtu| p.on_too_big(1000), Pmtu::black_hole] {
        let mut pmtu = Pmtu::fixed(1452);
        assert!(!pmtu.is_to_be_fragmented());
        blow(&mut pmtu);
        assert!(pmtu.is_to_be_fragmented());
        assert_eq!((pmtu.mtu(), pmtu.next()), (1452, None));
        assert_eq!(pmtu.probe(Time(0) + RAISE), None);
    }
}

#[test]
fn one_lost_probe_says_nothing() {
    let mut pmtu = Pmtu::new(1200, 1452);
    for _ in 0..2 {
        assert_eq!(pmtu.probe(Time(0)), Some(1452));
        pmtu.on_timeout(Time(1));
    }
    assert_eq!(pmtu.probe(Time(1)), Some(1452));
    pmtu.on_ack(1452);
    assert_eq!(pmtu.mtu(), 1452);
}

#[test]
fn what_was_too_large_is_tried_again_much_later() {
    let mut pmtu = Pmtu::new(1200, 8952);
    search(&mut pmtu, 1452, Time(5));
    assert_eq!(pmtu.mtu(), 1452);
    let raise = pmtu.next().expect("a time");
    assert_eq!(raise, Time(5) + RAISE);
    pmtu.on_timeout(Time(6));
    assert!(pmtu.wanted.is_none());
    pmtu.on_timeout(raise);
    search(&mut pmtu, 8952, raise);
    assert_eq!(pmtu.mtu(), 8952);
}

#[test]
fn a_black_hole_takes_it_back_step_by_step() {
    let mut pmtu = Pmtu::new(1200, 1452);
    search(&mut pmtu, 1452, Time(0));
    pmtu.black_hole();
    assert_eq!(pmtu.mtu(), 1200);
    search(&mut pmtu, 1372, Time(0));
    assert_eq!(pmtu.mtu(), 1372);
    pmtu.black_hole();
    pmtu.black_hole();
    assert_eq!(pmtu.mtu(), LEAST);
    pmtu.black_hole();
    search(&mut pmtu, 900, Time(0));
    assert!((900 - STEP..=900).contains(&pmtu.mtu()));
}

#[test]
fn hints_of_the_network_are_used_only_where_they_make_sense() {
    let mut pmtu = Pmtu::new(1200, 8952);
    assert_eq!(pmtu.probe(Time(0)), Some(8952));
    pmtu.on_too_big(9000);
    pmtu.on_too_big(20);
    assert_eq!(
        (pmtu.mtu(), pmtu.probe(Time(0))),
        (1200, None),
        "nonsense changes nothing"
    );
    pmtu.on_too_big(1424);
    assert_eq!(pmtu.probe(Time(0)), Some(1424));
    pmtu.on_ack(1424);
    assert_eq!((pmtu.mtu(), pmtu.wanted.is_none()), (1424, true));
    pmtu.on_too_big(1300);
    assert_eq!(pmtu.mtu(), 1200, "the hint is not used before it is proved");
    search(&mut pmtu, 1300, Time(0));
    assert_eq!(pmtu.mtu(), 1300);
    pmtu.on_too_big(1000);
    assert_eq!(pmtu.mtu(), 1000);
}

#[test]
fn a_late_answer_still_counts() {
    let mut pmtu = Pmtu::new(1200, 1452);
    pmtu.probe(Time(0));
    pmtu.on_timeout(Time(1));
    pmtu.on_ack(1452);
    assert_eq!(pmtu.probe(Time(1)), None);
    assert_eq!(pmtu.mtu(), 1452);
}

proptest! {
    #[test]
    fn any_path_is_measured_to_a_step(limit in 1200usize..9000) {
        let mut pmtu = Pmtu::new(1200, 8952);
        let probes = search(&mut pmtu, limit, Time(0));
        prop_assert!(pmtu.mtu() <= limit && pmtu.mtu() + STEP + 4 > limit.min(8952), "{}", pmtu.mtu());
        prop_assert!(probes < 60);
    }

    #[test]
    fn it_never_leaves_its_bounds(steps in prop::collection::vec((0u8..5, 0usize..10_000), 0..100)) {
        let mut pmtu = Pmtu::new(1200, 4000);
        for (what, size) in steps {
            match what {
                0 => drop(pmtu.probe(Time(size as u64 * 1_000_000_000))),
                1 => pmtu.on_ack(size.clamp(1200, 4000) & !3),
                2 => pmtu.on_timeout(Time(size as u64 * 1_000_000_000)),
                3 => pmtu.on_too_big(size),
                _ => pmtu.black_hole(),
            }
            prop_assert!((LEAST..=4000).contains(&pmtu.mtu()));
            prop_assert!(pmtu.wanted.is_none_or(|wanted| wanted > pmtu.mtu() && wanted <= 4000));
        }
    }
}
