//! Messages of all sizes: one process that fills and drains the pipe, and two processes.

use super::super::work::boxed;
use super::{Work, kind, transfer};
use crate::carriage::Proof;
use crate::experiment::{Cell, Job, PIPE, STREAMS, Sample, UNIX, Unit};
use crate::failure::Result;
use crate::placement::Placement::{self, Free, Same, SameBusy};

pub fn works() -> Vec<Box<dyn Work>> {
    let sizes = (2..=16).map(|power| 1usize << power);
    let all = [Pattern::One, Pattern::Two]
        .into_iter()
        .flat_map(|pattern| sizes.clone().map(move |size| Transfer { pattern, size }));
    boxed(all).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    /// One process writes until it would block, then reads everything.
    One,
    /// A writer and a reader.
    Two,
}

struct Transfer {
    pattern: Pattern,
    size: usize,
}

impl Work for Transfer {
    fn cell(&self) -> Cell {
        let size = self.size;
        // One process cannot be apart from itself.
        let (name, placements, stretch): (_, &'static [Placement], _) = match self.pattern {
            Pattern::One => ("one", &[Same, Free, SameBusy], 0.5),
            Pattern::Two => ("two", &Placement::ALL, 1.0),
        };
        Cell {
            placements,
            stretch,
            // The program itself refuses what is no stream.
            proof: Proof::None,
            ..Cell::new(
                format!("{name}-{size}"),
                Unit::Messages,
                vec![PIPE, STREAMS, UNIX],
            )
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        // One process alone knows no scheduler's moods.
        let (word, time) = match self.pattern {
            Pattern::One => ("one", job.time / 2),
            Pattern::Two => ("two", job.time),
        };
        let mut program = job.site.tools.load("perftest");
        program.args([word, kind(job.arm), &self.size.to_string()]);
        program.args([&time.as_secs_f64().to_string(), "--on-eof"]);
        let writer = job.placement.client_cpu(&job.site.machine.cpus);
        if let (Pattern::Two, Some(cpu)) = (self.pattern, writer) {
            program.args(["--writer-cpu", &cpu.to_string()]);
        }
        transfer(job, program)
    }
}
