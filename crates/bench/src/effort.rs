//! How much is measured.

use std::env;
use std::time::Duration;

use crate::select::Extent;

/// How long and how often.
#[derive(Clone, Copy)]
pub struct Effort {
    pub extent: Extent,
    pub pairs: usize,
    pub time: Duration,
    /// Whether a cell that looks bad is measured once more.
    pub rerun: bool,
    /// Whether system calls are counted in runs of their own.
    pub count: bool,
    /// Failed samples after which an arm is given up in a cell.
    pub failures: usize,
}

impl Effort {
    /// HEADWATER_BENCH_PAIRS and HEADWATER_BENCH_SECONDS stand for what is not said.
    pub fn new(extent: Extent, rounds: Option<usize>, seconds: Option<f64>) -> Effort {
        let quick = extent == Extent::Quick;
        let number = |name: &str| {
            let value = env::var(name).ok()?.parse::<f64>().ok();
            value.filter(|n| *n > 0.0)
        };
        let seconds = seconds.or_else(|| number("HEADWATER_BENCH_SECONDS"));
        let seconds = seconds.unwrap_or(if quick { 0.1 } else { 0.4 });
        let rounds = rounds.or_else(|| number("HEADWATER_BENCH_PAIRS").map(|n| n as usize));
        Effort {
            extent,
            pairs: rounds.unwrap_or(if quick { 5 } else { 7 }).max(1),
            time: Duration::from_secs_f64(seconds.min(60.0)),
            rerun: !quick,
            count: true,
            failures: 2,
        }
    }
}
