use super::*;

#[test]
fn times_and_percentiles_are_read_from_the_log() {
    let line = |n: u64| format!("0 {n} {n} 0 1795307798 661241\n");
    let log: String = (1..=200).map(line).collect();
    let mut times = times(&format!("{log}0 7 half a li"));
    times.sort_unstable();
    assert_eq!(times.len(), 200);
    assert_eq!(percentile(&times, 0.5), Some(100_000.0));
    assert_eq!(percentile(&times, 0.99), Some(198_000.0));
    assert_eq!(percentile(&[], 0.5), None);
}

#[test]
fn long_runs_log_a_share() {
    assert_eq!(options(LOGGED).len(), 2);
    assert_eq!(options(4 * LOGGED)[2], "--sampling-rate=0.250000");
}
