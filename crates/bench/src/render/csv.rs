//! Tables as CSV: bare numbers with all their digits, the unit in the head, nothing where nothing was measured.

use std::collections::BTreeSet;
use std::io;

use crate::cells::{ArmReport, CellReport};
use crate::conclusion::Best;
use crate::failure::Result;
use crate::findings::{Sheet, Value};
use crate::latency::Latency;
use crate::report::Report;
use crate::verdict::{Comparison, Figure};

type Rows = Vec<Vec<String>>;

/// Every table of an experiment by name.
pub fn tables(report: &Report) -> Result<Vec<(String, Vec<u8>)>> {
    let mut tables = vec![("cells".to_string(), csv(cells(report))?)];
    let sheets = report.conclusion.sheets.iter();
    for sheet in sheets.chain(&super::regressions(report)) {
        tables.push((sheet.name.clone(), csv(of_sheet(sheet))?));
    }
    tables.push(("comparisons".to_string(), csv(comparisons(report))?));
    if !report.conclusion.seeds.is_empty() {
        tables.push(("seeds".to_string(), csv(seeds(report))?));
    }
    Ok(tables)
}

fn csv(rows: Rows) -> io::Result<Vec<u8>> {
    let mut writer = ::csv::WriterBuilder::new()
        .flexible(true)
        .from_writer(Vec::new());
    for row in rows {
        writer.write_record(row)?;
    }
    writer
        .into_inner()
        .map_err(|error| io::Error::other(error.to_string()))
}

type Number = fn(&ArmReport) -> Option<f64>;

/// What an arm has the median of; those with a spread have four columns more.
const FIGURES: [(&str, Number); 19] = [
    ("rate", |arm| arm.rate),
    ("bytes_rate", |arm| arm.bytes_rate),
    ("tx_rate", |arm| arm.tx_rate),
    ("rx_rate", |arm| arm.rx_rate),
    ("p50_ns", |arm| arm.p50_ns),
    ("p99_ns", |arm| arm.p99_ns),
    ("cpu_ns", |arm| arm.cpu_ns),
    ("user_ns", |arm| arm.user_ns),
    ("system_ns", |arm| arm.system_ns),
    ("switches", |arm| arm.switches),
    ("voluntary", |arm| arm.voluntary),
    ("involuntary", |arm| arm.involuntary),
    ("doorbells", |arm| arm.doorbells),
    ("sleeps", |arm| arm.sleeps),
    ("loopback_bytes", |arm| arm.loopback_bytes),
    ("cpu_share", |arm| arm.cpu_share),
    ("memory", |arm| arm.memory),
    ("address_space", |arm| arm.address_space),
    ("loss", |arm| arm.loss),
];
type Part = fn(&Latency) -> f64;

const LATENCY: [(&str, Part); 7] = [
    ("min_ns", |latency| latency.min_ns),
    ("mean_ns", |latency| latency.mean_ns),
    ("p50_ns", |latency| latency.p50_ns),
    ("p90_ns", |latency| latency.p90_ns),
    ("p99_ns", |latency| latency.p99_ns),
    ("p999_ns", |latency| latency.p999_ns),
    ("max_ns", |latency| latency.max_ns),
];

