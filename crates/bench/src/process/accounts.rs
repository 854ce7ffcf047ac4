//! What processes have used so far, and who belongs to whom, from /proc and the CPU clocks.

use std::fs;

use rustix::param::clock_ticks_per_second;

/// A process and its descendants.
pub fn family(pid: i32) -> Vec<i32> {
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(&pid) = family.get(next) {
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            family.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            );
        }
    }
    family
}

/// CPU time so far, in nanoseconds; that of descendants who have ended and were waited for in steps of the kernel's clock tick.
pub fn cpu_ns(pid: i32) -> u64 {
    clock(pid) + waited_for(pid)
}

fn clock(pid: i32) -> u64 {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both pointers outlive the calls.
    let rc = unsafe {
        match libc::clock_getcpuclockid(pid, &mut clock) {
            0 => libc::clock_gettime(clock, &mut time),
            error => error,
        }
    };
    match rc {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => 0,
    }
}

/// CPU time of the descendants that a process has waited for.
fn waited_for(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let per_second = clock_ticks_per_second().max(1);
    waited_ticks(&stat) * (1_000_000_000 / per_second)
}

/// cutime and cstime of /proc/PID/stat, the 16th and the 17th field; the second is a name, in which anything may stand.
fn waited_ticks(stat: &str) -> u64 {
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return 0;
    };
    let field = |field: &str| field.parse::<u64>().unwrap_or(0);
    fields.split_whitespace().skip(13).take(2).map(field).sum()
}

pub fn resident(pid: i32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    proportional(&rollup)
}

/// The proportional set size in a rollup of /proc/PID/smaps, in bytes: each page divided by how often it is mapped.
fn proportional(rollup: &str) -> u64 {
    let kib = rollup.lines().find_map(|line| {
        let size = line.strip_prefix("Pss:")?.split_whitespace().next()?;
        size.parse::<u64>().ok()
    });
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests;
