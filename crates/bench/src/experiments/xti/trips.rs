//! A byte there and back, and connections one after the other.

use super::pair::{End, Pair, Way};
use crate::experiment::{Arm, TCP, UNIX, Unit, shared, streams};
use crate::placement::Placement;

const TICOTSORD: Arm = streams("ticotsord");
/// Both ends on /dev/tcp, which shared memory carries.
const XTI_TCP: Arm = shared("xti-tcp");

pub fn works() -> Vec<Pair> {
    vec![round_trips(), connects()]
}

fn ways() -> [Way; 3] {
    [
        Way::both(TCP, "tcp").with(&["--nodelay"]),
        Way::both(UNIX, "unix"),
        Way::both(TICOTSORD, "/dev/ticotsord"),
    ]
}

fn round_trips() -> Pair {
    let mut ways = ways().to_vec();
    let end = End {
        shared: true,
        ..End::new("/dev/tcp")
    };
    ways.push(Way {
        sender: end,
        receiver: end,
        ..Way::both(XTI_TCP, "/dev/tcp").with(&["--nodelay"])
    });
    Pair {
        placements: &Placement::ALL,
        ..Pair::new("rr-1".to_string(), "trips", Unit::RoundTrip, 1, ways)
    }
}

fn connects() -> Pair {
    Pair::new(
        "connect".to_string(),
        "connects",
        Unit::Rate,
        1,
        ways().to_vec(),
    )
}
