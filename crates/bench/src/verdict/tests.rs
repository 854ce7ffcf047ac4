use super::*;
use crate::carriage::Counters;
use crate::experiment::{NATIVE, Unit};

fn cell(goals: Vec<Goal>) -> Cell {
    Cell {
        goals,
        ..Cell::new("work", Unit::Rate, vec![TCP, ACCELERATED])
    }
}

fn series(arm: Arm, rates: &[f64], loopback_bytes: u64) -> Series {
    let sample = |&rate: &f64| {
        Some(Sample {
            messages: 100,
            all_messages: 100,
            rate,
            loopback_bytes: Some(loopback_bytes),
            counters: (arm == ACCELERATED).then(|| Counters {
                accelerated: 2,
                ..Counters::default()
            }),
            ..Sample::default()
        })
    };
    Series {
        arm,
        samples: rates.iter().map(sample).collect(),
        failures: Vec::new(),
        syscalls: None,
        wrong_contents: false,
    }
}

#[test]
fn a_goal_is_met_by_the_median_of_the_pairs() {
    let cell = cell(vec![Goal::rate(&[Placement::Apart], 2.0, 5.0)]);
    let all = [
        series(TCP, &[10.0, 20.0, 10.0], 40_000),
        series(ACCELERATED, &[30.0, 60.0, 500.0], 100),
    ];
    let found = compare(&cell, Placement::Apart, &all);
    assert_eq!(
        (found[0].figure, found[0].verdict),
        (Figure::Ratio(3.0), Verdict::Must)
    );
    assert_eq!(found[1].verdict, Verdict::NotSlower);
    // No goal was set for the other placement, only that it be no slower.
    assert_eq!(compare(&cell, Placement::Same, &all).len(), 1);
}

#[test]
fn a_ratio_without_proof_of_carriage_is_no_result() {
    let cell = cell(Vec::new());
    let all = [
        series(TCP, &[10.0], 40_000),
        series(ACCELERATED, &[100.0], 39_000),
    ];
    assert_eq!(
        compare(&cell, Placement::Apart, &all)[0].verdict,
        Verdict::NotCarried
    );
    assert_eq!(
        all[1].carried(&cell, &all),
        Some((0, 1, Carried::SeenByKernel))
    );
}

#[test]
fn slower_by_more_than_a_twentieth_is_slower() {
    let cell = cell(Vec::new());
    let verdict = |rates: &[f64]| {
        let all = [
            series(TCP, &vec![100.0; rates.len()], 40_000),
            series(ACCELERATED, rates, 0),
        ];
        compare(&cell, Placement::Free, &all)[0].verdict
    };
    assert_eq!(verdict(&[96.0; 15]), Verdict::NotSlower);
    assert_eq!(verdict(&[94.0; 15]), Verdict::Slower);
}

#[test]
fn a_failed_round_breaks_only_its_own_pair() {
    let cell = cell(Vec::new());
    let mut all = [
        series(TCP, &[10.0, 10.0, 10.0], 40_000),
        series(ACCELERATED, &[20.0, 30.0, 40.0], 0),
    ];
    all[0].samples[0] = None;
    let found = compare(&cell, Placement::Free, &all);
    assert_eq!((found[0].pairs, found[0].figure), (2, Figure::Ratio(3.5)));
}
#[test]
fn a_cost_is_judged_by_its_difference_alone() {
    let cell = Cell {
        goals: vec![Goal {
            against: Against::MoreThan(NATIVE.name),
            metric: Metric::Time,
            ..Goal::rate(&Placement::ALL, 5.0, None)
        }],
        ..Cell::new("work", Unit::Each, vec![NATIVE, ACCELERATED])
    };
    let found = |ns: [f64; 3]| {
        let native = series(NATIVE, &[100.0, 200.0, 300.0].map(|ns| 1e9 / ns), 40_000);
        let accelerated = series(ACCELERATED, &ns.map(|ns| 1e9 / ns), 0);
        let found = compare(&cell, Placement::Same, &[native, accelerated]);
        // Twice the time is no matter where the goal is about nanoseconds.
        assert_eq!(found.len(), 1);
        (found[0].figure.value().round(), found[0].verdict)
    };
    assert_eq!(found([200.0, 203.0, 304.0]), (4.0, Verdict::Must));
    assert_eq!(found([106.0, 206.0, 302.0]), (6.0, Verdict::Missed));
    assert_eq!(found([90.0, 198.0, 302.0]), (-2.0, Verdict::Must));
}

#[test]
fn the_report_tells_a_ratio_from_a_difference() {
    let ratio = serde_json::to_string(&Figure::Ratio(2.0)).unwrap();
    let more = serde_json::to_string(&Figure::More(2.0)).unwrap();
    assert_eq!(
        (ratio.as_str(), more.as_str()),
        (r#"{"ratio":2.0}"#, r#"{"more":2.0}"#)
    );
}
