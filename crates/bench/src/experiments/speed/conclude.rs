//! What follows from all cells: tables in the document's manner, curves, the document's figures beside ours.

mod curves;
mod tables;
#[cfg(test)]
mod tests;

use super::{copies, seeds};
use crate::cells::CellReport;
use crate::conclude;
use crate::conclusion::Conclusion;
use crate::placement::Placement;

/// Where the sweeps are made.
const APART: Placement = Placement::Apart;

pub fn all(cells: &[CellReport]) -> Conclusion {
    Conclusion {
        sheets: [tables::all(cells), copies::sheets(cells)].concat(),
        plots: [curves::all(cells), copies::plots(cells)].concat(),
        seeds: seeds::all(cells),
        headlines: conclude::headlines("speed", cells),
        ..Conclusion::default()
    }
}
