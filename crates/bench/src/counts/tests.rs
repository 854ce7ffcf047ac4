use super::*;
use crate::carriage::Counters;
use crate::cells::CellReport;
use crate::experiment::{Cell, Sample, TCP, Unit};
use crate::placement::Placement;
use crate::verdict::{Series, Syscalls};

#[test]
fn counts_are_of_a_message_and_missing_where_they_are_not_known() {
    let sample = Sample {
        all_messages: 100,
        switches: Some(1.5),
        counters: Some(Counters {
            doorbells: 50,
            ..Counters::default()
        }),
        ..Sample::default()
    };
    let series = Series {
        arm: TCP,
        samples: vec![Some(sample)],
        failures: Vec::new(),
        syscalls: Some(Syscalls {
            per_message: 2.0,
            method: "tracepoint".to_string(),
        }),
        wrong_contents: false,
    };
    let cell = Cell::new("work-1", Unit::Rate, vec![TCP]);
    let found = CellReport::new(&cell, Placement::Apart, &[series]);
    assert_eq!(
        fields(found.arm(TCP.name)),
        [0.5, 1.5, 2.0].map(Value::from)
    );
    assert_eq!(fields(None), [None; 3].map(Value::from));
}
