//! `results.json`: a whole run, as it is written while it goes on and read again to compare, to draw and to go on.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::experiment::Sample;
use crate::failure::{Failure, Result};
use crate::files;
use crate::machine::Machine;
use crate::placement::Placement;
use crate::report::Report;
use crate::select::Extent;

pub const SCHEMA: &str = "headwater-bench/1";
pub const SAMPLES_SCHEMA: &str = "headwater-bench-samples/1";

/// What `headwater bench` was asked for, and what came of it so far.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Run {
    pub schema: String,
    /// Headwater's.
    pub version: String,
    /// As it would be typed again.
    pub command: String,
    /// Names of experiments and cells; none: everything.
    #[serde(default)]
    pub asked: Vec<String>,
    /// Of the user's own, as they were given.
    #[serde(default)]
    pub arms: Vec<String>,
    /// Seconds since 1970.
    pub started: u64,
    #[serde(default)]
    pub finished: Option<u64>,
    /// Whether everything that was asked for was measured, or found impossible.
    pub complete: bool,
    pub quick: bool,
    /// Every size and placement of what was asked for.
    #[serde(default)]
    pub all: bool,
    pub rounds: usize,
    pub seconds_per_sample: f64,
    pub machine: Machine,
    #[serde(default)]
    pub experiments: Vec<Report>,
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// Rounds that the machine disturbed, and that were therefore taken again.
    #[serde(default)]
    pub disturbed_rounds: u64,
    /// Of those that still were when they had been taken again, and count all the same.
    #[serde(default)]
    pub disturbed_kept: u64,
}

/// An experiment, or a part of one, that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub name: String,
    pub why: String,
}

impl Run {
    /// How much of what was asked for.
    pub fn extent(&self) -> Extent {
        Extent::of(self.quick, self.all)
    }

    /// One that is about to begin.
    pub fn new(command: &str, started: u64, machine: &Machine) -> Run {
        Run {
            schema: SCHEMA.to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            command: command.to_string(),
            started,
            machine: machine.clone(),
            ..Run::default()
        }
    }

    /// Fields that this version does not know are left out; another schema is refused.
    pub fn read(path: &Path) -> Result<Run> {
        let refuse = |why: String| Failure::Read(format!("cannot read {}: {why}", path.display()));
        let text = fs::read(path).map_err(|error| refuse(error.to_string()))?;
        Run::parse(&text).map_err(refuse)
    }

    fn parse(text: &[u8]) -> std::result::Result<Run, String> {
        #[derive(Deserialize)]
        struct Head {
            schema: Option<String>,
        }
        let head: Head = serde_json::from_slice(text)
            .map_err(|error| format!("it is no JSON object: {error}"))?;
        match head.schema.as_deref() {
            Some(SCHEMA) => {}
            Some(other) => {
                return Err(format!(
                    "its schema is {other:?}, and headwater {} reads {SCHEMA:?}",
                    env!("CARGO_PKG_VERSION")
                ));
            }
            None => return Err("it is no results.json of a run: it names no schema".to_string()),
        }
        serde_json::from_slice(text).map_err(|error| format!("it is damaged: {error}"))
    }

    /// Replaces the file as a whole: a crash or a full disk leaves the old one.
    pub fn write(&self, path: &Path) -> Result<()> {
        files::replace(path, &json(self)?)
    }

    /// Medians, spreads and rates alone, as `results.json` has them.
    pub fn without_samples(&self) -> Run {
        let mut run = self.clone();
        let cells = run.experiments.iter_mut().flat_map(|one| &mut one.cells);
        for arm in cells.flat_map(|cell| &mut cell.arms) {
            arm.all = Vec::new();
        }
        run
    }
}

/// Writes every single sample of the run.
pub fn export_samples(run: &Run, path: &Path) -> Result<()> {
    let arms = |report| -> Vec<SampledArm<'_>> { sampled(report).collect() };
    let samples = Samples {
        schema: SAMPLES_SCHEMA,
        version: &run.version,
        started: run.started,
        arms: run.experiments.iter().flat_map(arms).collect(),
    };
    files::replace(path, &json(&samples)?)
}

#[derive(Serialize)]
struct Samples<'a> {
    schema: &'static str,
    version: &'a str,
    started: u64,
    arms: Vec<SampledArm<'a>>,
}

#[derive(Serialize)]
struct SampledArm<'a> {
    experiment: &'a str,
    cell: &'a str,
    placement: Placement,
    arm: &'a str,
    samples: &'a [Option<Sample>],
}

fn sampled(report: &Report) -> impl Iterator<Item = SampledArm<'_>> {
    report.cells.iter().flat_map(|cell| {
        cell.arms.iter().map(|arm| SampledArm {
            experiment: &report.experiment,
            cell: &cell.cell,
            placement: cell.placement,
            arm: &arm.arm,
            samples: &arm.all,
        })
    })
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value).map_err(io::Error::from)?;
    text.push(b'\n');
    Ok(text)
}
