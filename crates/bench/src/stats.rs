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
mod tests {
    use super::*;

    #[test]
    fn samples_that_overlap_may_have_one_median() {
        let old = [10.0, 11.0, 12.0, 13.0, 14.0];
        let ratio = independent_ratio(&old, &old.map(|value| value * 1.2)).unwrap();
        assert!(ratio.low < 1.0 && ratio.high > 1.0);
        let ratio = independent_ratio(&old, &old.map(|value| value * 2.0)).unwrap();
        // Of five values the interval of the median is their range.
        close(ratio.low, 20.0 / 14.0);
        close(ratio.high, 28.0 / 10.0);
        assert_eq!(independent_ratio(&old, &[]), None);
    }

    fn close(found: f64, wanted: f64) {
        let error = (found - wanted).abs();
        assert!(error <= 1e-9 * wanted.abs().max(1.0), "{found}, {wanted}");
    }

    #[test]
    fn a_median_ignores_one_wild_value() {
        assert_eq!(median(&[3.0, 1.0, 1e9]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 1e9]), 3.0);
        assert!(median(&[]).is_nan());
    }

    /// numpy 2.4.6, `np.quantile(values, [0, .25, .5, .75, 1])`.
    #[test]
    fn quartiles_are_those_of_numpy() {
        let known: [(&[f64], [f64; 5]); 3] = [
            (
                &[3.1, 1.2, 5.9, 2.6, 5.3, 5.8, 9.7, 9.3],
                [1.2, 2.975, 5.55, 6.75, 9.7],
            ),
            (&[1.0, 2.0, 4.0], [1.0, 1.5, 2.0, 3.0, 4.0]),
            (&[7.0, 1.0], [1.0, 2.5, 4.0, 5.5, 7.0]),
        ];
        for (values, wanted) in known {
            let found = quartiles(values).unwrap();
            let found = [found.min, found.q1, found.median, found.q3, found.max];
            found
                .iter()
                .zip(wanted)
                .for_each(|(&found, wanted)| close(found, wanted));
        }
        assert_eq!(quartiles(&[]), None);
        assert_eq!(quartiles(&[2.0]).unwrap().q3, 2.0);
    }

    /// A resample's median is at most the k-th of n values where most of its n draws hit the first k, so the binomial
    /// distribution of n and k/n says how often it is. For 15 values scipy 1.17.1's `binom.sf(7, 15, k / 15)` says 0.0042,
    /// 0.0255 and 0.0882 for the third, the fourth and the fifth: the fourth is where the interval begins.
    #[test]
    fn the_interval_is_what_all_possible_resamples_would_give() {
        let most = |n: u32, hit: f64| -> f64 {
            let ways = |m: u32| (0..m).fold(1.0, |w, i| w * f64::from(n - i) / f64::from(i + 1));
            let exactly = |m: u32| ways(m) * hit.powi(m as i32) * (1.0 - hit).powi((n - m) as i32);
            (n / 2 + 1..=n).map(exactly).sum()
        };
        assert!((most(15, 4.0 / 15.0) - 0.0255).abs() < 5e-5);
        for n in [5, 7, 9, 11, 13, 15, 17, 19, 21, 25, 31] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let found = bootstrap_ratio(&values).unwrap();
            let low = (1..=n).find(|&k| most(n, f64::from(k) / f64::from(n)) >= 0.025);
            let low = f64::from(low.unwrap());
            assert_eq!((found.low, found.high), (low, f64::from(n) + 1.0 - low));
        }
    }

    /// scipy 1.17.1, `stats.bootstrap((values,), np.median, method='percentile', n_resamples=200000)`: 1.95 to 2.10 (or 2.08,
    /// by its seed).
    #[test]
    fn ratios_have_the_interval_that_scipy_gives_them() {
        let ratios = [
            1.92, 2.05, 1.99, 2.41, 1.87, 2.10, 2.02, 1.95, 2.20, 2.00, 1.90, 2.08, 2.03, 1.97,
            2.15,
        ];
        let found = bootstrap_ratio(&ratios).unwrap();
        assert_eq!((found.low, found.high, found.coverage), (1.95, 2.10, 0.95));
        assert_eq!(bootstrap_ratio(&ratios), Some(found));
    }

    #[test]
    fn few_values_give_their_range_and_say_how_little_it_means() {
        let values = [2.0, 1.0, 3.0, 5.0, 4.0];
        for (count, coverage) in [(1, 0.0), (2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375)] {
            let found = bootstrap_ratio(&values[..count]).unwrap();
            let range = quartiles(&values[..count]).unwrap();
            assert_eq!(
                (found.low, found.high, found.coverage),
                (range.min, range.max, coverage)
            );
        }
        assert_eq!(bootstrap_ratio(&[]), None);
    }

    #[test]
    fn the_interval_of_many_values_is_narrow_and_holds_the_median() {
        let values: Vec<f64> = (0..101).map(f64::from).collect();
        let interval = bootstrap_ratio(&values).unwrap();
        assert!(interval.low >= 39.0 && interval.high <= 61.0);
        assert!(interval.low < 50.0 && interval.high > 50.0);
    }

    #[test]
    fn a_line_is_found_through_what_scatters_around_it() {
        let exact = least_squares(&[(0.0, 5.0), (2.0, 6.0), (8.0, 9.0)]).unwrap();
        assert_eq!((exact.slope, exact.intercept), (0.5, 5.0));
        assert!((exact.r_squared - 1.0).abs() < 1e-12);
        let loose = least_squares(&[(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)]).unwrap();
        assert_eq!((loose.slope, loose.intercept), (0.5, 0.5));
        assert!(loose.r_squared < 0.5);
        assert_eq!(least_squares(&[(0.0, 5.0), (2.0, 6.0)]), None);
        assert_eq!(least_squares(&[(1.0, 5.0); 3]), None);
    }

    /// Anscombe's quartet, with what scipy 1.17.1's `stats.linregress` gives: slope, intercept, rvalue squared.
    #[test]
    fn anscombes_lines_are_those_of_scipy() {
        const X: [f64; 11] = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        const X4: [f64; 11] = [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 19.0, 8.0, 8.0, 8.0];
        let quartet: [([f64; 11], [f64; 11], [f64; 3]); 4] = [
            (
                X,
                [
                    8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68,
                ],
                [0.5000909090909091, 3.0000909090909103, 0.666542459508775],
            ),
            (
                X,
                [
                    9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74,
                ],
                [0.5000000000000001, 3.000909090909089, 0.6662420337274847],
            ),
            (
                X,
                [
                    7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73,
                ],
                [0.4997272727272729, 3.002454545454544, 0.6663240410665595],
            ),
            (
                X4,
                [
                    6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.50, 5.56, 7.91, 6.89,
                ],
                [0.4999090909090909, 3.0017272727272726, 0.6667072568984652],
            ),
        ];
        for (x, y, [slope, intercept, r_squared]) in quartet {
            let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
            let line = least_squares(&points).unwrap();
            close(line.slope, slope);
            close(line.intercept, intercept);
            close(line.r_squared, r_squared);
        }
    }
}
