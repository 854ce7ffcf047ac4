//! redis-server and redis-benchmark.

use std::process::Command;

use super::rates::{COLD, Rates};
use super::{Work, ends};
use crate::exchange::{Exchange, Outcome};
use crate::experiment::{ACCELERATED, Carrier, Cell, Job, Sample, TCP, UNIX, Unit};
use crate::failure::{Failure, Result};
use crate::tools;

/// Requests of the first run, whose rate says how many the next shall have.
const FEW: u64 = 2000;

pub fn redis(operation: &'static str, clients: u32, pipeline: u32) -> Box<dyn Work> {
    Box::new(Redis {
        operation,
        clients,
        pipeline,
        rates: Rates::default(),
    })
}

struct Redis {
    operation: &'static str,
    clients: u32,
    pipeline: u32,
    rates: Rates,
}

impl Work for Redis {
    fn cell(&self) -> Cell {
        let name = match self.pipeline {
            1 => format!("redis-{}-c{}", self.operation, self.clients),
            depth => format!("redis-{}-c{}-p{depth}", self.operation, self.clients),
        };
        Cell {
            proof: ends(self.clients),
            stretch: 1.2 * COLD,
            ..Cell::new(name, Unit::Rate, vec![TCP, ACCELERATED, UNIX])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        self.rates
            .sample(job, FEW, |count| self.requests(job, count))
    }
}

impl Redis {
    fn requests(&self, job: &Job<'_>, count: u64) -> Result<Sample> {
        let server = tools::installed("redis-server")?;
        let mut client = Command::new(tools::installed("redis-benchmark")?);
        let socket = job.site.scratch.join("redis.sock");
        let _ = std::fs::remove_file(&socket);
        let command = |port: u16| {
            let mut command = Command::new(&server);
            command
                .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
                .args(["--protected-mode", "no", "--daemonize", "no"])
                .args(["--save", "", "--appendonly", "no"])
                .arg("--dir")
                .arg(&job.site.scratch)
                .arg("--unixsocket")
                .arg(&socket);
            Ok(command)
        };
        let is_there = |_: &_| socket.exists();
        let (exchange, port) =
            Exchange::serve_on_port(None, job, "redis-server", command, is_there)?;
        match job.arm.carrier {
            Carrier::Unix => client.arg("-s").arg(&socket),
            _ => client.args(["-h", "127.0.0.1", "-p", &port.to_string()]),
        };
        client
            .args(["-t", self.operation, "-n", &count.to_string(), "--csv"])
            .args(["-c", &self.clients.to_string()])
            .args(["-P", &self.pipeline.to_string()]);
        let outcome = exchange.run("redis-benchmark", client, Some(libc::SIGTERM))?;
        self.read(&outcome, count)
    }

    /// "GET","81300.81","0.006","0.000","0.007","0.007","0.015","0.063": requests a second, then average, least, median,
    /// 95th, 99th percentile and greatest milliseconds.
    fn read(&self, outcome: &Outcome, count: u64) -> Result<Sample> {
        let head = format!("\"{}\"", self.operation.to_uppercase());
        let line = outcome
            .client_said
            .lines()
            .find(|line| line.starts_with(&head));
        let fields: Vec<f64> = line
            .unwrap_or_default()
            .split(',')
            .filter_map(|field| field.trim_matches('"').parse().ok())
            .collect();
        let &[rate, _, _, p50, _, p99, ..] = fields.as_slice() else {
            return Err(Failure::Output(
                "redis-benchmark".to_string(),
                outcome.client_said.clone(),
            ));
        };
        Ok(Sample {
            p50_ns: (p50 > 0.0).then_some(p50 * 1e6),
            p99_ns: (p99 > 0.0).then_some(p99 * 1e6),
            ..outcome.sample(count, rate)
        })
    }
}
