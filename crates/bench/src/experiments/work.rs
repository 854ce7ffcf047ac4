//! An experiment made of kinds of work.

use crate::experiment::{Cell, Experiment, Goal, Job, Sample};
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

/// The works of a quick run first, in this order, as it has as many of them as its time suffices for; then the others.
pub fn quick_first(works: Vec<Box<dyn Work>>, quick: &[&str]) -> Vec<Box<dyn Work>> {
    let place = |work: &dyn Work| {
        let name = work.cell().name;
        quick.iter().position(|quick| *quick == name)
    };
    let mut placed: Vec<(Option<usize>, Box<dyn Work>)> = works
        .into_iter()
        .map(|work| (place(work.as_ref()), work))
        .collect();
    placed.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
    let marked = |(place, work): (Option<usize>, Box<dyn Work>)| {
        let quick = place.is_some();
        Box::new(Marked { work, quick }) as Box<dyn Work>
    };
    placed.into_iter().map(marked).collect()
}

struct Marked {
    work: Box<dyn Work>,
    quick: bool,
}

impl Work for Marked {
    fn cell(&self) -> Cell {
        Cell {
            quick: self.quick,
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
        let works = ["a", "b", "c", "d"].map(|name| Box::new(Named(name)) as Box<dyn Work>);
        let works = quick_first(works.into(), &["d", "b"]);
        let cells: Vec<Cell> = works.iter().map(|work| work.cell()).collect();
        let seen: Vec<(&str, bool)> = cells.iter().map(|c| (c.name.as_str(), c.quick)).collect();
        assert_eq!(seen, [("d", true), ("b", true), ("a", false), ("c", false)]);
    }
}
