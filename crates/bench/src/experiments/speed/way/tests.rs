use super::*;

#[test]
fn a_sample_is_per_message_and_the_cpu_that_of_both_ends() {
    let line = r#"{"messages":1000,"all_messages":1200,"seconds":0.5,"bytes":70000,
            "loopback_bytes":50000,"user_ns":300000000,
            "system_ns":400000000,"voluntary":2000,"involuntary":10,"latencies":{"round_trip":{"count":1000,
            "min_ns":1.0,"mean_ns":2.0,"p50_ns":2.0,"p90_ns":3.0,"p99_ns":4.0,"p999_ns":5.0,"max_ns":6.0}}}"#;
    let told: Timed = parse("it", &line.replace('\n', " ")).unwrap();
    let sample = told.sample();
    assert_eq!((sample.rate, sample.bytes_rate), (2000.0, Some(140_000.0)));
    assert_eq!(sample.user_ns, Some(300_000.0));
    assert_eq!(
        (sample.voluntary, sample.involuntary),
        (Some(2.0), Some(0.01))
    );
    assert_eq!(sample.loopback_bytes, Some(60_000));
    assert_eq!(sample.cpu_share, Some(1.4));
    assert_eq!((sample.p50_ns, sample.p99_ns), (Some(2.0), Some(4.0)));
}

#[test]
fn a_failure_says_what_it_means() {
    let ended = |said: &str| plain(Failure::Ended(NAME.to_string(), said.to_string()));
    let missing =
        ended("headwater-load speed: no permission for SCHED_FIFO, which root has: EPERM");
    assert_eq!(
        missing.to_string(),
        "what this takes (no permission for SCHED_FIFO, which root has: EPERM) is not there"
    );
    assert!(matches!(ended("it died"), Failure::Ended(..)));
}
