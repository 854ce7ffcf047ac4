//! One way: small sends over TCP to a plain receiver, the same over ticotsord, and how long a lone byte is held back.

use super::pair::{Pair, Way};
use super::{EVEN, UNDISTURBED, more, rate, sizes, sockets};
use crate::experiment::{Arm, Goal, Metric, UNIX, Unit, shared, streams};
use crate::placement::Placement::{self, Apart, Free, Same};

const LARGEST: usize = 16384;
/// Where small messages are gathered.
const SMALL: usize = 256;

pub const NAGLE: Arm = sockets("nagle");
pub const NODELAY: Arm = sockets("nodelay");
pub const XTI: Arm = streams("xti");
pub const XTI_NODELAY: Arm = streams("xti-nodelay");
/// As two programs with the library have it.
pub const XTI_SHARED: Arm = shared("xti-shm");
pub const TICOTSORD: Arm = streams("ticotsord");

pub const PLAIN: [Way; 2] = [
    Way::both(NAGLE, "tcp"),
    Way::both(NODELAY, "tcp").with(&["--nodelay"]),
];

pub fn works() -> Vec<Pair> {
    let tcp = sizes(LARGEST).map(tcp);
    let carried = sizes(LARGEST).map(carried);
    let cots = sizes(LARGEST).map(cots);
    tcp.chain(carried)
        .chain(cots)
        .chain([lone(false), lone(true)])
        .collect()
}

pub fn flow(name: &str, size: usize, ways: Vec<Way>, goals: Vec<Goal>) -> Pair {
    Pair {
        name: format!("{name}-{size}"),
        work: "flow",
        unit: Unit::Messages,
        size,
        ways,
        goals,
        placements: UNDISTURBED,
        stretch: 1,
    }
}

fn tcp(size: usize) -> Pair {
    let rival = rival();
    let mut ways = PLAIN.to_vec();
    ways.extend([
        Way::new(XTI, "/dev/tcp", "tcp"),
        Way::new(XTI_NODELAY, "/dev/tcp", "tcp").with(&["--nodelay"]),
        rival,
    ]);
    let over = |against, must, aim: Option<f64>| rate(XTI, against, UNDISTURBED, must, aim);
    let mut goals = match size {
        ..=SMALL => vec![
            over(NAGLE, 2.0, Some(4.0)),
            over(NODELAY, 8.0, Some(20.0)),
            over(rival.arm, 1.0, None),
        ],
        _ => vec![over(NAGLE, 1.0, None), over(NODELAY, 1.0, None)],
    };
    goals.push(rate(XTI_NODELAY, NODELAY, UNDISTURBED, EVEN, None));
    flow("tcp", size, ways, goals)
}

/// Both ends on /dev/tcp: what shared memory carries is to be no slower than the same over the kernel's TCP, nor than sockets.
fn carried(size: usize) -> Pair {
    let mut ways = PLAIN.to_vec();
    ways.extend([
        Way::both(XTI, "/dev/tcp").by_kernel(),
        Way::both(XTI_SHARED, "/dev/tcp"),
    ]);
    let over = |against, must| rate(XTI_SHARED, against, UNDISTURBED, must, None);
    let goals = vec![over(XTI, EVEN), over(NAGLE, 1.0), over(NODELAY, 1.0)];
    flow("carried", size, ways, goals)
}

/// Plain TCP whose sender has the highest priority and whose receiver the lowest, as far as we may say so.
pub fn rival() -> Way {
    let (name, nice) = highest();
    Way::both(sockets(name), "tcp").at(nice, 19)
}

/// The highest priority that we may give, and what an arm is called that has it and the lowest.
pub fn highest() -> (&'static str, i32) {
    match may_raise() {
        true => ("prio-20-19", -20),
        false => ("prio-0-19", 0),
    }
}

/// Whether this process has CAP_SYS_NICE.
fn may_raise() -> bool {
    const SYS_NICE: u32 = 23;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let has = status.lines().find_map(|line| {
        let bits = line.strip_prefix("CapEff:")?.trim();
        Some(u64::from_str_radix(bits, 16).ok()? >> SYS_NICE & 1 == 1)
    });
    has.unwrap_or(false)
}

fn cots(size: usize) -> Pair {
    let mut ways = PLAIN.to_vec();
    ways.extend([
        Way::both(UNIX, "unix"),
        Way::both(TICOTSORD, "/dev/ticotsord"),
    ]);
    const BOTH: &[Placement] = &[Apart, Same];
    let over = |against, placements, must| rate(TICOTSORD, against, placements, must, None);
    let goals = match size {
        ..=SMALL => vec![
            over(NAGLE, &[Apart], 4.0),
            over(NODELAY, &[Apart], 15.0),
            over(NAGLE, &[Same], 2.0),
            over(NODELAY, &[Same], 7.5),
            over(NAGLE, &[Free], EVEN),
        ],
        1024 => vec![over(NAGLE, BOTH, 2.0), over(NAGLE, &[Free], EVEN)],
        LARGEST => vec![over(NAGLE, BOTH, 1.0), over(NAGLE, &[Free], EVEN)],
        _ => vec![over(NAGLE, UNDISTURBED, EVEN)],
    };
    flow("cots", size, ways, goals)
}

/// A byte after a silence; the sender waits or computes afterwards.
fn lone(computing: bool) -> Pair {
    const WORDS: [&[&str]; 2] = [&[], &["--computing"]];
    const NODELAY_WORDS: [&[&str]; 2] = [&["--nodelay"], &["--nodelay", "--computing"]];
    let words = WORDS[computing as usize];
    let held = |metric, most| more(XTI, NODELAY, metric, UNDISTURBED, most);
    let mut goals = vec![held(Metric::P50Time, 100e3)];
    if !computing {
        // A machine that computes is not idle: there the scheduler decides about the last percent.
        goals.push(held(Metric::P99Time, 1e6));
    }
    Pair {
        name: if computing {
            "tcp-lone-computing"
        } else {
            "tcp-lone"
        }
        .to_string(),
        work: "lone",
        unit: Unit::Delay,
        size: 1,
        ways: vec![
            PLAIN[0].with(words),
            PLAIN[1].with(NODELAY_WORDS[computing as usize]),
            Way::new(XTI, "/dev/tcp", "tcp").with(words),
        ],
        goals,
        placements: UNDISTURBED,
        // Two hundred bytes a second.
        stretch: 4,
    }
}
