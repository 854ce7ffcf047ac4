use super::*;

#[test]
fn the_exit_status_tells_of_wrong_bytes() {
    assert_eq!(End::of(false, false).code(), 0);
    assert_eq!(End::of(false, true).code(), 1);
    assert_eq!(End::of(true, false).code(), 130);
}
