//! The document's figures beside ours, and the ratios that matter most.

use super::exchanges::transactions;
use super::figures::{Figures, RoundTrips};
use super::tables::kib;
use super::{BANDWIDTH, FTP, ROUND_TRIP};
use crate::experiment::{ACCELERATED, TCP};
use crate::findings::{Headline, Seed};
use crate::fit::Saturation;
use crate::numbers::{duration, number};
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::stats::{Factor, Line};
use crate::tables;

const FILE: &str = "001_41e00d44dcd0bce4.txt";
/// Two machines had a processor each.
const PREFERRED: [Placement; 3] = [Apart, Free, Same];

pub fn seeds(figures: &Figures<'_>) -> Vec<Seed> {
    let curves = saturations(figures).collect();
    [round_trips(figures), curves, in_words(figures)].concat()
}

fn seed(what: String, theirs: String, ours: Option<String>) -> Seed {
    Seed::new(FILE, what, theirs, ours)
}

fn round_trips(figures: &Figures<'_>) -> Vec<Seed> {
    let placement = preferred(figures, ROUND_TRIP);
    let one = |theirs: &tables::RoundTrip| {
        let tables::RoundTrip { layer, arm, .. } = theirs;
        let found = placement.map(|placement| figures.round_trips(placement, arm));
        let RoundTrips {
            all,
            small,
            start_up,
            ..
        } = found.unwrap_or_default();
        let (sizes, line) = match theirs.sizes.as_str() {
            "small" => ("below 1 KiB", small),
            _ => ("1 byte to 64 KiB", all),
        };
        let ours = start_up.map(|start| {
            let line = line.and_then(Line::told);
            let line = line.map(|line| [line.slope, line.intercept].map(time).join(", ") + ", ");
            format!("{}{} ({arm})", line.unwrap_or_default(), time(start))
        });
        let theirs = [theirs.per_byte_us, theirs.t0_us, theirs.start_up_us];
        seed(
            format!("round trip, {sizes}: per byte, t0, start-up of {layer}"),
            theirs.map(|us| duration(us * 1e3)).join(", "),
            ours,
        )
    };
    tables::ROUND_TRIPS.iter().map(one).collect()
}

/// An intercept may be negative, where the line is bent, and a slope where bytes cost less than chance.
fn time(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", duration(ns.abs()))
}

fn saturations(figures: &Figures<'_>) -> impl Iterator<Item = Seed> {
    tables::BANDWIDTHS.iter().map(|theirs| {
        let tables::Bandwidth {
            work, layer, arm, ..
        } = theirs;
        let placement = preferred(figures, work);
        let found = placement.and_then(|placement| figures.saturation(work, placement, arm));
        let ours = found.map(|Saturation { rmax, half, .. }| {
            let rmax = number(rmax / 1e6);
            format!("{rmax} MB/s, {} bytes ({arm})", number(half))
        });
        let what = match work.as_str() {
            BANDWIDTH => "500 sends and one reply".to_string(),
            work => format!("stream of {work}"),
        };
        seed(
            format!("{what}: Rmax, N½ of {layer}"),
            format!("{} MB/s, {} bytes", theirs.rmax_mb_s, theirs.half_bytes),
            ours,
        )
    })
}

/// What the document shows in drawings and describes.
fn in_words(figures: &Figures<'_>) -> Vec<Seed> {
    let ratio = |cell: &str| over_tcp(figures, cell).map(|(_, factor)| times(factor));
    let transactions = [true, false].map(|kept| ratio(&transactions(kept, (1, 1))));
    let transactions = match transactions {
        [Some(kept), Some(new)] => Some(format!("kept {kept}, new {new} (1 byte each way)")),
        [Some(kept), None] => Some(format!("kept {kept} (1 byte each way)")),
        [None, Some(new)] => Some(format!("new {new} (1 byte each way)")),
        [None, None] => None,
    };
    let files: Vec<String> = [1 << 12, 1 << 20, 1 << 21, 1 << 26]
        .into_iter()
        .filter_map(|size| {
            Some(format!(
                "{} {}",
                kib(size),
                ratio(&format!("{FTP}-{size}"))?
            ))
        })
        .collect();
    vec![
        seed(
            "transactions, Fast Sockets over TCP/IP (a drawing)".to_string(),
            "more on a kept connection; little or nothing left on a new one each time".to_string(),
            transactions,
        ),
        seed(
            "files by FTP, Fast Sockets over TCP/IP (a drawing)".to_string(),
            "about even to 4 KB, much faster from there to 2 MB, about even beyond".to_string(),
            (!files.is_empty()).then(|| files.join(", ")),
        ),
    ]
}

fn times(factor: Factor) -> String {
    format!("{}x", number(factor.value))
}

pub fn headlines(figures: &Figures<'_>) -> Vec<Headline> {
    let file = [1usize << 26, 1 << 20]
        .into_iter()
        .map(|size| {
            (
                format!("{FTP}-{size}"),
                format!("a file of {} by FTP", kib(size)),
            )
        })
        .find(|(cell, _)| over_tcp(figures, cell).is_some());
    let wanted = [
        (
            format!("{ROUND_TRIP}-1"),
            "a round trip of 1 byte".to_string(),
        ),
        (
            format!("{BANDWIDTH}-1024"),
            "500 sends of 1 KiB and one reply".to_string(),
        ),
    ];
    let headline = |(cell, what): (String, String)| {
        let (placement, factor) = over_tcp(figures, &cell)?;
        let place = match placement {
            Apart => "on two CPUs",
            Same => "on one CPU",
            _ => "placed by the scheduler",
        };
        Some(Headline {
            what: format!("{what}, {place}"),
            of: "through shared memory, over the kernel's TCP".to_string(),
            factor: factor.value,
            low: factor.low,
            high: factor.high,
        })
    };
    wanted
        .into_iter()
        .chain(file)
        .filter_map(headline)
        .collect()
}

/// Where a work's figures stand for it.
fn preferred(figures: &Figures<'_>, work: &str) -> Option<Placement> {
    let measured = |placement: &Placement| !figures.cells(work, *placement).is_empty();
    PREFERRED.into_iter().find(measured)
}

fn over_tcp(figures: &Figures<'_>, cell: &str) -> Option<(Placement, Factor)> {
    PREFERRED.into_iter().find_map(|placement| {
        let found = figures.factor(cell, placement, ACCELERATED.name, TCP.name)?;
        Some((placement, found))
    })
}
