//! Every cell, folded: its arms in each placement, and what was compared.

use maud::{Markup, html};

use super::{Rest, code, short, wide};
use crate::cells::{ArmReport, CellReport};
use crate::experiment::Unit;
use crate::findings::Measure;
use crate::latency::Latency;
use crate::render::{file_name, format};
use crate::report::Report;
use crate::stats::Spread;
use crate::table;
use crate::verdict::Comparison;

pub fn all(report: &Report, rest: Rest) -> Markup {
    let groups = by_name(&report.cells);
    if groups.is_empty() {
        return html! {};
    }
    if rest == Rest::InFiles {
        return in_files(report, &groups);
    }
    html! {
        h3 { "Every cell" }
        div class="cells" { @for group in &groups { (folded(group)) } }
        p class="on-paper quiet" { "The tables of the single cells are in the CSV file of this experiment's cells, or on paper where they were unfolded before printing." }
    }
}

/// One line for each; the rest in its file.
fn in_files(report: &Report, groups: &[Vec<&CellReport>]) -> Markup {
    html! {
        h3 { "Every cell" }
        details {
            summary { (format::plural(groups.len(), "cell")) ", with the first comparison of each placement" }
            (wide("Every cell", 2, html! {
                table { tbody { @for group in groups { tr { th scope="row" { (code(&group[0].cell)) } td { (gist(group)) } } } } }
            }))
        }
        p class="quiet" { "All that was measured is in " (code(&file_name(&report.experiment, "cells", "csv"))) ", what was compared in "
            (code(&file_name(&report.experiment, "comparisons", "csv"))) "." }
    }
}

/// Each with its placements: works in the order of their first appearance, within a work by size.
fn by_name(cells: &[CellReport]) -> Vec<Vec<&CellReport>> {
    let first = |work: &str| cells.iter().position(|cell| cell.work == work);
    let mut groups: Vec<Vec<&CellReport>> = Vec::new();
    for cell in cells {
        match groups.iter_mut().find(|group| group[0].cell == cell.cell) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups.sort_by_key(|group| (first(&group[0].work), group[0].size));
    groups
}

fn folded(group: &[&CellReport]) -> Markup {
    html! {
        details {
            summary {
                (code(&group[0].cell)) " "
                span class="quiet" { (gist(group)) }
            }
            @for cell in group { (one(cell, &columns(group))) }
        }
    }
}

/// The first ratio of each placement.
fn gist(group: &[&CellReport]) -> String {
    let of = |cell: &&CellReport| {
        let figure = cell.comparisons.first().map_or(String::new(), |first| {
            format!(" {}", format::figure(first, first.figure.value()))
        });
        format!("{}{figure}", cell.placement.name())
    };
    group.iter().map(of).collect::<Vec<_>>().join(" · ")
}

fn one(cell: &CellReport, columns: &[&Column]) -> Markup {
    let label = format!("{} {}", cell.cell, cell.placement.name());
    let strips = Strips::of(cell);
    let proved = cell.arms.iter().any(|arm| arm.carried.is_some());
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "arm" }
                    th scope="col" { "rounds" }
                    @for column in columns { th scope="col" class="number" { (column.head) } }
                    @if proved { th scope="col" { "carried" } }
                }
            }
            tbody {
                @for arm in &cell.arms {
                    tr {
                        th scope="row" { (arm.arm) }
                        td class="rounds" { (strips.draw(arm)) span { (arm.samples) @if arm.samples != arm.rates.len() { " of " (arm.rates.len()) } } }
                        @for column in columns { (field((column.show)(arm, cell.unit))) }
                        @if proved { td { (carried(arm)) } }
                    }
                }
            }
        }
    };
    html! {
        h4 { (cell.placement.name()) }
        (wide(&label, columns.len() + 3, table))
        (further(cell))
        (remarks(cell))
    }
}

fn field(text: Option<String>) -> Markup {
    match text {
        Some(text) => html! { td class="number" { (text) } },
        None => html! { td class="number quiet" { (format::MISSING) } },
    }
}

fn carried(arm: &ArmReport) -> Markup {
    match &arm.carried {
        None => html! {},
        Some(carried) if carried.of == 0 => html! {},
        Some(carried) if carried.yes == carried.of => html! { "yes" },
        Some(carried) => html! { span class="verdict bad" { (carried.yes) " of " (carried.of) } },
    }
}

