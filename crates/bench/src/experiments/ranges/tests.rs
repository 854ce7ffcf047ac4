use super::*;
use crate::experiment::{Cell, Sample, Unit, streams};
use crate::verdict::Series;

const BASE: Arm = streams("base");
const OTHER: Arm = streams("other");
const BESIDE: [Beside; 2] = [(0, BASE), (2, OTHER)];

#[test]
fn their_counts_of_ten_seconds_become_rates_and_factors() {
    let seeds = UDP.seeds(&[], "udp", &BESIDE);
    assert_eq!(seeds.len(), 8);
    assert_eq!(seeds[2].theirs, "47,258-140,633/s");
    assert_eq!(seeds[3].theirs, "58,725-157,407/s, 1.06-1.38x");
    assert!(seeds.iter().all(|seed| seed.ours.is_empty()));
}

#[test]
fn ours_are_told_by_placement() {
    let series = |arm, rate| Series {
        arm,
        samples: vec![Some(Sample {
            rate,
            ..Sample::default()
        })],
        failures: Vec::new(),
        syscalls: None,
        wrong_contents: false,
    };
    let cell = Cell::new("udp-64", Unit::Rate, vec![BASE, OTHER]);
    let found = |placement| {
        let all = [series(BASE, 100_000.0), series(OTHER, 250_000.0)];
        CellReport::new(&cell, placement, &all)
    };
    let cells = [found(Placement::Same), found(Placement::Apart)];
    let seeds = UDP.seeds(&cells, "udp", &BESIDE);
    assert_eq!(seeds[2].ours, "apart 100,000/s; same 100,000/s");
    assert_eq!(
        seeds[3].ours,
        "apart 250,000/s, 2.50x; same 250,000/s, 2.50x"
    );
    assert_eq!(seeds[0].ours, "");
}

#[test]
fn every_machine_has_a_row_for_each_size() {
    let sheet = TCP.sheet("tcp");
    assert_eq!((sheet.rows.len(), sheet.columns.len()), (28, 9));
    assert!(sheet.rows.iter().all(|row| row.len() == 9));
}
