//! An experiment made of kinds of work.

use crate::cells::CellReport;
use crate::conclusion::Conclusion;
use crate::experiment::{Cell, Job, Sample};
use crate::failure::{Failure, Result};
use crate::tables;

/// One kind of work: the cell that describes it, and how to do it once.
pub trait Work {
    fn cell(&self) -> Cell;
    fn sample(&self, job: &Job<'_>) -> Result<Sample>;
}

pub struct Works {
    pub name: &'static str,
    works: Vec<Box<dyn Work>>,
    /// What a report says about all cells together.
    conclude: fn(&[CellReport]) -> Conclusion,
}

impl Works {
    /// Those of a quick run come first, in its order.
    pub fn new(
        name: &'static str,
        works: impl IntoIterator<Item = Box<dyn Work>>,
        conclude: fn(&[CellReport]) -> Conclusion,
    ) -> Works {
        let quick = tables::quick(name);
        let mut works: Vec<Box<dyn Work>> = works.into_iter().collect();
        let place = |cell: &str| quick.iter().position(|own| *own == cell);
        works.sort_by_cached_key(|work| place(&work.cell().name).unwrap_or(usize::MAX));
        Works {
            name,
            works,
            conclude,
        }
    }

    /// Each with what is wanted of it.
    pub fn cells(&self) -> Vec<Cell> {
        let quick = tables::quick(self.name);
        let mut cells: Vec<Cell> = self.works.iter().map(|work| work.cell()).collect();
        for cell in &mut cells {
            cell.quick = quick.contains(&cell.name.as_str());
            cell.goals = tables::goals(self.name, cell);
        }
        cells
    }

    /// Runs the cell's work once, for about `job.time`, with every received byte checked.
    pub fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut works = self.works.iter();
        let work = works.find(|work| work.cell().name == job.cell.name);
        work.ok_or_else(|| Failure::Missing(job.cell.name.clone()))?
            .sample(job)
    }

    /// What follows from all cells together.
    pub fn conclude(&self, cells: &[CellReport]) -> Conclusion {
        let mut found = (self.conclude)(cells);
        found.sheets.retain(|sheet| !sheet.rows.is_empty());
        found.plots.retain(|plot| !plot.curves.is_empty());
        found
    }
}

/// Kinds of work of one type.
pub fn boxed<W: Work + 'static>(
    works: impl IntoIterator<Item = W>,
) -> impl Iterator<Item = Box<dyn Work>> {
    works
        .into_iter()
        .map(|work| Box::new(work) as Box<dyn Work>)
}

#[cfg(test)]
mod tests;
