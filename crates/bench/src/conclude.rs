//! What conclusions are made of: the ratio of two arms of a cell, as a headline, as bars, as rows of a table.

use crate::cells::{ArmReport, CellReport};
use crate::conclusion::Conclusion;
use crate::experiment::{ACCELERATED, Against, Arm, Goal, Metric, NATIVE};
use crate::findings::{Curve, Headline, Plot, Point, Sheet, Value};
use crate::placement::Placement;
use crate::tables::{self, Compared, Told};
use crate::verdict::{self, Comparison, Verdict};

/// Two arms of a cell, and what to call that.
#[derive(Clone, Copy)]
pub struct Pair {
    pub label: &'static str,
    pub cell: &'static str,
    pub arm: &'static str,
    pub against: &'static str,
    pub metric: Metric,
}

impl Pair {
    /// The same arm against another.
    pub fn over(self, against: Arm) -> Pair {
        let against = against.name;
        Pair { against, ..self }
    }

    /// Turned so that more is better; none where either was not measured, or the arm's traffic not proved to be carried.
    pub fn ratio(&self, cells: &[CellReport], placement: Placement) -> Option<Comparison> {
        let cell = find(cells, self.cell, placement)?;
        let (mine, other) = (cell.arm(self.arm)?, cell.arm(self.against)?);
        let of = |arm: &ArmReport, round: usize| arm.all.get(round)?.as_ref()?.metric(self.metric);
        let ratios: Vec<f64> = (0..mine.all.len())
            .filter_map(|round| Some(of(mine, round)? / of(other, round)?))
            .filter(|ratio| ratio.is_finite())
            .collect();
        let goal = Goal {
            arm: self.arm,
            against: Against::Arm(self.against),
            metric: self.metric,
            ..Goal::rate(&[], 1.0, None)
        };
        let against = self.against.to_string();
        let judged = verdict::judge(&goal, against, &ratios, None, mine.is_proved())?;
        (judged.verdict != Verdict::NotCarried).then_some(judged)
    }

    /// In the first of these placements that was measured; it says which. `of` names what is compared with what.
    pub fn headline(
        &self,
        cells: &[CellReport],
        placements: &[Placement],
        of: &str,
    ) -> Option<Headline> {
        let measured = |placement: &Placement| Some((*placement, self.ratio(cells, *placement)?));
        let (placement, ratio) = placements.iter().find_map(measured)?;
        let what = format!("{}, {}", self.label, words(placement));
        Some(headline(&what, of, &ratio))
    }
}

/// What an experiment compares in one plot.
pub fn pairs(experiment: &str, group: &str) -> Vec<Pair> {
    let own = tables::COMPARED
        .iter()
        .filter(|row| row.experiment == experiment && row.group == group);
    let pair = |row: &'static Compared| Pair {
        label: &row.label,
        cell: &row.cell,
        arm: &row.arm,
        against: &row.against,
        metric: row.metric,
    };
    own.map(pair).collect()
}

/// The headlines of an experiment, of what was measured.
pub fn headlines(experiment: &str, cells: &[CellReport]) -> Vec<Headline> {
    let own = tables::HEADLINES
        .iter()
        .filter(|row| row.experiment == experiment);
    let headline = |row: &'static Told| {
        let pair = Pair {
            label: &row.label,
            cell: &row.cell,
            arm: &row.arm,
            against: &row.against,
            metric: row.metric,
        };
        pair.headline(cells, row.placements, &row.of)
    };
    own.filter_map(headline).collect()
}

pub fn headline(what: &str, of: &str, ratio: &Comparison) -> Headline {
    Headline {
        what: what.to_string(),
        of: of.to_string(),
        factor: ratio.figure.value(),
        low: ratio.low,
        high: ratio.high,
    }
}

/// Where the two ends ran.
pub fn words(placement: Placement) -> &'static str {
    match placement {
        Placement::Free => "wherever the scheduler put both ends",
        Placement::Apart => "on two CPUs",
        Placement::Same => "on one CPU",
        Placement::ApartBusy => "on two CPUs, one of them busy",
        Placement::SameBusy => "on one CPU, which was busy",
    }
}

