//! Values of things with names: bars that lie, so that the names can be read. On a logarithmic axis, which has no zero to
//! begin from, points stand in for bars.

use maud::{Markup, html};

use super::palette::{Look, Palette};
use super::scale::{Scale, Tick, neutral};
use super::{Drawing, LINE, TEXT, WIDTH, colour, legend, mark, px, quartiles, text, tip};
use crate::findings::{Plot, Point};
use crate::render::format;

const THICK: f64 = 13.0;
const STEP: f64 = 18.5;
/// Between the groups of two names.
const GAP: f64 = 14.0;
/// The widest column of names; longer ones stand above their bars.
const NAMES: f64 = 180.0;

struct Bar<'a> {
    curve: &'a str,
    look: Look,
    point: &'a Point,
}

struct Group<'a> {
    name: &'a str,
    bars: Vec<Bar<'a>>,
}

pub fn draw(plot: &Plot, looks: &[Look], palette: &Palette) -> Option<Drawing> {
    let points = plot.curves.iter().flat_map(|curve| &curve.points);
    let ends = |point: &Point| {
        let (low, high) = quartiles(point).unwrap_or((point.y, point.y));
        [point.y, low, high]
    };
    let values = points.flat_map(ends).chain(neutral(&plot.y));
    let scale = Scale::new(&plot.y, values)?;
    let mut groups = groups(plot, looks, &scale);
    if groups.is_empty() {
        return None;
    }
    if plot.curves.len() == 1 {
        colour_by_name(&mut groups, palette);
    }
    let (key, head) = key(plot, looks);
    let (scale, above) = layout(plot, &groups, scale);

    let top = head + LINE + 8.0 - TEXT * 0.8;
    let (mut y, mut drawn) = (top, Vec::new());
    for group in &groups {
        drawn.push(draw_group(plot, group, &scale, above, y));
        y += STEP * group.bars.len() as f64 + GAP + if above { LINE } else { 0.0 };
    }
    let bottom = y - GAP + 4.0;
    // Every bar has its figure; only where there are no bars are lengths read from the axis.
    let ticks = match scale.is_linear() {
        true => Vec::new(),
        false => scale.ticks(|label| text::width(label, TEXT) + 14.0),
    };
    let foot = if ticks.is_empty() { 0.0 } else { LINE + 4.0 };
    let base = px(scale.base());
    let body = html! {
        (key)
        text class="hw-quiet" x="16" y=(px(head)) { (text::fitting(&plot.y.label, TEXT, WIDTH - 32.0)) }
        (rules(&scale, &ticks, top, bottom))
        @if scale.has_base() {
            line class="hw-zero" x1=(base) x2=(base) y1=(px(top - 2.0)) y2=(px(bottom)) {}
        }
        @for group in drawn { (group) }
    };
    Some(Drawing {
        body,
        height: bottom + foot + 6.0,
    })
}

/// The names of the curves, where there are several, and where the line below them is.
fn key(plot: &Plot, looks: &[Look]) -> (Markup, f64) {
    let curves = plot.curves.iter().zip(looks);
    let names: Vec<(&str, Look)> = curves
        .map(|(curve, look)| (curve.name.as_str(), *look))
        .collect();
    let (key, height) = match names.len() {
        0 | 1 => (html! {}, 0.0),
        _ => legend(&names, 16.0, 0.0, WIDTH - 16.0),
    };
    (
        key,
        height + if height > 0.0 { 4.0 } else { 0.0 } + TEXT * 0.8,
    )
}

