//! Datagrams of every size: plain sockets in all their ways, XTI over the kernel's UDP, the loop-back provider and /dev/udp2.
//! What counts is what arrives.

use rustix::process::geteuid;

use super::ranges;
use super::tcp::SIZES;
use super::work::{Works, boxed};
use super::xti::flow::highest;
use super::xti::pair::{Pair, Way};
use super::xti::{datagrams, sockets};
use crate::cells::CellReport;
use crate::conclusion::Conclusion;
use crate::experiment::{Arm, shared, streams};

const WORK: &str = "udp";

const SOCKETS: Arm = sockets("sockets");
const MANY: Arm = sockets("mmsg");
const BATCHED: Arm = sockets("batched");
const XTI: Arm = streams("xti-udp");
const TICLTS: Arm = streams("ticlts");
const SHARED: Arm = shared("udp2");
const KERNEL: Arm = streams("udp2-kernel");
const TO_PLAIN: Arm = streams("udp2-to-plain");
const RAW: Arm = streams("udp2-raw");

const LOSSLESS: &[&str] = &["--lossless"];
const BY_KERNEL: &[(&str, &str)] = &[("HEADWATER_UDP2_LINK", "udp")];
const BY_RAW: &[(&str, &str)] = &[("HEADWATER_UDP2_LINK", "raw")];

pub fn experiment() -> Works {
    Works::new("udp", boxed(SIZES.map(of_size)), conclude)
}

fn of_size(size: usize) -> Pair {
    let (name, nice) = highest();
    let mut ways = vec![
        Way::both(SOCKETS, "udp"),
        Way::both(sockets(name), "udp").at(nice, 19),
        Way::both(MANY, "udp-mmsg"),
        Way::both(BATCHED, "udp-batched"),
        Way::both(XTI, "/dev/udp"),
        // Where anything is lost there is no sample.
        Way::both(TICLTS, "/dev/ticlts").with(LOSSLESS),
        Way::both(SHARED, "/dev/udp2").with(LOSSLESS),
        Way::both(KERNEL, "/dev/udp2").under(BY_KERNEL),
        Way::new(TO_PLAIN, "/dev/udp2", "udp"),
    ];
    // Who may make packets.
    if geteuid().is_root() {
        ways.push(Way::both(RAW, "/dev/udp2").under(BY_RAW));
    }
    datagrams::datagrams(WORK, size, ways)
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    ranges::UDP.conclude(cells, WORK, &[(0, SOCKETS), (1, XTI), (2, SHARED)])
}
