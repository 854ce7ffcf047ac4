//! Medians, and how sure they are.
//!
//! The interval of a median comes from order statistics (the sign test turned round): it assumes nothing about how samples
//! are distributed, which suits figures that have two modes.

/// The median; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let n = sorted.len();
    match n {
        0 => f64::NAN,
        _ if n % 2 == 1 => sorted[n / 2],
        _ => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Where the median of what the values were drawn from lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// How sure that is: at least 0.95, or as much as the whole range gives where there are fewer than six values.
    pub coverage: f64,
}

/// The narrowest pair of order statistics that covers the median with at least 95 %.
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    let sorted = sorted(values);
    let n = sorted.len();
    if n == 0 {
        return None;
    }
    let coverage = |trim: usize| 1.0 - 2.0 * lower_tail(n, trim);
    let trim = (0..n.div_ceil(2))
        .take_while(|&trim| trim == 0 || coverage(trim) >= 0.95)
        .last()
        .unwrap_or(0);
    Some(Interval {
        low: sorted[trim],
        high: sorted[n - 1 - trim],
        coverage: coverage(trim),
    })
}

/// The line through `points` with the least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub slope: f64,
    pub intercept: f64,
    /// The share of the variance that the line explains.
    pub r_squared: f64,
}

/// None for fewer than three points, through two of which any line goes, or where all have the same place.
pub fn least_squares(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| -> f64 { points.iter().map(|p| of(p.0 - x, p.1 - y)).sum() };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if points.len() < 3 || xx == 0.0 {
        return None;
    }
    let slope = xy / xx;
    Some(Line {
        slope,
        intercept: y - slope * x,
        r_squared: if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) },
    })
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The chance that at most `k` of `n` values fall below the median they were drawn from.
fn lower_tail(n: usize, k: usize) -> f64 {
    let mut term = 0.5f64.powi(n as i32);
    let mut sum = term;
    for i in 1..=k {
        term *= (n + 1 - i) as f64 / i as f64;
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_ignores_one_wild_value() {
        assert_eq!(median(&[3.0, 1.0, 1e9]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 1e9]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn fifteen_pairs_give_the_fourth_and_the_twelfth() {
        let values: Vec<f64> = (1..=15).map(f64::from).collect();
        let interval = median_interval(&values).unwrap();
        assert_eq!((interval.low, interval.high), (4.0, 12.0));
        assert!((interval.coverage - 0.96484375).abs() < 1e-9);
    }

    #[test]
    fn few_values_give_their_range_and_say_how_little_it_means() {
        let interval = median_interval(&[2.0, 1.0, 3.0, 5.0, 4.0]).unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 5.0));
        assert_eq!(interval.coverage, 0.9375);
        let single = median_interval(&[7.0]).unwrap();
        assert_eq!((single.low, single.high, single.coverage), (7.0, 7.0, 0.0));
        assert_eq!(median_interval(&[]), None);
    }

    #[test]
    fn the_interval_of_many_values_is_narrow_and_holds_the_median() {
        let values: Vec<f64> = (0..101).map(f64::from).collect();
        let interval = median_interval(&values).unwrap();
        assert!(interval.low >= 39.0 && interval.high <= 61.0);
        assert!(interval.low < 50.0 && interval.high > 50.0);
        assert!(interval.coverage >= 0.95);
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
}
