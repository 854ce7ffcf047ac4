//! The line of JSON that our own programs end with.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::experiment::Sample;
use crate::failure::{Failure, Result};

/// What `headwater-load echo client` and `headwater-load raw` print.
#[derive(Deserialize)]
pub struct Measured {
    pub messages: u64,
    pub all_messages: u64,
    pub seconds: f64,
    pub bytes: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary: u64,
    pub involuntary: u64,
    pub congestion: String,
    pub verified: bool,
}

/// What `headwater-load echo server` prints.
#[derive(Deserialize)]
pub struct Served {
    pub voluntary: u64,
    pub involuntary: u64,
    pub verified: bool,
}

/// Reads a program's closing line.
pub fn parse<T: DeserializeOwned>(program: &str, said: &str) -> Result<T> {
    let line = said.trim().lines().next_back().unwrap_or_default();
    serde_json::from_str(line).map_err(|_| Failure::Output(program.to_string(), line.to_string()))
}

impl Measured {
    pub fn sample(&self) -> Sample {
        let seconds = self.seconds.max(1e-9);
        let per = 1.0 / self.messages.max(1) as f64;
        let time = |ns: u64| (ns > 0).then_some(ns as f64);
        Sample {
            messages: self.messages,
            all_messages: self.all_messages,
            rate: self.messages as f64 / seconds,
            bytes_rate: (self.bytes > 0).then_some(self.bytes as f64 / seconds),
            p50_ns: time(self.p50_ns),
            p99_ns: time(self.p99_ns),
            cpu_ns: Some((self.user_ns + self.system_ns) as f64 * per),
            switches: Some((self.voluntary + self.involuntary) as f64 * per),
            congestion: Some(self.congestion.clone()),
            ..Sample::default()
        }
    }
}
