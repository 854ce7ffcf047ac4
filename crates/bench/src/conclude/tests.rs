use Placement::{Apart, Same};

use super::*;
use crate::carriage::Counters;
use crate::experiment::{ACCELERATED, Cell, NATIVE, Sample, TCP, UNIX, Unit};
use crate::verdict::Series;

const OVER_TCP: Pair = Pair {
    label: "a round trip",
    cell: "rtt-70",
    arm: ACCELERATED.name,
    against: TCP.name,
    metric: Metric::Rate,
};

fn series(arm: Arm, rates: &[f64], accelerated: u64) -> Series {
    let sample = |&rate: &f64| {
        (rate > 0.0).then(|| Sample {
            rate,
            counters: Some(Counters {
                accelerated,
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

/// TCP does 10, 20 and 40 a second.
fn cell(placement: Placement, rates: [f64; 3], accelerated: u64) -> CellReport {
    let cell = Cell::new("rtt-70", Unit::RoundTrip, vec![TCP, ACCELERATED]);
    let all = [
        series(TCP, &[10.0, 20.0, 40.0], 0),
        series(ACCELERATED, &rates, accelerated),
    ];
    CellReport::new(&cell, placement, &all)
}

#[test]
fn a_headline_says_what_was_compared_where_and_how_sure_that_is() {
    let cells = [cell(Same, [30.0, 80.0, 200.0], 2)];
    let of = "through shared memory, over the kernel's TCP";
    let headline = OVER_TCP.headline(&cells, &[Apart, Same], of).unwrap();
    assert_eq!(headline.what, "a round trip, on one CPU");
    assert_eq!(headline.factor, 4.0);
    assert!((3.0..=4.0).contains(&headline.low) && (4.0..=5.0).contains(&headline.high));
}

#[test]
fn a_round_without_both_samples_counts_for_nothing() {
    let cells = [cell(Apart, [30.0, 0.0, 200.0], 2)];
    let ratio = OVER_TCP.ratio(&cells, Apart).unwrap();
    assert_eq!((ratio.pairs, ratio.figure.value()), (2, 4.0));
    assert!(OVER_TCP.ratio(&[cell(Apart, [0.0; 3], 2)], Apart).is_none());
}

#[test]
fn what_was_not_measured_or_not_carried_is_missing() {
    let of = "of";
    assert!(OVER_TCP.headline(&[], &[Apart], of).is_none());
    let over_unix = OVER_TCP.over(UNIX);
    let cells = [cell(Apart, [30.0, 80.0, 200.0], 0)];
    assert!(over_unix.ratio(&cells, Apart).is_none());
    assert!(OVER_TCP.ratio(&cells, Apart).is_none());
    let plot = bars("sockets", "streams", &[OVER_TCP, over_unix], &cells);
    assert!(plot.curves.is_empty());
    assert!(
        ratios("sockets", "over-tcp", &[OVER_TCP], &cells)
            .rows
            .is_empty()
    );
}

#[test]
fn bars_stand_at_the_places_of_their_names_and_only_those_that_there_are() {
    let other = Pair {
        label: "another",
        cell: "rtt-1",
        ..OVER_TCP
    };
    let cells = [cell(Same, [30.0, 80.0, 200.0], 2)];
    let plot = bars("sockets", "streams", &[other, OVER_TCP], &cells);
    assert_eq!(plot.x.names, ["a round trip"]);
    assert_eq!(plot.curves.len(), 1);
    let point = plot.curves[0].points[0];
    assert_eq!((point.x, point.y), (0.0, 4.0));
    assert!(point.low < Some(4.0) && point.high > Some(4.0));
    let sheet = ratios("sockets", "over-tcp", &[other, OVER_TCP], &cells);
    assert_eq!(sheet.rows.len(), 1);
    assert_eq!(sheet.rows[0][4], Value::Number(4.0));
}

#[test]
fn a_cost_stands_beside_what_it_may_be() {
    let cell = Cell {
        goals: vec![Goal {
            against: Against::MoreThan(NATIVE.name),
            metric: Metric::Time,
            ..Goal::rate(&Placement::ALL, 5.0, None)
        }],
        ..Cell::new("call", Unit::Each, vec![NATIVE, ACCELERATED])
    };
    let times = |arm, ns: [f64; 3]| series(arm, &ns.map(|ns| 1e9 / ns), 1);
    let all = [
        times(NATIVE, [100.0, 200.0, 300.0]),
        times(ACCELERATED, [104.0, 204.0, 304.0]),
    ];
    let cells = [CellReport::new(&cell, Same, &all)];
    let row = &costs("time", Metric::Time, &cells).rows[0];
    let number = |column: usize| match row[column] {
        Value::Number(number) => number.round(),
        _ => panic!("no number in column {column}"),
    };
    assert_eq!([2, 3, 4, 7].map(number), [200.0, 204.0, 4.0, 5.0]);
    assert!(costs("memory", Metric::Memory, &cells).rows.is_empty());
}
