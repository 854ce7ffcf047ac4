//! What is data and not code: the experiments' texts, the cells of a quick run, what is compared with what, and the figures of the
//! papers; files of comma-separated values under `tables/`.

use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::conclude::Pair;
use crate::experiment::Metric;
use crate::findings::Headline;
use crate::placement::Placement;
use crate::report::CellReport;

macro_rules! table {
    ($name:ident: $row:ty, $file:literal) => {
        pub static $name: LazyLock<Vec<$row>> =
            LazyLock::new(|| rows($file, include_str!(concat!("../tables/", $file))));
    };
}

table!(TEXTS: Texts, "experiments.csv");
table!(QUICK: Quick, "quick.csv");
table!(COMPARED: Compared, "comparisons.csv");
table!(HEADLINES: Told, "headlines.csv");
table!(SPEED: Speed, "figures-of-speed.csv");
table!(ROUND_TRIPS: RoundTrip, "round-trips-of-fast-sockets.csv");
table!(BANDWIDTHS: Bandwidth, "bandwidth-of-fast-sockets.csv");

/// An experiment, for the list and the report.
#[derive(Deserialize)]
pub struct Texts {
    pub name: String,
    pub describe: String,
    /// What it asks: one sentence.
    pub question: String,
    /// How it is measured: a sentence or two.
    pub method: String,
}

/// A cell of a quick run. An experiment's most telling ones come first: it has as many as its time suffices for.
#[derive(Deserialize)]
pub struct Quick {
    pub experiment: String,
    pub cell: String,
}

/// Two arms of a cell that stand in a table and a plot of the experiment.
#[derive(Deserialize)]
pub struct Compared {
    pub experiment: String,
    pub group: String,
    pub label: String,
    pub cell: String,
    pub arm: String,
    pub against: String,
    pub metric: Metric,
}

/// Two arms of a cell on the report's first screen, from the first of these placements that was measured.
#[derive(Deserialize)]
pub struct Told {
    pub experiment: String,
    pub label: String,
    /// What is compared with what.
    pub of: String,
    pub cell: String,
    pub arm: String,
    pub against: String,
    pub metric: Metric,
    placements: String,
}

/// A figure of the Speed library's paper; the name says its unit.
#[derive(Deserialize)]
pub struct Speed {
    pub figure: String,
    pub size: usize,
    /// The paper's name for what carried the messages; none where nothing did.
    pub way: String,
    pub value: f64,
}

/// The line through the times of round trips in the paper on Fast Sockets, of all sizes or of those below 1 KiB.
#[derive(Deserialize)]
pub struct RoundTrip {
    pub layer: String,
    /// Ours that stands where the layer did.
    pub arm: String,
    pub sizes: String,
    pub per_byte_us: f64,
    pub t0_us: f64,
    pub start_up_us: f64,
}

/// The saturation curve of a layer in the same paper.
#[derive(Deserialize)]
pub struct Bandwidth {
    pub work: String,
    pub layer: String,
    pub arm: String,
    pub rmax_mb_s: f64,
    pub half_bytes: f64,
}

pub fn texts(experiment: &str) -> Option<&'static Texts> {
    TEXTS.iter().find(|texts| texts.name == experiment)
}

/// The cells of an experiment's quick run, in their order.
pub fn quick(experiment: &str) -> Vec<&'static str> {
    let own = QUICK.iter().filter(|quick| quick.experiment == experiment);
    own.map(|quick| quick.cell.as_str()).collect()
}

/// What an experiment compares in one plot.
pub fn pairs(experiment: &str, group: &str) -> Vec<Pair> {
    let own = COMPARED
        .iter()
        .filter(|row| row.experiment == experiment && row.group == group);
    let pair = |row: &'static Compared| Pair {
        label: &row.label,
        cell: &row.cell,
        arm: &row.arm,
        against: &row.against,
        metric: row.metric,
    };
    own.map(pair).collect()
}

/// Those of an experiment that were measured.
pub fn headlines(experiment: &str, cells: &[CellReport]) -> Vec<Headline> {
    let own = HEADLINES.iter().filter(|row| row.experiment == experiment);
    own.filter_map(|row| row.pair().headline(cells, &row.placements(), &row.of))
        .collect()
}

impl Told {
    fn pair(&'static self) -> Pair {
        Pair {
            label: &self.label,
            cell: &self.cell,
            arm: &self.arm,
            against: &self.against,
            metric: self.metric,
        }
    }

