//! What was measured, by work, placement, size and arm, and the lines and curves through it.

use super::program::{HALF_WIDTH, WITHIN};
use super::{BANDWIDTH, ROUND_TRIP};
use crate::cells::{ArmReport, CellReport, distinct};
use crate::conclude;
use crate::fit::{self, Saturation};
use crate::placement::Placement;
use crate::stats::{self, Factor, Line};
use crate::verdict::Comparison;

/// Messages below this size are small ones.
pub const SMALL: f64 = 1024.0;

pub struct Figures<'a>(pub &'a [CellReport]);

impl<'a> Figures<'a> {
    /// The cells of a work in a placement, by size.
    pub fn cells(&self, work: &str, placement: Placement) -> Vec<&'a CellReport> {
        let is_meant = |cell: &&CellReport| cell.work == work && cell.placement == placement;
        let mut cells: Vec<&CellReport> = self.0.iter().filter(is_meant).collect();
        cells.sort_by_key(|cell| cell.size);
        cells
    }

    pub fn cell(&self, name: &str, placement: Placement) -> Option<&'a CellReport> {
        conclude::find(self.0, name, placement)
    }

    /// Where a work was measured.
    pub fn placements(&self, work: &'a str) -> impl Iterator<Item = Placement> {
        let measured = move |one: &Placement| !self.cells(work, *one).is_empty();
        Placement::UNDISTURBED.iter().copied().filter(measured)
    }

    /// The arms of a work in a placement, those without any figure left out.
    pub fn arms(&self, work: &str, placement: Placement) -> Vec<&'a str> {
        let cells = self.cells(work, placement).into_iter();
        let arms = cells.flat_map(|cell| &cell.arms);
        distinct(arms.filter(|arm| is_sound(arm)).map(|arm| &arm.arm))
    }

    /// An arm's sizes with what `of` says of it, a figure of the cell's messages.
    pub fn points(
        &self,
        work: &str,
        placement: Placement,
        arm: &str,
        of: impl Fn(&ArmReport) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let cells = self.cells(work, placement);
        let point = |cell: &&CellReport| Some((cell.size? as f64, of(sound(cell, arm)?)?));
        cells.iter().filter_map(point).collect()
    }

    pub fn round_trips(&self, placement: Placement, arm: &str) -> RoundTrips {
        let points = self.points(ROUND_TRIP, placement, arm, time);
        let small: Vec<_> = points.iter().copied().filter(|p| p.0 < SMALL).collect();
        RoundTrips {
            all: stats::least_squares(&points),
            small: stats::least_squares(&small),
            start_up: points.iter().find(|p| p.0 == 1.0).map(|p| p.1),
            known: self.known(placement, arm),
        }
    }

    /// The share of the samples of round trips and bursts whose mean was known well enough in time.
    fn known(&self, placement: Placement, arm: &str) -> Option<f64> {
        let works = [ROUND_TRIP, BANDWIDTH];
        let cells = works.iter().flat_map(|work| self.cells(work, placement));
        let samples = cells
            .filter_map(|cell| cell.arm(arm))
            .flat_map(|arm| arm.all.iter().flatten());
        let known: Vec<bool> = samples
            .map(|sample| sample.values.get(HALF_WIDTH).is_some_and(|&w| w <= WITHIN))
            .collect();
        let count = known.iter().filter(|&&known| known).count();
        (!known.is_empty()).then(|| count as f64 / known.len() as f64)
    }

    pub fn saturation(&self, work: &str, placement: Placement, arm: &str) -> Option<Saturation> {
        fit::saturation(&self.points(work, placement, arm, |arm| arm.bytes_rate))
    }

    /// An arm's rate over another's.
    pub fn factor(
        &self,
        cell: &str,
        placement: Placement,
        arm: &str,
        against: &str,
    ) -> Option<Factor> {
        factor(self.cell(cell, placement)?, arm, against)
    }
}

/// Least squares of the time of a round trip over its size, in nanoseconds.
#[derive(Default)]
pub struct RoundTrips {
    pub all: Option<Line>,
    pub small: Option<Line>,
    /// The median of a single byte.
    pub start_up: Option<f64>,
    pub known: Option<f64>,
}

pub fn factor(cell: &CellReport, arm: &str, against: &str) -> Option<Factor> {
    let known = |c: &&Comparison| c.arm == arm && c.against == against && c.must.is_none();
    let (mine, other) = (sound(cell, arm)?, sound(cell, against)?);
    if let Some(found) = cell.comparisons.iter().find(known) {
        return Some(Factor {
            value: found.figure.value(),
            low: found.low,
            high: found.high,
        });
    }
    let pairs = mine.all.iter().zip(&other.all);
    let ratios: Vec<f64> = pairs
        .filter_map(|(mine, other)| Some(mine.as_ref()?.rate / other.as_ref()?.rate))
        .collect();
    Factor::of(&ratios)
}

/// The arm, if it has figures that count: those of an arm that was not carried say nothing of it.
pub fn sound<'a>(cell: &'a CellReport, arm: &str) -> Option<&'a ArmReport> {
    cell.arm(arm).filter(|arm| is_sound(arm))
}

fn is_sound(arm: &ArmReport) -> bool {
    arm.is_proved() && arm.rate.is_some_and(|rate| rate > 0.0)
}

/// Of a message, in nanoseconds.
pub fn time(arm: &ArmReport) -> Option<f64> {
    arm.rate.map(|rate| 1e9 / rate)
}

/// The median of what the samples tell by name.
pub fn told(arm: &ArmReport, name: &str) -> Option<f64> {
    arm.median(|sample| sample.values.get(name).copied())
}