/// Between the names and the figures; also whether names stand above their bars instead.
fn layout(plot: &Plot, groups: &[Group<'_>], scale: Scale) -> (Scale, bool) {
    let names = groups.iter().map(|group| text::width(group.name, TEXT));
    let longest = names.fold(0.0, f64::max);
    let above = longest > NAMES;
    let bars = || groups.iter().flat_map(|group| &group.bars);
    let figures = bars().map(|bar| text::width(&shown(plot, bar), TEXT));
    let figure = figures.fold(0.0, f64::max) + 9.0;
    let to_the_left = bars().any(|bar| scale.is_below_base(bar.point.y));
    let from = 16.0 + if above { 0.0 } else { longest + 9.0 };
    let from = from + if to_the_left { figure } else { 0.0 };
    (scale.between(from, WIDTH - 16.0 - figure), above)
}

/// By the names of the places 0, 1, 2 ...; those without a value are left out.
fn groups<'a>(plot: &'a Plot, looks: &[Look], scale: &Scale) -> Vec<Group<'a>> {
    let bars = |index: usize| -> Vec<Bar<'a>> {
        let of =
            |point: &&Point| (point.x - index as f64).abs() < 0.5 && scale.place(point.y).is_some();
        let curves = plot.curves.iter().zip(looks);
        curves
            .flat_map(|(curve, look)| {
                curve.points.iter().filter(of).map(|point| Bar {
                    curve: &curve.name,
                    look: *look,
                    point,
                })
            })
            .collect()
    };
    let names = plot.x.names.iter().enumerate();
    names
        .map(|(index, name)| Group {
            name,
            bars: bars(index),
        })
        .filter(|group| !group.bars.is_empty())
        .collect()
}

/// A bar that has an arm's name has its colour, where bars need not be told apart otherwise.
fn colour_by_name(groups: &mut [Group<'_>], palette: &Palette) {
    for group in groups {
        let Some(look) = palette.look(group.name) else {
            continue;
        };
        group.bars.iter_mut().for_each(|bar| bar.look = look);
    }
}

fn shown(plot: &Plot, bar: &Bar<'_>) -> String {
    format::measure(plot.y.unit, bar.point.y)
}

fn draw_group(plot: &Plot, group: &Group<'_>, scale: &Scale, above: bool, top: f64) -> Markup {
    let first = top + if above { LINE } else { 0.0 };
    let middle = first + STEP * group.bars.len() as f64 / 2.0;
    let name_at = if above {
        top + TEXT - 1.0
    } else {
        middle + 4.0
    };
    let name = text::fitting(group.name, TEXT, if above { WIDTH - 32.0 } else { NAMES });
    html! {
        text class="hw-ink hw-halo" x="16" y=(px(name_at)) { (name) }
        @for (index, bar) in group.bars.iter().enumerate() {
            (draw_bar(plot, group.name, bar, scale, first + STEP * index as f64))
        }
    }
}

fn draw_bar(plot: &Plot, name: &str, bar: &Bar<'_>, scale: &Scale, top: f64) -> Markup {
    let base = scale.base();
    let end = scale.place(bar.point.y).unwrap_or(base);
    let middle = top + STEP / 2.0;
    let whisker =
        quartiles(bar.point).and_then(|(low, high)| Some((scale.place(low)?, scale.place(high)?)));
    let (from, to) = whisker.unwrap_or((end, end));
    let (at, anchor) = match scale.is_below_base(bar.point.y) {
        true => (end.min(from) - 6.0, Some("end")),
        false => (end.max(to) + 6.0, None),
    };
    let tip = tip(bar.curve, name, plot.y.unit, bar.point);
    html! {
        g class=(colour(bar.look)) {
            @if scale.is_linear() {
                rect class="hw-own" opacity="0.82" x=(px(end.min(base))) y=(px(middle - THICK / 2.0))
                    width=(px((end - base).abs().max(0.8))) height=(px(THICK)) { title { (tip) } }
            } @else {
                line stroke="currentColor" opacity="0.3" x1=(px(base)) x2=(px(end)) y1=(px(middle)) y2=(px(middle)) {}
                (mark(end, middle, bar.look, Some(tip)))
            }
            @if (to - from).abs() > 1.0 {
                line class="hw-zero" stroke-width="1.4" x1=(px(from)) x2=(px(to)) y1=(px(middle)) y2=(px(middle)) {}
            }
        }
        text class="hw-ink" x=(px(at)) y=(px(middle + 4.5)) text-anchor=[anchor] { (shown(plot, bar)) }
    }
}

fn rules(scale: &Scale, ticks: &[Tick], top: f64, bottom: f64) -> Markup {
    html! {
        @for tick in ticks {
            @if let Some(at) = scale.place(tick.value) {
                line class="hw-rule" x1=(px(at)) x2=(px(at)) y1=(px(top - 2.0)) y2=(px(bottom)) {}
                text class="hw-quiet" x=(px(at)) y=(px(bottom + LINE)) text-anchor="middle" { (tick.label) }
            }
        }
    }
}
