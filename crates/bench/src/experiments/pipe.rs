//! STREAMS pipes against the kernel's pipes and UNIX sockets: the perftest of Linux Fast-STREAMS.

mod conclusion;
mod memory;
mod module;
mod transfer;

use std::process::Command;

use super::printed::{Told, parse};
use super::work::{Work, Works};
use crate::exchange;
use crate::experiment::{Arm, Carrier, Job, STREAMS, Sample};
use crate::failure::Result;

const NAME: &str = "headwater-load perftest";

pub fn experiment() -> Works {
    let works = [transfer::works(), module::works(), memory::works()];
    Works::new("pipe", works.into_iter().flatten(), conclusion::conclude)
}

/// The perftest's word for what carries an arm.
fn kind(arm: Arm) -> &'static str {
    match arm.carrier {
        Carrier::Streams => "streams",
        Carrier::Unix => "unix",
        _ => "pipe",
    }
}

/// Runs the program, which refuses wrong bytes and anything that is no stream where one was meant.
fn transfer(job: &Job<'_>, program: Command) -> Result<Sample> {
    let (said, counters) = exchange::alone(job, NAME, program)?;
    Ok(Sample {
        counters,
        ..Told::read(NAME, &said)?.sample()
    })
}
