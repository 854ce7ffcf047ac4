//! Accelerated TCP against the kernel's, UNIX sockets and the raw channel: our own echo pair, then real programs.

mod echo;
mod iperf;
mod memcached;
mod nginx;
mod raw;
mod redis;
mod sockperf;

use crate::experiment::{Cell, Experiment, Job, Sample};
use crate::failure::{Failure, Result};

/// One kind of work: the cell that describes it, and how to do it once.
trait Work {
    fn cell(&self) -> Cell;
    fn sample(&self, job: &Job<'_>) -> Result<Sample>;
}

pub struct Sockets {
    works: Vec<Box<dyn Work>>,
}

impl Sockets {
    pub fn new() -> Sockets {
        let works = [
            echo::works(),
            redis::works(),
            memcached::works(),
            sockperf::works(),
            iperf::works(),
            nginx::works(),
        ];
        Sockets {
            works: works.into_iter().flatten().collect(),
        }
    }
}

impl Experiment for Sockets {
    fn name(&self) -> &'static str {
        "sockets"
    }

    fn describe(&self) -> &'static str {
        "TCP of unmodified programs on one host, by the kernel and through shared memory"
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

/// Reads a program's closing line of JSON.
fn parse<T: serde::de::DeserializeOwned>(program: &str, said: &str) -> Result<T> {
    let line = said.trim().lines().next_back().unwrap_or_default();
    serde_json::from_str(line).map_err(|_| Failure::Output(program.to_string(), line.to_string()))
}

/// The first number after `mark` in a program's output.
fn number_after(said: &str, mark: &str) -> Option<f64> {
    let rest = said.split_once(mark)?.1.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_name_of_its_own_and_goals_for_its_own_arms() {
        let cells = Sockets::new().cells();
        for (index, cell) in cells.iter().enumerate() {
            assert!(!cell.name.contains('/'), "{}", cell.name);
            assert!(
                cells[..index].iter().all(|other| other.name != cell.name),
                "{}",
                cell.name
            );
            for goal in &cell.goals {
                assert!(
                    cell.arms.iter().any(|arm| arm.name == goal.arm),
                    "{}",
                    cell.name
                );
                assert!(goal.aim.is_none_or(|aim| goal.must <= aim), "{}", cell.name);
            }
        }
    }
}
