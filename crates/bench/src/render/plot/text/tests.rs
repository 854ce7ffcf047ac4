use super::*;

#[test]
fn lines_are_no_wider_than_allowed() {
    let text =
        "messages of all sizes through STREAMS pipes, averylongwordthatcannotbebrokenanywhereatall";
    let lines = wrap(text, 12.0, 150.0);
    assert!(lines.len() > 2);
    assert!(
        lines.iter().all(|line| width(line, 12.0) <= 150.0),
        "{lines:?}"
    );
    assert!(wrap("", 12.0, 100.0).is_empty());
}

#[test]
fn labels_that_would_overlap_move_apart() {
    assert_eq!(spread(&[10.0, 50.0], 14.0, 0.0, 100.0), [10.0, 50.0]);
    assert_eq!(
        spread(&[52.0, 50.0, 51.0], 14.0, 0.0, 100.0),
        [78.0, 50.0, 64.0]
    );
    assert_eq!(spread(&[99.0, 98.0], 14.0, 0.0, 100.0), [100.0, 86.0]);
}
