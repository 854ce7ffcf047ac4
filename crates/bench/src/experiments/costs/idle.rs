//! Connections that were used and now wait.

use std::thread;
use std::time::Duration;

use super::super::printed::echoed;
use super::{ARMS, LONGER, Work, serve};
use crate::carriage::Proof;
use crate::experiment::{Cell, Job, Sample, Unit};
use crate::failure::Result;
use crate::placement::Placement::{Apart, Same};

const CONNECTIONS: usize = 100;
/// Enough that the first messages, which go by TCP, are a small part.
const MESSAGES: usize = 50;
/// From the last message until nobody polls or spins any more.
const CALM: Duration = Duration::from_millis(200);

pub fn works() -> Vec<Box<dyn Work>> {
    vec![Box::new(Idle)]
}

struct Idle;

impl Work for Idle {
    fn cell(&self) -> Cell {
        Cell {
            placements: &[Apart, Same],
            stretch: 7.0,
            proof: Proof::Carried {
                ends: 2 * CONNECTIONS as u64,
            },
            ..Cell::new("idle", Unit::Idle, ARMS.into())
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let (exchange, address) = serve(job, "epoll", Some(CONNECTIONS))?;
        let mut client = job.site.tools.load("echo");
        client.args(["client", "idle", &address, "--cubic"]);
        client.args(["--connections", &CONNECTIONS.to_string()]);
        client.args(["--count", &MESSAGES.to_string()]);
        let mut both = exchange.join("headwater-load echo client", client)?;
        let limit = Duration::from_secs(10);
        both.client
            .wait_until(limit, |client| client.said().contains("idle\n"))?;
        thread::sleep(CALM);

        let cpu = || both.client.cpu_ns() + both.server().cpu_ns();
        let (before, time) = (cpu(), job.time * LONGER);
        thread::sleep(time);
        let used = cpu() - before;
        let memory = both.client.memory() + both.server().memory();

        both.client.end_input();
        let outcome = both.finish(None)?;
        let (told, _) = echoed(&outcome)?;
        Ok(Sample {
            cpu_share: Some(used as f64 / time.as_nanos() as f64),
            memory: Some(memory as f64 / CONNECTIONS as f64),
            loopback_bytes: Some(outcome.loopback_bytes),
            counters: outcome.counters,
            ..told.sample()
        })
    }
}
