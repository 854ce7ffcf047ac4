//! The command line.

use std::ffi::CString;
use std::time::Duration;

use crate::perftest::ends::Kind;

pub const USAGE: &str = "usage: headwater-load perftest one|two streams|pipe|unix SIZE SECONDS
                          [--push-reading MODULE] [--push-writing MODULE] [--writer-cpu N] [--on-eof]
       headwater-load perftest memory streams|streams-used|pipe|unix COUNT";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    One,
    Two,
    Memory,
}

pub struct Options {
    pub mode: Mode,
    pub kind: Kind,
    /// Send a message each way before memory is looked at.
    pub used: bool,
    /// Bytes of a message.
    pub size: usize,
    pub time: Duration,
    /// Ends of pipes.
    pub count: usize,
    pub push_reading: Option<CString>,
    pub push_writing: Option<CString>,
    pub writer_cpu: Option<usize>,
    /// Begin when standard input ends.
    pub on_eof: bool,
}

impl Options {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut next = |what: &str| words.next().ok_or_else(|| format!("which {what}?"));
        let mode = match next("mode")?.as_str() {
            "one" => Mode::One,
            "two" => Mode::Two,
            "memory" => Mode::Memory,
            _ => return Err("one, two or memory?".to_string()),
        };
        let kind = next("kind")?;
        let used = kind.ends_with("-used");
        let kind = match kind.trim_end_matches("-used") {
            "streams" => Kind::Streams,
            "pipe" => Kind::Pipe,
            "unix" => Kind::Unix,
            _ => return Err("streams, pipe or unix?".to_string()),
        };
        let number: usize = parse(&next("size or count")?)?;
        let time = match mode {
            Mode::Memory => 0.0,
            _ => parse(&next("time")?)?,
        };
        let mut options = Options {
            mode,
            kind,
            used,
            // The number that every message carries must fit.
            size: number.max(4),
            time: Duration::try_from_secs_f64(time).map_err(|error| error.to_string())?,
            count: number,
            push_reading: None,
            push_writing: None,
            writer_cpu: None,
            on_eof: false,
        };
        while let Some(word) = words.next() {
            if word == "--on-eof" {
                options.on_eof = true;
                continue;
            }
            let value = words.next().ok_or(format!("{word} wants a value"))?;
            let name = || CString::new(value.as_str()).map_err(|error| error.to_string());
            match word.as_str() {
                "--push-reading" => options.push_reading = Some(name()?),
                "--push-writing" => options.push_writing = Some(name()?),
                "--writer-cpu" => options.writer_cpu = Some(parse(&value)?),
                _ => return Err(format!("what is {word}?")),
            }
        }
        Ok(options)
    }

    /// How much to run before measuring.
    pub fn warm_up(&self) -> Duration {
        (self.time / 5).min(Duration::from_millis(100))
    }
}

fn parse<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}
