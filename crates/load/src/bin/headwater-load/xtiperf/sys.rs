//! What the standard library does not offer: clocks, and accounts of processes.

use std::fs;
use std::ops::Sub;

use crate::sys::clock_ns;

/// CPU time of all threads, and context switches of the first one.
#[derive(Clone, Copy, Default)]
pub struct Used {
    pub cpu_ns: u64,
    pub voluntary: u64,
    pub involuntary: u64,
}

impl Used {
    /// By this process and another one.
    pub fn with(other: i32) -> Used {
        let mine = std::process::id() as i32;
        let [(voluntary, involuntary), (others, forced)] = [mine, other].map(switches);
        Used {
            cpu_ns: cpu_ns(mine) + cpu_ns(other),
            voluntary: voluntary + others,
            involuntary: involuntary + forced,
        }
    }
}

impl Sub for Used {
    type Output = Used;

    fn sub(self, earlier: Used) -> Used {
        Used {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

/// The monotonic clock, which all processes share.
#[inline]
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

fn cpu_ns(pid: i32) -> u64 {
    let mut clock = 0;
    // SAFETY: the pointer outlives the call.
    match unsafe { libc::clock_getcpuclockid(pid, &mut clock) } {
        0 => clock_ns(clock),
        _ => 0,
    }
}

/// Voluntary and involuntary ones.
fn switches(pid: i32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let count = |name: &str| -> u64 {
        let of = |line: &str| line.strip_prefix(name)?.trim().parse().ok();
        status.lines().find_map(of).unwrap_or(0)
    };
    (
        count("voluntary_ctxt_switches:"),
        count("nonvoluntary_ctxt_switches:"),
    )
}
