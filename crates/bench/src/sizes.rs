//! What cells tell that differ in their size alone: the four plots of the documents of 2007, the lines through the times,
//! and what was sent and received at each size.

use crate::counts;
use crate::experiment::Sample;
use crate::findings::{Axis, Curve, Measure, Plot, Point, Scale, Sheet, Value};
use crate::placement::Placement;
use crate::report::{ArmReport, CellReport};
use crate::stats::{Line, least_squares, median};

/// The cells of one work in one placement, by size.
struct Range<'a> {
    placement: Placement,
    cells: Vec<(f64, &'a CellReport)>,
}

/// One of the four plots: what stands at a size, from a sample and, for comparisons, the baseline's of the same round.
struct Kind {
    name: &'static str,
    caption: &'static str,
    axes: fn() -> (Axis, Axis),
    of: fn(&Sample, f64) -> f64,
}

const PERFORMANCE: Kind = Kind {
    name: "performance",
    caption: "Messages a second over the size of a message.",
    axes: || {
        (
            size_axis(Scale::Log2),
            Axis::new("messages a second", Measure::PerSecond, Scale::Linear),
        )
    },
    of: |sample, _| sample.rate,
};

const DELAY: Kind = Kind {
    name: "delay",
    caption: "Time of a message over its size, and the line with the least squares: what a message costs however small it is, \
              and what each byte adds.",
    axes: || {
        (
            size_axis(Scale::Linear),
            Axis::new("time of a message", Measure::Nanoseconds, Scale::Linear),
        )
    },
    of: |sample, _| 1e9 / sample.rate,
};

const THROUGHPUT: Kind = Kind {
    name: "throughput",
    caption: "Bytes a second over the size of a message.",
    axes: || {
        (
            size_axis(Scale::Log2),
            Axis::new("bytes a second", Measure::BytesPerSecond, Scale::Log10),
        )
    },
    of: |sample, size| sample.rate * size,
};

/// Performance, delay, throughput and improvement of the cells `WORK-SIZE`, in each placement where there are at least two
/// sizes. Arms whose traffic was not proved to be carried are left out.
pub fn four(cells: &[CellReport], work: &str, title: &str, baseline: &str) -> Vec<Plot> {
    let ranges = ranges(cells, work);
    let drawn = ranges.iter().filter(|range| range.cells.len() > 1);
    drawn
        .flat_map(|range| {
            let plot = |kind: &Kind, curves| range.plot(work, title, kind, curves);
            let simple = |kind: &Kind| plot(kind, range.curves(kind));
            let delay = plot(&DELAY, range.lines());
            [
                simple(&PERFORMANCE),
                delay,
                simple(&THROUGHPUT),
                range.improvement(work, title, baseline),
            ]
        })
        .filter(|plot| plot.curves.iter().any(|curve| !curve.points.is_empty()))
        .collect()
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

fn size_axis(scale: Scale) -> Axis {
    Axis::new("size of a message", Measure::Bytes, scale)
}

fn point(x: f64, values: &[f64]) -> Option<Point> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let place = (sorted.len().checked_sub(1)?) as f64 * share;
        let (below, above) = (
            sorted[place.floor() as usize],
            sorted[place.ceil() as usize],
        );
        Some(below + (above - below) * place.fract())
    };
    Some(Point {
        low: quantile(0.25),
        high: quantile(0.75),
        ..Point::new(x, quantile(0.5)?)
    })
}

impl<'a> Range<'a> {
    /// In the order in which they first appear.
    fn arms(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        for arm in self.cells.iter().flat_map(|(_, cell)| &cell.arms) {
            if !names.contains(&arm.arm.as_str()) {
                names.push(arm.arm.as_str());
            }
        }
        names
    }

