//! The clients of one connection at a time: round trips, one-way writes, and a connection for each request.

use std::io::{self, Read, Write};
use std::time::Instant;

use crate::echo::options::Options;
use crate::echo::pace::Pace;
use crate::echo::result::Measured;
use crate::lan::link::Link;
use crate::lan::stream::Sender;
use crate::net::Stream;
use crate::pattern::{Pattern, Place};
use crate::sys::{self, Usage};

/// Runs `step` through the warm-up and the measured part. A step is one message; it returns whether its bytes were right.
pub fn measure(
    options: &Options,
    mut step: impl FnMut() -> io::Result<bool>,
) -> io::Result<Measured> {
    let mut pace = Pace::new(options.rate);
    let mut measured = Measured {
        verified: true,
        ..Measured::default()
    };
    for (part, until) in [(0, options.warm_up()), (1, options.until)] {
        let usage = sys::usage();
        let start = Instant::now();
        let (mut last, mut count) = (start, 0);
        while !until.reached(last - start, count) && measured.verified {
            let begun = pace.wait(last);
            measured.verified = step()?;
            let now = Instant::now();
            if part == 1 {
                measured.latency.record_time(now - begun);
            }
            last = now;
            count += 1;
        }
        measured.messages = count;
        measured.all_messages += count;
        measured.time = last - start;
        measured.usage = sys::usage().since(usage);
    }
    Ok(measured)
}

pub fn round_trips(options: &Options) -> io::Result<Measured> {
    let mut stream = options.connect()?;
    let mut trip = Trip::new(options.size);
    let mut measured = measure(options, || trip.take(&mut stream))?;
    measured.bytes = measured.messages * options.size as u64;
    measured.congestion = stream.congestion();
    Ok(measured)
}

pub fn connections(options: &Options) -> io::Result<Measured> {
    let mut trip = Trip::new(options.size);
    let mut congestion = String::new();
    let mut measured = measure(options, || {
        let mut stream = options.connect()?;
        if congestion.is_empty() {
            congestion = stream.congestion();
        }
        trip.take(&mut stream)
    })?;
    measured.bytes = measured.messages * options.size as u64;
    measured.congestion = congestion;
    Ok(measured)
}

/// A request and its echo.
pub struct Trip {
    pattern: Pattern,
    at: Place,
    answer: Vec<u8>,
}

impl Trip {
    pub fn new(size: usize) -> Trip {
        Trip {
            pattern: Pattern::new(size),
            at: Place::default(),
            answer: vec![0; size],
        }
    }

    pub fn take(&mut self, stream: &mut Stream) -> io::Result<bool> {
        let size = self.answer.len();
        stream.write_all(self.pattern.piece(self.at, size))?;
        stream.read_exact(&mut self.answer)?;
        let right = self.pattern.matches(self.at, &self.answer);
        self.at.advance(size);
        Ok(right)
    }
}

pub fn one_way(options: &Options) -> io::Result<Measured> {
    let mut sender = Sender::new(Link::Socket(options.connect()?), options.size);
    let (mut start, mut usage, mut messages) = (Instant::now(), Usage::default(), 0);
    for until in [options.warm_up(), options.until] {
        (start, usage, messages) = (Instant::now(), sys::usage(), 0);
        while !until.reached(start.elapsed(), messages) {
            messages += sender.some()?;
        }
    }
    let congestion = sender.link.congestion();
    let all_messages = sender.writes;
    let verified = sender.finish()?;
    Ok(Measured {
        messages,
        all_messages,
        time: start.elapsed(),
        bytes: messages * options.size as u64,
        usage: sys::usage().since(usage),
        verified,
        congestion,
        ..Measured::default()
    })
}
