use super::*;

#[test]
fn values_are_shown_in_the_unit_that_suits() {
    let shown = [
        (Measure::Nanoseconds, 380.0, "380 ns"),
        (Measure::Nanoseconds, -62_400.0, "−62.4 µs"),
        (Measure::Bytes, 4096.0, "4 KiB"),
        (Measure::Bytes, 5000.0, "4.88 KiB"),
        (Measure::Count, 6.0, "6"),
        (Measure::Count, 6.01, "6.01"),
        (Measure::BytesPerSecond, 12.34e9, "12.3 GB/s"),
        (Measure::BytesPerSecond, 12.0, "12.0 B/s"),
        (Measure::Share, 0.0123, "1.23 %"),
        (Measure::Factor, 21.34, "21.3×"),
        (Measure::Factor, 0.9, "0.90×"),
        (Measure::PerSecond, 1_234_567.8, "1,234,568"),
        (Measure::Count, 1e-9, "1·10⁻⁹"),
        (Measure::Count, 1.234e300, "1.23·10³⁰⁰"),
        (Measure::Count, f64::NAN, "–"),
        (Measure::Factor, f64::INFINITY, "–"),
    ];
    for (unit, value, wanted) in shown {
        assert_eq!(measure(unit, value), wanted);
    }
}

#[test]
fn counts_have_no_decimals_and_ratios_two_at_most() {
    assert_eq!(
        [0, 8, 1234, 1_234_567].map(count),
        ["0", "8", "1,234", "1,234,567"]
    );
    assert_eq!(plural(1, "round"), "1 round");
    assert_eq!(plural(15, "round"), "15 rounds");
    assert_eq!(seconds(0.4), "0.4 s");
    assert_eq!(factors(0.91, 22.44), "0.91–22.4×");
    assert_eq!(factor(0.01234), "0.012×");
}

#[test]
fn places_on_an_axis_are_short() {
    let shown = [
        (Measure::Bytes, 16384.0, "16 KiB"),
        (Measure::Nanoseconds, 2_500.0, "2.5 µs"),
        (Measure::PerSecond, 200_000.0, "200k"),
        (Measure::PerSecond, 5_000.0, "5000"),
        (Measure::BytesPerSecond, 1e9, "1 GB/s"),
        (Measure::Factor, 0.5, "0.5×"),
        (Measure::Percent, -50.0, "−50 %"),
    ];
    for (unit, value, wanted) in shown {
        assert_eq!(tick(unit, value), wanted);
    }
}

#[test]
fn moments_are_those_of_the_calendar() {
    assert_eq!(period(0, None), "1 January 1970, 00:00 UTC");
    period(u64::MAX, Some(u64::MAX));
    assert_eq!(
        period(951_782_400, Some(951_782_400 + 5_400)),
        "29 February 2000, 00:00–01:30 UTC"
    );
    assert!(period(951_782_400, Some(951_868_800)).ends_with("1 March 2000, 00:00 UTC"));
    assert_eq!(
        [48, 720, 5_940].map(span),
        ["48 s", "12 min", "1 h 39 min"].map(String::from)
    );
}
