//! What follows from all programs together.

use crate::conclude::{self, Pair};
use crate::conclusion::Conclusion;
use crate::counts;
use crate::experiment::{ACCELERATED, TCP, UNIX};
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::report::CellReport;

const PLACEMENTS: &[Placement] = &[Apart, Same, Free];

const fn over_tcp(label: &'static str, cell: &'static str) -> Pair {
    Pair::new(label, cell, ACCELERATED, TCP)
}

const REDIS: Pair = over_tcp("redis GET, 50 clients", "redis-get-c50");
const NGINX: Pair = over_tcp("nginx, a small file, 16 connections", "nginx-c16");
const POSTGRES: Pair = over_tcp("PostgreSQL, a query, 8 clients", "pgbench-select-c8");

/// Every program, accelerated over native.
pub const OVER_TCP: [Pair; 19] = [
    over_tcp("redis GET, 1 client", "redis-get-c1"),
    over_tcp("redis SET, 1 client", "redis-set-c1"),
    REDIS,
    over_tcp("redis SET, 50 clients", "redis-set-c50"),
    over_tcp("redis GET, 50 clients, 16 at once", "redis-get-c50-p16"),
    over_tcp("redis SET, 50 clients, 16 at once", "redis-set-c50-p16"),
    over_tcp("nginx, a small file, 1 connection", "nginx-c1"),
    NGINX,
    over_tcp("nginx, a connection for each", "nginx-close-c16"),
    over_tcp("memcached get", "memcached-get"),
    over_tcp("memcached set", "memcached-set"),
    over_tcp("PostgreSQL, a query, 1 client", "pgbench-select-c1"),
    POSTGRES,
    over_tcp("PostgreSQL, a transaction, 1 client", "pgbench-standard-c1"),
    over_tcp(
        "PostgreSQL, a transaction, 8 clients",
        "pgbench-standard-c8",
    ),
    over_tcp("PostgreSQL, a connection for each", "pgbench-connect-c4"),
    over_tcp("uWSGI, a connection for each", "uwsgi-c4"),
    over_tcp("iperf3, 1 stream", "iperf3-p1"),
    over_tcp("iperf3, 8 streams", "iperf3-p8"),
];

pub fn conclude(cells: &[CellReport]) -> Conclusion {
    let of = "through shared memory, over the kernel's TCP";
    let headlines = [REDIS, NGINX, POSTGRES].map(|pair| pair.headline(cells, &[Apart, Same], of));
    let tcp = (
        "over-tcp",
        "Programs through shared memory, over the kernel's TCP",
        "How many times as much they do in a second, with intervals of 95 %. Where each request has a connection of its own \
         nothing is carried, and the library can only be in the way.",
    );
    let unix = (
        "over-unix",
        "Programs through shared memory, over UNIX sockets",
        "The same over the UNIX sockets that some of them can be told to use instead.",
    );
    let over_unix = OVER_TCP.map(|pair| pair.over(UNIX));
    let plots = [
        conclude::bars(tcp, &OVER_TCP, PLACEMENTS, cells),
        conclude::bars(unix, &over_unix, PLACEMENTS, cells),
    ];
    let all: Vec<Pair> = OVER_TCP.into_iter().chain(over_unix).collect();
    let sheet = conclude::ratios(("ratios", "Programs: ratios"), &all, cells);
    let rates = (
        "rates",
        "Programs: rates",
        "What each did in a second, of the kind that its work is of: a request, a query, a transaction, a block of a stream; that \
         is a message here. Medians of the rounds.",
    );
    let rates = counts::rates(rates, cells);
    Conclusion {
        sheets: sheet.into_iter().chain(rates).collect(),
        plots: plots.into_iter().flatten().collect(),
        headlines: headlines.into_iter().flatten().collect(),
        ..Conclusion::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn what_is_compared_is_measured() {
        let cells = crate::experiments::apps::experiment().cells();
        let pairs = [OVER_TCP.as_slice()].concat();
        conclude::assert_known(&pairs, &cells);
    }
}
