use super::*;
use crate::experiment::{Cell, PIPE, STREAMS, Sample, Unit};
use crate::verdict::{Figure, Series, Verdict};

fn cell(name: &str, placement: Placement, times: [(Arm, [f64; 3]); 2]) -> CellReport {
    let sample = |ns: f64| {
        Some(Sample {
            rate: 1e9 / ns,
            ..Sample::default()
        })
    };
    let all = times.map(|(arm, times)| Series {
        arm,
        samples: times.map(sample).into(),
        failures: Vec::new(),
        syscalls: None,
        wrong_contents: false,
    });
    let cell = Cell::new(name, Unit::Messages, vec![STREAMS, PIPE]);
    CellReport::new(&cell, placement, &all)
}

#[test]
fn slope_and_intercept_become_throughput_and_delay_beside_the_baseline() {
    let at = |size: f64| {
        let (mine, pipe) = (50.0 + size / 8.0, 400.0 + size / 4.0);
        let times = [(STREAMS, [mine; 3]), (PIPE, [pipe; 3])];
        cell(&format!("one-{size}"), Placement::Same, times)
    };
    let cells = [4.0, 64.0, 4096.0, 65536.0].map(at);
    let lines = Regression::all(&cells, "one", 4096, PIPE);
    assert_eq!(lines.len(), 2);
    assert_eq!((lines[0].arm.as_str(), lines[0].sizes), ("streams", 3));
    let close = |value: f64, to: f64| (value - to).abs() < to * 1e-6;
    assert!(close(lines[0].delay_ns, 50.0));
    assert!(close(lines[0].bytes_per_second.unwrap(), 8e9));
    assert!(close(lines[0].delay_factor.unwrap(), 8.0));
    assert!(close(lines[0].throughput_factor.unwrap(), 2.0));
}

#[test]
fn where_more_bytes_take_no_more_time_no_throughput_is_told() {
    let at = |size: f64| {
        let times = [(STREAMS, [50.0; 3]), (PIPE, [400.0 - size / 64.0; 3])];
        cell(&format!("one-{size}"), Placement::Same, times)
    };
    let lines = Regression::all(&[4.0, 64.0, 4096.0].map(at), "one", 4096, PIPE);
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert_eq!(line.bytes_per_second, None, "{}", line.arm);
    }
}

#[test]
fn each_arm_is_taken_where_it_is_best() {
    let cells = [
        cell(
            "two-64",
            Placement::Apart,
            [(STREAMS, [50.0; 3]), (PIPE, [900.0; 3])],
        ),
        cell(
            "two-64",
            Placement::Same,
            [(STREAMS, [100.0; 3]), (PIPE, [400.0; 3])],
        ),
    ];
    let goal = Goal::rate(&[], 4.0, 7.0).between(STREAMS, PIPE);
    let best = Best::of(&cells, "two-64", &Placement::ALL, &goal, PIPE).unwrap();
    assert_eq!(
        (best.placement, best.against_placement),
        (Placement::Apart, Placement::Same)
    );
    assert_eq!(best.comparison.figure, Figure::Ratio(8.0));
    assert_eq!(best.comparison.verdict, Verdict::Aim);
}
