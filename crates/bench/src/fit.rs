//! The curve of a rate that nears a limit: y = rmax x / (half + x), where `half` is the size that reaches half of the limit.
//!
//! For each `half` the best `rmax` is that of a line through the origin, so only `half` has to be sought: first on a grid over
//! all that the points can tell, which needs no guess and cannot end in a lesser minimum beside the grid's best, then where the
//! derivative of the squares is zero.

/// What was fitted to points of sizes and rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// The rate of endless messages, in the unit of y.
    pub rmax: f64,
    /// The size that reaches half of it, N½.
    pub half: f64,
    /// The share of the variance that the curve explains.
    pub r_squared: f64,
}

/// How many times beyond the outermost points `half` may lie. Further off the points are on a line through the origin, or all
/// on one level, and say nothing of it.
const BEYOND: f64 = 100.0;
const GRID: usize = 400;

impl Saturation {
    pub fn at(&self, x: f64) -> f64 {
        self.rmax * x / (self.half + x)
    }
}

/// Least squares of the rates as they are, so that the largest count most. None with fewer than three different sizes, with
/// sizes or rates that are none, and for points that no such curve describes better than their mean does.
pub fn saturation(points: &[(f64, f64)]) -> Option<Saturation> {
    let sensible = |&(x, y): &(f64, f64)| x > 0.0 && x.is_finite() && y >= 0.0 && y.is_finite();
    if !points.iter().all(sensible) || different(points) < 3 {
        return None;
    }
    let low = points.iter().map(|p| p.0).fold(f64::MAX, f64::min) / BEYOND;
    let high = points.iter().map(|p| p.0).fold(0.0, f64::max) * BEYOND;
    let step = (high / low).powf(1.0 / GRID as f64);
    let grid: Vec<f64> = (0..=GRID).map(|i| low * step.powi(i as i32)).collect();
    let best = (0..=GRID)
        .min_by(|&a, &b| squares(points, grid[a]).total_cmp(&squares(points, grid[b])))?;
    if best == 0 || best == GRID {
        return None;
    }
    let half = stationary(points, grid[best - 1], grid[best + 1]);
    let mean = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
    let variance: f64 = points.iter().map(|p| (p.1 - mean).powi(2)).sum();
    let found = Saturation {
        rmax: rmax(points, half),
        half,
        r_squared: 1.0 - squares(points, half) / variance,
    };
    (found.r_squared > 0.0).then_some(found)
}

