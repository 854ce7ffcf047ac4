//! What conclusions are made of: the ratio of two arms of a cell, as a headline, as bars, as rows of a table.

use crate::experiment::{Against, Arm, Goal, Metric};
use crate::findings::{Axis, Curve, Headline, Measure, Plot, Point, Scale, Sheet, Value};
use crate::placement::Placement;
use crate::report::{ArmReport, CellReport};
use crate::stats::median;
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
            ..Goal::rate(&[], 1.0, None).of(self.metric)
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

/// The ratios as bars, in a colour for each placement; pairs without one are left out. None where no pair has one.
pub fn bars(
    (name, title, caption): (&str, &str, &str),
    pairs: &[Pair],
    placements: &[Placement],
    cells: &[CellReport],
) -> Option<Plot> {
    let measured = |pair: &&Pair| {
        let mut all = placements.iter();
        all.any(|&placement| pair.ratio(cells, placement).is_some())
    };
    let pairs: Vec<&Pair> = pairs.iter().filter(measured).collect();
    let curve = |&placement: &Placement| {
        let point = |(place, pair): (usize, &&Pair)| {
            let ratio = pair.ratio(cells, placement)?;
            Some(Point {
                low: Some(ratio.low),
                high: Some(ratio.high),
                ..Point::new(place as f64, ratio.figure.value())
            })
        };
        Curve {
            name: placement.name().to_string(),
            points: pairs.iter().enumerate().filter_map(point).collect(),
            fit: Vec::new(),
        }
    };
    let names = pairs.iter().map(|pair| pair.label.to_string()).collect();
    let y = Axis::new("ratio; more is better", Measure::Factor, Scale::Log10);
    let curves = placements.iter().map(curve).collect();
    barred((name, title, caption), names, y, curves)
}

/// What some arms did in some cells, as bars, in a colour for each arm. None where there is nothing.
pub fn rates(
    (name, title, caption): (&str, &str, &str),
    of: &[(&str, &str, Placement)],
    arms: &[Arm],
    cells: &[CellReport],
) -> Option<Plot> {
    let curve = |arm: &Arm| {
        let point = |(place, &(_, cell, placement)): (usize, &(&str, &str, Placement))| {
            let found = find(cells, cell, placement)?.arm(arm.name);
            let found = found.filter(|arm| arm.is_proved())?;
            Some(Point::new(place as f64, found.rate?))
        };
        Curve {
            name: arm.name.to_string(),
            points: of.iter().enumerate().filter_map(point).collect(),
            fit: Vec::new(),
        }
    };
    let names = of.iter().map(|(label, ..)| label.to_string()).collect();
    let y = Axis::new("messages a second", Measure::PerSecond, Scale::Linear);
    let curves = arms.iter().map(curve).collect();
    barred((name, title, caption), names, y, curves)
}

fn barred(
    (name, title, caption): (&str, &str, &str),
    names: Vec<String>,
    y: Axis,
    mut curves: Vec<Curve>,
) -> Option<Plot> {
    curves.retain(|curve| !curve.points.is_empty());
    (!curves.is_empty()).then(|| Plot {
        name: name.to_string(),
        title: title.to_string(),
        caption: caption.to_string(),
        x: Axis {
            names,
            ..Axis::new("", Measure::Text, Scale::Linear)
        },
        y,
        curves,
    })
}

/// The ratios as a table, a row for each pair and placement. None where there is none.
pub fn ratios((name, title): (&str, &str), pairs: &[Pair], cells: &[CellReport]) -> Option<Sheet> {
    let mut sheet = Sheet::new(
        name,
        title,
        "Rates, compared within each round; medians of the rounds, and where those medians lie with 95 %.",
        &[
            ("work", Measure::Text),
            ("placement", Measure::Text),
            ("arm", Measure::Text),
            ("over", Measure::Text),
            ("ratio", Measure::Factor),
            ("from", Measure::Factor),
            ("to", Measure::Factor),
            ("rounds", Measure::Count),
        ],
    );
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
    (!sheet.rows.is_empty()).then_some(sheet)
}

/// One cost of two arms in whatever cells were judged by it, a row for each. None where there is none.
pub fn costs(
    (name, title, caption): (&str, &str, &str),
    (metric, unit): (Metric, Measure),
    (arm, against): (Arm, Arm),
    cells: &[CellReport],
) -> Option<Sheet> {
    let mut sheet = Sheet::new(
        name,
        title,
        caption,
        &[
            ("work", Measure::Text),
            ("placement", Measure::Text),
            (against.name, unit),
            (arm.name, unit),
            ("more", unit),
            ("from", unit),
            ("to", unit),
            ("at most", unit),
        ],
    );
    for cell in cells {
        let is_it =
            |c: &&Comparison| c.metric == metric && c.arm == arm.name && c.against == against.name;
        let Some(difference) = cell.comparisons.iter().find(is_it) else {
            continue;
        };
        let of = |arm: Arm| Value::from(cell.arm(arm.name).and_then(|arm| middle(arm, metric)));
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
    (!sheet.rows.is_empty()).then_some(sheet)
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

fn middle(arm: &ArmReport, metric: Metric) -> Option<f64> {
    let taken = arm.all.iter().flatten();
    let values: Vec<f64> = taken.filter_map(|sample| sample.metric(metric)).collect();
    (!values.is_empty()).then(|| median(&values))
}

#[cfg(test)]
#[path = "conclude/tests.rs"]
mod tests;
