//! Works, and what a report says about them as a whole.

use super::work::Works;
use crate::conclusion::Conclusion;
use crate::experiment::{Cell, Experiment, Job, Sample};
use crate::failure::Result;
use crate::placement::Placement;
use crate::report::CellReport;

pub struct Asked {
    pub works: Works,
    pub question: &'static str,
    pub method: &'static str,
    /// The placements of a cell that a run of everything has; none, and the cell is left to one with `--all`.
    pub usual: fn(&Cell) -> &'static [Placement],
    pub conclude: fn(&[CellReport]) -> Conclusion,
}

impl Experiment for Asked {
    fn name(&self) -> &'static str {
        self.works.name()
    }

    fn describe(&self) -> &'static str {
        self.works.describe()
    }

    fn question(&self) -> &'static str {
        self.question
    }

    fn method(&self) -> &'static str {
        self.method
    }

    fn cells(&self) -> Vec<Cell> {
        self.works.cells()
    }

    fn usual_placements(&self, cell: &Cell) -> &'static [Placement] {
        (self.usual)(cell)
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        self.works.sample(job)
    }

    fn conclude(&self, cells: &[CellReport]) -> Conclusion {
        (self.conclude)(cells)
    }
}
