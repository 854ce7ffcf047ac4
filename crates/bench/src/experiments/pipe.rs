//! STREAMS pipes against the kernel's pipes and UNIX sockets: the perftest of Linux Fast-STREAMS.

mod conclusion;
mod memory;
mod module;
mod transfer;

use std::process::Command;

use serde::Deserialize;

use super::printed::parse;
use super::work::{Work, Works};
use crate::exchange;
use crate::experiment::{Arm, Carrier, Goal, Job, PIPE, STREAMS, Sample};
use crate::failure::Result;
use crate::placement::Placement::{self, Apart, Free, Same};

const NAME: &str = "headwater-load perftest";
const UNDISTURBED: &[Placement] = &[Apart, Same, Free];
pub fn experiment() -> Works {
    let works = [transfer::works(), module::works(), memory::works()];
    Works::new(
        "pipe",
        works.into_iter().flatten(),
        |_| &[Apart, Same],
        conclusion::conclude,
    )
}

fn against_pipe(placements: &'static [Placement], must: f64, aim: impl Into<Option<f64>>) -> Goal {
    Goal::rate(placements, must, aim).between(STREAMS, PIPE)
}

/// The perftest's word for what carries an arm.
fn kind(arm: Arm) -> &'static str {
    match arm.carrier {
        Carrier::Streams => "streams",
        Carrier::Unix => "unix",
        _ => "pipe",
    }
}

/// What `headwater-load perftest one|two` prints.
#[derive(Deserialize)]
struct Moved {
    messages: u64,
    all_messages: u64,
    seconds: f64,
    bytes: u64,
    cpu_ns: u64,
    switches: u64,
}

/// Runs the program, which refuses wrong bytes and anything that is no stream where one was meant.
fn transfer(job: &Job<'_>, program: Command) -> Result<Sample> {
    let (said, counters) = exchange::alone(job, NAME, program)?;
    let moved: Moved = parse(NAME, &said)?;
    let per = 1.0 / moved.messages.max(1) as f64;
    let seconds = moved.seconds.max(1e-9);
    Ok(Sample {
        messages: moved.messages,
        all_messages: moved.all_messages,
        rate: moved.messages as f64 / seconds,
        bytes_rate: Some(moved.bytes as f64 / seconds),
        cpu_ns: Some(moved.cpu_ns as f64 * per),
        switches: Some(moved.switches as f64 * per),
        counters,
        ..Sample::default()
    })
}
