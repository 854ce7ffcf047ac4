//! What many streams that do nothing take. A pipe has two streams, one at each end.

use serde::Deserialize;

use super::{NAME, STREAMS, Work, kind, parse};
use crate::carriage::Proof;
use crate::exchange;
use crate::experiment::{Arm, Cell, Job, PIPE, Sample, Unit, streams};
use crate::failure::Result;
use crate::placement::Placement::Same;

pub fn works() -> Vec<Box<dyn Work>> {
    [1_000, 10_000]
        .map(|count| Box::new(Memory { count }) as Box<dyn Work>)
        .into()
}

/// After a message of 64 bytes in each direction.
const USED: Arm = streams("streams-used");

struct Memory {
    count: usize,
}

/// What `headwater-load perftest memory` prints, per stream.
#[derive(Deserialize)]
struct Taken {
    streams: u64,
    address_space: f64,
    resident: f64,
}

impl Work for Memory {
    fn cell(&self) -> Cell {
        Cell {
            stretch: 0.5,
            placements: &[Same],
            proof: Proof::None,
            ..Cell::new(
                format!("memory-{}", self.count),
                Unit::Footprint,
                vec![PIPE, STREAMS, USED],
            )
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut program = job.site.tools.load("perftest");
        program.args(["memory", kind(job.arm), &self.count.to_string()]);
        program.args((job.arm == USED).then_some("--used"));
        let (said, counters) = exchange::alone(job, NAME, program)?;
        let taken: Taken = parse(NAME, &said)?;
        Ok(Sample {
            messages: taken.streams,
            all_messages: taken.streams,
            memory: Some(taken.resident),
            address_space: Some(taken.address_space),
            counters,
            ..Sample::default()
        })
    }
}
