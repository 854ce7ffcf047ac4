//! Runs as they might be, built by hand: a plausible one, one without gaps, a hostile one, an empty one.

mod experiments;
mod full;
mod hostile;
mod parts;

use headwater_bench::data::*;

use experiments::*;
pub use full::full;
pub use hostile::hostile;
use parts::*;

pub const STARTED: u64 = 1_795_300_000;

pub fn machine() -> Machine {
    Machine {
        cpu: "Example CPU 7B13".to_string(),
        kernel: "6.1.0-18-amd64".to_string(),
        cpus: vec![0, 1],
        one_core: Some(false),
        governor: Some("performance".to_string()),
        idle_driver: Some("haltpoll".to_string()),
        hypervisor: Some("KVM".to_string()),
        mitigations: [("meltdown".to_string(), "not affected".to_string())].into(),
        memory_bytes: Some(8 << 30),
        congestion: "cubic".to_string(),
        own_network: true,
        load: 0.25,
        version: "0.1.0".to_string(),
        calibration: Calibration {
            cache_line_ns: Some(120.0),
            syscall_ns: Some(95.0),
            clock_ns: Some(22.0),
            wake_ns: Some(31_000.0),
            copy_cached: Some(60e9),
            copy_memory: Some(9e9),
        },
    }
}

pub fn empty() -> Run {
    Run::new("headwater bench pipe", STARTED, &machine())
}

/// What a full run could look like.
pub fn plausible() -> Run {
    Run {
        finished: Some(STARTED + 5_942),
        complete: true,
        rounds: 15,
        seconds_per_sample: 0.4,
        experiments: vec![pipe(), tcp(), lan(), apps()],
        skipped: vec![
            skipped(
                "speed/reserved-cpu",
                "it needs three CPUs; this machine has 2",
            ),
            skipped("apps/pgbench", "pgbench is not there: install postgresql"),
        ],
        disturbed_rounds: 3,
        command: "headwater bench --out headwater-results".to_string(),
        ..empty()
    }
}

fn skipped(name: &str, why: &str) -> Skipped {
    Skipped {
        name: name.to_string(),
        why: why.to_string(),
    }
}
