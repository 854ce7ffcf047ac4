//! Tables for people.

use comfy_table::{Cell as Field, CellAlignment, Table, presets};

use crate::cells::{ArmReport, CellReport};
use crate::experiment::{Cell, Metric, Unit};
use crate::numbers::{duration, number};
use crate::verdict::{Comparison, Figure};

/// One cell in one placement: a row for each arm, then what follows from them.
pub fn cell(cell: &Cell, report: &CellReport) -> String {
    let mut columns = columns(cell.unit);
    let mut table = arms(&columns, report);
    // Whether they are carried is said beside it.
    if !fits(&table) {
        columns.retain(|(head, _)| *head != LOOPBACK.0);
        table = arms(&columns, report);
    }
    if columns.iter().any(|(head, _)| RATES.contains(head)) {
        let mut columns = columns;
        columns.insert(2, SPREAD);
        let wide = arms(&columns, report);
        if fits(&wide) {
            table = wide;
        }
    }
    let mut text = format!("\n{} {}\n{table}", report.cell, report.placement.name());
    for arm in &report.arms {
        if let Some(failure) = arm.failures.first() {
            text += &format!("\n  {}: {failure}", arm.arm);
        }
        if let Some(objection) = arm
            .carried
            .as_ref()
            .and_then(|carried| carried.objection.as_deref())
        {
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

fn arms(columns: &[Column], report: &CellReport) -> Table {
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let mut table = new(&heads.join("|"));
    for arm in &report.arms {
        row(&mut table, columns.iter().map(|(_, show)| show(arm)));
    }
    for column in table.column_iter_mut().take(columns.len() - 1) {
        column.set_padding((1, 0));
    }
    table
}

/// On the terminal, or a page of the usual width.
fn fits(table: &Table) -> bool {
    let room = table.width().map_or(100, usize::from);
    let width = table.lines().next().map_or(0, |line| line.chars().count());
    width <= room
}

/// A table with right-aligned figures; its heads are divided by strokes.
pub fn new(heads: &str) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(heads.split('|').map(Field::new));
    table
}

pub fn row(table: &mut Table, fields: impl IntoIterator<Item = String>) {
    let figure = |c: char| c.is_ascii_digit() || "+-≤".contains(c);
    let fields = fields.into_iter().enumerate().map(|(index, text)| {
        let right = text.starts_with(figure) && index > 0;
        Field::new(text).set_alignment(if right {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        })
    });
    table.add_row(fields);
}

pub fn calls(arm: &ArmReport) -> String {
    arm.syscalls
        .as_ref()
        .map_or(String::new(), |calls| match calls.method.as_str() {
            "ptrace" => format!("{} (ptrace)", number(calls.per_message)),
            _ => number(calls.per_message),
        })
}

pub fn carried(arm: &ArmReport) -> String {
    match &arm.carried {
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

type Column = (&'static str, fn(&ArmReport) -> String);

/// The heads of what is shown of a rate, always in the second column.
const RATES: [&str; 4] = ["time each", "MB/s", "round trip", "1/s"];
const LOOPBACK: Column = ("lo B\n/msg", |arm| shown(arm.loopback_bytes, number));
const SPREAD: Column = ("rate: min q1 q3", spread);

/// What is shown of an arm.
fn columns(unit: Unit) -> Vec<Column> {
    const ARM: Column = ("arm", |arm| arm.arm.to_string());
    const TIME: Column = ("time each", |arm| speed(arm, |rate| duration(1e9 / rate)));
    const MEGABYTES: Column = ("MB/s", |arm| {
        shown(arm.bytes_rate, |bytes| number(bytes / 1e6))
    });
    const P50: Column = ("p50", |arm| shown(arm.p50_ns, duration));
    const P99: Column = ("p99", |arm| shown(arm.p99_ns, duration));
    const CPU: Column = ("CPU\n/msg", |arm| shown(arm.cpu_ns, duration));
    const CPU_SHARE: Column = ("CPU", |arm| shown(arm.cpu_share, share));
    const SERVER_CPU: Column = ("server's CPU", |arm| shown(arm.cpu_share, share));
    const MEMORY: Column = ("memory\n/connection", |arm| shown(arm.memory, memory));
    const ADDRESS_SPACE: Column = ("address space/stream", |arm| {
        shown(arm.address_space, memory)
    });
    const RESIDENT: Column = ("resident/stream", |arm| shown(arm.memory, memory));
    const LOSS: Column = ("lost", |arm| shown(arm.loss, share));
    const CALLS: Column = ("calls\n/msg", calls);
    const SWITCHES: Column = ("switches\n/msg", |arm| shown(arm.switches, number));
    const WAKE_UPS: Column = ("wake-ups\n/msg", |arm| shown(arm.doorbells, number));
    const CARRIED: Column = ("carried", carried);
    const IN_ALL: Column = ("in all", |arm| number(arm.messages as f64));

    let speed: Column = match unit {
        Unit::RoundTrip => ("round trip", TIME.1),
        Unit::Stream => MEGABYTES,
        _ => ("1/s", |arm| speed(arm, number)),
    };
    match unit {
        Unit::Each => vec![ARM, TIME, P50, CPU, CALLS, IN_ALL],
        Unit::Idle => vec![ARM, CPU_SHARE, MEMORY, CARRIED],
        Unit::Load => vec![
            ARM, speed, SERVER_CPU, P50, P99, CPU, CALLS, SWITCHES, WAKE_UPS, LOOPBACK, CARRIED,
        ],
        Unit::Messages => vec![ARM, TIME, MEGABYTES, CPU, CALLS, SWITCHES, WAKE_UPS, IN_ALL],
        Unit::Footprint => vec![ARM, ADDRESS_SPACE, RESIDENT],
        Unit::Datagrams => vec![
            ARM, speed, LOSS, CPU, CALLS, SWITCHES, WAKE_UPS, LOOPBACK, CARRIED, IN_ALL,
        ],
        Unit::Delay => vec![ARM, P50, P99, CPU, CALLS, SWITCHES, WAKE_UPS, IN_ALL],
        Unit::RoundTrip | Unit::Stream | Unit::Rate => vec![
            ARM, speed, P50, P99, CPU, CALLS, SWITCHES, WAKE_UPS, LOOPBACK, CARRIED,
        ],
    }
}

fn speed(arm: &ArmReport, show: impl Fn(f64) -> String) -> String {
    arm.rate.map_or("none".to_string(), show)
}

/// How far the lowest sample and the quartiles are from the median, in percent.
fn spread(arm: &ArmReport) -> String {
    let Some(found) = arm.spread() else {
        return String::new();
    };
    let off = |value: f64| format!("{:+.0}", (value / found.median - 1.0) * 100.0);
    format!("{} {} {} %", off(found.min), off(found.q1), off(found.q3))
}

fn shown(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or(String::new(), show)
}

fn share(of_a_cpu: f64) -> String {
    format!("{} %", number(of_a_cpu * 100.0))
}

fn memory(bytes: f64) -> String {
    format!("{} KiB", number(bytes / 1024.0))
}

pub fn sentence(comparison: &Comparison) -> String {
    let must = comparison
        .must
        .map(|must| format!("must {}", wanted(comparison, must)));
    let aim = comparison
        .aim
        .map(|aim| format!("aim {}", wanted(comparison, aim)));
    let goal: Vec<String> = [must, aim].into_iter().flatten().collect();
    let goal = match goal.is_empty() {
        true => String::new(),
        false => format!(", {}:", goal.join(", ")),
    };
    format!(
        "{}: {} [{}]{goal} {}",
        of(comparison),
        shown_as(comparison, comparison.figure.value()),
        interval(comparison),
        comparison.verdict.words()
    )
}

/// What is compared, what was measured, and what was wanted, for a row.
pub fn fields(comparison: &Comparison) -> [String; 6] {
    let wanted =
        |value: Option<f64>| value.map_or(String::new(), |value| wanted(comparison, value));
    [
        of(comparison),
        shown_as(comparison, comparison.figure.value()),
        interval(comparison),
        wanted(comparison.must),
        wanted(comparison.aim),
        comparison.verdict.words().to_string(),
    ]
}

/// A value of the comparison, with its unit.
fn shown_as(comparison: &Comparison, value: f64) -> String {
    match comparison.figure {
        Figure::Ratio(_) => format!("{}x", number(value)),
        Figure::More(_) => {
            let sign = if value < 0.0 { '-' } else { '+' };
            let show = match comparison.metric {
                Metric::CpuShare | Metric::Loss => share,
                Metric::Memory | Metric::AddressSpace => memory,
                _ => duration,
            };
            format!("{sign}{}", show(value.abs()))
        }
    }
}

fn wanted(comparison: &Comparison, value: f64) -> String {
    match comparison.figure {
        Figure::Ratio(_) => shown_as(comparison, value),
        Figure::More(_) => format!("≤ {}", shown_as(comparison, value)),
    }
}

fn of(comparison: &Comparison) -> String {
    let metric = match comparison.metric {
        Metric::Rate => "",
        Metric::P50 => "p50 of ",
        Metric::P99 => "p99 of ",
        Metric::Cpu => "CPU of ",
        Metric::CpuShare => "CPU share of ",
        Metric::Time => "time of ",
        Metric::Memory => "memory of ",
        Metric::AddressSpace => "address space of ",
        Metric::P50Time => "median time of ",
        Metric::P99Time => "p99 time of ",
        Metric::Loss => "loss of ",
    };
    format!("{metric}{} over {}", comparison.arm, comparison.against)
}

fn interval(comparison: &Comparison) -> String {
    let range = match comparison.figure {
        Figure::Ratio(_) => format!("{}-{}", number(comparison.low), number(comparison.high)),
        Figure::More(_) => {
            let end = |value| shown_as(comparison, value);
            format!("{} to {}", end(comparison.low), end(comparison.high))
        }
    };
    match comparison.coverage {
        c if c >= 0.95 => range,
        _ => format!("{range}, {} pairs", comparison.pairs),
    }
}

#[cfg(test)]
mod tests;