struct Column {
    head: &'static str,
    show: fn(&ArmReport, Unit) -> Option<String>,
}

macro_rules! column {
    ($head:literal, $unit:ident, $field:ident) => {
        column!($head, |arm, _| Some(format::measure(
            Measure::$unit,
            arm.$field?
        )))
    };
    ($head:literal, $show:expr) => {
        Column {
            head: $head,
            show: $show,
        }
    };
}

static COLUMNS: [Column; 21] = [
    column!("time each", |arm, unit| is_timed(unit)
        .then(|| Some(time(1e9 / arm.rate?)))?),
    column!("quartiles", |arm, unit| is_timed(unit)
        .then(|| Some(times(arm.spreads.get("rate")?)))?),
    column!("MB/s", |arm, _| Some(format::number(arm.bytes_rate? / 1e6))),
    column!("quartiles", |arm, unit| {
        let is_stream = unit == Unit::Stream;
        is_stream.then(|| Some(between(arm.spreads.get("bytes_rate")?, 1e6)))?
    }),
    column!("per second", |arm, unit| is_counted(unit)
        .then(|| Some(format::number(arm.rate?)))?),
    column!("quartiles", |arm, unit| {
        is_counted(unit).then(|| Some(between(arm.spreads.get("rate")?, 1.0)))?
    }),
    column!("sent/s", PerSecond, tx_rate),
    column!("received/s", PerSecond, rx_rate),
    column!("lost", Share, loss),
    column!("median", Nanoseconds, p50_ns),
    column!("p99", Nanoseconds, p99_ns),
    column!("CPU/msg", Nanoseconds, cpu_ns),
    column!("user", Nanoseconds, user_ns),
    column!("system", Nanoseconds, system_ns),
    column!("calls/msg", |arm, _| Some(table::calls(arm))
        .filter(|calls| !calls.is_empty())),
    column!("switches/msg", |arm, _| Some(format::number(arm.switches?))),
    column!("of them forced", |arm, _| Some(format::number(
        arm.involuntary?
    ))),
    column!("wake-ups/msg", |arm, _| Some(format::number(
        arm.doorbells?
    ))),
    column!("share of a CPU", Share, cpu_share),
    column!("memory each", Bytes, memory),
    column!("address space each", Bytes, address_space),
];

/// Those that some arm of the group has something for.
fn columns(group: &[&CellReport]) -> Vec<&'static Column> {
    let has = |column: &&Column| {
        group.iter().any(|cell| {
            cell.arms
                .iter()
                .any(|arm| (column.show)(arm, cell.unit).is_some())
        })
    };
    COLUMNS.iter().filter(has).collect()
}

fn is_timed(unit: Unit) -> bool {
    matches!(unit, Unit::RoundTrip | Unit::Each | Unit::Messages)
}

fn is_counted(unit: Unit) -> bool {
    matches!(unit, Unit::Rate | Unit::Load | Unit::Datagrams)
}

fn time(ns: f64) -> String {
    format::measure(Measure::Nanoseconds, ns)
}

/// From fast to slow; the unit once, where it is the same.
fn times(rates: &Spread) -> String {
    let (short, long) = (time(1e9 / rates.q3), time(1e9 / rates.q1));
    match (short.split_once(' '), long.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} – {long}"),
        _ => format!("{short} – {long}"),
    }
}

fn between(range: &Spread, scale: f64) -> String {
    let ends = [range.q1, range.q3].map(|end| format::number(end / scale));
    ends.join(" – ")
}

/// The rates of the rounds as strokes, on one logarithmic scale for the arms of a cell: faster is further to the right.
struct Strips {
    low: f64,
    span: f64,
}

impl Strips {
    const WIDTH: f64 = 96.0;

    fn of(cell: &CellReport) -> Strips {
        let rates = cell.arms.iter().flat_map(|arm| &arm.rates).flatten();
        let logs = rates
            .filter(|rate| rate.is_normal() && **rate > 0.0)
            .map(|rate| rate.ln());
        let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| {
            (low.min(log), high.max(log))
        });
        // Less than a tenth between all of them would only magnify noise.
        let span = (high - low).max(0.1);
        Strips {
            low: low - (span - (high - low)) / 2.0,
            span,
        }
    }

    fn draw(&self, arm: &ArmReport) -> Markup {
        let place = |rate: &f64| 1.0 + (Self::WIDTH - 2.0) * (rate.ln() - self.low) / self.span;
        let strokes: String = arm
            .rates
            .iter()
            .flatten()
            .filter(|rate| rate.is_normal() && **rate > 0.0)
            .map(|rate| format!("M{:.1} 1v12", place(rate)))
            .collect();
        html! {
            @if !strokes.is_empty() {
                svg class="strip" viewBox=(format!("0 0 {} 14", Self::WIDTH)) aria-hidden="true" { path d=(strokes) {} }
            }
        }
    }
}

