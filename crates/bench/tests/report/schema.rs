//! docs/bench-results.md says what is in the JSON files, no less and no more.

use std::collections::BTreeMap;
use std::fs;

use headwater_bench::data::export_samples;
use serde_json::Value;

use crate::fixture;

type Fields = BTreeMap<String, String>;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench-results.md");
/// Objects whose keys are names of the measurement, not of the schema.
const MAPS: [&str; 5] = [
    "latencies",
    "values",
    "spreads",
    "fallback_reasons",
    "mitigations",
];

#[test]
fn every_field_of_a_run_is_documented_and_every_documented_field_is_there() {
    let run = serde_json::to_value(fixture::full().without_samples()).unwrap();
    compare(&run, "results.json");
}

#[test]
fn every_field_of_the_samples_is_documented_and_every_documented_field_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples.json");
    export_samples(&fixture::full(), &path).unwrap();
    let samples = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    compare(&samples, "samples.json");
}

fn compare(found: &Value, file: &str) {
    let mut there = Fields::new();
    collect(found, "", &mut there);
    let documented = documented(file, &there);
    let missing = |from: &Fields, of: &Fields| -> Vec<String> {
        from.keys()
            .filter(|key| !of.contains_key(*key))
            .cloned()
            .collect()
    };
    let undocumented = missing(&there, &documented);
    assert!(
        undocumented.is_empty(),
        "docs/bench-results.md does not have {undocumented:#?} of {file}"
    );
    let gone = missing(&documented, &there);
    assert!(
        gone.is_empty(),
        "docs/bench-results.md has {gone:#?}, which {file} has not"
    );
    for (field, kind) in &there {
        let said = &documented[field];
        assert!(
            said.starts_with(kind.as_str()),
            "{field} is documented as {said:?}, and is a {kind}"
        );
    }
}

/// Every object's fields by their paths, with the kind of their values.
fn collect(value: &Value, path: &str, fields: &mut Fields) {
    match value {
        Value::Object(object) => {
            let is_map = MAPS.iter().any(|map| path.ends_with(map));
            for (key, value) in object {
                let path = match (path, is_map) {
                    ("", _) => key.clone(),
                    (_, true) => format!("{path}.*"),
                    (_, false) => format!("{path}.{key}"),
                };
                if !is_map && !value.is_null() {
                    fields.insert(path.clone(), kind(value, &path));
                }
                collect(value, &path, fields);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect(item, &format!("{path}[]"), fields)),
        _ => {}
    }
}

fn kind(value: &Value, path: &str) -> String {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        // A number may happen to be whole.
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) if MAPS.iter().any(|map| path.ends_with(map)) => "map",
        Value::Object(_) => "object",
    }
    .to_string()
}

/// The paths that the document has for a file, with the types it gives them.
fn documented(file: &str, there: &Fields) -> Fields {
    let text = fs::read_to_string(DOCUMENT).unwrap();
    let mut fields = Fields::new();
    let (mut here, mut prefixes) = (false, Vec::new());
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("## ") {
            here = head == file || head == "In both";
        } else if let Some(head) = line.strip_prefix("### ") {
            prefixes = head
                .split('`')
                .skip(1)
                .step_by(2)
                .map(String::from)
                .collect();
            if prefixes.is_empty() {
                prefixes = vec![String::new()];
            }
        } else if let Some(row) = line.strip_prefix("| `").filter(|_| here) {
            let mut columns = row.split('|').map(str::trim);
            let field = columns.next().unwrap_or_default().trim_end_matches('`');
            let kind = columns.next().unwrap_or_default();
            for prefix in prefixes.iter().flat_map(|prefix| whole(prefix, there)) {
                let dot = if prefix.is_empty() { "" } else { "." };
                fields.insert(format!("{prefix}{dot}{field}"), kind.to_string());
            }
        }
    }
    fields
}

/// What stands in both files is named by its end alone.
fn whole(prefix: &str, there: &Fields) -> Vec<String> {
    if !["counters", "latencies.*"].contains(&prefix) {
        return vec![prefix.to_string()];
    }
    let name = prefix.trim_end_matches(".*");
    let paths = there
        .keys()
        .filter(|path| path.rsplit('.').next() == Some(name));
    paths.map(|path| path.replace(name, prefix)).collect()
}
