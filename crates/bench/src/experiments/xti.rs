//! XTI against the sockets that do the same work: streams, datagrams, request/response and connections, over the kernel's TCP
//! and UDP and over the loop-back providers. The method is netperf's.

pub(super) mod datagrams;
pub(super) mod flow;
pub(super) mod pair;
mod trips;

use super::printed::Told;
use super::ranges;
use super::work::{Works, boxed};
use crate::cells::CellReport;
use crate::conclude;
use crate::conclusion::Conclusion;
use crate::experiment::{Arm, streams};

pub fn experiment() -> Works {
    let works = [flow::works(), datagrams::works(), trips::works()];
    Works::new("xti", boxed(works.into_iter().flatten()), conclude)
}

/// An arm that only sockets carry.
pub(super) const fn sockets(name: &'static str) -> Arm {
    Arm {
        carrier: crate::experiment::Carrier::Tcp,
        ..streams(name)
    }
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    let groups = ["stream", "datagrams", "within"];
    let plots = groups.map(|group| (group, conclude::pairs("xti", group)));
    let all = plots.each_ref().map(|(_, pairs)| pairs.clone()).concat();
    let rival = sockets(flow::highest().0);
    let tcp = [(0, flow::NAGLE), (1, rival), (2, flow::XTI)];
    let udp = [(0, datagrams::SOCKETS), (1, datagrams::XTI)];
    let mut found = conclude::compared("xti", &plots, &[("ratios", all)], cells);
    found.seeds = ranges::TCP.seeds(cells, "tcp", &tcp);
    found.seeds.extend(ranges::UDP.seeds(cells, "udp", &udp));
    found
}

/// By powers of two.
fn sizes(largest: usize) -> impl Iterator<Item = usize> {
    (0..)
        .map(|power| 1 << power)
        .take_while(move |&size| size <= largest)
}
