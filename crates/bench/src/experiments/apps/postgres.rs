//! PostgreSQL and pgbench, on a cluster of its own that is made once and serves all samples.

mod cluster;
mod log;

use cluster::Cluster;

use super::rates::{COLD, Rates};
use super::{Work, ends, number_after, silently};
use crate::carriage::Proof;
use crate::exchange::{Exchange, Outcome};
use crate::experiment::{ACCELERATED, Carrier, Cell, Job, Sample, TCP, UNIX, Unit};
use crate::failure::{Failure, Result};

/// Transactions of the first run.
const FEW: u64 = 500;

/// Point queries.
pub fn select(clients: u32) -> Box<dyn Work> {
    pgbench("pgbench-select", &["--no-vacuum", "--select-only"], clients)
}

/// pgbench's own script, about TPC-B: three updates, a query and an insertion.
pub fn standard(clients: u32) -> Box<dyn Work> {
    pgbench("pgbench-standard", &[], clients)
}

/// A connection, and with it a process of the server, for each query.
pub fn connecting(clients: u32) -> Box<dyn Work> {
    let words = &["--no-vacuum", "--select-only", "--connect"];
    Box::new(Pgbench {
        keeps: false,
        ..Pgbench::new("pgbench-connect", words, clients)
    })
}

fn pgbench(name: &'static str, words: &'static [&'static str], clients: u32) -> Box<dyn Work> {
    Box::new(Pgbench::new(name, words, clients))
}

struct Pgbench {
    name: &'static str,
    words: &'static [&'static str],
    clients: u32,
    /// A client has one connection for all that it asks.
    keeps: bool,
    rates: Rates,
}

impl Pgbench {
    fn new(name: &'static str, words: &'static [&'static str], clients: u32) -> Pgbench {
        Pgbench {
            name,
            words,
            clients,
            keeps: true,
            rates: Rates::default(),
        }
    }
}

impl Work for Pgbench {
    fn cell(&self) -> Cell {
        Cell {
            proof: match self.keeps {
                true => ends(self.clients),
                false => Proof::Loaded,
            },
            // Starting and ending the server.
            stretch: 1.5 * COLD,
            ..Cell::new(
                format!("{}-c{}", self.name, self.clients),
                Unit::Rate,
                vec![TCP, ACCELERATED, UNIX],
            )
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let cluster = Cluster::of(job)?;
        let made = |job: &Job<'_>| {
            self.rates
                .sample(job, FEW, |count| self.transactions(job, &cluster, count))
        };
        match self.keeps {
            true => made(job),
            false => silently(job, made),
        }
    }
}

impl Pgbench {
    fn transactions(&self, job: &Job<'_>, cluster: &Cluster, count: u64) -> Result<Sample> {
        let server = |port| cluster.server(port);
        let is_up = |server: &crate::process::Running| server.said().contains("ready to accept");
        let account = cluster.account();
        let (exchange, port) = Exchange::serve_on_port(account, job, "postgres", server, is_up)?;
        let each = count.div_ceil(self.clients.into());
        let count = each * u64::from(self.clients);
        let mut client = cluster.client(job.arm.carrier == Carrier::Unix, port)?;
        client.args(self.words);
        client.args(["-c", &self.clients.to_string(), "-j", "1"]);
        client.args(["-t", &each.to_string()]);
        client.args(log::options(count));
        cluster.clear_logs();
        // SIGINT is its fast shutdown: it waits for nobody.
        let outcome = exchange.run("pgbench", client, Some(libc::SIGINT))?;
        let rate = rate(&outcome, count)?;
        let mut times = log::times(&cluster.logs());
        times.sort_unstable();
        Ok(Sample {
            p50_ns: log::percentile(&times, 0.5),
            p99_ns: log::percentile(&times, 0.99),
            ..outcome.sample(count, rate)
        })
    }
}

/// Transactions a second, where all were made and none failed.
fn rate(outcome: &Outcome, count: u64) -> Result<f64> {
    let said = &outcome.client_said;
    let whole = said.contains(&format!("actually processed: {count}/{count}"));
    // Before version 15 there is no such line.
    let failed = number_after(said, "number of failed transactions:").unwrap_or(0.0);
    let rate = number_after(said, "tps =").filter(|_| whole && failed == 0.0);
    rate.ok_or_else(|| Failure::Output("pgbench".to_string(), said.clone()))
}

#[cfg(test)]
mod tests;
