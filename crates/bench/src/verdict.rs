//! When a ratio or a difference counts.
//!
//! "Never slower" holds where the median of the pairs is at least 0.95 and its 95 % interval, found by bootstrap, does not
//! lie wholly below 0.95. A goal is met by its median. Neither counts where the traffic was not proved to be carried. Cells about costs
//! know no ratios, only differences, which must not be too great.

use serde::{Deserialize, Serialize};

use crate::arms::user;
use crate::carriage::{self, Carried, Proof};
use crate::experiment::{
    ACCELERATED, ACCELERATED_NODELAY, Against, Arm, Carrier, Cell, Goal, Metric, PIPE, STREAMS,
    Sample, TCP, TCP_NODELAY, UNIX,
};
use crate::lenient;
use crate::placement::Placement;
use crate::stats::{bootstrap_ratio, known_median, median};

const EVEN: f64 = 0.95;

/// The samples of one arm, by round; a round that failed is None.
pub struct Series {
    pub arm: Arm,
    pub samples: Vec<Option<Sample>>,
    pub failures: Vec<String>,
    pub syscalls: Option<Syscalls>,
    /// Whether a sample, also one that does not count, failed since received bytes differed from the sent ones.
    pub wrong_contents: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Syscalls {
    pub per_message: f64,
    pub method: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    pub arm: String,
    pub against: String,
    pub metric: Metric,
    pub pairs: usize,
    #[serde(flatten)]
    pub figure: Figure,
    #[serde(deserialize_with = "lenient::number")]
    pub low: f64,
    #[serde(deserialize_with = "lenient::number")]
    pub high: f64,
    #[serde(deserialize_with = "lenient::number")]
    pub coverage: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aim: Option<f64>,
    pub verdict: Verdict,
}

/// The median of the pairs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Better by this factor.
    Ratio(#[serde(deserialize_with = "lenient::number")] f64),
    /// So much more of a cost, in its metric's unit.
    More(#[serde(deserialize_with = "lenient::number")] f64),
}

impl Figure {
    pub fn value(self) -> f64 {
        match self {
            Figure::Ratio(value) | Figure::More(value) => value,
        }
    }

    fn reaches(self, wanted: f64) -> bool {
        match self {
            Figure::Ratio(ratio) => ratio >= wanted,
            Figure::More(more) => more <= wanted,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Measured for information only.
    Seen,
    NotSlower,
    Slower,
    Missed,
    Must,
    Aim,
    /// An accelerated arm whose traffic was not proved to be carried: the ratio says nothing.
    NotCarried,
}

impl Verdict {
    pub fn is_bad(self) -> bool {
        matches!(self, Verdict::Slower | Verdict::Missed)
    }

    pub fn words(self) -> &'static str {
        match self {
            Verdict::Seen => "",
            Verdict::NotSlower => "not slower",
            Verdict::Slower => "SLOWER",
            Verdict::Missed => "MISSED",
            Verdict::Must => "must",
            Verdict::Aim => "aim",
            Verdict::NotCarried => "not carried",
        }
    }
}

impl Series {
    pub fn new(arm: Arm) -> Series {
        Series {
            arm,
            samples: Vec::new(),
            failures: Vec::new(),
            syscalls: None,
            wrong_contents: false,
        }
    }

    pub fn has_samples(&self) -> bool {
        self.taken().next().is_some()
    }

    pub fn taken(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().flatten()
    }

    pub fn median(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        known_median(self.taken().filter_map(of))
    }

    /// How many samples were carried, of how many, and the first objection. None for arms that need no proof.
    pub fn carried(&self, cell: &Cell, all: &[Series]) -> Option<(usize, usize, Carried)> {
        if self.arm.carrier != Carrier::Accelerated || cell.proof == Proof::None {
            return None;
        }
        let baseline = all
            .iter()
            .find(|s| s.arm.carrier == Carrier::Tcp && s.arm.nodelay == self.arm.nodelay);
        let native = baseline.and_then(|s| s.median(Sample::loopback));
        let (mut yes, mut count, mut objection) = (0, 0, Carried::Yes);
        for sample in self.taken() {
            let counters = sample.counters.clone().unwrap_or_default();
            count += 1;
            let loopback = sample.loopback().unwrap_or(0.0);
            match carriage::judge(cell.proof, &counters, loopback, native) {
                Carried::Yes => yes += 1,
                other => objection = other,
            }
        }
        Some((yes, count, objection))
    }
}

/// Every comparison that the arms of a cell allow, goals first.
pub fn compare(cell: &Cell, placement: Placement, all: &[Series]) -> Vec<Comparison> {
    let mut comparisons: Vec<Comparison> = cell
        .goals
        .iter()
        .filter(|goal| goal.placements.contains(&placement))
        .filter_map(|goal| one(cell, goal, Some((goal.must, goal.aim)), all))
        .collect();
    if cell.is_about_costs() {
        return comparisons;
    }
    let everywhere = Goal::rate(&Placement::ALL, EVEN, EVEN);
    for (arm, against) in [
        (ACCELERATED, TCP),
        (ACCELERATED_NODELAY, TCP_NODELAY),
        (STREAMS, PIPE),
    ] {
        comparisons.extend(one(
            cell,
            &everywhere.clone().between(arm, against),
            None,
            all,
        ));
    }
    let of_the_user = |series: &&Series| matches!(series.arm.carrier, Carrier::Command(_));
    for series in all.iter().filter(of_the_user) {
        let Some(against) = user::native(cell) else {
            continue;
        };
        let seen = everywhere.clone().between(series.arm, against);
        let seen = one(cell, &seen, None, all);
        comparisons.extend(seen.map(|comparison| Comparison {
            verdict: Verdict::Seen,
            ..comparison
        }));
    }
    for arm in [ACCELERATED, STREAMS] {
        let aside = everywhere.clone().between(arm, UNIX);
        let is_goal =
            |goal: &Goal| goal.against == aside.against && goal.placements.contains(&placement);
        if cell.goals.iter().any(is_goal) {
            continue;
        }
        comparisons.extend(one(cell, &aside, None, all).map(|comparison| Comparison {
            verdict: match comparison.verdict {
                Verdict::NotCarried => Verdict::NotCarried,
                _ => Verdict::Seen,
            },
            ..comparison
        }));
    }
    comparisons
}

fn one(
    cell: &Cell,
    goal: &Goal,
    wanted: Option<(f64, Option<f64>)>,
    all: &[Series],
) -> Option<Comparison> {
    let mine = all.iter().find(|series| series.arm.name == goal.arm)?;
    let of = |sample: &Option<Sample>| sample.as_ref()?.metric(goal.metric);
    let paired = |name: &str, with: fn(f64, f64) -> f64| -> Option<Vec<f64>> {
        let other = all.iter().find(|series| series.arm.name == name)?;
        let pairs = mine.samples.iter().zip(&other.samples);
        Some(
            pairs
                .filter_map(|(a, b)| Some(with(of(a)?, of(b)?)))
                .collect(),
        )
    };
    let (against, values) = match goal.against {
        Against::Arm(name) => (name.to_string(), paired(name, |a, b| a / b)?),
        Against::MoreThan(name) => (name.to_string(), paired(name, |a, b| a - b)?),
        Against::Time(ns) => {
            let rates = mine.samples.iter().filter_map(of);
            (
                format!("{} µs", ns / 1e3),
                rates.map(|rate| rate * ns / 1e9).collect(),
            )
        }
    };
    let proved = mine
        .carried(cell, all)
        .is_none_or(|(yes, count, _)| yes == count);
    judge(goal, against, &values, wanted, proved)
}

/// Judges the values of the pairs; None where there are none.
pub fn judge(
    goal: &Goal,
    against: String,
    values: &[f64],
    wanted: Option<(f64, Option<f64>)>,
    proved: bool,
) -> Option<Comparison> {
    let interval = bootstrap_ratio(values)?;
    let figure = match goal.against {
        Against::MoreThan(_) => Figure::More(median(values)),
        _ => Figure::Ratio(median(values)),
    };
    let verdict = match wanted {
        _ if !proved => Verdict::NotCarried,
        None if figure.reaches(EVEN) && interval.high >= EVEN => Verdict::NotSlower,
        None => Verdict::Slower,
        Some((_, Some(aim))) if figure.reaches(aim) => Verdict::Aim,
        Some((must, _)) if figure.reaches(must) => Verdict::Must,
        Some(_) => Verdict::Missed,
    };
    Some(Comparison {
        arm: goal.arm.to_string(),
        against,
        metric: goal.metric,
        pairs: values.len(),
        figure,
        low: interval.low,
        high: interval.high,
        coverage: interval.coverage,
        must: wanted.map(|(must, _)| must),
        aim: wanted.and_then(|(_, aim)| aim),
        verdict,
    })
}

#[cfg(test)]
mod tests;
