//! What cells tell that differ in their size alone: the four plots of the documents of 2007, the lines through the times,
//! and what was sent and received at each size.

use crate::cells::{ArmReport, CellReport, distinct};
use crate::experiment::Sample;
use crate::findings::{Curve, Plot, Point, Sheet, Value};
use crate::placement::Placement;
use crate::stats::{Line, least_squares};
use crate::tables;

/// The cells of one work in one placement, by size.
struct Range<'a> {
    placement: Placement,
    cells: Vec<(f64, &'a CellReport)>,
}

/// Performance, delay, throughput and improvement of the cells `WORK-SIZE`, in each placement where there are at least two
/// sizes. Arms whose traffic was not proved to be carried are left out.
pub fn four(cells: &[CellReport], work: &str, title: &str, baseline: &str) -> Vec<Plot> {
    let ranges = ranges(cells, work);
    let drawn = ranges.iter().filter(|range| range.cells.len() > 1);
    let plots = drawn.flat_map(|range| {
        let plot = |name: &str, curves| {
            let words = [
                ("work", work),
                ("title", title),
                ("placement", range.placement.name()),
                ("baseline", baseline),
            ];
            tables::plot("sizes", name, &words, curves)
        };
        [
            plot(
                "{work}-performance-{placement}",
                range.curves(|sample, _| sample.rate),
            ),
            plot("{work}-delay-{placement}", range.lines()),
            plot(
                "{work}-throughput-{placement}",
                range.curves(|sample, size| sample.rate * size),
            ),
            plot(
                "{work}-improvement-{placement}",
                range.improvement(baseline),
            ),
        ]
    });
    plots.filter(|plot| !plot.curves.is_empty()).collect()
}

/// The lines through the times of the cells `WORK-SIZE`, and for each placement what was sent and received.
pub fn sheets(cells: &[CellReport], work: &str, title: &str) -> Vec<Sheet> {
    let ranges = ranges(cells, work);
    let fits = fits(&ranges, work, title);
    let rates = ranges.iter().map(|range| range.rates(work, title));
    let all = std::iter::once(fits).chain(rates);
    all.filter(|sheet| !sheet.rows.is_empty()).collect()
}

fn ranges<'a>(cells: &'a [CellReport], work: &str) -> Vec<Range<'a>> {
    let here = |placement| {
        let mut sized: Vec<(f64, &CellReport)> = cells
            .iter()
            .filter(|cell| cell.work == work && cell.placement == placement)
            .filter_map(|cell| Some((cell.size? as f64, cell)))
            .collect();
        sized.sort_by(|a, b| a.0.total_cmp(&b.0));
        Range {
            placement,
            cells: sized,
        }
    };
    let all = Placement::ALL.map(here).into_iter();
    all.filter(|range| !range.cells.is_empty()).collect()
}

fn point(x: f64, values: impl Iterator<Item = f64>) -> Option<Point> {
    let known: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    Point::of(x, &known)
}

impl<'a> Range<'a> {
    /// In the order in which they first appear.
    fn arms(&self) -> Vec<&'a str> {
        let arms = self.cells.iter().flat_map(|(_, cell)| &cell.arms);
        distinct(arms.map(|arm| &arm.arm))
    }

    /// The cells in which an arm has something to say.
    fn with<'b>(&'b self, arm: &'b str) -> impl Iterator<Item = (f64, &'a ArmReport)> + 'b {
        let of = move |&(size, cell): &(f64, &'a CellReport)| {
            Some((size, cell.arm(arm).filter(|arm| arm.is_proved())?))
        };
        self.cells.iter().filter_map(of)
    }

    /// What stands at a size, of each sample.
    fn curves(&self, of: impl Fn(&Sample, f64) -> f64) -> Vec<Curve> {
        let curve = |name: &str| {
            let points = self.with(name).filter_map(|(size, arm)| {
                let taken = arm.all.iter().flatten();
                point(size, taken.map(|sample| of(sample, size)))
            });
            Curve::new(name, points)
        };
        let curves = self.arms().into_iter().map(curve);
        curves.filter(|curve| !curve.points.is_empty()).collect()
    }

    fn times(&self) -> Vec<Curve> {
        self.curves(|sample, _| 1e9 / sample.rate)
    }

    /// The times, each arm's with the line through them.
    fn lines(&self) -> Vec<Curve> {
        let mut curves = self.times();
        for curve in &mut curves {
            let ends = [0.0, curve.points.last().map_or(0.0, |point| point.x)];
            if let Some(line) = line(curve).and_then(Line::told) {
                let at = |x: f64| (x, line.intercept + line.slope * x);
                curve.fit = ends.map(at).to_vec();
            }
        }
        curves
    }

    /// Each arm over the baseline in percent, round by round.
    fn improvement(&self, baseline: &str) -> Vec<Curve> {
        let others = self.arms().into_iter().filter(|name| *name != baseline);
        let curve = |name: &str| {
            let points = self.cells.iter().filter_map(|(size, cell)| {
                let arm = cell.arm(name).filter(|arm| arm.is_proved())?;
                let rounds = arm.all.iter().zip(&cell.arm(baseline)?.all);
                let ratios = rounds.filter_map(|(a, b)| Some(a.as_ref()?.rate / b.as_ref()?.rate));
                point(*size, ratios.map(|ratio| (ratio - 1.0) * 100.0))
            });
            Curve::new(name, points)
        };
        others.map(curve).collect()
    }

    /// Message, Tx and Rx as the documents have them, and what explains them; a row for each arm of a size.
    fn rates(&self, work: &str, title: &str) -> Sheet {
        let words = [
            ("work", work),
            ("title", title),
            ("placement", self.placement.name()),
        ];
        let mut sheet = tables::sheet("sizes", "{work}-rates-{placement}", &words);
        for (size, cell) in &self.cells {
            for arm in cell.measured() {
                let row = vec![
                    Value::from(*size),
                    arm.arm.as_str().into(),
                    arm.median(|sample| sample.tx_rate).into(),
                    arm.median(|sample| sample.rx_rate).into(),
                ];
                sheet.explained(row, Some(arm));
            }
        }
        sheet
    }
}

fn fits(ranges: &[Range<'_>], work: &str, title: &str) -> Sheet {
    let mut sheet = tables::sheet("sizes", "{work}-fits", &[("work", work), ("title", title)]);
    for range in ranges {
        for curve in range.times() {
            let Some(line) = line(&curve) else { continue };
            let told = |part: fn(Line) -> f64| Value::from(line.told().map(part));
            sheet.rows.push(vec![
                range.placement.name().into(),
                curve.name.as_str().into(),
                Value::from(curve.points.len() as f64),
                told(|line| line.intercept),
                told(|line| line.slope),
                line.r_squared.into(),
            ]);
        }
    }
    sheet
}

fn line(curve: &Curve) -> Option<Line> {
    let points: Vec<(f64, f64)> = curve
        .points
        .iter()
        .map(|point| (point.x, point.y))
        .collect();
    least_squares(&points)
}

#[cfg(test)]
#[path = "sizes/tests.rs"]
mod tests;
