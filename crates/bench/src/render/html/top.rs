//! The first screen, and the contents.

use maud::{Markup, html};

use super::{capital, code, sentence};
use crate::findings::{Axis, Headline, Measure, Scale as Kind};
use crate::render::format::{self, plural};
use crate::render::plot::scale::Scale;
use crate::render::slug;
use crate::render::tally::Tally;
use crate::report::Report;
use crate::results::Run;
use crate::select::Extent;

pub fn header(run: &Run) -> Markup {
    html! {
        header {
            p class="kicker" { "Headwater bench" }
            h1 { "Headwater, measured" }
            p class="deck" { (deck(run)) }
            (notices(run))
            (facts(run))
            (scores(run))
            (headlines(run))
        }
    }
}

/// One sentence about all ratios together, which takes no side.
fn deck(run: &Run) -> String {
    let (mut better, mut even, mut worse) = (0, 0, 0);
    for headline in all_headlines(run).map(|(_, headline)| headline) {
        *match Side::of(headline) {
            Side::Better => &mut better,
            Side::Even => &mut even,
            Side::Worse => &mut worse,
        } += 1;
    }
    let count = better + even + worse;
    match count {
        0 if run.experiments.iter().all(|report| report.cells.is_empty()) => {
            "Nothing has been measured.".to_string()
        }
        0 => format!(
            "{} measured; none of them has a ratio for this place.",
            plural(run.experiments.len(), "experiment")
        ),
        1 => "The ratio below has its interval beside it.".to_string(),
        _ if better == count => {
            format!("All of the {count} ratios below are better than what they are compared with.")
        }
        _ => {
            let is = |count: usize| if count == 1 { "is" } else { "are" };
            let mut parts = vec![format!(
                "{better} {} better than what they are compared with",
                is(better)
            )];
            if even > 0 {
                parts.push(format!("{even} {} the same within the interval", is(even)));
            }
            parts.push(match worse {
                0 => "none is worse".to_string(),
                _ => format!("{worse} {} worse", is(worse)),
            });
            format!(
                "Of the {} below, {}.",
                plural(count, "ratio"),
                parts.join(", ")
            )
        }
    }
}

fn notices(run: &Run) -> Markup {
    let wrong: Vec<&str> = run
        .experiments
        .iter()
        .filter(|report| report.wrong_contents)
        .map(|r| r.experiment.as_str())
        .collect();
    html! {
        @if !wrong.is_empty() {
            p class="notice bad" { strong { "Wrong bytes were received" } " in " (wrong.join(", ")) ". Nothing of this run counts until that is understood." }
        }
        @if !run.complete {
            p class="notice" { strong { "A partial report." } " The run had not come to its end; what is here was measured in full." }
        }
        @if run.quick {
            p class="notice" { strong { "A quick run:" } " a few cells of each experiment, few rounds, short samples. Good for a look, not for quoting." }
        }
    }
}

