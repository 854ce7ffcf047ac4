//! What a pushed module costs: one that passes messages on, and one that queues them for its service procedure; and the routines
//! that it calls.

use super::{STREAMS, Work, kind, transfer};
use crate::carriage::Proof;
use crate::experiment::{Arm, Cell, Job, Sample, Unit, streams};
use crate::failure::Result;
use crate::placement::Placement::Same;

pub fn works() -> Vec<Box<dyn Work>> {
    vec![Box::new(Pushed), Box::new(Routines)]
}

const SIZE: usize = 64;

/// An arm, and what is pushed in it at which end.
const PUSHED: [(Arm, &str, &str); 4] = [
    (streams("nullmod-reading"), "--push-reading", "nullmod"),
    (streams("nullmod-writing"), "--push-writing", "nullmod"),
    (streams("bufmod-reading"), "--push-reading", "bufmod"),
    (streams("bufmod-writing"), "--push-writing", "bufmod"),
];

struct Pushed;

impl Work for Pushed {
    fn cell(&self) -> Cell {
        let mut arms = vec![STREAMS];
        arms.extend(PUSHED.map(|(arm, ..)| arm));
        Cell {
            stretch: 0.5,
            placements: &[Same],
            proof: Proof::None,
            ..Cell::new("module", Unit::Messages, arms)
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut program = job.site.tools.load("perftest");
        program.args(["one", kind(job.arm), &SIZE.to_string()]);
        program.arg((job.time / 2).as_secs_f64().to_string());
        if let Some((_, end, module)) = PUSHED.iter().find(|(arm, ..)| *arm == job.arm) {
            program.args([end, module]);
        }
        transfer(job, program)
    }
}

/// Those that a module calls for each message.
struct Routines;

impl Work for Routines {
    fn cell(&self) -> Cell {
        Cell {
            stretch: 0.25,
            placements: &[Same],
            proof: Proof::None,
            ..Cell::new(
                "ddi",
                Unit::Each,
                ["putnext", "queue", "block"].map(streams).into(),
            )
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut program = job.site.tools.load("ddi");
        program.args([job.arm.name, "--seconds"]);
        program.arg((job.time / 4).as_secs_f64().to_string());
        transfer(job, program)
    }
}
