use super::*;

const SPENT: &str =
    r#""user_ns":1000,"system_ns":3000,"voluntary":100,"involuntary":0,"verified":true"#;

fn driven(latency_count: u64) -> Driven {
    let latency = Latency {
        count: latency_count,
        p50_ns: 7.0,
        ..Latency::default()
    };
    let latency = serde_json::to_string(&latency).unwrap();
    let said = format!(
        r#"{{"messages":100,"all_messages":200,"seconds":0.5,"bytes":6400,"latency":{latency},"half_width":0.01,
               "congestion":"cubic","served":null,{SPENT}}}"#
    );
    serde_json::from_str(&said).unwrap()
}

#[test]
fn costs_are_those_of_both_ends_each_by_what_it_saw() {
    let served: Spent = serde_json::from_str(&format!("{{{SPENT}}}")).unwrap();
    let sample = driven(100).sample(&served, "round_trip").unwrap();
    assert_eq!((sample.rate, sample.bytes_rate), (200.0, Some(12_800.0)));
    assert_eq!((sample.user_ns, sample.system_ns), (Some(15.0), Some(45.0)));
    assert_eq!((sample.cpu_ns, sample.switches), (Some(60.0), Some(1.5)));
    assert_eq!(sample.p50_ns, Some(7.0));
    assert_eq!(sample.values[HALF_WIDTH], 0.01);
    assert_eq!(sample.latencies["round_trip"].count, 100);
}

#[test]
fn the_time_of_a_burst_is_not_that_of_a_message() {
    let served: Spent = serde_json::from_str(&format!("{{{SPENT}}}")).unwrap();
    let sample = driven(2).sample(&served, "burst").unwrap();
    assert_eq!(sample.p50_ns, None);
    let wrong = Spent {
        verified: Some(false),
        ..served
    };
    assert!(matches!(
        driven(2).sample(&wrong, "burst"),
        Err(Failure::Contents(_))
    ));
}
