use super::*;

#[test]
fn order_goes_on_over_the_wrap() {
    assert!(Tsn(u32::MAX).before(Tsn(0)));
    assert!(!Tsn(0).before(Tsn(u32::MAX)));
    assert_eq!(Tsn(u32::MAX).next(), Tsn(0));
    assert_eq!(Ssn(0).previous(), Ssn(u16::MAX));
    assert_eq!(Ssn(2).since(Ssn(u16::MAX)), 3);
    assert_eq!(Mid(u32::MAX).plus(2), Mid(1));
    assert_eq!(Mid(1).minus(2), Mid(u32::MAX));
}

#[test]
fn numbers_half_the_space_apart_have_no_order() {
    assert!(!Tsn(0).before(Tsn(1 << 31)));
    assert!(!Tsn(1 << 31).before(Tsn(0)));
    assert!(Tsn(0).before(Tsn((1 << 31) - 1)));
    assert!(!Ssn(0).at_most(Ssn(1 << 15)));
}

#[test]
fn every_pair_of_ssns_near_each_other_is_ordered_by_distance() {
    for start in [0u16, 1, 0x7fff, 0x8000, 0xfffe, 0xffff] {
        for step in 1..0x8000u16 {
            assert!(Ssn(start).before(Ssn(start).plus(step)));
            assert!(!Ssn(start).plus(step).at_most(Ssn(start)));
        }
    }
}
