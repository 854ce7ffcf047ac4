use super::*;
use crate::experiment::{Cell, TCP, Unit};
use crate::experiments;
use crate::failure::Failure;
use crate::placement::Placement;
use crate::verdict::Series;
use headwater_load::wrong_bytes;

fn cell() -> Cell {
    Cell::new("work", Unit::Rate, vec![TCP])
}

fn wrong() -> Series {
    let said = wrong_bytes("message 7").to_string();
    let failure = Failure::ended("program", said.clone(), &said);
    Series {
        failures: vec!["it died".to_string(), failure.to_string()],
        wrong_contents: failure.is_wrong_contents(),
        ..Series::new(TCP)
    }
}

fn flagged(found: CellReport) -> bool {
    let mut report = Report::new(&experiments::by_name("sockets").unwrap());
    report.add(found);
    report.wrong_contents
}

#[test]
fn wrong_bytes_of_any_sample_are_told_of_the_experiment() {
    let of = |series| CellReport::new(&cell(), Placement::Apart, &[series]);
    assert!(flagged(of(wrong())));
    assert!(!flagged(of(Series::new(TCP))));
}

#[test]
fn wrong_bytes_of_a_second_measuring_are_not_lost_with_it() {
    let mut found = CellReport::new(&cell(), Placement::Apart, &[Series::new(TCP)]);
    found.measured_again(&cell(), &[wrong()]);
    assert_eq!(found.arms[0].failures, ["program received wrong bytes"]);
    assert!(flagged(found));
}
