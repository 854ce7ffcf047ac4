//! The engine without I/O: two endpoints in memory, one association or many.

use serde::Deserialize;

use super::super::work::boxed;
use super::{NAME, Told, Work, parse, sockets};
use crate::carriage::Proof;
use crate::exchange;
use crate::experiment::{Arm, Cell, Job, Sample, Unit};
use crate::failure::Result;
use crate::placement::Placement::Same;

const ENGINE: Arm = sockets("engine");
/// Without any association: what the others are compared with.
const EMPTY: Arm = sockets("empty");
const IDLE: Arm = sockets("idle");
const ONE: Arm = sockets("one");
const THOUSAND: Arm = sockets("thousand");

const ASSOCIATIONS: usize = 10_000;

pub fn works() -> Vec<Box<dyn Work>> {
    let work = |name: &str, unit, size, arms| Alone {
        name: name.to_string(),
        unit,
        size,
        arms,
    };
    let all = [
        work("engine-64", Unit::Each, 64, vec![ENGINE]),
        work("engine-1024", Unit::Each, 1024, vec![ENGINE]),
        work("idle-10000", Unit::Footprint, 64, vec![EMPTY, IDLE]),
        work("active-1000", Unit::Each, 64, vec![ONE, THOUSAND]),
    ];
    boxed(all).collect()
}

struct Alone {
    name: String,
    unit: Unit,
    size: usize,
    arms: Vec<Arm>,
}

/// What the program prints.
#[derive(Deserialize)]
struct Measured {
    #[serde(flatten)]
    told: Told,
    memory: Option<f64>,
}

impl Work for Alone {
    fn cell(&self) -> Cell {
        Cell {
            // One program.
            placements: &[Same],
            proof: Proof::None,
            ..Cell::new(self.name.clone(), self.unit, self.arms.clone())
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut program = job.site.tools.load("sctpperf");
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
        let own = measured.told.sample();
        Ok(Sample {
            bytes_rate: Some(own.rate * self.size as f64),
            memory: measured.memory,
            // It tells of none.
            switches: None,
            ..own
        })
    }
}
