use super::*;

#[test]
fn ranges_are_joined_and_subtracted() {
    let mut ranges = vec![(8, 9), (1, 3), (3, 5), (2, 4), (10, 12)];
    normalize(&mut ranges);
    assert_eq!(ranges, [(1, 5), (8, 9), (10, 12)]);
    let mut left = Vec::new();
    difference(&ranges, &[(0, 2), (3, 4), (8, 11), (20, 21)], |a, b| {
        left.push((a, b))
    });
    assert_eq!(left, [(2, 3), (4, 5), (11, 12)]);
}

#[test]
fn places_do_not_wrap() {
    let out = Outstanding::new(Tsn(1));
    assert_eq!(out.place(Tsn(0)) + 1, out.first());
    assert_eq!(out.place(Tsn(u32::MAX)) + 2, out.first());
    let mut out = Outstanding::new(Tsn(u32::MAX));
    assert_eq!(out.place(Tsn(3)), out.first() + 4);
    let before = out.first();
    for next in [3, 1 << 31, 2, 2, u32::MAX] {
        out.rename(Tsn(next));
        assert_eq!(out.first() as u32, next);
    }
    assert!(out.first() > before, "nor do they come again");
}
