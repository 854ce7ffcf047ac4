//! A warm-up and the window that counts.

use std::io;
use std::time::{Duration, Instant};

use crate::board::Board;
use crate::options::Options;
use crate::sys::Used;

#[derive(Default)]
pub struct Measured {
    /// In the window, as the sender and the receiver counted them.
    pub sent: u64,
    pub received: u64,
    /// With the warm-up.
    pub all_sent: u64,
    pub time: Duration,
    pub used: Used,
    /// Share of what was sent that never came.
    pub loss: Option<f64>,
    /// Sorted; empty where they were not taken.
    pub delays: Vec<u64>,
}

/// How many times as long a window may last in which nothing has come yet.
const STRETCH: u32 = 20;

/// Sends for the warm-up, and then for the window. `send` is given the number of its message, `received` tells how many have come.
pub fn run(
    options: &Options,
    board: &Board,
    mut send: impl FnMut(u64) -> io::Result<()>,
    received: impl Fn(u64) -> u64,
) -> io::Result<Measured> {
    let batch = options.batch();
    let mut measured = Measured::default();
    let mut number = 0;
    for time in [options.warm_up(), options.time] {
        let (used, sent_before, received_before) =
            (Used::with(board.server()), number, received(number));
        let start = Instant::now();
        // A receiver of low priority may not have run at all by then.
        let over = |elapsed: Duration, received: u64| {
            elapsed >= time && (received > received_before || elapsed >= time * STRETCH)
        };
        while !over(start.elapsed(), received(number)) {
            for _ in 0..batch {
                send(number)?;
                number += 1;
            }
        }
        measured.received = received(number) - received_before;
        measured.time = start.elapsed();
        measured.sent = number - sent_before;
        measured.used = Used::with(board.server()) - used;
        board.hurry();
    }
    measured.all_sent = number;
    Ok(measured)
}

impl Measured {
    /// The slower of both counts is that of the run.
    pub fn line(&self) -> String {
        let percentile = |share: f64| {
            let last = self.delays.len().saturating_sub(1);
            let at = (last as f64 * share).ceil() as usize;
            self.delays.get(at).copied().unwrap_or(0)
        };
        format!(
            "{{\"messages\":{},\"sent\":{},\"received\":{},\"all_messages\":{},\"seconds\":{:.9},\"cpu_ns\":{},\"switches\":{},\"loss\":{},\"p50_ns\":{},\"p99_ns\":{}}}",
            self.sent.min(self.received),
            self.sent,
            self.received,
            self.all_sent,
            self.time.as_secs_f64(),
            self.used.cpu_ns,
            self.used.switches,
            self.loss
                .map_or("null".to_string(), |loss| loss.to_string()),
            percentile(0.5),
            percentile(0.99),
        )
    }
}

#[cold]
pub fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("wrong bytes: {what}"))
}
