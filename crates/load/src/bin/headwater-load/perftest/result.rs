//! The line of JSON that a run ends with.

use std::time::Duration;

use crate::sys::Usage;

#[derive(Default)]
pub struct Measured {
    pub messages: u64,
    /// With the warm-up.
    pub all_messages: u64,
    pub time: Duration,
    /// Of this process and the children that it has waited for, for `messages`.
    pub used: Usage,
}

impl Measured {
    pub fn line(&self, size: usize) -> String {
        format!(
            "{{\"messages\":{},\"all_messages\":{},\"seconds\":{:.9},\"bytes\":{},\"cpu_ns\":{},\"switches\":{}}}",
            self.messages,
            self.all_messages,
            self.time.as_secs_f64(),
            self.messages * size as u64,
            self.used.cpu_ns(),
            self.used.switches(),
        )
    }
}
