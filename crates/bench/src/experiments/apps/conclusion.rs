//! What follows from all programs together.

use crate::conclude::{self, Pair};
use crate::conclusion::Conclusion;
use crate::counts;
use crate::experiment::UNIX;
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::report::CellReport;
use crate::tables;

const PLACEMENTS: &[Placement] = &[Apart, Same, Free];

pub fn conclude(cells: &[CellReport]) -> Conclusion {
    let over_tcp = tables::pairs("apps", "programs");
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
    let over_unix: Vec<Pair> = over_tcp.iter().map(|pair| pair.over(UNIX)).collect();
    let plots = [
        conclude::bars(tcp, &over_tcp, PLACEMENTS, cells),
        conclude::bars(unix, &over_unix, PLACEMENTS, cells),
    ];
    let all: Vec<Pair> = over_tcp.into_iter().chain(over_unix).collect();
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
        headlines: tables::headlines("apps", cells),
        ..Conclusion::default()
    }
}
