//! How much of a message is copying, by its size, and from where on it is all that matters.

use super::super::cost::WORK;
use super::super::figures::{threshold, time_each};
use super::super::way::{COPY_ALONE, SEMAPHORE, ZERO_COPY};
use super::curves::bytes;
use crate::experiment::{ACCELERATED_NODELAY, Arm, TCP_NODELAY};
use crate::findings::Measure::{Bytes, Nanoseconds, Share, Text};
use crate::findings::Scale::{Linear, Log2};
use crate::findings::{Axis, Curve, Plot, Point, Sheet, Value};
use crate::placement::Placement;
use crate::report::CellReport;

/// An arm, and how many copies a message there and back takes in it.
const COPIES: [(Arm, f64); 4] = [
    (TCP_NODELAY, 4.0),
    (SEMAPHORE, 4.0),
    (ACCELERATED_NODELAY, 4.0),
    (ZERO_COPY, 2.0),
];
/// Copying is the whole cost where it is so much of it.
const WHOLE: f64 = 0.9;

pub fn sheets(cells: &[CellReport]) -> Vec<Sheet> {
    let mut sheet = Sheet::new(
        "copying",
        "Copying as a share of a message's time",
        "copy-alone is the time of four copies; the share of an arm is that of as many copies as it makes: four, zero-copy two.",
        &[
            ("placement", Text),
            ("size", Bytes),
            ("copy-alone", Nanoseconds),
            ("tcp-nodelay", Share),
            ("iii-futex", Share),
            ("accelerated-nodelay", Share),
            ("zero-copy", Share),
        ],
    );
    for cell in cells.iter().filter(|cell| cell.work == WORK) {
        let Some(alone) = cell.arm(COPY_ALONE.name).and_then(time_each) else {
            continue;
        };
        let mut row: Vec<Value> = vec![
            cell.placement.name().into(),
            cell.size.map(|size| size as f64).into(),
            alone.into(),
        ];
        row.extend(COPIES.map(|(arm, copies)| Value::from(share(cell, arm, copies))));
        sheet.rows.push(row);
    }
    if sheet.rows.is_empty() {
        return Vec::new();
    }
    sheet.caption += &words(cells);
    vec![sheet]
}

pub fn plots(cells: &[CellReport]) -> Vec<Plot> {
    let plot = |placement: Placement| {
        let curve = |(arm, copies): (Arm, f64)| Curve {
            name: arm.name.to_string(),
            points: shares(cells, placement, arm, copies)
                .into_iter()
                .map(|(size, share)| Point::new(size, share))
                .collect(),
            fit: Vec::new(),
        };
        let mut curves: Vec<Curve> = COPIES.map(curve).into();
        curves.retain(|curve| !curve.points.is_empty());
        Plot {
            name: format!("copying-{}", placement.name()),
            title: format!(
                "Copying as a share of a message's time, {}",
                placement.name()
            ),
            caption: words(cells).trim_start().to_string(),
            x: Axis::new("size", Bytes, Log2),
            y: Axis::new("share", Share, Linear),
            curves,
        }
    };
    let plots = [Placement::Apart, Placement::Same].map(plot);
    plots
        .into_iter()
        .filter(|plot| !plot.curves.is_empty())
        .collect()
}

/// From which size on copying is the whole cost, in words.
fn words(cells: &[CellReport]) -> String {
    let mut text = String::new();
    for placement in [Placement::Apart, Placement::Same] {
        for (arm, copies) in COPIES {
            let points = shares(cells, placement, arm, copies);
            let Some((largest, _)) = points.last() else {
                continue;
            };
            let place = match threshold(&points, WHOLE) {
                Some(size) => format!("from {} on", bytes(size)),
                None => format!("not up to {}", bytes(*largest)),
            };
            text += &format!(
                " {}, {}: at least 90 % {place}.",
                arm.name,
                placement.name()
            );
        }
    }
    text
}

/// By size.
fn shares(cells: &[CellReport], placement: Placement, arm: Arm, copies: f64) -> Vec<(f64, f64)> {
    let own = cells
        .iter()
        .filter(|cell| cell.work == WORK && cell.placement == placement);
    let mut shares: Vec<(f64, f64)> = own
        .filter_map(|cell| Some((cell.size? as f64, share(cell, arm, copies)?)))
        .collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    shares
}

/// What so many copies alone take of an arm's time.
pub fn share(cell: &CellReport, arm: Arm, copies: f64) -> Option<f64> {
    let alone = cell.arm(COPY_ALONE.name).and_then(time_each)?;
    let time = cell.arm(arm.name).and_then(time_each)?;
    Some(alone / 4.0 * copies / time)
}
