//! The vocabulary of an experiment: work in cells, ways of carrying it in arms, one sample, and what is expected of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::carriage::{Counters, Proof};
use crate::latency::Latency;
use crate::machine::Machine;
use crate::placement::Placement;
use crate::process::Running;
use crate::syscalls::Counter;
use crate::tools::Tools;

/// One piece of work, and the ways of carrying it that are compared.
pub struct Cell {
    pub name: String,
    /// Cells of one work differ in their size alone.
    pub work: String,
    /// Bytes of a message.
    pub size: Option<usize>,
    pub unit: Unit,
    pub arms: Vec<Arm>,
    pub goals: Vec<Goal>,
    /// Part of a quick run.
    pub quick: bool,
    /// Bytes, rounds and CPU time are like others', but a sample takes so many times as long.
    pub stretch: f64,
    pub placements: &'static [Placement],
    pub proof: Proof,
}

impl Cell {
    /// In every placement, with carried traffic, without goals.
    pub fn new(name: impl Into<String>, unit: Unit, arms: Vec<Arm>) -> Cell {
        let name = name.into();
        let (work, size) = match name.rsplit_once('-') {
            Some((work, size)) if size.parse::<usize>().is_ok() => {
                (work.to_string(), size.parse().ok())
            }
            _ => (name.clone(), None),
        };
        // What counts streams or associations says nothing of messages.
        let size = size.filter(|_| unit != Unit::Footprint);
        Cell {
            name,
            work,
            size,
            unit,
            arms,
            goals: Vec::new(),
            quick: false,
            stretch: 1.0,
            placements: &Placement::ALL,
            proof: Proof::Carried { ends: 1 },
        }
    }

    /// It is about what acceleration costs, not about speed.
    pub fn is_about_costs(&self) -> bool {
        let is_cost = |goal: &Goal| matches!(goal.against, Against::MoreThan(_));
        self.goals.iter().any(is_cost)
    }
}

/// What is shown of an arm, above all of its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Unit {
    /// As the time of one message.
    RoundTrip,
    /// As bytes a second.
    Stream,
    /// As messages a second.
    Rate,
    /// As messages a second that were asked for, and what the server used for them.
    Load,
    /// As the time of one piece of work of a single program.
    Each,
    /// No rate: what is used while nothing happens.
    Idle,
    /// As the time of one message, and bytes a second.
    Messages,
    /// No rate: what each of many takes.
    Footprint,
    /// As datagrams that arrive in a second, and the share of those that do not.
    Datagrams,
    /// No rate: how long a message takes from one end to the other.
    Delay,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arm {
    pub name: &'static str,
    pub carrier: Carrier,
    pub nodelay: bool,
    /// Where it makes sense at all; empty means everywhere.
    pub only: &'static [Placement],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    Tcp,
    Unix,
    /// TCP with the library preloaded.
    Accelerated,
    /// Both ends in one program of our own, over the channel or bare memory.
    Raw,
    /// The kernel's pipe.
    Pipe,
    /// A STREAMS pipe, with the library preloaded.
    Streams,
    /// TCP, with a command of the user's before each program.
    Command(&'static [&'static str]),
}

const fn arm(name: &'static str, carrier: Carrier) -> Arm {
    Arm {
        name,
        carrier,
        nodelay: false,
        only: &[],
    }
}

/// A STREAMS pipe of some kind.
pub const fn streams(name: &'static str) -> Arm {
    arm(name, Carrier::Streams)
}

/// XTI that claims to go through shared memory.
pub const fn shared(name: &'static str) -> Arm {
    arm(name, Carrier::Accelerated)
}

pub const TCP: Arm = arm("tcp", Carrier::Tcp);
/// Without the library, where that is not only about TCP.
pub const NATIVE: Arm = arm("native", Carrier::Tcp);
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
pub const PIPE: Arm = arm("pipe", Carrier::Pipe);
pub const STREAMS: Arm = streams("streams");
pub const RAW_CHANNEL: Arm = arm("raw-channel", Carrier::Raw);
/// The floor: a word that two CPUs hand to and fro.
pub const CACHE_LINE: Arm = Arm {
    only: &[Placement::Apart],
    ..arm("cache-line", Carrier::Raw)
};

