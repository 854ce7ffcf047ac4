//! XTI against the sockets that do the same work: streams, datagrams, request/response and connections, over the kernel's TCP
//! and UDP and over the loop-back providers. The method is netperf's.

mod conclusion;
mod datagrams;
pub(super) mod flow;
pub(super) mod pair;
mod trips;

use super::asked::Asked;
use super::printed::parse;
use super::work::{Work, Works, quick_first};
use crate::experiment::{Arm, Goal, Metric, streams};
use crate::placement::Placement::{self, Apart, Free, Same};

pub(super) const UNDISTURBED: &[Placement] = &[Apart, Same, Free];
/// The usual bound of "never slower".
pub(super) const EVEN: f64 = 0.95;

/// The most telling first.
const QUICK: [&str; 15] = [
    "tcp-64",
    "rr-1",
    "udp-64",
    "cots-64",
    "connect",
    "clts-64",
    "tcp-1024",
    "tcp-16384",
    "carried-64",
    "udp-1024",
    "cots-1024",
    "tcp-1",
    "clts-1024",
    "cots-16384",
    "tcp-lone",
];

pub fn experiment() -> Asked {
    let works = [flow::works(), datagrams::works(), trips::works()];
    let works = works.into_iter().flatten();
    let works = works.map(|pair| Box::new(pair) as Box<dyn Work>).collect();
    Asked {
        works: Works {
            name: "xti",
            describe: "XTI endpoints against sockets that carry the same messages",
            works: quick_first(works, &QUICK),
        },
        question: "What does XTI give up, or gain, beside sockets: over the kernel's TCP and UDP, and within the host?",
        method: "One process sends messages of one size as fast as it can, another receives them and compares the bytes; both \
                 count over the same time, and the slower count is the result. Round trips and connections follow. An end that is \
                 XTI has the library preloaded, an end that is not has none.",
        usual: |cell| match cell.work.as_str() {
            "tcp" | "cots" | "rr" => &[Apart, Same],
            _ => &[Apart],
        },
        conclude: conclusion::conclude,
    }
}

/// An arm that only sockets carry.
pub(super) const fn sockets(name: &'static str) -> Arm {
    Arm {
        carrier: crate::experiment::Carrier::Tcp,
        ..streams(name)
    }
}

pub(super) fn rate(
    arm: Arm,
    against: Arm,
    placements: &'static [Placement],
    must: f64,
    aim: impl Into<Option<f64>>,
) -> Goal {
    Goal::rate(placements, must, aim).between(arm, against)
}

/// At most so much more of a cost.
pub(super) fn more(
    arm: Arm,
    against: Arm,
    metric: Metric,
    placements: &'static [Placement],
    most: f64,
) -> Goal {
    Goal {
        placements,
        ..Goal::more(metric, most).than(arm, against)
    }
}

/// By powers of two.
fn sizes(largest: usize) -> impl Iterator<Item = usize> {
    (0..)
        .map(|power| 1 << power)
        .take_while(move |&size| size <= largest)
}
