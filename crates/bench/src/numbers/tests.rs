use super::*;

#[test]
fn figures_have_three_digits_and_a_fitting_unit() {
    let figures = [0.0, 0.0123, 0.9, 1.0, 12.34, 99.96, 1234567.8];
    let shown = figures.map(number);
    assert_eq!(
        shown,
        ["0", "0.012", "0.900", "1.00", "12.3", "100", "1,234,568"]
    );
    assert_eq!(duration(62_400.0), "62.4 µs");
    assert_eq!(duration(380.0), "380 ns");
}
