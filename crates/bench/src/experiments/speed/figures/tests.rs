use super::*;

#[test]
fn a_threshold_is_where_a_share_is_reached_for_good() {
    let points = [
        (64.0, 0.1),
        (256.0, 0.92),
        (1024.0, 0.5),
        (4096.0, 0.9),
        (16384.0, 0.97),
    ];
    assert_eq!(threshold(&points, 0.9), Some(4096.0));
    assert_eq!(threshold(&points, 0.05), Some(64.0));
    assert_eq!(threshold(&points, 0.99), None);
    assert_eq!(threshold(&[], 0.9), None);
}
