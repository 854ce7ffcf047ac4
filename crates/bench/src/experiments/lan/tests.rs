//! What follows from cells whose figures are known.

use posting::POSTED;

use super::*;
use crate::carriage::{Counters, Proof};
use crate::experiment::{ACCELERATED, Arm, PIPE, RAW_CHANNEL, TCP, UNIX, Unit};
use crate::experiment::{Cell, Sample};
use crate::findings::{Sheet, Value};
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::verdict::Series;

/// A cell in which each arm takes so many nanoseconds for a message, in all of six rounds.
fn cell(name: &str, size: usize, placement: Placement, times: &[(Arm, f64)]) -> CellReport {
    let arms = times.iter().map(|(arm, _)| *arm).collect();
    let cell = Cell {
        proof: Proof::Counted { ends: 2 },
        ..Cell::new(name, Unit::RoundTrip, arms)
    };
    let series = |&(arm, ns): &(Arm, f64)| {
        let sample = Sample {
            rate: 1e9 / ns,
            bytes_rate: Some(size as f64 * 1e9 / ns),
            counters: Some(Counters {
                accelerated: 2,
                ..Counters::default()
            }),
            ..Sample::default()
        };
        Series {
            arm,
            samples: vec![Some(sample); 6],
            failures: Vec::new(),
            syscalls: None,
            wrong_contents: false,
        }
    };
    let all: Vec<Series> = times.iter().map(series).collect();
    CellReport::new(&cell, placement, &all)
}

fn round_trips(placement: Placement) -> Vec<CellReport> {
    let sizes = [1, 64, 512, 4096, 65536];
    let of = |size: usize| {
        let bytes = size as f64;
        let times = [
            (TCP, 20_000.0 + 2.0 * bytes),
            (ACCELERATED, 1000.0 + 0.5 * bytes),
        ];
        cell(&format!("rtt-{size}"), size, placement, &times)
    };
    sizes.map(of).into()
}

fn bandwidth(placement: Placement) -> Vec<CellReport> {
    let of = |size: usize| {
        // y = 2 GB/s x / (500 + x), of which a message takes x / y.
        let time = |rmax: f64, half: f64| (half + size as f64) / rmax * 1e9;
        let times = [(TCP, time(2e9, 500.0)), (ACCELERATED, time(8e9, 100.0))];
        cell(&format!("bandwidth-{size}"), size, placement, &times)
    };
    [16, 256, 1024, 16384].map(of).into()
}

fn sheet<'a>(found: &'a Conclusion, name: &str) -> &'a Sheet {
    let sheet = found.sheets.iter().find(|sheet| sheet.name == name);
    sheet.unwrap()
}

fn close(value: &Value, wanted: f64) {
    let Value::Number(number) = value else {
        panic!("no number: {value:?}");
    };
    assert!(
        (number - wanted).abs() < wanted * 1e-6,
        "{number}, {wanted}"
    );
}

#[test]
fn lines_give_the_cost_of_a_byte_and_of_a_message() {
    let found = conclude(&round_trips(Apart));
    let rows = &sheet(&found, "round-trips").rows;
    let wanted = [("tcp", 2.0, 20_000.0), ("accelerated", 0.5, 1000.0)];
    for (arm, (name, slope, intercept)) in wanted.into_iter().enumerate() {
        for row in &rows[2 * arm..2 * arm + 2] {
            assert_eq!(row[1], name.into());
            close(&row[3], slope);
            close(&row[4], intercept);
            close(&row[5], intercept + slope);
        }
    }
    assert_eq!(found.plots.len(), 1);
    assert_eq!(found.plots[0].name, "round-trip-apart");
    assert!(
        found.plots[0]
            .curves
            .iter()
            .all(|c| c.points.len() == 5 && !c.fit.is_empty())
    );
}

#[test]
fn curves_give_the_limit_and_the_half_power_point() {
    let found = conclude(&bandwidth(Same));
    let rows = &sheet(&found, "bandwidth").rows;
    close(&rows[0][2], 2e9);
    close(&rows[0][3], 500.0);
    close(&rows[1][2], 8e9);
    close(&rows[1][3], 100.0);
    let ours = |what: &str| {
        let seed = found.seeds.iter().find(|seed| seed.what.contains(what));
        seed.unwrap().ours.clone()
    };
    assert_eq!(
        ours("one reply: Rmax, N½ of Fast Sockets"),
        "8,000 MB/s, 100 bytes (accelerated)"
    );
    assert_eq!(ours("one reply: Rmax, N½ of Active"), "");
}

