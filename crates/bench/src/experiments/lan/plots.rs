//! The drawings: time and rate over size with what was fitted, transactions as bars, files relative to TCP.

use super::exchanges::{TRANSACTIONS, transactions};
use super::figures::{Figures, factor, sound};
use super::streams::Manner;
use super::{BANDWIDTH, FTP, PLACEMENTS, POSTING, ROUND_TRIP};
use crate::experiment::{ACCELERATED, TCP};
use crate::findings::{Axis, Curve, Measure, Plot, Point, Scale};
use crate::placement::Placement;
use crate::report::{ArmReport, CellReport};

pub fn all(figures: &Figures<'_>) -> Vec<Plot> {
    let everywhere = |plot: fn(&Figures<'_>, Placement) -> Vec<Plot>| {
        let placements = PLACEMENTS.iter();
        placements.flat_map(move |&placement| plot(figures, placement))
    };
    let plots = everywhere(round_trips)
        .chain(everywhere(rates))
        .chain(everywhere(transaction_bars))
        .chain([files(figures)])
        .chain(everywhere(posting));
    plots.filter(|plot| !plot.curves.is_empty()).collect()
}

fn size_axis() -> Axis {
    Axis::new("size of a message", Measure::Bytes, Scale::Log2)
}

fn round_trips(figures: &Figures<'_>, placement: Placement) -> Vec<Plot> {
    let curves = figures.arms(ROUND_TRIP, placement).into_iter().map(|arm| {
        let points = sized(figures, ROUND_TRIP, placement, arm, |rate, _| 1e9 / rate);
        let line = figures.round_trips(placement, arm).all;
        let fit = line.map_or(Vec::new(), |line| {
            let at = |x: f64| (x, line.intercept + line.slope * x);
            // A logarithm has no room for what the line may be where it is bent.
            steps(&points).map(at).filter(|p| p.1 > 0.0).collect()
        });
        curve(arm, points, fit)
    });
    vec![Plot {
        name: format!("round-trip-{}", placement.name()),
        title: format!("Time of a round trip, {}", placement.name()),
        caption: "Medians with quartiles, and the least-squares line through all sizes."
            .to_string(),
        x: size_axis(),
        y: Axis::new("time of a round trip", Measure::Nanoseconds, Scale::Log10),
        curves: curves.collect(),
    }]
}

fn rates(figures: &Figures<'_>, placement: Placement) -> Vec<Plot> {
    let [ttcp, netperf] = [Manner::Ttcp, Manner::Netperf].map(Manner::name);
    let plot = |work: &str, title: &str| {
        let arms = figures.arms(work, placement).into_iter();
        let curves = arms.map(|arm| {
            let points = sized(figures, work, placement, arm, |rate, size| rate * size);
            let found = figures.saturation(work, placement, arm);
            let fit = found.map_or(Vec::new(), |found| {
                steps(&points).map(|x| (x, found.at(x))).collect()
            });
            curve(arm, points, fit)
        });
        Plot {
            name: format!("{work}-{}", placement.name()),
            title: format!("{title}, {}", placement.name()),
            caption: "Medians with quartiles, and the curve Rmax x / (N½ + x) through them."
                .to_string(),
            x: size_axis(),
            y: Axis::new("bytes a second", Measure::BytesPerSecond, Scale::Linear),
            curves: curves.collect(),
        }
    };
    vec![
        plot(BANDWIDTH, "Bandwidth of 500 sends and one reply"),
        plot(ttcp, "One-way streams as ttcp sends them"),
        plot(netperf, "One-way streams as netperf sends them"),
    ]
}

fn transaction_bars(figures: &Figures<'_>, placement: Placement) -> Vec<Plot> {
    let plot = |kept: bool, word: &str, title: &str| {
        let cells: Vec<(String, &CellReport)> = TRANSACTIONS
            .into_iter()
            .filter_map(|sizes| {
                let cell = figures.cell(&transactions(kept, sizes), placement)?;
                Some((format!("{} / {}", sizes.0, sizes.1), cell))
            })
            .collect();
        let mut arms: Vec<&str> = Vec::new();
        for arm in cells.iter().flat_map(|(_, cell)| &cell.arms) {
            if !arms.contains(&arm.arm.as_str()) {
                arms.push(&arm.arm);
            }
        }
        let bars = |arm: &str| {
            let places = cells.iter().enumerate();
            let point = |(place, (_, cell)): (usize, &(String, &CellReport))| {
                rate_point(place as f64, sound(cell, arm)?, |rate| rate)
            };
            curve(arm, places.filter_map(point).collect(), Vec::new())
        };
        let mut x = Axis::new(
            "bytes of request and response",
            Measure::Text,
            Scale::Linear,
        );
        x.names = cells.iter().map(|(name, _)| name.clone()).collect();
        Plot {
            name: format!("transactions-{word}-{}", placement.name()),
            title: format!("{title}, {}", placement.name()),
            caption: "Medians with quartiles.".to_string(),
            x,
            y: Axis::new("transactions a second", Measure::PerSecond, Scale::Linear),
            curves: arms
                .into_iter()
                .map(bars)
                .filter(|curve| !curve.points.is_empty())
                .collect(),
        }
    };
    vec![
        plot(true, "kept", "Transactions on one connection"),
        plot(false, "new", "Transactions on a new connection each"),
    ]
}

fn files(figures: &Figures<'_>) -> Plot {
    let curves = figures.placements(FTP).map(|placement| {
        let cells = figures.cells(FTP, placement);
        let point = |cell: &&CellReport| {
            let found = factor(cell, ACCELERATED.name, TCP.name)?;
            Some(Point {
                low: Some(found.low),
                high: Some(found.high),
                ..Point::new(cell.size? as f64, found.value)
            })
        };
        let points = cells.iter().filter_map(point).collect();
        curve(placement.name(), points, Vec::new())
    });
    Plot {
        name: FTP.to_string(),
        title: "Files by FTP: throughput relative to TCP".to_string(),
        caption: "Accelerated over TCP, median of the pairs with its interval; 1 is neither better nor worse."
            .to_string(),
        x: Axis::new("size of a file", Measure::Bytes, Scale::Log2),
        y: Axis::new("times as fast", Measure::Factor, Scale::Linear),
        curves: curves.filter(|curve| !curve.points.is_empty()).collect(),
    }
}

fn posting(figures: &Figures<'_>, placement: Placement) -> Vec<Plot> {
    let arms = figures.arms(POSTING, placement).into_iter();
    let curves = arms.map(|arm| {
        let points = sized(figures, POSTING, placement, arm, |rate, size| rate * size);
        curve(arm, points, Vec::new())
    });
    vec![Plot {
        name: format!("posting-{}", placement.name()),
        title: format!("Receive posting, {}", placement.name()),
        caption: "Medians with quartiles; raw-channel is the ring, which copies in and out."
            .to_string(),
        x: size_axis(),
        y: Axis::new("bytes a second", Measure::BytesPerSecond, Scale::Linear),
        curves: curves.collect(),
    }]
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

fn curve(name: &str, points: Vec<Point>, fit: Vec<(f64, f64)>) -> Curve {
    Curve {
        name: name.to_string(),
        points,
        fit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_is_drawn_from_the_least_to_the_largest_size() {
        let points = [1.0, 1024.0].map(|x| Point::new(x, 1.0));
        let places: Vec<f64> = steps(&points).collect();
        assert_eq!(places.len(), 81);
        assert_eq!((places[0], places[80]), (1.0, 1024.0));
        assert_eq!(steps(&points[..1]).count(), 1);
    }
}
