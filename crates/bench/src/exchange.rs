//! One client against one server, or a program alone, and everything that can be known about it from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::arms::user;
use crate::carriage::Counters;
use crate::experiment::{Carrier, Job, Sample};
use crate::failure::{Failure, Result};
use crate::machine;
use crate::port;
use crate::process::{self, Preload, Running, Usage};

const READY: Duration = Duration::from_secs(10);
/// How often a port is chosen anew where somebody else was quicker.
const PORTS: usize = 5;
/// What a client has left once its server is gone.
const GRACE: Duration = Duration::from_secs(1);

/// A server that is up, for one sample.
pub struct Exchange<'a> {
    job: &'a Job<'a>,
    /// That server and clients run under, if not ours.
    account: Option<Account>,
    server: Running,
    stats_file: PathBuf,
    nudge: Option<Nudge>,
}

/// What wakes a server that was asked to end.
type Nudge = Box<dyn FnOnce()>;

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    /// What the client and the server printed.
    pub client_said: String,
    pub server_said: String,
    pub client: Usage,
    /// While the client ran.
    pub server_cpu_ns: u64,
    /// Over the server's life.
    pub server_switches: u64,
    /// The same, with the children that it has waited for.
    pub server: Usage,
    /// From the client's start to its end.
    pub time: Duration,
    pub loopback_bytes: u64,
    pub counters: Option<Counters>,
}

impl<'a> Exchange<'a> {
    /// Starts a server where the job's placement puts it, and waits until `ready`.
    pub fn serve(
        job: &'a Job<'a>,
        name: &str,
        command: Command,
        ready: impl FnMut(&Running) -> bool,
    ) -> Result<Exchange<'a>> {
        Exchange::serve_as(None, job, name, command, ready)
    }

    /// Starts a server on a port of 127.0.0.1, of which `command` is told; where somebody else takes that first, on another
    /// one. It is up once it listens there and `also` is true.
    pub fn serve_on_port(
        account: Option<Account>,
        job: &'a Job<'a>,
        name: &str,
        command: impl Fn(u16) -> Result<Command>,
        also: impl Fn(&Running) -> bool,
    ) -> Result<(Exchange<'a>, u16)> {
        let mut left = PORTS;
        loop {
            let port = machine::free_port()?;
            let ready =
                |server: &Running| port::is_served_by(port, &server.family()) && also(server);
            match Exchange::serve_as(account, job, name, command(port)?, ready) {
                Err(Failure::Ended(_, said)) if left > 1 && port::is_taken(port, &said) => {
                    left -= 1
                }
                Err(Failure::Ended(name, said)) if port::is_taken(port, &said) => {
                    let said = format!("{said} ({PORTS} ports were taken by others)");
                    return Err(Failure::Ended(name, said));
                }
                done => return Ok((done?, port)),
            }
        }
    }

    fn serve_as(
        account: Option<Account>,
        job: &'a Job<'a>,
        name: &str,
        command: Command,
        ready: impl FnMut(&Running) -> bool,
    ) -> Result<Exchange<'a>> {
        let stats_file = fresh_stats_file(job, account)?;
        let cpu = job.placement.server_cpu(&job.site.machine.cpus);
        let command = prepared(job, account, command, cpu, &stats_file)?;
        let mut server = Running::start(name, command)?;
        server.wait_until(READY, ready)?;
        // Only now, when it has forked its workers.
        job.watch(&server);
        Ok(Exchange {
            job,
            account,
            server,
            stats_file,
            nudge: None,
        })
    }

    /// For a server that notices only at the next thing to do that it was asked to end: does something to it then.
    pub fn nudged_by(self, nudge: impl FnOnce() + 'static) -> Exchange<'a> {
        let nudge: Option<Nudge> = Some(Box::new(nudge));
        Exchange { nudge, ..self }
    }

    /// Where it listens, of a server of our own, which says so.
    pub fn address(&self) -> String {
        let said = self.server.said();
        let address = said.trim().strip_prefix("listening ");
        address.unwrap_or_default().to_string()
    }

    /// Runs a client to its end, then ends the server, with `signal` where closing its input is not enough.
    pub fn run(self, name: &str, client: Command, signal: Option<i32>) -> Result<Outcome> {
        self.join(name, client)?.finish(signal)
    }

    /// Starts a client beside the server.
    pub fn join(self, name: &str, client: Command) -> Result<Both<'a>> {
        let job = self.job;
        let cpu = job.placement.client_cpu(&job.site.machine.cpus);
        let client = prepared(job, self.account, client, cpu, &self.stats_file)?;
        let loopback_before = machine::loopback_bytes();
        let server_cpu_before = self.server.cpu_ns();
        let start = Instant::now();
        let client = Running::start(name, client)?;
        job.watch(&client);
        Ok(Both {
            exchange: self,
            client,
            loopback_before,
            server_cpu_before,
            start,
        })
    }
}

/// A client and its server at work.
pub struct Both<'a> {
    exchange: Exchange<'a>,
    pub client: Running,
    loopback_before: u64,
    server_cpu_before: u64,
    start: Instant,
}

