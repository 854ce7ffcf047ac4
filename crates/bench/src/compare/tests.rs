use super::*;

fn of(old: &[f64], new: &[f64]) -> Change {
    let seen = |rates: &[f64]| Seen {
        rates: rates.to_vec(),
        ..Seen::default()
    };
    Change::of(
        &place("pipe", "one-64", Placement::Same, "streams"),
        &seen(old),
        &seen(new),
    )
}

#[test]
fn few_rounds_give_hints_alone() {
    let old = [100.0, 103.0, 98.0, 101.0, 99.0, 102.0];
    let moved = |factor: f64| old.map(|rate| rate * factor);
    assert_eq!(of(&old, &moved(1.2)).verdict, Verdict::PerhapsFaster);
    assert_eq!(of(&old[..5], &moved(0.8)).verdict, Verdict::PerhapsSlower);
    assert_eq!(of(&old[..5], &moved(1.03)).verdict, Verdict::WithinNoise);
    assert_eq!(of(&old[..4], &moved(1.2)).verdict, Verdict::TooFewRounds);
}

#[test]
fn a_change_is_told_from_noise() {
    let old = [100.0, 103.0, 98.0, 101.0, 99.0, 102.0, 97.0];
    let moved = |factor: f64| old.map(|rate| rate * factor);
    assert_eq!(of(&old, &moved(1.2)).verdict, Verdict::Faster);
    assert_eq!(of(&old, &moved(0.8)).verdict, Verdict::Slower);
    assert_eq!(of(&old, &moved(1.005)).verdict, Verdict::WithinNoise);
    let same = of(&old, &old);
    assert_eq!((same.ratio, same.verdict), (1.0, Verdict::WithinNoise));
    assert!(same.low < 1.0 && same.high > 1.0);
}

#[test]
fn the_interval_holds_the_ratio_and_is_the_same_each_time() {
    let (old, new) = (
        [10.0, 11.0, 12.0, 13.0, 14.0],
        [20.0, 23.0, 24.0, 25.0, 40.0, 22.0],
    );
    let change = of(&old, &new);
    assert_eq!(change.ratio, 23.5 / 12.0);
    assert!(change.low < change.ratio && change.ratio < change.high);
    let again = of(&old, &new);
    assert_eq!((change.low, change.high), (again.low, again.high));
    // Medians of resamples are values of the samples, or lie between two of them.
    assert!(change.low >= 20.0 / 14.0 && change.high <= 40.0 / 10.0);
}

#[test]
fn two_rounds_prove_nothing() {
    assert_eq!(of(&[1.0, 1.0], &[9.0; 15]).verdict, Verdict::TooFewRounds);
}