/// What is wanted of a cell: a ratio of `arm` over `against`, turned so that more is better, or a difference of costs.
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
    /// The difference to an arm, which is to be `must` at most.
    MoreThan(&'static str),
    /// A fixed time per message, in nanoseconds.
    Time(f64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    Rate,
    P50,
    P99,
    Cpu,
    // Costs, of which less is better:
    /// Nanoseconds per message.
    Time,
    /// Share of one CPU.
    CpuShare,
    /// Resident bytes per connection or stream.
    Memory,
    /// Bytes of address space per stream.
    AddressSpace,
    /// Nanoseconds that half of the messages take at most.
    P50Time,
    P99Time,
    /// Share of what was sent that never came.
    Loss,
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

    pub fn between(self, arm: Arm, against: Arm) -> Goal {
        Goal {
            arm: arm.name,
            against: Against::Arm(against.name),
            ..self
        }
    }
}

impl Against {
    /// The arm, if it is one.
    pub fn arm(self) -> Option<&'static str> {
        match self {
            Against::Arm(name) | Against::MoreThan(name) => Some(name),
            Against::Time(_) => None,
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
    /// The programs don't write the library's counters: where each request has a process, doing so costs as much as what is measured.
    pub silent: bool,
}

impl Job<'_> {
    /// Counts from now on what a program and its children do, where that is asked for.
    pub fn watch(&self, program: &Running) {
        if let Some(counter) = self.counter {
            program
                .family()
                .into_iter()
                .for_each(|pid| counter.watch(pid));
        }
    }

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
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    pub messages: u64,
    /// With the warm-up: what wake-ups, switches, system calls and loop-back bytes are divided by.
    pub all_messages: u64,
    /// Messages a second; 0 where there is no rate.
    pub rate: f64,
    /// Bytes a second, where the cell is about bytes.
    pub bytes_rate: Option<f64>,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    /// CPU time of both ends, per message.
    pub cpu_ns: Option<f64>,
    /// Context switches of both ends, per message.
    pub switches: Option<f64>,
    /// The parts of `cpu_ns`, and of `switches`, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary: Option<f64>,
    /// Messages a second that were sent, that were received; `rate` is the lesser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_rate: Option<f64>,
    /// Whole distributions, by name: `round_trip`, `server_read`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, Latency>,
    /// What else the experiment tells, by names with their unit: `server_read_p50_ns`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
    /// Share of one CPU that was used, by the ends that the cell is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
    /// Resident bytes of both ends, per connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// Mapped bytes, per stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_space: Option<f64>,
    /// Share of what was sent that never came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    pub loopback_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
}

impl Sample {
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        // The times are turned round, so that more is better; costs are not.
        match metric {
            Metric::Rate => (self.rate > 0.0).then_some(self.rate),
            Metric::P50 => self.p50_ns.map(|ns| 1e9 / ns),
            Metric::P99 => self.p99_ns.map(|ns| 1e9 / ns),
            Metric::Cpu => self.cpu_ns.map(|ns| 1e9 / ns.max(1.0)),
            Metric::Time => (self.rate > 0.0).then(|| 1e9 / self.rate),
            Metric::CpuShare => self.cpu_share,
            Metric::Memory => self.memory,
            Metric::AddressSpace => self.address_space,
            Metric::P50Time => self.p50_ns,
            Metric::P99Time => self.p99_ns,
            Metric::Loss => self.loss,
        }
    }

    /// Bytes that the loop-back device saw, of a message.
    pub fn loopback(&self) -> Option<f64> {
        self.loopback_bytes.map(|bytes| self.per_message(bytes))
    }

    pub fn per_message(&self, count: u64) -> f64 {
        count as f64 / self.all_messages.max(1) as f64
    }
}
