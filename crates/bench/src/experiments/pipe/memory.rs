//! What many streams that do nothing take. A pipe has two streams, one at each end.

use serde::Deserialize;

use super::{NAME, STREAMS, Work, kind, parse};
use crate::exchange;
use crate::experiment::{
    Against, Arm, Cell, Goal, Job, Metric, PIPE, Proof, Sample, Unit, streams,
};
use crate::failure::Result;
use crate::placement::Placement::{self, Same};

pub fn works() -> Vec<Box<dyn Work>> {
    [1_000, 10_000]
        .map(|count| Box::new(Memory { count }) as Box<dyn Work>)
        .into()
}

const PLACEMENTS: &[Placement] = &[Same];
/// After a message of 64 bytes in each direction.
const USED: Arm = streams("streams-used");
const ADDRESS_SPACE: f64 = 1024.0 * 1024.0;
const RESIDENT: f64 = 16.0 * 1024.0;

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
        let most = |arm: Arm, metric, most| Goal {
            arm: arm.name,
            against: Against::MoreThan(PIPE.name),
            metric,
            placements: PLACEMENTS,
            must: most,
            aim: None,
        };
        Cell {
            goals: vec![
                most(STREAMS, Metric::AddressSpace, ADDRESS_SPACE),
                most(STREAMS, Metric::Memory, RESIDENT),
                most(USED, Metric::AddressSpace, ADDRESS_SPACE),
                most(USED, Metric::Memory, RESIDENT),
            ],
            stretch: 0.5,
            placements: PLACEMENTS,
            proof: Proof::None,
            ..Cell::new(
                format!("memory-{}", self.count),
                Unit::Footprint,
                vec![PIPE, STREAMS, USED],
            )
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut program = job.site.tools.perftest();
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
