//! The tables: least squares of round trips, saturation curves of bandwidth, transactions, files, receive posting.

mod files;
mod posting;

use super::exchanges::{TRANSACTIONS, transactions};
use super::figures::{Factor, Figures, factor, sound};
use super::streams::Manner;
use super::{BANDWIDTH, PLACEMENTS, ROUND_TRIP};
use crate::counts;
use crate::experiment::{ACCELERATED, Arm, RAW_CHANNEL, TCP, UNIX};
use crate::findings::{Measure, Sheet, Value};
use crate::placement::Placement;
use crate::stats::Line;

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
    let mut sheet = Sheet::new(
        "round-trips",
        "Round trips: what a byte costs, and what a message costs however small it is",
        &counts::caption(
            "Least squares of the median time of a round trip over its size. t0 is the line's intercept; start-up is what a \
             round trip of one byte really took, and the counts are its own. Known: the share of the samples of round trips and \
             bursts whose mean was within 2 % (95 % confidence) before their time was over.",
        ),
        &counts::beside(&[
            ("placement", Measure::Text),
            ("arm", Measure::Text),
            ("sizes", Measure::Text),
            ("per byte", Measure::Nanoseconds),
            ("t0", Measure::Nanoseconds),
            ("start-up", Measure::Nanoseconds),
            ("R²", Measure::Count),
            ("known", Measure::Share),
        ]),
    );
    for (placement, arm) in each(figures, ROUND_TRIP) {
        let found = figures.round_trips(placement, arm);
        let lines = [("all", found.all), ("below 1 KiB", found.small)];
        let counts = figures.counts(&format!("{ROUND_TRIP}-1"), placement, arm);
        // Too few sizes for a line leave the start-up cost.
        for (sizes, line) in lines.into_iter().filter(|l| l.0 == "all" || l.1.is_some()) {
            let of = |part: fn(Line) -> f64| Value::from(line.map(part));
            let mut row = vec![
                placement.name().into(),
                arm.into(),
                sizes.into(),
                of(|line| line.slope),
                of(|line| line.intercept),
                found.start_up.into(),
                of(|line| line.r_squared),
                found.known.into(),
            ];
            row.extend(counts.clone());
            sheet.rows.push(row);
        }
    }
    sheet
}

const CURVE: &str = "Least squares of the median rates to y = Rmax x / (N½ + x): Rmax is the rate of endless messages, N½ the size \
                     that reaches half of it. At 1 KiB: what was measured there, and the counts beside it.";
/// The size whose rate and counts stand beside a curve.
const EXAMPLE: usize = 1024;

fn bandwidth(figures: &Figures<'_>) -> Sheet {
    let mut sheet = Sheet::new(
        BANDWIDTH,
        "Bandwidth: 500 sends and one reply",
        &counts::caption(CURVE),
        &counts::beside(&[
            ("placement", Measure::Text),
            ("arm", Measure::Text),
            ("Rmax", Measure::BytesPerSecond),
            ("N½", Measure::Bytes),
            ("R²", Measure::Count),
            ("at 1 KiB", Measure::BytesPerSecond),
        ]),
    );
    sheet.rows = curves(figures, BANDWIDTH).collect();
    sheet
}

fn streams(figures: &Figures<'_>) -> Sheet {
    let mut sheet = Sheet::new(
        "streams",
        "One-way streams as ttcp and netperf send them",
        &counts::caption(&format!(
            "{CURVE} ttcp sends a number of buffers on each connection and reads into buffers of their size, netperf sends for a \
             time on one connection. Without -nodelay Nagle's algorithm gathers small sends."
        )),
        &counts::beside(&[
            ("as", Measure::Text),
            ("placement", Measure::Text),
            ("arm", Measure::Text),
            ("Rmax", Measure::BytesPerSecond),
            ("N½", Measure::Bytes),
            ("R²", Measure::Count),
            ("at 1 KiB", Measure::BytesPerSecond),
        ]),
    );
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
        let rate = cell.and_then(|cell| sound(cell, arm)?.bytes_rate);
        let mut row: Vec<Value> = vec![
            placement.name().into(),
            arm.into(),
            found.rmax.into(),
            found.half.into(),
            found.r_squared.into(),
            rate.into(),
        ];
        row.extend(figures.counts(&example, placement, arm));
        Some(row)
    };
    each(figures, work).into_iter().filter_map(fitted)
}

fn kept_and_new(figures: &Figures<'_>) -> Sheet {
    let mut sheet = Sheet::new(
        "transactions",
        "Transactions a second, on one connection and on a new one each time",
        &counts::caption(
            "Bytes of the request and of its response. A new connection is made for each transaction and ended by the server; \
             the library leaves such short ones to the kernel. A message is a transaction here.",
        ),
        &counts::beside(&[
            ("connection", Measure::Text),
            ("placement", Measure::Text),
            ("request / response", Measure::Text),
            ("arm", Measure::Text),
            ("per second", Measure::PerSecond),
            ("over tcp", Measure::Factor),
        ]),
    );
    for (kept, word) in [(true, "kept"), (false, "new")] {
        for &placement in PLACEMENTS {
            for (request, response) in TRANSACTIONS {
                let name = transactions(kept, (request, response));
                let Some(cell) = figures.cell(&name, placement) else {
                    continue;
                };
                for arm in ARMS.iter().filter_map(|arm| sound(cell, arm.name)) {
                    let over = factor(cell, &arm.arm, TCP.name).filter(|_| arm.arm != TCP.name);
                    let mut row = vec![
                        word.into(),
                        placement.name().into(),
                        format!("{request} / {response}").as_str().into(),
                        arm.arm.as_str().into(),
                        arm.rate.into(),
                        value(over),
                    ];
                    row.extend(counts::fields(Some(arm)));
                    sheet.rows.push(row);
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
    let placements = PLACEMENTS.iter();
    placements
        .flat_map(|&placement| {
            let arms = figures.arms(work, placement);
            arms.into_iter().map(move |arm| (placement, arm))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_as_people_do() {
        let names = [1, 700, 1024, 1536, 1 << 26].map(kib);
        assert_eq!(
            names,
            ["1 byte", "700 bytes", "1 KiB", "1536 bytes", "64 MiB"]
        );
    }
}
