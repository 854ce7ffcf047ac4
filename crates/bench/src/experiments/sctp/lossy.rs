//! Two networks with a wire between them that loses one packet of a hundred and a relay that delays them, against what congestion control allows there
//! (Mathis et al.: packet size * 1.22 / (round trip * root of the loss)), at the round trip that was measured.

use std::cell::Cell as Kept;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::{NAME, Told, Work, parse, sockets};
use crate::carriage::Proof;
use crate::experiment::{Arm, Cell, Job, Sample, Unit};
use crate::failure::{Failure, Result};
use crate::placement::Placement::Apart;
use crate::process::{self, Running};

const SCTP: Arm = sockets("sctp-udp");
/// Not run, but reckoned from the run before.
const BOUND: Arm = sockets("bound");
const SIZE: usize = 1024;
const LOSS: f64 = 0.01;
/// Each way: at the round trip of a wire alone the bound is more than these CPUs can do.
const DELAY: &str = "5";
/// The relay's UDP port; the far end's own is RFC 6951's.
const RELAY: &str = "9898";
const READY: Duration = Duration::from_secs(10);
const HERE: &str = "10.77.0.1";
const THERE: &str = "10.77.0.2";
const MTU: &str = "1500";

#[derive(Default)]
pub struct Lossy {
    /// Messages a second.
    bound: Kept<Option<f64>>,
}

/// What the driver prints.
#[derive(Deserialize)]
struct Driven {
    #[serde(flatten)]
    told: Told,
    round_trip: f64,
    mtu: usize,
}

impl Work for Lossy {
    fn cell(&self) -> Cell {
        Cell {
            placements: &[Apart],
            proof: Proof::None,
            // Five seconds at least for every other sample.
            stretch: 17.0,
            ..Cell::new("loss-1%", Unit::Stream, vec![SCTP, BOUND])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        if job.arm == BOUND {
            let rate = self
                .bound
                .take()
                .ok_or_else(|| Failure::Missing("a run to reckon from".to_string()))?;
            return Ok(Sample {
                messages: 1,
                all_messages: 1,
                rate,
                bytes_rate: Some(rate * SIZE as f64),
                ..Sample::default()
            });
        }
        let wire = Wire::new()?;
        let driven = wire.exchange(job)?;
        let per_second = driven.mtu as f64 * 1.22 / (driven.round_trip * LOSS.sqrt());
        self.bound.set(Some(per_second / SIZE as f64));
        let own = driven.told.sample();
        Ok(Sample {
            bytes_rate: Some(own.rate * SIZE as f64),
            // It tells of none.
            switches: None,
            ..own
        })
    }
}

/// Two network namespaces, each kept by a process that sleeps.
struct Wire {
    near: Running,
    far: Running,
}

impl Wire {
    fn new() -> Result<Wire> {
        let namespace = || {
            let mut command = Command::new("unshare");
            command.args([
                "--net",
                "sh",
                "-c",
                "ip link set lo up && echo up && exec sleep 600",
            ]);
            process::prepare(&mut command, None, None);
            let mut running = Running::start("a network", command)?;
            running.wait_until(READY, |running| running.said().contains("up"))?;
            Ok::<_, Failure>(running)
        };
        let wire = Wire {
            near: namespace()?,
            far: namespace()?,
        };
        let far = wire.far.pid;
        wire.sh(
            &wire.near,
            &format!("ip link add wire mtu {MTU} type veth peer name wire mtu {MTU} netns {far}"),
        )?;
        for (side, address) in [(&wire.near, HERE), (&wire.far, THERE)] {
            // Each packet is lost by itself: none travel in one piece.
            wire.sh(
                side,
                &format!("ip addr add {address}/24 dev wire && ip link set wire up"),
            )?;
            wire.sh(
                side,
                "ethtool -K wire tx-udp-segmentation off gso off gro off tx off",
            )?;
            wire.sh(side, &format!(
                "nft add table inet lossy && nft add chain inet lossy in '{{ type filter hook input priority -400; }}' && \
                 nft add rule inet lossy in iifname wire meta l4proto udp numgen random mod 1000 '<' {} drop",
                LOSS * 1000.0
            ))?;
        }
        Ok(wire)
    }

    fn inside(&self, side: &Running, command: &Command, cpu: Option<usize>) -> Command {
        let mut entered = Command::new("nsenter");
        entered
            .args(["-t", &side.pid.to_string(), "-n"])
            .arg(command.get_program())
            .args(command.get_args());
        process::prepare(&mut entered, cpu, None);
        entered
    }

    fn sh(&self, side: &Running, script: &str) -> Result<()> {
        let mut command = Command::new("sh");
        command.args(["-ec", script]);
        Running::start("a network", self.inside(side, &command, None))?
            .finish(READY)
            .map(drop)
    }

    fn exchange(&self, job: &Job<'_>) -> Result<Driven> {
        let (scratch, cpus) = (&job.site.scratch, &job.site.machine.cpus);
        let [server_cpu, driver_cpu] = [
            job.placement.server_cpu(cpus),
            job.placement.client_cpu(cpus),
        ];
        let prepare = |side: &Running, words: &[&str], name: &str, cpu| {
            let mut command = job.site.tools.load("sctpperf");
            command.args(words).args(["--at", THERE]);
            let mut entered = self.inside(side, &command, cpu);
            // Each network has its own port 9899.
            entered
                .env("HEADWATER_SCTP_LINK", format!("udp:{RELAY}"))
                .env("HEADWATER_DIR", scratch.join(name));
            entered
        };
        let mut server = Running::start(NAME, prepare(&self.far, &["serve"], "far", server_cpu))?;
        server.wait_until(READY, |server| server.said().contains("ready"))?;
        let relay = ["relay", "--port", RELAY, "--delay", DELAY];
        let mut relay = Running::start("a relay", prepare(&self.far, &relay, "far", server_cpu))?;
        relay.wait_until(READY, |relay| relay.said().contains("ready"))?;
        let time = (job.time * 10).max(Duration::from_secs(5));
        let (seconds, size) = (time.as_secs_f64().to_string(), SIZE.to_string());
        let words = ["drive", "--seconds", &seconds, "--size", &size];
        let driver = Running::start(NAME, prepare(&self.near, &words, "near", driver_cpu))?;
        let (_, said) = driver.finish(time * 10 + Duration::from_secs(20))?;
        server.finish(READY)?;
        parse(NAME, &said)
    }
}
