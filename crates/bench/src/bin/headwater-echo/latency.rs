//! A histogram of times: 128 buckets for each power of two, so that a percentile is right within one per cent.

use std::time::Duration;

const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;

pub struct Latency {
    buckets: Vec<u64>,
    count: u64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency {
            buckets: vec![0; ((64 - SUB_BITS + 1) as usize) << SUB_BITS],
            count: 0,
        }
    }
}

impl Latency {
    #[inline]
    pub fn record(&mut self, time: Duration) {
        self.buckets[bucket(time.as_nanos() as u64)] += 1;
        self.count += 1;
    }

    pub fn add(&mut self, other: &Latency) {
        self.count += other.count;
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
    }

    /// The time in nanoseconds below which `share` of the records lie; 0 when there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if count > 0 && seen >= rank {
                return middle(index as u64);
            }
        }
        0
    }
}

#[inline]
fn bucket(ns: u64) -> usize {
    let shift = (64 - (ns | SUB).leading_zeros()) - SUB_BITS - 1;
    (((shift as u64) << SUB_BITS) + (ns >> shift)) as usize
}

fn middle(bucket: u64) -> u64 {
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    let low = (bucket - (shift << SUB_BITS)) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_one_per_cent() {
        let mut latency = Latency::default();
        for ns in 1..=100_000u64 {
            latency.record(Duration::from_nanos(ns));
        }
        for (share, ns) in [(0.5, 50_000.0), (0.99, 99_000.0), (0.001, 100.0)] {
            let found = latency.quantile(share) as f64;
            assert!((found - ns).abs() <= ns * 0.01, "{found} for {ns}");
        }
    }

    #[test]
    fn any_time_has_a_bucket() {
        let mut latency = Latency::default();
        latency.record(Duration::ZERO);
        assert_eq!(latency.quantile(1.0), 0);
        latency.record(Duration::from_nanos(u64::MAX));
        assert!(latency.quantile(1.0) > u64::MAX / 2);
    }

    #[test]
    fn nothing_recorded_is_zero() {
        assert_eq!(Latency::default().quantile(0.99), 0);
    }
}
