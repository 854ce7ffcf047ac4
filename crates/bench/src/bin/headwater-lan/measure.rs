//! The warm-up, and batches of exchanges until their mean is known well enough or the time is over.

use std::io;
use std::time::Instant;

use headwater_bench::latency::Recorder;

use crate::interval::Means;
use crate::options::Options;
use crate::result::Driven;
use crate::sys;

/// Batches that a measurement would have if it used all its time. They are long enough to be alike, and short enough to be many.
const BATCHES: f64 = 100.0;
/// The share of its time that it uses however soon the mean is known.
const LEAST: u32 = 4;

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
    let batch = batch.clamp(1.0, 1e9) as u64;

    let (mut means, mut latency) = (Means::default(), Recorder::new());
    let usage = sys::usage();
    let start = Instant::now();
    let mut trips = 0;
    let mut end;
    loop {
        // Asking whether the mean is known is no part of any batch.
        let batch_start = Instant::now();
        end = batch_start;
        for _ in 0..batch {
            let trip_start = end;
            driven.verified &= trip()?;
            end = Instant::now();
            latency.record((end - trip_start).as_nanos() as u64);
        }
        trips += batch;
        means.add((end - batch_start).as_secs_f64());
        let taken = end - start;
        let known = options.within.is_some_and(|share| means.is_within(share));
        if taken >= options.time || known && taken >= options.time / LEAST || !driven.verified {
            break;
        }
    }
    let spent = sys::usage().since(usage);
    Ok(Driven {
        messages: trips * messages,
        all_messages: (trips + warm_trips) * messages,
        bytes: trips * messages * options.request as u64,
        latency: Some(latency.latency()),
        batches: means.count(),
        half_width: means.half_width(),
        spent: spent.into(),
        ..driven.timed(end - start)
    })
}
