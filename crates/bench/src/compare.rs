//! What changed between two runs, and whether that is more than the noise.
//!
//! Two runs share no rounds, so their rates are two independent samples: the interval of the ratio of their medians comes
//! from a bootstrap over the rounds of each.

use std::collections::BTreeMap;
use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::failure::Result;
use crate::placement::Placement;
use crate::results::Run;
use crate::stats::median;
use crate::table::{self, number};

/// Fewer rounds than these cannot tell noise from change.
const FEWEST: usize = 3;
const RESAMPLES: usize = 1000;

pub struct Comparison {
    pub changes: Vec<Change>,
    /// Arms that only one of the runs has rates of.
    pub only_old: Vec<String>,
    pub only_new: Vec<String>,
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
    /// The interval holds 1.
    WithinNoise,
    TooFewRounds,
}

impl Verdict {
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "SLOWER",
            Verdict::WithinNoise => "within the noise",
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
    let (before, after) = (rates(old), rates(new));
    let missing = |from: &Rates, of: &Rates| {
        let places = from.iter().filter(|(place, _)| !of.contains_key(place));
        places.map(|(place, _)| place.name()).collect()
    };
    let both = before
        .iter()
        .filter_map(|(place, old)| Some((place, old, after.get(place)?)));
    Comparison {
        changes: both
            .map(|(place, old, new)| Change::of(place, old, new))
            .collect(),
        only_old: missing(&before, &after),
        only_new: missing(&after, &before),
        warnings: warnings(old, new),
    }
}

type Rates = BTreeMap<Place, Vec<f64>>;

/// Of arms that have a rate at all: what costs something while nothing happens has none.
fn rates(run: &Run) -> Rates {
    let mut rates = Rates::new();
    for report in &run.experiments {
        for cell in &report.cells {
            for arm in &cell.arms {
                let known = arm.rates.iter().flatten().copied();
                let known: Vec<f64> = known
                    .filter(|rate| rate.is_finite() && *rate > 0.0)
                    .collect();
                if !known.is_empty() {
                    rates.insert(
                        place(&report.experiment, &cell.cell, cell.placement, &arm.arm),
                        known,
                    );
                }
            }
        }
    }
    rates
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
    fn of(place: &Place, old: &[f64], new: &[f64]) -> Change {
        let (low, high) = interval(old, new);
        let verdict = match () {
            _ if old.len().min(new.len()) < FEWEST => Verdict::TooFewRounds,
            _ if low > 1.0 => Verdict::Faster,
            _ if high < 1.0 => Verdict::Slower,
            _ => Verdict::WithinNoise,
        };
        Change {
            place: place.clone(),
            ratio: median(new) / median(old),
            low,
            high,
            rounds: (old.len(), new.len()),
            verdict,
        }
    }
}

/// Where the ratio of the medians, new over old, lies with 95 %: the percentiles of resampled ratios. The same samples give
/// the same interval.
fn interval(old: &[f64], new: &[f64]) -> (f64, f64) {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| median(&resample(new, &mut random)) / median(&resample(old, &mut random)))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[(share * (RESAMPLES - 1) as f64).round() as usize];
    (at(0.025), at(0.975))
}

/// As many of the values, with replacement.
fn resample(values: &[f64], random: &mut ChaCha8Rng) -> Vec<f64> {
    let count = values.len() as u64;
    let draw = |_: &f64| values[((u64::from(random.next_u32()) * count) >> 32) as usize];
    values.iter().map(draw).collect()
}

fn warnings(old: &Run, new: &Run) -> Vec<String> {
    let pairs = [
        ("CPU", old.machine.cpu.clone(), new.machine.cpu.clone()),
        (
            "number of CPUs",
            old.machine.cpus.len().to_string(),
            new.machine.cpus.len().to_string(),
        ),
        (
            "kernel",
            old.machine.kernel.clone(),
            new.machine.kernel.clone(),
        ),
        (
            "TCP congestion control",
            old.machine.congestion.clone(),
            new.machine.congestion.clone(),
        ),
        (
            "version of headwater",
            old.version.clone(),
            new.version.clone(),
        ),
        (
            "length of a sample",
            format!("{} s", old.seconds_per_sample),
            format!("{} s", new.seconds_per_sample),
        ),
    ];
    let differ = pairs.into_iter().filter(|(_, old, new)| old != new);
    let mut warnings: Vec<String> = differ
        .map(|(what, old, new)| format!("the {what} differs: {old:?} before, {new:?} now"))
        .collect();
    for (run, which) in [(old, "old"), (new, "new")] {
        if !run.complete {
            warnings.push(format!("the {which} run is partial"));
        }
    }
    warnings
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
        let mut rows = table::new(&[
            "experiment",
            "cell",
            "placement",
            "arm",
            "new/old",
            "95 %",
            "rounds",
            "verdict",
        ]);
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
                    change.verdict.words().to_string(),
                ],
            );
        }
        match self.changes.is_empty() {
            true => text += "no arm has rates in both runs\n",
            false => text += &format!("{rows}\n"),
        }
        for (which, names) in [("old", &self.only_old), ("new", &self.only_new)] {
            if !names.is_empty() {
                text += &format!("only in the {which} run: {}\n", names.join(", "));
            }
        }
        text + &self.summary()
    }

    fn summary(&self) -> String {
        let told = self.changes.len() - self.count(Verdict::TooFewRounds);
        let mut text = format!(
            "faster {}, slower {}, within the noise {}, too few rounds {}",
            self.count(Verdict::Faster),
            self.count(Verdict::Slower),
            self.count(Verdict::WithinNoise),
            self.count(Verdict::TooFewRounds),
        );
        // Without this, twenty arms that did not change look like one that did.
        let by_chance = (told as f64 * 0.05).round();
        if by_chance >= 1.0 {
            text +=
                &format!("; of {told} arms about {by_chance} would look changed by chance alone");
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &[f64], new: &[f64]) -> Change {
        Change::of(
            &place("pipe", "one-64", Placement::Same, "streams"),
            old,
            new,
        )
    }

    #[test]
    fn a_change_is_told_from_noise() {
        let old = [100.0, 103.0, 98.0, 101.0, 99.0, 102.0, 97.0];
        let moved = |factor: f64| old.map(|rate| rate * factor);
        assert_eq!(of(&old, &moved(1.2)).verdict, Verdict::Faster);
        assert_eq!(of(&old, &moved(0.8)).verdict, Verdict::Slower);
        assert_eq!(of(&old, &moved(1.005)).verdict, Verdict::WithinNoise);
        let same = of(&old, &old);
        assert_eq!((same.ratio, same.verdict), (1.0, Verdict::WithinNoise));
        assert!(same.low < 1.0 && same.high > 1.0);
    }

    #[test]
    fn the_interval_holds_the_ratio_and_is_the_same_each_time() {
        let (old, new) = (
            [10.0, 11.0, 12.0, 13.0, 14.0],
            [20.0, 23.0, 24.0, 25.0, 40.0, 22.0],
        );
        let change = of(&old, &new);
        assert_eq!(change.ratio, 23.5 / 12.0);
        assert!(change.low < change.ratio && change.ratio < change.high);
        assert_eq!(interval(&old, &new), interval(&old, &new));
        // Medians of resamples are values of the samples, or lie between two of them.
        assert!(change.low >= 20.0 / 14.0 && change.high <= 40.0 / 10.0);
    }

    #[test]
    fn two_rounds_prove_nothing() {
        assert_eq!(of(&[1.0, 1.0], &[9.0; 15]).verdict, Verdict::TooFewRounds);
    }
}
