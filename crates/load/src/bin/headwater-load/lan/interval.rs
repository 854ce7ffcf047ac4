//! When a mean is known well enough: the method of batch means.

use headwater_load::mean::mean_interval;

/// Means of batches, which are all alike and long enough to be independent of each other.
#[derive(Default)]
pub struct Means(Vec<f64>);

/// Student's interval means little with fewer.
const FEWEST: usize = 10;

impl Means {
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Half the width of the 95 % confidence interval of the mean, as a share of the mean. None where there are too few batches.
    pub fn half_width(&self) -> Option<f64> {
        let known = (self.0.len() >= FEWEST).then(|| mean_interval(&self.0))?;
        known.map(|interval| interval.error())
    }

    pub fn is_within(&self, share: f64) -> bool {
        self.half_width().is_some_and(|half| half <= share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_textbook_once_there_are_enough_batches() {
        let mut means = Means::default();
        for value in [9.0, 11.0].into_iter().cycle().take(9) {
            means.add(value);
            assert_eq!(means.half_width(), None);
        }
        means.add(11.0);
        // A mean of 10, a variance of 10/9, ten values, nine degrees of freedom: 2.262 * sqrt(10/9/10) / 10.
        let half = means.half_width().unwrap();
        assert!((half - 0.075_405).abs() < 1e-5, "{half}");
        assert!(means.is_within(0.08) && !means.is_within(0.07));
    }

    #[test]
    fn equal_batches_are_certain() {
        let mut means = Means::default();
        (0..10).for_each(|_| means.add(3.0));
        assert_eq!(means.half_width(), Some(0.0));
    }
}
