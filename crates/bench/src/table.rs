//! Tables for people.

use comfy_table::{Cell as Field, CellAlignment, Table, presets};

use crate::experiment::{Cell, Metric, UNIX, Unit};
use crate::report::{ArmReport, CellReport, Report};
use crate::verdict::{Comparison, Verdict};

/// One cell in one placement: a row for each arm, then what follows from them.
pub fn cell(cell: &Cell, report: &CellReport) -> String {
    let mut table = new(&[
        "arm",
        headline(cell.unit),
        "p50",
        "p99",
        "CPU/msg",
        "calls/msg",
        "switches/msg",
        "wake-ups/msg",
        "lo B/msg",
        "carried",
    ]);
    for arm in &report.arms {
        let rate = arm
            .rate
            .map_or("none".to_string(), |rate| speed(cell.unit, arm, rate));
        let count = |value: Option<f64>| value.map_or(String::new(), number);
        let time = |value: Option<f64>| value.map_or(String::new(), duration);
        row(
            &mut table,
            [
                arm.arm.to_string(),
                rate,
                time(arm.p50_ns),
                time(arm.p99_ns),
                time(arm.cpu_ns),
                calls(arm),
                count(arm.switches),
                count(arm.doorbells),
                count(arm.loopback_bytes),
                carried(arm),
            ],
        );
    }
    let mut text = format!("\n{} {}\n{table}", report.cell, report.placement.name());
    for arm in &report.arms {
        if let Some(failure) = arm.failures.first() {
            text += &format!("\n  {}: {failure}", arm.arm);
        }
        if let Some(objection) = arm.carried.and_then(|carried| carried.objection) {
            text += &format!(
                "\n  {} was not carried: {objection}{}",
                arm.arm,
                reasons(arm)
            );
        }
    }
    for comparison in &report.comparisons {
        text += &format!("\n  {}", sentence(comparison));
    }
    for comparison in report.rerun.iter().flatten() {
        text += &format!("\n  again: {}", sentence(comparison));
    }
    text
}

/// Every goal and every "never slower" of a report that did not hold, or a line that all did.
pub fn summary(report: &Report) -> String {
    let mut goals = new(&[
        "cell",
        "placement",
        "of",
        "ratio",
        "95 %",
        "must",
        "aim",
        "verdict",
    ]);
    let mut shown = 0;
    for found in &report.cells {
        for (index, first) in found.comparisons.iter().enumerate() {
            let aside = first.must.is_none() && first.against == UNIX.name;
            let held = first.must.is_none() && first.verdict == Verdict::NotSlower;
            if aside || held {
                continue;
            }
            let again = found.rerun.as_ref().and_then(|rerun| rerun.get(index));
            for comparison in [Some(first), again].into_iter().flatten() {
                shown += 1;
                let factor = |value: Option<f64>| {
                    value.map_or(String::new(), |value| format!("{}x", number(value)))
                };
                row(
                    &mut goals,
                    [
                        found.cell.clone(),
                        found.placement.name().to_string(),
                        of(comparison),
                        factor(Some(comparison.ratio)),
                        interval(comparison),
                        factor(comparison.must),
                        factor(comparison.aim),
                        comparison.verdict.words().to_string(),
                    ],
                );
            }
        }
    }
    let count = |verdict: Verdict| {
        let all = report.cells.iter().flat_map(|cell| &cell.comparisons);
        all.filter(|comparison| comparison.verdict == verdict)
            .count()
    };
    let mut text = String::new();
    if shown > 0 {
        text += &format!("\n{goals}");
    }
    text + &format!(
        "\naim met {}, must met {}, missed {}; never slower: held {}, broken {}; not carried {}",
        count(Verdict::Aim),
        count(Verdict::Must),
        count(Verdict::Missed),
        count(Verdict::NotSlower),
        count(Verdict::Slower),
        count(Verdict::NotCarried),
    )
}

/// A table with right-aligned figures.
pub fn new(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(head.iter().map(Field::new));
    table
}

