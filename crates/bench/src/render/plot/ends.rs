//! The names of curves at their ends.

use maud::{Markup, html};

use super::palette::Look;
use super::scale::Scale;
use super::{colour, px, text};
use crate::findings::{Curve, Point};

/// A curve that has points to be seen, and its look.
pub type Seen<'a> = (&'a Curve, Look);

pub fn is_seen(x: &Scale, y: &Scale, point: &Point) -> bool {
    x.place(point.x).is_some() && y.place(point.y).is_some()
}

/// How far apart names stand.
const LABEL: f64 = 15.0;

/// At which end of the curves their names stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Left,
    Right,
}

impl End {
    /// Where the curves are further apart, so that names need not move away from them.
    pub fn best(seen: &[Seen<'_>], y: &Scale) -> End {
        let moved = |end: End| -> f64 {
            let heights: Vec<f64> = seen
                .iter()
                .filter_map(|(curve, _)| {
                    y.place(end.of(curve, |point| y.place(point.y).is_some())?.y)
                })
                .collect();
            let places = spread(&heights, y);
            places
                .iter()
                .zip(&heights)
                .map(|(a, b)| (a - b).abs())
                .sum()
        };
        match moved(End::Right) <= moved(End::Left) + LABEL {
            true => End::Right,
            false => End::Left,
        }
    }

    fn of(self, curve: &Curve, is_seen: impl Fn(&Point) -> bool) -> Option<&Point> {
        let seen = curve.points.iter().filter(|point| is_seen(point));
        match self {
            End::Left => seen.min_by(|a, b| a.x.total_cmp(&b.x)),
            End::Right => seen.max_by(|a, b| a.x.total_cmp(&b.x)),
        }
    }
}

/// The names at the ends of the curves, with a line to them where they had to move.
pub fn labels(seen: &[Seen<'_>], end: End, x: &Scale, y: &Scale) -> Markup {
    let place = |curve: &Curve| {
        let point = end.of(curve, |point| is_seen(x, y, point))?;
        Some((x.place(point.x)?, y.place(point.y)?))
    };
    let ends: Vec<(f64, f64)> = seen
        .iter()
        .map(|(curve, _)| place(curve).unwrap_or_default())
        .collect();
    let heights: Vec<f64> = ends.iter().map(|(_, height)| *height).collect();
    let places = spread(&heights, y);
    let all = ends.iter().map(|(at, _)| *at);
    let (edge, away, anchor) = match end {
        End::Left => (all.fold(f64::INFINITY, f64::min), -1.0, "end"),
        End::Right => (all.fold(0.0, f64::max), 1.0, "start"),
    };
    html! {
        @for (index, (curve, look)) in seen.iter().enumerate() {
            @let (at, height) = ends[index];
            g class=(colour(*look)) {
                @if (places[index] - height).abs() > 4.0 || (edge - at).abs() > 2.0 {
                    line stroke="currentColor" opacity="0.4" x1=(px(at + 5.0 * away)) y1=(px(height))
                        x2=(px(edge + 10.0 * away)) y2=(px(places[index])) {}
                }
                text class="hw-own hw-halo" x=(px(edge + 12.0 * away)) y=(px(places[index] + 4.5)) text-anchor=(anchor) { (curve.name) }
            }
        }
    }
}

/// Within the height of the axis.
fn spread(heights: &[f64], y: &Scale) -> Vec<f64> {
    let (bottom, top) = y.ends();
    text::spread(heights, LABEL, top, bottom)
}
