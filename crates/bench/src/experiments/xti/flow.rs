//! One way: small sends over TCP to a plain receiver, the same over ticotsord, and how long a lone byte is held back.

use super::pair::{Pair, Way};
use super::{sizes, sockets};
use crate::experiment::{Arm, UNIX, Unit, shared, streams};

const LARGEST: usize = 16384;

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

pub fn flow(name: &str, size: usize, ways: Vec<Way>) -> Pair {
    Pair::new(format!("{name}-{size}"), "flow", Unit::Messages, size, ways)
}

fn tcp(size: usize) -> Pair {
    let mut ways = PLAIN.to_vec();
    ways.extend([
        Way::new(XTI, "/dev/tcp", "tcp"),
        Way::new(XTI_NODELAY, "/dev/tcp", "tcp").with(&["--nodelay"]),
        rival(),
    ]);
    flow("tcp", size, ways)
}

/// Both ends on /dev/tcp.
fn carried(size: usize) -> Pair {
    let mut ways = PLAIN.to_vec();
    ways.extend([
        Way::both(XTI, "/dev/tcp").by_kernel(),
        Way::both(XTI_SHARED, "/dev/tcp"),
    ]);
    flow("carried", size, ways)
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
    flow("cots", size, ways)
}

/// A byte after a silence; the sender waits or computes afterwards.
fn lone(computing: bool) -> Pair {
    const WORDS: [&[&str]; 2] = [&[], &["--computing"]];
    const NODELAY_WORDS: [&[&str]; 2] = [&["--nodelay"], &["--nodelay", "--computing"]];
    let words = WORDS[computing as usize];
    let name = match computing {
        true => "tcp-lone-computing",
        false => "tcp-lone",
    };
    let ways = vec![
        PLAIN[0].with(words),
        PLAIN[1].with(NODELAY_WORDS[computing as usize]),
        Way::new(XTI, "/dev/tcp", "tcp").with(words),
    ];
    Pair {
        // Two hundred bytes a second.
        stretch: 4,
        ..Pair::new(name.to_string(), "lone", Unit::Delay, 1, ways)
    }
}
