//! Both ends on /dev/sctp_t within the host, where no packets are needed, against TCP sockets.

use super::programs;
use super::{SCTP_MORE, sockets};
use crate::experiment::{Arm, TCP, UNIX, Unit, streams};
use crate::experiments::xti::flow::{self, rival};
use crate::experiments::xti::pair::{Pair, Way};
use crate::placement::Placement;

/// The most telling first.
const SIZES: [usize; 7] = [64, 1024, 16384, 1, 16, 256, 4096];

pub const NAGLE: Arm = sockets("nagle");
const NODELAY: Arm = sockets("nodelay");
pub const SCTP: Arm = streams("sctp");

pub fn works() -> impl Iterator<Item = Pair> {
    SIZES.into_iter().map(sized).chain([trips()])
}

fn sized(size: usize) -> Pair {
    let ways = vec![
        Way::both(NAGLE, "tcp"),
        Way::both(NODELAY, "tcp").with(&["--nodelay"]),
        rival(),
        Way::both(UNIX, "unix"),
        Way::both(SCTP, "/dev/sctp_t"),
        Way::both(SCTP_MORE, "/dev/sctp_t").with(&["--more"]),
        programs::shared(),
        programs::shared_bytes(),
    ];
    flow::flow("shm", size, ways)
}

fn trips() -> Pair {
    let ways = vec![
        Way::both(TCP, "tcp").with(&["--nodelay"]),
        Way::both(UNIX, "unix"),
        Way::both(SCTP, "/dev/sctp_t"),
        programs::shared(),
    ];
    Pair {
        placements: &Placement::ALL,
        ..Pair::new("rr-1".to_string(), "trips", Unit::RoundTrip, 1, ways)
    }
}
