//! A warm-up and the window that counts.

use std::io;
use std::time::{Duration, Instant};

use headwater_load::latency::Recorder;

use crate::sys::Usage;
use crate::xtiperf::board::Board;
use crate::xtiperf::buffers::Buffers;
use crate::xtiperf::options::{Options, Work};
use crate::xtiperf::sys::used_with;

#[derive(Default)]
pub struct Measured {
    /// In the window, as the sender and the receiver counted them.
    pub sent: u64,
    pub received: u64,
    /// With the warm-up.
    pub all_sent: u64,
    pub time: Duration,
    pub used: Usage,
    /// Share of what was sent that never came.
    pub loss: Option<f64>,
    /// Of the sender and the receiver, where they were asked for.
    pub buffers: Option<[Buffers; 2]>,
    /// Empty where they were not taken.
    pub delays: Recorder,
}

/// How many times as long a window may last in which nothing has come yet. A stream's sender waits at last, so that its
/// receiver gets on; one of datagrams need not.
const STRETCH: u32 = 20;
const DATAGRAM_STRETCH: u32 = 4;

/// Sends for the warm-up, and then for the window. `send` is given the number of its message, `received` tells how many have come.
pub fn run(
    options: &Options,
    board: &Board,
    mut send: impl FnMut(u64) -> io::Result<()>,
    received: impl Fn(u64) -> u64,
) -> io::Result<Measured> {
    let batch = options.batch();
    let stretch = match options.work {
        Work::Datagrams => DATAGRAM_STRETCH,
        _ => STRETCH,
    };
    let mut measured = Measured::default();
    let mut number = 0;
    for time in [options.warm_up(), options.time] {
        let (used, sent_before, received_before) =
            (used_with(board.server()), number, received(number));
        let start = Instant::now();
        // A receiver of low priority may not have run at all by then.
        let over = |elapsed: Duration, received: u64| {
            elapsed >= time && (received > received_before || elapsed >= time * stretch)
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
        measured.used = used_with(board.server()).since(used);
        board.hurry();
    }
    measured.all_sent = number;
    Ok(measured)
}

impl Measured {
    /// The slower of both counts is that of the run.
    pub fn line(&self) -> String {
        let buffers = |[sender, receiver]: [Buffers; 2]| {
            let Buffers { send, receive } = receiver;
            format!("[{},{},{send},{receive}]", sender.send, sender.receive)
        };
        format!(
            "{{\"messages\":{},\"sent\":{},\"received\":{},\"all_messages\":{},\"seconds\":{:.9},\"cpu_ns\":{},\"voluntary\":{},\"involuntary\":{},\"buffers\":{},\"loss\":{},\"p50_ns\":{},\"p99_ns\":{}}}",
            self.sent.min(self.received),
            self.sent,
            self.received,
            self.all_sent,
            self.time.as_secs_f64(),
            self.used.cpu_ns(),
            self.used.voluntary,
            self.used.involuntary,
            self.buffers.map_or("null".to_string(), buffers),
            self.loss
                .map_or("null".to_string(), |loss| loss.to_string()),
            self.delays.quantile(0.5),
            self.delays.quantile(0.99),
        )
    }
}
