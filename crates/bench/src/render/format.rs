//! Numbers for people, in the report.

use std::mem;

use crate::experiment::Metric;
use crate::findings::{Measure, Value};
use crate::numbers;
use crate::verdict::{Comparison, Figure};

/// Stands where nothing was measured.
pub const MISSING: &str = "–";

const SI: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
const BINARY: [(f64, &str); 3] = [
    ((1u64 << 30) as f64, "GiB"),
    ((1u64 << 20) as f64, "MiB"),
    ((1u64 << 10) as f64, "KiB"),
];
const TIMES: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];

/// Three significant digits with a minus sign that is one; powers of ten where it is very large or very small.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_string();
    }
    let size = value.abs();
    if size != 0.0 && !(5e-4..1e12).contains(&size) {
        return minus(&scientific(value));
    }
    minus(&numbers::number(value))
}

/// A value with its unit, as tables and tips show it.
pub fn measure(unit: Measure, value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_string();
    }
    match unit {
        Measure::Text | Measure::Count | Measure::PerSecond => whole(value),
        Measure::Nanoseconds => scaled(value, &TIMES, "ns", number),
        Measure::Bytes => scaled(value, &BINARY, "B", whole),
        Measure::BytesPerSecond => scaled(value, &SI, "", number) + "B/s",
        Measure::Share => number(value * 100.0) + " %",
        Measure::Percent => number(value) + " %",
        Measure::Factor => factor(value),
    }
}

/// The same for a place on an axis: as short as it can be.
pub fn tick(unit: Measure, value: f64) -> String {
    match unit {
        Measure::Text | Measure::Count | Measure::PerSecond => match value.abs() {
            size if size >= 1e4 => scaled(value, &SI, "", plain).replace(' ', ""),
            _ => plain(value),
        },
        Measure::Nanoseconds => scaled(value, &TIMES, "ns", plain),
        Measure::Bytes => scaled(value, &BINARY, "B", plain),
        Measure::BytesPerSecond => scaled(value, &SI, "", plain) + "B/s",
        Measure::Share => plain(value * 100.0) + " %",
        Measure::Percent => plain(value) + " %",
        Measure::Factor => plain(value) + "×",
    }
}

pub fn value(unit: Measure, value: &Value) -> String {
    match value {
        Value::Number(number) => measure(unit, *number),
        Value::Text(text) => text.clone(),
        Value::Missing(()) => MISSING.to_string(),
    }
}

pub fn factor(value: f64) -> String {
    times(value) + "×"
}

/// "1.90–2.30×", or as much of it as is known.
pub fn factors(low: f64, high: f64) -> String {
    format!("{}–{}", times(low), factor(high))
}

/// Two decimals are as much as a ratio below ten can tell.
fn times(value: f64) -> String {
    match value {
        small if (0.0995..9.995).contains(&small) => format!("{small:.2}"),
        other => number(other),
    }
}

pub fn count(count: usize) -> String {
    numbers::grouped(count as i64)
}

/// The figure of a comparison, or another value of its kind.
pub fn figure(comparison: &Comparison, value: f64) -> String {
    match comparison.figure {
        Figure::Ratio(_) => factor(value),
        Figure::More(_) if !value.is_finite() => MISSING.to_string(),
        Figure::More(_) => {
            let unit = match comparison.metric {
                Metric::CpuShare | Metric::Loss => Measure::Share,
                Metric::Memory | Metric::AddressSpace => Measure::Bytes,
                _ => Measure::Nanoseconds,
            };
            let sign = if value < 0.0 { "−" } else { "+" };
            format!("{sign}{}", measure(unit, value.abs()))
        }
    }
}

pub fn interval(comparison: &Comparison) -> String {
    let range = match comparison.figure {
        Figure::Ratio(_) => factors(comparison.low, comparison.high),
        Figure::More(_) => format!(
            "{} to {}",
            figure(comparison, comparison.low),
            figure(comparison, comparison.high)
        ),
    };
    match comparison.coverage {
        coverage if coverage >= 0.95 => range,
        _ => format!("{range}, all of {}", plural(comparison.pairs, "pair")),
    }
}

pub fn wanted(comparison: &Comparison) -> String {
    let at = |value: f64| match comparison.figure {
        Figure::Ratio(_) => short(value) + "×",
        Figure::More(_) => format!("at most {}", figure(comparison, value)),
    };
    match (comparison.must, comparison.aim) {
        (Some(must), Some(aim)) if aim > must => format!("{}, aim {}", at(must), at(aim)),
        (Some(must), _) => at(must),
        (None, _) => "not slower".to_string(),
    }
}

pub fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "rate",
        Metric::P50 | Metric::P50Time => "median time",
        Metric::P99 | Metric::P99Time => "99th percentile",
        Metric::Cpu => "CPU time",
        Metric::Time => "time",
        Metric::CpuShare => "share of a CPU",
        Metric::Memory => "memory",
        Metric::AddressSpace => "address space",
        Metric::Loss => "loss",
    }
}

pub fn plural(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{} {word}s", self::count(count)),
    }
}

/// A time in seconds, as it was asked for.
pub fn seconds(value: f64) -> String {
    plain(value) + " s"
}

/// From one moment to another; the date only once where it is the same.
pub fn period(from: u64, to: Option<u64>) -> String {
    let (date, time) = date_and_time(from);
    match to.map(date_and_time) {
        None => format!("{date}, {time} UTC"),
        Some((same, until)) if same == date => format!("{date}, {time}–{until} UTC"),
        Some((other, until)) => format!("{date}, {time} – {other}, {until} UTC"),
    }
}

/// "1 h 39 min", "12 min", "48 s".
pub fn span(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

fn date_and_time(seconds: u64) -> (String, String) {
    const MONTHS: &str =
        "January February March April May June July August September October November December";
    let time = seconds.min(libc::time_t::MAX as u64) as libc::time_t;
    // SAFETY: both point to their own whole values; a time out of range leaves the zeroes.
    let tm = unsafe {
        let mut tm: libc::tm = mem::zeroed();
        libc::gmtime_r(&time, &mut tm);
        tm
    };
    let month = MONTHS
        .split(' ')
        .nth(tm.tm_mon as usize)
        .unwrap_or_default();
    (
        format!("{} {month} {}", tm.tm_mday, i64::from(tm.tm_year) + 1900),
        format!("{:02}:{:02}", tm.tm_hour, tm.tm_min),
    )
}

fn scaled(value: f64, units: &[(f64, &str)], least: &str, show: fn(f64) -> String) -> String {
    let fits = |&&(size, _): &&(f64, &str)| value.abs() >= size * 0.9995;
    let (size, unit) = units.iter().find(fits).copied().unwrap_or((1.0, least));
    format!("{} {unit}", show(value / size))
}

/// Three digits, less where they are zeroes.
fn short(value: f64) -> String {
    let text = number(value);
    match text.contains('.') && !text.contains('·') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Without decimals where there are none.
fn whole(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 100.0 {
        true => plain(value),
        false => number(value),
    }
}

/// As many digits as there are, up to four.
fn plain(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e6).contains(&size) {
        return minus(&scientific(value));
    }
    let text = format!("{value:.4}");
    minus(text.trim_end_matches('0').trim_end_matches('.'))
}

fn scientific(value: f64) -> String {
    let text = format!("{value:.2e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}·10{}", superscript(power))
}

fn superscript(power: &str) -> String {
    let raise = |digit: char| match digit.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    };
    power.chars().map(raise).collect()
}

fn minus(text: &str) -> String {
    text.replacen('-', "−", 1)
}

#[cfg(test)]
mod tests;
