//! One-way streams as ttcp and netperf send them, with Nagle's algorithm and without.

use std::time::Duration;

use super::super::work::{Work, boxed};
use super::program::{self, Shape};
use crate::carriage::Proof;
use crate::experiment::{
    ACCELERATED, ACCELERATED_NODELAY, Cell, Job, RAW_CHANNEL, Sample, TCP, TCP_NODELAY, UNIX, Unit,
};
use crate::failure::Result;
use crate::placement::Placement;

/// What a run of ttcp sends, as far as its number of buffers allows.
const RUN: usize = 64 << 20;
const BUFFERS: (usize, usize) = (2048, 131_072);

pub fn works() -> Vec<Box<dyn Work>> {
    let sizes = [1, 16, 64, 256, 1024, 4096, 16384, 65536];
    let all = [Manner::Ttcp, Manner::Netperf]
        .into_iter()
        .flat_map(|manner| sizes.map(|size| Stream { manner, size }));
    boxed(all).collect()
}

#[derive(Clone, Copy)]
pub enum Manner {
    /// A number of buffers on each connection, into buffers of the same size; from the first write until all has arrived.
    Ttcp,
    /// For a time on one connection, into buffers of 64 KiB.
    Netperf,
}

impl Manner {
    pub const fn name(self) -> &'static str {
        match self {
            Manner::Ttcp => "ttcp",
            Manner::Netperf => "netperf",
        }
    }
}

struct Stream {
    manner: Manner,
    size: usize,
}

impl Work for Stream {
    fn cell(&self) -> Cell {
        let arms = vec![
            TCP,
            ACCELERATED,
            TCP_NODELAY,
            ACCELERATED_NODELAY,
            UNIX,
            RAW_CHANNEL,
        ];
        let name = format!("{}-{}", self.manner.name(), self.size);
        Cell {
            stretch: match self.manner {
                // Whole runs, of which the first is the warm-up.
                Manner::Ttcp => 1.5,
                Manner::Netperf => 1.0,
            },
            placements: Placement::UNDISTURBED,
            proof: Proof::Carried { ends: 2 },
            ..Cell::new(name, Unit::Stream, arms)
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let stream = Shape {
            request: self.size,
            nodelay: job.arm.nodelay,
            ..Shape::new("stream", "")
        };
        let shape = match self.manner {
            Manner::Netperf => stream,
            Manner::Ttcp => Shape {
                count: Some(match job.counter {
                    None => buffers(self.size),
                    Some(_) => counted(self.size, job.time),
                }),
                read: self.size,
                ..stream
            },
        };
        program::sample(job, &shape)
    }
}

/// Enough that what the kernel carries before a connection is taken over does not count.
fn buffers(size: usize) -> u64 {
    (RUN / size).clamp(BUFFERS.0, BUFFERS.1) as u64
}

/// In a counted run, which is compared with one of a quarter of its time: both make about as many connections, so that the
/// difference is that of the buffers.
fn counted(size: usize, time: Duration) -> u64 {
    let share = time.as_secs_f64().min(1.0);
    ((buffers(size) as f64 * share) as u64).max(1)
}

#[cfg(test)]
mod tests;
