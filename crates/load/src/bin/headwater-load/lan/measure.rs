//! The warm-up, and batches of exchanges until their mean is known well enough or the time is over.
//!
//! The clock is read once after each exchange, whatever carries it, and the time is written down; what follows from the times
//! is computed between the batches, which is part of neither time nor cost.

use std::io;
use std::time::{Duration, Instant};

use headwater_load::latency::Recorder;

use crate::lan::interval::Means;
use crate::lan::options::Options;
use crate::lan::result::Driven;
use crate::sys::{self, Usage};

/// Batches that a measurement would have if it used all its time. They are long enough to be alike, and short enough to be many.
const BATCHES: f64 = 100.0;
/// Exchanges of a batch, whose times shall not leave the caches.
const MOST: f64 = 16384.0;
/// The share of its time that it uses however soon the mean is known.
const LEAST: u32 = 4;
/// Batches of so many exchanges or more are led by one that is not timed: these are so short that waking the other end would
/// show in the mean.
const SHORT: usize = 20;

/// Repeats `trip`, which exchanges `messages` and returns whether what it received was right.
pub fn measure(
    options: &Options,
    messages: u64,
    mut trip: impl FnMut() -> io::Result<bool>,
) -> io::Result<Driven> {
    let mut driven = Driven {
        verified: true,
        ..Driven::default()
    };
    let start = Instant::now();
    let mut warm_trips = 0;
    while warm_trips == 0 || start.elapsed() < options.warm_up() {
        driven.verified &= trip()?;
        warm_trips += 1;
    }
    let per_trip = start.elapsed().as_secs_f64() / warm_trips as f64;
    let batch = (options.time.as_secs_f64() / BATCHES / per_trip).ceil();
    let mut batch = Batch::of(batch.clamp(1.0, MOST) as usize);

    let (mut means, mut latency) = (Means::default(), Recorder::new());
    let mut spent = Usage::default();
    let (mut trips, mut time) = (0, Duration::ZERO);
    let start = Instant::now();
    loop {
        if batch.times.len() >= SHORT {
            // The other end may have gone to sleep meanwhile.
            driven.verified &= trip()?;
            warm_trips += 1;
        }
        let (taken, used) = batch.run(&mut trip, &mut driven.verified)?;
        batch.times.iter().for_each(|&ns| latency.record(ns));
        trips += batch.times.len() as u64;
        time += taken;
        spent = spent.plus(used);
        means.add(taken.as_secs_f64());
        let elapsed = start.elapsed();
        let enough = elapsed >= options.time / LEAST;
        let known = |share| enough && means.is_within(share);
        if elapsed >= options.time || options.within.is_some_and(known) || !driven.verified {
            break;
        }
    }
    Ok(Driven {
        messages: trips * messages,
        all_messages: (trips + warm_trips) * messages,
        bytes: trips * messages * options.request as u64,
        latency: Some(latency.latency()),
        batches: means.count(),
        half_width: means.half_width(),
        spent,
        ..driven.timed(time)
    })
}

/// The times of so many exchanges, in nanoseconds.
struct Batch {
    times: Vec<u64>,
}

impl Batch {
    fn of(trips: usize) -> Batch {
        Batch {
            times: vec![0; trips],
        }
    }

    /// How long all of them took, and what this end used for them.
    fn run(
        &mut self,
        trip: &mut impl FnMut() -> io::Result<bool>,
        verified: &mut bool,
    ) -> io::Result<(Duration, Usage)> {
        let usage = sys::usage();
        let start = Instant::now();
        let mut last = start;
        for time in &mut self.times {
            *verified &= trip()?;
            let now = Instant::now();
            *time = (now - last).as_nanos() as u64;
            last = now;
        }
        Ok((last - start, sys::usage().since(usage)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &str) -> Options {
        let words = format!("raw exchange {words}");
        crate::Words::read(words.split(' ').map(str::to_string)).unwrap()
    }

    #[test]
    fn every_exchange_is_counted_and_those_between_batches_are_only_seen_by_the_other_end() {
        let mut calls = 0;
        let trip = || {
            calls += 1;
            Ok(true)
        };
        let driven = measure(&options("--seconds 0.01 --request 7"), 3, trip).unwrap();
        assert_eq!(driven.all_messages, 3 * calls);
        assert!(driven.messages < driven.all_messages && driven.verified);
        assert_eq!(driven.bytes, 7 * driven.messages);
        assert_eq!(driven.latency.unwrap().count * 3, driven.messages);
    }

    #[test]
    fn wrong_bytes_end_it() {
        let driven = measure(&options("--seconds 10"), 1, || Ok(false)).unwrap();
        assert!(!driven.verified && driven.batches == 1);
    }
}
