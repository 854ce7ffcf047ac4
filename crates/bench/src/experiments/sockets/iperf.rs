//! iperf3 with writes of 128 KiB.

use std::process::Command;

use serde_json::Value;

use super::Work;
use crate::exchange::Exchange;
use crate::experiment::{ACCELERATED, Cell, Goal, Job, Sample, TCP, Unit};
use crate::failure::{Failure, Result};
use crate::machine;
use crate::placement::Placement::Apart;
use crate::tools;

const WRITE: f64 = 128.0 * 1024.0;

pub fn works() -> Vec<Box<dyn Work>> {
    vec![Box::new(Iperf)]
}

struct Iperf;

impl Work for Iperf {
    fn cell(&self) -> Cell {
        Cell {
            goals: vec![Goal::rate(&[Apart], 1.6, 2.1)],
            ..Cell::new("iperf3", Unit::Stream, vec![TCP, ACCELERATED])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let port = machine::free_port()?.to_string();
        let program = tools::installed("iperf3")?;
        let mut server = Command::new(&program);
        server.args(["-s", "-1", "-B", "127.0.0.1", "-p", &port]);
        let number = port.parse().unwrap_or(0);
        let ready = |_: &_| machine::is_listening(number);
        let exchange = Exchange::serve(job, "iperf3 server", server, ready)?;

        let mut client = Command::new(&program);
        client
            .args([
                "-c",
                "127.0.0.1",
                "-p",
                &port,
                "-l",
                "128K",
                "-C",
                "cubic",
                "-J",
            ])
            .args(["-t", &job.whole_seconds().to_string()]);
        let outcome = exchange.run("iperf3", client, Some(libc::SIGTERM))?;
        let said: Value = serde_json::from_str(&outcome.client_said).unwrap_or_default();
        let end = &said["end"];
        let received = (
            end["sum_received"]["bytes"].as_f64(),
            end["sum_received"]["bits_per_second"].as_f64(),
        );
        let (Some(bytes), Some(bits_rate)) = received else {
            return Err(Failure::Output("iperf3".to_string(), outcome.client_said));
        };
        Ok(Sample {
            bytes_rate: bits_rate / 8.0,
            congestion: end["sender_tcp_congestion"].as_str().map(str::to_string),
            ..outcome.sample((bytes / WRITE) as u64, bits_rate / 8.0 / WRITE)
        })
    }
}
