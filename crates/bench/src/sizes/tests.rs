use super::*;
use crate::carriage::Counters;
use crate::experiment::{ACCELERATED, Arm, Cell, TCP, Unit};
use crate::verdict::Series;

const CARRIED: u64 = 2;

/// A cell of TCP and accelerated, from messages a second in each round.
fn cell(size: usize, rates: [&[Option<f64>]; 2], ends: u64) -> CellReport {
    let sample = |rate: f64| Sample {
        rate,
        tx_rate: Some(rate * 2.0),
        rx_rate: Some(rate),
        messages: 1,
        all_messages: 1,
        counters: Some(Counters {
            accelerated: ends,
            ..Counters::default()
        }),
        ..Sample::default()
    };
    let series = |arm: Arm, rates: &[Option<f64>]| Series {
        arm,
        samples: rates.iter().map(|rate| rate.map(sample)).collect(),
        failures: Vec::new(),
        syscalls: None,
        wrong_contents: false,
    };
    let cell = Cell::new(
        format!("work-{size}"),
        Unit::Messages,
        vec![TCP, ACCELERATED],
    );
    let all = [series(TCP, rates[0]), series(ACCELERATED, rates[1])];
    CellReport::new(&cell, Placement::Apart, &all)
}

/// Times of a message that grow as an exact line: 1000 ns and 2 ns for each byte, and half of both.
fn exact(sizes: &[usize]) -> Vec<CellReport> {
    let rate = |size: usize, share: f64| Some(1e9 / ((1000.0 + 2.0 * size as f64) * share));
    let of = |&size: &usize| {
        let (tcp, ours) = ([rate(size, 1.0); 3], [rate(size, 0.5); 3]);
        cell(size, [&tcp, &ours], CARRIED)
    };
    sizes.iter().map(of).collect()
}

fn curve<'a>(plots: &'a [Plot], kind: &str, arm: &str) -> &'a Curve {
    let plot = plots
        .iter()
        .find(|plot| plot.name.contains(kind))
        .expect("the plot");
    let found = plot.curves.iter().find(|curve| curve.name == arm);
    found.expect("the curve")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= b.abs().max(1.0) * 1e-9
}

#[test]
fn four_plots_come_of_each_placement_in_the_order_of_sizes() {
    let plots = four(&exact(&[64, 1, 16384]), "work", "Work", TCP.name);
    let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "work-performance-apart",
            "work-delay-apart",
            "work-throughput-apart",
            "work-improvement-apart"
        ]
    );
    let places = |curve: &Curve| -> Vec<f64> { curve.points.iter().map(|p| p.x).collect() };
    assert_eq!(
        places(curve(&plots, "performance", "tcp")),
        [1.0, 64.0, 16384.0]
    );
    let throughput = curve(&plots, "throughput", "tcp").points[1].y;
    assert!(close(throughput, 64.0 * 1e9 / 1128.0));
}

#[test]
fn the_line_through_the_times_is_the_exact_one() {
    let cells = exact(&[1, 64, 1024, 16384]);
    let plots = four(&cells, "work", "Work", TCP.name);
    let fit = &curve(&plots, "delay", "tcp").fit;
    assert!(close(fit[0].1, 1000.0) && fit[0].0 == 0.0);
    assert!(close(fit[1].1, 1000.0 + 2.0 * 16384.0) && fit[1].0 == 16384.0);
    let fits = &sheets(&cells, "work", "Work")[0];
    let number = |row: usize, column: usize| match fits.rows[row][column] {
        Value::Number(number) => number,
        _ => panic!("no number"),
    };
    assert!(close(number(0, 3), 1000.0) && close(number(0, 4), 2.0) && close(number(0, 5), 1.0));
    assert!(close(number(1, 3), 500.0) && close(number(1, 4), 1.0));
}

#[test]
fn improvement_is_that_of_rounds_in_which_both_were_measured() {
    let some = |rates: [f64; 3]| rates.map(Some);
    let ours = [Some(150.0), None, Some(400.0)];
    let cells = [
        cell(1, [&some([100.0, 100.0, 200.0]), &ours], CARRIED),
        cell(2, [&some([100.0; 3]), &some([50.0; 3])], CARRIED),
    ];
    let plots = four(&cells, "work", "Work", TCP.name);
    let improvement = curve(&plots, "improvement", "accelerated");
    let [first, second] = &improvement.points[..] else {
        panic!("two sizes");
    };
    assert!(close(first.y, 75.0) && close(first.low.unwrap(), 62.5));
    assert!(close(second.y, -50.0));
    assert!(
        plots
            .last()
            .unwrap()
            .curves
            .iter()
            .all(|curve| curve.name != "tcp")
    );
}

#[test]
fn what_was_not_carried_or_not_measured_is_missing() {
    let rates = [Some(10.0); 3];
    let cells = [1, 2].map(|size| cell(size, [&rates, &rates], 0));
    let plots = four(&cells, "work", "Work", TCP.name);
    assert!(
        plots
            .iter()
            .all(|plot| plot.curves.iter().all(|curve| curve.name == "tcp"))
    );
    // One size makes no curve, no sample makes no point.
    assert!(four(&cells[..1], "work", "Work", TCP.name).is_empty());
    let failed = [1, 2].map(|size| cell(size, [&[None], &[None]], 0));
    assert!(four(&failed, "work", "Work", TCP.name).is_empty());
    assert!(four(&cells, "other", "Other", TCP.name).is_empty());
    assert!(sheets(&[], "work", "Work").is_empty());
}

#[test]
fn a_sheet_has_a_row_for_each_arm_of_a_size_with_what_explains_it() {
    let cells = exact(&[64, 1]);
    let sheets = sheets(&cells, "work", "Work");
    let rates = sheets.last().unwrap();
    let heads: Vec<&str> = rates.columns.iter().map(|c| c.head.as_str()).collect();
    assert_eq!(
        heads,
        [
            "Message",
            "arm",
            "Tx",
            "Rx",
            "wake-ups/msg",
            "switches/msg",
            "calls/msg"
        ]
    );
    assert_eq!(rates.rows.len(), 4);
    let received = 1e9 / 1002.0;
    assert_eq!(
        rates.rows[0][..4],
        [
            1.0.into(),
            "tcp".into(),
            (received * 2.0).into(),
            received.into()
        ]
    );
    assert_eq!(rates.rows[3][..2], [64.0.into(), "accelerated".into()]);
}
