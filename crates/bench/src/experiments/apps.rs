//! Programs as they are installed, without a change: by the kernel's TCP, by UNIX sockets where they know them, and through
//! shared memory.

mod iperf;
mod memcached;
mod nginx;
mod postgres;
mod rates;
mod redis;
mod uwsgi;
mod wrk;

pub(super) use iperf::{iperf, received};
pub(super) use memcached::memcached;
pub(super) use nginx::nginx;
pub(super) use rates::Rates;
pub(super) use redis::redis;

use super::printed::Told;
use super::work::{Work, Works};
use crate::carriage::Proof;
use crate::cells::CellReport;
use crate::conclude::{self, Pair};
use crate::conclusion::Conclusion;
use crate::counts;
use crate::experiment::{Job, Sample, UNIX};
use crate::failure::Result;

pub fn experiment() -> Works {
    let works = vec![
        redis("get", 1, 1),
        redis("set", 1, 1),
        redis("get", 50, 1),
        redis("set", 50, 1),
        redis("get", 50, 16),
        redis("set", 50, 16),
        nginx(1),
        nginx(16),
        nginx::nginx_closing(16),
        memcached("memcached-get"),
        memcached("memcached-set"),
        postgres::select(1),
        postgres::select(8),
        postgres::standard(1),
        postgres::standard(8),
        postgres::connecting(4),
        uwsgi::uwsgi(),
        iperf("iperf3-p1", 1),
        iperf("iperf3-p8", 8),
    ];
    Works::new("apps", works, conclude)
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    let over_tcp = conclude::pairs("apps", "programs");
    let over_unix: Vec<Pair> = over_tcp.iter().map(|pair| pair.over(UNIX)).collect();
    let all = [over_tcp.clone(), over_unix.clone()].concat();
    let plots = [("over-tcp", over_tcp), ("over-unix", over_unix)];
    let mut found = conclude::compared("apps", &plots, &[("ratios", all)], cells);
    found.sheets.push(counts::rates("apps", "rates", cells));
    found
}

/// A sample by `run` without the library's counters, which a short run of its own leaves.
fn silently(job: &Job<'_>, run: impl Fn(&Job<'_>) -> Result<Sample>) -> Result<Sample> {
    let sample = run(&Job {
        silent: true,
        ..*job
    })?;
    let short = Job {
        time: job.time / 4,
        counter: None,
        ..*job
    };
    Ok(Sample {
        counters: run(&short)?.counters,
        ..sample
    })
}

/// That both ends of so many connections were carried.
fn ends(connections: u32) -> Proof {
    Proof::Carried {
        ends: 2 * u64::from(connections),
    }
}

/// The first number after `mark` in a program's output.
pub(super) fn number_after(said: &str, mark: &str) -> Option<f64> {
    let rest = said.split_once(mark)?.1.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}
