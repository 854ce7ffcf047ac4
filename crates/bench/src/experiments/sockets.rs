//! Accelerated TCP against the kernel's, UNIX sockets and the raw channel: our own echo pair, then real programs.

mod conclusion;
mod echo;
mod programs;
mod raw;
mod sockperf;

use super::asked::Asked;
use super::printed::{Measured, Served, parse};
use super::work::{Work, Works, quick_first};
use crate::placement::Placement;

/// The most telling first.
const QUICK: [&str; 9] = [
    "rtt-70",
    "oneway-64",
    "epoll-100",
    "oneway-16384",
    "connect",
    "rtt-16384",
    "rtt-1000",
    "redis-get-c1",
    "redis-get-c50",
];

pub fn experiment() -> Asked {
    let works = [echo::works(), sockperf::works(), programs::works()];
    Asked {
        works: Works {
            name: "sockets",
            describe: "TCP of unmodified programs on one host, by the kernel and through shared memory",
            works: quick_first(works.into_iter().flatten().collect(), &QUICK),
        },
        question: "How much faster is TCP within a host when it goes through shared memory, and how near does it come to the \
                   memory itself?",
        method: "A client and a server, the same programs for every arm: round trips, one-way writes, a connection for each \
                 request, many connections in epoll; then installed programs. Both ends compare every byte, and the library's \
                 counters and the loop-back device must show that it went through shared memory.",
        usual: |cell| match cell.work.as_str() {
            "rtt" | "oneway" | "epoll" | "connect" => &[Placement::Apart, Placement::Same],
            "redis-set-c1" | "redis-set-c50" | "memcached-set" | "nginx-c1" => &[],
            _ => &[Placement::Apart],
        },
        conclude: conclusion::conclude,
    }
}
