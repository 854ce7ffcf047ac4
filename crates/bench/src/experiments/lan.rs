//! What Fast Sockets were measured with: round trips, bandwidth, ttcp and netperf, transactions, FTP, receive posting.

mod exchanges;
mod figures;
mod findings;
mod ftp;
mod plots;
mod posting;
mod program;
mod streams;
mod tables;
#[cfg(test)]
mod tests;

use figures::Figures;

use super::work::{Work, Works};
use crate::conclusion::Conclusion;
use crate::experiment::{Cell, Experiment, Job, Sample};
use crate::failure::Result;
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::report::CellReport;

const ROUND_TRIP: &str = "rtt";
const BANDWIDTH: &str = "bandwidth";
const FTP: &str = "ftp";
const SENDFILE: &str = "ftp-sendfile";
const POSTING: &str = "post";
const PLACEMENTS: &[Placement] = &[Apart, Same, Free];
/// The cells of a quick run, those that say most first.
const QUICK: [&str; 6] = [
    "rtt-1",
    "ftp-1048576",
    "bandwidth-1024",
    "rr-1x1",
    "crr-1x1",
    "rtt-1024",
];

pub fn experiment() -> impl Experiment {
    let works = [
        exchanges::works(),
        ftp::works(),
        streams::works(),
        posting::works(),
    ];
    let mut works: Vec<Box<dyn Work>> = works.into_iter().flatten().collect();
    // A run that is cut short has had these.
    works.sort_by_key(|work| quick(&work.cell().name).unwrap_or(QUICK.len()));
    Lan(Works {
        name: "lan",
        describe: "round trips, bandwidth, transactions and file transfers of programs on one host",
        works,
    })
}

/// The place of a cell in a quick run.
fn quick(cell: &str) -> Option<usize> {
    QUICK.iter().position(|name| *name == cell)
}

struct Lan(Works);

impl Experiment for Lan {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn describe(&self) -> &'static str {
        self.0.describe()
    }

    fn question(&self) -> &'static str {
        "Sockets were once put on a fast network's own messages, past TCP: what do they cost above the bare channel today, on \
         one host, and how much of that reaches a file transfer?"
    }

    fn method(&self) -> &'static str {
        "One program over TCP, the same one with the library, UNIX sockets and the bare channel; TCP_NODELAY and buffers of \
         64 KiB. Round trips and bursts of 500 sends with one reply go on until the 95 % confidence interval of their mean is \
         within 2 %, or the time is over. Lines and saturation curves are fitted to the medians. ncftpget fetches files from a \
         forking vsftpd; both are unmodified."
    }

    fn usual_placements(&self, _: &Cell) -> &'static [Placement] {
        &[Placement::Apart]
    }

    fn cells(&self) -> Vec<Cell> {
        self.0.cells()
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        self.0.sample(job)
    }

    fn conclude(&self, cells: &[CellReport]) -> Conclusion {
        let figures = Figures(cells);
        Conclusion {
            sheets: tables::all(&figures),
            plots: plots::all(&figures),
            seeds: findings::seeds(&figures),
            headlines: findings::headlines(&figures),
            ..Conclusion::default()
        }
    }
}
