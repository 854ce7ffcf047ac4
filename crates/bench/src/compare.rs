//! What changed between two runs, and whether that is more than the noise.
//!
//! Two runs share no rounds, so their rates are two independent samples. An arm has changed where the bootstrap intervals of
//! their medians do not touch; with few rounds that is no more than a hint.

mod runs;

use std::collections::BTreeMap;
use std::path::Path;

use crate::cells::ArmReport;
use crate::failure::{Result, tells_wrong_bytes};
use crate::numbers::number;
use crate::placement::Placement;
use crate::report::Report;
use crate::results::Run;
use crate::stats::{independent_ratio, median};
use crate::table;

/// Fewer rounds than these cannot tell noise from change.
const FEWEST: usize = 5;
/// With fewer than these the range of the rounds is all there is to judge by.
const ENOUGH: usize = 7;
/// The share of arms that would look changed though nothing has, as rounds of known distributions show.
const BY_CHANCE: f64 = 0.01;

pub struct Comparison {
    pub changes: Vec<Change>,
    /// Arms that only one of the runs has rates of.
    pub only_old: Vec<String>,
    pub only_new: Vec<String>,
    /// What one of the runs skipped, and why.
    pub skipped: Vec<String>,
    /// Why the figures might differ for other reasons than the software.
    pub warnings: Vec<String>,
}

/// An arm of a cell, in both runs.
#[derive(Debug)]
pub struct Change {
    pub place: Place,
    /// Of the median rates, new over old.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// Rounds of the old run, of the new one.
    pub rounds: (usize, usize),
    pub verdict: Verdict,
    /// What is wrong with the arm's samples, and in which run.
    pub marks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub experiment: String,
    pub cell: String,
    pub placement: &'static str,
    pub arm: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Faster,
    Slower,
    /// The same of few rounds.
    PerhapsFaster,
    PerhapsSlower,
    /// The interval holds 1.
    WithinNoise,
    TooFewRounds,
    /// One of the rates is none of this arm: wrong bytes, or traffic that was not carried.
    NoResult,
}

impl Verdict {
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "SLOWER",
            Verdict::PerhapsFaster => "perhaps faster",
            Verdict::PerhapsSlower => "perhaps slower",
            Verdict::WithinNoise => "within the noise",
            Verdict::NoResult => "no result",
            Verdict::TooFewRounds => "too few rounds",
        }
    }
}

impl Place {
    fn name(&self) -> String {
        format!(
            "{}/{}/{} {}",
            self.experiment, self.cell, self.placement, self.arm
        )
    }
}

/// Reads two `results.json` and prints what changed.
pub fn print(old: &Path, new: &Path) -> Result<()> {
    let (old, new) = (Run::read(old)?, Run::read(new)?);
    print!("{}", compare(&old, &new).table());
    Ok(())
}

pub fn compare(old: &Run, new: &Run) -> Comparison {
    let (before, after) = (arms(old), arms(new));
    let both = before
        .iter()
        .filter_map(|(place, old)| Some((place, old, after.get(place)?)));
    let skipped = |run, other, which: &str| -> Vec<String> {
        let skipped = runs::skipped_alone(run, other);
        skipped
            .map(|one| format!("{} (in the {which} run: {})", one.name, one.why))
            .collect()
    };
    Comparison {
        changes: both
            .filter(|(_, old, new)| old.has_rates() && new.has_rates())
            .map(|(place, old, new)| Change::of(place, old, new))
            .collect(),
        only_old: missing(&before, &after),
        only_new: missing(&after, &before),
        skipped: [skipped(old, new, "old"), skipped(new, old, "new")].concat(),
        warnings: runs::differences(old, new),
    }
}

/// Names of the arms that have rates in `from` alone, and what came of them in the other run where it tried.
fn missing(from: &Arms, of: &Arms) -> Vec<String> {
    let alone = from
        .iter()
        .filter(|(_, arm)| arm.has_rates())
        .filter_map(|(place, _)| match of.get(place) {
            None => Some(place.name()),
            Some(arm) if arm.has_rates() => None,
            Some(arm) => Some(format!("{} ({})", place.name(), arm.marks.join(", "))),
        });
    alone.collect()
}

type Arms = BTreeMap<Place, Seen>;

/// What a run has of an arm.
#[derive(Default)]
struct Seen {
    /// What costs something while nothing happens has none.
    rates: Vec<f64>,
    marks: Vec<String>,
    /// The rates are not those of this arm.
    void: bool,
}

fn arms(run: &Run) -> Arms {
    let cells = |report| -> Vec<(Place, Seen)> { seen(report).collect() };
    run.experiments.iter().flat_map(cells).collect()
}

fn seen(report: &Report) -> impl Iterator<Item = (Place, Seen)> {
    report.cells.iter().flat_map(|cell| {
        cell.arms.iter().map(|arm| {
            let place = place(&report.experiment, &cell.cell, cell.placement, &arm.arm);
            (place, Seen::of(arm))
        })
    })
}

