//! One client against one server, and everything that can be known about it from outside.

use std::path::PathBuf;
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
        let stats_file = job.site.scratch.join("counters");
        let _ = std::fs::remove_file(&stats_file);
        let preload = preload(job, &stats_file)?;
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
    pub fn run(self, name: &str, mut client: Command, signal: Option<i32>) -> Result<Outcome> {
        let Exchange {
            job,
            server,
            stats_file,
        } = self;
        let preload = preload(job, &stats_file)?;
        process::prepare(
            &mut client,
            job.placement.client_cpu(&job.site.machine.cpus),
            preload,
        );
        let loopback = machine::loopback_bytes();
        let cpu = server.cpu_ns();
        let client = Running::start(name, client)?;
        if let Some(counter) = job.counter {
            counter.watch(client.pid);
        }
        // A busy CPU or a counted run can take long, a hang forever.
        let (client, client_said) = client.finish(job.time * 20 + Duration::from_secs(10))?;
        let server_cpu_ns = server.cpu_ns() - cpu;
        let loopback_bytes = machine::loopback_bytes() - loopback;
        let (server, server_said) = server.stop(signal)?;
        Ok(Outcome {
            client_said,
            server_said,
            client,
            server_cpu_ns,
            server_switches: server.switches,
            loopback_bytes,
            counters: preloaded(job).then(|| Counters::read(&stats_file)),
        })
    }
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

fn preloaded(job: &Job<'_>) -> bool {
    job.arm.carrier == Carrier::Accelerated
}

fn preload<'a>(job: &'a Job<'_>, stats_file: &'a std::path::Path) -> Result<Option<Preload<'a>>> {
    if !preloaded(job) {
        return Ok(None);
    }
    Ok(Some(Preload {
        library: job.site.tools.library()?,
        stats_file,
    }))
}
