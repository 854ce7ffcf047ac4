//! How long each of many things took: an HdrHistogram while they happen, some of its figures afterwards.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

const LONGEST_NS: u64 = 60_000_000_000;
const DIGITS: u8 = 3;

/// Counts times by their length, 1 ns to 60 s, to three significant digits; longer ones count as 60 s.
#[derive(Clone, Debug)]
pub struct Recorder {
    histogram: Histogram<u64>,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

impl Recorder {
    pub fn new() -> Recorder {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Recorder {
            histogram: histogram.expect("these bounds can be told apart to three digits"),
        }
    }

    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.min(LONGEST_NS));
    }

    #[inline]
    pub fn record_time(&mut self, time: Duration) {
        self.record(time.as_nanos() as u64);
    }

    /// Adds what another one has recorded.
    pub fn merge(&mut self, other: &Recorder) {
        let added = self.histogram.add(&other.histogram);
        added.expect("all recorders have the same bounds");
    }

    /// The time in nanoseconds that `share` of the records did not exceed; 0 when there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        self.histogram.value_at_quantile(share)
    }

    /// Zeroes when nothing was recorded.
    pub fn latency(&self) -> Latency {
        let quantile = |share| self.quantile(share) as f64;
        let count = self.histogram.len();
        if count == 0 {
            return Latency::default();
        }
        Latency {
            count,
            min_ns: self.histogram.min() as f64,
            mean_ns: self.histogram.mean(),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: self.histogram.max() as f64,
        }
    }
}

/// What is left of a histogram, in nanoseconds. Programs print it as JSON.
#[derive(Clone, Copy, Default, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    pub min_ns: f64,
    pub mean_ns: f64,
    pub p50_ns: f64,
    pub p90_ns: f64,
    pub p99_ns: f64,
    pub p999_ns: f64,
    pub max_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(times: impl IntoIterator<Item = u64>) -> Recorder {
        let mut recorder = Recorder::new();
        times.into_iter().for_each(|ns| recorder.record(ns));
        recorder
    }

    fn close(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() <= 1e-3, "{found}, {wanted}");
    }

    #[test]
    fn figures_are_right_to_three_digits() {
        let found = recorded(1..=100_000).latency();
        assert_eq!((found.count, found.min_ns), (100_000, 1.0));
        close(found.mean_ns, 50_000.5);
        close(found.p50_ns, 50_000.0);
        close(found.p90_ns, 90_000.0);
        close(found.p99_ns, 99_000.0);
        close(found.p999_ns, 99_900.0);
        close(found.max_ns, 100_000.0);
    }

    #[test]
    fn any_time_is_counted() {
        let found = recorded([0, 1, u64::MAX]).latency();
        assert_eq!((found.count, found.min_ns, found.p50_ns), (3, 0.0, 1.0));
        close(found.max_ns, 60e9);
        let mut recorder = Recorder::new();
        recorder.record_time(Duration::MAX);
        close(recorder.quantile(0.5) as f64, 60e9);
    }

    #[test]
    fn nothing_recorded_is_zero() {
        assert_eq!(Recorder::new().latency(), Latency::default());
        assert_eq!(Recorder::new().quantile(0.99), 0);
    }

    #[test]
    fn two_recorders_add_up() {
        let mut both = recorded(1..=500);
        both.merge(&recorded(501..=1000));
        assert_eq!(both.latency(), recorded(1..=1000).latency());
        both.merge(&Recorder::new());
        assert_eq!(both.latency().count, 1000);
    }

    #[test]
    fn a_program_prints_it_and_another_reads_it() {
        let latency = recorded([10, 20, 30]).latency();
        let line = serde_json::to_string(&latency).unwrap();
        assert!(
            line.starts_with(r#"{"count":3,"min_ns":10.0,"mean_ns":20.0,"p50_ns":20.0"#),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<Latency>(&line).unwrap(), latency);
    }
}
