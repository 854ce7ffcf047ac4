//! The tables: least squares of round trips, saturation curves of bandwidth, transactions, files, receive posting.

mod files;
mod posting;

use super::exchanges::{TRANSACTIONS, transactions};
use super::figures::{Figures, factor, sound};
use super::streams::Manner;
use super::{BANDWIDTH, ROUND_TRIP};
use crate::counts;
use crate::experiment::{ACCELERATED, Arm, RAW_CHANNEL, TCP, UNIX};
use crate::findings::{Sheet, Value};
use crate::placement::Placement;
use crate::stats::{Factor, Line};
use crate::tables;

/// Of transactions.
const ARMS: [Arm; 4] = [TCP, ACCELERATED, UNIX, RAW_CHANNEL];

/// Those for which anything was measured.
pub fn all(figures: &Figures<'_>) -> Vec<Sheet> {
    let sheets = [
        round_trips(figures),
        bandwidth(figures),
        streams(figures),
        kept_and_new(figures),
        files::times(figures),
        files::rates(figures),
        posting::sheet(figures),
    ];
    let has_rows = |sheet: &Sheet| !sheet.rows.is_empty();
    sheets.into_iter().filter(has_rows).collect()
}

fn round_trips(figures: &Figures<'_>) -> Sheet {
    let mut sheet = tables::sheet("lan", "round-trips", &[]);
    for (placement, arm) in each(figures, ROUND_TRIP) {
        let found = figures.round_trips(placement, arm);
        let lines = [("all", found.all), ("below 1 KiB", found.small)];
        let cell = figures.cell(&format!("{ROUND_TRIP}-1"), placement);
        let own = cell.and_then(|cell| sound(cell, arm));
        // Too few sizes for a line leave the start-up cost.
        for (sizes, line) in lines.into_iter().filter(|l| l.0 == "all" || l.1.is_some()) {
            let of = |part: fn(Line) -> f64| Value::from(line.and_then(Line::told).map(part));
            let row = vec![
                placement.name().into(),
                arm.into(),
                sizes.into(),
                of(|line| line.slope),
                of(|line| line.intercept),
                found.start_up.into(),
                line.map(|line| line.r_squared).into(),
                found.known.into(),
            ];
            sheet.explained(row, own);
        }
    }
    sheet
}

/// The size whose rate and counts stand beside a curve.
const EXAMPLE: usize = 1024;

fn bandwidth(figures: &Figures<'_>) -> Sheet {
    let mut sheet = tables::sheet("lan", "bandwidth", &[]);
    sheet.rows = curves(figures, BANDWIDTH).collect();
    sheet
}

fn streams(figures: &Figures<'_>) -> Sheet {
    let mut sheet = tables::sheet("lan", "streams", &[]);
    for name in [Manner::Ttcp, Manner::Netperf].map(Manner::name) {
        sheet.rows.extend(curves(figures, name).map(|mut row| {
            row.insert(0, name.into());
            row
        }));
    }
    sheet
}

/// Placement, arm, Rmax, N½ and R² of each curve, and the rate and the counts of a size.
fn curves<'a>(figures: &'a Figures<'_>, work: &'a str) -> impl Iterator<Item = Vec<Value>> + 'a {
    let fitted = move |(placement, arm): (Placement, &str)| {
        let found = figures.saturation(work, placement, arm)?;
        let example = format!("{work}-{EXAMPLE}");
        let cell = figures.cell(&example, placement);
        let own = cell.and_then(|cell| sound(cell, arm));
        let mut row: Vec<Value> = vec![
            placement.name().into(),
            arm.into(),
            found.rmax.into(),
            found.half.into(),
            found.r_squared.into(),
            own.and_then(|arm| arm.bytes_rate).into(),
        ];
        row.extend(counts::fields(own));
        Some(row)
    };
    each(figures, work).into_iter().filter_map(fitted)
}

fn kept_and_new(figures: &Figures<'_>) -> Sheet {
    let mut sheet = tables::sheet("lan", "transactions", &[]);
    for (kept, word) in [(true, "kept"), (false, "new")] {
        for &placement in Placement::UNDISTURBED {
            for (request, response) in TRANSACTIONS {
                let name = transactions(kept, (request, response));
                let Some(cell) = figures.cell(&name, placement) else {
                    continue;
                };
                for arm in ARMS.iter().filter_map(|arm| sound(cell, arm.name)) {
                    let over = factor(cell, &arm.arm, TCP.name).filter(|_| arm.arm != TCP.name);
                    let row = vec![
                        word.into(),
                        placement.name().into(),
                        format!("{request} / {response}").as_str().into(),
                        arm.arm.as_str().into(),
                        arm.rate.into(),
                        value(over),
                    ];
                    sheet.explained(row, Some(arm));
                }
            }
        }
    }
    sheet
}

pub fn kib(size: usize) -> String {
    match size {
        size if size >= 1 << 20 && size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size >= 1 << 10 && size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        1 => "1 byte".to_string(),
        size => format!("{size} bytes"),
    }
}

fn value(factor: Option<Factor>) -> Value {
    factor.map(|factor| factor.value).into()
}

/// Every placement and arm of a work.
fn each<'a>(figures: &Figures<'a>, work: &str) -> Vec<(Placement, &'a str)> {
    let placements = Placement::UNDISTURBED.iter();
    placements
        .flat_map(|&placement| {
            let arms = figures.arms(work, placement);
            arms.into_iter().map(move |arm| (placement, arm))
        })
        .collect()
}

#[cfg(test)]
mod tests;
