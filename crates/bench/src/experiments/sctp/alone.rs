//! The engine without I/O: two endpoints in memory, one association or many.

use serde::Deserialize;

use super::{NAME, Work, parse, sockets};
use crate::exchange;
use crate::experiment::{Against, Arm, Cell, Goal, Job, Metric, Proof, Sample, Unit};
use crate::failure::Result;
use crate::placement::Placement::{self, Same};

/// One program: it is on one CPU.
const PLACEMENTS: &[Placement] = &[Same];

const ENGINE: Arm = sockets("engine");
/// Without any association: what the others are compared with.
const EMPTY: Arm = sockets("empty");
const IDLE: Arm = sockets("idle");
const ONE: Arm = sockets("one");
const THOUSAND: Arm = sockets("thousand");

/// Bytes of each end.
const FOOTPRINT: f64 = 8192.0;
const ASSOCIATIONS: usize = 10_000;
/// Of one association's rate that a thousand must have together: their state is in no cache when their turn comes.
const NO_COLLAPSE: f64 = 1.0 / 3.0;

pub fn works() -> Vec<Box<dyn Work>> {
    let engine = |size, most| Alone {
        name: format!("engine-{size}"),
        unit: Unit::Each,
        size,
        arms: vec![ENGINE],
        goal: Goal {
            arm: ENGINE.name,
            ..Goal::rate(PLACEMENTS, 1.0, None).within(most)
        },
    };
    let idle = Alone {
        name: format!("idle-{ASSOCIATIONS}"),
        unit: Unit::Footprint,
        size: 64,
        arms: vec![EMPTY, IDLE],
        goal: Goal {
            arm: IDLE.name,
            against: Against::MoreThan(EMPTY.name),
            metric: Metric::Memory,
            placements: PLACEMENTS,
            must: FOOTPRINT,
            aim: None,
        },
    };
    let active = Alone {
        name: "active-1000".to_string(),
        unit: Unit::Each,
        size: 64,
        arms: vec![ONE, THOUSAND],
        goal: Goal::rate(PLACEMENTS, NO_COLLAPSE, None).between(THOUSAND, ONE),
    };
    let all = [engine(64, 700.0), engine(1024, 900.0), idle, active];
    all.into_iter()
        .map(|work| Box::new(work) as Box<dyn Work>)
        .collect()
}

struct Alone {
    name: String,
    unit: Unit,
    size: usize,
    arms: Vec<Arm>,
    goal: Goal,
}

/// What the program prints.
#[derive(Deserialize)]
struct Measured {
    messages: u64,
    seconds: f64,
    cpu_ns: u64,
    memory: Option<f64>,
}

impl Work for Alone {
    fn cell(&self) -> Cell {
        Cell {
            goals: vec![self.goal.clone()],
            placements: PLACEMENTS,
            proof: Proof::None,
            ..Cell::new(self.name.clone(), self.unit, self.arms.clone())
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut program = job.site.tools.sctpperf();
        match job.arm {
            EMPTY => {
                return Ok(Sample {
                    memory: Some(0.0),
                    messages: 1,
                    all_messages: 1,
                    ..Sample::default()
                });
            }
            IDLE => program.args(["idle", "--count", &ASSOCIATIONS.to_string()]),
            ONE => program.args(["active", "--count", "1"]),
            THOUSAND => program.args(["active", "--count", "1000"]),
            _ => program.arg("engine"),
        };
        program.args([
            "--size",
            &self.size.to_string(),
            "--seconds",
            &job.time.as_secs_f64().to_string(),
        ]);
        let (said, _) = exchange::alone(job, NAME, program)?;
        let measured: Measured = parse(NAME, &said)?;
        let rate = measured.messages as f64 / measured.seconds.max(1e-9);
        Ok(Sample {
            messages: measured.messages,
            all_messages: measured.messages,
            rate,
            bytes_rate: Some(rate * self.size as f64),
            cpu_ns: Some(measured.cpu_ns as f64 / measured.messages.max(1) as f64),
            memory: measured.memory,
            ..Sample::default()
        })
    }
}
