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

use super::work::Works;
use crate::cells::CellReport;
use crate::conclusion::Conclusion;

const ROUND_TRIP: &str = "rtt";
const BANDWIDTH: &str = "bandwidth";
const FTP: &str = "ftp";
const SENDFILE: &str = "ftp-sendfile";
const POSTING: &str = "post";

pub fn experiment() -> Works {
    let works = [
        exchanges::works(),
        ftp::works(),
        streams::works(),
        posting::works(),
    ];
    Works::new("lan", works.into_iter().flatten(), conclude)
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    let figures = Figures(cells);
    Conclusion {
        sheets: tables::all(&figures),
        plots: plots::all(&figures),
        seeds: findings::seeds(&figures),
        headlines: findings::headlines(&figures),
        ..Conclusion::default()
    }
}
