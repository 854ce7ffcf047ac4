//! XTI over sockets, by kind of provider, and what that was worth in 2007.

use super::datagrams::SOCKETS;
use super::flow::{NAGLE, XTI, highest};
use super::sockets;
use crate::conclude;
use crate::conclusion::Conclusion;
use crate::experiments::ranges::{self, Beside};
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::report::CellReport;
use crate::tables;

const PLACEMENTS: &[Placement] = &[Apart, Same, Free];

pub fn conclude(cells: &[CellReport]) -> Conclusion {
    let pairs = |group| tables::pairs("xti", group);
    let stream = (
        "stream",
        "XTI on the kernel's TCP, over plain senders; the receiver is plain",
        "Without T_TCP_NODELAY XTI gathers small messages, as the kernel does by Nagle's algorithm.",
    );
    let datagram = (
        "datagrams",
        "XTI on the kernel's UDP, over sockets",
        "Datagrams delivered. Runs of one size to one receiver go together, which mixed ones cannot.",
    );
    let within = (
        "within",
        "XTI's loop-back providers, over sockets within the host",
        "ticotsord is a connection, ticlts carries datagrams.",
    );
    let of_kinds = [
        (stream, pairs("stream")),
        (datagram, pairs("datagrams")),
        (within, pairs("within")),
    ];
    let bars = |(titles, pairs): &(_, Vec<_>)| conclude::bars(*titles, pairs, PLACEMENTS, cells);
    let plots = of_kinds.each_ref().map(bars);
    let all = of_kinds.map(|(_, pairs)| pairs).concat();
    let sheet = conclude::ratios(("ratios", "XTI: ratios"), &all, cells);
    let rival = sockets(highest().0);
    let tcp = [(0, NAGLE), (1, rival), (2, XTI)].map(beside);
    let udp = [(0, SOCKETS), (1, XTI)].map(beside);
    let mut seeds = ranges::TCP.seeds(cells, "tcp", &tcp);
    seeds.extend(ranges::UDP.seeds(cells, "udp", &udp));
    Conclusion {
        sheets: sheet.into_iter().collect(),
        plots: plots.into_iter().flatten().collect(),
        headlines: tables::headlines("xti", cells),
        seeds,
        ..Conclusion::default()
    }
}

fn beside((column, arm): (usize, crate::experiment::Arm)) -> Beside {
    Beside { column, arm }
}
