use super::*;
use crate::experiment::{Arm, Cell, Sample, Unit};
use crate::verdict::Series;

/// The kernel's pipe takes 400 ns and a quarter of one for each byte, the STREAMS pipe an eighth and a half of that.
fn cell(work: &str, size: usize, placement: Placement) -> CellReport {
    let series = |arm: Arm, ns: f64| Series {
        arm,
        samples: vec![
            Some(Sample {
                rate: 1e9 / ns,
                ..Sample::default()
            });
            5
        ],
        failures: Vec::new(),
        syscalls: None,
        wrong_contents: false,
    };
    let bytes = size as f64;
    let all = [
        series(PIPE, 400.0 + bytes / 4.0),
        series(STREAMS, 50.0 + bytes / 8.0),
    ];
    let cell = Cell::new(
        format!("{work}-{size}"),
        Unit::Messages,
        vec![PIPE, STREAMS],
    );
    CellReport::new(&cell, placement, &all)
}

#[test]
fn the_lines_and_the_factors_stand_beside_those_of_2007() {
    let mut cells: Vec<CellReport> = [4, 64, 4096, 65536]
        .map(|size| cell("one", size, Same))
        .into();
    cells.push(cell("two", 64, Apart));
    let conclusion = conclude(&cells);
    let ours = conclusion.seeds.iter().map(|seed| seed.ours.as_str());
    let ours: Vec<&str> = ours.collect();
    assert!(ours[0].starts_with("7.17 (7.17 to 7.17) times by one process; 7.17 ("));
    assert_eq!(
        ours[1],
        "8.00 times in write-read delay, 2.00 times in throughput, by one process"
    );
    assert_eq!(conclusion.headlines.len(), 2);
    let named = |name: &str| conclusion.plots.iter().find(|plot| plot.name == name);
    let delay = named("one-delay-same").unwrap();
    // The line goes no farther than the regression; the throughput is that of all sizes.
    assert_eq!(delay.curves[0].points.len(), 3);
    assert_eq!(
        named("one-throughput-same").unwrap().curves[0].points.len(),
        4
    );
    assert_eq!(named("write-reads-64").unwrap().x.names.len(), 3);
}
