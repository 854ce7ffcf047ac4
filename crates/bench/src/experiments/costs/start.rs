//! What comes before any work: starting a program that does nothing, one that connects for the first time, forking.

use std::process::Command;
use std::time::{Duration, Instant};

use super::{ARMS, Told, Work, serve};
use crate::arms::user;
use crate::exchange;
use crate::experiment::{Cell, Job, Proof, Sample, Unit};
use crate::failure::Result;
use crate::placement::Placement;
use crate::process::{self, Running, Usage};
use crate::stats::median;

const LIMIT: Duration = Duration::from_secs(10);

pub fn works() -> Vec<Box<dyn Work>> {
    vec![
        Box::new(Start),
        Box::new(FirstConnect),
        Box::new(Fork),
        Box::new(ForkCarried),
    ]
}

/// On one CPU.
fn cell(name: &str, proof: Proof) -> Cell {
    Cell {
        placements: &[Placement::Same],
        proof,
        ..Cell::new(name, Unit::Each, ARMS.into())
    }
}

/// A program that does nothing.
///
/// In all of these one run leaves the library's counters, which show that it was there; the others are timed without, since each
/// process of a timed run would write them at its end. System calls are not counted: a program would be over before it is watched.
struct Start;

impl Work for Start {
    fn cell(&self) -> Cell {
        cell("start", Proof::Loaded)
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let job = &uncounted(job);
        let nothing = || echo(job, &["nothing"]);
        let (_, counters) = exchange::alone(job, "headwater-load echo nothing", nothing())?;
        let sample = starts(job, "headwater-load echo nothing", nothing)?;
        Ok(Sample { counters, ..sample })
    }
}

/// A program that connects to a server, and ends.
struct FirstConnect;

impl Work for FirstConnect {
    fn cell(&self) -> Cell {
        cell("first-connect", Proof::Loaded)
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let job = &uncounted(job);
        let (exchange, address) = serve(job, "echo", 1)?;
        let once = || echo(job, &["client", "once", &address, "--cubic"]);
        let sample = starts(job, "headwater-load echo client once", once)?;
        let outcome = exchange.run("headwater-load echo client once", once(), None)?;
        Ok(Sample {
            counters: outcome.counters,
            ..sample
        })
    }
}

/// fork(2) of a program that has no sockets, to the end of a child that does nothing.
struct Fork;

impl Work for Fork {
    fn cell(&self) -> Cell {
        cell("fork", Proof::Loaded)
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let job = &uncounted(job);
        let one = echo(job, &["forks", "--count", "1"]);
        let (_, counters) = exchange::alone(job, "headwater-load echo forks", one)?;
        let seconds = job.time.as_secs_f64().to_string();
        let sample = forks(job, echo(job, &["forks", "--seconds", &seconds]))?;
        Ok(Sample { counters, ..sample })
    }
}

/// The same while it has a connection that is carried.
struct ForkCarried;

impl Work for ForkCarried {
    fn cell(&self) -> Cell {
        cell("fork-carried", Proof::Counted { ends: 2 })
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let job = &uncounted(job);
        let (exchange, address) = serve(job, "echo", 2)?;
        let client = |until: [&str; 2]| {
            let [how, long] = until;
            echo(job, &["client", "forks", &address, "--cubic", how, long])
        };
        let seconds = job.time.as_secs_f64().to_string();
        let sample = forks(job, client(["--seconds", &seconds]))?;
        let one = client(["--count", "1"]);
        let outcome = exchange.run("headwater-load echo client forks", one, None)?;
        Ok(Sample {
            counters: outcome.counters,
            ..sample
        })
    }
}

fn uncounted<'a>(job: &Job<'a>) -> Job<'a> {
    Job {
        counter: None,
        ..*job
    }
}

fn echo(job: &Job<'_>, arguments: &[&str]) -> Command {
    let mut command = job.site.tools.load("echo");
    command.args(arguments);
    command
}

/// Programs one after the other, from fork to their end.
fn starts(job: &Job<'_>, name: &str, command: impl Fn() -> Command) -> Result<Sample> {
    let (mut times, mut cpu_ns, mut switches) = (Vec::new(), 0, 0);
    let begun = Instant::now();
    while times.is_empty() || begun.elapsed() < job.time {
        let (time, usage, _) = quietly(job, name, command())?;
        times.push(time.as_nanos() as f64);
        cpu_ns += usage.cpu_ns;
        switches += usage.switches;
    }
    let count = times.len() as f64;
    Ok(Sample {
        messages: times.len() as u64,
        all_messages: times.len() as u64,
        rate: count * 1e9 / times.iter().sum::<f64>(),
        p50_ns: Some(median(&times)),
        cpu_ns: Some(cpu_ns as f64 / count),
        switches: Some(switches as f64 / count),
        ..Sample::default()
    })
}

/// A program that times its forks itself.
fn forks(job: &Job<'_>, command: Command) -> Result<Sample> {
    let name = "headwater-load echo forks";
    let (_, _, said) = quietly(job, name, command)?;
    Ok(Told::read(name, &said)?.sample())
}

/// Runs a program without statistics.
fn quietly(job: &Job<'_>, name: &str, command: Command) -> Result<(Duration, Usage, String)> {
    let mut command = user::wrap(job.arm.carrier, command);
    let cpu = job.placement.client_cpu(&job.site.machine.cpus);
    process::prepare(&mut command, cpu, exchange::preload(job, None)?);
    let begun = Instant::now();
    let (usage, said) = Running::start(name, command)?.finish(LIMIT + job.time)?;
    Ok((begun.elapsed(), usage, said))
}
