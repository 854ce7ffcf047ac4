//! Medians, and how sure they are. They and quartiles suit figures that have two modes or a wild value, and the bootstrap asks
//! nothing of how samples are distributed.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};

const CONFIDENCE: f64 = 0.95;
const RESAMPLES: usize = 2000;
/// The same samples shall always give the same interval, and the usual numbers of pairs what all possible resamples would.
const SEED: u64 = 0;

/// The median; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// The same; none of nothing.
pub fn known_median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| median(&values))
}

/// How far values spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub min: f64,
    pub q1: f64,
    pub median: f64,
    pub q3: f64,
    pub max: f64,
}

/// None of nothing. Quartiles lie between two values as far as their place does.
pub fn quartiles(values: &[f64]) -> Option<Spread> {
    let sorted = sorted(values);
    Some(Spread {
        min: *sorted.first()?,
        q1: quantile(&sorted, 0.25),
        median: quantile(&sorted, 0.5),
        q3: quantile(&sorted, 0.75),
        max: *sorted.last()?,
    })
}

/// Where the median of what the values were drawn from lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// How sure that is: 0.95, or as much as the whole range gives where there are fewer than six values.
    pub coverage: f64,
}

/// The percentile bootstrap of the median: what the middle 95 % of the medians of 2000 samples drawn from the values span.
/// The values are those of pairs, ratios or differences. Always the same for the same values.
pub fn bootstrap_ratio(values: &[f64]) -> Option<Interval> {
    let values = sorted(values);
    let last = values.len().checked_sub(1)?;
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut places = vec![0; values.len()];
    let mut drawn = vec![0.0; values.len()];
    let mut medians = Vec::with_capacity(RESAMPLES);
    while medians.len() < RESAMPLES {
        // Each comes with its mirror image, so that what is symmetrical has a symmetrical interval.
        places.fill_with(|| ((u64::from(random.next_u32()) * values.len() as u64) >> 32) as usize);
        for mirrored in [false, true] {
            let value = |&place: &usize| values[if mirrored { last - place } else { place }];
            drawn.clear();
            drawn.extend(places.iter().map(value));
            drawn.sort_unstable_by(f64::total_cmp);
            medians.push(quantile(&drawn, 0.5));
        }
    }
    medians.sort_unstable_by(f64::total_cmp);
    Some(Interval {
        low: quantile(&medians, (1.0 - CONFIDENCE) / 2.0),
        high: quantile(&medians, (1.0 + CONFIDENCE) / 2.0),
        coverage: CONFIDENCE.min(coverage_of_range(values.len())),
    })
}

/// The median of a ratio, pair by pair, and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Factor {
    pub fn of(ratios: &[f64]) -> Option<Factor> {
        let Interval { low, high, .. } = bootstrap_ratio(ratios)?;
        let value = median(ratios);
        Some(Factor { value, low, high })
    }
}

/// Where the ratio of the medians lies, `new` over `old`, of what two samples that have nothing to do with each other were drawn
/// from: the ends of their bootstrap intervals, each over the opposite one. It lies beside 1 only where those do not touch,
/// which of samples alike in truth, from five values on, about one pair in a hundred does.
pub fn independent_ratio(old: &[f64], new: &[f64]) -> Option<Interval> {
    let (old, new) = (bootstrap_ratio(old)?, bootstrap_ratio(new)?);
    Some(Interval {
        low: new.low / old.high,
        high: new.high / old.low,
        coverage: old.coverage.min(new.coverage),
    })
}

/// The line through `points` with the least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub slope: f64,
    pub intercept: f64,
    /// The share of the variance that the line explains.
    pub r_squared: f64,
}

impl Line {
    /// What may be said by it: nothing, where it explains less than so much of the differences.
    pub fn told(self) -> Option<Line> {
        const EXPLAINS: f64 = 0.95;
        (self.r_squared >= EXPLAINS).then_some(self)
    }
}

/// None for fewer than three points, through two of which any line goes, or where all have the same place.
pub fn least_squares(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| -> f64 { points.iter().map(|p| of(p.0 - x, p.1 - y)).sum() };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if points.len() < 3 || xx == 0.0 {
        return None;
    }
    let slope = xy / xx;
    Some(Line {
        slope,
        intercept: y - slope * x,
        r_squared: if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) },
    })
}

/// How surely the range of so many values holds the median: unless all of them lie on one side of it.
fn coverage_of_range(count: usize) -> f64 {
    1.0 - 2.0 * 0.5f64.powi(count as i32)
}

/// Of sorted values, between neighbours by how near the place is to each; NaN of nothing.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share * last as f64;
    let below = place.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    match place - place.floor() {
        0.0 => low,
        part => low + (high - low) * part,
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests;
