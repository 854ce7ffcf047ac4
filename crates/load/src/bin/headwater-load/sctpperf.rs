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

use crate::Ended;

pub struct Options {
    pub size: usize,
    pub time: Duration,
    pub count: usize,
    pub at: String,
    pub port: u16,
    pub to_port: u16,
    pub delay: Duration,
}

pub fn main(mut words: impl Iterator<Item = String>) -> Ended {
    let work = words.next().unwrap_or_default();
    let said = parse(words).and_then(|options| match work.as_str() {
        "engine" => Ok(engine::run(&options)),
        "active" => Ok(many::active(&options)),
        "idle" => Ok(many::idle(&options)),
        "serve" => link::serve(&options),
        "drive" => link::drive(&options),
        "relay" => relay::run(&options),
        _ => Err("engine, active, idle, serve, drive or relay?".to_string()),
    });
    Ok(Some(said.map_err(io::Error::other)?))
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        size: 64,
        time: Duration::from_secs(1),
        count: 1,
        at: "127.0.0.1".to_string(),
        port: 5001,
        to_port: 9899,
        delay: Duration::ZERO,
    };
    fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
        text.parse().map_err(|_| format!("{text} is no number"))
    }
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} wants a value"))?;
        match word.as_str() {
            "--size" => options.size = number(&value)?,
            "--seconds" => options.time = Duration::from_secs_f64(number(&value)?),
            "--count" => options.count = number(&value)?,
            "--at" => options.at = value,
            "--to-port" => options.to_port = number(&value)?,
            "--delay" => options.delay = Duration::from_millis(number(&value)?),
            "--port" => options.port = number(&value)?,
            _ => return Err(format!("what is {word}?")),
        }
    }
    Ok(options)
}

/// CPU time of this process.
pub fn cpu() -> Duration {
    // SAFETY: a plain system call that fills a structure of ours.
    unsafe {
        let mut time: libc::timespec = core::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
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
