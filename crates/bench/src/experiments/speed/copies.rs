//! How much of a message is copying, by its size, and from where on it is all that matters.

use super::cost::WORK;
use super::figures::{bytes, threshold, time_each};
use super::way::{COPY_ALONE, SEMAPHORE, ZERO_COPY};
use crate::cells::CellReport;
use crate::experiment::{ACCELERATED_NODELAY, Arm, TCP_NODELAY};
use crate::findings::{Curve, Plot, Point, Sheet, Value};
use crate::placement::Placement;
use crate::tables;

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
    let words = words(cells);
    let mut sheet = tables::sheet("speed", "copying", &[("words", &words)]);
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
    vec![sheet]
}

pub fn plots(cells: &[CellReport]) -> Vec<Plot> {
    let words = words(cells);
    let plot = |placement: Placement| {
        let curve = |(arm, copies): (Arm, f64)| {
            let shares = shares(cells, placement, arm, copies).into_iter();
            Curve::new(
                arm.name,
                shares.map(|(size, share)| Point::new(size, share)),
            )
        };
        let words = [
            ("placement", placement.name()),
            ("words", words.trim_start()),
        ];
        tables::plot("speed", "copying-{placement}", &words, COPIES.map(curve))
    };
    let mut plots: Vec<Plot> = [Placement::Apart, Placement::Same].map(plot).into();
    plots.retain(|plot| !plot.curves.is_empty());
    plots
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
