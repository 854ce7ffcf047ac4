//! Calls on descriptors that are not looked after.

use super::{ARMS, Told, Work};
use crate::carriage::Proof;
use crate::exchange;
use crate::experiment::{Cell, Job, Sample, Unit};
use crate::failure::Result;
use crate::placement::Placement;

pub fn works() -> Vec<Box<dyn Work>> {
    vec![Box::new(ForeignCall)]
}

/// read(2) of a byte of /dev/zero and write(2) of a byte to /dev/null, in turn.
struct ForeignCall;

impl Work for ForeignCall {
    fn cell(&self) -> Cell {
        Cell {
            placements: &[Placement::Same],
            proof: Proof::Loaded,
            ..Cell::new("foreign-call", Unit::Each, ARMS.into())
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut program = job.site.tools.load("echo");
        program.args(["calls", "--seconds", &job.time.as_secs_f64().to_string()]);
        let (said, counters) = exchange::alone(job, "headwater-load echo calls", program)?;
        Ok(Sample {
            congestion: None,
            counters,
            ..Told::read("headwater-load echo calls", &said)?.sample()
        })
    }
}
