use super::*;

#[test]
fn a_limit_reaches_to_the_end_at_most() {
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    assert_eq!(bounded(second, None), second);
    assert_eq!(bounded(second, Some(now + second * 1000)), second);
    assert!(bounded(second * 1000, Some(now + second)) <= second);
    assert_eq!(bounded(second, Some(now)), Duration::ZERO);
}