impl Seen {
    fn of(arm: &ArmReport) -> Seen {
        let known = arm.rates.iter().flatten().copied();
        let good = |rate: &f64| rate.is_finite() && *rate > 0.0;
        let mut seen = Seen {
            rates: known.filter(good).collect(),
            ..Seen::default()
        };
        let wrong = arm.failures.iter().find(|why| tells_wrong_bytes(why));
        seen.void = wrong.is_some();
        if let Some(why) = wrong.or(arm.failures.first()) {
            let failed = arm.rates.iter().filter(|rate| rate.is_none()).count();
            let of = arm.rates.len();
            seen.marks.push(match failed {
                0 => why.clone(),
                _ => format!("failed {failed} of {of}: {why}"),
            });
        }
        if let Some(carried) = arm.carried.as_ref().filter(|c| c.yes < c.of) {
            let part = format!(
                "not carried in {} of {}",
                carried.of - carried.yes,
                carried.of
            );
            seen.marks.push(part);
            seen.void = true;
        }
        if seen.marks.is_empty() && seen.rates.is_empty() {
            seen.marks.push("no rate".to_string());
        }
        seen
    }

    fn has_rates(&self) -> bool {
        !self.rates.is_empty()
    }

    fn marks_in<'a>(&'a self, which: &'a str) -> impl Iterator<Item = String> + 'a {
        self.marks.iter().map(move |mark| format!("{which} {mark}"))
    }
}

fn place(experiment: &str, cell: &str, placement: Placement, arm: &str) -> Place {
    Place {
        experiment: experiment.to_string(),
        cell: cell.to_string(),
        placement: placement.name(),
        arm: arm.to_string(),
    }
}

impl Change {
    /// Of arms that have rates.
    fn of(place: &Place, old: &Seen, new: &Seen) -> Change {
        let rounds = (old.rates.len(), new.rates.len());
        let (low, high) = independent_ratio(&old.rates, &new.rates)
            .map_or((0.0, f64::INFINITY), |ratio| (ratio.low, ratio.high));
        let fewest = rounds.0.min(rounds.1);
        let verdict = match () {
            _ if old.void || new.void => Verdict::NoResult,
            _ if fewest < FEWEST => Verdict::TooFewRounds,
            _ if low > 1.0 && fewest < ENOUGH => Verdict::PerhapsFaster,
            _ if high < 1.0 && fewest < ENOUGH => Verdict::PerhapsSlower,
            _ if low > 1.0 => Verdict::Faster,
            _ if high < 1.0 => Verdict::Slower,
            _ => Verdict::WithinNoise,
        };
        Change {
            place: place.clone(),
            ratio: median(&new.rates) / median(&old.rates),
            low,
            high,
            rounds,
            verdict,
            marks: old.marks_in("old:").chain(new.marks_in("new:")).collect(),
        }
    }

    /// The verdict, and what makes it doubtful.
    fn words(&self) -> String {
        let verdict = self.verdict.words().to_string();
        let words = [verdict].into_iter().chain(self.marks.iter().cloned());
        words.collect::<Vec<String>>().join("; ")
    }
}

impl Comparison {
    pub fn count(&self, verdict: Verdict) -> usize {
        self.changes
            .iter()
            .filter(|change| change.verdict == verdict)
            .count()
    }

    /// For the terminal.
    pub fn table(&self) -> String {
        let mut text: String = self
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}\n"))
            .collect();
        let mut rows = table::new("experiment|cell|placement|arm|new/old|95 %|rounds|verdict");
        for change in &self.changes {
            let place = &change.place;
            table::row(
                &mut rows,
                [
                    place.experiment.clone(),
                    place.cell.clone(),
                    place.placement.to_string(),
                    place.arm.clone(),
                    format!("{}x", number(change.ratio)),
                    format!("{}-{}", number(change.low), number(change.high)),
                    format!("{}, {}", change.rounds.0, change.rounds.1),
                    change.words(),
                ],
            );
        }
        match self.changes.is_empty() {
            true => text += "no arm has rates in both runs\n",
            false => text += &format!("{rows}\n"),
        }
        for (what, names) in [
            ("only in the old run", &self.only_old),
            ("only in the new run", &self.only_new),
            ("skipped", &self.skipped),
        ] {
            if !names.is_empty() {
                text += &format!("{what}: {}\n", names.join(", "));
            }
        }
        text + &self.summary()
    }

    fn summary(&self) -> String {
        let count = |verdict| format!("{} {}", verdict_word(verdict), self.count(verdict));
        let all = [
            Verdict::Faster,
            Verdict::Slower,
            Verdict::PerhapsFaster,
            Verdict::PerhapsSlower,
            Verdict::WithinNoise,
            Verdict::TooFewRounds,
            Verdict::NoResult,
        ];
        let told =
            self.changes.len() - self.count(Verdict::TooFewRounds) - self.count(Verdict::NoResult);
        // Without this, a hundred arms that did not change look like one that did.
        let by_chance = match told as f64 * BY_CHANCE {
            few if few < 1.0 => "less than one".to_string(),
            some => format!("about {}", some.round()),
        };
        format!(
            "{}; of {told} arms {by_chance} would look changed by chance alone\n\
             The intervals are of how the rounds of each run scatter. Runs of the same software may differ by more, so a \
             change is certain only when it shows in another pair of runs too; \"perhaps\" says that there were fewer than \
             {ENOUGH} rounds.\n",
            all.map(count).join(", ")
        )
    }
}

fn verdict_word(verdict: Verdict) -> String {
    verdict.words().to_lowercase()
}

#[cfg(test)]
mod tests;
