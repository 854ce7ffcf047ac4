//! The report: one HTML file with everything in it, without a script.
//!
//! ```text
//!   top      what was measured, on what, when, how; the ratios that matter; contents
//!   section  one experiment: question, tables, plots, the documents' figures     cells   every cell, folded
//!   short    what did not get better                                             tail    the rest of what one may ask
//! ```

mod cells;
mod section;
mod short;
mod tail;
mod top;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::plot::palette;
use crate::results::Run;

const STYLE: &str = include_str!("html/style.css");

/// A page of more bytes than this tells of its folded parts by the names of the CSV files that have them.
const LARGE: usize = 2_000_000;

pub fn page(run: &Run) -> String {
    let whole = page_with(run, Rest::Folded);
    match whole.len() <= LARGE {
        true => whole,
        false => page_with(run, Rest::InFiles),
    }
}

/// Where what few readers ask for is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Folded,
    InFiles,
}

fn page_with(run: &Run, rest: Rest) -> String {
    let body = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Headwater measured: " (run.machine.cpu) ", Linux " (run.machine.kernel) }
                style { (PreEscaped(STYLE)) (PreEscaped(palette::style())) }
            }
            body {
                (top::header(run))
                main {
                    (top::contents(run))
                    @for report in &run.experiments { (section::experiment(report, rest)) }
                    (tail::skipped(run))
                    (tail::machine(run))
                    (tail::method(run))
                    (tail::reading())
                    (tail::again(run))
                }
                footer {
                    "Headwater " (run.version) ". The figures of this page are in results.json beside it, its tables as CSV, its plots as SVG."
                }
            }
        }
    };
    body.into_string()
}

/// A table in a box of its own that scrolls where the page is too narrow for it; on paper it is printed the smaller, the more
/// columns it has.
fn wide(label: &str, columns: usize, table: Markup) -> Markup {
    html! {
        div class="wide" role="region" aria-label=(label) tabindex="0" style=(format!("--columns:{}", columns.max(1))) { (table) }
    }
}

/// Text that may be code: names of cells, arms, files.
fn code(text: &str) -> Markup {
    html! { code { (text) } }
}

/// With a capital letter at the beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().collect::<String>() + letters.as_str(),
        None => String::new(),
    }
}

/// With a full stop at the end.
fn sentence(text: &str) -> String {
    let text = capital(text.trim());
    match text.ends_with(['.', '?', '!']) || text.is_empty() {
        true => text,
        false => text + ".",
    }
}
