//! One experiment.

use maud::{Markup, html};

use super::{Rest, cells, code, sentence, short, wide};
use crate::cells::distinct;
use crate::findings::{Column, Measure, Plot, Seed, Sheet, Value};
use crate::render::format::{self, plural};
use crate::render::plot::palette::Palette;
use crate::render::{file_name, plot, regressions, slug};
use crate::report::Report;

/// Tables of more rows than these are folded, but for the first ones.
const LONG: usize = 20;
const SHOWN: usize = 12;

pub fn experiment(report: &Report, rest: Rest) -> Markup {
    let id = slug(&report.experiment);
    let conclusion = &report.conclusion;
    let palette = Palette::of(&conclusion.plots);
    let describe = sentence(&report.describe);
    html! {
        section id=(id) aria-labelledby=(format!("{id}-title")) {
            p class="kicker" { (report.experiment) }
            h2 id=(format!("{id}-title")) { (describe.trim_end_matches('.')) }
            @if !report.question.is_empty() && sentence(&report.question) != describe {
                p class="question" { (sentence(&report.question)) }
            }
            p class="how" {
                @if !report.method.is_empty() { (sentence(&report.method)) " " }
                (effort(report))
            }
            @if report.wrong_contents { p class="notice bad" { strong { "Wrong bytes were received here." } } }
            @for table in conclusion.sheets.iter().chain(&regressions(report)) { (sheet(table, &report.experiment, rest)) }
            @if !conclusion.plots.is_empty() {
                div class="plots" { @for plot in &conclusion.plots { (figure(plot, &palette)) } }
            }
            (seeds(&conclusion.seeds))
            (short::block(report, &id, rest))
            (cells::all(report, rest))
        }
    }
}

/// How much work it was.
fn effort(report: &Report) -> String {
    plural(report.cells.len(), "measurement") + "."
}

fn sheet(sheet: &Sheet, experiment: &str, place: Rest) -> Markup {
    if sheet.rows.is_empty() {
        return html! {};
    }
    let (first, rest) = sheet.rows.split_at(match sheet.rows.len() {
        few if few <= LONG => few,
        _ => SHOWN,
    });
    html! {
        figure class="sheet" {
            figcaption { strong { (sheet.title) } @if !sheet.caption.is_empty() { " " span { (sheet.caption) } } }
            (wide(&sheet.title, sheet.columns.len(), table(sheet, first)))
            @if !rest.is_empty() && place == Rest::InFiles {
                p class="quiet" { "And " (plural(rest.len(), "other row")) " in " (code(&file_name(experiment, &sheet.name, "csv"))) "." }
            } @else if !rest.is_empty() {
                details {
                    summary { "and " (plural(rest.len(), "other row")) }
                    (wide(&sheet.title, sheet.columns.len(), table(sheet, rest)))
                }
            }
        }
    }
}

fn table(sheet: &Sheet, rows: &[Vec<Value>]) -> Markup {
    html! {
        table {
            thead { tr { @for column in &sheet.columns { th scope="col" class=[side(column)] { (column.head) } } } }
            tbody {
                @for row in rows {
                    tr { @for (index, value) in row.iter().enumerate() { (field(sheet, index, value)) } }
                }
            }
        }
    }
}

fn field(sheet: &Sheet, index: usize, value: &Value) -> Markup {
    let column = sheet.columns.get(index);
    let unit = column.map_or(Measure::Text, |column| column.unit);
    let text = format::value(unit, value);
    match (index, value) {
        (0, Value::Text(_)) => html! { th scope="row" { (text) } },
        (_, Value::Text(_)) if unit == Measure::Text => html! { td { (text) } },
        (_, Value::Missing(())) => html! { td class="number quiet" { (text) } },
        _ => html! { td class="number" { (text) } },
    }
}

fn side(column: &Column) -> Option<&'static str> {
    (column.unit != Measure::Text).then_some("number")
}

fn figure(plot: &Plot, palette: &Palette) -> Markup {
    let drawing = plot::inline(plot, palette);
    html! {
        figure class="plot" {
            figcaption { strong { (plot.title) } }
            @match drawing {
                Some(drawing) => { (drawing) }
                None => { p class="quiet" { "Nothing that could be drawn was measured." } }
            }
            @if !plot.caption.is_empty() { p class="caption" { (plot.caption) } }
        }
    }
}

/// The documents' own figures beside those of this run; those that have none beside them stay folded.
fn seeds(seeds: &[Seed]) -> Markup {
    let (beside, alone): (Vec<&Seed>, Vec<&Seed>) =
        seeds.iter().partition(|seed| !seed.ours.is_empty());
    html! {
        @if !seeds.is_empty() {
            figure class="sheet" {
                figcaption {
                    strong { "Beside the original measurements" } " "
                    span { "What the documents report that this experiment comes from, on their machines of the time, and what was measured here." }
                }
                @if !beside.is_empty() { (beside_ours(&beside)) }
                @if !alone.is_empty() {
                    details {
                        summary { (plural(alone.len(), "figure")) " of theirs that this run has nothing to put beside" }
                        (beside_ours(&alone))
                    }
                }
            }
        }
    }
}

/// By document.
fn beside_ours(seeds: &[&Seed]) -> Markup {
    let files = distinct(seeds.iter().map(|seed| &seed.file));
    let table = html! {
        table class="seeds" {
            thead { tr { th scope="col" { "what" } th scope="col" { "theirs" } th scope="col" { "here" } } }
            @for file in files {
                tbody {
                    tr class="file" { th colspan="3" scope="rowgroup" { (code(file)) } }
                    @for seed in seeds.iter().filter(|seed| seed.file == file) {
                        tr {
                            th scope="row" { (seed.what) }
                            td { div { (parts(&seed.theirs)) } }
                            td { div { @if seed.ours.is_empty() { span class="quiet" { (format::MISSING) } } @else { strong { (parts(&seed.ours)) } } } }
                        }
                    }
                }
            }
        }
    };
    wide("Beside the original measurements", 3, table)
}

/// What semicolons divide stands in lines of its own.
fn parts(text: &str) -> Markup {
    html! { @for (index, part) in text.split("; ").enumerate() { @if index > 0 { br; } (part) } }
}
