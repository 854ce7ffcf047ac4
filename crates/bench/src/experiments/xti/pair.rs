//! A cell whose arms are two processes of `headwater-load xtiperf`, each with the library or without.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::super::printed::parse;
use super::super::work::Work;
use super::Told;
use crate::arms::user;
use crate::carriage::{self, Counters, Proof};
use crate::experiment::{Arm, Carrier, Cell, Job, Sample, Unit};
use crate::failure::{Failure, Result};
use crate::machine;
use crate::placement::Placement;
use crate::process::{self, Preload, Running};

const NAME: &str = "headwater-load xtiperf";
const READY: Duration = Duration::from_secs(10);

/// Names of a sample's values, in seconds, messages and bytes.
pub const ELAPSED: &str = "elapsed_s";
pub const SENT: &str = "sent";
pub const RECEIVED: &str = "received";
pub const LOCAL_SEND: &str = "local_send_buffer_bytes";
pub const LOCAL_RECEIVE: &str = "local_receive_buffer_bytes";
pub const REMOTE_SEND: &str = "remote_send_buffer_bytes";
pub const REMOTE_RECEIVE: &str = "remote_receive_buffer_bytes";

/// Without it two ends on /dev/tcp find shared memory by themselves.
const BY_KERNEL: &[(&str, &str)] = &[("HEADWATER_SOCKETS", "0")];

pub struct Pair {
    pub name: String,
    /// The program's word for the work.
    pub work: &'static str,
    pub unit: Unit,
    pub size: usize,
    pub ways: Vec<Way>,
    pub placements: &'static [Placement],
    /// How many samples' time one takes.
    pub stretch: u32,
}

/// How an arm is carried: the program's word for each end, and what else to tell it.
#[derive(Clone, Copy)]
pub struct Way {
    pub arm: Arm,
    pub sender: End,
    pub receiver: End,
    pub words: &'static [&'static str],
    /// Set for the ends that are ours.
    pub variables: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy)]
pub struct End {
    /// A transport device is reached through the library, anything else without it unless it is shared.
    pub carrier: &'static str,
    pub nice: i32,
    /// The library serves sockets, and may carry connections of /dev/tcp through shared memory.
    pub shared: bool,
}

impl Pair {
    /// Undisturbed, in the usual time.
    pub fn new(name: String, work: &'static str, unit: Unit, size: usize, ways: Vec<Way>) -> Pair {
        Pair {
            name,
            work,
            unit,
            size,
            ways,
            placements: Placement::UNDISTURBED,
            stretch: 1,
        }
    }
}

impl End {
    pub const fn new(carrier: &'static str) -> End {
        End {
            carrier,
            nice: 0,
            shared: false,
        }
    }

    /// At a priority, -20 being the highest and 19 the lowest.
    pub const fn at(self, nice: i32) -> End {
        End { nice, ..self }
    }

    /// A socket that the library serves.
    pub const fn socket(carrier: &'static str) -> End {
        End {
            shared: true,
            ..End::new(carrier)
        }
    }

    fn is_ours(self) -> bool {
        self.shared || self.carrier.starts_with("/dev/")
    }
}

impl Way {
    /// Both ends alike.
    pub const fn both(arm: Arm, carrier: &'static str) -> Way {
        Way::new(arm, carrier, carrier)
    }

    pub const fn new(arm: Arm, sender: &'static str, receiver: &'static str) -> Way {
        Way {
            arm,
            sender: End::new(sender),
            receiver: End::new(receiver),
            words: &[],
            variables: &[],
        }
    }

    pub const fn with(self, words: &'static [&'static str]) -> Way {
        Way { words, ..self }
    }

    pub const fn at(self, sender: i32, receiver: i32) -> Way {
        Way {
            sender: self.sender.at(sender),
            receiver: self.receiver.at(receiver),
            ..self
        }
    }

    /// XTI over the kernel's TCP, although both ends are ours.
    pub const fn by_kernel(self) -> Way {
        self.under(BY_KERNEL)
    }

    /// Whether it is SCTP within the host, which needs no packets.
    fn is_without_packets(&self) -> bool {
        self.sender.carrier == "/dev/sctp_t" && self.variables.is_empty()
    }

    pub const fn under(self, variables: &'static [(&'static str, &'static str)]) -> Way {
        Way { variables, ..self }
    }
}

/// What the driver prints.
#[derive(Deserialize)]
struct Driven {
    #[serde(flatten)]
    told: Told,
    sent: u64,
    received: u64,
    /// Send and receive buffer of the sender, then of the receiver, where they were asked for.
    buffers: Option<[u64; 4]>,
    loss: Option<f64>,
}

