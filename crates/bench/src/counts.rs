//! What explains a rate: wake-ups, context switches and system calls of a message, as columns of tables.

use crate::cells::{ArmReport, CellReport};
use crate::findings::{Sheet, Value};
use crate::tables;

impl Sheet {
    /// Adds a row and what explains it, for a table that counts.
    pub fn explained(&mut self, mut row: Vec<Value>, arm: Option<&ArmReport>) {
        row.extend(fields(arm));
        self.rows.push(row);
    }
}

/// An arm's fields for the columns.
pub fn fields(arm: Option<&ArmReport>) -> [Value; 3] {
    let calls = |arm: &ArmReport| Some(arm.syscalls.as_ref()?.per_message);
    [
        arm.and_then(|arm| arm.doorbells).into(),
        arm.and_then(|arm| arm.switches).into(),
        arm.and_then(calls).into(),
    ]
}

/// The rate of every arm of some cells, a row for each.
pub fn rates(experiment: &str, name: &str, cells: &[CellReport]) -> Sheet {
    let mut sheet = tables::sheet(experiment, name, &[]);
    for cell in cells {
        for arm in cell.measured() {
            let row = vec![
                cell.cell.as_str().into(),
                cell.placement.name().into(),
                arm.arm.as_str().into(),
                arm.rate.into(),
                arm.bytes_rate.into(),
                arm.cpu_ns.into(),
            ];
            sheet.explained(row, Some(arm));
        }
    }
    sheet
}

#[cfg(test)]
mod tests {
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
}
