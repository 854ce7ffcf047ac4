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
mod tests;
