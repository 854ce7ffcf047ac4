//! What is left of an experiment as JSON.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::carriage::Counters;
use crate::conclusion::Conclusion;
use crate::experiment::{Cell, Experiment, Metric, Sample, Unit};
use crate::machine::Machine;
use crate::placement::Placement;
use crate::runner::Effort;
use crate::verdict::{self, Comparison, Series, Syscalls};

#[derive(Serialize)]
pub struct Report {
    pub experiment: &'static str,
    pub describe: &'static str,
    pub machine: Machine,
    /// Seconds since 1970.
    pub started: u64,
    pub pairs: usize,
    pub seconds_per_sample: f64,
    pub wrong_contents: bool,
    pub cells: Vec<CellReport>,
    #[serde(flatten)]
    pub conclusion: Conclusion,
}

#[derive(Serialize)]
pub struct CellReport {
    pub cell: String,
    pub unit: Unit,
    pub placement: Placement,
    pub arms: Vec<ArmReport>,
    pub comparisons: Vec<Comparison>,
    /// The same once more, where the first looked bad.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun: Option<Vec<Comparison>>,
}

/// Medians of an arm's samples; counts are per message, of both ends.
#[derive(Serialize)]
pub struct ArmReport {
    pub arm: &'static str,
    pub samples: usize,
    /// Measured in all samples together.
    pub messages: u64,
    pub rate: Option<f64>,
    pub bytes_rate: Option<f64>,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    pub cpu_ns: Option<f64>,
    pub switches: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_space: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    pub syscalls: Option<Syscalls>,
    pub doorbells: Option<f64>,
    pub sleeps: Option<f64>,
    pub loopback_bytes: Option<f64>,
    pub congestion: Option<String>,
    /// Whether the traffic was proved to go through shared memory; null where that is not claimed.
    pub carried: Option<CarriedReport>,
    /// The library's counters of the last sample.
    pub counters: Option<Counters>,
    pub failures: Vec<String>,
    pub all: Vec<Option<Sample>>,
}

#[derive(Clone, Copy, Serialize)]
pub struct CarriedReport {
    pub yes: usize,
    pub of: usize,
    pub objection: Option<&'static str>,
}

impl Report {
    pub fn new(experiment: &dyn Experiment, machine: &Machine, effort: Effort) -> Report {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Report {
            experiment: experiment.name(),
            describe: experiment.describe(),
            machine: machine.clone(),
            started: since.map_or(0, |time| time.as_secs()),
            pairs: effort.pairs,
            seconds_per_sample: effort.time.as_secs_f64(),
            wrong_contents: false,
            cells: Vec::new(),
            conclusion: Conclusion::default(),
        }
    }

    pub fn add(&mut self, cell: CellReport) {
        let wrong = |arm: &ArmReport| {
            arm.failures
                .iter()
                .any(|failure| failure.contains("wrong bytes"))
        };
        self.wrong_contents |= cell.arms.iter().any(wrong);
        self.cells.push(cell);
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_string_pretty(self)?)
    }
}

impl CellReport {
    pub fn new(cell: &Cell, placement: Placement, all: &[Series]) -> CellReport {
        CellReport {
            cell: cell.name.clone(),
            unit: cell.unit,
            placement,
            arms: all
                .iter()
                .map(|series| ArmReport::new(cell, series, all))
                .collect(),
            comparisons: verdict::compare(cell, placement, all),
            rerun: None,
        }
    }

    pub fn arm(&self, name: &str) -> Option<&ArmReport> {
        self.arms.iter().find(|arm| arm.arm == name)
    }
}

impl ArmReport {
    fn new(cell: &Cell, series: &Series, all: &[Series]) -> ArmReport {
        let last = series.taken().last();
        let counter = |of: fn(&Counters) -> u64| {
            series.median(|sample| Some(sample.per_message(of(sample.counters.as_ref()?))))
        };
        ArmReport {
            arm: series.arm.name,
            samples: series.taken().count(),
            messages: series.taken().map(|sample| sample.messages).sum(),
            rate: series.median(|sample| sample.metric(Metric::Rate)),
            bytes_rate: series
                .median(|sample| (sample.bytes_rate > 0.0).then_some(sample.bytes_rate)),
            p50_ns: series.median(|sample| sample.p50_ns),
            p99_ns: series.median(|sample| sample.p99_ns),
            cpu_ns: series.median(|sample| Some(sample.cpu_ns)),
            switches: series.median(|sample| Some(sample.switches)),
            cpu_share: series.median(|sample| sample.cpu_share),
            memory: series.median(|sample| sample.memory),
            address_space: series.median(|sample| sample.address_space),
            loss: series.median(|sample| sample.loss),
            syscalls: series.syscalls,
            doorbells: counter(|counters| counters.doorbells),
            sleeps: counter(|counters| counters.sleeps),
            loopback_bytes: series.median(|sample| Some(sample.per_message(sample.loopback_bytes))),
            congestion: last.and_then(|sample| sample.congestion.clone()),
            carried: series
                .carried(cell, all)
                .map(|(yes, of, objection)| CarriedReport {
                    yes,
                    of,
                    objection: objection.objection(),
                }),
            counters: last.and_then(|sample| sample.counters.clone()),
            failures: series.failures.clone(),
            all: series.samples.clone(),
        }
    }
}
