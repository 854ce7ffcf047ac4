//! A cell whose arms are runs of `headwater-load speed`, and what one of them prints.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Work;
use crate::arms::user;
use crate::carriage::Proof;
use crate::exchange;
use crate::experiment::{
    ACCELERATED_NODELAY, Arm, Carrier, Cell, Job, Sample, TCP_NODELAY, Unit, streams,
};
use crate::experiments::printed::{Told, parse};
use crate::failure::{Failure, Result};
use crate::latency::Latency;
use crate::placement::Placement;

const NAME: &str = "headwater-load speed";

pub const fn arm(name: &'static str, carrier: Carrier) -> Arm {
    Arm {
        carrier,
        ..streams(name)
    }
}

pub const HAND_OFF: Arm = arm("i-unix", Carrier::Unix);
pub const DOORBELL: Arm = arm("ii-eventfd", Carrier::Raw);
pub const SEMAPHORE: Arm = arm("iii-futex", Carrier::Raw);
pub const ZERO_COPY: Arm = arm("zero-copy", Carrier::Raw);
pub const COPY_ALONE: Arm = arm("copy-alone", Carrier::Raw);

/// An arm, and the words that make the program take it.
#[derive(Clone)]
pub struct Way {
    pub arm: Arm,
    words: Vec<String>,
    /// The server has a CPU that the client keeps away from.
    reserved: bool,
}

impl Way {
    /// `words` are the program's mode, its carrier where it has one, and its options.
    pub fn new(arm: Arm, words: &str) -> Way {
        Way {
            arm,
            words: words.split_whitespace().map(str::to_string).collect(),
            reserved: false,
        }
    }

    pub fn reserved(self) -> Way {
        let reserved = true;
        Way { reserved, ..self }
    }

    fn cpu_words(&self, job: &Job<'_>) -> Result<Vec<String>> {
        let cpus = &job.site.machine.cpus;
        let one = |cpu: Option<usize>| cpu.into_iter().collect::<Vec<_>>();
        let (server, client) = match cpus.split_first() {
            Some((first, rest)) if self.reserved && !rest.is_empty() => {
                (vec![*first], rest.to_vec())
            }
            _ if self.reserved => return Err(Failure::Missing("a second CPU".to_string())),
            _ => (
                one(job.placement.server_cpu(cpus)),
                one(job.placement.client_cpu(cpus)),
            ),
        };
        let list = |cpus: Vec<usize>| {
            cpus.iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(",")
        };
        let words = [
            ("--server-cpus", list(server)),
            ("--client-cpus", list(client)),
        ];
        let given = words.into_iter().filter(|(_, list)| !list.is_empty());
        Ok(given
            .flat_map(|(word, list)| [word.to_string(), list])
            .collect())
    }
}

/// How the program takes those that many cells have.
const WORDS: [(Arm, &str); 7] = [
    (TCP_NODELAY, "run tcp"),
    (HAND_OFF, "run unix"),
    (DOORBELL, "run eventfd"),
    (SEMAPHORE, "run futex"),
    // The same program as over TCP, with the library.
    (ACCELERATED_NODELAY, "run tcp"),
    (ZERO_COPY, "run in-place"),
    (COPY_ALONE, "copy"),
];

pub fn ways(arms: &[Arm]) -> Vec<Way> {
    let taken = WORDS.into_iter().filter(|(arm, _)| arms.contains(arm));
    taken.map(|(arm, words)| Way::new(arm, words)).collect()
}

/// A cell of the experiment.
pub struct Runs {
    pub name: String,
    pub unit: Unit,
    pub ways: Vec<Way>,
    /// Words for all of them.
    pub words: String,
    /// How long a sample takes, in those of others.
    pub stretch: f64,
    pub placements: &'static [Placement],
    /// Accelerated ends of connections.
    pub ends: u64,
}

impl Runs {
    pub fn new(name: String, ways: Vec<Way>) -> Runs {
        Runs {
            name,
            unit: Unit::RoundTrip,
            ways,
            words: String::new(),
            stretch: 1.0,
            placements: &[Placement::Apart],
            ends: 2,
        }
    }

    pub fn boxed(self) -> Box<dyn Work> {
        Box::new(self)
    }
}

impl Work for Runs {
    fn cell(&self) -> Cell {
        let arms = self.ways.iter().map(|way| way.arm).collect();
        Cell {
            stretch: self.stretch,
            placements: self.placements,
            proof: Proof::Carried { ends: self.ends },
            ..Cell::new(self.name.clone(), self.unit, arms)
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let arm = user::model(job.arm, &self.cell());
        let way = self.ways.iter().find(|way| way.arm == arm);
        let way = way.ok_or_else(|| Failure::Missing(job.arm.name.to_string()))?;
        let mut program = job.site.tools.load("speed");
        program.args(&way.words).args(self.words.split_whitespace());
        program.args(way.cpu_words(job)?).arg("--on-eof");
        let seconds = job.time.as_secs_f64() * self.stretch;
        program.args(["--seconds", &seconds.to_string()]);
        let (said, counters) = exchange::alone(job, NAME, program).map_err(plain)?;
        let timed: Timed = parse(NAME, &said)?;
        Ok(Sample {
            counters,
            ..timed.sample()
        })
    }
}

/// What the program says, as what it means.
fn plain(failure: Failure) -> Failure {
    match failure {
        Failure::Ended(_, said) if said.contains("no permission for") => {
            let what = said
                .rsplit("headwater-load speed: ")
                .next()
                .unwrap_or_default();
            Failure::Missing(format!("what this takes ({what})"))
        }
        other => other,
    }
}

/// What `headwater-load speed` prints.
#[derive(Deserialize)]
struct Timed {
    #[serde(flatten)]
    told: Told,
    loopback_bytes: u64,
    latencies: BTreeMap<String, Latency>,
}

impl Timed {
    fn sample(self) -> Sample {
        let (told, spent, own) = (&self.told, &self.told.spent, self.told.sample());
        let round_trip = self.latencies.get("round_trip");
        // Connecting goes by TCP in any case, so the program leaves it out; counts of a sample are of all messages.
        let loopback = told.per_message(self.loopback_bytes) * own.all_messages as f64;
        Sample {
            p50_ns: round_trip.map(|latency| latency.p50_ns),
            p99_ns: round_trip.map(|latency| latency.p99_ns),
            user_ns: Some(told.per_message(spent.user_ns)),
            system_ns: Some(told.per_message(spent.system_ns)),
            voluntary: Some(told.per_message(spent.voluntary)),
            involuntary: Some(told.per_message(spent.involuntary)),
            cpu_share: Some(told.per_second(spent.user_ns + spent.system_ns) / 1e9),
            loopback_bytes: Some(loopback as u64),
            latencies: self.latencies,
            ..own
        }
    }
}

#[cfg(test)]
mod tests;
