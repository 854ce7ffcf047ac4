//! Files by FTP: how long one takes, at which rate, and what of it was carried.

use super::super::figures::{Figures, factor, sound, time, told};
use super::super::ftp::{IN_MEMORY, REPORTED, SHARE};
use super::super::{FTP, SENDFILE};
use super::value;
use crate::experiment::{ACCELERATED, TCP};
use crate::findings::{Measure, Sheet, Value};
use crate::placement::Placement;
use crate::report::{ArmReport, CellReport};

/// The work of a cell, and how the server sends in it.
const SENDING: [(&str, &str); 2] = [(FTP, "write"), (SENDFILE, "sendfile")];

pub fn times(figures: &Figures<'_>) -> Sheet {
    let mut sheet = Sheet::new(
        FTP,
        "Files by FTP: ncftpget from vsftpd",
        &format!(
            "The time of a file is that of a session divided by its files, with logging in and a data connection for each file. \
             Carried: the share of the received bytes that went through shared memory; a connection that ends soon stays with \
             the kernel, and so does a file that the server sends by one sendfile(2).{}",
            where_files_are(figures)
        ),
        &[
            ("placement", Measure::Text),
            ("file", Measure::Bytes),
            ("tcp", Measure::Nanoseconds),
            ("accelerated", Measure::Nanoseconds),
            ("times as fast", Measure::Factor),
            ("low", Measure::Factor),
            ("high", Measure::Factor),
            ("carried", Measure::Share),
            ("sent by", Measure::Text),
        ],
    );
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
    let mut sheet = Sheet::new(
        "ftp-rates",
        "Files by FTP: bytes a second",
        "Of a whole session, and, as reported, what the client says of the data connection alone: from the server's word that \
         it begins until everything is written.",
        &[
            ("placement", Measure::Text),
            ("file", Measure::Bytes),
            ("tcp", Measure::BytesPerSecond),
            ("accelerated", Measure::BytesPerSecond),
            ("tcp, reported", Measure::BytesPerSecond),
            ("accelerated, reported", Measure::BytesPerSecond),
            ("sent by", Measure::Text),
        ],
    );
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
