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
mod tests;
