//! Accelerated TCP against the kernel's, UNIX sockets and the raw channel: our own echo pair, then real programs.

mod echo;
mod iperf;
mod memcached;
mod nginx;
mod raw;
mod redis;
mod sockperf;

use super::printed::{Measured, Served, parse};
use super::work::{Work, Works};

pub fn experiment() -> Works {
    let works = [
        echo::works(),
        redis::works(),
        memcached::works(),
        sockperf::works(),
        iperf::works(),
        nginx::works(),
    ];
    Works {
        name: "sockets",
        describe: "TCP of unmodified programs on one host, by the kernel and through shared memory",
        works: works.into_iter().flatten().collect(),
    }
}

/// The first number after `mark` in a program's output.
fn number_after(said: &str, mark: &str) -> Option<f64> {
    let rest = said.split_once(mark)?.1.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}
