//! SCTP by its own Rust API: the engine alone in memory, many associations, and one association over a link.
//!
//! ```text
//!   headwater-load sctpperf engine --size N --seconds S                       both ends in memory, no I/O
//!   headwater-load sctpperf active --count N --size N --seconds S             so many associations in turn
//!   headwater-load sctpperf idle --count N                                    what each end of an idle one takes
//!   headwater-load sctpperf serve --at ADDRESS --port N                       prints "ready", counts until its peer is done
//!   headwater-load sctpperf drive --at ADDRESS --port N --size N --seconds S  sends; prints what came and the round trip
//! ```
//!   headwater-load sctpperf relay --at ADDRESS --port N --to-port N --delay MS  forwards UDP, late
//!
//! Each prints one line of JSON.

mod engine;
mod link;
mod many;
mod relay;

use std::io;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::sys::clock_ns;
use crate::{Ended, Words, seconds};

#[derive(Clone, Copy, ValueEnum)]
enum Work {
    Engine,
    Active,
    Idle,
    Serve,
    Drive,
    Relay,
}

#[derive(Parser)]
#[command(name = "headwater-load sctpperf", no_binary_name = true)]
pub struct Options {
    work: Work,
    #[arg(long, default_value_t = 64)]
    pub size: usize,
    #[arg(long = "seconds", default_value = "1", value_parser = seconds)]
    pub time: Duration,
    #[arg(long, default_value_t = 1)]
    pub count: usize,
    #[arg(long, default_value = "127.0.0.1")]
    pub at: String,
    #[arg(long, default_value_t = 5001)]
    pub port: u16,
    #[arg(long, default_value_t = 9899)]
    pub to_port: u16,
    /// In milliseconds
    #[arg(long, default_value = "0", value_parser = milliseconds)]
    pub delay: Duration,
}

fn milliseconds(word: &str) -> Result<Duration, &'static str> {
    let number = word.parse().map_err(|_| "a number is wanted")?;
    Ok(Duration::from_millis(number))
}

impl Words for Options {}

pub fn main(words: impl Iterator<Item = String>) -> Ended {
    let options = Options::read(words)?;
    let said = match options.work {
        Work::Engine => Ok(engine::run(&options)),
        Work::Active => Ok(many::active(&options)),
        Work::Idle => Ok(many::idle(&options)),
        Work::Serve => link::serve(&options),
        Work::Drive => link::drive(&options),
        Work::Relay => relay::run(&options),
    };
    Ok(Some(said.map_err(io::Error::other)?))
}

/// CPU time of this process, in nanoseconds.
pub fn cpu() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// What was measured.
#[derive(Default, serde::Serialize)]
pub struct Measured {
    pub messages: u64,
    /// With those of the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_messages: Option<u64>,
    pub seconds: f64,
    pub cpu_ns: u64,
    /// Bytes of each end of an association.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// The smoothed round trip, in seconds, over the time of sending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<f64>,
    /// The longest packet on the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<usize>,
}

impl Measured {
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("numbers can be written")
    }
}
