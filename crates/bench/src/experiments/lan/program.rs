//! `headwater-load lan`: two processes of it over sockets, or one that is both ends.

use std::env;
use std::process::Command;

use serde::Deserialize;

use super::super::printed::{Spent, Told, parse};
use crate::exchange::{self, Exchange, Outcome};
use crate::experiment::{Carrier, Job, Sample};
use crate::failure::{Failure, Result};
use crate::latency::Latency;
use crate::process::Running;

const NAME: &str = "headwater-load lan";
/// Of each socket, for each direction.
const BUFFERS: usize = 64 * 1024;
/// A ring holds what both sockets of a direction do.
const RING: usize = 2 * BUFFERS;
const RING_VARIABLE: &str = "HEADWATER_RING";
/// Half the interval of a mean, as a share of it.
pub const WITHIN: f64 = 0.02;
/// The value of a sample that says how wide it was.
pub const HALF_WIDTH: &str = "mean_half_width_share";

/// What both ends do.
pub struct Shape {
    pub work: &'static str,
    pub request: usize,
    pub response: usize,
    /// Requests that one response answers.
    pub burst: usize,
    /// Writes of a connection.
    pub count: Option<u64>,
    /// The receiver's buffer.
    pub read: usize,
    /// Ends when the mean is known well enough.
    pub until_known: bool,
    pub nodelay: bool,
    /// What each exchange is called among the latencies.
    pub latency: &'static str,
}

impl Shape {
    pub fn new(work: &'static str, latency: &'static str) -> Shape {
        Shape {
            work,
            request: 1,
            response: 1,
            burst: 1,
            count: None,
            read: BUFFERS,
            until_known: false,
            nodelay: true,
            latency,
        }
    }

    /// The sizes and the times.
    fn words(&self, job: &Job<'_>) -> Vec<String> {
        let mut words = Vec::new();
        let mut set = |word: &str, value: String| words.extend([word.to_string(), value]);
        set("--request", self.request.to_string());
        set("--response", self.response.to_string());
        set("--burst", self.burst.to_string());
        set("--read", self.read.to_string());
        if let Some(count) = self.count {
            set("--count", count.to_string());
        }
        set("--seconds", job.time.as_secs_f64().to_string());
        if self.until_known && job.counter.is_none() {
            set("--within", WITHIN.to_string());
        }
        words
    }
}

/// What it prints when it has driven; when it has served it prints what it spent.
#[derive(Deserialize)]
struct Driven {
    #[serde(flatten)]
    told: Told,
    latency: Option<Latency>,
    half_width: Option<f64>,
    served: Option<Spent>,
}

/// One sample over whatever the job's arm is.
pub fn sample(job: &Job<'_>, shape: &Shape) -> Result<Sample> {
    if job.arm.carrier == Carrier::Raw {
        let mut program = job.site.tools.load("lan");
        program.args(["raw", shape.work]).args(shape.words(job));
        program.args(["--buffers", &RING.to_string()]);
        return both_ends(job, program, shape.latency);
    }
    let outcome = over_sockets(job, shape)?;
    let served: Spent = parse(NAME, &outcome.server_said)?;
    let driven: Driven = parse(NAME, &outcome.client_said)?;
    let sample = driven.sample(&served, shape.latency)?;
    Ok(Sample {
        loopback_bytes: Some(outcome.loopback_bytes),
        counters: outcome.counters,
        ..sample
    })
}

fn over_sockets(job: &Job<'_>, shape: &Shape) -> Result<Outcome> {
    let program = |role: &str, address: &str| {
        let mut program = job.site.tools.load("lan");
        program.args([role, shape.work, address]);
        program.args(shape.words(job)).arg("--cubic");
        program.args(["--buffers", &BUFFERS.to_string()]);
        if shape.nodelay {
            program.arg("--nodelay");
        }
        if env::var_os(RING_VARIABLE).is_none() {
            program.env(RING_VARIABLE, RING.to_string());
        }
        program
    };
    let path = job.site.scratch.join("lan.sock");
    let _ = std::fs::remove_file(&path);
    let address = match job.arm.carrier {
        Carrier::Unix => format!("unix:{}", path.display()),
        _ => "127.0.0.1:0".to_string(),
    };
    let is_ready = |server: &Running| server.said().ends_with('\n');
    let exchange = Exchange::serve(
        job,
        "headwater-load lan serve",
        program("serve", &address),
        is_ready,
    )?;
    let address = exchange.address();
    exchange.run("headwater-load lan drive", program("drive", &address), None)
}

/// Runs a program that is both ends and puts them where the placement says.
pub fn both_ends(job: &Job<'_>, mut program: Command, latency: &str) -> Result<Sample> {
    let cpus = &job.site.machine.cpus;
    for (word, cpu) in [
        ("--server-cpu", job.placement.server_cpu(cpus)),
        ("--client-cpu", job.placement.client_cpu(cpus)),
    ] {
        if let Some(cpu) = cpu {
            program.args([word, &cpu.to_string()]);
        }
    }
    let said = exchange::unplaced(job, NAME, program)?;
    let driven: Driven = parse(NAME, &said)?;
    let Some(served) = &driven.served else {
        return Err(Failure::Output(NAME.to_string(), said));
    };
    driven.sample(served, latency)
}

impl Driven {
    fn sample(&self, served: &Spent, latency: &str) -> Result<Sample> {
        let (told, own) = (&self.told, self.told.sample());
        told.spent.check(NAME)?;
        served.check(NAME)?;
        // Each end by its own account; the server's has the warm-up in it.
        let both =
            |of: fn(&Spent) -> u64| told.per_message(of(&told.spent)) + own.per_message(of(served));
        let [user, system] = [both(|s| s.user_ns), both(|s| s.system_ns)];
        let [voluntary, involuntary] = [both(|s| s.voluntary), both(|s| s.involuntary)];
        // Where a response answers many requests its latency is not that of a message.
        let single = self.latency.filter(|l| l.count == told.messages);
        let mut sample = Sample {
            p50_ns: single.map(|l| l.p50_ns),
            p99_ns: single.map(|l| l.p99_ns),
            cpu_ns: Some(user + system),
            switches: Some(voluntary + involuntary),
            user_ns: Some(user),
            system_ns: Some(system),
            voluntary: Some(voluntary),
            involuntary: Some(involuntary),
            ..own
        };
        if let Some(found) = self.latency {
            sample.latencies.insert(latency.to_string(), found);
        }
        if let Some(half_width) = self.half_width {
            sample.values.insert(HALF_WIDTH.to_string(), half_width);
        }
        Ok(sample)
    }
}

#[cfg(test)]
mod tests;
