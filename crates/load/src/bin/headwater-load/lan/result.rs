//! The line of JSON that each program ends with.

use std::io;
use std::time::Duration;

use headwater_load::latency::Latency;
use serde::Serialize;

use crate::sys::Usage;

/// What a driver measured. Everything but `all_messages` excludes the warm-up.
#[derive(Default, Serialize)]
pub struct Driven {
    pub messages: u64,
    /// With the warm-up: what the server saw.
    pub all_messages: u64,
    pub seconds: f64,
    pub bytes: u64,
    /// Of each exchange.
    pub latency: Option<Latency>,
    /// Batches whose means were taken, and half the width of the mean's interval as a share of it.
    pub batches: u64,
    pub half_width: Option<f64>,
    #[serde(flatten)]
    pub spent: Usage,
    pub congestion: String,
    pub verified: bool,
    /// Of the other end, where that was this program's child; with the warm-up.
    pub served: Option<Served>,
}

/// What a server says at its end.
#[derive(Default, Serialize)]
pub struct Served {
    pub connections: u64,
    pub bytes: u64,
    #[serde(flatten)]
    pub spent: Usage,
    pub verified: bool,
}

impl Driven {
    pub fn timed(self, time: Duration) -> Driven {
        Driven {
            seconds: time.as_secs_f64(),
            ..self
        }
    }
}

pub fn print(told: &impl Serialize) -> io::Result<()> {
    println!("{}", serde_json::to_string(told)?);
    Ok(())
}
