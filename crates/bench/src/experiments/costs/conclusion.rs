//! What it costs, cost by cost.

use super::{ACCELERATED, NATIVE};
use crate::conclude::{self, Pair};
use crate::conclusion::Conclusion;
use crate::experiment::Metric;
use crate::findings::Measure;
use crate::placement::Placement::{Apart, Free, Same};
use crate::report::CellReport;

const fn over_native(label: &'static str, cell: &'static str) -> Pair {
    Pair::new(label, cell, ACCELERATED, NATIVE)
}

const CALL: Pair = over_native("a call on a descriptor of no concern", "foreign-call");
const START: Pair = over_native("starting and ending a program", "start");
const CONNECT: Pair = over_native("starting a program that connects", "first-connect");
const FORK: Pair = over_native("forking", "fork");
const FORK_CARRIED: Pair = over_native("forking with a carried connection", "fork-carried");
const REQUESTS: Pair = over_native(
    "1000 requests a second, CPU time of both ends",
    "1000-requests",
)
.of(Metric::Cpu);
const EPOLL: Pair = over_native(
    "1000 requests a second in epoll, CPU time of both ends",
    "1000-requests-epoll",
)
.of(Metric::Cpu);

const PAIRS: [Pair; 7] = [CALL, START, CONNECT, FORK, FORK_CARRIED, REQUESTS, EPOLL];

pub fn conclude(cells: &[CellReport]) -> Conclusion {
    let of = "with the library preloaded, over without it";
    let headlines = [CALL, START, FORK, EPOLL].map(|pair| pair.headline(cells, &[Same, Apart], of));
    let beside = |titles, metric| {
        let arms = (ACCELERATED, NATIVE);
        conclude::costs(titles, metric, arms, cells)
    };
    let time = (
        "time",
        "Costs: time",
        "Of one call, of a program from fork to its end, and of a fork to the child's end.",
    );
    let cpu = (
        "cpu",
        "Costs: CPU",
        "Shares of one CPU: of both ends where connections idle, of the server where it has a thousand requests a second.",
    );
    let memory = (
        "memory",
        "Costs: memory",
        "Resident bytes of both ends for each connection; pages that both map count once.",
    );
    let sheets = [
        beside(time, (Metric::Time, Measure::Nanoseconds)),
        beside(cpu, (Metric::CpuShare, Measure::Share)),
        beside(memory, (Metric::Memory, Measure::Bytes)),
    ];
    let plot = conclude::bars(
        (
            "costs",
            "With the library preloaded, over without it",
            "Above 1 is cheaper, below dearer; with intervals of 95 %.",
        ),
        &PAIRS,
        &[Apart, Same, Free],
        cells,
    );
    Conclusion {
        sheets: sheets.into_iter().flatten().collect(),
        plots: plot.into_iter().collect(),
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
        let cells = crate::experiments::costs::experiment().cells();
        conclude::assert_known(&PAIRS, &cells);
    }
}
