//! iperf3 with writes of 128 KiB. It is told how many bytes to send: it knows times only in whole seconds.

use std::process::Command;

use serde_json::Value;

use super::rates::{COLD, Rates};
use super::{Work, ends};
use crate::exchange::{Exchange, Outcome};
use crate::experiment::{ACCELERATED, Cell, Job, Sample, TCP, Unit};
use crate::failure::{Failure, Result};
use crate::machine;
use crate::tools;

const WRITE: u64 = 128 * 1024;
/// Writes of the first run.
const FEW: u64 = 500;

pub fn iperf(name: &'static str, streams: u32) -> Box<dyn Work> {
    Box::new(Iperf {
        name,
        streams,
        rates: Rates::default(),
    })
}

struct Iperf {
    name: &'static str,
    streams: u32,
    rates: Rates,
}

impl Work for Iperf {
    fn cell(&self) -> Cell {
        Cell {
            // Not of the one over which both ends agree what to do: so little of it may be over before it is taken over.
            proof: ends(self.streams),
            stretch: 1.2 * COLD,
            ..Cell::new(self.name, Unit::Stream, vec![TCP, ACCELERATED])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        self.rates.sample(job, FEW, |writes| self.send(job, writes))
    }
}

impl Iperf {
    fn send(&self, job: &Job<'_>, writes: u64) -> Result<Sample> {
        let program = tools::installed("iperf3")?;
        let command = |port: u16| {
            let mut command = Command::new(&program);
            command.args(["-s", "-1", "-B", "127.0.0.1", "-p", &port.to_string()]);
            Ok(command)
        };
        let (exchange, port) =
            Exchange::serve_on_port(None, job, "iperf3 server", command, |_| true)?;
        let mut client = Command::new(&program);
        client
            .args(["-c", "127.0.0.1", "-p", &port.to_string()])
            .args(["-l", "128K", "-J"])
            .args(["-P", &self.streams.to_string()])
            .args(["-n", &(writes * WRITE).to_string()]);
        if machine::has_cubic() {
            client.args(["-C", "cubic"]);
        }
        let outcome = exchange.run("iperf3", client, Some(libc::SIGTERM))?;
        received(&outcome)
    }
}

/// What a client says that the other end received.
pub fn received(outcome: &Outcome) -> Result<Sample> {
    let said: Value = serde_json::from_str(&outcome.client_said).unwrap_or_default();
    let end = &said["end"];
    let told = ["bytes", "bits_per_second"].map(|name| end["sum_received"][name].as_f64());
    let [Some(bytes), Some(bits_rate)] = told else {
        let said = outcome.client_said.clone();
        return Err(Failure::Output("iperf3".to_string(), said));
    };
    let (write, bytes_rate) = (WRITE as f64, bits_rate / 8.0);
    Ok(Sample {
        bytes_rate: Some(bytes_rate),
        congestion: end["sender_tcp_congestion"].as_str().map(str::to_string),
        ..outcome.sample((bytes / write) as u64, bytes_rate / write)
    })
}
