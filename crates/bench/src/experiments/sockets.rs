//! Accelerated TCP against the kernel's, UNIX sockets and the raw channel: our own echo pair, then real programs.

mod conclusion;
mod echo;
mod programs;
mod raw;
mod sockperf;

use super::printed::{Measured, Served, parse};
use super::work::{Work, Works};
use crate::placement::Placement;

pub fn experiment() -> Works {
    let works = [echo::works(), sockperf::works(), programs::works()];
    Works::new(
        "sockets",
        works.into_iter().flatten(),
        |cell| match cell.work.as_str() {
            "rtt" | "oneway" | "epoll" | "connect" => &[Placement::Apart, Placement::Same],
            "redis-set-c1" | "redis-set-c50" | "memcached-set" | "nginx-c1" => &[],
            _ => &[Placement::Apart],
        },
        conclusion::conclude,
    )
}
