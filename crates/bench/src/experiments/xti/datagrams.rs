//! Datagrams: over the kernel's UDP, to our own end and to a plain one, in runs of one size and not; and over ticlts.

use super::pair::{Pair, Way};
use super::{sizes, sockets};
use crate::experiment::{Arm, UNIX, Unit, streams};

const LARGEST: usize = 1024;

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

pub fn datagrams(name: &str, size: usize, ways: Vec<Way>) -> Pair {
    Pair::new(
        format!("{name}-{size}"),
        "datagrams",
        Unit::Datagrams,
        size,
        ways,
    )
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
    datagrams("udp", size, ways)
}

fn clts(size: usize) -> Pair {
    const LOSSLESS: &[&str] = &["--lossless"];
    let ways = vec![
        Way::both(UDP, "udp"),
        Way::both(UNIX, "unix").with(LOSSLESS),
        // Where anything is lost there is no sample.
        Way::both(TICLTS, "/dev/ticlts").with(LOSSLESS),
    ];
    datagrams("clts", size, ways)
}
