//! The lines through the times of messages, 64-byte write-reads, and what was said of them in 2007.

use crate::cells::CellReport;
use crate::conclude::{self, Pair};
use crate::conclusion::{Best, Conclusion, Regression};
use crate::experiment::{Goal, Metric, PIPE, STREAMS, UNIX};
use crate::findings::{Headline, Plot, Seed};
use crate::numbers::number;
use crate::placement::Placement::{self, Apart, Same};
use crate::sizes;
use crate::verdict::Comparison;

/// The largest message of the regression.
const REGRESSION: usize = 4096;
const SEED: &str = "003_c5bc4b9930b1375e.txt";

/// By one process.
const ONE: Pair = Pair {
    label: "64 bytes",
    cell: "one-64",
    arm: STREAMS.name,
    against: PIPE.name,
    metric: Metric::Rate,
};

/// What is drawn of each pattern: one process is not different where it may choose its CPU.
const DRAWN: [(&str, &str, &[Placement]); 2] = [
    ("one", "One process", &[Same]),
    ("two", "Two processes", &[Apart, Same]),
];

pub fn conclude(cells: &[CellReport]) -> Conclusion {
    let placements = Placement::UNDISTURBED;
    let goal = Goal::rate(placements, 4.0, 7.0).between(STREAMS, PIPE);
    let best = Best::of(cells, "two-64", placements, &goal, PIPE);
    let of = "a STREAMS pipe, over the kernel's";
    let mut headlines = conclude::headlines("pipe", cells);
    headlines.extend(best.as_ref().map(|best| in_best(best, of)));
    let regressions: Vec<Regression> = DRAWN
        .iter()
        .flat_map(|(work, ..)| Regression::all(cells, work, REGRESSION, PIPE))
        .collect();
    Conclusion {
        seeds: seeds(cells, best.as_ref(), &regressions),
        plots: [vec![write_reads(cells)], over_sizes(cells)].concat(),
        headlines,
        best: best.into_iter().collect(),
        regressions,
        ..Conclusion::default()
    }
}

fn in_best(best: &Best, of: &str) -> Headline {
    let (mine, other) = (best.placement.name(), best.against_placement.name());
    let places = if mine == other {
        format!("both {mine}")
    } else {
        format!("{mine} and {other}")
    };
    let what = format!("64 bytes, from process to process, each pipe where it is best ({places})");
    conclude::headline(&what, of, &best.comparison)
}

fn write_reads(cells: &[CellReport]) -> Plot {
    let of = [
        ("one process", "one-64", Same),
        ("two processes, a CPU each", "two-64", Apart),
        ("two processes, one CPU", "two-64", Same),
    ];
    let arms = [PIPE, STREAMS, UNIX];
    conclude::rates(("pipe", "write-reads-64"), &of, &arms, cells)
}

/// The times with the lines through them as far as the regression goes, and the throughput of all sizes.
fn over_sizes(cells: &[CellReport]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (work, title, placements) in DRAWN {
        let here: Vec<CellReport> = cells
            .iter()
            .filter(|cell| cell.work == work && placements.contains(&cell.placement))
            .cloned()
            .collect();
        let of_line = |cell: &&CellReport| cell.size.is_some_and(|size| size <= REGRESSION);
        let small: Vec<CellReport> = here.iter().filter(of_line).cloned().collect();
        let only = |cells: &[CellReport], kind: &str| {
            let mut plots = sizes::four(cells, work, title, PIPE.name);
            plots.retain(|plot| plot.name.contains(kind));
            plots
        };
        plots.extend(only(&small, "-delay-"));
        plots.extend(only(&here, "-throughput-"));
    }
    plots
}

fn seeds(cells: &[CellReport], best: Option<&Best>, lines: &[Regression]) -> Vec<Seed> {
    let seed = |what: &str, theirs: &str, ours: Option<String>| {
        Seed::new(SEED, what.to_string(), theirs.to_string(), ours)
    };
    let factor = |ratio: &Comparison| {
        let [middle, low, high] = [ratio.figure.value(), ratio.low, ratio.high].map(number);
        format!("{middle} ({low} to {high}) times")
    };
    let one = ONE.ratio(cells, Same);
    let one = one.map(|ratio| format!("{} by one process", factor(&ratio)));
    let two = best.map(|best| {
        format!(
            "{} by two, each pipe where it is best",
            factor(&best.comparison)
        )
    });
    let write_reads: Vec<String> = one.into_iter().chain(two).collect();
    let line = lines
        .iter()
        .find(|line| line.work == "one" && line.placement == Same && line.arm == STREAMS.name);
    let factors = line.and_then(|line| line.delay_factor.zip(line.throughput_factor));
    let factors = factors.map(|(delay, throughput)| {
        let [delay, throughput] = [delay, throughput].map(number);
        format!(
            "{delay} times in write-read delay, {throughput} times in throughput, by one process"
        )
    });
    vec![
        seed(
            "write-reads of 64 bytes through a STREAMS pipe, over Linux's own (streams-0.9.2.3)",
            "3 to 6 times",
            Some(write_reads.join("; ")),
        ),
        seed(
            "a STREAMS pipe over Linux's own at large (streams-0.9.2.3)",
            "about 5 times",
            factors,
        ),
        seed(
            "write-reads of 64 bytes at the time of its charts (streams-0.7a.4), where about even was a good result",
            "0.95 times",
            None,
        ),
    ]
}

#[cfg(test)]
mod tests;