/// One row for each cell, placement and arm.
fn cells(report: &Report) -> Rows {
    let arms = || report.cells.iter().flat_map(|cell| &cell.arms);
    let spread: BTreeSet<&str> = arms()
        .flat_map(|arm| arm.spreads.keys())
        .map(String::as_str)
        .collect();
    let latencies: BTreeSet<&String> = arms().flat_map(|arm| arm.latencies.keys()).collect();
    let values: BTreeSet<&String> = arms().flat_map(|arm| arm.values.keys()).collect();

    let mut head = words("cell work size unit placement arm samples rounds messages");
    for (name, _) in FIGURES {
        head.push(name.to_string());
        if spread.contains(name) {
            head.extend(["min", "q1", "q3", "max"].map(|end| format!("{name}_{end}")));
        }
    }
    let told_of = "syscalls syscalls_method congestion carried carried_of objection failures";
    head.extend(words(told_of));
    for name in &latencies {
        head.push(format!("{name}_count"));
        head.extend(LATENCY.map(|(end, _)| format!("{name}_{end}")));
    }
    head.extend(values.iter().map(|name| name.to_string()));

    let row = |cell: &CellReport, arm: &ArmReport| {
        let mut row = vec![
            cell.cell.clone(),
            cell.work.clone(),
            cell.size.map_or(String::new(), |size| size.to_string()),
            word(&cell.unit),
            cell.placement.name().to_string(),
            arm.arm.clone(),
            arm.samples.to_string(),
            arm.rates.len().to_string(),
            number((arm.messages > 0).then_some(arm.messages as f64)),
        ];
        for (name, of) in FIGURES {
            row.push(number(of(arm)));
            if spread.contains(name) {
                let range = arm.spreads.get(name);
                let ends = range.map(|range| [range.min, range.q1, range.q3, range.max]);
                row.extend((0..4).map(|end| number(ends.map(|ends| ends[end]))));
            }
        }
        row.extend(told(arm));
        for name in &latencies {
            let latency = arm.latencies.get(*name);
            row.push(latency.map_or(String::new(), |latency| latency.count.to_string()));
            row.extend(LATENCY.map(|(_, of)| number(latency.map(of))));
        }
        row.extend(
            values
                .iter()
                .map(|name| number(arm.values.get(*name).copied())),
        );
        row
    };
    let rows = report
        .cells
        .iter()
        .flat_map(|cell| cell.arms.iter().map(move |arm| row(cell, arm)));
    std::iter::once(head).chain(rows).collect()
}

/// What is no plain number.
fn told(arm: &ArmReport) -> [String; 7] {
    let carried = arm.carried.as_ref();
    [
        number(arm.syscalls.as_ref().map(|calls| calls.per_message)),
        arm.syscalls
            .as_ref()
            .map_or(String::new(), |calls| calls.method.clone()),
        arm.congestion.clone().unwrap_or_default(),
        carried.map_or(String::new(), |carried| carried.yes.to_string()),
        carried.map_or(String::new(), |carried| carried.of.to_string()),
        carried
            .and_then(|carried| carried.objection.clone())
            .unwrap_or_default(),
        arm.failures.join("; "),
    ]
}

fn of_sheet(sheet: &Sheet) -> Rows {
    let head = sheet.columns.iter().map(super::head_with_unit).collect();
    let field = |value: &Value| match value {
        Value::Number(value) => number(Some(*value)),
        Value::Text(text) => text.clone(),
        Value::Missing(()) => String::new(),
    };
    let rows = sheet.rows.iter().map(|row| row.iter().map(field).collect());
    std::iter::once(head).chain(rows).collect()
}

fn comparisons(report: &Report) -> Rows {
    const HEAD: &str = "cell placement measured arm against metric pairs kind value low high coverage must aim verdict";
    let row = |cell: &str, placement: &str, measured: &str, one: &Comparison| {
        let kind = match one.figure {
            Figure::Ratio(_) => "ratio",
            Figure::More(_) => "difference",
        };
        vec![
            cell.to_string(),
            placement.to_string(),
            measured.to_string(),
            one.arm.clone(),
            one.against.clone(),
            word(&one.metric),
            one.pairs.to_string(),
            kind.to_string(),
            number(Some(one.figure.value())),
            number(Some(one.low)),
            number(Some(one.high)),
            number(Some(one.coverage)),
            number(one.must),
            number(one.aim),
            word(&one.verdict),
        ]
    };
    let mut rows = vec![words(HEAD)];
    for cell in &report.cells {
        let place = cell.placement.name();
        rows.extend(
            cell.comparisons
                .iter()
                .map(|one| row(&cell.cell, place, "first", one)),
        );
        rows.extend(
            cell.rerun
                .iter()
                .flatten()
                .map(|one| row(&cell.cell, place, "again", one)),
        );
    }
    let best = |best: &Best| {
        row(
            &best.cell,
            best.placement.name(),
            "best placement of each",
            &best.comparison,
        )
    };
    rows.extend(report.conclusion.best.iter().map(best));
    rows
}

fn seeds(report: &Report) -> Rows {
    let head = words("document what theirs ours");
    let rows = report.conclusion.seeds.iter().map(|seed| {
        vec![
            seed.file.clone(),
            seed.what.clone(),
            seed.theirs.clone(),
            seed.ours.clone(),
        ]
    });
    std::iter::once(head).chain(rows).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

/// As JSON names it.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value == 0.0 || (1e-6..1e16).contains(&value.abs()) => value.to_string(),
        Some(value) if value.is_finite() => format!("{value:e}"),
        _ => String::new(),
    }
}
