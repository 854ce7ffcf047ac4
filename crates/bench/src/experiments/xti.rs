//! XTI against the sockets that do the same work: streams, datagrams, request/response and connections, over the kernel's TCP
//! and UDP and over the loop-back providers. The method is netperf's.

mod conclusion;
mod datagrams;
pub(super) mod flow;
pub(super) mod pair;
mod trips;

use super::printed::parse;
use super::work::{Works, boxed};
use crate::experiment::{Arm, Goal, Metric, streams};
use crate::placement::Placement::{self, Apart, Free, Same};

pub(super) const UNDISTURBED: &[Placement] = &[Apart, Same, Free];
/// The usual bound of "never slower".
pub(super) const EVEN: f64 = 0.95;

pub fn experiment() -> Works {
    let works = [flow::works(), datagrams::works(), trips::works()];
    Works::new(
        "xti",
        boxed(works.into_iter().flatten()),
        |cell| match cell.work.as_str() {
            "tcp" | "cots" | "rr" => &[Apart, Same],
            _ => &[Apart],
        },
        conclusion::conclude,
    )
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
