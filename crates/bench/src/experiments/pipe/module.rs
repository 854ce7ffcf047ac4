//! What a pushed module costs: one that passes messages on, and one that queues them for its service procedure.

use super::{STREAMS, Work, kind, transfer};
use crate::experiment::{Against, Arm, Cell, Goal, Job, Metric, Proof, Sample, Unit, streams};
use crate::failure::Result;
use crate::placement::Placement::{self, Same};

pub fn works() -> Vec<Box<dyn Work>> {
    vec![Box::new(Pushed)]
}

const SIZE: usize = 64;
const PLACEMENTS: &[Placement] = &[Same];

/// An arm, what is pushed in it at which end, and how many nanoseconds a message may take more.
const PUSHED: [(Arm, &str, &str, f64); 4] = [
    (
        streams("nullmod-reading"),
        "--push-reading",
        "nullmod",
        150.0,
    ),
    (
        streams("nullmod-writing"),
        "--push-writing",
        "nullmod",
        150.0,
    ),
    (streams("bufmod-reading"), "--push-reading", "bufmod", 400.0),
    (streams("bufmod-writing"), "--push-writing", "bufmod", 400.0),
];

struct Pushed;

impl Work for Pushed {
    fn cell(&self) -> Cell {
        let mut arms = vec![STREAMS];
        arms.extend(PUSHED.map(|(arm, ..)| arm));
        let goal = |(arm, _, _, most): (Arm, &str, &str, f64)| Goal {
            arm: arm.name,
            against: Against::MoreThan(STREAMS.name),
            metric: Metric::Time,
            placements: PLACEMENTS,
            must: most,
            aim: None,
        };
        Cell {
            goals: PUSHED.map(goal).into(),
            stretch: 0.5,
            placements: PLACEMENTS,
            proof: Proof::None,
            ..Cell::new("module", Unit::Messages, arms)
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut program = job.site.tools.perftest();
        program.args(["one", kind(job.arm), &SIZE.to_string()]);
        program.arg((job.time / 2).as_secs_f64().to_string());
        if let Some((_, end, module, _)) = PUSHED.iter().find(|(arm, ..)| *arm == job.arm) {
            program.args([end, module]);
        }
        transfer(job, program)
    }
}