    fn placements(&self) -> Vec<Placement> {
        let names = self.placements.split(' ');
        let placement = |name| {
            let mut all = Placement::ALL.into_iter();
            all.find(|placement| placement.name() == name)
        };
        names.filter_map(placement).collect()
    }
}

/// The messages that machines of 2007 received of a size, in the test of netperf, in one column for each stack.
pub struct Machines {
    pub columns: Vec<&'static str>,
    pub rows: Vec<(&'static str, usize, Vec<f64>)>,
}

pub static UDP_OF_2007: LazyLock<Machines> =
    LazyLock::new(|| Machines::read(include_str!("../tables/machines-of-2007-udp.csv")));
pub static TCP_OF_2007: LazyLock<Machines> =
    LazyLock::new(|| Machines::read(include_str!("../tables/machines-of-2007-tcp.csv")));

impl Machines {
    /// The columns after machine and size have the names of what was measured; no field has a quotation mark or a comma of its own
    /// but the machine's.
    fn read(text: &'static str) -> Machines {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let row = |line: &'static str| {
            let (machine, rest) = line.trim_start_matches('"').split_once("\",")?;
            let mut numbers = rest.split(',').map(str::parse::<f64>);
            let size = numbers.next()?.ok()? as usize;
            let counts: Result<Vec<f64>, _> = numbers.collect();
            Some((machine, size, counts.ok()?))
        };
        Machines {
            columns: head.split(',').skip(2).collect(),
            rows: lines.filter_map(row).collect(),
        }
    }
}

/// These files are part of the program, and the tests read each.
fn rows<T: DeserializeOwned>(file: &str, text: &str) -> Vec<T> {
    let all: Result<Vec<T>, csv::Error> = csv::Reader::from_reader(text.as_bytes())
        .into_deserialize()
        .collect();
    all.unwrap_or_else(|error| panic!("tables/{file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Cell;
    use crate::experiments::{self, NAMES};

    fn cells(experiment: &str) -> Vec<Cell> {
        let found = experiments::by_name(experiment);
        found.expect("an experiment of this name").cells()
    }

    fn assert_known(experiment: &str, name: &str, arms: [&str; 2]) {
        let cells = cells(experiment);
        let cell = cells.iter().find(|cell| cell.name == name);
        let cell = cell.unwrap_or_else(|| panic!("{experiment} has no cell {name}"));
        for arm in arms {
            let known = cell.arms.iter().any(|own| own.name == arm);
            assert!(known, "{experiment}/{name} has no arm {arm}");
        }
    }

    #[test]
    fn every_experiment_has_its_texts_and_cells_of_a_quick_run() {
        let named: Vec<&str> = TEXTS.iter().map(|texts| texts.name.as_str()).collect();
        assert_eq!(named, NAMES);
        for texts in TEXTS.iter() {
            assert!(texts.question.ends_with('?') && texts.method.ends_with('.'));
            assert!(!texts.describe.is_empty());
            let cells = cells(&texts.name);
            let quick = quick(&texts.name);
            let first: Vec<&str> = cells.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(first[..quick.len()], quick);
            assert!(!quick.is_empty());
        }
        assert!(QUICK.iter().all(|row| NAMES.contains(&&*row.experiment)));
    }

    #[test]
    fn what_is_compared_is_measured() {
        for row in COMPARED.iter() {
            assert_known(&row.experiment, &row.cell, [&row.arm, &row.against]);
        }
        for row in HEADLINES.iter() {
            assert_known(&row.experiment, &row.cell, [&row.arm, &row.against]);
            let wanted = row.placements.split(' ').count();
            assert_eq!(row.placements().len(), wanted, "{}", row.label);
        }
        assert_eq!((COMPARED.len(), HEADLINES.len()), (89, 27));
    }

    #[test]
    fn the_papers_figures_are_all_there() {
        for (machines, columns) in [(&UDP_OF_2007, 3), (&TCP_OF_2007, 4)] {
            assert_eq!((machines.columns.len(), machines.rows.len()), (columns, 28));
            let whole = |row: &(_, usize, Vec<f64>)| row.2.len() == columns;
            assert!(machines.rows.iter().all(whole));
        }
        let counts = [SPEED.len(), ROUND_TRIPS.len(), BANDWIDTHS.len()];
        assert_eq!(counts, [35, 8, 8]);
        for row in ROUND_TRIPS.iter() {
            assert_known("lan", "rtt-1", [&row.arm, "tcp"]);
        }
        for row in BANDWIDTHS.iter() {
            assert_known("lan", &format!("{}-1024", row.work), [&row.arm, "tcp"]);
        }
    }
}
