//! memcached, asked by two threads of our own text-protocol client.

use std::process::Command;

use super::{Measured, Work, parse};
use crate::exchange::Exchange;
use crate::experiment::{ACCELERATED, Cell, Goal, Job, Sample, TCP, Unit};
use crate::failure::{Failure, Result};
use crate::machine;
use crate::placement::Placement::Apart;
use crate::tools;

pub fn works() -> Vec<Box<dyn Work>> {
    ["memcached-get", "memcached-set"]
        .map(|operation| Box::new(Memcached { operation }) as Box<dyn Work>)
        .into()
}

struct Memcached {
    operation: &'static str,
}

impl Work for Memcached {
    fn cell(&self) -> Cell {
        Cell {
            goals: vec![Goal::rate(&[Apart], 2.0, 8.0)],
            quick: self.operation == "memcached-get",
            ..Cell::new(self.operation, Unit::Rate, vec![TCP, ACCELERATED])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let port = machine::free_port()?;
        let mut server = Command::new(tools::installed("memcached")?);
        // It refuses to run as root unless told that root is meant.
        server.args([
            "-l",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "-U",
            "0",
            "-u",
            "root",
        ]);
        let ready = |_: &_| machine::is_listening(port);
        let exchange = Exchange::serve(job, "memcached", server, ready)?;

        let mut client = job.site.tools.echo();
        client
            .args(["client", self.operation, &format!("127.0.0.1:{port}")])
            .args(["--connections", "2", "--size", "100"])
            .args(["--seconds", &job.time.as_secs_f64().to_string()]);
        let outcome = exchange.run("memcached client", client, Some(libc::SIGTERM))?;
        let measured: Measured = parse("memcached client", &outcome.client_said)?;
        if !measured.verified {
            return Err(Failure::Contents("memcached client".to_string()));
        }
        let own = measured.sample();
        let whole = outcome.sample(measured.all_messages, own.rate);
        Ok(Sample {
            cpu_ns: whole.cpu_ns,
            switches: whole.switches,
            loopback_bytes: whole.loopback_bytes,
            counters: whole.counters,
            ..own
        })
    }
}