impl Both<'_> {
    pub fn server(&self) -> &Running {
        &self.exchange.server
    }

    /// Lets a client that would go on work for so long, then interrupts it.
    pub fn interrupt_after(&self, time: Duration) -> Result<()> {
        if process::wait_any([&self.client, self.server()], time)? == [false, false] {
            self.client.signal(libc::SIGINT);
        }
        Ok(())
    }

    /// Waits for the client's end, then ends the server. Where that is dead already, it is to blame for what the client says.
    pub fn finish(self, signal: Option<i32>) -> Result<Outcome> {
        self.finish_when(signal, |_| true)
    }

    /// As [`finish`](Both::finish), but the server ends only when it has `settled`.
    pub fn finish_when(
        self,
        signal: Option<i32>,
        settled: impl FnMut(&Running) -> bool,
    ) -> Result<Outcome> {
        let Exchange {
            job,
            mut server,
            stats_file,
            nudge,
            ..
        } = self.exchange;
        let limit = match process::wait_any([&self.client, &server], limit(job))? {
            [false, true] => GRACE,
            _ => Duration::ZERO,
        };
        let (client, client_said) = match self.client.finish(limit) {
            Ok(done) => done,
            Err(failure) if server.has_ended_soon()? => return Err(blame(server, failure)),
            Err(failure) => {
                // Its failure is the news, but a server that is killed may leave things behind, and wrong bytes are news too.
                return Err(match server.stop(signal) {
                    Err(told) if told.is_wrong_contents() => told,
                    _ => failure,
                });
            }
        };
        let time = self.start.elapsed();
        server.wait_until(READY, settled)?;
        let server_cpu_ns = server.cpu_ns().saturating_sub(self.server_cpu_before);
        let loopback_bytes = machine::loopback_bytes() - self.loopback_before;
        let (server, server_said) = match (signal, nudge) {
            (Some(asked), Some(nudge)) => {
                server.signal(asked);
                nudge();
                server.stop(None)?
            }
            _ => server.stop(signal)?,
        };
        Ok(Outcome {
            client_said,
            server_said,
            client,
            server_cpu_ns,
            server_switches: server.switches,
            server,
            time,
            loopback_bytes,
            counters: counters(job, &stats_file),
        })
    }
}

/// What the client suffered, after what its dead server suffered.
fn blame(server: Running, suffered: Failure) -> Failure {
    match server.stop(None) {
        _ if suffered.is_wrong_contents() => suffered,
        Err(Failure::Ended(name, words)) => Failure::Ended(name, format!("{words}; {suffered}")),
        Err(other) => other,
        Ok(_) => suffered,
    }
}

/// Runs one program to its end, where a server would run. It may wait for the end of its input before it begins.
pub fn alone(job: &Job<'_>, name: &str, command: Command) -> Result<(String, Option<Counters>)> {
    let stats_file = fresh_stats_file(job, None)?;
    let mut command = user::wrap(job.arm.carrier, command);
    let cpu = job.placement.server_cpu(&job.site.machine.cpus);
    process::prepare(&mut command, cpu, preload(job, Some(&stats_file))?);
    let said = watched(job, name, command)?;
    Ok((said, counters(job, &stats_file)))
}

/// The same of one that puts its ends where it was told, and knows nothing of the library.
pub fn unplaced(job: &Job<'_>, name: &str, mut command: Command) -> Result<String> {
    process::prepare(&mut command, None, None);
    watched(job, name, command)
}

fn watched(job: &Job<'_>, name: &str, command: Command) -> Result<String> {
    let mut running = Running::start(name, command)?;
    job.watch(&running);
    running.end_input();
    let (_, said) = running.finish(limit(job))?;
    Ok(said)
}

impl Outcome {
    /// A sample of so many messages at such a rate, its costs taken from the operating system's accounts of both programs.
    pub fn sample(&self, messages: u64, rate: f64) -> Sample {
        let per = 1.0 / messages.max(1) as f64;
        Sample {
            messages,
            all_messages: messages,
            rate,
            cpu_ns: Some((self.client.cpu_ns + self.server_cpu_ns) as f64 * per),
            switches: Some((self.client.switches + self.server_switches) as f64 * per),
            loopback_bytes: Some(self.loopback_bytes),
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
        stats_file: stats_file.filter(|_| !job.silent),
    }))
}

fn preloaded(job: &Job<'_>) -> bool {
    matches!(job.arm.carrier, Carrier::Accelerated | Carrier::Streams)
}

/// A command set up for a sample.
fn prepared(
    job: &Job<'_>,
    account: Option<Account>,
    command: Command,
    cpu: Option<usize>,
    stats_file: &Path,
) -> Result<Command> {
    let mut command = user::wrap(job.arm.carrier, command);
    process::prepare(&mut command, cpu, preload(job, Some(stats_file))?);
    if let Some(account) = account {
        account.run(&mut command);
        if preloaded(job) {
            command.env("LD_PRELOAD", library_for(job, account)?);
        }
    }
    Ok(command)
}

/// The library, as a copy where that account cannot reach it.
fn library_for(job: &Job<'_>, account: Account) -> Result<PathBuf> {
    let library = job.site.tools.library()?;
    if account.may_read(library) {
        return Ok(library.to_path_buf());
    }
    let copy = job.site.scratch.join("libheadwater.so");
    if !copy.exists() {
        fs::copy(library, &copy)?;
        account.give(&copy)?;
    }
    Ok(copy)
}

fn fresh_stats_file(job: &Job<'_>, account: Option<Account>) -> Result<PathBuf> {
    let path = job.site.scratch.join("counters");
    let _ = fs::remove_file(&path);
    if let Some(account) = account {
        account.let_in(&job.site.scratch)?;
        fs::write(&path, "")?;
        account.give(&path)?;
    }
    Ok(path)
}

fn counters(job: &Job<'_>, stats_file: &Path) -> Option<Counters> {
    (preloaded(job) && !job.silent).then(|| Counters::read(stats_file))
}

/// A busy CPU or a counted run can take long, a hang forever.
fn limit(job: &Job<'_>) -> Duration {
    job.time * 20 + Duration::from_secs(10)
}
