//! The lines that processes leave in the statistics file.

use std::path::Path;

use serde_json::Value;

/// What one process (image) did.
#[derive(Debug, Clone)]
pub struct Line {
    pub pid: u64,
    pub comm: String,
    pub accelerated: u64,
    pub fallback: u64,
    pub shm_tx: u64,
    pub shm_rx: u64,
    pub kernel_tx: u64,
    pub kernel_rx: u64,
    /// The line itself.
    pub text: String,
}

/// All lines that are complete so far.
pub fn read(file: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(parse).collect()
}

/// The same where processes are killed at any moment: what one had written of its line stands before the next.
pub fn read_of_killed(file: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.lines().filter(|l| l.ends_with('}'));
    whole
        .filter_map(|l| l.rfind("{\"pid\"").map(|at| parse(&l[at..])))
        .collect()
}

fn parse(text: &str) -> Line {
    let v: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("not JSON ({e}): {text}"));
    let count = |name: &str| {
        v[name]
            .as_u64()
            .unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    Line {
        pid: count("pid"),
        comm: v["comm"].as_str().unwrap_or_default().to_string(),
        accelerated: count("accelerated"),
        fallback: count("fallback"),
        shm_tx: count("shm_bytes_tx"),
        shm_rx: count("shm_bytes_rx"),
        kernel_tx: count("kernel_bytes_tx"),
        kernel_rx: count("kernel_bytes_rx"),
        text: text.to_string(),
    }
}
