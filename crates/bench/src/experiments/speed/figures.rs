//! Figures out of what was measured; what is missing there is none here.

use crate::cells::{ArmReport, CellReport};
use crate::experiment::Sample;
use crate::findings::Point;
use crate::latency::Latency;
use crate::numbers;
use crate::stats::{Factor, known_median};

/// The document's number of messages, for which times are given.
pub const MANY: f64 = 100_000.0;

/// The samples, where they count.
fn taken(arm: &ArmReport) -> impl Iterator<Item = &Sample> {
    let proved = arm.is_proved();
    arm.all.iter().flatten().filter(move |_| proved)
}

/// The median over the samples.
pub fn middle(arm: &ArmReport, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    known_median(taken(arm).filter_map(of))
}

/// Nanoseconds that a message takes.
pub fn time_each(arm: &ArmReport) -> Option<f64> {
    let rate = arm.rate.filter(|rate| *rate > 0.0 && arm.is_proved());
    rate.map(|rate| 1e9 / rate)
}

/// The same with the quartiles of the samples, at `x`.
pub fn times(x: usize, arm: &ArmReport) -> Option<Point> {
    let each = taken(arm).filter(|sample| sample.rate > 0.0);
    let times: Vec<f64> = each.map(|sample| 1e9 / sample.rate).collect();
    Point::of(x as f64, &times)
}

pub fn latency(arm: &ArmReport, name: &str, of: impl Fn(&Latency) -> f64) -> Option<f64> {
    middle(arm, |sample| sample.latencies.get(name).map(&of))
}

/// How many times as many messages a second an arm exchanges as another one, by pairs of the same round. None where an arm
/// claims to be accelerated and was not.
pub fn factor(cell: &CellReport, arm: &str, against: &str) -> Option<Factor> {
    let (mine, other) = (cell.arm(arm)?, cell.arm(against)?);
    if !mine.is_proved() || !other.is_proved() {
        return None;
    }
    let ratio = |(a, b): (&Option<Sample>, &Option<Sample>)| {
        let (a, b) = (a.as_ref()?.rate, b.as_ref()?.rate);
        (a > 0.0 && b > 0.0).then_some(a / b)
    };
    let ratios: Vec<f64> = mine.all.iter().zip(&other.all).filter_map(ratio).collect();
    Factor::of(&ratios)
}

/// From where on all shares are at least `wanted`; points are in the order of their places.
pub fn threshold(points: &[(f64, f64)], wanted: f64) -> Option<f64> {
    let beyond = points
        .iter()
        .rev()
        .take_while(|(_, share)| *share >= wanted);
    beyond.last().map(|(place, _)| *place)
}

/// A size as people say it.
pub fn bytes(size: f64) -> String {
    match size {
        size if size >= 1048576.0 => format!("{} MiB", numbers::number(size / 1048576.0)),
        size if size >= 1024.0 => format!("{} KiB", numbers::number(size / 1024.0)),
        size => format!("{size} bytes"),
    }
}

#[cfg(test)]
mod tests;
