use super::*;

fn labels(unit: Measure, scale: Kind, low: f64, high: f64) -> Vec<String> {
    let axis = Axis::new("", unit, scale);
    let scale = Scale::new(&axis, [low, high].into_iter()).unwrap();
    let ticks = scale
        .between(0.0, 400.0)
        .ticks(|label| 20.0 + 7.0 * label.len() as f64);
    ticks.into_iter().map(|tick| tick.label).collect()
}

#[test]
fn sizes_are_marked_by_powers_of_two() {
    let found = labels(Measure::Bytes, Kind::Log2, 1.0, 16384.0);
    assert_eq!(found, ["1 B", "8 B", "64 B", "512 B", "4 KiB"]);
    let found = labels(Measure::Bytes, Kind::Linear, 1.0, 16384.0);
    assert_eq!(found, ["0 B", "4 KiB", "8 KiB", "12 KiB", "16 KiB"]);
}

#[test]
fn rates_are_marked_by_decades_or_parts_of_them() {
    let found = labels(Measure::PerSecond, Kind::Log10, 1.0, 1e8);
    assert_eq!(found, ["1", "100", "10k", "1M", "100M"]);
    let found = labels(Measure::PerSecond, Kind::Log10, 110_000.0, 190_000.0);
    assert!(!found.is_empty());
    let found = labels(Measure::PerSecond, Kind::Log10, 1_000.0, 40_000.0);
    assert_eq!(found, ["1000", "2000", "5000", "10k", "20k"]);
}

#[test]
fn linear_axes_contain_zero_and_negative_values() {
    let found = labels(Measure::Percent, Kind::Linear, -50.0, 300.0);
    assert_eq!(found, ["0 %", "100 %", "200 %", "300 %"]);
    let axis = Axis::new("", Measure::Percent, Kind::Linear);
    let scale = Scale::new(&axis, [-50.0, 300.0].into_iter()).unwrap();
    assert!(scale.base() > 0.0);
}

#[test]
fn whatever_the_values_there_is_an_axis_or_none() {
    let odd = [
        0.0,
        -1.0,
        1.0,
        1e-300,
        1e300,
        f64::MAX,
        f64::MIN,
        f64::NAN,
        f64::INFINITY,
    ];
    for kind in [Kind::Linear, Kind::Log2, Kind::Log10] {
        for low in odd {
            for high in odd {
                let axis = Axis::new("", Measure::Nanoseconds, kind);
                let Some(scale) = Scale::new(&axis, [low, high].into_iter()) else {
                    continue;
                };
                let scale = scale.between(300.0, 20.0);
                let ticks = scale.ticks(|_| 28.0);
                assert!(ticks.len() <= 12, "{low} {high} {}", ticks.len());
                for place in [low, high]
                    .into_iter()
                    .filter_map(|value| scale.place(value))
                {
                    assert!((19.9..300.1).contains(&place), "{low} {high} {place}");
                }
            }
        }
    }
    let axis = Axis::new("", Measure::Nanoseconds, Kind::Log2);
    assert!(Scale::new(&axis, [0.0, -3.0, f64::NAN].into_iter()).is_none());
}
