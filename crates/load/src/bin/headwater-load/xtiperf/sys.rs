//! What the standard library does not offer: clocks, and accounts of processes.

use std::fs;

use crate::sys::{Usage, clock_ns};

/// CPU time of all threads, and context switches of the first one, of this process and another one together.
pub fn used_with(other: i32) -> Usage {
    used(std::process::id() as i32).plus(used(other))
}

fn used(pid: i32) -> Usage {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let count = |name: &str| -> u64 {
        let of = |line: &str| line.strip_prefix(name)?.trim().parse().ok();
        status.lines().find_map(of).unwrap_or(0)
    };
    Usage {
        user_ns: cpu_ns(pid),
        system_ns: 0,
        voluntary: count("voluntary_ctxt_switches:"),
        involuntary: count("nonvoluntary_ctxt_switches:"),
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
