//! An ordinary pair of network programs, for measuring. They know nothing of Headwater: blocking sockets of the standard
//! library, a thread per connection, and an epoll loop where many connections are served.
//!
//! ```text
//!   headwater-load echo server echo|epoll|sink ADDR      sends back, sends back from one epoll loop, or counts and checks
//!   headwater-load echo client rtt|stream|connect|fan ADDR   one connection ping-pong, one-way writes, a connection per
//!                                                   request, many connections from one epoll loop
//!   headwater-load echo client idle ADDR                 some messages on many connections, then nothing until its input ends
//!   headwater-load echo client once ADDR                 connects, and ends
//!   headwater-load echo client forks ADDR                some messages, then children that end at once
//!   headwater-load echo client memcached-get|memcached-set ADDR
//!   headwater-load echo calls                            reads of /dev/zero and writes to /dev/null, a byte each
//!   headwater-load echo forks                            children that end at once
//!   headwater-load echo nothing                          ends at once
//!   headwater-load echo spin                             a loop that keeps its CPU busy
//! ```
//!
//! ADDR is HOST:PORT (port 0 takes a free one) or unix:PATH. Every received byte is compared with what must come.

mod calls;
mod client;
mod fan;
mod forks;
mod idle;
mod memcached;
mod options;
mod pace;
mod result;
mod server;

use std::io;

use options::Options;

use crate::{Ended, Problem, sys};

pub fn main(words: impl Iterator<Item = String>) -> Ended {
    let options = Options::parse(words)
        .map_err(|problem| Problem::Words(format!("{problem}\n{}", options::USAGE)))?;
    if let Some(cpu) = options.cpu
        && let Err(error) = sys::pin(&[cpu])
    {
        let why = format!("cannot run on CPU {cpu}: {error}");
        return Err(io::Error::new(error.kind(), why).into());
    }
    let outcome = match options.role.as_str() {
        "server" => server::run(&options),
        "client" => client(&options),
        "calls" => calls::run(&options),
        "forks" => forks::alone(&options),
        "nothing" => Ok(()),
        _ => spin(),
    };
    outcome?;
    Ok(None)
}

fn client(options: &Options) -> io::Result<()> {
    if options.mode == "once" {
        return options.connect().map(drop);
    }
    let measured = match options.mode.as_str() {
        "rtt" => client::round_trips(options),
        "stream" => client::one_way(options),
        "connect" => client::connections(options),
        "fan" => fan::run(options),
        "forks" => forks::connected(options),
        "idle" => idle::run(options),
        "memcached-get" => memcached::run(options, memcached::Op::Get),
        "memcached-set" => memcached::run(options, memcached::Op::Set),
        mode => Err(io::Error::other(format!("no client {mode}"))),
    }?;
    measured.print();
    if !measured.verified {
        return Err(headwater_load::wrong_bytes("a reply"));
    }
    Ok(())
}

fn spin() -> std::io::Result<()> {
    let mut turns = 0u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}
