//! The line of JSON that a run ends with.

use std::mem;
use std::time::Duration;

#[derive(Default)]
pub struct Measured {
    pub messages: u64,
    /// With the warm-up.
    pub all_messages: u64,
    pub time: Duration,
    /// For `messages`.
    pub used: Used,
}

impl Measured {
    pub fn line(&self, size: usize) -> String {
        format!(
            "{{\"messages\":{},\"all_messages\":{},\"seconds\":{:.9},\"bytes\":{},\"cpu_ns\":{},\"switches\":{}}}",
            self.messages,
            self.all_messages,
            self.time.as_secs_f64(),
            self.messages * size as u64,
            self.used.cpu_ns,
            self.used.switches,
        )
    }
}

/// CPU time and context switches of this process and of the children it has waited for.
#[derive(Clone, Copy, Default)]
pub struct Used {
    cpu_ns: u64,
    switches: u64,
}

impl Used {
    pub fn so_far() -> Used {
        let mut used = Used::default();
        for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
            // SAFETY: rusage is plain integers, filled by the call.
            let usage = unsafe {
                let mut usage: libc::rusage = mem::zeroed();
                libc::getrusage(who, &mut usage);
                usage
            };
            for time in [usage.ru_utime, usage.ru_stime] {
                used.cpu_ns += time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
            }
            used.switches += (usage.ru_nvcsw + usage.ru_nivcsw) as u64;
        }
        used
    }

    pub fn since(self, earlier: Used) -> Used {
        Used {
            cpu_ns: self.cpu_ns - earlier.cpu_ns,
            switches: self.switches - earlier.switches,
        }
    }

    /// The part of it that falls on `some` of `all`.
    pub fn scaled(self, some: u64, all: u64) -> Used {
        let part = |value: u64| (value as f64 * some as f64 / all.max(1) as f64) as u64;
        Used {
            cpu_ns: part(self.cpu_ns),
            switches: part(self.switches),
        }
    }
}