impl Work for Pair {
    fn cell(&self) -> Cell {
        Cell {
            placements: self.placements,
            proof: self.proof(),
            stretch: f64::from(self.stretch),
            ..Cell::new(
                self.name.clone(),
                self.unit,
                self.ways.iter().map(|way| way.arm).collect(),
            )
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let arm = user::model(job.arm, &self.cell());
        let way = self.ways.iter().find(|way| way.arm == arm);
        let way = way.ok_or_else(|| Failure::Missing(job.arm.name.to_string()))?;
        let stats_file = job.site.scratch.join("counters");
        let _ = std::fs::remove_file(&stats_file);
        let loopback_before = machine::loopback_bytes();
        let said = self.exchange(job, way, &stats_file)?;
        let driven: Driven = parse(NAME, &said)?;
        let (told, own) = (&driven.told, driven.told.sample());
        let counters =
            (way.sender.is_ours() || way.receiver.is_ours()).then(|| Counters::read(&stats_file));
        if way.variables == BY_KERNEL && counters.as_ref().is_some_and(|own| own.accelerated > 0) {
            let said = "a connection that the kernel was to carry went through shared memory";
            return Err(Failure::Output(NAME.to_string(), said.to_string()));
        }
        let loopback_bytes = machine::loopback_bytes() - loopback_before;
        let seen = loopback_bytes as f64 / own.all_messages.max(1) as f64;
        if way.is_without_packets() && !carriage::is_quiet(seen, self.size as f64) {
            let said = "messages that were to go through shared memory went in packets";
            return Err(Failure::Output(NAME.to_string(), said.to_string()));
        }
        Ok(Sample {
            bytes_rate: Some(own.rate * self.size as f64),
            voluntary: Some(told.per_message(told.spent.voluntary)),
            involuntary: Some(told.per_message(told.spent.involuntary)),
            tx_rate: Some(told.per_second(driven.sent)),
            rx_rate: Some(told.per_second(driven.received)),
            values: driven.values(),
            loss: driven.loss,
            loopback_bytes: Some(loopback_bytes),
            counters,
            ..own
        })
    }
}

impl Driven {
    /// What netperf prints, where its buffers were asked for.
    fn values(&self) -> BTreeMap<String, f64> {
        let Some([send, receive, remote_send, remote_receive]) = self.buffers else {
            return BTreeMap::new();
        };
        let counts = [
            (ELAPSED, self.told.seconds),
            (SENT, self.sent as f64),
            (RECEIVED, self.received as f64),
            (LOCAL_SEND, send as f64),
            (LOCAL_RECEIVE, receive as f64),
            (REMOTE_SEND, remote_send as f64),
            (REMOTE_RECEIVE, remote_receive as f64),
        ];
        counts.map(|(name, value)| (name.to_string(), value)).into()
    }
}

impl Pair {
    /// An end that is to be XTI knows no other calls, but what it sends may be carried by the kernel.
    fn proof(&self) -> Proof {
        let claims = |way: &&Way| way.arm.carrier == Carrier::Accelerated;
        match self.ways.iter().find(claims) {
            // Of datagrams the library counts none.
            Some(way) if way.sender.carrier == "/dev/udp2" => Proof::Quiet { size: self.size },
            Some(_) => Proof::Carried { ends: 2 },
            None => Proof::None,
        }
    }

    /// What the driver said.
    fn exchange(&self, job: &Job<'_>, way: &Way, stats_file: &Path) -> Result<String> {
        let scratch = &job.site.scratch;
        let cpus = &job.site.machine.cpus;
        let prepare = |side: &str, end: End, cpu: Option<usize>| -> Result<Command> {
            let mut command = job.site.tools.load("xtiperf");
            command.args([side, self.work, end.carrier]);
            command.arg("--board").arg(scratch.join("board"));
            command.args(["--size", &self.size.to_string()]);
            command.args(["--nice", &end.nice.to_string()]);
            command.args(way.words);
            let preload = match end.is_ours() {
                true => Some(Preload {
                    library: job.site.tools.library()?,
                    sockets: end.shared,
                    stats_file: Some(stats_file),
                }),
                false => None,
            };
            let mut command = user::wrap(job.arm.carrier, command);
            process::prepare(&mut command, cpu, preload);
            if end.is_ours() {
                command.envs(way.variables.iter().copied());
            }
            Ok(command)
        };
        let mut server = prepare("serve", way.receiver, job.placement.server_cpu(cpus))?;
        if let Some(name) = local_name(way.receiver.carrier, scratch) {
            let _ = std::fs::remove_file(&name);
            server.args(["--at", &name]);
        }
        let mut server = Running::start(NAME, server)?;
        server.wait_until(READY, |server| server.said().ends_with('\n'))?;
        let said = server.said();
        let address = said.trim().strip_prefix("ready ");
        let address = address.ok_or_else(|| Failure::Output(NAME.to_string(), said.clone()))?;

        let time = job.time * self.stretch;
        let mut driver = prepare("drive", way.sender, job.placement.client_cpu(cpus))?;
        driver.args([
            "--at",
            address,
            "--seconds",
            &time.as_secs_f64().to_string(),
        ]);
        let driver = Running::start(NAME, driver)?;
        job.watch(&server);
        job.watch(&driver);
        let driven = driver.finish(time * 20 + Duration::from_secs(20));
        let (_, driven) = driven.map_err(|failure| explained(failure, &mut server))?;
        let (_, said) = server.stop(None)?;
        match said.contains("done") {
            true => Ok(driven),
            false => Err(Failure::ended(NAME, last_line(&said), &said)),
        }
    }
}

/// What the server noticed, if anything, explains what the driver only suffered.
fn explained(failure: Failure, server: &mut Running) -> Failure {
    const LAST_WORDS: Duration = Duration::from_millis(200);
    if failure.is_wrong_contents() {
        return failure;
    }
    match server.wait_until(LAST_WORDS, |_| false) {
        Err(Failure::Ended(_, said)) if said.starts_with("ready") => {
            let said = format!("its other end is gone ({failure})");
            Failure::Ended(NAME.to_string(), said)
        }
        Err(noticed @ (Failure::Ended(..) | Failure::Contents(_))) => noticed,
        _ => failure,
    }
}

/// Where a server listens that is not the internet's.
fn local_name(carrier: &str, scratch: &Path) -> Option<String> {
    let local = carrier == "unix" || carrier.starts_with("/dev/tic");
    local.then(|| scratch.join("xti").display().to_string())
}

fn last_line(said: &str) -> String {
    said.trim()
        .lines()
        .next_back()
        .unwrap_or_default()
        .to_string()
}
