//! Plots as SVG. The same drawing stands in the report, where it follows the page's theme, and in a file of its own, which
//! brings its title, caption and theme along.

mod bars;
mod chart;
mod ends;
pub mod palette;
pub mod scale;
mod text;

use maud::{Markup, html};
use palette::{Look, Palette};

use crate::findings::{Measure, Plot, Point};
use crate::render::format;

/// Units of the drawing; on a phone it is about three quarters as many pixels wide, on a desktop a little more.
pub const WIDTH: f64 = 460.0;
const TEXT: f64 = 14.0;
const TITLE: f64 = 17.0;
const LINE: f64 = 18.0;

/// What is drawn, below a height of zero.
struct Drawing {
    body: Markup,
    height: f64,
}

/// For the report, whose page has the style, the title and the caption. None where nothing can be drawn.
pub fn inline(plot: &Plot, palette: &Palette) -> Option<Markup> {
    let drawing = draw(plot, palette)?;
    Some(svg(plot, drawing.height, html! { (drawing.body) }))
}

/// A file of its own.
pub fn file(plot: &Plot, palette: &Palette) -> Option<String> {
    let edge = 16.0;
    let inner = WIDTH - 2.0 * edge;
    let drawing = draw(plot, palette)?;
    let titles = text::wrap(&plot.title, TITLE, inner);
    let captions = text::wrap(&plot.caption, TEXT, inner);
    let top = edge + titles.len() as f64 * (LINE + 5.0) + 8.0;
    let bottom = top + drawing.height + 10.0;
    let height = bottom + captions.len() as f64 * LINE + edge;
    let content = html! {
        title { (plot.title) }
        style { (maud::PreEscaped(palette::style())) }
        rect class="hw-paper" width=(px(WIDTH)) height=(px(height)) {}
        @for (index, line) in titles.iter().enumerate() {
            text class="hw-ink" x=(px(edge)) y=(px(edge + TITLE + index as f64 * (LINE + 5.0)))
                font-size=(px(TITLE)) font-weight="600" { (line) }
        }
        g transform=(format!("translate(0 {})", px(top))) { (drawing.body) }
        @for (index, line) in captions.iter().enumerate() {
            text class="hw-quiet" x=(px(edge)) y=(px(bottom + TEXT + index as f64 * LINE))
                font-size=(px(TEXT)) { (line) }
        }
    };
    Some(svg(plot, height, content).into_string() + "\n")
}

fn svg(plot: &Plot, height: f64, content: Markup) -> Markup {
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class="hw-plot" viewBox=(format!("0 0 {} {}", px(WIDTH), px(height)))
            role="img" aria-label=(format!("Plot: {}", plot.title)) font-size=(px(TEXT)) { (content) }
    }
}

fn draw(plot: &Plot, palette: &Palette) -> Option<Drawing> {
    let looks = palette.looks(plot);
    match plot.x.names.is_empty() {
        true => chart::draw(plot, &looks),
        false => bars::draw(plot, &looks, palette),
    }
}

/// The names of the curves with their marks, in lines; also how high that is.
fn legend(names: &[(&str, Look)], left: f64, top: f64, right: f64) -> (Markup, f64) {
    let (mut x, mut line) = (left, 0);
    let mut places = Vec::new();
    for &(name, look) in names {
        let name = text::fitting(name, TEXT, right - left - 24.0);
        let wide = 16.0 + text::width(&name, TEXT) + 18.0;
        if x > left && x + wide - 18.0 > right {
            (x, line) = (left, line + 1);
        }
        places.push((x, top + TEXT * 0.8 + f64::from(line) * LINE, name, look));
        x += wide;
    }
    let drawn = html! {
        @for (x, y, name, look) in &places {
            g class=(colour(*look)) {
                (mark(x + 5.0, y - 4.5, *look, None))
                text class="hw-own" x=(px(x + 14.0)) y=(px(*y)) { (name) }
            }
        }
    };
    (drawn, f64::from(line + 1) * LINE)
}

fn colour(look: Look) -> String {
    format!("hw-{}", look.slot)
}

/// A point, in the shape that is the arm's.
fn mark(x: f64, y: f64, look: Look, tip: Option<String>) -> Markup {
    html! { g class=(fill(look)) stroke="currentColor" stroke-width="1.4" { (shape(x, y, look, tip)) } }
}

/// What is inside the marks of a curve.
fn fill(look: Look) -> &'static str {
    if look.mark == 7 { "hw-paper" } else { "hw-own" }
}

/// A mark within a group that has [`fill`] and its line.
fn shape(x: f64, y: f64, look: Look, tip: Option<String>) -> Markup {
    let tip = html! { @if let Some(tip) = tip { title { (tip) } } };
    let path = match look.mark {
        0 => return ring(x, y, 3.6, tip),
        1 => polygon(x, y, &[(-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)]),
        2 => polygon(x, y, &[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)]),
        3 => polygon(x, y, &[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)]),
        4 => polygon(x, y, &[(-4.2, -3.2), (4.2, -3.2), (0.0, 4.4)]),
        5 => polygon(x, y, &[(-4.4, 0.0), (3.2, -4.2), (3.2, 4.2)]),
        6 => polygon(x, y, &[(4.4, 0.0), (-3.2, -4.2), (-3.2, 4.2)]),
        _ => return ring(x, y, 3.2, tip),
    };
    html! { path d=(path) { (tip) } }
}

fn ring(x: f64, y: f64, r: f64, tip: Markup) -> Markup {
    html! { circle cx=(px(x)) cy=(px(y)) r=(px(r)) { (tip) } }
}

fn polygon(x: f64, y: f64, corners: &[(f64, f64)]) -> String {
    let (mut path, mut last) = (String::new(), (0.0, 0.0));
    for &(dx, dy) in corners {
        path += &match path.is_empty() {
            true => format!("M{} {}", px(x + dx), px(y + dy)),
            false => format!("l{} {}", px(dx - last.0), px(dy - last.1)),
        };
        last = (dx, dy);
    }
    path + "z"
}

/// What a point says when it is pointed at.
fn tip(name: &str, place: &str, unit: Measure, point: &Point) -> String {
    let spread = quartiles(point).map_or(String::new(), |(low, high)| {
        let (low, high) = (format::measure(unit, low), format::measure(unit, high));
        // The unit once, where it is the same.
        let low = match (low.split_once(' '), high.split_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => number,
            _ => &low,
        };
        format!(" ({low} to {high})")
    });
    format!(
        "{name}, {place}: {}{spread}",
        format::measure(unit, point.y)
    )
}

fn quartiles(point: &Point) -> Option<(f64, f64)> {
    let (low, high) = (point.low?, point.high?);
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// A tenth of a unit is finer than any screen.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0" } else { text }.to_string()
}
