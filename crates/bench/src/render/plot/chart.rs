//! Points over values: joined, or with the line that was fitted to them.

use maud::{Markup, html};

use super::ends::{self, End, Seen, is_seen};
use super::palette::Look;
use super::scale::{Scale, Tick, neutral};
use super::{Drawing, LINE, TEXT, WIDTH, colour, fill, legend, px, quartiles, shape, text, tip};
use crate::findings::{Curve, Plot, Point};
use crate::render::format;

const HEIGHT: f64 = 236.0;
/// Names up to this length stand at the end of their curves, where these are few; others in a legend.
const DIRECT: f64 = 98.0;
/// Between two marks of the axis that goes up, at least.
const ROW: f64 = 30.0;
/// So many places per fitted segment where an axis is not linear.
const STEPS: usize = 24;
/// More curves than these are drawn with finer lines.
const MANY: usize = 6;
/// Up to so many points have marks of the full size.
const CROWD: usize = 40;

pub fn draw(plot: &Plot, looks: &[Look]) -> Option<Drawing> {
    let (x, y) = scales(plot)?;
    let curves = plot.curves.iter().zip(looks.iter().copied());
    let seen: Vec<Seen<'_>> = curves
        .filter(|(curve, _)| curve.points.iter().any(|point| is_seen(&x, &y, point)))
        .collect();
    if seen.is_empty() {
        return None;
    }
    let names: Vec<(&str, Look)> = seen
        .iter()
        .map(|(curve, look)| (curve.name.as_str(), *look))
        .collect();
    let longest = widest(names.iter().map(|(name, _)| *name));
    let direct = longest <= DIRECT && names.len() <= 8;

    let (key, head) = match direct {
        true => (html! {}, TEXT * 0.8),
        false => {
            let (key, height) = legend(&names, 16.0, 0.0, WIDTH - 16.0);
            (key, height + 4.0 + TEXT * 0.8)
        }
    };
    let top = head + 18.0;
    let frame = Frame::new((x, y), &seen, top, direct.then_some(longest));
    let body = html! {
        (key)
        text class="hw-quiet" x="16" y=(px(head)) { (text::fitting(&plot.y.label, TEXT, WIDTH - 32.0)) }
        (frame.axes(&plot.x.label))
        @for (curve, look) in &seen { (draw_curve(plot, curve, *look, &frame.x, &frame.y)) }
        @if let Some(end) = frame.names { (ends::labels(&seen, end, &frame.x, &frame.y)) }
    };
    Some(Drawing {
        body,
        height: frame.bottom + 2.0 * LINE + 8.0,
    })
}

/// Where the axes are.
struct Frame {
    x: Scale,
    y: Scale,
    left: f64,
    right: f64,
    bottom: f64,
    /// Where the names of the curves stand, if they do.
    names: Option<End>,
}

