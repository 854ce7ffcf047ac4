//! A byte there and back, and connections one after the other.

use super::pair::{End, Pair, Way};
use super::{EVEN, UNDISTURBED, rate};
use crate::experiment::{Arm, Goal, TCP, UNIX, Unit, shared, streams};
use crate::placement::Placement::{self, Apart, ApartBusy, Same, SameBusy};

const TICOTSORD: Arm = streams("ticotsord");
/// Both ends on /dev/tcp, which shared memory carries.
const XTI_TCP: Arm = shared("xti-tcp");

pub fn works() -> Vec<Pair> {
    vec![round_trips(), connects()]
}

fn pair(name: &str, work: &'static str, unit: Unit, ways: Vec<Way>, goals: Vec<Goal>) -> Pair {
    Pair {
        name: name.to_string(),
        work,
        unit,
        size: 1,
        ways,
        goals,
        placements: &Placement::ALL,
        stretch: 1,
    }
}

fn ways() -> [Way; 3] {
    [
        Way::both(TCP, "tcp").with(&["--nodelay"]),
        Way::both(UNIX, "unix"),
        Way::both(TICOTSORD, "/dev/ticotsord"),
    ]
}

fn over_tcp(placements: &'static [Placement], must: f64) -> Goal {
    rate(TICOTSORD, TCP, placements, must, None)
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
    let goals = vec![
        over_tcp(&[Apart], 20.0),
        over_tcp(&[Same], 2.5),
        over_tcp(&[SameBusy, ApartBusy], EVEN),
    ];
    pair("rr-1", "trips", Unit::RoundTrip, ways, goals)
}

fn connects() -> Pair {
    let goals = vec![over_tcp(UNDISTURBED, 1.0)];
    Pair {
        placements: UNDISTURBED,
        ..pair("connect", "connects", Unit::Rate, ways().to_vec(), goals)
    }
}
