//! The document's figures beside ours, and the ratios that matter most.

use super::exchanges::transactions;
use super::figures::{Factor, Figures, RoundTrips};
use super::streams::Manner;
use super::tables::kib;
use super::{BANDWIDTH, FTP, ROUND_TRIP};
use crate::experiment::{ACCELERATED, RAW_CHANNEL, TCP};
use crate::findings::{Headline, Seed};
use crate::fit::Saturation;
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::stats::Line;
use crate::table::{duration, number};

const FILE: &str = "001_41e00d44dcd0bce4.txt";
/// Two machines had a processor each.
const PREFERRED: [Placement; 3] = [Apart, Free, Same];

/// What the document calls it, and the arm that stands where it did.
type Layer = (&'static str, &'static str);

const FAST: Layer = ("Fast Sockets", ACCELERATED.name);
const MESSAGES: Layer = ("Active Messages", RAW_CHANNEL.name);
const MYRINET: Layer = ("TCP/IP (Myrinet)", TCP.name);
const ETHERNET: Layer = ("TCP/IP (Fast Ethernet)", TCP.name);

pub fn seeds(figures: &Figures<'_>) -> Vec<Seed> {
    let lines = round_trips(figures);
    let curves = saturations(figures);
    lines
        .into_iter()
        .chain(curves)
        .chain(in_words(figures))
        .collect()
}

fn seed(what: String, theirs: String, ours: Option<String>) -> Seed {
    Seed {
        file: FILE.to_string(),
        what,
        theirs,
        ours: ours.unwrap_or_default(),
    }
}

/// Per byte, t0 and start-up in microseconds, of all sizes and of those below 1 KiB.
const ROUND_TRIPS: [(Layer, [f64; 3], [f64; 3]); 4] = [
    (FAST, [0.068, 157.4, 57.8], [0.124, 61.4, 57.8]),
    (MESSAGES, [0.129, 38.9, 45.0], [0.123, 45.4, 45.0]),
    (MYRINET, [0.076, 736.4, 533.4], [0.223, 533.0, 533.0]),
    (ETHERNET, [0.174, 366.2, 326.0], [0.242, 325.0, 326.0]),
];

fn round_trips(figures: &Figures<'_>) -> Vec<Seed> {
    let placement = preferred(figures, ROUND_TRIP);
    let mut seeds = Vec::new();
    for ((layer, arm), all, small) in ROUND_TRIPS {
        let found = placement.map(|placement| figures.round_trips(placement, arm));
        let found = found.unwrap_or_default();
        let RoundTrips { start_up, .. } = found;
        for (sizes, theirs, line) in [
            ("1 byte to 64 KiB", all, found.all),
            ("below 1 KiB", small, found.small),
        ] {
            let [per_byte, t0, start] = theirs.map(|us| duration(us * 1e3));
            let ours = start_up.map(|start| {
                let line = line.map_or(
                    String::new(),
                    |Line {
                         slope, intercept, ..
                     }| { format!("{}, {}, ", time(slope), time(intercept)) },
                );
                format!("{line}{} ({arm})", time(start))
            });
            seeds.push(seed(
                format!("round trip, {sizes}: per byte, t0, start-up of {layer}"),
                format!("{per_byte}, {t0}, {start}"),
                ours,
            ));
        }
    }
    seeds
}

/// An intercept may be negative, where the line is bent, and a slope where bytes cost less than chance.
fn time(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", duration(ns.abs()))
}

/// Rmax in MB/s and N½ in bytes.
const SATURATIONS: [(&str, Layer, [f64; 2]); 8] = [
    (BANDWIDTH, FAST, [32.9, 441.0]),
    (BANDWIDTH, MESSAGES, [39.2, 372.0]),
    (BANDWIDTH, MYRINET, [29.6, 2098.0]),
    (BANDWIDTH, ETHERNET, [11.1, 530.0]),
    (Manner::Ttcp.name(), FAST, [38.57, 560.7]),
    (Manner::Ttcp.name(), MYRINET, [19.59, 687.5]),
    (Manner::Netperf.name(), FAST, [41.57, 785.7]),
    (Manner::Netperf.name(), MYRINET, [23.72, 1189.0]),
];

fn saturations(figures: &Figures<'_>) -> impl Iterator<Item = Seed> {
    SATURATIONS.into_iter().map(|(work, (layer, arm), theirs)| {
        let found =
            preferred(figures, work).and_then(|placement| figures.saturation(work, placement, arm));
        let [rmax, half] = theirs;
        let ours = found.map(|Saturation { rmax, half, .. }| {
            let rmax = number(rmax / 1e6);
            format!("{rmax} MB/s, {} bytes ({arm})", number(half))
        });
        let what = match work {
            BANDWIDTH => "500 sends and one reply".to_string(),
            work => format!("stream of {work}"),
        };
        seed(
            format!("{what}: Rmax, N½ of {layer}"),
            format!("{rmax} MB/s, {half} bytes"),
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