/// What an experiment compares: bars of some pairs, by the names of their plots, and tables of some, with its headlines.
pub fn compared(
    experiment: &str,
    plots: &[(&str, Vec<Pair>)],
    sheets: &[(&str, Vec<Pair>)],
    cells: &[CellReport],
) -> Conclusion {
    let bars = |(name, pairs): &(&str, Vec<Pair>)| bars(experiment, name, pairs, cells);
    let ratios = |(name, pairs): &(&str, Vec<Pair>)| ratios(experiment, name, pairs, cells);
    Conclusion {
        plots: plots.iter().map(bars).collect(),
        sheets: sheets.iter().map(ratios).collect(),
        headlines: headlines(experiment, cells),
        ..Conclusion::default()
    }
}

/// The ratios as bars, in a colour for each placement; pairs without one are left out.
fn bars(experiment: &str, name: &str, pairs: &[Pair], cells: &[CellReport]) -> Plot {
    let placements = Placement::UNDISTURBED;
    let measured = |pair: &&Pair| {
        placements
            .iter()
            .any(|&one| pair.ratio(cells, one).is_some())
    };
    let pairs: Vec<&Pair> = pairs.iter().filter(measured).collect();
    let curves = placements.iter().map(|&placement| {
        let point = |(place, pair): (usize, &&Pair)| {
            let ratio = pair.ratio(cells, placement)?;
            let (low, high) = (ratio.low, ratio.high);
            Some(Point::within(place as f64, ratio.figure.value(), low, high))
        };
        Curve::new(placement.name(), pairs.iter().enumerate().filter_map(point))
    });
    let mut plot = tables::plot(experiment, name, &[], curves);
    plot.x.names = pairs.iter().map(|pair| pair.label.to_string()).collect();
    plot
}

/// What some arms did in some cells, as bars, in a colour for each arm.
pub fn rates(
    (experiment, name): (&str, &str),
    of: &[(&str, &str, Placement)],
    arms: &[Arm],
    cells: &[CellReport],
) -> Plot {
    let curves = arms.iter().map(|arm| {
        let point = |(place, &(_, cell, placement)): (usize, &(&str, &str, Placement))| {
            let found = find(cells, cell, placement)?.arm(arm.name);
            let found = found.filter(|arm| arm.is_proved())?;
            Some(Point::new(place as f64, found.rate?))
        };
        Curve::new(arm.name, of.iter().enumerate().filter_map(point))
    });
    let mut plot = tables::plot(experiment, name, &[], curves);
    plot.x.names = of.iter().map(|(label, ..)| label.to_string()).collect();
    plot
}

/// The ratios as a table, a row for each pair and placement.
fn ratios(experiment: &str, name: &str, pairs: &[Pair], cells: &[CellReport]) -> Sheet {
    let mut sheet = tables::sheet(experiment, name, &[]);
    for pair in pairs {
        for placement in Placement::ALL {
            let Some(ratio) = pair.ratio(cells, placement) else {
                continue;
            };
            sheet.rows.push(vec![
                pair.label.into(),
                placement.name().into(),
                pair.arm.into(),
                pair.against.into(),
                ratio.figure.value().into(),
                ratio.low.into(),
                ratio.high.into(),
                (ratio.pairs as f64).into(),
            ]);
        }
    }
    sheet
}

/// One cost of acceleration in whatever cells were judged by it, a row for each.
pub fn costs(name: &str, metric: Metric, cells: &[CellReport]) -> Sheet {
    let (arm, against) = (ACCELERATED.name, NATIVE.name);
    let mut sheet = tables::sheet("costs", name, &[]);
    for cell in cells {
        let is_it = |c: &&Comparison| c.metric == metric && c.arm == arm && c.against == against;
        let Some(difference) = cell.comparisons.iter().find(is_it) else {
            continue;
        };
        let of = |arm| {
            Value::from(
                cell.arm(arm)
                    .and_then(|arm| arm.median(|s| s.metric(metric))),
            )
        };
        sheet.rows.push(vec![
            cell.cell.as_str().into(),
            cell.placement.name().into(),
            of(against),
            of(arm),
            difference.figure.value().into(),
            difference.low.into(),
            difference.high.into(),
            difference.must.into(),
        ]);
    }
    sheet
}

pub fn find<'a>(
    cells: &'a [CellReport],
    cell: &str,
    placement: Placement,
) -> Option<&'a CellReport> {
    cells
        .iter()
        .find(|found| found.cell == cell && found.placement == placement)
}

#[cfg(test)]
mod tests;
