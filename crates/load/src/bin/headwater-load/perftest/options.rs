//! The command line.

use std::ffi::CString;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::perftest::ends::Kind;
use crate::{Words, seconds};

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Mode {
    One,
    Two,
    Memory,
}

#[derive(Parser)]
#[command(name = "headwater-load perftest", no_binary_name = true)]
pub struct Options {
    pub mode: Mode,
    pub kind: Kind,
    /// Bytes of a message; with `memory`: ends of pipes
    #[arg(value_name = "SIZE|COUNT")]
    number: usize,
    #[arg(value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub time: Duration,
    /// With `memory`: send a message each way before it is looked at
    #[arg(long)]
    pub used: bool,
    #[arg(long, value_name = "MODULE", value_parser = module)]
    pub push_reading: Option<CString>,
    #[arg(long, value_name = "MODULE", value_parser = module)]
    pub push_writing: Option<CString>,
    #[arg(long)]
    pub writer_cpu: Option<usize>,
    /// Begin when standard input ends
    #[arg(long)]
    pub on_eof: bool,
}

fn module(word: &str) -> Result<CString, String> {
    CString::new(word).map_err(|error| error.to_string())
}

impl Words for Options {}

impl Options {
    /// Bytes of a message: the number that every one carries must fit.
    pub fn size(&self) -> usize {
        self.number.max(4)
    }

    /// Ends of pipes.
    pub fn count(&self) -> usize {
        self.number
    }

    /// How much to run before measuring.
    pub fn warm_up(&self) -> Duration {
        (self.time / 5).min(Duration::from_millis(100))
    }
}
