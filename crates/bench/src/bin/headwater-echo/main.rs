//! An ordinary pair of network programs, for measuring. They know nothing of Headwater: blocking sockets of the standard
//! library, a thread per connection, and an epoll loop where many connections are served.
//!
//! ```text
//!   headwater-echo server echo|epoll|sink ADDR      sends back, sends back from one epoll loop, or counts and checks
//!   headwater-echo client rtt|stream|connect|fan ADDR   one connection ping-pong, one-way writes, a connection per
//!                                                   request, many connections from one epoll loop
//!   headwater-echo client idle ADDR                 some messages on many connections, then nothing until its input ends
//!   headwater-echo client once ADDR                 connects, and ends
//!   headwater-echo client forks ADDR                some messages, then children that end at once
//!   headwater-echo client memcached-get|memcached-set ADDR
//!   headwater-echo calls                            reads of /dev/zero and writes to /dev/null, a byte each
//!   headwater-echo forks                            children that end at once
//!   headwater-echo nothing                          ends at once
//!   headwater-echo spin                             a loop that keeps its CPU busy
//! ```
//!
//! ADDR is HOST:PORT (port 0 takes a free one) or unix:PATH. Every received byte is compared with what must come.

mod calls;
mod client;
mod fan;
mod forks;
mod idle;
mod memcached;
mod net;
mod options;
mod pace;
mod pattern;
mod poll;
mod result;
mod server;
mod sys;

use std::process::ExitCode;

use options::Options;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("headwater-echo: {problem}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    if let Some(cpu) = options.cpu
        && let Err(error) = sys::pin(cpu)
    {
        eprintln!("headwater-echo: cannot run on CPU {cpu}: {error}");
        return ExitCode::FAILURE;
    }
    let outcome = match options.role.as_str() {
        "server" => server::run(&options),
        "client" => client::run(&options),
        "calls" => calls::run(&options),
        "forks" => forks::alone(&options),
        "nothing" => Ok(()),
        _ => spin(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headwater-echo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn spin() -> std::io::Result<()> {
    let mut turns = 0u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}
