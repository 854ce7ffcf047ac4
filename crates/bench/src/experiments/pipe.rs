//! STREAMS pipes against the kernel's pipes and UNIX sockets: the perftest of Linux Fast-STREAMS.

mod memory;
mod module;
mod transfer;

use std::process::Command;

use serde::Deserialize;

use super::printed::parse;
use super::work::{Work, Works};
use crate::conclusion::{Best, Conclusion, Regression};
use crate::exchange;
use crate::experiment::{Arm, Carrier, Cell, Experiment, Goal, Job, PIPE, STREAMS, Sample};
use crate::failure::{Failure, Result};
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::report::CellReport;

const NAME: &str = "headwater-perftest";
/// The largest message of the regression.
const REGRESSION: usize = 4096;
const UNDISTURBED: &[Placement] = &[Apart, Same, Free];

pub fn experiment() -> impl Experiment {
    let works = [transfer::works(), module::works(), memory::works()];
    Pipes(Works {
        name: "pipe",
        describe: "messages through STREAMS pipes, the kernel's pipes and UNIX sockets",
        works: works.into_iter().flatten().collect(),
    })
}

struct Pipes(Works);

impl Experiment for Pipes {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn describe(&self) -> &'static str {
        self.0.describe()
    }

    fn cells(&self) -> Vec<Cell> {
        self.0.cells()
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        self.0.sample(job)
    }

    fn conclude(&self, cells: &[CellReport]) -> Conclusion {
        let goal = against_pipe(UNDISTURBED, 4.0, 7.0);
        let lines = |work| Regression::all(cells, work, REGRESSION, PIPE);
        Conclusion {
            best: Best::of(cells, "two-64", UNDISTURBED, &goal, PIPE)
                .into_iter()
                .collect(),
            regressions: ["one", "two"].into_iter().flat_map(lines).collect(),
        }
    }
}

fn against_pipe(placements: &'static [Placement], must: f64, aim: impl Into<Option<f64>>) -> Goal {
    Goal::rate(placements, must, aim).between(STREAMS, PIPE)
}

/// The perftest's word for what carries an arm.
fn kind(arm: Arm) -> &'static str {
    match arm.carrier {
        Carrier::Streams => "streams",
        Carrier::Unix => "unix",
        _ => "pipe",
    }
}

/// What `headwater-perftest one|two` prints.
#[derive(Deserialize)]
struct Moved {
    messages: u64,
    all_messages: u64,
    seconds: f64,
    bytes: u64,
    cpu_ns: u64,
    switches: u64,
}

/// Runs the program, which refuses wrong bytes and anything that is no stream where one was meant.
fn transfer(job: &Job<'_>, program: Command) -> Result<Sample> {
    let (said, counters) =
        exchange::alone(job, NAME, program).map_err(|failure| match failure {
            Failure::Ended(name, said) if said.contains("wrong bytes") => Failure::Contents(name),
            other => other,
        })?;
    let moved: Moved = parse(NAME, &said)?;
    let per = 1.0 / moved.messages.max(1) as f64;
    let seconds = moved.seconds.max(1e-9);
    Ok(Sample {
        messages: moved.messages,
        all_messages: moved.all_messages,
        rate: moved.messages as f64 / seconds,
        bytes_rate: moved.bytes as f64 / seconds,
        cpu_ns: moved.cpu_ns as f64 * per,
        switches: moved.switches as f64 * per,
        counters,
        ..Sample::default()
    })
}
