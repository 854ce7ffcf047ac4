//! Numbers and times as people read them.

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

/// With a comma before each three digits but the first.
pub fn grouped(value: i64) -> String {
    let digits = value.abs().to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", groups.join(","))
}

#[cfg(test)]
mod tests;
