//! Many connections that have been used and now wait.

use std::io;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Instant;

use crate::echo::client::Trip;
use crate::echo::options::Options;
use crate::echo::result::Measured;
use crate::net::Stream;
use crate::poll::Poll;
use crate::sys;

/// Exchanges messages on every connection in turn, says so, and waits for what never comes until the input ends.
pub fn run(options: &Options) -> io::Result<Measured> {
    sys::allow_connections(options.connections)?;
    let mut streams = Vec::new();
    for _ in 0..options.connections {
        streams.push(options.connect()?);
    }
    let mut measured = exchange(options, &mut streams)?;
    measured.congestion = streams[0].congestion();
    let mut poll = Poll::new()?;
    for stream in &streams {
        poll.add(stream.as_raw_fd(), 0)?;
    }
    thread::spawn(move || poll.wait().map(Iterator::count));
    println!("idle");
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(measured)
}

fn exchange(options: &Options, streams: &mut [Stream]) -> io::Result<Measured> {
    let mut trip = Trip::new(options.size);
    let (usage, start) = (sys::usage(), Instant::now());
    let (mut rounds, mut verified) = (0, true);
    while !options.until.reached(start.elapsed(), rounds) && verified {
        for stream in &mut *streams {
            verified &= trip.take(stream)?;
        }
        rounds += 1;
    }
    let messages = rounds * streams.len() as u64;
    Ok(Measured {
        messages,
        all_messages: messages,
        time: start.elapsed(),
        bytes: messages * options.size as u64,
        usage: sys::usage().since(usage),
        verified,
        ..Measured::default()
    })
}
