//! The drawings: time and rate over size with what was fitted, transactions as bars, files relative to TCP.

use super::exchanges::{TRANSACTIONS, transactions};
use super::figures::{Figures, factor, sound};
use super::{BANDWIDTH, FTP, POSTING, ROUND_TRIP};
use crate::cells::{ArmReport, CellReport, distinct};
use crate::experiment::{ACCELERATED, TCP};
use crate::findings::{Curve, Plot, Point};
use crate::placement::Placement;
use crate::stats::Line;
use crate::tables;

pub fn all(figures: &Figures<'_>) -> Vec<Plot> {
    type Curves = fn(&Figures<'_>, &str, Placement) -> Vec<Curve>;
    let everywhere = |all: &'static [(&str, &str, Curves)]| {
        Placement::UNDISTURBED.iter().flat_map(move |&placement| {
            all.iter().map(move |(name, work, curves)| {
                let words = [("placement", placement.name())];
                tables::plot("lan", name, &words, curves(figures, work, placement))
            })
        })
    };
    let plots = everywhere(&[("round-trip-{placement}", ROUND_TRIP, round_trips)])
        .chain(everywhere(&[
            ("bandwidth-{placement}", BANDWIDTH, rates),
            ("ttcp-{placement}", "ttcp", rates),
            ("netperf-{placement}", "netperf", rates),
        ]))
        .chain(Placement::UNDISTURBED.iter().flat_map(|&placement| {
            let plot = |(kept, name)| transaction_bars(figures, placement, kept, name);
            [
                (true, "transactions-kept-{placement}"),
                (false, "transactions-new-{placement}"),
            ]
            .map(plot)
        }))
        .chain([tables::plot("lan", "ftp", &[], files(figures))])
        .chain(everywhere(&[("posting-{placement}", POSTING, posting)]));
    plots.filter(|plot| !plot.curves.is_empty()).collect()
}

fn round_trips(figures: &Figures<'_>, work: &str, placement: Placement) -> Vec<Curve> {
    let curve = |arm: &str| {
        let points = sized(figures, work, placement, arm, |rate, _| 1e9 / rate);
        let line = figures.round_trips(placement, arm).all.and_then(Line::told);
        let fit = line.map_or(Vec::new(), |line| {
            let at = |x: f64| (x, line.intercept + line.slope * x);
            // A logarithm has no room for what the line may be where it is bent.
            steps(&points).map(at).filter(|p| p.1 > 0.0).collect()
        });
        Curve {
            fit,
            ..Curve::new(arm, points)
        }
    };
    figures
        .arms(work, placement)
        .into_iter()
        .map(curve)
        .collect()
}

/// With the saturation curve through them.
fn rates(figures: &Figures<'_>, work: &str, placement: Placement) -> Vec<Curve> {
    let fitted = |curve: Curve| {
        let found = figures.saturation(work, placement, &curve.name);
        let places = steps(&curve.points);
        let fit = found.map(|found| places.map(|x| (x, found.at(x))).collect());
        Curve {
            fit: fit.unwrap_or_default(),
            ..curve
        }
    };
    posting(figures, work, placement)
        .into_iter()
        .map(fitted)
        .collect()
}

fn posting(figures: &Figures<'_>, work: &str, placement: Placement) -> Vec<Curve> {
    let curve = |arm: &str| {
        let points = sized(figures, work, placement, arm, |rate, size| rate * size);
        Curve::new(arm, points)
    };
    figures
        .arms(work, placement)
        .into_iter()
        .map(curve)
        .collect()
}

fn transaction_bars(figures: &Figures<'_>, placement: Placement, kept: bool, name: &str) -> Plot {
    let cell = |sizes: (usize, usize)| {
        let cell = figures.cell(&transactions(kept, sizes), placement)?;
        Some((format!("{} / {}", sizes.0, sizes.1), cell))
    };
    let cells: Vec<(String, &CellReport)> = TRANSACTIONS.into_iter().filter_map(cell).collect();
    let arms = cells.iter().flat_map(|(_, cell)| &cell.arms);
    let arms = distinct(arms.map(|arm| &arm.arm));
    let curves = arms.into_iter().map(|arm| {
        let point = |(place, (_, cell)): (usize, &(String, &CellReport))| {
            rate_point(place as f64, sound(cell, arm)?, |rate| rate)
        };
        Curve::new(arm, cells.iter().enumerate().filter_map(point))
    });
    let mut plot = tables::plot("lan", name, &[("placement", placement.name())], curves);
    plot.x.names = cells.iter().map(|(name, _)| name.clone()).collect();
    plot
}

fn files(figures: &Figures<'_>) -> Vec<Curve> {
    let curve = |placement: Placement| {
        let point = |cell: &CellReport| {
            let found = factor(cell, ACCELERATED.name, TCP.name)?;
            let size = cell.size? as f64;
            Some(Point::within(size, found.value, found.low, found.high))
        };
        let cells = figures.cells(FTP, placement).into_iter();
        Curve::new(placement.name(), cells.filter_map(point))
    };
    figures.placements(FTP).map(curve).collect()
}

/// An arm's points over size; `of` makes them from the rate of messages and their size.
fn sized(
    figures: &Figures<'_>,
    work: &str,
    placement: Placement,
    arm: &str,
    of: impl Fn(f64, f64) -> f64,
) -> Vec<Point> {
    let cells = figures.cells(work, placement);
    let point = |cell: &&CellReport| {
        let size = cell.size? as f64;
        rate_point(size, sound(cell, arm)?, |rate| of(rate, size))
    };
    cells.iter().filter_map(point).collect()
}

/// What follows from the median of an arm's rates, and from their quartiles.
fn rate_point(x: f64, arm: &ArmReport, of: impl Fn(f64) -> f64) -> Option<Point> {
    let quartiles = arm.spread().filter(|spread| spread.q1 > 0.0);
    let ends = quartiles.map(|spread| [of(spread.q1), of(spread.q3)]);
    Some(Point {
        low: ends.map(|[a, b]| a.min(b)),
        high: ends.map(|[a, b]| a.max(b)),
        ..Point::new(x, of(arm.rate?))
    })
}

/// Places to draw a smooth line through, eight for each doubling.
fn steps(points: &[Point]) -> impl Iterator<Item = f64> + use<> {
    let low = points.iter().map(|point| point.x).fold(f64::MAX, f64::min);
    let high = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let count = if high > low && low > 0.0 {
        ((high / low).log2() * 8.0).round() as i32
    } else {
        0
    };
    (0..=count).map(move |step| (low * 2f64.powf(step as f64 / 8.0)).min(high))
}

#[cfg(test)]
mod tests;
