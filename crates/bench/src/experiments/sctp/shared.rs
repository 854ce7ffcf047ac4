//! Both ends on /dev/sctp_t within the host, where no packets are needed, against TCP sockets.

use super::programs::{self, BYTES, SOCKETS};
use super::{SCTP_MORE, UNDISTURBED, rate, sockets};
use crate::experiment::{Arm, Goal, TCP, UNIX, Unit, streams};
use crate::experiments::xti::flow::rival;
use crate::experiments::xti::pair::{Pair, Way};
use crate::placement::Placement::{self, Apart};

/// The most telling first.
const SIZES: [usize; 7] = [64, 1024, 16384, 1, 16, 256, 4096];
/// Up to here messages are small.
const SMALL: usize = 1024;

pub const NAGLE: Arm = sockets("nagle");
const NODELAY: Arm = sockets("nodelay");
pub const SCTP: Arm = streams("sctp");

pub fn works() -> impl Iterator<Item = Pair> {
    SIZES.into_iter().map(flow).chain([trips()])
}

fn flow(size: usize) -> Pair {
    let over = |against, must, aim: Option<f64>| rate(SCTP, against, UNDISTURBED, must, aim);
    let mut goals = match size {
        ..=SMALL => vec![over(NAGLE, 2.0, Some(3.0)), over(NODELAY, 8.0, None)],
        _ => vec![over(NAGLE, 1.0, None), over(NODELAY, 1.0, None)],
    };
    goals.push(programs::as_fast(SOCKETS, SCTP));
    goals.push(rate(BYTES, NAGLE, UNDISTURBED, 1.0, None));
    Pair {
        name: format!("shm-{size}"),
        work: "flow",
        unit: Unit::Messages,
        size,
        ways: vec![
            Way::both(NAGLE, "tcp"),
            Way::both(NODELAY, "tcp").with(&["--nodelay"]),
            rival(),
            Way::both(UNIX, "unix"),
            Way::both(SCTP, "/dev/sctp_t"),
            Way::both(SCTP_MORE, "/dev/sctp_t").with(&["--more"]),
            programs::shared(),
            programs::shared_bytes(),
        ],
        goals,
        placements: UNDISTURBED,
        stretch: 1,
    }
}

fn trips() -> Pair {
    const APART: &[Placement] = &[Apart];
    Pair {
        name: "rr-1".to_string(),
        work: "trips",
        unit: Unit::RoundTrip,
        size: 1,
        ways: vec![
            Way::both(TCP, "tcp").with(&["--nodelay"]),
            Way::both(UNIX, "unix"),
            Way::both(SCTP, "/dev/sctp_t"),
            programs::shared(),
        ],
        goals: vec![Goal::rate(APART, 10.0, None).between(SCTP, TCP)],
        placements: &Placement::ALL,
        stretch: 1,
    }
}
