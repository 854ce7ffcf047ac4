use super::*;

#[test]
fn samples_that_overlap_may_have_one_median() {
    let old = [10.0, 11.0, 12.0, 13.0, 14.0];
    let ratio = independent_ratio(&old, &old.map(|value| value * 1.2)).unwrap();
    assert!(ratio.low < 1.0 && ratio.high > 1.0);
    let ratio = independent_ratio(&old, &old.map(|value| value * 2.0)).unwrap();
    // Of five values the interval of the median is their range.
    close(ratio.low, 20.0 / 14.0);
    close(ratio.high, 28.0 / 10.0);
    assert_eq!(independent_ratio(&old, &[]), None);
}

fn close(found: f64, wanted: f64) {
    let error = (found - wanted).abs();
    assert!(error <= 1e-9 * wanted.abs().max(1.0), "{found}, {wanted}");
}

#[test]
fn a_median_ignores_one_wild_value() {
    assert_eq!(median(&[3.0, 1.0, 1e9]), 3.0);
    assert_eq!(median(&[4.0, 1.0, 2.0, 1e9]), 3.0);
    assert!(median(&[]).is_nan());
}

/// numpy 2.4.6, `np.quantile(values, [0, .25, .5, .75, 1])`.
#[test]
fn quartiles_are_those_of_numpy() {
    let known: [(&[f64], [f64; 5]); 3] = [
        (
            &[3.1, 1.2, 5.9, 2.6, 5.3, 5.8, 9.7, 9.3],
            [1.2, 2.975, 5.55, 6.75, 9.7],
        ),
        (&[1.0, 2.0, 4.0], [1.0, 1.5, 2.0, 3.0, 4.0]),
        (&[7.0, 1.0], [1.0, 2.5, 4.0, 5.5, 7.0]),
    ];
    for (values, wanted) in known {
        let found = quartiles(values).unwrap();
        let found = [found.min, found.q1, found.median, found.q3, found.max];
        found
            .iter()
            .zip(wanted)
            .for_each(|(&found, wanted)| close(found, wanted));
    }
    assert_eq!(quartiles(&[]), None);
    assert_eq!(quartiles(&[2.0]).unwrap().q3, 2.0);
}

/// A resample's median is at most the k-th of n values where most of its n draws hit the first k, so the binomial
/// distribution of n and k/n says how often it is. For 15 values scipy 1.17.1's `binom.sf(7, 15, k / 15)` says 0.0042,
/// 0.0255 and 0.0882 for the third, the fourth and the fifth: the fourth is where the interval begins.
#[test]
fn the_interval_is_what_all_possible_resamples_would_give() {
    let most = |n: u32, hit: f64| -> f64 {
        let ways = |m: u32| (0..m).fold(1.0, |w, i| w * f64::from(n - i) / f64::from(i + 1));
        let exactly = |m: u32| ways(m) * hit.powi(m as i32) * (1.0 - hit).powi((n - m) as i32);
        (n / 2 + 1..=n).map(exactly).sum()
    };
    assert!((most(15, 4.0 / 15.0) - 0.0255).abs() < 5e-5);
    for n in [5, 7, 9, 11, 13, 15, 17, 19, 21, 25, 31] {
        let values: Vec<f64> = (1..=n).map(f64::from).collect();
        let found = bootstrap_ratio(&values).unwrap();
        let low = (1..=n).find(|&k| most(n, f64::from(k) / f64::from(n)) >= 0.025);
        let low = f64::from(low.unwrap());
        assert_eq!((found.low, found.high), (low, f64::from(n) + 1.0 - low));
    }
}

/// scipy 1.17.1, `stats.bootstrap((values,), np.median, method='percentile', n_resamples=200000)`: 1.95 to 2.10 (or 2.08,
/// by its seed).
#[test]
fn ratios_have_the_interval_that_scipy_gives_them() {
    let ratios = [
        1.92, 2.05, 1.99, 2.41, 1.87, 2.10, 2.02, 1.95, 2.20, 2.00, 1.90, 2.08, 2.03, 1.97, 2.15,
    ];
    let found = bootstrap_ratio(&ratios).unwrap();
    assert_eq!((found.low, found.high, found.coverage), (1.95, 2.10, 0.95));
    assert_eq!(bootstrap_ratio(&ratios), Some(found));
}

#[test]
fn few_values_give_their_range_and_say_how_little_it_means() {
    let values = [2.0, 1.0, 3.0, 5.0, 4.0];
    for (count, coverage) in [(1, 0.0), (2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375)] {
        let found = bootstrap_ratio(&values[..count]).unwrap();
        let range = quartiles(&values[..count]).unwrap();
        assert_eq!(
            (found.low, found.high, found.coverage),
            (range.min, range.max, coverage)
        );
    }
    assert_eq!(bootstrap_ratio(&[]), None);
}

#[test]
fn the_interval_of_many_values_is_narrow_and_holds_the_median() {
    let values: Vec<f64> = (0..101).map(f64::from).collect();
    let interval = bootstrap_ratio(&values).unwrap();
    assert!(interval.low >= 39.0 && interval.high <= 61.0);
    assert!(interval.low < 50.0 && interval.high > 50.0);
}

#[test]
fn a_line_is_found_through_what_scatters_around_it() {
    let exact = least_squares(&[(0.0, 5.0), (2.0, 6.0), (8.0, 9.0)]).unwrap();
    assert_eq!((exact.slope, exact.intercept), (0.5, 5.0));
    assert!((exact.r_squared - 1.0).abs() < 1e-12);
    let loose = least_squares(&[(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)]).unwrap();
    assert_eq!((loose.slope, loose.intercept), (0.5, 0.5));
    assert!(loose.r_squared < 0.5);
    assert_eq!(least_squares(&[(0.0, 5.0), (2.0, 6.0)]), None);
    assert_eq!(least_squares(&[(1.0, 5.0); 3]), None);
}

/// Anscombe's quartet, with what scipy 1.17.1's `stats.linregress` gives: slope, intercept, rvalue squared.
#[test]
fn anscombes_lines_are_those_of_scipy() {
    const X: [f64; 11] = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
    const X4: [f64; 11] = [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 19.0, 8.0, 8.0, 8.0];
    let quartet: [([f64; 11], [f64; 11], [f64; 3]); 4] = [
        (
            X,
            [
                8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68,
            ],
            [0.5000909090909091, 3.0000909090909103, 0.666542459508775],
        ),
        (
            X,
            [
                9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74,
            ],
            [0.5000000000000001, 3.000909090909089, 0.6662420337274847],
        ),
        (
            X,
            [
                7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73,
            ],
            [0.4997272727272729, 3.002454545454544, 0.6663240410665595],
        ),
        (
            X4,
            [
                6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.50, 5.56, 7.91, 6.89,
            ],
            [0.4999090909090909, 3.0017272727272726, 0.6667072568984652],
        ),
    ];
    for (x, y, [slope, intercept, r_squared]) in quartet {
        let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        let line = least_squares(&points).unwrap();
        close(line.slope, slope);
        close(line.intercept, intercept);
        close(line.r_squared, r_squared);
    }
}
