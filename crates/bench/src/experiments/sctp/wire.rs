//! Both ends on /dev/sctp_t with every packet on the loop-back device, encapsulated in UDP; and pion/sctp, which does the same.
//!
//! A well-built usrsctp did 405, 79 and 6.1 thousand messages of 64, 1024 and 16384 bytes a second on the machine that the goals are for, at
//! 4.0, 21.5 and 239 microseconds of CPU each; the aim is ten times its rate. Debian's build of it logs every chunk, so that it
//! is no arm here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::programs;
use super::shared::NAGLE;
use super::{SCTP_MORE, Work, sockets};
use crate::carriage::Proof;
use crate::exchange::Exchange;
use crate::experiment::{Arm, Cell, Job, Sample, streams};
use crate::experiments::xti::flow::flow;
use crate::experiments::xti::pair::{Pair, Way};
use crate::failure::{Failure, Result};
use crate::tools;

/// The most telling first.
const SIZES: [usize; 7] = [64, 1024, 16384, 1, 16, 32, 256];

const SCTP: Arm = streams("sctp-udp");
const PION: Arm = sockets("pion");
/// The same in packets that an Ethernet takes; the other's are as large as the loop-back device takes.
const SMALL: Arm = streams("sctp-1452");
const IN_SMALL_PACKETS: &[(&str, &str)] = &[
    ("HEADWATER_SCTP_LINK", "udp"),
    ("HEADWATER_SCTP_MTU", "1452"),
];
const ON_THE_WIRE: &[(&str, &str)] = &[("HEADWATER_SCTP_LINK", "udp")];
/// Where its peer program is, as seen from the root of the source tree.
const PION_SOURCE: &str = "crates/e2e/peers/pion";

pub fn works() -> impl Iterator<Item = Wire> {
    SIZES.into_iter().map(|size| Wire { pair: pair(size) })
}

pub struct Wire {
    pair: Pair,
}

fn pair(size: usize) -> Pair {
    let ways = vec![
        Way::both(SCTP, "/dev/sctp_t").under(ON_THE_WIRE),
        Way::both(SMALL, "/dev/sctp_t").under(IN_SMALL_PACKETS),
        Way::both(SCTP_MORE, "/dev/sctp_t")
            .with(&["--more"])
            .under(ON_THE_WIRE),
        programs::on_the_wire(),
        programs::bytes_on_the_wire(),
        Way::both(NAGLE, "tcp"),
    ];
    flow("udp", size, ways)
}

impl Work for Wire {
    fn cell(&self) -> Cell {
        let mut cell = self.pair.cell();
        cell.arms.extend(pion_is_there().then_some(PION));
        cell.proof = Proof::None;
        cell
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        match job.arm {
            PION => pion(job, self.pair.size),
            _ => self.pair.sample(job),
        }
    }
}

fn pion_is_there() -> bool {
    Path::new(PION_SOURCE).join("go.mod").is_file() && tools::installed("go").is_ok()
}

/// One way, for as long as a sample takes; what its receiver counted is what counts.
fn pion(job: &Job<'_>, size: usize) -> Result<Sample> {
    let program = built(job)?;
    let command = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words);
        command
    };
    let server = command(&["-listen", "127.0.0.1:9890", "-mode", "discard"]);
    let exchange = Exchange::serve(job, "pion", server, |server| {
        server.said().contains("ready")
    })?;
    let seconds = job.time.as_secs_f64().to_string();
    let (size_text, words) = (
        size.to_string(),
        ["-to", "127.0.0.1:9890", "-mode", "source"],
    );
    let mut client = command(&words);
    client.args(["-seconds", &seconds, "-size", &size_text]);
    let outcome = exchange.run("pion", client, None)?;
    let output = |said: &str| Failure::Output("pion".to_string(), said.to_string());
    let word = |said: &str, after: &str| -> Option<f64> {
        let rest = said.split(after).nth(1)?;
        rest.split_whitespace()
            .next()?
            .trim_end_matches(',')
            .parse()
            .ok()
    };
    let received =
        word(&outcome.server_said, "received ").ok_or_else(|| output(&outcome.server_said))?;
    let took = word(&outcome.server_said, "bytes, ").ok_or_else(|| output(&outcome.server_said))?;
    let rate = received / took.max(1e-9);
    Ok(Sample {
        bytes_rate: Some(rate * size as f64),
        ..outcome.sample(received as u64, rate)
    })
}

/// The peer, compiled once for each run of all experiments.
fn built(job: &Job<'_>) -> Result<PathBuf> {
    let program = job.site.scratch.join("pion");
    if !program.is_file() {
        let mut go = Command::new(tools::installed("go")?);
        go.args(["build", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(PION_SOURCE);
        let running = crate::process::Running::start("go build", go)?;
        running.finish(Duration::from_secs(300))?;
    }
    Ok(program)
}
