//! A server that has little to do: a thousand small requests a second.

use super::super::printed::both_ends;
use super::super::work::boxed;
use super::{ARMS, LONGER, Work, serve};
use crate::experiment::{Cell, Job, Sample, Unit};
use crate::failure::Result;
use crate::placement::Placement::{Apart, Free, Same};

const RATE: u32 = 1000;

pub fn works() -> Vec<Box<dyn Work>> {
    let loads = [("1000-requests", "echo"), ("1000-requests-epoll", "epoll")];
    boxed(loads.map(|(name, server)| Load { name, server })).collect()
}

struct Load {
    name: &'static str,
    /// Waits in read(2), or in epoll_wait(2).
    server: &'static str,
}

impl Work for Load {
    fn cell(&self) -> Cell {
        Cell {
            placements: &[Apart, Same, Free],
            stretch: f64::from(LONGER),
            ..Cell::new(self.name, Unit::Load, ARMS.into())
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let (exchange, address) = serve(job, self.server, Some(1))?;
        let mut client = job.site.tools.load("echo");
        client.args(["client", "rtt", &address, "--cubic", "--size", "64"]);
        client.args(["--rate", &RATE.to_string()]);
        client.args(["--seconds", &(job.time * LONGER).as_secs_f64().to_string()]);
        let outcome = exchange.run("headwater-load echo client", client, None)?;
        let server_cpu_ns = outcome.server_cpu_ns as f64;
        let sample = both_ends(outcome)?;
        let share = sample.per_message(1) * server_cpu_ns * sample.rate / 1e9;
        Ok(Sample {
            cpu_share: Some(share),
            ..sample
        })
    }
}
