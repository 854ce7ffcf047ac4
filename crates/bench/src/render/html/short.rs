//! What did not get better, as plainly as what did.

use maud::{Markup, html};

use super::{Rest, code, wide};
use crate::render::file_name;
use crate::render::format::{self, plural};
use crate::render::tally::{Shortfall, Silence, Tally, shortfalls, silences};
use crate::report::Report;
use crate::verdict::{Comparison, Verdict};

/// So many are shown at once, the worst first.
const SHOWN: usize = 15;
/// So many cells are named where an arm has no sample; the rest is counted.
const NAMED: usize = 6;

pub fn block(report: &Report, id: &str, rest: Rest) -> Markup {
    let (short, silent) = (shortfalls(report), silences(report));
    let tally = Tally::of([report]);
    html! {
        div class=(if short.is_empty() && silent.is_empty() { "short none" } else { "short" }) id=(format!("{id}-short")) {
            h3 { "What did not get better" }
            @if short.is_empty() && silent.is_empty() { p { (held(&tally)) } }
            @else if tally.judged() > 0 {
                p { (format::count(tally.bad())) " of " (plural(tally.judged(), "comparison")) " fell short." }
            }
            @if !short.is_empty() { (table(&short[..short.len().min(SHOWN)])) }
            @if short.len() > SHOWN && rest == Rest::InFiles {
                p class="quiet" { "And " (plural(short.len() - SHOWN, "other")) " in " (code(&file_name(&report.experiment, "comparisons", "csv"))) "." }
            } @else if short.len() > SHOWN {
                details {
                    summary { "and " (plural(short.len() - SHOWN, "other")) }
                    (table(&short[SHOWN..]))
                }
            }
            @if !silent.is_empty() {
                p { "Arms without a sample:" }
                ul { @for silence in &silent { (without(silence)) } }
            }
        }
    }
}

fn held(tally: &Tally) -> String {
    match tally.judged() {
        0 => "Nothing was judged here, and every arm has samples.".to_string(),
        count => format!(
            "Everything that was judged held ({}), and every arm has samples.",
            plural(count, "comparison")
        ),
    }
}

fn table(short: &[Shortfall<'_>]) -> Markup {
    let has_again = short.iter().any(|one| one.again.is_some());
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "cell" } th scope="col" { "placement" } th scope="col" { "what" }
                    th scope="col" class="number" { "measured" } th scope="col" class="number" { "interval" }
                    th scope="col" class="number" { "wanted" } th scope="col" { "verdict" }
                    @if has_again { th scope="col" { "measured again" } }
                }
            }
            tbody {
                @for one in short {
                    tr {
                        th scope="row" { (code(one.cell)) }
                        td { (one.place) }
                        td { (of(one.first)) }
                        td class="number" { strong { (format::figure(one.first, one.first.figure.value())) } }
                        td class="number" { (format::interval(one.first)) }
                        td class="number" { (format::wanted(one.first)) }
                        td { (verdict(one.first.verdict)) }
                        @if has_again { td { @if let Some(again) = one.again {
                            (format::figure(again, again.figure.value())) ", " (verdict(again.verdict))
                        } } }
                    }
                }
            }
        }
    };
    wide("What did not get better", 8, table)
}

fn without(silence: &Silence<'_>) -> Markup {
    let named: Vec<&str> = silence
        .cells
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect();
    let more = silence.cells.len().saturating_sub(NAMED);
    html! {
        li {
            strong { (silence.arms.join(", ")) } ": " (silence.reason) " "
            span class="quiet" { "(" (named.join(", ")) @if more > 0 { ", and " (more) " more" } ")" }
        }
    }
}

/// "rate, accelerated over tcp".
pub fn of(comparison: &Comparison) -> Markup {
    html! { (format::metric(comparison.metric)) ", " (comparison.arm) " over " (comparison.against) }
}

pub fn verdict(verdict: Verdict) -> Markup {
    let (words, class) = match verdict {
        Verdict::Seen => ("for information", "seen"),
        Verdict::NotSlower => ("not slower", "good"),
        Verdict::Must => ("reached", "good"),
        Verdict::Aim => ("reached with room", "good"),
        Verdict::Slower => ("slower", "bad"),
        Verdict::Missed => ("missed", "bad"),
        Verdict::NotCarried => ("not carried", "bad"),
    };
    html! { span class=(format!("verdict {class}")) { (words) } }
}
