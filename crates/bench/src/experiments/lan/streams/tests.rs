use super::*;

#[test]
fn a_counted_run_of_a_quarter_of_the_time_sends_a_quarter() {
    let of = |ms| counted(4096, Duration::from_millis(ms));
    assert_eq!((of(250), of(1000), of(9000)), (4096, 16_384, 16_384));
    assert_eq!(4 * counted(65536, Duration::from_millis(25)), 204);
}

#[test]
fn a_run_of_ttcp_is_neither_short_nor_endless() {
    assert_eq!(buffers(1), 131_072);
    assert_eq!(buffers(4096), 16_384);
    assert_eq!(buffers(65536), 2048);
}