fn different(points: &[(f64, f64)]) -> usize {
    let mut sizes: Vec<f64> = points.iter().map(|p| p.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    sizes.len()
}

fn rmax(points: &[(f64, f64)], half: f64) -> f64 {
    let shares = points.iter().map(|&(x, y)| (x / (half + x), y));
    let (gy, gg) = shares.fold((0.0, 0.0), |(gy, gg), (g, y)| (gy + g * y, gg + g * g));
    gy / gg
}

fn squares(points: &[(f64, f64)], half: f64) -> f64 {
    let rmax = rmax(points, half);
    let miss = |&(x, y): &(f64, f64)| (y - rmax * x / (half + x)).powi(2);
    points.iter().map(miss).sum()
}

/// Half of the derivative of the squares by `half`, over `rmax`.
fn rise(points: &[(f64, f64)], half: f64) -> f64 {
    let rmax = rmax(points, half);
    let part = |&(x, y): &(f64, f64)| {
        let g = x / (half + x);
        (y - rmax * g) * g / (half + x)
    };
    points.iter().map(part).sum()
}

/// Between `low`, where the squares still fall, and `high`, where they rise.
fn stationary(points: &[(f64, f64)], mut low: f64, mut high: f64) -> f64 {
    loop {
        let middle = (low * high).sqrt();
        if middle <= low || middle >= high {
            return middle;
        }
        match rise(points, middle) < 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, wanted: f64, within: f64) {
        assert!((found / wanted - 1.0).abs() < within, "{found}, {wanted}");
    }

    fn matches(points: &[(f64, f64)], rmax: f64, half: f64, r_squared: f64) {
        let found = saturation(points).unwrap();
        close(found.rmax, rmax, 1e-6);
        close(found.half, half, 1e-6);
        close(found.r_squared, r_squared, 1e-9);
    }

    fn sizes() -> impl Iterator<Item = f64> {
        (0..=16).map(|power| f64::from(1 << power))
    }

    #[test]
    fn an_exact_curve_is_found_whatever_its_limit_and_its_half() {
        for rmax in [3.0, 1e6, 1e10] {
            for half in [0.5, 1.0, 70.0, 1460.0, 65536.0, 1e6] {
                let curve = Saturation {
                    rmax,
                    half,
                    r_squared: 1.0,
                };
                let points: Vec<(f64, f64)> = sizes().map(|x| (x, curve.at(x))).collect();
                let found = saturation(&points).unwrap();
                close(found.rmax, rmax, 1e-8);
                close(found.half, half, 1e-8);
                close(found.r_squared, 1.0, 1e-12);
            }
        }
    }

    /// Treloar's reaction rates with puromycin (Bates and Watts 1988, `Puromycin` of R): the classic of this curve. Limits,
    /// halves and R² are those of scipy 1.17.1's `optimize.curve_fit`, with all tolerances 1e-15.
    #[test]
    fn puromycin_gives_what_scipy_gives() {
        const AT: [f64; 12] = [
            0.02, 0.02, 0.06, 0.06, 0.11, 0.11, 0.22, 0.22, 0.56, 0.56, 1.1, 1.1,
        ];
        let rates =
            |of: &[f64]| -> Vec<(f64, f64)> { AT.into_iter().zip(of.iter().copied()).collect() };
        let treated = rates(&[
            76.0, 47.0, 97.0, 107.0, 123.0, 139.0, 159.0, 152.0, 191.0, 201.0, 207.0, 200.0,
        ]);
        matches(
            &treated,
            212.68374282488952,
            0.0641212811989921,
            0.9612608301402017,
        );
        let untreated = rates(&[
            67.0, 51.0, 84.0, 86.0, 98.0, 115.0, 131.0, 124.0, 144.0, 158.0, 160.0,
        ]);
        matches(
            &untreated,
            160.2800460945038,
            0.047708184373493084,
            0.9355724344418719,
        );
    }

    /// Bytes a second of made-up networks, against `curve_fit` as above.
    #[test]
    fn rates_over_all_sizes_give_what_scipy_gives() {
        let sizes = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536].map(f64::from);
        let fast = [
            2.6e6, 9.9e6, 4.2e7, 1.55e8, 5.9e8, 1.93e9, 4.4e9, 6.5e9, 7.0e9,
        ];
        let points: Vec<(f64, f64)> = sizes.into_iter().zip(fast).collect();
        matches(
            &points,
            7424563846.0675535,
            2804.306655185939,
            0.9993414645604493,
        );
        let bent = [
            1.1e6, 4.9e6, 1.9e7, 6.0e7, 1.9e8, 4.6e8, 6.9e8, 6.3e8, 8.1e8,
        ];
        let points: Vec<(f64, f64)> = sizes.into_iter().zip(bent).collect();
        matches(
            &points,
            757971360.5523432,
            687.1736026150268,
            0.9826495605077915,
        );
    }

    #[test]
    fn what_shows_no_limit_has_none() {
        let line: Vec<(f64, f64)> = sizes().map(|x| (x, 5.0 * x)).collect();
        let level: Vec<(f64, f64)> = sizes().map(|x| (x, 5.0)).collect();
        let falling: Vec<(f64, f64)> = sizes().map(|x| (x, 1e6 / x)).collect();
        let nothing: Vec<(f64, f64)> = sizes().map(|x| (x, 0.0)).collect();
        for points in [line, level, falling, nothing] {
            assert_eq!(saturation(&points), None);
        }
    }

    #[test]
    fn too_little_or_senseless_is_not_fitted() {
        assert_eq!(saturation(&[]), None);
        assert_eq!(saturation(&[(1.0, 1.0), (2.0, 1.5)]), None);
        assert_eq!(
            saturation(&[(1.0, 1.0), (2.0, 1.5), (2.0, 1.6), (1.0, 0.9)]),
            None
        );
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            let points = [(1.0, 1.0), (2.0, 1.5), (4.0, 1.7)];
            let mut rates = points;
            rates[1].1 = bad;
            let mut sizes = points;
            sizes[1].0 = bad;
            assert_eq!((saturation(&rates), saturation(&sizes)), (None, None));
        }
    }
}