pub fn row<const N: usize>(table: &mut Table, fields: [String; N]) {
    let fields = fields.into_iter().enumerate().map(|(index, text)| {
        let right = text.starts_with(|c: char| c.is_ascii_digit()) && index > 0;
        Field::new(text).set_alignment(if right {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        })
    });
    table.add_row(fields);
}

/// Three significant digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        v if v >= 99.95 => grouped(value.round() as i64),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.0005 => format!("{value:.3}"),
        _ => "0".to_string(),
    }
}

/// A time given in nanoseconds, in the unit that suits it.
pub fn duration(ns: f64) -> String {
    match ns {
        n if n >= 1e9 => format!("{} s", number(n / 1e9)),
        n if n >= 1e6 => format!("{} ms", number(n / 1e6)),
        n if n >= 1e3 => format!("{} µs", number(n / 1e3)),
        n => format!("{} ns", number(n)),
    }
}

pub fn calls(arm: &ArmReport) -> String {
    arm.syscalls
        .map_or(String::new(), |calls| match calls.method {
            "ptrace" => format!("{} (ptrace)", number(calls.per_message)),
            _ => number(calls.per_message),
        })
}

pub fn carried(arm: &ArmReport) -> String {
    match arm.carried {
        None => String::new(),
        Some(carried) if carried.of == 0 => String::new(),
        Some(carried) if carried.yes == carried.of => "yes".to_string(),
        Some(carried) if carried.yes == 0 => "NOT CARRIED".to_string(),
        Some(carried) => format!("only {} of {}", carried.yes, carried.of),
    }
}

/// What the library itself said of the last sample's connections.
fn reasons(arm: &ArmReport) -> String {
    let Some(counters) = &arm.counters else {
        return String::new();
    };
    let mut text = format!(
        "; {} processes counted {} carried and {} fallen back",
        counters.processes, counters.accelerated, counters.fallback
    );
    for (reason, count) in &counters.fallback_reasons {
        text += &format!(", {reason} {count}");
    }
    text
}

fn headline(unit: Unit) -> &'static str {
    match unit {
        Unit::RoundTrip => "round trip",
        Unit::Stream => "MB/s",
        Unit::Rate => "1/s",
    }
}

fn speed(unit: Unit, arm: &ArmReport, rate: f64) -> String {
    match unit {
        Unit::RoundTrip => duration(1e9 / rate),
        Unit::Stream => number(arm.bytes_rate.unwrap_or(0.0) / 1e6),
        Unit::Rate => number(rate),
    }
}

fn sentence(comparison: &Comparison) -> String {
    let wanted = match (comparison.must, comparison.aim) {
        (Some(must), Some(aim)) => format!(", must {}x, aim {}x:", number(must), number(aim)),
        (Some(must), None) => format!(", must {}x:", number(must)),
        _ => String::new(),
    };
    format!(
        "{}: {}x [{}]{wanted} {}",
        of(comparison),
        number(comparison.ratio),
        interval(comparison),
        comparison.verdict.words()
    )
}

fn of(comparison: &Comparison) -> String {
    let metric = match comparison.metric {
        Metric::Rate => "",
        Metric::P50 => "p50 of ",
        Metric::P99 => "p99 of ",
        Metric::Cpu => "CPU of ",
    };
    format!("{metric}{} over {}", comparison.arm, comparison.against)
}

fn interval(comparison: &Comparison) -> String {
    let range = format!("{}-{}", number(comparison.low), number(comparison.high));
    match comparison.coverage {
        c if c >= 0.95 => range,
        _ => format!("{range}, {} pairs", comparison.pairs),
    }
}

fn grouped(value: i64) -> String {
    let digits = value.abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    match value < 0 {
        true => format!("-{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_fitting_unit() {
        let figures = [0.0, 0.0123, 0.9, 1.0, 12.34, 99.96, 1234567.8];
        let shown = figures.map(number);
        assert_eq!(
            shown,
            ["0", "0.012", "0.900", "1.00", "12.3", "100", "1,234,568"]
        );
        assert_eq!(duration(62_400.0), "62.4 µs");
        assert_eq!(duration(380.0), "380 ns");
    }
}
