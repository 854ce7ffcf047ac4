//! What the ends report: the server to its parent, and both together on the line of JSON at the end.

use std::collections::BTreeMap;
use std::io;

use headwater_load::latency::{Latency, Recorder};
use serde::{Deserialize, Serialize};

use crate::sys::Usage;

#[derive(Default, Serialize)]
pub struct Report {
    /// There and back, or delivered, by all connections together.
    pub messages: u64,
    /// With the warm-up.
    pub all_messages: u64,
    pub seconds: f64,
    pub bytes: u64,
    /// That the loop-back device sent for `messages`, however many went before them.
    pub loopback_bytes: u64,
    /// Of both ends, for `messages`.
    #[serde(flatten)]
    pub spent: Usage,
    pub latencies: Latencies,
}

pub type Latencies = BTreeMap<String, Latency>;

/// What one process reports to another.
#[derive(Default, Serialize, Deserialize)]
pub struct Told {
    pub messages: u64,
    pub all_messages: u64,
    pub seconds: f64,
    pub loopback_bytes: u64,
    pub spent: Usage,
    pub latencies: Latencies,
}

impl Report {
    pub fn line(&self) -> String {
        // Only maps with other keys than text could fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Told {
    pub fn parse(said: &str) -> io::Result<Told> {
        Ok(serde_json::from_str(said)?)
    }

    pub fn line(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)?)
    }
}

/// Those that were recorded, by name.
pub fn latencies<'a>(named: impl IntoIterator<Item = (&'a str, &'a Recorder)>) -> Latencies {
    let found = named
        .into_iter()
        .map(|(name, recorder)| (name.to_string(), recorder.latency()));
    found.filter(|(_, latency)| latency.count > 0).collect()
}
