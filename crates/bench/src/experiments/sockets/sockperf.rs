//! sockperf's TCP ping-pong with 64 bytes.

use std::process::Command;

use super::Work;
use crate::exchange::Exchange;
use crate::experiment::{ACCELERATED, Cell, Job, Sample, TCP, Unit};
use crate::experiments::apps::number_after;
use crate::failure::{Failure, Result};
use crate::tools;

pub fn works() -> Vec<Box<dyn Work>> {
    vec![Box::new(Sockperf)]
}

struct Sockperf;

impl Work for Sockperf {
    fn cell(&self) -> Cell {
        Cell {
            // It knows whole seconds alone, and warms up for some.
            stretch: 9.0,
            ..Cell::new("sockperf", Unit::RoundTrip, vec![TCP, ACCELERATED])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let program = tools::installed("sockperf")?;
        let command = |word: &str, port: u16| {
            let mut command = Command::new(&program);
            command.args([word, "--tcp", "-i", "127.0.0.1"]);
            command.args(["-p", &port.to_string()]);
            command
        };
        let server = |port| Ok(command("server", port));
        let (exchange, port) =
            Exchange::serve_on_port(None, job, "sockperf server", server, |_| true)?;
        let mut client = command("ping-pong", port);
        client.args(["-m", "64", "--full-rtt"]);
        client.args(["-t", &job.whole_seconds().to_string()]);
        // Its default makes room for 600,000 messages a second, and it ends where more get through.
        client.args(["--mps", "10000000"]);
        let outcome = exchange.run("sockperf", client, Some(libc::SIGINT))?;
        let said = &outcome.client_said;
        let found = (
            number_after(said, "ReceivedMessages="),
            number_after(said, "RunTime="),
            number_after(said, "percentile 50.000 ="),
            number_after(said, "percentile 99.000 ="),
        );
        let (Some(messages), Some(seconds), Some(p50), Some(p99)) = found else {
            return Err(Failure::Output("sockperf".to_string(), said.clone()));
        };
        Ok(Sample {
            p50_ns: Some(p50 * 1e3),
            p99_ns: Some(p99 * 1e3),
            ..outcome.sample(messages as u64, messages / seconds)
        })
    }
}
