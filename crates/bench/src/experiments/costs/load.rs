//! A server that has little to do: a thousand small requests a second.

use super::{ARMS, LONGER, Measured, Served, Work, parse, serve};
use crate::experiment::{Cell, Goal, Job, Metric, Sample, Unit};
use crate::failure::{Failure, Result};
use crate::placement::Placement::{Apart, Free, Same};

const RATE: u32 = 1000;

pub fn works() -> Vec<Box<dyn Work>> {
    [("1000-requests", "echo"), ("1000-requests-epoll", "epoll")]
        .map(|(name, server)| Box::new(Load { name, server }) as Box<dyn Work>)
        .into()
}

struct Load {
    name: &'static str,
    /// Waits in read(2), or in epoll_wait(2).
    server: &'static str,
}

impl Work for Load {
    fn cell(&self) -> Cell {
        Cell {
            goals: vec![Goal::more(Metric::CpuShare, 0.05)],
            placements: &[Apart, Same, Free],
            stretch: f64::from(LONGER),
            ..Cell::new(self.name, Unit::Load, ARMS.into())
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let (exchange, address) = serve(job, self.server, 1)?;
        let mut client = job.site.tools.echo();
        client.args(["client", "rtt", &address, "--cubic", "--size", "64"]);
        client.args(["--rate", &RATE.to_string()]);
        client.args(["--seconds", &(job.time * LONGER).as_secs_f64().to_string()]);
        let outcome = exchange.run("headwater-load echo client", client, None)?;
        let measured: Measured = parse("headwater-load echo client", &outcome.client_said)?;
        let served: Served = parse("headwater-load echo server", &outcome.server_said)?;
        if !measured.verified || !served.verified {
            return Err(Failure::Contents("headwater-load echo".to_string()));
        }
        let per = 1.0 / measured.all_messages.max(1) as f64;
        let server_cpu_ns = outcome.server_cpu_ns as f64 * per;
        let server_switches = (served.voluntary + served.involuntary) as f64 * per;
        let own = measured.sample();
        Ok(Sample {
            cpu_ns: own.cpu_ns.map(|own| own + server_cpu_ns),
            switches: own.switches.map(|own| own + server_switches),
            cpu_share: Some(server_cpu_ns * own.rate / 1e9),
            loopback_bytes: Some(outcome.loopback_bytes),
            counters: outcome.counters,
            ..own
        })
    }
}
