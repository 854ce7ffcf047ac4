//! Files by FTP: how long one takes, at which rate, and what of it was carried.

use super::super::figures::{Figures, factor, sound, time, told};
use super::super::ftp::{IN_MEMORY, REPORTED, SHARE};
use super::super::{FTP, SENDFILE};
use super::value;
use crate::cells::{ArmReport, CellReport};
use crate::experiment::{ACCELERATED, TCP};
use crate::findings::{Sheet, Value};
use crate::placement::Placement;
use crate::tables;

/// The work of a cell, and how the server sends in it.
const SENDING: [(&str, &str); 2] = [(FTP, "write"), (SENDFILE, "sendfile")];

pub fn times(figures: &Figures<'_>) -> Sheet {
    let places = [("where", where_files_are(figures))];
    let mut sheet = tables::sheet("lan", FTP, &places);
    for (placement, cell, sending) in cells(figures) {
        let found = factor(cell, ACCELERATED.name, TCP.name);
        sheet.rows.push(vec![
            placement.name().into(),
            size(cell),
            of(cell, TCP.name, time),
            of(cell, ACCELERATED.name, time),
            value(found),
            found.map(|factor| factor.low).into(),
            found.map(|factor| factor.high).into(),
            of(cell, ACCELERATED.name, |arm| told(arm, SHARE)),
            sending.into(),
        ]);
    }
    sheet
}

pub fn rates(figures: &Figures<'_>) -> Sheet {
    let mut sheet = tables::sheet("lan", "ftp-rates", &[]);
    for (placement, cell, sending) in cells(figures) {
        sheet.rows.push(vec![
            placement.name().into(),
            size(cell),
            of(cell, TCP.name, |arm| arm.bytes_rate),
            of(cell, ACCELERATED.name, |arm| arm.bytes_rate),
            of(cell, TCP.name, |arm| told(arm, REPORTED)),
            of(cell, ACCELERATED.name, |arm| told(arm, REPORTED)),
            sending.into(),
        ]);
    }
    sheet
}

fn cells<'a>(figures: &Figures<'a>) -> Vec<(Placement, &'a CellReport, &'static str)> {
    let mut found = Vec::new();
    for (work, sending) in SENDING {
        for placement in figures.placements(work) {
            let cells = figures.cells(work, placement).into_iter();
            found.extend(cells.map(|cell| (placement, cell, sending)));
        }
    }
    found
}

fn size(cell: &CellReport) -> Value {
    cell.size.map(|size| size as f64).into()
}

fn of(cell: &CellReport, arm: &str, what: fn(&ArmReport) -> Option<f64>) -> Value {
    sound(cell, arm).and_then(what).into()
}

fn where_files_are(figures: &Figures<'_>) -> &'static str {
    let works = [FTP, SENDFILE];
    let cells = figures
        .0
        .iter()
        .filter(|cell| works.contains(&cell.work.as_str()));
    let arms = cells.flat_map(|cell| &cell.arms);
    let told = arms.filter_map(|arm| told(arm, IN_MEMORY));
    match told.fold(None, |all: Option<bool>, one| {
        Some(all.unwrap_or(true) && one > 0.5)
    }) {
        Some(true) => " Files were in memory (tmpfs) at both ends.",
        Some(false) => {
            " Not all files were in memory (tmpfs): there was no room, or no such file system."
        }
        None => "",
    }
}
