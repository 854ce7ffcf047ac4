//! An experiment made of kinds of work.

use crate::conclusion::Conclusion;
use crate::experiment::{Cell, Experiment, Goal, Job, Sample};
use crate::failure::{Failure, Result};
use crate::placement::Placement;
use crate::report::CellReport;
use crate::tables;

/// One kind of work: the cell that describes it, and how to do it once.
pub trait Work {
    fn cell(&self) -> Cell;
    fn sample(&self, job: &Job<'_>) -> Result<Sample>;
}

pub struct Works {
    pub name: &'static str,
    works: Vec<Box<dyn Work>>,
    /// The placements of a cell that a run of everything has; none, and the cell is left to one with `--all`.
    usual: fn(&Cell) -> &'static [Placement],
    /// What a report says about all cells together.
    conclude: fn(&[CellReport]) -> Conclusion,
}

impl Works {
    /// Those of a quick run come first, in its order.
    pub fn new(
        name: &'static str,
        works: impl IntoIterator<Item = Box<dyn Work>>,
        usual: fn(&Cell) -> &'static [Placement],
        conclude: fn(&[CellReport]) -> Conclusion,
    ) -> Works {
        let quick = tables::quick(name);
        let mut works: Vec<Box<dyn Work>> = works.into_iter().collect();
        let place = |cell: &str| quick.iter().position(|own| *own == cell);
        works.sort_by_cached_key(|work| place(&work.cell().name).unwrap_or(usize::MAX));
        Works {
            name,
            works,
            usual,
            conclude,
        }
    }
}

impl Experiment for Works {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cells(&self) -> Vec<Cell> {
        let quick = tables::quick(self.name);
        let mut cells: Vec<Cell> = self.works.iter().map(|work| work.cell()).collect();
        for cell in &mut cells {
            cell.quick = quick.contains(&cell.name.as_str());
        }
        cells
    }

    fn usual_placements(&self, cell: &Cell) -> &'static [Placement] {
        (self.usual)(cell)
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut works = self.works.iter();
        let work = works.find(|work| work.cell().name == job.cell.name);
        work.ok_or_else(|| Failure::Missing(job.cell.name.clone()))?
            .sample(job)
    }

    fn conclude(&self, cells: &[CellReport]) -> Conclusion {
        (self.conclude)(cells)
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

/// A work whose results an experiment wants to be so and so.
pub struct Wanted {
    pub work: Box<dyn Work>,
    pub goals: Vec<Goal>,
}

impl Work for Wanted {
    fn cell(&self) -> Cell {
        Cell {
            goals: self.goals.clone(),
            ..self.work.cell()
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        self.work.sample(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{TCP, Unit};

    struct Named(&'static str);

    impl Work for Named {
        fn cell(&self) -> Cell {
            Cell::new(self.0, Unit::Rate, vec![TCP])
        }

        fn sample(&self, _: &Job<'_>) -> Result<Sample> {
            Ok(Sample::default())
        }
    }

    #[test]
    fn the_telling_cells_come_first_and_the_others_keep_their_order() {
        let works = boxed(["b", "connect", "a", "rtt-70"].map(Named));
        let works = Works::new("sockets", works, |_| &[], |_| Conclusion::default());
        let cells = works.cells();
        let seen: Vec<(&str, bool)> = cells.iter().map(|c| (c.name.as_str(), c.quick)).collect();
        let wanted = [
            ("rtt-70", true),
            ("connect", true),
            ("b", false),
            ("a", false),
        ];
        assert_eq!(seen, wanted);
    }
}
