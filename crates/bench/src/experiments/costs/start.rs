//! What comes before any work: starting a program that does nothing, one that connects for the first time, forking.

use std::process::Command;
use std::time::{Duration, Instant};

use super::super::work::boxed;
use super::{ARMS, Told, Work, serve};
use crate::arms::user;
use crate::carriage::Proof;
use crate::exchange::{self, Outcome};
use crate::experiment::{Cell, Job, Sample, Unit};
use crate::failure::Result;
use crate::placement::Placement;
use crate::process::{self, Running, Usage};
use crate::stats::median;

const LIMIT: Duration = Duration::from_secs(10);

type Take = fn(&Job<'_>) -> Result<Sample>;

/// In all of these one run leaves the library's counters, which show that it was there; the others are timed without, since each
/// process of a timed run would write them at its end. System calls are not counted: a program would be over before it is watched.
pub fn works() -> Vec<Box<dyn Work>> {
    let works: [(_, _, Take); 4] = [
        ("start", Proof::Loaded, start),
        ("first-connect", Proof::Loaded, first_connect),
        ("fork", Proof::Loaded, fork),
        ("fork-carried", Proof::Counted { ends: 2 }, fork_carried),
    ];
    boxed(works.map(|(name, proof, take)| Brief { name, proof, take })).collect()
}

struct Brief {
    name: &'static str,
    proof: Proof,
    take: Take,
}

impl Work for Brief {
    fn cell(&self) -> Cell {
        Cell {
            placements: &[Placement::Same],
            proof: self.proof,
            ..Cell::new(self.name, Unit::Each, ARMS.into())
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        (self.take)(&Job {
            counter: None,
            ..*job
        })
    }
}

/// A program that does nothing.
fn start(job: &Job<'_>) -> Result<Sample> {
    let nothing = || echo(job, &["nothing"]);
    let (_, counters) = exchange::alone(job, "headwater-load echo nothing", nothing())?;
    let sample = starts(job, "headwater-load echo nothing", nothing)?;
    Ok(Sample { counters, ..sample })
}

/// A program that connects to a server, and ends.
fn first_connect(job: &Job<'_>) -> Result<Sample> {
    let (exchange, address) = serve(job, "echo", Some(1))?;
    let once = || echo(job, &["client", "once", &address, "--cubic"]);
    let sample = starts(job, "headwater-load echo client once", once)?;
    let Outcome { counters, .. } = exchange.run("headwater-load echo client once", once(), None)?;
    Ok(Sample { counters, ..sample })
}

/// fork(2) of a program that has no sockets, to the end of a child that does nothing.
fn fork(job: &Job<'_>) -> Result<Sample> {
    let one = echo(job, &["forks", "--count", "1"]);
    let (_, counters) = exchange::alone(job, "headwater-load echo forks", one)?;
    let seconds = job.time.as_secs_f64().to_string();
    let sample = forks(job, echo(job, &["forks", "--seconds", &seconds]))?;
    Ok(Sample { counters, ..sample })
}

/// The same while it has a connection that is carried.
fn fork_carried(job: &Job<'_>) -> Result<Sample> {
    let (exchange, address) = serve(job, "echo", Some(2))?;
    let client = |how, long| echo(job, &["client", "forks", &address, "--cubic", how, long]);
    let seconds = job.time.as_secs_f64().to_string();
    let sample = forks(job, client("--seconds", &seconds))?;
    let one = client("--count", "1");
    let Outcome { counters, .. } = exchange.run("headwater-load echo client forks", one, None)?;
    Ok(Sample { counters, ..sample })
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
