//! A mean, and how sure it is. This assumes that values scatter about their mean as errors do.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

const CONFIDENCE: f64 = 0.95;

/// The mean, and where that of what the values were drawn from lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanInterval {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl MeanInterval {
    /// Half the interval, as a share of the mean.
    pub fn error(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.mean.abs()
    }
}

/// Student's interval of the mean, 95 %. None for fewer than two values.
pub fn mean_interval(values: &[f64]) -> Option<MeanInterval> {
    let n = values.len() as f64;
    let freedom = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    let half = freedom.inverse_cdf((1.0 + CONFIDENCE) / 2.0) * error;
    Some(MeanInterval {
        mean,
        low: mean - half,
        high: mean + half,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, wanted: f64) {
        let error = (found - wanted).abs();
        assert!(error <= 1e-9 * wanted.abs().max(1.0), "{found}, {wanted}");
    }

    /// scipy 1.17.1, `stats.t.interval(0.95, n - 1, loc=mean, scale=stats.sem(values))`.
    #[test]
    fn the_interval_of_a_mean_is_that_of_scipy() {
        let known = [
            (
                vec![12.1, 11.8, 12.6, 12.0, 11.9],
                [12.08, 11.69328594544518, 12.46671405455482],
            ),
            (
                vec![3.0, 5.0],
                [4.0, -8.706204736174694, 16.706204736174694],
            ),
            (
                (1..=30).map(|i| f64::from(i * i)).collect(),
                [315.1666666666667, 210.14269180793627, 420.1906415253971],
            ),
        ];
        for (values, [mean, low, high]) in known {
            let found = mean_interval(&values).unwrap();
            close(found.mean, mean);
            close(found.low, low);
            close(found.high, high);
        }
    }

    #[test]
    fn a_mean_of_one_value_has_no_interval_and_one_of_equal_values_no_width() {
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(mean_interval(&[7.0]), None);
        let found = mean_interval(&[7.0; 4]).unwrap();
        assert_eq!((found.low, found.high, found.error()), (7.0, 7.0, 0.0));
        let found = mean_interval(&[3.0, 5.0]).unwrap();
        close(found.error(), 12.706204736174694 / 4.0);
    }
}