    /// The cells in which an arm has something to say.
    fn with<'b>(&'b self, arm: &'b str) -> impl Iterator<Item = (f64, &'a ArmReport)> + 'b {
        let of = move |&(size, cell): &(f64, &'a CellReport)| {
            Some((size, cell.arm(arm).filter(|arm| arm.is_proved())?))
        };
        self.cells.iter().filter_map(of)
    }

    fn plot(&self, work: &str, title: &str, kind: &Kind, curves: Vec<Curve>) -> Plot {
        let (x, y) = (kind.axes)();
        Plot {
            name: format!("{work}-{}-{}", kind.name, self.placement.name()),
            title: format!("{title}, {}: {}", self.placement.name(), kind.name),
            caption: kind.caption.to_string(),
            x,
            y,
            curves,
        }
    }

    fn curves(&self, kind: &Kind) -> Vec<Curve> {
        let curve = |name: &str| {
            let points = self.with(name).filter_map(|(size, arm)| {
                let taken = arm.all.iter().flatten();
                let values: Vec<f64> = taken.map(|sample| (kind.of)(sample, size)).collect();
                point(size, &values)
            });
            Curve {
                name: name.to_string(),
                points: points.collect(),
                fit: Vec::new(),
            }
        };
        let curves = self.arms().into_iter().map(curve);
        curves.filter(|curve| !curve.points.is_empty()).collect()
    }

    /// The times, each arm's with the line through them.
    fn lines(&self) -> Vec<Curve> {
        let mut curves = self.curves(&DELAY);
        for curve in &mut curves {
            let ends = [0.0, curve.points.last().map_or(0.0, |point| point.x)];
            if let Some(line) = line(curve) {
                let at = |x: f64| (x, line.intercept + line.slope * x);
                curve.fit = ends.map(at).to_vec();
            }
        }
        curves
    }

    /// Each arm over the baseline, round by round.
    fn improvement(&self, work: &str, title: &str, baseline: &str) -> Plot {
        let others = self.arms().into_iter().filter(|name| *name != baseline);
        let curve = |name: &str| {
            let points = self.cells.iter().filter_map(|(size, cell)| {
                let (arm, base) = (
                    cell.arm(name).filter(|arm| arm.is_proved())?,
                    cell.arm(baseline)?,
                );
                let rounds = arm.all.iter().zip(&base.all);
                let better: Vec<f64> = rounds
                    .filter_map(|(a, b)| Some(a.as_ref()?.rate / b.as_ref()?.rate))
                    .map(|ratio| (ratio - 1.0) * 100.0)
                    .collect();
                point(*size, &better)
            });
            Curve {
                name: name.to_string(),
                points: points.collect(),
                fit: Vec::new(),
            }
        };
        let placement = self.placement.name();
        Plot {
            name: format!("{work}-improvement-{placement}"),
            title: format!("{title}, {placement}: improvement over {baseline}"),
            caption: format!("So much more, or less, than {baseline} in the same round."),
            x: size_axis(Scale::Log2),
            y: Axis::new("improvement", Measure::Percent, Scale::Linear),
            curves: others
                .map(curve)
                .filter(|curve| !curve.points.is_empty())
                .collect(),
        }
    }

    /// Message, Tx and Rx as the documents have them, and what explains them; a row for each arm of a size.
    fn rates(&self, work: &str, title: &str) -> Sheet {
        let placement = self.placement.name();
        let mut sheet = Sheet::new(
            &format!("{work}-rates-{placement}"),
            &format!("{title}, {placement}: sent and received"),
            &counts::caption(
                "Messages a second that the sender counted (Tx) and the receiver (Rx), in the same time; medians.",
            ),
            &counts::beside(&[
                ("Message", Measure::Bytes),
                ("arm", Measure::Text),
                ("Tx", Measure::PerSecond),
                ("Rx", Measure::PerSecond),
            ]),
        );
        for (size, cell) in &self.cells {
            for arm in cell
                .arms
                .iter()
                .filter(|arm| arm.samples > 0 && arm.is_proved())
            {
                let mut row = vec![
                    Value::from(*size),
                    arm.arm.as_str().into(),
                    middle(arm, |sample| sample.tx_rate).into(),
                    middle(arm, |sample| sample.rx_rate).into(),
                ];
                row.extend(counts::fields(Some(arm)));
                sheet.rows.push(row);
            }
        }
        sheet
    }
}

fn fits(ranges: &[Range<'_>], work: &str, title: &str) -> Sheet {
    let mut sheet = Sheet::new(
        &format!("{work}-fits"),
        &format!("{title}: lines through the times"),
        "The line with the least squares through the medians of a message's time over its size: what each message takes, what \
         each byte adds, and the share of the differences that the line explains.",
        &[
            ("placement", Measure::Text),
            ("arm", Measure::Text),
            ("sizes", Measure::Count),
            ("each message", Measure::Nanoseconds),
            ("each byte", Measure::Nanoseconds),
            ("R²", Measure::Count),
        ],
    );
    for range in ranges {
        for curve in range.curves(&DELAY) {
            let Some(line) = line(&curve) else { continue };
            sheet.rows.push(vec![
                range.placement.name().into(),
                curve.name.as_str().into(),
                Value::from(curve.points.len() as f64),
                line.intercept.into(),
                line.slope.into(),
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

fn middle(arm: &ArmReport, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = arm.all.iter().flatten().filter_map(of).collect();
    (!values.is_empty()).then(|| median(&values))
}

#[cfg(test)]
#[path = "sizes/tests.rs"]
mod tests;
