//! One client against one server, or a program alone, and everything that can be known about it from outside.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::carriage::Counters;
use crate::experiment::{Carrier, Job, Sample};
use crate::failure::Result;
use crate::machine;
use crate::process::{self, Preload, Running, Usage};

const READY: Duration = Duration::from_secs(10);

/// A server that is up, for one sample.
pub struct Exchange<'a> {
    job: &'a Job<'a>,
    server: Running,
    stats_file: PathBuf,
}

/// What came of it.
pub struct Outcome {
    /// What the client and the server printed.
    pub client_said: String,
    pub server_said: String,
    pub client: Usage,
    /// While the client ran.
    pub server_cpu_ns: u64,
    /// Over the server's life.
    pub server_switches: u64,
    pub loopback_bytes: u64,
    pub counters: Option<Counters>,
}

impl<'a> Exchange<'a> {
    /// Starts a server where the job's placement puts it, and waits until `ready`.
    pub fn serve(
        job: &'a Job<'a>,
        name: &str,
        mut command: Command,
        ready: impl FnMut(&Running) -> bool,
    ) -> Result<Exchange<'a>> {
        let stats_file = fresh_stats_file(job);
        let preload = preload(job, Some(&stats_file))?;
        process::prepare(
            &mut command,
            job.placement.server_cpu(&job.site.machine.cpus),
            preload,
        );
        let mut server = Running::start(name, command)?;
        server.wait_until(READY, ready)?;
        // Only now, when it has forked its workers.
        if let Some(counter) = job.counter {
            server
                .family()
                .into_iter()
                .for_each(|pid| counter.watch(pid));
        }
        Ok(Exchange {
            job,
            server,
            stats_file,
        })
    }

    pub fn server_said(&self) -> String {
        self.server.said()
    }

    /// Runs a client to its end, then ends the server, with `signal` where closing its input is not enough.
    pub fn run(self, name: &str, client: Command, signal: Option<i32>) -> Result<Outcome> {
        self.join(name, client)?.finish(signal)
    }

    /// Starts a client beside the server.
    pub fn join(self, name: &str, mut client: Command) -> Result<Both<'a>> {
        let Exchange {
            job,
            server,
            stats_file,
        } = self;
        let preload = preload(job, Some(&stats_file))?;
        process::prepare(
            &mut client,
            job.placement.client_cpu(&job.site.machine.cpus),
            preload,
        );
        let loopback_before = machine::loopback_bytes();
        let server_cpu_before = server.cpu_ns();
        let client = Running::start(name, client)?;
        if let Some(counter) = job.counter {
            counter.watch(client.pid);
        }
        Ok(Both {
            job,
            server,
            client,
            stats_file,
            loopback_before,
            server_cpu_before,
        })
    }
}

/// A client and its server at work.
pub struct Both<'a> {
    job: &'a Job<'a>,
    pub server: Running,
    pub client: Running,
    stats_file: PathBuf,
    loopback_before: u64,
    server_cpu_before: u64,
}

impl Both<'_> {
    /// Waits for the client's end, then ends the server.
    pub fn finish(self, signal: Option<i32>) -> Result<Outcome> {
        let job = self.job;
        let (client, client_said) = self.client.finish(limit(job))?;
        let server_cpu_ns = self.server.cpu_ns() - self.server_cpu_before;
        let loopback_bytes = machine::loopback_bytes() - self.loopback_before;
        let (server, server_said) = self.server.stop(signal)?;
        Ok(Outcome {
            client_said,
            server_said,
            client,
            server_cpu_ns,
            server_switches: server.switches,
            loopback_bytes,
            counters: counters(job, &self.stats_file),
        })
    }
}

/// Runs one program to its end, where a server would run. It may wait for the end of its input before it begins.
pub fn alone(
    job: &Job<'_>,
    name: &str,
    mut command: Command,
) -> Result<(String, Option<Counters>)> {
    let stats_file = fresh_stats_file(job);
    let cpu = job.placement.server_cpu(&job.site.machine.cpus);
    process::prepare(&mut command, cpu, preload(job, Some(&stats_file))?);
    let mut running = Running::start(name, command)?;
    if let Some(counter) = job.counter {
        counter.watch(running.pid);
    }
    running.end_input();
    let (_, said) = running.finish(limit(job))?;
    Ok((said, counters(job, &stats_file)))
}

impl Outcome {
    /// A sample of so many messages at such a rate, its costs taken from the operating system's accounts of both programs.
    pub fn sample(&self, messages: u64, rate: f64) -> Sample {
        let per = 1.0 / messages.max(1) as f64;
        Sample {
            messages,
            all_messages: messages,
            rate,
            cpu_ns: (self.client.cpu_ns + self.server_cpu_ns) as f64 * per,
            switches: (self.client.switches + self.server_switches) as f64 * per,
            loopback_bytes: self.loopback_bytes,
            counters: self.counters.clone(),
            ..Sample::default()
        }
    }
}

/// What a program of this job is preloaded with, if anything.
pub fn preload<'a>(job: &'a Job<'_>, stats_file: Option<&'a Path>) -> Result<Option<Preload<'a>>> {
    if !preloaded(job) {
        return Ok(None);
    }
    Ok(Some(Preload {
        library: job.site.tools.library()?,
        sockets: job.arm.carrier == Carrier::Accelerated,
        stats_file,
    }))
}

fn preloaded(job: &Job<'_>) -> bool {
    matches!(job.arm.carrier, Carrier::Accelerated | Carrier::Streams)
}

fn fresh_stats_file(job: &Job<'_>) -> PathBuf {
    let path = job.site.scratch.join("counters");
    let _ = std::fs::remove_file(&path);
    path
}

fn counters(job: &Job<'_>, stats_file: &Path) -> Option<Counters> {
    preloaded(job).then(|| Counters::read(stats_file))
}

/// A busy CPU or a counted run can take long, a hang forever.
fn limit(job: &Job<'_>) -> Duration {
    job.time * 20 + Duration::from_secs(10)
}
