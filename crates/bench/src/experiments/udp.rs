//! Datagrams of every size: plain sockets in all their ways, XTI over the kernel's UDP, the loop-back provider and /dev/udp2.
//! What counts is what arrives.

use super::ranges::{self, Beside};
use super::tcp::SIZES;
use super::work::{Works, boxed};
use super::xti::flow::highest;
use super::xti::pair::{Pair, Way};
use super::xti::{EVEN, UNDISTURBED, more, rate, sockets};
use crate::conclusion::Conclusion;
use crate::experiment::{Arm, Metric, Unit, shared, streams};
use crate::placement::Placement::Apart;
use crate::report::CellReport;
use crate::{sizes, tables};

const WORK: &str = "udp";
/// Up to here many datagrams go together.
const SMALL: usize = 1024;
/// How much greater a share may be lost where the kernel carries: half a percent.
const LOSS: f64 = 0.005;

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
    Works::new("udp", boxed(SIZES.map(datagrams)), |_| &[Apart], conclude)
}

fn datagrams(size: usize) -> Pair {
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
    if may_make_packets() {
        ways.push(Way::both(RAW, "/dev/udp2").under(BY_RAW));
    }
    let over = |arm, against, must| rate(arm, against, UNDISTURBED, must, None);
    let lost = |arm, against| more(arm, against, Metric::Loss, UNDISTURBED, LOSS);
    let shared = if size <= SMALL { 8.0 } else { 1.0 };
    let to_plain = if size <= SMALL { 1.2 } else { EVEN };
    let goals = vec![
        over(SHARED, SOCKETS, shared),
        over(KERNEL, XTI, EVEN),
        lost(KERNEL, XTI),
        over(TO_PLAIN, SOCKETS, to_plain),
        lost(TO_PLAIN, SOCKETS),
        over(XTI, SOCKETS, EVEN),
        over(TICLTS, SOCKETS, EVEN),
    ];
    Pair {
        name: format!("{WORK}-{size}"),
        work: "datagrams",
        unit: Unit::Datagrams,
        size,
        ways,
        goals,
        placements: UNDISTURBED,
        stretch: 1,
    }
}

fn may_make_packets() -> bool {
    // SAFETY: a plain system call.
    unsafe { libc::geteuid() == 0 }
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    const TITLE: &str = "UDP";
    let beside = [(0, SOCKETS), (1, XTI), (2, SHARED)];
    let beside = beside.map(|(column, arm)| Beside { column, arm });
    let mut sheets = sizes::sheets(cells, WORK, TITLE);
    sheets.push(ranges::UDP.sheet());
    Conclusion {
        plots: sizes::four(cells, WORK, TITLE, SOCKETS.name),
        sheets,
        seeds: ranges::UDP.seeds(cells, WORK, &beside),
        headlines: tables::headlines("udp", cells),
        ..Conclusion::default()
    }
}
