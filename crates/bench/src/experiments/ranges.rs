//! The netperf ranges of the documents of 2007: what each of their machines received, beside what was received here.

use std::sync::LazyLock;

use crate::cells::CellReport;
use crate::conclude::{self, find};
use crate::conclusion::Conclusion;
use crate::experiment::Arm;
use crate::findings::{Seed, Sheet, Value};
use crate::numbers::number;
use crate::placement::Placement;
use crate::sizes;
use crate::tables::{self, Machines, TCP_OF_2007, UDP_OF_2007};

/// The sizes that are carried over.
const SIZES: [usize; 4] = [1, 64, 1024, 16384];
/// The tables count the messages of a test of so many seconds.
const TEST: f64 = 10.0;

/// The tables of one document; their first column is what the others are compared with.
pub struct Ranges {
    file: &'static str,
    machines: &'static LazyLock<Machines>,
}

pub const UDP: Ranges = Ranges {
    file: "000_ea6e3dee696ec663.txt",
    machines: &UDP_OF_2007,
};

pub const TCP: Ranges = Ranges {
    file: "004_d64a27e9d34dc10b.txt",
    machines: &TCP_OF_2007,
};

/// One of their columns, by its place, and one of our arms.
type Beside = (usize, Arm);

impl Ranges {
    /// Of the experiment `work`; `beside` begins with the baseline.
    pub fn conclude(&self, cells: &[CellReport], work: &str, beside: &[Beside]) -> Conclusion {
        let title = work.to_uppercase();
        let mut sheets = sizes::sheets(cells, work, &title);
        sheets.push(self.sheet(work));
        Conclusion {
            plots: sizes::four(cells, work, &title, beside[0].1.name),
            sheets,
            seeds: self.seeds(cells, work, beside),
            headlines: conclude::headlines(work, cells),
            ..Conclusion::default()
        }
    }

    /// The range of their machines beside what the cells `WORK-SIZE` measured; `beside` begins with the baseline.
    pub fn seeds(&self, cells: &[CellReport], work: &str, beside: &[Beside]) -> Vec<Seed> {
        let Some(&base) = beside.first() else {
            return Vec::new();
        };
        let at = |size: usize| {
            beside.iter().map(move |&(column, arm)| Seed {
                file: self.file.to_string(),
                what: format!(
                    "{size} {}, {}: messages a second, on their {} machines",
                    if size == 1 { "byte" } else { "bytes" },
                    self.machines.columns[column],
                    self.machines.rows.len() / SIZES.len()
                ),
                theirs: self.theirs(size, base.0, column),
                ours: ours(cells, work, size, base.1, arm),
            })
        };
        SIZES.into_iter().flat_map(at).collect()
    }

    /// Lowest and highest of all machines, and of their factors over the baseline.
    fn theirs(&self, size: usize, base: usize, column: usize) -> String {
        let rows = || self.rows(size);
        let rates = span(rows().map(|row| row[column]), "");
        match column == base {
            true => format!("{rates}/s"),
            false => {
                let factors = span(rows().map(|row| row[column] / row[base]), "x");
                format!("{rates}/s, {factors}")
            }
        }
    }

    /// Messages a second of each machine.
    fn rows(&self, size: usize) -> impl Iterator<Item = Vec<f64>> {
        let own = self.machines.rows.iter().filter(move |row| row.1 == size);
        own.map(|(.., counts)| rates(counts))
    }

    /// All of them, of an experiment.
    pub fn sheet(&self, experiment: &str) -> Sheet {
        let mut sheet = tables::sheet(experiment, "machines-of-2007", &[]);
        for (machine, size, counts) in &self.machines.rows {
            let rates = rates(counts);
            let factors = rates[1..].iter().map(|rate| rate / rates[0]);
            let numbers = rates.iter().copied().chain(factors);
            let mut row = vec![Value::from(*machine), Value::from(*size as f64)];
            row.extend(numbers.map(Value::from));
            sheet.rows.push(row);
        }
        sheet
    }
}

/// Of a test's counts.
fn rates(counts: &[f64]) -> Vec<f64> {
    counts.iter().map(|count| count / TEST).collect()
}

fn span(values: impl Iterator<Item = f64>, unit: &str) -> String {
    let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    format!("{}-{}{unit}", number(low), number(high))
}

/// What was received in each placement, and the factor of medians over the baseline.
fn ours(cells: &[CellReport], work: &str, size: usize, base: Arm, arm: Arm) -> String {
    let name = format!("{work}-{size}");
    let placed = Placement::ALL.into_iter().filter_map(|placement| {
        let cell = find(cells, &name, placement)?;
        let rate = cell.arm(arm.name).filter(|arm| arm.is_proved())?.rate?;
        let factor = cell
            .arm(base.name)
            .filter(|_| base.name != arm.name)
            .and_then(|base| base.rate)
            .map(|base| format!(", {}x", number(rate / base)));
        Some(format!(
            "{} {}/s{}",
            placement.name(),
            number(rate),
            factor.unwrap_or_default()
        ))
    });
    placed.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
