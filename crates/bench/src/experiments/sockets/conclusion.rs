//! What follows from round trips, streams and programs together.

use crate::conclude::{self, Pair};
use crate::conclusion::Conclusion;
use crate::experiment::{TCP, UNIX};
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::report::CellReport;
use crate::tables;

const PLACEMENTS: &[Placement] = &[Apart, Same, Free];

pub fn conclude(cells: &[CellReport]) -> Conclusion {
    let pairs = |group| tables::pairs("sockets", group);
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
    let installed = [tables::pairs("apps", "programs"), pairs("programs")].concat();
    let of_kinds = [
        (trips, pairs("round-trips")),
        (streams, pairs("streams")),
        (programs, installed),
    ];
    let bars = |(titles, pairs): &(_, Vec<_>)| conclude::bars(*titles, pairs, PLACEMENTS, cells);
    let plots = of_kinds.each_ref().map(bars);
    let all = of_kinds.map(|(_, pairs)| pairs).concat();
    let plain = all.iter().filter(|pair| pair.against == TCP.name);
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
        headlines: tables::headlines("sockets", cells),
        ..Conclusion::default()
    }
}
