//! An experiment made of kinds of work.

use crate::experiment::{Cell, Experiment, Job, Sample};
use crate::failure::{Failure, Result};

/// One kind of work: the cell that describes it, and how to do it once.
pub trait Work {
    fn cell(&self) -> Cell;
    fn sample(&self, job: &Job<'_>) -> Result<Sample>;
}

pub struct Works {
    pub name: &'static str,
    pub describe: &'static str,
    pub works: Vec<Box<dyn Work>>,
}

impl Experiment for Works {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn cells(&self) -> Vec<Cell> {
        self.works.iter().map(|work| work.cell()).collect()
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let work = self
            .works
            .iter()
            .find(|work| work.cell().name == job.cell.name);
        work.ok_or_else(|| Failure::Missing(job.cell.name.clone()))?
            .sample(job)
    }
}
