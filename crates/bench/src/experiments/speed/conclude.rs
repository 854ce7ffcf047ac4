//! What follows from all cells: tables in the document's manner, curves, the document's figures beside ours.

mod copies;
mod curves;
mod tables;
#[cfg(test)]
mod tests;

pub use copies::share as copies_share;

use super::figures::{factor, find};
use super::way::{SEMAPHORE, ZERO_COPY};
use super::{chat, cost, seeds};
use crate::conclusion::Conclusion;
use crate::experiment::{ACCELERATED_NODELAY, Arm, TCP_NODELAY};
use crate::findings::Headline;
use crate::placement::Placement;
use crate::report::CellReport;

/// Where the sweeps are made.
const APART: Placement = Placement::Apart;

pub fn all(cells: &[CellReport]) -> Conclusion {
    Conclusion {
        sheets: [tables::all(cells), copies::sheets(cells)].concat(),
        plots: [curves::all(cells), copies::plots(cells)].concat(),
        seeds: seeds::all(cells),
        headlines: headlines(cells),
        ..Conclusion::default()
    }
}

fn headlines(cells: &[CellReport]) -> Vec<Headline> {
    let headline = |cell: &str, arm: Arm, against: Arm, what: &str, of: &str| {
        let found = factor(find(cells, cell, APART)?, arm.name, against.name)?;
        Some(Headline {
            what: what.to_string(),
            of: of.to_string(),
            factor: found.middle,
            low: found.low,
            high: found.high,
        })
    };
    let sockets = "Fast Sockets, over the kernel's TCP";
    let chatting = format!("a chat in 8 rooms of {} members, over epoll", chat::MEMBERS);
    let found = [
        headline(
            "messages-70",
            ACCELERATED_NODELAY,
            TCP_NODELAY,
            "70 bytes to a server and back, on two CPUs",
            sockets,
        ),
        headline(
            &format!("{}-65536", cost::WORK),
            ZERO_COPY,
            SEMAPHORE,
            "64 KiB to a server and back, on two CPUs",
            "messages read where they lie, over messages copied out",
        ),
        headline(
            &chat::name(8, "epoll"),
            ACCELERATED_NODELAY,
            TCP_NODELAY,
            &chatting,
            sockets,
        ),
    ];
    found.into_iter().flatten().collect()
}
