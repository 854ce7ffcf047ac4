use super::*;
use crate::verdict::Verdict;

#[test]
fn a_difference_has_a_sign_and_the_unit_of_its_cost() {
    let comparison = |metric, more| Comparison {
        arm: "accelerated".to_string(),
        against: "native".to_string(),
        metric,
        pairs: 15,
        figure: Figure::More(more),
        low: -more,
        high: more * 2.0,
        coverage: 0.96,
        must: Some(more),
        aim: None,
        verdict: Verdict::Must,
    };
    assert_eq!(
        sentence(&comparison(Metric::Time, 3e6)),
        "time of accelerated over native: +3.00 ms [-3.00 ms to +6.00 ms], must ≤ +3.00 ms: must"
    );
    let shown = |metric, more| shown_as(&comparison(metric, more), more);
    assert_eq!(shown(Metric::CpuShare, 0.05), "+5.00 %");
    assert_eq!(shown(Metric::Memory, -65536.0), "-64.0 KiB");
    assert_eq!(shown(Metric::Time, 0.0), "+0 ns");
}
