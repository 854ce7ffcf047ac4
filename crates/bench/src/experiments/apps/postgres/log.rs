//! pgbench's log of single transactions, of which it tells no percentiles itself.

use super::cluster::LOG;

/// About so many are logged of a run.
const LOGGED: u64 = 5000;

/// Each line costs pgbench some time, so of many transactions only some have one.
pub fn options(transactions: u64) -> Vec<String> {
    let prefix = LOG.trim_end_matches('.');
    let mut options = vec!["--log".to_string(), format!("--log-prefix={prefix}")];
    if transactions > LOGGED {
        let share = LOGGED as f64 / transactions as f64;
        options.push(format!("--sampling-rate={share:.6}"));
    }
    options
}

/// What transactions took, in nanoseconds. A line is client, transaction, microseconds, script, seconds and microseconds.
pub fn times(log: &str) -> Vec<u64> {
    let time = |line: &str| line.split(' ').nth(2)?.parse::<u64>().ok();
    log.lines().filter_map(time).map(|us| us * 1000).collect()
}

/// Of times in order; the least time that this share of them does not exceed.
pub fn percentile(sorted: &[u64], share: f64) -> Option<f64> {
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.max(1) - 1).map(|&ns| ns as f64)
}

#[cfg(test)]
mod tests;
