//! What follows from round trips, streams and programs together.

use crate::conclude::{self, Pair};
use crate::conclusion::Conclusion;
use crate::experiment::{ACCELERATED, ACCELERATED_NODELAY, TCP, TCP_NODELAY, UNIX};
use crate::experiments::apps::OVER_TCP;
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::report::CellReport;

const PLACEMENTS: &[Placement] = &[Apart, Same, Free];

const fn over_tcp(label: &'static str, cell: &'static str) -> Pair {
    Pair::new(label, cell, ACCELERATED, TCP)
}

const fn nodelay(label: &'static str, cell: &'static str) -> Pair {
    Pair::new(label, cell, ACCELERATED_NODELAY, TCP_NODELAY)
}

const ROUND_TRIP: Pair = over_tcp("a round trip of 70 bytes", "rtt-70");
const STREAM: Pair = over_tcp("writes of 16 KiB", "oneway-16384");

const TRIPS: [Pair; 12] = [
    over_tcp("a round trip of 1 byte", "rtt-1"),
    ROUND_TRIP,
    over_tcp("a round trip of 512 bytes", "rtt-512"),
    over_tcp("a round trip of 1000 bytes", "rtt-1000"),
    over_tcp("a round trip of 4 KiB", "rtt-4096"),
    over_tcp("a round trip of 16 KiB", "rtt-16384"),
    over_tcp("a round trip of 64 KiB", "rtt-65536"),
    over_tcp("a connection with its request", "connect"),
    over_tcp("requests on 1 connection, epoll", "epoll-1"),
    over_tcp("requests on 10 connections, epoll", "epoll-10"),
    over_tcp("requests on 100 connections, epoll", "epoll-100"),
    over_tcp("requests on 1000 connections, epoll", "epoll-1000"),
];

const STREAMS: [Pair; 14] = [
    over_tcp("writes of 1 byte", "oneway-1"),
    over_tcp("writes of 64 bytes", "oneway-64"),
    over_tcp("writes of 1 KiB", "oneway-1024"),
    STREAM,
    over_tcp("writes of 64 KiB", "oneway-65536"),
    over_tcp("writes of 256 KiB", "oneway-262144"),
    over_tcp("writes of 1 MiB", "oneway-1048576"),
    nodelay("writes of 1 byte, no delay", "oneway-1"),
    nodelay("writes of 64 bytes, no delay", "oneway-64"),
    nodelay("writes of 1 KiB, no delay", "oneway-1024"),
    nodelay("writes of 16 KiB, no delay", "oneway-16384"),
    nodelay("writes of 64 KiB, no delay", "oneway-65536"),
    nodelay("writes of 256 KiB, no delay", "oneway-262144"),
    nodelay("writes of 1 MiB, no delay", "oneway-1048576"),
];

/// Those that only this experiment has.
const PROGRAMS: [Pair; 2] = [
    over_tcp("sockperf, a round trip of 64 bytes", "sockperf"),
    over_tcp("iperf3, writes of 128 KiB", "iperf3"),
];

pub fn conclude(cells: &[CellReport]) -> Conclusion {
    let of = "through shared memory, over the kernel's TCP";
    let headlines = [
        ROUND_TRIP.headline(cells, &[Apart], of),
        ROUND_TRIP.headline(cells, &[Same], of),
        STREAM.headline(cells, &[Apart, Same], of),
    ];
    let trips = (
        "round-trips",
        "Round trips, connections and requests through shared memory, over the kernel's TCP",
        "How many times as many in a second, with intervals of 95 %. A connection begins by the kernel's TCP in any case.",
    );
    let streams = (
        "streams",
        "Streams through shared memory, over the kernel's TCP",
        "How many times as many writes in a second. Without TCP_NODELAY the kernel gathers small writes; with it both arms are \
         told not to.",
    );
    let programs = (
        "programs",
        "Programs through shared memory, over the kernel's TCP",
        "How many times as much they do in a second.",
    );
    let installed = [OVER_TCP.as_slice(), PROGRAMS.as_slice()].concat();
    let of_kinds = [
        (trips, TRIPS.as_slice()),
        (streams, STREAMS.as_slice()),
        (programs, installed.as_slice()),
    ];
    let plots = of_kinds.map(|(titles, pairs)| conclude::bars(titles, pairs, PLACEMENTS, cells));
    let all = of_kinds.map(|(_, pairs)| pairs).concat();
    let plain = all.iter().filter(|pair| pair.against == TCP);
    let over_unix: Vec<Pair> = plain.map(|pair| pair.over(UNIX)).collect();
    let sheets = [
        conclude::ratios(("over-tcp", "Sockets: over the kernel's TCP"), &all, cells),
        conclude::ratios(
            ("over-unix", "Sockets: over UNIX sockets"),
            &over_unix,
            cells,
        ),
    ];
    Conclusion {
        sheets: sheets.into_iter().flatten().collect(),
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
        let cells = crate::experiments::sockets::experiment().cells();
        let pairs = [TRIPS.as_slice(), STREAMS.as_slice(), PROGRAMS.as_slice()].concat();
        conclude::assert_known(&pairs, &cells);
    }
}
