//! /dev/udp2 against the sockets that do the same work, and against XTI over the kernel's UDP. What counts is what arrives.

use super::work::{Work, Works};
use super::xti::pair::{Pair, Way};
use super::xti::{EVEN, UNDISTURBED, more, rate, sockets};
use crate::experiment::{Arm, Metric, Unit, streams};

const SIZES: [usize; 7] = [1, 16, 64, 256, 512, 1024, 8192];
/// Up to here many datagrams go together.
const SMALL: usize = 1024;
/// How much greater a share may be lost where the kernel carries: half a percent.
const LOSS: f64 = 0.005;

const SOCKETS: Arm = sockets("sockets");
const BATCHED: Arm = sockets("batched");
const XTI: Arm = streams("xti-udp");
const SHARED: Arm = streams("udp2");
const KERNEL: Arm = streams("udp2-kernel");
const TO_PLAIN: Arm = streams("udp2-to-plain");
const RAW: Arm = streams("udp2-raw");

const LOSSLESS: &[&str] = &["--lossless"];
const BY_KERNEL: &[(&str, &str)] = &[("HEADWATER_UDP2_LINK", "udp")];
const BY_RAW: &[(&str, &str)] = &[("HEADWATER_UDP2_LINK", "raw")];

pub fn experiment() -> Works {
    Works {
        name: "udp",
        describe: "UDP of our own against sockets: shared memory within the host, the kernel, raw packets",
        works: SIZES
            .into_iter()
            .map(|size| Box::new(datagrams(size)) as Box<dyn Work>)
            .collect(),
    }
}

fn datagrams(size: usize) -> Pair {
    let mut ways = vec![
        Way::both(SOCKETS, "udp"),
        Way::both(BATCHED, "udp-batched"),
        Way::both(XTI, "/dev/udp"),
        // Where anything is lost there is no sample.
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
    ];
    Pair {
        name: format!("udp2-{size}"),
        work: "datagrams",
        unit: Unit::Datagrams,
        size,
        ways,
        goals,
        placements: UNDISTURBED,
        quick: matches!(size, 1 | 64 | 256 | 1024 | 8192),
        stretch: 1,
    }
}

fn may_make_packets() -> bool {
    // SAFETY: a plain system call.
    unsafe { libc::geteuid() == 0 }
}
