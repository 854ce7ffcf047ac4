//! The line of JSON that each program ends with.

use std::time::Duration;

use headwater_load::latency::Recorder;

use crate::sys::Usage;

/// What a client measured. Everything but `all_messages` excludes the warm-up.
#[derive(Default)]
pub struct Measured {
    pub messages: u64,
    /// With the warm-up: what the server saw.
    pub all_messages: u64,
    pub time: Duration,
    pub bytes: u64,
    pub latency: Recorder,
    pub usage: Usage,
    pub verified: bool,
    pub congestion: String,
}

impl Measured {
    pub fn print(&self) {
        println!(
            "{{\"messages\":{},\"all_messages\":{},\"seconds\":{:.9},\"bytes\":{},\"p50_ns\":{},\"p99_ns\":{},\
             \"user_ns\":{},\"system_ns\":{},\"voluntary\":{},\"involuntary\":{},\"congestion\":\"{}\",\"verified\":{}}}",
            self.messages,
            self.all_messages,
            self.time.as_secs_f64(),
            self.bytes,
            self.latency.quantile(0.5),
            self.latency.quantile(0.99),
            self.usage.user_ns,
            self.usage.system_ns,
            self.usage.voluntary,
            self.usage.involuntary,
            self.congestion,
            self.verified,
        );
    }
}