fn facts(run: &Run) -> Markup {
    let cells: usize = run
        .experiments
        .iter()
        .map(|report| report.cells.len())
        .sum();
    let cpus = plural(run.machine.cpus.len(), "CPU");
    html! {
        dl class="facts" {
            div { dt { "On" } dd { (run.machine.cpu) ", " (cpus) br; "Linux " (run.machine.kernel) } }
            div {
                dt { "When" }
                dd {
                    (format::period(run.started, run.finished))
                    @if let Some(finished) = run.finished { br; (format::span(finished.saturating_sub(run.started))) }
                }
            }
            div {
                dt { "How" }
                dd {
                    (match run.extent() { Extent::Quick => "Quick run", Extent::Usual => "Full run", Extent::All => "Run of all there is" }) ", " (if run.complete { "complete" } else { "partial" })
                    br;
                    (plural(run.rounds, "round")) " of " (format::seconds(run.seconds_per_sample)) ", arms in turn"
                    @if run.disturbed_rounds > 0 { br; (plural(run.disturbed_rounds as usize, "disturbed round")) " taken again" }
                }
            }
            div {
                dt { "What" }
                dd {
                    (plural(run.experiments.len(), "experiment")) ", " (plural(cells, "measurement")) br;
                    "Headwater " (run.version)
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Better,
    Even,
    Worse,
}

impl Side {
    fn of(headline: &Headline) -> Side {
        match headline {
            h if h.factor > 1.0 && h.low > 1.0 => Side::Better,
            h if h.factor < 1.0 && h.high < 1.0 => Side::Worse,
            _ => Side::Even,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Side::Better => "better",
            Side::Even => "even",
            Side::Worse => "worse",
        }
    }
}

fn all_headlines(run: &Run) -> impl Iterator<Item = (&Report, &Headline)> {
    let of = |report| std::iter::repeat(report);
    run.experiments
        .iter()
        .flat_map(move |report| of(report).zip(&report.conclusion.headlines))
        .filter(|(_, headline)| headline.factor.is_finite() && headline.factor > 0.0)
}

/// All ratios over one axis, so that they can be compared by eye.
fn headlines(run: &Run) -> Markup {
    let ends = |headline: &Headline| [headline.low, headline.factor, headline.high];
    let values = all_headlines(run)
        .flat_map(|(_, headline)| ends(headline))
        .chain([0.8, 2.0]);
    let axis = Axis::new("", Measure::Factor, Kind::Log10);
    let Some(scale) = Scale::new(&axis, values).map(|scale| scale.between(0.0, 100.0)) else {
        return html! {};
    };
    if all_headlines(run).next().is_none() {
        return html! {};
    }
    let mut ticks = scale.ticks(|label| 5.0 + 3.0 * label.chars().count() as f64);
    ticks.retain(|tick| tick.value != 1.0);
    html! {
        table class="ratios" {
            caption { "How many times as good, with the interval of the median" }
            thead {
                tr {
                    th scope="col" { span class="unseen" { "experiment" } }
                    th scope="col" { span class="unseen" { "what was measured" } }
                    th class="where" scope="col" aria-hidden="true" {
                        div class="track axis" {
                            @if let Some(at) = scale.place(1.0) { span class="tick one" style=(left(at)) { "1×" } }
                            @for tick in &ticks {
                                @if let Some(at) = scale.place(tick.value) { span class="tick" style=(left(at)) { (tick.label) } }
                            }
                        }
                    }
                    th scope="col" { span class="unseen" { "ratio" } }
                }
            }
            @for report in run.experiments.iter().filter(|report| !report.conclusion.headlines.is_empty()) {
                @let own: Vec<&Headline> = all_headlines(run).filter(|(owner, _)| std::ptr::eq(*owner, report)).map(|(_, own)| own).collect();
                tbody {
                    @for (index, headline) in own.iter().enumerate() {
                        @let name = (index == 0).then_some((report.experiment.as_str(), own.len()));
                        (row(name, headline, &scale))
                    }
                }
            }
        }
    }
}

fn row(first: Option<(&str, usize)>, headline: &Headline, scale: &Scale) -> Markup {
    let side = Side::of(headline);
    let at = |value: f64| scale.place(value);
    let interval = at(headline.low)
        .zip(at(headline.high))
        .filter(|(low, high)| low <= high);
    html! {
        tr class=(side.class()) {
            @if let Some((name, rows)) = first {
                th class="of" scope="rowgroup" rowspan=(rows) { a href=(format!("#{}", slug(name))) { (name) } }
            }
            th class="what" scope="row" { (capital(&headline.what)) " " span class="over" { (headline.of) } }
            td class="where" aria-hidden="true" {
                div class="track" {
                    @if let Some((one, end)) = at(1.0).zip(at(headline.factor)) {
                        span class="one" style=(left(one)) {}
                        span class="reach" style=(range(one.min(end), one.max(end))) {}
                        @if let Some((low, high)) = interval { span class="sure" style=(range(low, high)) {} }
                        span class="dot" style=(left(end)) {}
                    }
                }
            }
            td class="ratio" {
                strong { (format::factor(headline.factor)) } " "
                @if interval.is_some() { span class="quiet" { (format::factors(headline.low, headline.high)) } }
            }
        }
    }
}

fn left(at: f64) -> String {
    format!("left:{at:.2}%")
}

fn range(from: f64, to: f64) -> String {
    format!("left:{from:.2}%;width:{:.2}%", to - from)
}

/// How all comparisons ended, the bad ones no smaller than the good ones.
fn scores(run: &Run) -> Markup {
    let tally = Tally::of(&run.experiments);
    if tally.judged() + tally.silent == 0 {
        return html! {};
    }
    let score = |count: usize, words: &str, bad: bool| {
        html! { li class=[(bad && count > 0).then_some("bad")] { strong { (format::count(count)) } " " (words) } }
    };
    html! {
        ul class="scores" {
            (score(tally.aim + tally.must, "goals reached", false))
            (score(tally.missed, "goals missed", true))
            (score(tally.held, "not slower", false))
            (score(tally.slower, "slower", true))
            (score(tally.not_carried, "not carried", true))
            (score(tally.silent, "without a sample", true))
        }
    }
}

pub fn contents(run: &Run) -> Markup {
    let count = |report: &Report| Tally::of([report]);
    html! {
        nav aria-labelledby="contents" {
            h2 id="contents" { "Contents" }
            ol class="contents" {
                @for report in &run.experiments {
                    @let tally = count(report);
                    @let id = slug(&report.experiment);
                    li {
                        a href=(format!("#{id}")) { (report.experiment) }
                        span { (sentence(&report.question)) }
                        @if tally.bad() + tally.silent > 0 {
                            a class="short" href=(format!("#{id}-short")) { (plural(tally.bad() + tally.silent, "shortfall")) }
                        }
                    }
                }
            }
            p class="more" {
                @if !run.skipped.is_empty() { a href="#skipped" { "What was skipped" } " · " }
                a href="#machine" { "The machine" } " · "
                a href="#method" { "The method" } " · "
                a href="#reading" { "How to read this" } " · "
                a href="#again" { "How to repeat it" }
            }
            @if run.experiments.is_empty() { p { "No experiment was run by " (code(&run.command)) "." } }
        }
    }
}
