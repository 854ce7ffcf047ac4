//! What the processes of a run counted, as a short table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::units;

/// What is shown of a line in a row: what shared memory carried, and the kernel; in bytes?
const ROWS: [(&str, [&str; 2], bool); 5] = [
    ("connections", ["accelerated", "fallback"], false),
    ("bytes sent", ["shm_bytes_tx", "kernel_bytes_tx"], true),
    ("bytes received", ["shm_bytes_rx", "kernel_bytes_rx"], true),
    ("messages sent", ["shm_msgs_tx", "kernel_msgs_tx"], false),
    (
        "messages received",
        ["shm_msgs_rx", "kernel_msgs_rx"],
        false,
    ),
];

type Counts = BTreeMap<String, u64>;

/// One line of a statistics file; docs/stat-and-doctor.md describes it. What a version does not write counts as nothing.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Line {
    pid: u32,
    fallback_reasons: Counts,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

/// The sum over the lines, and whose they were.
#[derive(Default)]
struct Sum {
    processes: BTreeSet<u32>,
    strange: usize,
    counts: Counts,
    reasons: Counts,
}

/// The table for the lines of `file` after its first `from` bytes.
pub fn table(file: &Path, from: u64, name: &str, took: Duration) -> String {
    match read(file, from) {
        Ok(sum) => format(&sum, name, took),
        Err(e) => format!("headwater: {}: {e}\n", file.display()),
    }
}

fn read(file: &Path, from: u64) -> io::Result<Sum> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(from))?;
    let mut sum = Sum::default();
    for line in BufReader::new(file).split(b'\n') {
        match serde_json::from_slice::<Line>(&line?) {
            Ok(line) => sum.add(line),
            Err(_) => sum.strange += 1,
        }
    }
    Ok(sum)
}

impl Sum {
    fn add(&mut self, line: Line) {
        self.processes.insert(line.pid);
        let numbers = line.rest.into_iter();
        let numbers = numbers.filter_map(|(name, value)| Some((name, value.as_u64()?)));
        add(&mut self.counts, numbers);
        add(&mut self.reasons, line.fallback_reasons);
    }

    fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

fn add(to: &mut Counts, more: impl IntoIterator<Item = (String, u64)>) {
    for (name, n) in more {
        let sum = to.entry(name).or_default();
        *sum = sum.saturating_add(n);
    }
}

fn format(sum: &Sum, name: &str, took: Duration) -> String {
    let mut text = format!("headwater: {name}, {:.1} s, ", took.as_secs_f64());
    match sum.processes.len() {
        0 => text.push_str(
            "no process reported (the library was not loaded, or they were killed or still run)\n",
        ),
        1 => text.push_str("1 process\n"),
        n => writeln!(text, "{n} processes").expect("a String grows"),
    }
    if !sum.processes.is_empty() {
        row(
            &mut text,
            "",
            ["shared memory", "kernel TCP"].map(String::from),
        );
        for (name, columns, in_bytes) in ROWS {
            let shown = columns.map(|column| match sum.count(column) {
                n if in_bytes => units::bytes(n),
                n => n.to_string(),
            });
            row(&mut text, name, shown);
        }
        let [sent, slept] = ["doorbells", "sleeps"].map(|name| sum.count(name));
        let reasons = reasons(&sum.reasons);
        writeln!(text, "  wake-ups: {sent} sent, {slept} slept").expect("a String grows");
        writeln!(text, "  fallbacks: {reasons}").expect("a String grows");
    }
    if sum.strange > 0 {
        writeln!(text, "  lines not understood: {}", sum.strange).expect("a String grows");
    }
    text
}

fn row(text: &mut String, name: &str, [shm, kernel]: [String; 2]) {
    writeln!(text, "  {name:<18}{shm:>15}{kernel:>15}").expect("a String grows");
}

/// Most frequent first.
fn reasons(reasons: &Counts) -> String {
    let mut list: Vec<(&String, &u64)> = reasons.iter().filter(|(_, n)| **n > 0).collect();
    list.sort_by(|a, b| b.1.cmp(a.1));
    if list.is_empty() {
        return "none".to_string();
    }
    let list: Vec<String> = list.iter().map(|(name, n)| format!("{name} {n}")).collect();
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_added_up_from_where_the_run_began() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("stats");
        let before = "{\"pid\":1,\"accelerated\":100}\n";
        let lines = [
            r#"{"pid":2,"comm":"a","accelerated":2,"fallback":1,"fallback_reasons":{"no-offer":1},"shm_bytes_tx":2048}"#,
            r#"{"pid":3,"accelerated":1,"fallback":3,"fallback_reasons":{"denied":3},"kernel_msgs_rx":7,"new":[1]}"#,
            "half a li",
        ];
        std::fs::write(&file, format!("{before}{}", lines.join("\n"))).unwrap();
        let text = table(&file, before.len() as u64, "a", Duration::from_secs(2));
        assert_eq!(
            text,
            "headwater: a, 2.0 s, 2 processes\n\
             \x20                     shared memory     kernel TCP\n\
             \x20 connections                     3              4\n\
             \x20 bytes sent                2.0 KiB            0 B\n\
             \x20 bytes received                0 B            0 B\n\
             \x20 messages sent                   0              0\n\
             \x20 messages received               0              7\n\
             \x20 wake-ups: 0 sent, 0 slept\n\
             \x20 fallbacks: denied 3, no-offer 1\n\
             \x20 lines not understood: 1\n"
        );
    }

    #[test]
    fn a_run_without_reports_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("stats");
        std::fs::write(&file, "").unwrap();
        let text = table(&file, 0, "a", Duration::ZERO);
        assert!(text.contains("no process reported") && text.lines().count() == 1);
    }
}
