//! What it costs, cost by cost.

use super::{ACCELERATED, NATIVE};
use crate::conclude;
use crate::conclusion::Conclusion;
use crate::experiment::Metric;
use crate::findings::Measure;
use crate::placement::Placement::{Apart, Free, Same};
use crate::report::CellReport;
use crate::tables;

pub fn conclude(cells: &[CellReport]) -> Conclusion {
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
        &tables::pairs("costs", "costs"),
        &[Apart, Same, Free],
        cells,
    );
    Conclusion {
        sheets: sheets.into_iter().flatten().collect(),
        plots: plot.into_iter().collect(),
        headlines: tables::headlines("costs", cells),
        ..Conclusion::default()
    }
}