/// Whole distributions and what else an experiment tells, with a column for each arm.
fn further(cell: &CellReport) -> Markup {
    let rows = further_rows(cell);
    if rows.is_empty() {
        return html! {};
    }
    let table = html! {
        table {
            thead { tr { th scope="col" { "further" } @for arm in &cell.arms { th scope="col" class="number" { (arm.arm) } } } }
            tbody { @for (name, fields) in rows { tr { th scope="row" { (name) } @for text in fields { (field(text)) } } } }
        }
    };
    let label = format!("{} {}, further figures", cell.cell, cell.placement.name());
    wide(&label, cell.arms.len() + 1, table)
}

type Part = fn(&Latency) -> f64;
type Row = (String, Vec<Option<String>>);

fn further_rows(cell: &CellReport) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut names: Vec<&String> = cell
        .arms
        .iter()
        .flat_map(|arm| arm.latencies.keys())
        .collect();
    names.sort();
    names.dedup();
    for name in names {
        let ends: [(&str, Part); 5] = [
            ("median", |l| l.p50_ns),
            ("90 %", |l| l.p90_ns),
            ("99 %", |l| l.p99_ns),
            ("99.9 %", |l| l.p999_ns),
            ("longest", |l| l.max_ns),
        ];
        for (end, of) in ends {
            let fields = cell
                .arms
                .iter()
                .map(|arm| arm.latencies.get(name).map(|latency| time(of(latency))));
            rows.push((
                format!("{}, {end}", name.replace('_', " ")),
                fields.collect(),
            ));
        }
    }
    let mut names: Vec<&String> = cell.arms.iter().flat_map(|arm| arm.values.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let (words, unit) = named_unit(name);
        let fields = cell.arms.iter().map(|arm| {
            arm.values
                .get(name)
                .map(|value| format::measure(unit, *value))
        });
        rows.push((words, fields.collect()));
    }
    rows
}

/// What a name says of its unit at the end.
fn named_unit(name: &str) -> (String, Measure) {
    let units = [
        ("_ns", Measure::Nanoseconds),
        ("_bytes", Measure::Bytes),
        ("_bytes_per_second", Measure::BytesPerSecond),
        ("_per_second", Measure::PerSecond),
        ("_share", Measure::Share),
        ("_percent", Measure::Percent),
    ];
    let found = units
        .iter()
        .filter_map(|(end, unit)| Some((name.strip_suffix(end)?, *unit)));
    let (words, unit) = found
        .min_by_key(|(rest, _)| rest.len())
        .unwrap_or((name, Measure::Count));
    (words.replace('_', " "), unit)
}

fn remarks(cell: &CellReport) -> Markup {
    html! {
        @let objections = cell.arms.iter().filter_map(|arm| Some((arm, arm.carried.as_ref()?.objection.as_ref()?)));
        ul class="remarks" {
            @for comparison in &cell.comparisons { (remark("", comparison)) }
            @for comparison in cell.rerun.iter().flatten() { (remark("Again: ", comparison)) }
            @for (arm, objection) in objections { li { (arm.arm) " was not carried: " (objection) "." } }
            @for arm in &cell.arms {
                @if let Some(failure) = arm.failures.first() {
                    li { (arm.arm) " failed"
                        @if arm.failures.len() > 1 { " " (arm.failures.len()) " times, first" }
                        ": " (failure) }
                }
            }
        }
    }
}

fn remark(before: &str, comparison: &Comparison) -> Markup {
    html! {
        li {
            (before) (short::of(comparison)) ": "
            strong { (format::figure(comparison, comparison.figure.value())) }
            " (" (format::interval(comparison)) ")"
            @if comparison.must.is_some() { ", wanted " (format::wanted(comparison)) }
            " " (short::verdict(comparison.verdict))
        }
    }
}
