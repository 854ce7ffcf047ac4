//! Conclusions from cells with known figures.

use super::super::way::{SEMAPHORE, ZERO_COPY};
use super::*;
use crate::experiment::{ACCELERATED_NODELAY, Arm, TCP_NODELAY};
use crate::experiment::{Cell, Sample, Unit};
use crate::experiments::speed::way::{COPY_ALONE, DOORBELL};
use crate::findings::Value;
use crate::verdict::Series;

/// A cell whose arms take these nanoseconds, without proof of being accelerated.
fn cell(name: &str, placement: Placement, times: &[(Arm, f64)]) -> CellReport {
    let sample = |ns: f64| Sample {
        messages: 10,
        all_messages: 10,
        rate: 1e9 / ns,
        user_ns: Some(ns / 2.0),
        voluntary: Some(2.0),
        cpu_share: Some(1.5),
        ..Sample::default()
    };
    let series: Vec<Series> = times
        .iter()
        .map(|&(arm, ns)| Series {
            arm,
            samples: vec![Some(sample(ns)), None, Some(sample(ns))],
            failures: Vec::new(),
            syscalls: None,
            wrong_contents: false,
        })
        .collect();
    let arms = times.iter().map(|(arm, _)| *arm).collect();
    CellReport::new(&Cell::new(name, Unit::RoundTrip, arms), placement, &series)
}

#[test]
fn nothing_follows_from_nothing() {
    let found = all(&[]);
    assert!(found.sheets.is_empty() && found.plots.is_empty());
    assert!(found.seeds.is_empty() && found.headlines.is_empty());
}

#[test]
fn a_run_is_told_for_100_000_messages_beside_tcp_and_the_document() {
    let times = [(TCP_NODELAY, 20_000.0), (DOORBELL, 5_000.0)];
    let found = all(&[cell("messages-70", Placement::Apart, &times)]);
    let sheet = found
        .sheets
        .iter()
        .find(|sheet| sheet.name == "run-70")
        .unwrap();
    assert_eq!(sheet.rows.len(), 2);
    let row = &sheet.rows[1];
    let shown = |head: &str| {
        let place = sheet.columns.iter().position(|column| column.head == head);
        row[place.unwrap()].clone()
    };
    let close = |value: Value, to: f64| match value {
        Value::Number(number) => (number - to).abs() < to * 1e-9,
        _ => false,
    };
    assert!(close(shown("elapsed"), 5e8));
    assert!(close(shown("user"), 2.5e8));
    assert!(close(shown("voluntary switches"), 2e5));
    assert!(close(shown("over tcp-nodelay"), 4.0));
    let of_tcp =
        |seed: &&crate::findings::Seed| seed.what == "100,000 messages of 70 bytes, kernel TCP";
    let seed = found.seeds.iter().find(of_tcp).unwrap();
    assert_eq!(
        (seed.theirs.as_str(), seed.ours.as_str()),
        ("16.2 s", "2.00 s")
    );
}

#[test]
fn copying_is_named_from_where_on_it_is_the_whole_cost() {
    let at = |size: f64, share: f64| {
        let times = [
            (SEMAPHORE, size),
            (ZERO_COPY, size),
            (COPY_ALONE, size * share),
        ];
        cell(&format!("copying-{size}"), Placement::Apart, &times)
    };
    let found = all(&[at(1048576.0, 0.95), at(64.0, 0.2), at(65536.0, 0.92)]);
    let sheet = found
        .sheets
        .iter()
        .find(|sheet| sheet.name == "copying")
        .unwrap();
    assert!(
        sheet
            .caption
            .contains("iii-futex, apart: at least 90 % from 64.0 KiB on."),
        "{}",
        sheet.caption
    );
    assert!(
        sheet
            .caption
            .contains("zero-copy, apart: at least 90 % not up to 1.00 MiB."),
        "{}",
        sheet.caption
    );
    let plot = found
        .plots
        .iter()
        .find(|plot| plot.name == "copying-apart")
        .unwrap();
    let sizes: Vec<f64> = plot.curves[0].points.iter().map(|point| point.x).collect();
    assert_eq!(sizes, [64.0, 65536.0, 1048576.0]);
    assert_eq!(found.headlines.len(), 1);
    assert_eq!(found.headlines[0].factor, 1.0);
}

#[test]
fn slots_become_a_table_of_sizes_and_numbers() {
    let arms = crate::experiments::speed::sweeps::SLOTS;
    let times: Vec<(Arm, f64)> = arms[1..]
        .iter()
        .map(|&(arm, slots)| (arm, 1000.0 + slots as f64))
        .collect();
    let found = all(&[cell("filled-1024", Placement::Apart, &times)]);
    let sheet = found
        .sheets
        .iter()
        .find(|sheet| sheet.name == "filled")
        .unwrap();
    assert_eq!(sheet.rows[0].len(), 1 + arms.len());
    assert_eq!(sheet.rows[0][1], Value::Missing(()));
    let plot = found
        .plots
        .iter()
        .find(|plot| plot.name == "filled")
        .unwrap();
    assert_eq!((plot.curves.len(), plot.curves[0].points.len()), (1, 5));
}

#[test]
fn an_arm_that_was_not_carried_gives_no_factor() {
    let times = [(TCP_NODELAY, 20_000.0), (ACCELERATED_NODELAY, 1_000.0)];
    let found = all(&[cell("messages-70", Placement::Apart, &times)]);
    assert!(found.headlines.is_empty());
}

#[test]
fn an_arm_that_was_not_carried_is_left_out_and_said_to_be() {
    let times = [(TCP_NODELAY, 20_000.0), (ACCELERATED_NODELAY, 500.0)];
    let name = format!("larger-{}", crate::experiments::speed::messages::LARGER[0]);
    let found = all(&[cell(&name, Placement::Apart, &times)]);
    let rows = |name: &str| {
        let sheet = found.sheets.iter().find(|sheet| sheet.name == name);
        sheet.map_or(0, |sheet| sheet.rows.len())
    };
    assert_eq!((rows("larger"), rows("not-carried")), (1, 1));
    let plot = found.plots.iter().find(|plot| plot.name == "larger");
    let curves: Vec<&str> = plot
        .unwrap()
        .curves
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    assert_eq!(curves, [TCP_NODELAY.name]);
}
