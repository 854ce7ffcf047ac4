//! Two processes that exchange data over sockets or over XTI, and count what is sent and what is received in the same time:
//! netperf's streams, datagrams, request/response and connections. It knows XTI by the names of its calls alone, which it
//! finds where the library is preloaded; the end that is to be plain has none.
//!
//! ```text
//!   headwater-load xtiperf serve WORK CARRIER --board FILE [--at NAME]     prints "ready ADDRESS", ends with the driver
//!   headwater-load xtiperf drive WORK CARRIER --board FILE --at ADDRESS    prints what was measured as a line of JSON
//! ```
//!
//! WORK is flow (one way, counted in messages), lone (single bytes after a silence), trips (a byte there and back), connects or
//! datagrams. CARRIER is tcp, unix, sctp, udp, udp-batched, udp-mmsg or the name of a transport device. Both processes count on the
//! board, a file that both map, so that one clock serves both.

mod batched;
mod board;
mod buffers;
mod connects;
mod datagram;
mod datagrams;
mod flow;
mod lone;
mod many;
mod measure;
mod options;
mod sctp;
mod stream;
mod sys;
mod trips;
mod xti;

use std::io;

use options::{Options, Side, Work};

use crate::{Ended, Words};

pub fn main(words: impl Iterator<Item = String>) -> Ended {
    let options = Options::read(words)?;
    Ok(Some(run(&options)?))
}

fn run(options: &Options) -> io::Result<String> {
    if let Some(nice) = options.nice {
        rustix::process::setpriority_process(None, nice).map_err(|error| {
            let words = format!("the priority {nice} is not to be had: {error}");
            io::Error::new(error.kind(), words)
        })?;
    }
    match (options.side, options.work) {
        (Side::Serve, Work::Datagrams) => datagrams::serve(options),
        (Side::Serve, Work::Connects) => connects::serve(options),
        (Side::Serve, Work::Flow) => stream::serve(options, flow::serve),
        (Side::Serve, Work::Lone) => stream::serve(options, lone::serve),
        (Side::Serve, Work::Trips) => stream::serve(options, trips::serve),
        (Side::Drive, Work::Datagrams) => datagrams::drive(options),
        (Side::Drive, Work::Connects) => connects::drive(options),
        (Side::Drive, Work::Flow) => flow::drive(options),
        (Side::Drive, Work::Lone) => lone::drive(options),
        (Side::Drive, Work::Trips) => trips::drive(options),
    }
}

/// Tells the bench, which reads a file, where the driver is to go.
fn ready(address: &str) {
    println!("ready {address}");
}
