//! Receive posting: the writer fills a blocked reader's buffer, against the ring, which copies twice, and a pipe.

use super::super::work::{Work, boxed};
use super::POSTING;
use super::program;
use crate::carriage::Proof;
use crate::experiment::{Arm, Carrier, Cell, Job, PIPE, RAW_CHANNEL, Sample, Unit};
use crate::failure::{Failure, Result};
use crate::placement::Placement;

/// process_vm_writev(2) into the buffer of a reader that waits.
pub const POSTED: Arm = Arm {
    name: "posted",
    ..RAW_CHANNEL
};

pub fn works() -> Vec<Box<dyn Work>> {
    let sizes = [1, 4, 16, 32, 64, 128, 256, 512, 1024, 4096].map(|kib| kib << 10);
    boxed(sizes.map(|size| Posting { size })).collect()
}

struct Posting {
    size: usize,
}

impl Work for Posting {
    fn cell(&self) -> Cell {
        Cell {
            placements: Placement::UNDISTURBED,
            proof: Proof::None,
            ..Cell::new(
                format!("{POSTING}-{}", self.size),
                Unit::Messages,
                vec![PIPE, RAW_CHANNEL, POSTED],
            )
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let mut program = job.site.tools.load("lan");
        let wire = match job.arm {
            POSTED => "posted",
            _ if job.arm.carrier == Carrier::Pipe => "pipe",
            _ => "ring",
        };
        program.args(["post", wire, "--request", &self.size.to_string()]);
        program.args(["--seconds", &job.time.as_secs_f64().to_string()]);
        program::both_ends(job, program, "").map_err(|failure| match failure {
            Failure::Ended(_, said) if said.contains("not permitted") => Failure::Missing(format!(
                "leave to write into another process's memory (kernel.yama.ptrace_scope, seccomp): {said}"
            )),
            other => other,
        })
    }
}
