//! redis-server and redis-benchmark.

use std::cell::RefCell;
use std::collections::HashMap;
use std::process::Command;

use super::Work;
use crate::exchange::{Exchange, Outcome};
use crate::experiment::{ACCELERATED, Carrier, Cell, Goal, Job, Sample, TCP, UNIX, Unit};
use crate::failure::{Failure, Result};
use crate::machine;
use crate::placement::Placement::{self, Apart, ApartBusy, Free, Same, SameBusy};
use crate::tools;

pub fn works() -> Vec<Box<dyn Work>> {
    let work = |operation, clients, pipeline| {
        Box::new(Redis {
            operation,
            clients,
            pipeline,
            rates: RefCell::default(),
        }) as Box<dyn Work>
    };
    vec![
        work("get", 1, 1),
        work("set", 1, 1),
        work("get", 50, 1),
        work("set", 50, 1),
        work("get", 50, 16),
    ]
}

struct Redis {
    operation: &'static str,
    clients: u32,
    pipeline: u32,
    /// Requests a second that were seen lately: redis-benchmark wants to know how many to send.
    rates: RefCell<HashMap<(&'static str, &'static str), f64>>,
}

impl Work for Redis {
    fn cell(&self) -> Cell {
        let name = match self.pipeline {
            1 => format!("redis-{}-c{}", self.operation, self.clients),
            depth => format!("redis-{}-c{}-p{depth}", self.operation, self.clients),
        };
        Cell {
            goals: self.goals(),
            quick: self.operation == "get",
            ..Cell::new(name, Unit::Rate, vec![TCP, ACCELERATED, UNIX])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let key = (job.arm.name, job.placement.name());
        let known = self.rates.borrow().get(&key).copied();
        let rate = match known {
            Some(rate) => rate,
            None => self.requests(job, 2000)?.rate,
        };
        let wanted = rate * job.time.as_secs_f64();
        let sample = self.requests(job, wanted.clamp(200.0, 2e7) as u64)?;
        // Counting may slow a run down; the next must not be shorter for it.
        if job.counter.is_none() {
            self.rates.borrow_mut().insert(key, sample.rate);
        }
        Ok(sample)
    }
}

impl Redis {
    fn requests(&self, job: &Job<'_>, count: u64) -> Result<Sample> {
        let port = machine::free_port()?;
        let socket = job.site.scratch.join("redis.sock");
        let mut server = Command::new(tools::installed("redis-server")?);
        server
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--protected-mode",
                "no",
            ])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .arg("--dir")
            .arg(&job.site.scratch)
            .arg("--unixsocket")
            .arg(&socket);
        let ready = |_: &_| machine::is_listening(port) && socket.exists();
        let exchange = Exchange::serve(job, "redis-server", server, ready)?;

        let mut client = Command::new(tools::installed("redis-benchmark")?);
        match job.arm.carrier {
            Carrier::Unix => client.arg("-s").arg(&socket),
            _ => client.args(["-h", "127.0.0.1", "-p", &port.to_string()]),
        };
        client
            .args(["-t", self.operation, "-n", &count.to_string(), "--csv"])
            .args([
                "-c",
                &self.clients.to_string(),
                "-P",
                &self.pipeline.to_string(),
            ]);
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

    fn goals(&self) -> Vec<Goal> {
        const APART: &[Placement] = &[Apart];
        let unix = |must, aim| Goal::rate(APART, must, aim).between(ACCELERATED, UNIX);
        match (self.clients, self.pipeline) {
            (1, _) => vec![
                Goal::rate(APART, 10.0, 25.0),
                Goal::rate(&[Same, SameBusy, ApartBusy], 2.0, 3.0),
                unix(8.0, 20.0),
            ],
            (_, 1) => vec![
                Goal::rate(APART, 6.0, 13.0),
                Goal::rate(&[Free, Same], 4.0, 5.5),
                unix(4.0, 8.0),
            ],
            _ => vec![Goal::rate(APART, 1.4, 2.0), unix(1.2, 1.5)],
        }
    }
}
