//! Datagrams: over the kernel's UDP, to our own end and to a plain one, in runs of one size and not; and over ticlts.

use super::pair::{Pair, Way};
use super::{UNDISTURBED, more, rate, sizes, sockets};
use crate::experiment::{Arm, Goal, Metric, UNIX, Unit, streams};

const LARGEST: usize = 1024;
const SMALL: usize = 256;
/// How much greater a share may be lost: half a percent.
const LOSS: f64 = 0.005;

pub const SOCKETS: Arm = sockets("sockets");
pub const SOCKETS_MIXED: Arm = sockets("sockets-mixed");
pub const XTI: Arm = streams("xti");
pub const XTI_TO_PLAIN: Arm = streams("xti-to-plain");
pub const XTI_MIXED: Arm = streams("xti-mixed");
pub const UDP: Arm = sockets("udp");
pub const TICLTS: Arm = streams("ticlts");

pub fn works() -> Vec<Pair> {
    sizes(LARGEST)
        .map(udp)
        .chain(sizes(LARGEST).map(clts))
        .collect()
}

fn datagrams(name: &str, size: usize, ways: Vec<Way>, goals: Vec<Goal>) -> Pair {
    Pair {
        name: format!("{name}-{size}"),
        work: "datagrams",
        unit: Unit::Datagrams,
        size,
        ways,
        goals,
        placements: UNDISTURBED,
        stretch: 1,
    }
}

fn udp(size: usize) -> Pair {
    const MIXED: &[&str] = &["--mixed"];
    let ways = vec![
        Way::both(SOCKETS, "udp"),
        Way::both(XTI, "/dev/udp"),
        Way::new(XTI_TO_PLAIN, "/dev/udp", "udp"),
        Way::both(SOCKETS_MIXED, "udp").with(MIXED),
        Way::both(XTI_MIXED, "/dev/udp").with(MIXED),
    ];
    let over = |arm, against, must| rate(arm, against, UNDISTURBED, must, None);
    let lost = |arm, against| more(arm, against, Metric::Loss, UNDISTURBED, LOSS);
    let goals = vec![
        over(XTI, SOCKETS, 3.0),
        over(XTI_TO_PLAIN, SOCKETS, 1.2),
        over(XTI_MIXED, SOCKETS_MIXED, 1.0),
        lost(XTI, SOCKETS),
        lost(XTI_TO_PLAIN, SOCKETS),
        lost(XTI_MIXED, SOCKETS_MIXED),
    ];
    datagrams("udp", size, ways, goals)
}

fn clts(size: usize) -> Pair {
    const LOSSLESS: &[&str] = &["--lossless"];
    let ways = vec![
        Way::both(UDP, "udp"),
        Way::both(UNIX, "unix").with(LOSSLESS),
        // Where anything is lost there is no sample.
        Way::both(TICLTS, "/dev/ticlts").with(LOSSLESS),
    ];
    let must = if size <= SMALL { 8.0 } else { 5.0 };
    let goals = vec![rate(TICLTS, UDP, UNDISTURBED, must, None)];
    datagrams("clts", size, ways, goals)
}