#[test]
fn headlines_are_few_and_prefer_two_cpus() {
    let mut cells = round_trips(Same);
    cells.extend(round_trips(Apart));
    cells.extend(bandwidth(Apart));
    for size in [1 << 20, 1 << 26] {
        let times = [(TCP, size as f64), (ACCELERATED, size as f64 / 2.0)];
        cells.push(cell(&format!("ftp-{size}"), size, Apart, &times));
    }
    let headlines = conclude(&cells).headlines;
    assert_eq!(headlines.len(), 3);
    assert_eq!(headlines[0].what, "a round trip of 1 byte, on two CPUs");
    assert!((headlines[0].factor - 20_002.0 / 1000.5).abs() < 1e-6);
    assert_eq!(headlines[2].what, "a file of 64 MiB by FTP, on two CPUs");
    assert_eq!((headlines[2].low, headlines[2].high), (2.0, 2.0));
}

#[test]
fn receive_posting_is_judged_against_the_ring() {
    let of = |(size, posted): (usize, f64)| {
        let times = [(PIPE, 3000.0), (RAW_CHANNEL, 1000.0), (POSTED, posted)];
        cell(&format!("post-{size}"), size, Free, &times)
    };
    let cells = [(1024, 4000.0), (65536, 900.0), (1 << 20, 500.0)].map(of);
    let found = conclude(&cells);
    let posting = sheet(&found, "posting");
    assert!(
        posting
            .caption
            .contains("Placed free, posting is faster from 64 KiB on.")
    );
    close(&posting.rows[8][4], 2.0);
}

#[test]
fn what_was_not_measured_or_not_carried_is_missing() {
    let nothing = conclude(&[]);
    assert!(nothing.sheets.is_empty() && nothing.plots.is_empty() && nothing.headlines.is_empty());
    assert!(!nothing.seeds.is_empty() && nothing.seeds.iter().all(|seed| seed.ours.is_empty()));

    let mut cells = round_trips(Apart);
    for found in &mut cells {
        let accelerated = found.arms.iter_mut().find(|arm| arm.arm == "accelerated");
        accelerated.unwrap().carried.as_mut().unwrap().yes = 0;
    }
    // An arm that failed in all rounds has no figures either.
    let failed = cell("rtt-1024", 1024, Apart, &[(UNIX, f64::INFINITY)]);
    cells.push(failed);
    let found = conclude(&cells);
    assert!(found.headlines.is_empty());
    let rows = &sheet(&found, "round-trips").rows;
    assert!(rows.iter().all(|row| row[1] == "tcp".into()));
}

#[test]
fn files_have_their_times_their_rates_and_where_they_were() {
    let size = 1 << 20;
    let times = [(TCP, 2e6), (ACCELERATED, 1e6)];
    let mut found = cell("ftp-1048576", size, Free, &times);
    for sample in found.arms.iter_mut().flat_map(|arm| arm.all.iter_mut()) {
        let values = &mut sample.as_mut().unwrap().values;
        values.insert(ftp::SHARE.to_string(), 0.25);
        values.insert(ftp::REPORTED.to_string(), 3e9);
        values.insert(ftp::IN_MEMORY.to_string(), 0.0);
    }
    let by_sendfile = cell("ftp-sendfile-67108864", 1 << 26, Free, &times);
    let found = conclude(&[found, by_sendfile]);
    let times = sheet(&found, "ftp");
    assert!(
        times
            .caption
            .ends_with("there was no room, or no such file system.")
    );
    close(&times.rows[0][4], 2.0);
    close(&times.rows[0][7], 0.25);
    let last: Vec<_> = times.rows.iter().map(|row| row[8].clone()).collect();
    assert_eq!(last, ["write".into(), "sendfile".into()]);
    let rates = sheet(&found, "ftp-rates");
    close(&rates.rows[0][3], size as f64 * 1e3);
    close(&rates.rows[0][4], 3e9);
    assert_eq!(found.plots.len(), 1);
}
