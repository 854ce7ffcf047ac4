//! The vocabulary of an experiment: work in cells, ways of carrying it in arms, one sample, and what is expected of it.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::carriage::Counters;
use crate::failure::Result;
use crate::machine::Machine;
use crate::placement::Placement;
use crate::syscalls::Counter;
use crate::tools::Tools;

/// One file of `experiments/` implements this; the runner does the rest.
pub trait Experiment {
    fn name(&self) -> &'static str;
    fn describe(&self) -> &'static str;
    fn cells(&self) -> Vec<Cell>;
    /// Runs the cell's work once, for about `job.time`, with every received byte checked.
    fn sample(&self, job: &Job<'_>) -> Result<Sample>;
}

/// One piece of work, and the ways of carrying it that are compared.
pub struct Cell {
    pub name: String,
    pub unit: Unit,
    pub arms: Vec<Arm>,
    pub goals: Vec<Goal>,
    /// Part of a quick run.
    pub quick: bool,
    /// Connecting is the work, so the loop-back device rightly sees traffic.
    pub connects: bool,
}

/// How a rate is shown.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// As the time of one message.
    RoundTrip,
    /// As bytes a second.
    Stream,
    /// As messages a second.
    Rate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Arm {
    pub name: &'static str,
    pub carrier: Carrier,
    pub nodelay: bool,
    /// Where it makes sense at all; empty means everywhere.
    pub only: &'static [Placement],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    Tcp,
    Unix,
    /// TCP with the library preloaded.
    Accelerated,
    /// Both ends in one program of our own, over the channel or bare memory.
    Raw,
}

const fn arm(name: &'static str, carrier: Carrier) -> Arm {
    Arm {
        name,
        carrier,
        nodelay: false,
        only: &[],
    }
}

pub const TCP: Arm = arm("tcp", Carrier::Tcp);
pub const UNIX: Arm = arm("unix", Carrier::Unix);
pub const ACCELERATED: Arm = arm("accelerated", Carrier::Accelerated);
pub const TCP_NODELAY: Arm = Arm {
    nodelay: true,
    ..arm("tcp-nodelay", Carrier::Tcp)
};
pub const ACCELERATED_NODELAY: Arm = Arm {
    nodelay: true,
    ..arm("accelerated-nodelay", Carrier::Accelerated)
};
pub const RAW_CHANNEL: Arm = arm("raw-channel", Carrier::Raw);
/// The floor: a word that two CPUs hand to and fro.
pub const CACHE_LINE: Arm = Arm {
    only: &[Placement::Apart],
    ..arm("cache-line", Carrier::Raw)
};

/// A ratio that is wanted of a cell: `arm` over `against`, turned so that more is better.
#[derive(Clone)]
pub struct Goal {
    pub arm: &'static str,
    pub against: Against,
    pub metric: Metric,
    pub placements: &'static [Placement],
    pub must: f64,
    pub aim: Option<f64>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Against {
    Arm(&'static str),
    /// A fixed time per message, in nanoseconds.
    Time(f64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    Rate,
    P50,
    P99,
    Cpu,
}

impl Goal {
    /// Accelerated against kernel TCP.
    pub fn rate(placements: &'static [Placement], must: f64, aim: impl Into<Option<f64>>) -> Goal {
        Goal {
            arm: ACCELERATED.name,
            against: Against::Arm(TCP.name),
            metric: Metric::Rate,
            placements,
            must,
            aim: aim.into(),
        }
    }

    pub fn of(self, metric: Metric) -> Goal {
        Goal { metric, ..self }
    }

    pub fn between(self, arm: Arm, against: Arm) -> Goal {
        Goal {
            arm: arm.name,
            against: Against::Arm(against.name),
            ..self
        }
    }

    pub fn within(self, nanoseconds: f64) -> Goal {
        Goal {
            against: Against::Time(nanoseconds),
            ..self
        }
    }
}

/// What the runner asks an experiment for.
pub struct Job<'a> {
    pub site: &'a Site,
    pub cell: &'a Cell,
    pub arm: Arm,
    pub placement: Placement,
    pub time: Duration,
    /// Present in a counted run, whose figures are otherwise thrown away.
    pub counter: Option<&'a Counter>,
}

impl Job<'_> {
    /// The time for a program that only knows whole seconds. Counted runs must differ by some.
    pub fn whole_seconds(&self) -> u64 {
        let stretch = if self.counter.is_some() { 8.0 } else { 1.0 };
        (self.time.as_secs_f64() * stretch).ceil().max(1.0) as u64
    }
}

/// Where measuring happens.
pub struct Site {
    pub machine: Machine,
    pub tools: Tools,
    pub scratch: PathBuf,
}

/// One short run of one arm.
#[derive(Clone, Default, Serialize)]
pub struct Sample {
    pub messages: u64,
    /// With the warm-up: what wake-ups, switches, system calls and loop-back bytes are divided by.
    pub all_messages: u64,
    /// Messages a second.
    pub rate: f64,
    /// Bytes a second, where the cell is about bytes.
    pub bytes_rate: f64,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    /// CPU time of both ends, per message.
    pub cpu_ns: f64,
    /// Context switches of both ends, per message.
    pub switches: f64,
    pub loopback_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
}

impl Sample {
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        // Times are turned round, so that more is better everywhere.
        match metric {
            Metric::Rate => Some(self.rate),
            Metric::P50 => self.p50_ns.map(|ns| 1e9 / ns),
            Metric::P99 => self.p99_ns.map(|ns| 1e9 / ns),
            Metric::Cpu => Some(1e9 / self.cpu_ns.max(1.0)),
        }
    }

    pub fn per_message(&self, count: u64) -> f64 {
        count as f64 / self.all_messages.max(1) as f64
    }
}