impl Frame {
    /// With room for names of that width at one end of the curves.
    fn new((x, y): (Scale, Scale), seen: &[Seen<'_>], top: f64, names: Option<f64>) -> Frame {
        let bottom = top + HEIGHT;
        let y = y.between(bottom, top);
        let ticks = y.ticks(|_| ROW);
        let left = 23.0 + widest(ticks.iter().map(|tick| tick.label.as_str()));
        let end = names.map(|_| End::best(seen, &y));
        let room = names.map_or(0.0, |width| width + 12.0);
        let (from, right) = match end {
            Some(End::Right) => (left, WIDTH - 16.0 - room),
            _ => (left + room, WIDTH - 22.0),
        };
        Frame {
            x: x.between(from + 4.0, right),
            y,
            left,
            right,
            bottom,
            names: end,
        }
    }

    fn axes(&self, label: &str) -> Markup {
        let right = px(self.right);
        html! {
            @for tick in self.y.ticks(|_| ROW) {
                @if let Some(at) = self.y.place(tick.value) { (self.across(&tick, at)) }
            }
            @let below: Vec<(Tick, f64)> = self.x.ticks(|label| text::width(label, TEXT) + 16.0).into_iter()
                .filter_map(|tick| { let at = self.x.place(tick.value)?; Some((tick, at)) }).collect();
            path class="hw-zero" d=(self.axis(below.iter().map(|(_, at)| *at))) {}
            g class="hw-quiet" text-anchor="middle" {
                @for (tick, at) in &below { text x=(px(*at)) y=(px(self.bottom + LINE + 2.0)) { (tick.label) } }
            }
            text class="hw-quiet" x=(right) y=(px(self.bottom + 2.0 * LINE + 3.0)) text-anchor="end" {
                (text::fitting(label, TEXT, self.right - 16.0))
            }
        }
    }

    fn across(&self, tick: &Tick, at: f64) -> Markup {
        let class = if self.y.is_landmark(tick.value) {
            "hw-zero"
        } else {
            "hw-rule"
        };
        html! {
            line class=(class) x1=(px(self.left)) x2=(px(self.right)) y1=(px(at)) y2=(px(at)) {}
            text class="hw-quiet" x=(px(self.left - 7.0)) y=(px(at + 4.5)) text-anchor="end" { (tick.label) }
        }
    }

    /// The one that goes across, with a stroke at each of these places.
    fn axis(&self, places: impl Iterator<Item = f64>) -> String {
        let (left, right, bottom) = (px(self.left), px(self.right), px(self.bottom));
        let strokes = places.map(|at| format!("M{} {bottom}v5", px(at)));
        format!("M{left} {bottom}H{right}") + &strokes.collect::<String>()
    }
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts
        .map(|text| text::width(text, TEXT))
        .fold(0.0, f64::max)
}

fn scales(plot: &Plot) -> Option<(Scale, Scale)> {
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let x = Scale::new(&plot.x, points().map(|point| point.x))?;
    let ends = |point: &Point| {
        let (low, high) = quartiles(point).unwrap_or((point.y, point.y));
        [point.y, low, high]
    };
    // What was fitted is drawn as far as it stays near what was measured.
    let y = Scale::new(&plot.y, points().flat_map(ends).chain(neutral(&plot.y)))?;
    Some((x, y))
}

fn draw_curve(plot: &Plot, curve: &Curve, look: Look, x: &Scale, y: &Scale) -> Markup {
    let joined: Vec<(f64, f64)> = match curve.fit.is_empty() {
        true => curve
            .points
            .iter()
            .map(|point| (point.x, point.y))
            .collect(),
        false => bent(&curve.fit, x.is_linear() && y.is_linear()),
    };
    let faint = if curve.fit.is_empty() { "1" } else { "0.75" };
    let crowded = curve.points.len() > CROWD;
    let stroke = if plot.curves.len() > MANY { "1.3" } else { "2" };
    html! {
        g class=(colour(look)) {
            path d=(path(&joined, x, y)) fill="none" stroke="currentColor" stroke-width=(stroke) stroke-linejoin="round"
                opacity=(faint) {}
            @let whiskers = whiskers(curve, x, y);
            @if !whiskers.is_empty() { path stroke="currentColor" opacity="0.6" d=(whiskers) {} }
            g class=(if crowded { "hw-own" } else { fill(look) }) stroke=[(!crowded).then_some("currentColor")] stroke-width="1.4" {
                @for point in &curve.points {
                    @if let (Some(at), Some(height)) = (x.place(point.x), y.place(point.y)) {
                        @let tip = tip(&curve.name, &format::measure(plot.x.unit, point.x), plot.y.unit, point);
                        @if crowded {
                            circle cx=(px(at)) cy=(px(height)) r="1.8" { title { (tip) } }
                        } @else {
                            (shape(at, height, look, Some(tip)))
                        }
                    }
                }
            }
        }
    }
}

/// Those of a curve's points that are to be seen.
fn whiskers(curve: &Curve, x: &Scale, y: &Scale) -> String {
    let seen = curve.points.iter().filter(|point| is_seen(x, y, point));
    let drawn = seen.filter_map(|point| {
        let (low, high) = whisker(point, y)?;
        Some(format!(
            "M{} {}V{}",
            px(x.place(point.x)?),
            px(low),
            px(high)
        ))
    });
    drawn.collect()
}

/// From quartile to quartile, where that is longer than the mark is high.
fn whisker(point: &Point, y: &Scale) -> Option<(f64, f64)> {
    let (low, high) = quartiles(point)?;
    let (low, high) = (y.place(low)?, y.place(high)?);
    ((high - low).abs() > 1.0).then_some((low, high))
}

/// A straight line in values is none on logarithmic axes: more places make it right.
fn bent(line: &[(f64, f64)], linear: bool) -> Vec<(f64, f64)> {
    if linear || line.len() > STEPS {
        return line.to_vec();
    }
    let mut places = Vec::new();
    for pair in line.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let step = |index: usize| {
            let share = index as f64 / STEPS as f64;
            let x = if x0 > 0.0 && x1 > 0.0 {
                x0 * (x1 / x0).powf(share)
            } else {
                x0 + (x1 - x0) * share
            };
            let along = if x1 == x0 {
                share
            } else {
                (x - x0) / (x1 - x0)
            };
            (x, y0 + (y1 - y0) * along)
        };
        places.extend((0..STEPS).map(step));
    }
    places.extend(line.last());
    places
}

/// Breaks off where a place is outside, and goes on where it is inside again.
fn path(line: &[(f64, f64)], x: &Scale, y: &Scale) -> String {
    let mut path = String::new();
    let mut begun = false;
    for &(at, value) in line {
        match (x.place(at), y.place(value)) {
            (Some(at), Some(height)) => {
                path += &format!("{}{} {}", if begun { 'L' } else { 'M' }, px(at), px(height));
                begun = true;
            }
            _ => begun = false,
        }
    }
    path
}
